"""GG102, GG103: a finite value far outside of the run's own past."""

from __future__ import annotations

import math
from typing import Any, Mapping, NamedTuple, Sequence

from mmgradguard.core.robust import RollingWindow, robust_z_score


class Spike(NamedTuple):
    """How far a value is from the past: times the median, and in robust sigmas."""

    ratio: float
    z_score: float


class SpikeRule:
    """Finds spikes of a positive series by a robust score of its logarithm.

    Norms and losses of a healthy run rise and fall by factors, so the score is of the
    logarithm, against the median and MAD of a sliding window. Both conditions must
    hold: a ratio to the median, since a very steady run makes small changes look rare,
    and a score, since a noisy run makes large ratios common. A healthy Deformable DETR
    shows one norm 3.7 times its median, and another spread of two between quantiles.

    Args:
        warmup: Values observed before anything is reported.
        window: Values remembered.
        min_ratio: A spike is at least this many times the median.
        min_z_score: And at least this many robust sigmas above it.
    """

    #: Smallest sigma of the logarithm: about 10 % of spread is always granted.
    MIN_SIGMA = 0.1

    def __init__(
        self,
        *,
        warmup: int = 16,
        window: int = 128,
        min_ratio: float = 10.0,
        min_z_score: float = 8.0,
    ) -> None:
        self.warmup, self.min_ratio, self.min_z_score = warmup, min_ratio, min_z_score
        self._logs = RollingWindow(window)

    def judge(self, value: float) -> Spike | None:
        """Return the spike that ``value`` is, or None; remembers nothing.

        Zero, negative and non-finite values are no spikes: other rules own those.
        """
        if not 0 < value < math.inf or len(self._logs) < max(self.warmup, 1):
            return None
        log = math.log(value)
        # cheap test first: this runs at every step
        ratio = math.exp(min(log - (self._logs.median() or 0.0), 700.0))
        if ratio < self.min_ratio:
            return None
        z_score = robust_z_score(log, list(self._logs), self.MIN_SIGMA)
        return Spike(ratio, z_score) if z_score >= self.min_z_score else None

    def push(self, value: float) -> None:
        """Remember a value; zero, negative and non-finite ones are ignored."""
        if 0 < value < math.inf:
            self._logs.push(math.log(value))

    def skim(self, values: Sequence[float]) -> bool:
        """Remember all of ``values`` if `judge` would find none of them; else nothing.

        The quick way through a long log: it compares the largest value with a lower
        bound of the median that any of them will be judged by.

        Returns:
            Whether they were remembered. False says only that each must be judged.
        """
        num, low, high = len(self._logs), min(values), max(values)
        # a sum is not finite if any value is not, and `min` and `max` may miss a NaN
        if num < max(self.warmup, 1) or not low > 0 or not sum(values) < math.inf:
            return False
        log_low, limit = math.log(low), math.log(high) - math.log(self.min_ratio)
        if not limit < min(log_low, min(self._logs)):
            middle, past = (num - 1) // 2, sorted(self._logs)
            floor = min(past[middle], log_low)
            if middle >= len(values):  # so many new ones can come below a remembered
                floor = max(floor, past[middle - len(values)])
            if not limit < floor:
                return False
        self._logs.extend(map(math.log, values))
        return True

    def typical(self) -> float | None:
        """Return the median of what is remembered, None if nothing is."""
        median = self._logs.median()
        return None if median is None else math.exp(median)

    def state_dict(self) -> dict[str, Any]:
        """Return what `load_state_dict` needs."""
        return self._logs.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state: the same values give the same answers."""
        self._logs.load_state_dict(state)
