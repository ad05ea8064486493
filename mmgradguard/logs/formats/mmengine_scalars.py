"""mmengine 1.x ``vis_data/scalars.json``: no mode field, full precision."""

from __future__ import annotations

from typing import Any, Mapping

from mmgradguard.logs.formats.base import WINDOW_MEAN
from mmgradguard.logs.formats.json_lines import (
    NOTHING,
    JsonLinesParser,
    Plan,
    as_number,
)
from mmgradguard.logs.terms import is_loss_term

#: Of every row, and no quantity to look at.
_PLACES = ('epoch', 'iter', 'step')
_NO_METRICS = (*_PLACES, 'time', 'data_time', 'memory', 'lr', 'base_lr')
#: What our own hook adds to every vis backend between the rows.
_MODULE_NORMS = 'grad_guard_norm/'


class MmengineScalars(JsonLinesParser):
    """A row with `iter` or a loss is one of training.

    Rows of a validation have neither and reuse `step` for the epoch; those of a test
    have no `step`.
    """

    NAME = 'mmengine_scalars'
    VALUES_ARE = WINDOW_MEAN

    @classmethod
    def claims_row(cls, row: Mapping[str, Any]) -> bool:
        """Return whether ``row`` has a place in a run, or a loss."""
        return 'iter' in row or 'step' in row or any(map(_is_loss, row))

    def plan(self, row: Mapping[str, Any]) -> Plan | None:
        """Tell rows of training from those of a validation."""
        if any(key.startswith(_MODULE_NORMS) for key in row):
            return NOTHING
        if 'iter' in row or any(map(_is_loss, row)):
            iteration = next((key for key in ('iter', 'step') if key in row), None)
            columns = {
                key: _without_mode(key)
                for key, value in row.items()
                if key not in _PLACES and not _is_text(value)
            }
            epoch = 'epoch' if 'epoch' in row else None
            return Plan(columns, epoch=epoch, iteration=iteration)
        metrics = {key: key for key in row if key not in _NO_METRICS}
        return Plan(metrics=metrics, epoch='step' if 'step' in row else None)


def _is_loss(key: str) -> bool:
    return not key.startswith(('val/', 'test/')) and is_loss_term(_without_mode(key))


def _without_mode(key: str) -> str:
    """Take off what ``log_with_hierarchy`` puts before a name."""
    return key[6:] if key.startswith('train/') else key


def _is_text(value: Any) -> bool:
    return isinstance(value, (str, list, dict)) and as_number(value) is None
