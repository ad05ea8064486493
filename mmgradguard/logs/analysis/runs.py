"""Runs of rows as (first, last): united, looked up, compared with another run."""

from __future__ import annotations

from bisect import bisect_right
from typing import Callable, Iterable


def unite(runs: Iterable[tuple[int, int]], gap: int = 0) -> list[tuple[int, int]]:
    """Return the union of runs; ones with at most ``gap`` rows between become one.

    >>> unite([(4, 6), (1, 3), (9, 9)])
    [(1, 6), (9, 9)]
    """
    united: list[tuple[int, int]] = []
    for first, last in sorted(runs):
        if united and first <= united[-1][1] + 1 + gap:
            united[-1] = (united[-1][0], max(united[-1][1], last))
        else:
            united.append((first, last))
    return united


def covers(runs: Iterable[tuple[int, int]]) -> Callable[[int], bool]:
    """Return a function that tells whether a row is in any of ``runs``."""
    united = unite(runs)
    firsts = [first for first, _ in united]

    def is_covered(row: int) -> bool:
        place = bisect_right(firsts, row) - 1
        return place >= 0 and row <= united[place][1]

    return is_covered


def overlapping(
    runs: Iterable[tuple[int, int]], first: int, last: int
) -> list[tuple[int, int]]:
    """Return what ``runs`` and the run from ``first`` to ``last`` have in common.

    >>> overlapping([(1, 3), (6, 9), (12, 13)], 2, 7)
    [(2, 3), (6, 7)]
    """
    return [(max(a, first), min(b, last)) for a, b in runs if a <= last and b >= first]
