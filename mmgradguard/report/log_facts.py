"""The facts of a run as labelled notes."""

from __future__ import annotations

from typing import Sequence

from mmgradguard.core.log_analysis import LogAnalysis, Note, RunFacts


def fact_notes(
    analysis: LogAnalysis, span: str = '', files: Sequence[str] = ()
) -> list[tuple[str, Note]]:
    """Return (name of the fact, its value) for what is known."""
    facts = analysis.facts
    read = [name for name in files if name != analysis.source]
    rows: list[tuple[str, Note | None]] = [
        ('files', _plain(', '.join(read) or None)),
        ('format', _plain(analysis.format)),
        ('rows', _plain(analysis.num_rows)),
        ('span', _plain(span or None)),
        ('interval', _inferred(facts, 'interval', 'value.iterations')),
        ('window', _window(facts)),
        ('accumulation', _accumulation(facts)),
        ('norm', _norm(facts)),
        ('max_norm', _plain(facts.max_norm)),
        ('loss', _loss(facts)),
        ('lr', _plain(facts.lr)),
        ('model', _model(facts)),
        ('num_gpus', _plain(facts.num_gpus)),
        ('amp', _amp(facts)),
        ('validation', _validation(facts)),
        ('parts', _parts(facts)),
        ('hours', _hours(facts)),
    ]
    return [(name, note) for name, note in rows if note is not None]


def _plain(value: object) -> Note | None:
    return None if value is None else Note('value.plain', {'value': value})


def _inferred(facts: RunFacts, name: str, code: str) -> Note | None:
    value = getattr(facts, name)
    if value is None:
        return None
    note = Note(code, {'num': value})
    if name in facts.inferred:
        return Note('value.inferred', {'value': note})
    return note


def _window(facts: RunFacts) -> Note | None:
    if facts.window == 1:
        return Note('value.single')
    return _inferred(facts, 'window', 'value.entries')


def _accumulation(facts: RunFacts) -> Note | None:
    if (facts.accumulation or 1) == 1:
        return None
    return _inferred(facts, 'accumulation', 'value.steps_of')


def _norm(facts: RunFacts) -> Note | None:
    if not facts.norm_quantiles:
        return None
    low, median, high = facts.norm_quantiles
    return Note('value.quantiles', {'low': low, 'median': median, 'high': high})


def _loss(facts: RunFacts) -> Note | None:
    if facts.first_loss is None or facts.last_loss is None:
        return None
    return Note('value.span', {'first': facts.first_loss, 'last': facts.last_loss})


def _model(facts: RunFacts) -> Note | None:
    if facts.model is None or facts.family is None:
        return _plain(facts.model or facts.family)
    return Note('value.family', {'model': facts.model, 'family': facts.family})


def _amp(facts: RunFacts) -> Note | None:
    if facts.is_amp and facts.loss_scale is not None:
        return Note('value.scale', {'scale': facts.loss_scale})
    return _plain(facts.is_amp)


def _validation(facts: RunFacts) -> Note | None:
    if not facts.num_validations:
        return None
    values = {'num': facts.num_validations}
    if facts.metric is None or facts.best_metric is None:
        return Note('value.validation', values)
    return Note(
        'value.metric',
        {
            **values,
            'metric': facts.metric,
            'best': facts.best_metric,
            'last': facts.last_metric,
        },
    )


def _parts(facts: RunFacts) -> Note | None:
    if facts.num_experiments <= 1 and not facts.num_resumes:
        return None
    values = {'experiments': facts.num_experiments, 'resumes': facts.num_resumes}
    return Note('value.parts', values)


def _hours(facts: RunFacts) -> Note | None:
    return None if facts.hours is None else duration_note(facts.hours)


def duration_note(hours: float) -> Note:
    """Return a time in hours, of less than one in minutes."""
    if abs(hours) < 1:
        return Note('value.minutes', {'minutes': 60 * hours})
    return Note('value.hours', {'hours': hours})
