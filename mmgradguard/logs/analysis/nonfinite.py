"""Rows that print NaN or Inf, as runs: a dead log may have a million of them."""

from __future__ import annotations

import math
from typing import Sequence

from mmgradguard.logs.analysis.runs import covers, unite
from mmgradguard.logs.analysis.stretch import Stretch

_CHUNK = 4096


def nonfinite_runs(
    values: Sequence[float], absent: Sequence[int] = ()
) -> list[tuple[int, int]]:
    """Return (first, last) of every run of rows that print no finite number.

    >>> nonfinite_runs([1.0, float('nan'), float('inf'), 2.0])
    [(1, 2)]
    """
    runs: list[tuple[int, int]] = []
    lacks = covers((row, row) for row in absent)
    for start in range(0, len(values), _CHUNK):
        chunk = values[start : start + _CHUNK]
        if math.isfinite(sum(chunk)):
            continue
        for row, value in enumerate(chunk, start):
            if not math.isfinite(value) and not lacks(row):
                if runs and runs[-1][1] == row - 1:
                    runs[-1] = (runs[-1][0], row)
                else:
                    runs.append((row, row))
    return runs


def loss_runs(stretch: Stretch) -> list[tuple[int, int]]:
    """Return the runs of rows with any loss that is not finite."""
    found: list[tuple[int, int]] = []
    for name in stretch.terms:
        found += nonfinite_runs(stretch.column(name), stretch.absent(name))
    if stretch.total is not None and stretch.total_name:
        found += nonfinite_runs(stretch.total, stretch.absent(stretch.total_name))
    return unite(found)


def norm_runs(stretch: Stretch) -> list[tuple[int, int]]:
    """Return the runs of rows with a gradient norm that is not finite."""
    if stretch.norm is None:
        return []
    return nonfinite_runs(stretch.norm, stretch.absent('grad_norm'))
