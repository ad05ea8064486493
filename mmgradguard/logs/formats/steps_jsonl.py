"""Our own ``steps.jsonl``: one line per optimizer step, nothing averaged."""

from __future__ import annotations

from typing import Any, Mapping

from mmgradguard.logs.formats.base import STEP
from mmgradguard.logs.formats.json_lines import JsonLinesParser, Plan, as_number

_PLACES = ('step', 'epoch', 'iteration', 'skipped')


class StepsJsonl(JsonLinesParser):
    """Losses stand under their own names, `total_norm` as ``grad_norm``."""

    NAME = 'steps_jsonl'
    VALUES_ARE = STEP

    @classmethod
    def claims_row(cls, row: Mapping[str, Any]) -> bool:
        """Return whether ``row`` is a step of the guard."""
        return 'total_norm' in row and 'iteration' in row

    def prepare(self, row: dict[str, Any]) -> dict[str, Any]:
        """Flatten the losses, name the norm, drop what is null or nested."""
        losses = row.pop('losses', None)
        flat: dict[str, Any] = {
            'epoch': row.get('epoch'),
            'iteration': row.get('iteration'),
            'skipped': row.get('skipped'),
        }
        for source in (losses if isinstance(losses, dict) else {}, row):
            for key, value in source.items():
                number = as_number(value)
                if number is not None and key not in _PLACES:
                    flat['grad_norm' if key == 'total_norm' else key] = number
        return flat

    def plan(self, row: Mapping[str, Any]) -> Plan | None:
        """Take every number."""
        columns = {key: key for key in row if key not in _PLACES}
        if not columns:
            return None
        return Plan(columns, epoch='epoch', iteration='iteration')
