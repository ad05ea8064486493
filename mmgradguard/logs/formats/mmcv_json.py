"""mmcv 1.x ``.log.json``: a header with the whole config, then rows with a mode."""

from __future__ import annotations

from typing import Any, Mapping

from mmgradguard.logs.config_text import parse_config
from mmgradguard.logs.environment import read_environment
from mmgradguard.logs.formats.base import INTERVAL_MEAN
from mmgradguard.logs.formats.json_lines import (
    NOTHING,
    JsonLinesParser,
    Plan,
    as_number,
)
from mmgradguard.logs.table import Header

_PLACES = ('mode', 'epoch', 'iter', 'step')
_NO_METRICS = (*_PLACES, 'lr', 'time', 'data_time', 'memory', 'momentum')
_HEADER_KEYS = ('env_info', 'config', 'exp_name', 'mmdet_version', 'hook_msgs')


class MmcvJson(JsonLinesParser):
    """Rows are of the mode `train` or `val`; iterations count within an epoch."""

    NAME = 'mmcv_json'
    VALUES_ARE = INTERVAL_MEAN

    @classmethod
    def claims_row(cls, row: Mapping[str, Any]) -> bool:
        """Return whether ``row`` has a mode, or is a header."""
        return row.get('mode') in ('train', 'val') or _is_header(row)

    def read_header(self, row: Mapping[str, Any]) -> bool:
        """Read environment, config and seed from the first line of a run."""
        if not _is_header(row):
            return False
        text = row.get('config')
        header = Header(config_text=text if isinstance(text, str) else None)
        if header.config_text:
            header.config = parse_config(header.config_text)
        read_environment(str(row.get('env_info', '')), header)
        seed = as_number(row.get('seed'))
        header.seed = header.seed if seed is None else int(seed)
        self.builder.note_header(header)
        return True

    def plan(self, row: Mapping[str, Any]) -> Plan | None:
        """Tell rows by their mode."""
        mode = row.get('mode')
        epoch = 'epoch' if 'epoch' in row else None
        if mode == 'train':
            columns = {
                key: key
                for key, value in row.items()
                if key not in _PLACES
                and (value is None or as_number(value) is not None)
            }
            iteration = 'iter' if 'iter' in row else None
            return Plan(columns, epoch=epoch, iteration=iteration)
        if mode in ('val', 'test'):
            metrics = {
                key: key
                for key in row
                if key not in _NO_METRICS and not key.endswith('copypaste')
            }
            return Plan(metrics=metrics, epoch=epoch) if metrics else NOTHING
        return None


def _is_header(row: Mapping[str, Any]) -> bool:
    return 'mode' not in row and any(key in row for key in _HEADER_KEYS)
