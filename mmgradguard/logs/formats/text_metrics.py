"""Rows of a validation or test in text."""

from __future__ import annotations

import re
from typing import NamedTuple

from mmgradguard.logs.formats.text_held import MAX_ROW
from mmgradguard.logs.formats.text_pairs import find_pairs

_VALIDATION = re.compile(
    r'(Epoch|Iter)\((val|test)\)\s*\[\s*(\d{1,12})(?:\s*/\s*\d+)?\s*\]'
    r'(\s*\[\s*\d+(?:\s*/\s*\d+)?\s*\])?'
)
_NO_METRICS = frozenset(('lr', 'base_lr', 'time', 'data_time', 'memory', 'momentum'))


class Metrics(NamedTuple):
    """The numbers of a validation; `epoch` None if it prints none."""

    epoch: int | None
    values: dict[str, float]


def read_metrics(text: str) -> Metrics | None:
    """Return what a row of validation prints, None if ``text`` is no such row."""
    match = _VALIDATION.search(text)
    if match is None:
        return None
    kind, _, place, more = match.groups()
    epoch = int(place) if kind == 'Epoch' and more else None
    values = {
        name: float(number)
        for name, number in find_pairs(text[match.end() : match.end() + MAX_ROW])
        if name not in _NO_METRICS and not name.endswith('copypaste')
    }
    return Metrics(epoch, values)
