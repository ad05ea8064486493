"""What the rows out of a band look like: one step, an aftermath, a climb."""

from __future__ import annotations

from typing import Sequence

#: Relative difference of the rows that print one smeared step.
_PLATEAU = 1.12
#: The largest share of a row's value that the next one has, where a spike decays.
_DECAY = 0.9


def is_plateau(values: Sequence[float], typical: float | None) -> bool:
    """Return whether one step in the window of several rows explains them.

    They then print the same excess over the usual value.
    """
    if len(values) < 3 or typical is None:
        return False
    excess = [value - typical for value in values]
    return min(excess) > 0 and max(excess) <= _PLATEAU * min(excess)


def only_decays(values: Sequence[float]) -> bool:
    """Return whether this is what a spike leaves behind: it goes back bit by bit."""
    pairs = zip(values[1:], values[2:])
    return len(values) > 2 and all(after <= _DECAY * before for before, after in pairs)


def only_climbs(values: Sequence[float]) -> bool:
    """Return whether each value is at least the one before."""
    pairs = zip(values, values[1:])
    return len(values) > 3 and all(after >= before for before, after in pairs)


def climb_start(values: Sequence[float], first: int, limit: float) -> int:
    """Return where the climb that leaves its band at ``first`` began.

    Back from there, as long as values are above ``limit`` and were still smaller.
    """
    while first and limit < values[first - 1] < values[first]:
        first -= 1
    return first
