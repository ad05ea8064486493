"""detectron2's ``metrics.json``: an iteration, losses, metrics when they are due."""

from __future__ import annotations

import re
from typing import Any, Mapping

from mmgradguard.logs.formats.json_lines import JsonLinesParser, Plan, as_number
from mmgradguard.logs.terms import is_loss_term

_RENAMED = {'total_loss': 'loss'}
_METRIC = re.compile(r'(?:bbox|segm|keypoints|box_proposals|panoptic_seg|sem_seg)/')
_NO_COLUMNS = ('iteration', 'eta_seconds')


class Detectron2Json(JsonLinesParser):
    """Iterations only; a row may hold the metrics of a validation as well."""

    NAME = 'detectron2_json'

    @classmethod
    def claims_row(cls, row: Mapping[str, Any]) -> bool:
        """Return whether ``row`` has an iteration, and a loss or metrics."""
        return 'iteration' in row and any(
            is_loss_term(key) or _METRIC.match(key) for key in row
        )

    def plan(self, row: Mapping[str, Any]) -> Plan | None:
        """Tell training from metrics by the names."""
        metrics = {key: key for key in row if _METRIC.match(key)}
        columns = {
            key: _RENAMED.get(key, key)
            for key, value in row.items()
            if key not in metrics
            and key not in _NO_COLUMNS
            and (value is None or as_number(value) is not None)
        }
        if not any(map(is_loss_term, columns)):
            columns = {}
        return Plan(columns, metrics, iteration='iteration')
