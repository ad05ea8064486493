"""Statistics that one outlier, or one NaN, cannot spoil."""

from __future__ import annotations

import math
import statistics
from collections import deque
from typing import Any, Collection, Iterable, Iterator, Mapping

#: MAD to standard deviation, for a normal distribution.
_MAD_TO_SIGMA = 1.4826
#: Standard error of a median to that of a mean, for a normal distribution.
_MEDIAN_TO_MEAN = 1.2533


def robust_z_score(value: float, history: Collection[float], min_sigma: float) -> float:
    """Score ``value`` against the median of ``history``, in robust sigmas.

    Median and MAD, not mean and std: an old spike must not hide the next one.
    Returns 0 at the median, and ``inf`` when ``value`` is not finite.

    Args:
        value: The number to judge.
        history: Finite numbers to judge it by.
        min_sigma: Lower limit of sigma, in the unit of ``value``: a history that
            hardly varies makes every change look large.

    Raises:
        ValueError: If ``history`` is empty; the caller owns the warm-up.

    Reference: Iglewicz & Hoaglin, *How to Detect and Handle Outliers* (1993).

    >>> round(robust_z_score(3.0, [1.0, 1.2, 0.8, 1.1, 0.9], min_sigma=0.01), 1)
    13.5
    """
    if not history:
        raise ValueError('`history` is empty: nothing to compare with')
    if not math.isfinite(value):
        return math.inf
    median = statistics.median(history)
    return (value - median) / max(robust_sigma(history, median), min_sigma)


def robust_sigma(values: Collection[float], median: float) -> float:
    """Return the spread of ``values`` around ``median`` as a standard deviation.

    >>> round(robust_sigma([1.0, 1.2, 0.8, 1.1, 0.9], 1.0), 3)
    0.148
    """
    return _MAD_TO_SIGMA * statistics.median([abs(x - median) for x in values])


def median_error(sigma: float, num: int) -> float:
    """Return the standard error of a median of ``num`` values that scatter by sigma."""
    return _MEDIAN_TO_MEAN * sigma / math.sqrt(num)


class RollingWindow:
    """The last ``size`` finite numbers; a NaN or Inf is refused, not remembered."""

    def __init__(self, size: int) -> None:
        self._values: deque[float] = deque(maxlen=size)

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[float]:
        return iter(self._values)

    def push(self, value: float) -> None:
        """Remember ``value`` if it is finite."""
        if math.isfinite(value):
            self._values.append(value)

    def extend(self, values: Iterable[float]) -> None:
        """Remember all of ``values``, which the caller knows to be finite."""
        self._values.extend(values)

    def median(self) -> float | None:
        """Return the median, None of an empty window."""
        return statistics.median(self._values) if self._values else None

    def state_dict(self) -> dict[str, Any]:
        """Return what `load_state_dict` needs."""
        return {'values': list(self._values)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved window; the size stays as configured."""
        self._values.clear()
        self._values.extend(float(value) for value in state['values'])
