"""Episodes become events: with line, loss term, the value of one step and company."""

from __future__ import annotations

import math
from typing import Callable

from mmgradguard.core.log_analysis import LogEvent
from mmgradguard.logs.analysis.config_facts import is_amp
from mmgradguard.logs.analysis.episode import Episode
from mmgradguard.logs.analysis.episodes import Episodes
from mmgradguard.logs.analysis.numbers import median
from mmgradguard.logs.analysis.onset import (
    first_term,
    lasting_term,
    norm_lead,
    usual_rows,
)
from mmgradguard.logs.analysis.runs import covers, overlapping
from mmgradguard.logs.analysis.schedule import coincidences, read_schedule
from mmgradguard.logs.analysis.signs import Signs, as_runs, read_signs
from mmgradguard.logs.analysis.stalled import find_stall
from mmgradguard.logs.analysis.stretch import Stretch
from mmgradguard.logs.analysis.timing import Timing, single_step
from mmgradguard.logs.terms import layer_of

#: Kinds of which one bad step can be told from the printed mean.
_OF_ONE_STEP = ('spike', 'burst')


def find_events(stretch: Stretch, timing: Timing) -> list[LogEvent]:
    """Return the events of one experiment, oldest first."""
    signs = read_signs(stretch, timing)
    amp = is_amp(stretch.header.config or {})
    episodes = Episodes(stretch, signs, timing, amp).find()
    if all(episode.recovered for episode in episodes):
        stall = find_stall(stretch, timing.interval or 1, signs.runs(len(stretch)))
        episodes += [stall] if stall is not None else []
    build = _Builder(stretch, signs, timing)
    return [build(episode) for episode in sorted(episodes, key=lambda e: e.first)]


class _Builder:
    def __init__(self, stretch: Stretch, signs: Signs, timing: Timing) -> None:
        self.stretch, self.signs, self.timing = stretch, signs, timing
        self.schedule = read_schedule(stretch.lr)
        unusual = covers(signs.runs(len(stretch)))
        self.loss_runs = signs.unusual_losses()
        self.norm_runs = as_runs(signs.norm_out)
        self.in_loss = covers(self.loss_runs)
        self.is_usual: Callable[[int], bool] = lambda row: not unusual(row)

    def __call__(self, episode: Episode) -> LogEvent:
        stretch, row = self.stretch, episode.first
        table, at = stretch.table, stretch.first + row
        term = self._term(episode)
        value_of = self._value_of(episode, term)
        printed = stretch.near(value_of, row, row + 1)[0] if value_of else None
        typical = self._usual_value(episode, value_of)
        is_open = episode.last == len(stretch) - 1
        after = None if is_open else table.lines[stretch.first + episode.last + 1]
        return LogEvent(
            kind=episode.kind,
            file=table.file_of(at),
            line=table.lines[at],
            last_line=table.lines[stretch.first + episode.last],
            epoch=stretch.epoch(row),
            iteration=stretch.iteration(row),
            term=term,
            value_printed=printed,
            value_single_step=self._single_step(episode, value_of, printed, typical),
            recovered=episode.recovered,
            value_of=value_of,
            typical=typical,
            time=table.time_of(at),
            lr=stretch.lr[row] if stretch.lr is not None else None,
            layer=layer_of(term) if term else None,
            num_rows=episode.last - row + 1,
            recovered_line=None if episode.goes_on or not episode.recovered else after,
            leads_into=after if episode.goes_on else None,
            ended_by_resume=episode.is_resumed,
            loss_moved=self._loss_moved(episode),
            norm_led_rows=self._norm_lead(episode),
            coincides_with=coincidences(stretch, self.schedule, row),
            first_row=at,
            last_row=stretch.first + episode.last,
        )

    def _term(self, episode: Episode) -> str | None:
        if episode.kind == 'masked_nan' and self.signs.mask:
            return self.signs.mask[1]
        if episode.kind in ('amp_skip', 'not_learning'):
            return None
        for first, last, name in self.signs.impossible:
            if first <= episode.first <= last:
                return name
        if episode.kind == 'finite_divergence':
            return lasting_term(
                self.stretch, episode.first, episode.last, self.is_usual
            )
        row = self._loss_row(episode)
        return first_term(self.stretch, row, self.is_usual, self.signs.masks)

    def _loss_row(self, episode: Episode) -> int:
        """Return the first row of the episode at which a loss is unusual."""
        common = overlapping(self.loss_runs, episode.first, episode.last)
        return min(common)[0] if common else episode.first

    def _value_of(self, episode: Episode, term: str | None) -> str | None:
        row, total = episode.first, self.stretch.total_name
        if episode.kind in ('masked_nan', 'not_learning'):
            return term or total
        if episode.kind == 'nan_sticks':
            names = [total, term, *self.stretch.terms, 'grad_norm']
            for name in names:
                if name and self._is_nan(name, row):
                    return name
        has_norm = self.stretch.norm is not None
        has_norm = has_norm and not self.stretch.lacks('grad_norm', row)
        if has_norm and (self._is_nan('grad_norm', row) or self._norm_out(episode)):
            return 'grad_norm'
        if episode.kind == 'amp_skip':
            return total
        if self._loss_moved(episode):
            return term or total
        return 'grad_norm' if has_norm else term or total

    def _norm_out(self, episode: Episode) -> bool:
        return bool(overlapping(self.norm_runs, episode.first, episode.last))

    def _loss_moved(self, episode: Episode) -> bool:
        return bool(overlapping(self.loss_runs, episode.first, episode.last))

    def _is_nan(self, name: str, row: int) -> bool:
        if name not in self.stretch.table.columns or self.stretch.lacks(name, row):
            return False
        return not math.isfinite(self.stretch.near(name, row, row + 1)[0])

    def _single_step(
        self,
        episode: Episode,
        value_of: str | None,
        printed: float | None,
        typical: float | None,
    ) -> float | None:
        if episode.kind not in _OF_ONE_STEP or printed is None or value_of is None:
            return None
        is_norm = value_of == 'grad_norm'
        entries = self.timing.entries(episode.first, is_norm=is_norm)
        if episode.is_plateau and entries and 'window' in self.timing.inferred:
            # it stands on several rows, so the window is that much longer
            entries *= max(1, episode.last - episode.first + 1)
        return single_step(printed, typical, entries)

    def _usual_value(self, episode: Episode, name: str | None) -> float | None:
        if name is None or name not in self.stretch.table.columns:
            return episode.typical
        if episode.kind == 'not_learning':
            return episode.typical
        rows = usual_rows(len(self.stretch), episode.first, self.is_usual)
        if not rows:
            return None
        first, stop = min(rows), max(rows) + 1
        values = self.stretch.near(name, first, stop)
        return median([values[row - first] for row in rows])

    def _norm_lead(self, episode: Episode) -> int | None:
        if episode.kind in ('amp_skip', 'not_learning'):
            return None
        row = self._loss_row(episode)
        return norm_lead(self.stretch.norm, row, self.is_usual, self.in_loss)
