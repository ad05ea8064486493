"""DETR's own ``log.txt``: one object per epoch, training and test together."""

from __future__ import annotations

from typing import Any, Mapping

from mmgradguard.logs.formats.json_lines import JsonLinesParser, Plan, as_number

_RENAMED = {'train_loss': 'loss', 'train_lr': 'lr', 'train_grad_norm': 'grad_norm'}
_BOXES = 'test_coco_eval_bbox'
#: The first three of pycocotools' twelve numbers.
_AVERAGE_PRECISIONS = ('', '_50', '_75')


class DetrJson(JsonLinesParser):
    """Means over an epoch; nothing tells the iterations."""

    NAME = 'detr_json'

    @classmethod
    def claims_row(cls, row: Mapping[str, Any]) -> bool:
        """Return whether ``row`` is an epoch of DETR, or of its many children."""
        return 'epoch' in row and ('train_loss' in row or 'train_lr' in row)

    def prepare(self, row: dict[str, Any]) -> dict[str, Any]:
        """Flatten the list of average precisions."""
        flat = {k: value for k, value in row.items() if as_number(value) is not None}
        boxes = row.get(_BOXES)
        if isinstance(boxes, list):
            for end, value in zip(_AVERAGE_PRECISIONS, boxes):
                flat[_BOXES + end] = value
        return flat

    def plan(self, row: Mapping[str, Any]) -> Plan | None:
        """Tell training from test by the beginning of a key."""
        return Plan(
            {key: _RENAMED.get(key, key) for key in row if key.startswith('train_')},
            {key: key for key in row if key.startswith('test_coco_eval')},
            epoch='epoch',
        )
