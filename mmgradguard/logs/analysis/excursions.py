"""Where a printed series leaves its band and where it comes back, by `SpikeRule`."""

from __future__ import annotations

import math
import statistics
from typing import Iterable, NamedTuple, Sequence

from mmgradguard.core.rules.spike import Spike, SpikeRule


class Band(NamedTuple):
    """How far a series may leave its median.

    Args:
        min_ratio: Leaves the band at this many times the median, and `_Z_SCORE`.
        first_ratio, early_ratio: The same while less than 4, or `EARLY`, are known.
        exit_ratio: Is back below this many times the median, or 3 robust sigmas.
        settles: After `SETTLED` rows a new level is accepted as the band.
    """

    min_ratio: float
    first_ratio: float
    early_ratio: float
    exit_ratio: float
    settles: bool


#: A printed norm of a healthy Deformable DETR is 3.7 times its median once; the norm
#: may find a new level (DETR's rises while its loss falls), a loss may not.
NORM_BAND = Band(5.0, first_ratio=30.0, early_ratio=6.0, exit_ratio=3.0, settles=True)
LOSS_BAND = Band(3.0, first_ratio=6.0, early_ratio=3.0, exit_ratio=1.5, settles=False)
#: A row that is one step and no mean scatters as steps do.
TERM_BAND = Band(6.0, 30.0, early_ratio=6.0, exit_ratio=2.0, settles=True)
STEP_TERM_BAND = Band(10.0, 30.0, early_ratio=10.0, exit_ratio=2.0, settles=True)
STEP_LOSS_BAND = Band(5.0, 8.0, early_ratio=5.0, exit_ratio=2.0, settles=False)
_Z_SCORE = 6.0
#: A value this many times the usual one may be on its way out.
_CLIMB = 1.3
#: Rows judged by the first and the early ratio, and by which a new level is one.
_FIRST, EARLY, SETTLED = 4, 16, 64
#: The first row has nothing before it: it is judged by the rows after it.
_FIRST_RATIO = 100.0
_CHUNK = 64


class Excursion(NamedTuple):
    """Rows out of the band, the median before them, and how they ended.

    From `limit` on a value before `first` was on its way out already.
    """

    first: int
    last: int
    typical: float
    is_open: bool
    limit: float


class _Scan:
    """One pass over one series."""

    def __init__(
        self, values: Sequence[float], band: Band, *, judges_first: bool
    ) -> None:
        self.values, self.band, self.judges_first = values, band, judges_first
        self.found: list[Excursion] = []
        self.typical = self.exit_level = self.limit = math.nan
        self.restart()

    def restart(self) -> None:
        """Forget the past: the series means something else from here on."""
        band = self.band
        self.rule = SpikeRule(min_ratio=band.min_ratio, min_z_score=_Z_SCORE)
        self.early = SpikeRule(
            warmup=1, min_ratio=band.early_ratio, min_z_score=_Z_SCORE
        )
        self.at_first = SpikeRule(warmup=1, min_ratio=band.first_ratio)
        self.num_known = 0
        self.first: int | None = None

    def stretch(self, start: int, stop: int) -> None:
        """Scan the rows ``start`` to ``stop``."""
        row = start
        while row < stop:
            chunk = self.values[row : min(row + _CHUNK, stop)]
            if self.first is None and self.num_known >= EARLY and self.rule.skim(chunk):
                row += len(chunk)
                continue
            for each in range(row, row + len(chunk)):
                self.step(each)
            row += len(chunk)
        if self.first is not None:
            self._close(stop - 1, is_open=stop == len(self.values))

    def step(self, row: int) -> None:
        """Take one row."""
        value = self.values[row]
        if self.first is not None:
            if 0 < value <= self.exit_level:
                self._close(row - 1, is_open=False)
                self._push(value)
            elif self.band.settles and row - self.first >= SETTLED:
                self._settle(row)
            return
        spike = self._judge(row, value)
        if spike is None:
            self._push(value)
            return
        sigma = math.log(spike.ratio) / spike.z_score
        self.first, self.typical = row, value / spike.ratio
        self.exit_level = self.typical * max(self.band.exit_ratio, math.exp(3 * sigma))
        self.limit = self.typical * max(_CLIMB, math.exp(2 * sigma))

    def _judge(self, row: int, value: float) -> Spike | None:
        if self.num_known >= EARLY:
            return self.rule.judge(value)
        if self.num_known:
            rule = self.early if self.num_known >= _FIRST else self.at_first
            return rule.judge(value)
        if not self.judges_first:
            return None
        after = [v for v in self.values[row + 1 : row + 9] if 0 < v < math.inf]
        if len(after) < 3 or not 0 < value < math.inf:
            return None
        ratio = value / statistics.median(after)
        return Spike(ratio, math.log(ratio) / 0.1) if ratio > _FIRST_RATIO else None

    def _push(self, value: float) -> None:
        if 0 < value < math.inf:
            self.num_known += 1
            self.rule.push(value)
            if self.num_known <= EARLY:
                self.early.push(value)
                self.at_first.push(value)

    def _settle(self, row: int) -> None:
        last = [v for v in self.values[row - EARLY : row] if 0 < v < math.inf]
        if len(last) < EARLY or max(last) > 10 * min(last):
            return
        self._close(row - 1, is_open=False)
        self.restart()
        for value in last:
            self._push(value)

    def _close(self, last: int, *, is_open: bool) -> None:
        assert self.first is not None
        self.found.append(
            Excursion(self.first, last, self.typical, is_open, self.limit)
        )
        self.first = None


def find_excursions(
    values: Sequence[float],
    band: Band,
    restarts: Iterable[int] = (),
    *,
    judges_first: bool = False,
) -> list[Excursion]:
    """Return where ``values`` is out of its band.

    A value out of the band does not join the past that the next one is judged by.
    Values that are not positive, or not finite, neither open nor close anything.

    Args:
        values: The series, oldest first.
        band: How far it may go.
        restarts: Rows at which it begins to mean something else.
        judges_first: Whether a first row may be out too; a training that begins from
            scratch has its largest values there.
    """
    scan = _Scan(values, band, judges_first=judges_first)
    borders = [0, *restarts, len(values)]
    for start, stop in zip(borders, borders[1:]):
        scan.restart()
        scan.stretch(start, stop)
    return scan.found
