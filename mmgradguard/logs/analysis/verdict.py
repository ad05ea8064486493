"""From events to a verdict, with the reasons and what would still decide it."""

from __future__ import annotations

import math
import statistics
from typing import Sequence

from mmgradguard.core.log_analysis import LogEvent, Note
from mmgradguard.core.rules.mask import is_focal_mask
from mmgradguard.core.types import Verdict
from mmgradguard.logs.analysis.numbers import median
from mmgradguard.logs.analysis.stretch import Stretch
from mmgradguard.logs.analysis.timing import Timing

#: Rows after the onset of a divergence before "it does not come back" may be said.
_DECIDED = 20
#: The last row still falls if it is this much below the one before, the last quarter
#: if it is that much below the first, and all between fall.
_FALLS, _FALLS_QUARTER = 0.8, 0.7
#: A row, or a quarter, falls if it is this much below the one before.
_FALLS_EACH, _ROWS_FALLING = 0.95, 4
#: A masked term that was this share of the total is what the model was to learn.
_MAIN_SHARE = 0.05
_TAIL = 5
#: A loss is back at this many times its level before.
_BACK = 1.25
#: Up to here it may be harder data; a loss that high has not diverged for sure.
_DRIFTED = 2.0
#: Share of bad rows, in at least so many events, that makes a run unstable though it
#: came back each time.
_UNSTABLE_SHARE, _UNSTABLE_EVENTS = 0.2, 4
#: And of rows with a skipped step, where the loss scale finds no place.
_COLLAPSE_SHARE = 0.5

_ORDER = (Verdict.HEALTHY, Verdict.BENIGN, Verdict.SUSPICIOUS, Verdict.FATAL)


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the worst of ``verdicts``; HEALTHY if there are none."""
    return max(verdicts, key=_ORDER.index, default=Verdict.HEALTHY)


class Judge:
    """Judges the events of one experiment.

    Attributes:
        reasons: Why the verdict is what it is.
        would_decide: What a longer log would have to show.
    """

    def __init__(self, stretch: Stretch, timing: Timing) -> None:
        self.stretch, self.timing = stretch, timing
        self.reasons: list[Note] = []
        self.would_decide: list[Note] = []

    def __call__(self, events: Sequence[LogEvent]) -> Verdict:
        """Return the verdict of the experiment."""
        verdicts = [self._of(event) for event in events]
        if self._is_unstable(events):
            verdicts.append(Verdict.SUSPICIOUS)
        verdicts += self._of_failures(events)
        if not verdicts:
            code = 'healthy' if len(self.stretch) >= _TAIL else 'few_rows'
            self._say(f'reason.{code}', rows=len(self.stretch))
        return worst(verdicts)

    def _of_failures(self, events: Sequence[LogEvent]) -> list[Verdict]:
        # a NaN may end a training between two rows: only its exception tells
        rows = range(self.stretch.first, self.stretch.stop)
        found = [f for f in self.stretch.table.failures if f.after_row in rows]
        if not found:
            return []
        self._say('reason.crash', line=found[0].line, text=found[0].text)
        if not events:
            self._decide('decide.crash')
        return [Verdict.SUSPICIOUS]

    def _of(self, event: LogEvent) -> Verdict:
        if event.kind == 'not_learning':
            self._say('reason.not_learning', rows=event.num_rows, value=event.typical)
            return Verdict.SUSPICIOUS
        if event.leads_into is not None:  # what follows is judged itself
            return Verdict.BENIGN
        if event.ended_by_resume:
            self._say('reason.ended_by_resume', line=event.line, rows=event.num_rows)
            self._decide('decide.ended_by_resume')
            return Verdict.SUSPICIOUS
        if event.recovered:
            self._say(f'reason.{event.kind}_back', line=event.line)
            return Verdict.BENIGN
        if event.kind == 'nan_sticks':
            return self._of_nan(event)
        if event.kind == 'masked_nan':
            return self._of_mask(event)
        return self._of_divergence(event)

    def _of_nan(self, event: LogEvent) -> Verdict:
        total = self.stretch.total
        if total is not None and math.isfinite(total[-1]) and self._losses_move():
            if event.value_of == 'grad_norm':
                self._say('reason.norm_nan_only', line=event.line)
                self._decide('decide.norm_nan_only')
            else:
                self._say('reason.term_nan_only', line=event.line, term=event.value_of)
                self._decide('decide.term_nan_only', term=event.value_of)
            return Verdict.SUSPICIOUS
        if event.num_rows <= self.timing.loss_rows:
            # one NaN in the mean is enough to print this; the next rows tell
            self._say('reason.nan_at_end', line=event.line)
            self._decide('decide.nan_at_end', rows=self.timing.loss_rows + 1)
            return Verdict.SUSPICIOUS
        self._say('reason.nan_sticks', line=event.line, rows=event.num_rows)
        if event.term is not None:
            last = self.stretch.near(
                event.term, len(self.stretch) - 1, len(self.stretch)
            )
            if last[0] == 0 or is_focal_mask(last[0]):
                self._say('reason.mask_beside', term=event.term, value=last[0])
        return Verdict.FATAL

    def _of_mask(self, event: LogEvent) -> Verdict:
        norm, row = self.stretch.norm, event.first_row - self.stretch.first
        after = list(norm[row:]) if norm is not None else []
        is_alive = bool(after) and all(map(math.isfinite, after)) and min(after) > 0
        known = event.value_printed in (0.0, None) or is_focal_mask(event.value_printed)
        if is_alive and self._losses_move():
            # the rest of the model learns: a term that was switched off looks like this
            self._say('reason.mask_but_alive', line=event.line, term=event.term)
            self._decide('decide.mask_but_alive', term=event.term)
            if known and self._was_main(event):
                return Verdict.FATAL
            return Verdict.SUSPICIOUS
        self._say('reason.masked_nan', line=event.line, term=event.term)
        return Verdict.FATAL

    def _of_divergence(self, event: LogEvent) -> Verdict:
        total, norm = self.stretch.total, self.stretch.norm
        series = total if total is not None else norm
        row = event.first_row - self.stretch.first
        assert series is not None
        if event.term is not None and 'iou' in event.term and self._is_negative(event):
            self._say('reason.impossible', line=event.line, term=event.term)
            return Verdict.FATAL if event.num_rows >= _DECIDED else Verdict.SUSPICIOUS
        if total is not None and not event.loss_moved:
            is_finite = event.kind != 'norm_overflow'
            code = 'norm_only' if is_finite else 'norm_nan_only'
            self._say(f'reason.{code}', line=event.line)
            self._decide(f'decide.{code}')
            return Verdict.SUSPICIOUS
        tail = median(series[max(row, len(series) - _TAIL) :])
        level = median(series[max(row - 32, 0) : row])
        falls = _falls(series[row:])
        times = tail / level if tail is not None and level else math.inf
        if times <= _BACK:
            self._say('reason.norm_only', line=event.line)
            self._decide('decide.norm_only')
            return Verdict.SUSPICIOUS
        if times <= _DRIFTED:
            self._say('reason.drifted', line=event.line, level=level, now=tail)
            self._decide('decide.divergence', level=level, rows=_DECIDED)
            return Verdict.SUSPICIOUS
        if event.num_rows >= _DECIDED and not falls:
            self._say('reason.diverged', line=event.line, rows=event.num_rows)
            return Verdict.FATAL
        code = 'reason.still_falls' if falls else 'reason.too_early'
        self._say(code, line=event.line, rows=event.num_rows)
        self._decide('decide.divergence', level=level, rows=_DECIDED)
        return Verdict.SUSPICIOUS

    def _is_negative(self, event: LogEvent) -> bool:
        row = event.first_row - self.stretch.first
        return (
            event.term is not None
            and self.stretch.near(event.term, row, row + 1)[0] < 0
        )

    def _was_main(self, event: LogEvent) -> bool:
        row, total = event.first_row - self.stretch.first, self.stretch.total
        if event.term is None or total is None:
            return True
        term = self.stretch.near(event.term, max(row - 8, 0), row)
        share = [t / v for t, v in zip(term, total[max(row - 8, 0) : row]) if v > 0]
        return bool(share) and statistics.median(share) >= _MAIN_SHARE

    def _losses_move(self) -> bool:
        total = self.stretch.total
        return total is not None and len(set(total[-_TAIL:])) > 1

    def _is_unstable(self, events: Sequence[LogEvent]) -> bool:
        skips = [e for e in events if e.kind == 'amp_skip']
        others = [e for e in events if e.recovered and e.kind != 'amp_skip']
        for group, share in ((skips, _COLLAPSE_SHARE), (others, _UNSTABLE_SHARE)):
            num_bad = sum(e.num_rows for e in group)
            if len(group) < _UNSTABLE_EVENTS or num_bad < share * len(self.stretch):
                continue
            code = 'reason.unstable' if group is others else 'reason.many_skips'
            self._say(code, num=num_bad, rows=len(self.stretch))
            return True
        return False

    def _say(self, code: str, **values: object) -> None:
        note = Note(code, values)
        if note not in self.reasons:
            self.reasons.append(note)

    def _decide(self, code: str, **values: object) -> None:
        self.would_decide.append(Note(code, values))


def _falls(values: Sequence[float]) -> bool:
    # from its worst value it comes down, and has not stopped doing so
    if len(values) < 3:
        return False
    if len(values) < 4 * _TAIL:
        peak = max((v for v in values if not math.isnan(v)), default=math.nan)
        return values[-1] < _FALLS * values[-2] and values[-1] < 0.5 * peak
    size = len(values) // 4
    quarters = [median(values[size * i : size * (i + 1)]) for i in range(4)]
    known = [q for q in quarters if q is not None]
    pairs = zip(known, known[1:])
    if len(known) == 4 and all(after < _FALLS_EACH * q for q, after in pairs):
        return known[-1] < _FALLS_QUARTER * known[0]
    return _keeps_falling(values, size)


def _keeps_falling(values: Sequence[float], quarter: int) -> bool:
    # row by row to a new low: noise does not do that
    end = values[-_ROWS_FALLING:]
    steps = all(after < _FALLS_EACH * before for before, after in zip(end, end[1:]))
    return steps and end[-1] < _FALLS * min(
        values[-quarter:-_ROWS_FALLING], default=0.0
    )
