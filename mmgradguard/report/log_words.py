"""An event of a log as notes: what it is, how large one step was, what became of it."""

from __future__ import annotations

import math
import re

from mmgradguard.core.log_analysis import (
    COINCIDENCES,
    EVENT_KINDS,
    LogAnalysis,
    LogEvent,
    Note,
    RunFacts,
)
from mmgradguard.report.values import clean_text

#: Longest name of a loss or a file in a sentence.
_MAX_NAME = 80
_PLAIN_KINDS = ('nan_sticks', 'masked_nan', 'norm_overflow', 'not_learning', 'amp_skip')


def place_notes(event: LogEvent, *, with_file: bool = False) -> list[Note]:
    """Return where the event is, as printed: line, epoch, iteration."""
    if with_file:
        name = _short(re.split(r'[/\\]', event.file)[-1])
        notes = [Note('place.file_line', {'file': name, 'line': event.line})]
    else:
        notes = [Note('place.line', {'line': event.line})]
    if event.epoch is not None:
        notes.append(Note('place.epoch', {'epoch': event.epoch}))
    if event.iteration is not None:
        notes.append(Note('place.iteration', {'iteration': event.iteration}))
    return notes


def event_notes(event: LogEvent, facts: RunFacts) -> list[Note]:
    """Return the sentences of an event: kind and size, origin, coincidence, outcome."""
    kind = _kind_note(event, facts)
    notes = [kind, *_origin_notes(event, str(kind.values['of']))]
    shared = [c for c in event.coincides_with if c in COINCIDENCES]
    if shared:
        what = Note(f'coincidence.{shared[0]}')
        for name in shared[1:]:
            right = Note(f'coincidence.{name}')
            what = Note('label.both', {'left': what, 'right': right})
        values = {'what': what, 'lr': event.lr}
        code = 'event.coincides' if event.lr is None else 'event.coincides_lr'
        notes.append(Note(code, values))
    if event.kind == 'amp_skip':  # says itself that it is over
        return notes
    if event.ended_by_resume:
        notes.append(Note('event.ended_by_resume'))
    elif event.leads_into is not None:
        notes.append(Note('event.leads_into', {'line': event.leads_into}))
    elif not event.recovered:
        is_nan = event.kind in ('nan_sticks', 'masked_nan')
        notes.append(Note('event.stays' if is_nan else 'event.not_recovered'))
    elif event.recovered_line is None:
        notes.append(Note('event.recovered_somewhere'))
    else:
        notes.append(Note('event.recovered', {'line': event.recovered_line}))
    return notes


def reason_notes(analysis: LogAnalysis) -> list[Note]:
    """Return the reasons; of several healthy experiments the last one gives them."""
    others = analysis.facts.num_experiments - 1
    if others < 1:
        return analysis.reasons
    return [
        Note('reason.healthy_last', {**note.values, 'others': others})
        if note.code == 'reason.healthy'
        else note
        for note in analysis.reasons
    ]


def worst_event(analysis: LogAnalysis) -> LogEvent | None:
    """Return the event to fear most: not recovered first, then by kind."""
    return min(analysis.events, key=_fear, default=None)


def order_events(analysis: LogAnalysis) -> list[LogEvent]:
    """Return the events as a reader needs them: the first, the worst, the others."""
    worst = worst_event(analysis)
    head = analysis.events[:1]
    if worst is not None and worst is not head[0]:
        head.append(worst)
    return head + [e for e in analysis.events if not any(e is h for h in head)]


def _fear(event: LogEvent) -> tuple[bool, int]:
    kinds = len(EVENT_KINDS)
    rank = EVENT_KINDS.index(event.kind) if event.kind in EVENT_KINDS else kinds
    return event.recovered, rank


def _kind_note(event: LogEvent, facts: RunFacts) -> Note:
    known = event.kind in EVENT_KINDS
    of = _of(event)
    values = {
        'of': of,
        'rows': event.num_rows,
        'last_line': event.last_line,
    }
    if event.kind in _PLAIN_KINDS:
        values['printed'] = event.value_printed
    else:
        values['size'] = size_note(event, facts)
    if not known:
        values['kind'] = event.kind
    code = event.kind if known else 'other'
    if code == 'amp_skip' and of != 'grad_norm':
        code = 'amp_skip_loss'  # a loss that printed nan did not stay normal
    return Note(f'event.{code}', values)


def size_note(event: LogEvent, facts: RunFacts) -> Note:
    """Return how large the event was: of one step where that can be said."""
    of = _of(event)
    if event.value_printed is None:
        return Note('size.unknown')
    values = {'of': of, 'printed': event.value_printed}
    single = event.value_single_step
    if single is None or not math.isfinite(single) or single == event.value_printed:
        size = Note('size.printed', values)
    else:
        values['single'] = single
        code = 'size.single'
        if facts.window:
            values['window'] = facts.window
            # grad_norm has one entry for an optimizer step, a loss one an iteration
            by_step = of == 'grad_norm' and (facts.accumulation or 1) > 1
            code += '_steps' if by_step else '_iterations'
        size = Note(code, values)
    if event.typical is None:
        return size
    return Note('size.typical', {'size': size, 'typical': event.typical})


def _origin_notes(event: LogEvent, of: str) -> list[Note]:
    notes = []
    term = _short(event.term or '')
    if term and event.layer:
        values = {'term': term, 'layer': _short(event.layer)}
        notes.append(Note('event.first_term_layer', values))
    elif term and term != of:
        notes.append(Note('event.first_term', {'term': term}))
    led = event.norm_led_rows
    if led is not None and led > 0:
        notes.append(Note('event.norm_led', {'rows': led}))
    elif led is not None and led < 0:
        notes.append(Note('event.loss_led', {'rows': -led}))
    return notes


def _of(event: LogEvent) -> str:
    return _short(event.value_of or event.term or 'loss')


def _short(name: str) -> str:
    return clean_text(name, _MAX_NAME)
