"""Fewer points for a chart, so that neither a peak nor a gap nor a NaN is lost."""

from __future__ import annotations

import math
from typing import Iterable, Sequence


def thin_range(
    values: Sequence[float | None], num_bins: int, keep: Iterable[int] = ()
) -> list[int]:
    """Return the indices to draw: the extremes of each bin, and those in ``keep``.

    Of each bin the smallest and the largest finite value and the first one that is not
    finite are kept; what is absent (None) is not drawn.

    >>> thin_range([1, 5, 2, float('nan'), None, 9, 8, 7], 2)
    [0, 1, 3, 5, 7]
    """
    if len(values) <= 2 * num_bins:
        return [i for i, value in enumerate(values) if value is not None]
    width = math.ceil(len(values) / num_bins)
    kept = {i for i in keep if 0 <= i < len(values) and values[i] is not None}
    for start in range(0, len(values), width):
        kept.update(_extremes(values, start, min(start + width, len(values))))
    return sorted(kept)


def _extremes(values: Sequence[float | None], start: int, stop: int) -> Iterable[int]:
    low = high = bad = -1
    smallest, largest = math.inf, -math.inf
    for index in range(start, stop):
        value = values[index]
        if value is None:
            continue
        if not math.isfinite(value):
            bad = index if bad < 0 else bad
            continue
        if value < smallest:
            low, smallest = index, value
        if value > largest:
            high, largest = index, value
    return [index for index in (low, high, bad) if index >= 0]
