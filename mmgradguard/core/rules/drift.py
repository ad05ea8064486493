"""GG104: a loss that climbs slowly, which no comparison with its recent past sees."""

from __future__ import annotations

import math
import statistics
from typing import Iterator, NamedTuple, Sequence

from mmgradguard.core.robust import median_error, robust_sigma

#: Rows of a block at least, and blocks of a run at most: more blocks would find a
#: luckier best one, and call the usual a rise.
_BLOCK, _MAX_BLOCKS = 8, 128
#: A rise is so many times the best block, twice in a row, and so many sigmas of a
#: block's median; it begins and ends near the best.
_RISE, _RISE_SIGMAS = 1.6, 6.0
_NEAR, _NEAR_SIGMAS = 1.25, 3.0
#: Blocks, and values of a block, that are looked at to see how much it scatters.
_SAMPLES = 64


class Drift(NamedTuple):
    """A climb: its rows, the best level before it, and whether it lasts to the end."""

    first: int
    last: int
    typical: float
    is_open: bool


def find_drifts(values: Sequence[float]) -> Iterator[Drift]:
    """Find where the medians of blocks climb far above the best block before.

    A trend of a factor of two over hundreds of rows is invisible to a rule that
    compares with a sliding window. Blocks without a positive finite value are passed
    over: other rules own those.

    Args:
        values: A positive series, oldest first; non-finite values say nothing.

    >>> [tuple(d) for d in find_drifts([1.0] * 40 + [3.0] * 40)]
    [(40, 79, 1.0, True)]
    """
    size = max(_BLOCK, len(values) // _MAX_BLOCKS)
    blocks = list(_medians(values, size))
    sigma = _sigma(values, size)
    rise = max(_RISE, math.exp(_RISE_SIGMAS * sigma))
    close = max(_NEAR, math.exp(_NEAR_SIGMAS * sigma))
    best, near, start = math.inf, 0, None
    for index, (first, median) in enumerate(blocks):
        if start is not None:
            if median <= close * best:
                yield Drift(start, first - 1, best, is_open=False)
                start = None
            continue
        best = min(best, median)
        if median <= close * best:
            near = index
        elif median >= rise * best and _is_followed(blocks, index, rise * best):
            start = _first_above(values, blocks[near + 1][0], close * best)
    if start is not None:
        yield Drift(start, len(values) - 1, best, is_open=True)


def _medians(values: Sequence[float], size: int) -> Iterator[tuple[int, float]]:
    for first in range(0, len(values) - size + 1, size):
        block = _positive(values[first : first + size])
        if 2 * len(block) >= size:
            yield first, statistics.median(block)


def _positive(values: Sequence[float]) -> Sequence[float]:
    """Return the positive finite ones; all of them, nearly always."""
    if min(values) > 0 and sum(values) < math.inf:
        return values
    return [v for v in values if 0 < v < math.inf]


def _sigma(values: Sequence[float], size: int) -> float:
    """Return how much the logarithm of a block's median scatters."""
    spreads = []
    step = max(size, len(values) // _SAMPLES)
    for first in range(0, len(values) - size + 1, step):
        block = _positive(values[first : first + min(size, _SAMPLES)])
        logs = [math.log(v) for v in block]
        if 2 * len(logs) >= min(size, _SAMPLES):
            spreads.append(robust_sigma(logs, statistics.median(logs)))
    return median_error(statistics.median(spreads), size) if spreads else 0.0


def _is_followed(blocks: list[tuple[int, float]], index: int, level: float) -> bool:
    return index + 1 < len(blocks) and blocks[index + 1][1] >= level


def _first_above(values: Sequence[float], first: int, level: float) -> int:
    while first < len(values) - 1 and not values[first] > level:
        first += 1
    return first
