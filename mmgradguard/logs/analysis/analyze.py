"""A table of rows in, a `LogAnalysis` out."""

from __future__ import annotations

from array import array
from typing import Sequence

from mmgradguard.core.log_analysis import (
    Advice,
    LogAnalysis,
    LogEvent,
    Note,
    RunFacts,
    is_less_better,
)
from mmgradguard.logs.analysis import config_facts
from mmgradguard.logs.analysis.advice import Case, give_advice
from mmgradguard.logs.analysis.events import find_events
from mmgradguard.logs.analysis.families import find_family
from mmgradguard.logs.analysis.normality import describe_normality
from mmgradguard.logs.analysis.numbers import finite, median, quantiles
from mmgradguard.logs.analysis.runs import unite
from mmgradguard.logs.analysis.stretch import Stretch, stretches
from mmgradguard.logs.analysis.timing import Timing, find_timing
from mmgradguard.logs.analysis.unknowns import list_unknowns
from mmgradguard.logs.analysis.verdict import Judge, worst
from mmgradguard.logs.table import LogTable

#: Kinds whose rows are lost if the run did not come back.
_LOSING = ('nan_sticks', 'masked_nan', 'norm_overflow', 'finite_divergence')


def analyze_table(table: LogTable) -> LogAnalysis:
    """Return what happened in a log, how bad it is, and what to change.

    A file that holds several experiments is judged by its worst one; facts, advice and
    what is normal are of that one.
    """
    results = [_Experiment(stretch) for stretch in stretches(table)]
    verdict = worst([result.verdict for result in results])
    main = next(r for r in reversed(results) if r.verdict is verdict)
    events = [event for result in results for event in result.events]
    lost = [result.lost() for result in results]
    hours = [hours for _, hours in lost if hours is not None]
    return LogAnalysis(
        source=table.source,
        format=table.format,
        num_rows=len(table),
        verdict=verdict,
        events=events,
        rows_lost=sum(rows for rows, _ in lost),
        hours_lost=sum(hours) if hours else None,
        advice=main.advice(),
        reasons=main.judge.reasons,
        normality=main.normality(),
        would_decide=main.judge.would_decide,
        unknowns=list_unknowns(main.stretch, main.timing, main.events),
        facts=main.facts(len(results)),
    )


class _Experiment:
    """One experiment of a table."""

    def __init__(self, stretch: Stretch) -> None:
        self.stretch = stretch
        self.config = stretch.header.config or {}
        self.timing: Timing = find_timing(stretch)
        self.events: list[LogEvent] = find_events(stretch, self.timing)
        self.judge = Judge(stretch, self.timing)
        self.verdict = self.judge(self.events)
        self.family = find_family(self.config, stretch.terms)
        self.norms = self._usual(stretch.norm)
        self.losses = self._usual(stretch.total)
        self._facts = self._read_facts()

    def lost(self) -> tuple[int, float | None]:
        """Return the rows of events that did not come back, and their hours."""
        runs = unite(
            (event.first_row, event.last_row)
            for event in self.events
            if event.kind in _LOSING and (event.ended_by_resume or not event.recovered)
        )
        num_rows = sum(last - first + 1 for first, last in runs)
        hours = [self._hours(first, last + 1) for first, last in runs]
        if any(h is None for h in hours):
            return num_rows, None
        return num_rows, sum(h for h in hours if h is not None)

    def facts(self, num_experiments: int) -> RunFacts:
        """Return the facts of the run."""
        self._facts.num_experiments = num_experiments
        return self._facts

    def advice(self) -> list[Advice]:
        """Return what to change."""
        return give_advice(
            Case(
                verdict=self.verdict,
                events=self.events,
                facts=self._facts,
                family=self.family,
                config=self.config,
                format=self.stretch.table.format,
                has_norm=self.stretch.norm is not None,
            )
        )

    def normality(self) -> list[Note]:
        """Return sentences that place the run among healthy ones."""
        return describe_normality(self._facts, self.family, self.norms, self.events)

    def _read_facts(self) -> RunFacts:
        stretch, table, config = self.stretch, self.stretch.table, self.config
        validations = stretch.validations()
        facts = RunFacts(
            interval=self.timing.interval,
            window=self.timing.window,
            accumulation=self.timing.accumulation,
            inferred=self.timing.inferred,
            num_gpus=stretch.header.num_gpus,
            is_amp=config_facts.is_amp(config),
            loss_scale=config_facts.loss_scale(config),
            model=config_facts.model_type(config),
            family=self.family.name if self.family else None,
            max_norm=config_facts.max_norm(config),
            lr=config_facts.learning_rate(config)
            or max(finite(stretch.lr or ()), default=None),
            num_resumes=len(stretch.resumes),
            num_skipped_lines=table.num_skipped_lines,
            num_newer_runs=table.num_newer_runs,
            num_validations=len(validations),
            norm_quantiles=quantiles(self.norms),
            first_loss=median(self.losses[:5]),
            last_loss=median(self.losses[-5:]),
            hours=self._hours(stretch.first, stretch.stop),
            is_cut=table.is_cut,
        )
        metrics = [next(iter(v.metrics.items())) for v in validations if v.metrics]
        if metrics:
            facts.metric = metrics[0][0]
            best = min if is_less_better(facts.metric) else max
            facts.best_metric = best(value for _, value in metrics)
            facts.last_metric = metrics[-1][1]
        return facts

    def _usual(self, values: array[float] | None) -> Sequence[float]:
        usual = array('d')
        if values is None:
            return usual
        start = 0
        for event in self.events:
            if event.kind == 'not_learning':
                continue
            usual += values[start : max(event.first_row - self.stretch.first, start)]
            start = max(start, event.last_row - self.stretch.first + 1)
        usual += values[start:]
        return finite(usual)

    def _hours(self, first: int, stop: int) -> float | None:
        times = self.stretch.table.columns.get('time')
        if times is None or not self.timing.interval:
            return None
        seconds = sum(finite(times[first:stop]))
        return seconds * self.timing.interval / 3600
