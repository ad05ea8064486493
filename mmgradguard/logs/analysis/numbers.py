"""Medians and quantiles of what is finite, quickly also for a million rows."""

from __future__ import annotations

import math
import statistics
from typing import Sequence

#: Of more values than this every n-th is looked at: a median of so many is as good.
_SAMPLES = 4096


def finite(values: Sequence[float]) -> Sequence[float]:
    """Return the finite ones; all of them, nearly always.

    >>> finite([1.0, float('nan'), 2.0])
    [1.0, 2.0]
    """
    if math.isfinite(sum(values)):
        return values
    return [value for value in values if math.isfinite(value)]


def thin(values: Sequence[float]) -> Sequence[float]:
    """Return every n-th value, so that there are not many more than `_SAMPLES`."""
    return values[:: max(1, len(values) // _SAMPLES)]


def median(values: Sequence[float]) -> float | None:
    """Return the median of the finite ones, None if there are none.

    >>> median([3.0, float('inf'), 1.0])
    2.0
    """
    known = finite(thin(values))
    return statistics.median(known) if known else None


def quantiles(values: Sequence[float]) -> list[float] | None:
    """Return those of 5, 50 and 95 % of finite values, None of fewer than five."""
    if len(values) < 5:
        return None
    ordered = sorted(thin(values))
    return [ordered[round(q * (len(ordered) - 1))] for q in (0.05, 0.5, 0.95)]
