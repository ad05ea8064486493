"""Runs side by side, over the iterations that all of them have: data, and what it says.

The printed value of one row is noisy, so the runs are ranked by the median of the last
common rows; the values at the first and the last common iteration are shown as printed.
"""

from __future__ import annotations

import math
import os
import statistics
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Sequence

from mmgradguard.core.types import Verdict
from mmgradguard.report.log_page import LogPage
from mmgradguard.report.log_words import worst_event
from mmgradguard.report.values import clean_text, shorten

#: Common rows at the end whose median ranks the runs: at most a third of them.
TAIL_ROWS = 10
#: Common rows from which on losses are ranked.
MIN_ROWS = 5
#: Loss terms that differ by less are not listed.
_LEAST_DIFFERENCE = 0.02
#: Formats whose `time` is in seconds for one iteration; of others it counts from the
#: start, or is of an epoch.
_TIMED = ('mmengine_', 'mmcv_')
#: Loss terms that are listed.
MAX_TERMS = 6
_ORDER = [v.value for v in Verdict]


@dataclass
class RunFigures:
    """What is compared of one run; None where the log has it not.

    `loss_first` and `loss_last` are printed at the first and the last common iteration,
    `loss_tail` is the median of the last common rows, `terms` the same of each term.
    `reached` is how far a fatal run got: its last iteration, or its number of rows,
    before the row from which on it is lost.
    """

    name: str
    page: LogPage
    loss_first: float | None = None
    loss_last: float | None = None
    loss_tail: float | None = None
    terms: dict[str, float] = field(default_factory=dict)
    seconds: float | None = None
    reached: int | None = None

    @property
    def verdict(self) -> str:
        """Return the verdict of this run."""
        return self.page.analysis.verdict.value

    @property
    def is_lost(self) -> bool:
        """Return whether this run is fatal."""
        return self.page.analysis.verdict is Verdict.FATAL


@dataclass
class Comparison:
    """Runs and the iterations that they share; `num_common` is 0 if they share none.

    `terms` are the names of the loss terms that all runs have, largest difference
    first; `same_terms` tells whether no run has a term of its own.
    """

    runs: list[RunFigures]
    first: int = 0
    last: int = 0
    num_common: int = 0
    by_row: bool = False
    terms: list[str] = field(default_factory=list)
    same_terms: bool = True

    @property
    def is_clean(self) -> bool:
        """Return whether every run is healthy or benign."""
        return all(run.page.analysis.is_clean for run in self.runs)


def compare_runs(pages: Sequence[LogPage]) -> Comparison:
    """Return the comparison of two runs or more."""
    names = unique_names([page.analysis.source for page in pages])
    runs = [RunFigures(name, page) for name, page in zip(names, pages)]
    by_row = not all(page.is_printed() for page in pages)
    axes = [_Axis(page, by_row=by_row) for page in pages]
    first = max(axis.positions[0] for axis in axes)
    last = min(axis.positions[-1] for axis in axes)
    grids = [[p for p in axis.positions if first <= p <= last] for axis in axes]
    grid = min(grids, key=len)
    comparison = Comparison(runs, first, last, len(grid), by_row=by_row)
    if grid:
        comparison.first, comparison.last = grid[0], grid[-1]
    for run, axis in zip(runs, axes):
        _measure(run, [axis.row_at(position) for position in grid])
        run.reached = _reached(run, by_row=by_row)
    shared = [name for name in runs[0].terms if all(name in r.terms for r in runs)]
    differences = {name: _difference(runs, name) for name in shared}
    shared = [name for name in shared if differences[name] > _LEAST_DIFFERENCE]
    comparison.terms = sorted(shared, key=lambda n: -differences[n])[:MAX_TERMS]
    named = [set(page.terms) for page in pages]
    comparison.same_terms = all(names == named[0] for names in named)
    return comparison


def unique_names(sources: Sequence[str]) -> list[str]:
    """Return short names that tell the sources apart.

    >>> unique_names(['work/a/log.txt', 'work/b/log.txt'])
    ['a/log.txt', 'b/log.txt']
    >>> unique_names(['x/1.log', 'x/1.log', '-'])
    ['1.log (1)', '1.log (2)', '-']
    """
    paths = [os.path.normpath(source).replace('\\', '/') for source in sources]
    for num_parts in (1, 2, 3):
        names = ['/'.join(path.split('/')[-num_parts:]) for path in paths]
        if len(set(names)) == len(names):
            break
    else:
        names = [path.split('/')[-1] for path in paths]
        counts = {name: names.count(name) for name in names}
        seen: dict[str, int] = {}
        for index, name in enumerate(names):
            seen[name] = seen.get(name, 0) + 1
            if counts[name] > 1:
                names[index] = f'{name} ({seen[name]})'
    return [shorten(clean_text(name), 40) for name in names]


class _Axis:
    """Positions of a run in ascending order; the newest row of a position counts."""

    def __init__(self, page: LogPage, *, by_row: bool) -> None:
        num_rows = len(page.lines)
        positions = list(range(1, num_rows + 1)) if by_row else page.positions()
        rows = dict(zip(positions, range(num_rows)))
        self.positions = sorted(rows)
        self._rows = rows

    def row_at(self, position: int) -> int:
        """Return the row at the position nearest to ``position``."""
        right = bisect_left(self.positions, position)
        around = self.positions[max(0, right - 1) : right + 1]
        return self._rows[min(around, key=lambda p: abs(p - position))]


def _measure(run: RunFigures, rows: Sequence[int]) -> None:
    page = run.page
    time = page.column('time')
    if time is not None and page.analysis.format.startswith(_TIMED):
        run.seconds = _median(time, range(len(time)))
    total = page.total_values()
    tail = rows[-max(1, min(TAIL_ROWS, len(rows) // 3)) :]
    if total is not None and rows:
        run.loss_first, run.loss_last = total[rows[0]], total[rows[-1]]
        run.loss_tail = _median(total, tail)
    for series in page.losses():
        value = _median(series.values, tail)
        if value is not None and series.name != page.total:
            run.terms[series.name] = value


def _reached(run: RunFigures, *, by_row: bool) -> int | None:
    event = worst_event(run.page.analysis)
    if event is None or not run.is_lost:
        return None
    if by_row or event.first_row == 0:
        return event.first_row
    return run.page.positions()[event.first_row - 1]


def _median(values: Sequence[float | None], rows: Sequence[int]) -> float | None:
    # half of the rows lost is a lost run: no median of the rest may hide it
    found = [v for v in (values[row] for row in rows) if v is not None]
    finite = [value for value in found if math.isfinite(value)]
    if not found:
        return None
    return statistics.median(finite) if 2 * len(finite) > len(found) else math.nan


def _difference(runs: Sequence[RunFigures], name: str) -> float:
    values = [run.terms[name] for run in runs]
    if not all(map(math.isfinite, values)):
        return math.inf if any(map(math.isfinite, values)) else -1.0
    if min(values) <= 0:
        return abs(max(values) - min(values))
    return math.log(max(values) / min(values))


def rank(verdict: str) -> int:
    """Return how bad a verdict is, from 0 for healthy."""
    return _ORDER.index(verdict)
