"""What a comparison tells: which run is better in what, and the figures."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Callable, Sequence

from mmgradguard.core.log_analysis import Note
from mmgradguard.core.phrases import label, say
from mmgradguard.report.comparison import MIN_ROWS, Comparison, RunFigures, rank
from mmgradguard.report.log_facts import fact_notes
from mmgradguard.report.log_story import sentences
from mmgradguard.report.log_words import place_notes
from mmgradguard.report.values import clean_text

#: Differences below these shares are noise.
_LOSS_SHARE, _TIME_SHARE = 0.02, 0.1
_FACTS = ('norm', 'max_norm', 'lr', 'interval', 'window', 'accumulation')
_MORE_FACTS = ('num_gpus', 'amp', 'model', 'validation', 'hours')

#: Validation metrics of detectors of which more is better.
_MORE_IS_BETTER = re.compile(r'AP|AR|acc|iou|NDS|PCK|AUC', re.IGNORECASE)

_Aspect = Callable[[RunFigures], 'float | None']


@dataclass
class CompareStory:
    """A comparison in words; `rows` are a label and a cell for each run."""

    lang: str
    names: list[str]
    verdicts: list[str]
    sentences: list[str] = field(default_factory=list)
    rows: list[tuple[str, list[str]]] = field(default_factory=list)
    terms: list[tuple[str, list[str]]] = field(default_factory=list)

    def label(self, code: str, **values: object) -> str:
        """Return a heading or another fixed text in the language of the page."""
        return label(code, self.lang, **values)


def build_compare_story(comparison: Comparison, lang: str = 'en') -> CompareStory:
    """Return what to tell about ``comparison``."""
    runs = comparison.runs
    return CompareStory(
        lang=lang,
        names=[run.name for run in runs],
        verdicts=[run.verdict for run in runs],
        sentences=sentences(_notes(comparison, lang), lang),
        rows=[row for row in _rows(comparison, lang) if any(c != '-' for c in row[1])],
        terms=[
            (clean_text(name, 80), [_shown(run.terms[name], lang) for run in runs])
            for name in comparison.terms
        ],
    )


def _notes(comparison: Comparison, lang: str) -> list[Note]:
    wins: dict[str, list[Note]] = {}
    for name, aspect in _wins(comparison, lang):
        wins.setdefault(name, []).append(aspect)
    notes = [
        Note('compare.better', {'run': run, 'aspects': aspects})
        for run, aspects in wins.items()
    ]
    if not notes:
        notes.append(_no_winner(comparison))
    if len(_alive(comparison)) < 2:
        notes.append(Note('compare.no_loss'))
    elif 0 < comparison.num_common < MIN_ROWS:
        notes.append(Note('compare.few_rows', {'least': MIN_ROWS}))
    if not comparison.num_common:
        notes.append(Note('compare.nothing_common'))
    else:
        unit = 'row' if comparison.by_row else 'iteration'
        values = {
            'first': comparison.first,
            'last': comparison.last,
            'rows': comparison.num_common,
        }
        notes.append(Note(f'compare.common_{unit}', values))
    if not comparison.same_terms:
        notes.append(Note('compare.other_terms'))
    return notes


def _no_winner(comparison: Comparison) -> Note:
    runs = comparison.runs
    if len({run.verdict for run in runs}) > 1:
        return Note('compare.no_winner')
    losses = [run.loss_tail for run in runs]
    is_ranked = len(_alive(comparison)) > 1 and comparison.num_common >= MIN_ROWS
    finite = [v for v in losses if v is not None and math.isfinite(v)]
    if not is_ranked or len(finite) < len(runs):
        return Note('compare.same_verdict')
    if max(finite) - min(finite) > _LOSS_SHARE * abs(max(finite)):
        return Note('compare.no_winner')
    return Note('compare.equal')


def _alive(comparison: Comparison) -> list[RunFigures]:
    # what a lost run prints is no loss: a mask makes it look low
    return [run for run in comparison.runs if not run.is_lost]


def _wins(comparison: Comparison, lang: str) -> list[tuple[str, Note]]:
    runs = comparison.runs
    wins = []

    def add(
        code: str, value: _Aspect, share: float, among: Sequence[RunFigures]
    ) -> None:
        best = _best(among, value, share)
        if best is not None:
            wins.append((best.name, _aspect(code, best, among, value)))

    verdict = _best(runs, lambda run: rank(run.verdict), 0.0)
    if verdict is not None:
        others = [run for run in runs if run is not verdict]
        own = label(verdict.verdict, lang)
        other = [label(run.verdict, lang) for run in others]
        values = {'own': own, 'other': other}
        wins.append((verdict.name, Note('aspect.verdict', values)))
    metric = _metric_of(runs)
    if metric:
        best = _best(runs, _negative_metric, _LOSS_SHARE)
        if best is not None:
            aspect = _aspect('metric', best, runs, _last_metric)
            aspect.values['metric'] = metric
            wins.append((best.name, aspect))
    if all(run.is_lost for run in runs):
        best = _best(runs, lambda run: -float(run.reached or 0), 0.0)
        if best is not None:
            code = 'reached_row' if comparison.by_row else 'reached_iteration'
            aspect = _aspect(code, best, runs, lambda run: run.reached or 0)
            wins.append((best.name, aspect))
    alive = _alive(comparison)
    if len(alive) > 1 and comparison.num_common >= MIN_ROWS:
        add('loss', lambda run: run.loss_tail, _LOSS_SHARE, alive)
    timed = [run for run in alive if run.seconds is not None]
    if len(timed) > 1:
        add('seconds', lambda run: run.seconds, _TIME_SHARE, timed)
    return wins


def _metric_of(runs: Sequence[RunFigures]) -> str | None:
    """Return the metric that all runs validate with, as often, if more is better."""
    facts = [run.page.analysis.facts for run in runs]
    names = {fact.metric for fact in facts}
    name = names.pop() if len(names) == 1 else None
    if len({fact.num_validations for fact in facts}) > 1:
        return None  # the last one of a longer run is not to be compared
    return name if name and _MORE_IS_BETTER.search(name) else None


def _last_metric(run: RunFigures) -> float | None:
    return run.page.analysis.facts.last_metric


def _negative_metric(run: RunFigures) -> float | None:
    value = _last_metric(run)
    return None if value is None else -value


def _best(
    runs: Sequence[RunFigures], value: _Aspect, share: float
) -> RunFigures | None:
    """Return the run that is below all others by more than ``share``, None if none."""
    values = [value(run) for run in runs]
    if any(v is None for v in values):
        return None
    order = sorted(runs, key=lambda run: _as_number(value(run)))
    low, second = (_as_number(value(run)) for run in order[:2])
    if not math.isfinite(low):
        return None
    if math.isfinite(second) and second - low <= share * abs(second):
        return None
    return order[0]


def _as_number(value: float | None) -> float:
    return math.inf if value is None or math.isnan(value) else value


def _aspect(
    code: str, best: RunFigures, runs: Sequence[RunFigures], value: _Aspect
) -> Note:
    others = [value(run) for run in runs if run is not best]
    return Note(f'aspect.{code}', {'own': value(best), 'other': others})


def _rows(comparison: Comparison, lang: str) -> list[tuple[str, list[str]]]:
    runs = comparison.runs
    analyses = [run.page.analysis for run in runs]
    rows = [
        (label('verdict', lang), [label(run.verdict, lang) for run in runs]),
        (_fact('rows', lang), [str(analysis.num_rows) for analysis in analyses]),
        (_fact('span', lang), [run.page.span() or '-' for run in runs]),
        (label('events', lang), [str(len(analysis.events)) for analysis in analyses]),
        (label('first_anomaly', lang), [_first(run, lang) for run in runs]),
        (label('rows_lost', lang), [str(analysis.rows_lost) for analysis in analyses]),
    ]
    rows += _fact_rows(runs, _FACTS, lang)
    if comparison.num_common:
        at = {'first': comparison.first, 'last': comparison.last}
        losses = (
            ('loss_at_first', [run.loss_first for run in runs]),
            ('loss_at_last', [run.loss_last for run in runs]),
            ('loss_tail', [run.loss_tail for run in runs]),
        )
        for code, values in losses:
            shown = [_shown(value, lang) for value in values]
            rows.append((label(code, lang, **at), shown))
    seconds = [_shown(run.seconds, lang) for run in runs]
    rows.append((label('seconds', lang), seconds))
    return rows + _fact_rows(runs, _MORE_FACTS, lang)


def _fact_rows(
    runs: Sequence[RunFigures], names: Sequence[str], lang: str
) -> list[tuple[str, list[str]]]:
    facts = [dict(fact_notes(run.page.analysis)) for run in runs]
    return [
        (
            _fact(name, lang),
            [sentences([f[name]], lang)[0] if name in f else '-' for f in facts],
        )
        for name in names
    ]


def _fact(name: str, lang: str) -> str:
    return say(Note(f'fact.{name}'), lang)


def _first(run: RunFigures, lang: str) -> str:
    event = run.page.analysis.first_anomaly
    if event is None:
        return '-'
    notes = [Note(f'kind.{event.kind}'), *place_notes(event)]
    return clean_text(say(Note('value.plain', {'value': notes}), lang))


def _shown(value: float | None, lang: str) -> str:
    return say(Note('value.plain', {'value': value}), lang)
