"""Runs of unusual rows become episodes, and each episode gets its kind."""

from __future__ import annotations

import math
from typing import Iterator, Sequence

from mmgradguard.core.rules.spike import SpikeRule
from mmgradguard.logs.analysis.bursts import merge_bursts
from mmgradguard.logs.analysis.episode import Episode
from mmgradguard.logs.analysis.runs import covers, overlapping
from mmgradguard.logs.analysis.shapes import (
    climb_start,
    is_plateau,
    only_climbs,
    only_decays,
)
from mmgradguard.logs.analysis.signs import Signs, as_runs
from mmgradguard.logs.analysis.stretch import Stretch
from mmgradguard.logs.analysis.timing import Timing

#: So many rows more than one step is smeared over are a burst, not one step.
_SPIKE_ROWS = 1
#: And so many more are a divergence, even if it came back.
_BURST_ROWS = 9
#: Steps that the search of the loss scale skips in a row, at most.
_SEARCH_ROWS = 16
#: A burst that came back lasts no longer than this, in iterations.
_BURST_ITERATIONS = 250
#: A loss that rose before the norm: times its usual value, robust sigmas, and of so
#: many rows before.
_RATIO_BEFORE, _Z_SCORE_BEFORE, _ROWS_BEFORE = 1.5, 6.0, 32


class Episodes:
    """Splits the signs of a stretch into episodes.

    Args:
        stretch: The rows.
        signs: What is unusual in them.
        timing: How many rows one step is smeared over.
        is_amp: Whether mixed precision is on, None if the log does not say.
    """

    def __init__(
        self, stretch: Stretch, signs: Signs, timing: Timing, is_amp: bool | None
    ) -> None:
        self.stretch, self.signs = stretch, signs
        self.timing, self.is_amp = timing, is_amp
        self.num_rows = len(stretch)
        self.loss_runs = signs.losses_out()
        self.norm_runs = as_runs(signs.norm_out)
        self.in_loss = covers(signs.unusual_losses())

    def find(self) -> list[Episode]:
        """Return the episodes, oldest first."""
        found: list[Episode] = []
        for first, last in self.signs.runs(self.num_rows):
            found += self._split(first, last)
        return list(merge_bursts(found))

    def _split(self, first: int, last: int) -> Iterator[Episode]:
        # what comes before the first bad number is an event of its own: the warning
        bad = self._first_bad(first, last)
        if bad is None:
            yield self._finite(first, last, goes_on=False)
            return
        is_mask = self.signs.mask is not None and bad == self.signs.mask[0]
        if is_mask and bad - first <= self.timing.longest_smear:
            bad = first  # means of masked and usual steps
        if bad > first:
            yield self._finite(first, bad - 1, goes_on=True)
        yield from self._nonfinite(bad, last)

    def _first_bad(self, first: int, last: int) -> int | None:
        rows = [a for a, _ in self.signs.nan_losses + self.signs.nan_norms]
        if self.signs.mask:
            rows.append(self.signs.mask[0])
        inside = [row for row in rows if first <= row <= last]
        return min(inside) if inside else None

    def _nonfinite(self, first: int, last: int) -> Iterator[Episode]:
        is_open = last == self.num_rows - 1
        nan_rows = [r for r in self.signs.nan_losses if first <= r[0] <= last]
        mask = self.signs.mask if self.signs.mask and is_open else None
        if is_open and (mask or (nan_rows and nan_rows[-1][1] == last)):
            start = nan_rows[-1][0] if nan_rows else last + 1
            start = min(start, mask[0]) if mask else start
            start = self._with_norm(first, start, is_mask=bool(mask))
            if start > first:
                yield from self._norm_only(first, start - 1, goes_on=True)
            yield Episode(self._dead_kind(mask), start, last, None, recovered=False)
        elif nan_rows and last + 1 in self.stretch.resumes:
            yield Episode('nan_sticks', first, last, None, True, is_resumed=True)
        elif nan_rows:
            # weights that took a NaN do not come back: these steps were skipped
            yield Episode('amp_skip', first, last, None, recovered=True)
        else:
            yield from self._norm_only(first, last, goes_on=False)

    def _with_norm(self, first: int, start: int, *, is_mask: bool) -> int:
        # a norm that turned NaN right before the loss is the same event, and so are
        # the rows whose means hold the first masked steps
        if is_mask:
            return first
        row = start
        while row > first and row > start - 1 - self.timing.norm_rows:
            if self.in_loss(row - 1):
                break
            row -= 1
        return row if row == first else start

    def _dead_kind(self, mask: tuple[int, str] | None) -> str:
        total = self.stretch.total
        is_hidden = total is not None and math.isfinite(total[-1])
        return 'masked_nan' if mask and is_hidden else 'nan_sticks'

    def _norm_only(self, first: int, last: int, *, goes_on: bool) -> Iterator[Episode]:
        is_open = last == self.num_rows - 1
        rows = range(first, last + 1)
        loss_moved = bool(overlapping(self.loss_runs, first, last))
        # scale search skips a few steps in a row, never for long
        is_short = last - first < self._longest_search()
        # on the last rows nothing shows yet that the step was skipped
        is_over = not is_open or goes_on
        if is_over and not loss_moved and is_short and self.is_amp is not False:
            yield Episode('amp_skip', first, last, None, True, goes_on=goes_on)
            return
        norm = self.stretch.norm
        is_nan = norm is not None and all(
            math.isnan(norm[r]) for r in rows if not math.isfinite(norm[r])
        )
        kind = (
            'nan_sticks' if is_nan and is_open and not loss_moved else 'norm_overflow'
        )
        recovered = not is_open and not goes_on
        typical = self._typical(first, last)
        yield Episode(kind, first, last, typical, recovered, goes_on=goes_on)

    def _longest_search(self) -> int:
        if 'window' not in self.timing.inferred:
            return self.timing.norm_rows + _SEARCH_ROWS
        # a window of 50 is as usual as one of the interval, whatever was printed
        window = 50 // (self.timing.interval or 1) * (self.timing.accumulation or 1)
        return max(self.timing.norm_rows, window) + _SEARCH_ROWS

    def _finite(self, first: int, last: int, *, goes_on: bool) -> Episode:
        is_open = last == self.num_rows - 1
        typical = self._typical(first, last)
        common = overlapping(self.norm_runs, first, last)
        norm_rows = sum(b - a + 1 for a, b in common)
        smear = self.timing.norm_rows if norm_rows else self.timing.loss_rows
        rows = norm_rows or last - first + 1
        values = self._leading(first, last)[first : last + 1]
        plateau = self._is_smeared(smear) and is_plateau(values, typical)
        more = rows - smear
        if plateau or more <= _SPIKE_ROWS or only_decays(values):
            kind = 'spike'
        elif self._is_short(last - first + 1, more) and not (
            is_open or (goes_on and only_climbs(values))
        ):
            kind = 'burst'
        else:
            kind = 'finite_divergence'
        if is_open and kind == 'spike' and last - first >= max(smear, 3):
            kind = 'finite_divergence'
        if kind == 'finite_divergence':
            first = self._trace_back(first, last)
        else:
            first = self._with_loss(first)
        # a spike before something worse is over by then: its rows print their own steps
        recovered = not is_open and not (goes_on and kind == 'finite_divergence')
        resumed = kind == 'finite_divergence' and last + 1 in self.stretch.resumes
        return Episode(kind, first, last, typical, recovered, plateau, goes_on, resumed)

    def _is_short(self, num_rows: int, more: int) -> bool:
        iterations = num_rows * (self.timing.interval or 1)
        return more <= _BURST_ROWS or iterations <= _BURST_ITERATIONS

    def _typical(self, first: int, last: int) -> float | None:
        signs = self.signs
        for group in (signs.norm_out, signs.loss_out, signs.drifts):
            for excursion in group:
                if excursion.first <= last and excursion.last >= first:
                    return excursion.typical
        return None

    def _leading(self, first: int, last: int) -> Sequence[float]:
        """Return the series that is out of its band here: the norm if it is."""
        is_norm = bool(overlapping(self.norm_runs, first, last))
        column = self.stretch.norm if is_norm else self.stretch.total
        return column if column is not None else []

    def _is_smeared(self, smear: int) -> bool:
        return smear > 1 or bool(self.timing.inferred)

    def _trace_back(self, first: int, last: int) -> int:
        out = [*self.signs.norm_out, *self.signs.loss_out]
        limits = [e.limit for e in out if e.first <= last and e.last >= first]
        return climb_start(
            self._leading(first, first), first, limits[0] if limits else math.inf
        )

    def _with_loss(self, first: int) -> int:
        # the norm is printed after the step, the loss at each of its iterations
        total = self.stretch.total
        if total is None or self.in_loss(first - 1):
            return first
        for row in range(max(first - (self.timing.accumulation or 1), 0), first):
            rule = SpikeRule(
                warmup=3, min_ratio=_RATIO_BEFORE, min_z_score=_Z_SCORE_BEFORE
            )
            for value in total[max(row - _ROWS_BEFORE, 0) : row]:
                rule.push(value)
            if rule.judge(total[row]):
                return row
        return first
