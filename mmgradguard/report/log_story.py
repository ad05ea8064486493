"""What a reader is told about a log, decided once: every renderer shows this.

Every string is one clean line in the reader's language; renderers still escape it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Iterable, Sequence

from mmgradguard.core.log_analysis import Advice, LogAnalysis, LogEvent, Note
from mmgradguard.core.phrases import label, say
from mmgradguard.core.types import Verdict
from mmgradguard.report.log_facts import duration_note, fact_notes
from mmgradguard.report.log_words import (
    event_notes,
    order_events,
    place_notes,
    reason_notes,
    worst_event,
)
from mmgradguard.report.values import clean_text
from mmgradguard.report.words import format_config

#: Events that a page tells; `--json` has all.
MAX_EVENTS = 10
_MAX_SENTENCE = 1000


@dataclass
class EventText:
    """One event in words.

    `mark` says whether it is the first or the worst; `title` is place and mark, to
    stand before `text`.
    """

    place: str
    mark: str
    title: str
    text: str
    event: LogEvent


@dataclass
class AdviceText:
    """One change in words, and its lines for a config, '' if it has none."""

    text: str
    config: str


@dataclass
class LogStory:
    """A log in words, in the order in which it is told."""

    lang: str
    source: str
    verdict: str
    verdict_word: str
    headline: str
    reasons: list[str] = field(default_factory=list)
    events: list[EventText] = field(default_factory=list)
    num_hidden: int = 0
    normality: list[str] = field(default_factory=list)
    advice: list[AdviceText] = field(default_factory=list)
    would_decide: list[str] = field(default_factory=list)
    unknowns: list[str] = field(default_factory=list)
    facts: list[tuple[str, str]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def title(self) -> str:
        """Return the end of the source: a run is known by its folder and file."""
        return '/'.join(self.source.rstrip('/').split('/')[-2:])

    def label(self, code: str, **values: object) -> str:
        """Return a heading or another fixed text in the language of the page."""
        return label(code, self.lang, **values)


def build_story(
    analysis: LogAnalysis, lang: str = 'en', span: str = '', files: Sequence[str] = ()
) -> LogStory:
    """Return what to tell about ``analysis``.

    Args:
        analysis: What was found.
        lang: Language of the page.
        span: First and last row as printed, for the facts; '' if not known.
        files: What was read, if more than one file.
    """
    facts = analysis.facts
    ordered = order_events(analysis)
    # of a work directory, or of several files, the line alone says too little
    names = list(dict.fromkeys(map(_name, files)))
    source = ', '.join(names) if len(files) > 1 else analysis.source
    with_file = any(_name(event.file) != _name(source) for event in ordered)
    with_file = with_file or len(files) > 1
    story = LogStory(
        lang=lang,
        source=clean_text(source, 200),
        verdict=analysis.verdict.value,
        verdict_word=label(analysis.verdict.value, lang),
        headline=_headline(analysis, lang, with_file),
        reasons=sentences(reason_notes(analysis), lang),
        num_hidden=max(0, len(ordered) - MAX_EVENTS),
        normality=sentences(analysis.normality, lang),
        advice=[_advice(advice, lang) for advice in analysis.advice],
        would_decide=sentences(analysis.would_decide, lang),
        unknowns=sentences(analysis.unknowns, lang),
        facts=[
            (label_, value)
            for label_, value in _facts(analysis, lang, span, files)
            if value and value != '-'
        ],
    )
    worst = worst_event(analysis)
    for event in ordered[:MAX_EVENTS]:
        text = describe_event(event, analysis, lang)
        mark = ''
        if len(ordered) > 1:
            mark = _mark(event is analysis.first_anomaly, event is worst, lang)
        place = _place(event, lang, with_file)
        code = 'place_marked' if mark else 'place'
        title = label(code, lang, place=place, mark=mark)
        story.events.append(EventText(place, mark, title, text, event))
    if facts.num_skipped_lines:
        story.remarks.append(label('skipped_lines', lang, num=facts.num_skipped_lines))
    if facts.num_newer_runs:
        story.remarks.append(label('newer_runs', lang, num=facts.num_newer_runs))
    if facts.is_cut:
        story.remarks.append(label('cut', lang))
    return story


def describe_event(event: LogEvent, analysis: LogAnalysis, lang: str = 'en') -> str:
    """Return an event in words, without its place."""
    gap = '' if lang == 'zh' else ' '
    return gap.join(sentences(event_notes(event, analysis.facts), lang))


def sentences(notes: Iterable[Note], lang: str) -> list[str]:
    """Return notes as clean sentences."""
    return [clean_text(say(note, lang), _MAX_SENTENCE) for note in notes]


def _advice(advice: Advice, lang: str) -> AdviceText:
    (text,) = sentences([advice.note], lang)
    return AdviceText(text, format_config(advice.config) if advice.config else '')


def _headline(analysis: LogAnalysis, lang: str, with_file: bool) -> str:
    verdict = analysis.verdict
    event = analysis.first_anomaly
    if verdict in (Verdict.FATAL, Verdict.SUSPICIOUS):
        event = worst_event(analysis)
    code = f'verdict.{verdict.value}'
    values: dict[str, object] = {'rows': analysis.num_rows}
    if event is not None:
        values.update(
            place=place_notes(event, with_file=with_file), events=len(analysis.events)
        )
    elif verdict in (Verdict.FATAL, Verdict.SUSPICIOUS):
        code += '_plain'
    notes = [Note(code, values)]
    if analysis.rows_lost:
        notes.append(_lost_note(analysis))
    return ('' if lang == 'zh' else ' ').join(sentences(notes, lang))


def _lost_note(analysis: LogAnalysis) -> Note:
    what = 'lost' if analysis.verdict is Verdict.FATAL else 'bad'
    values: dict[str, object] = {
        'lost': analysis.rows_lost,
        'rows': analysis.num_rows,
        'share': analysis.rows_lost / max(1, analysis.num_rows),
    }
    if analysis.hours_lost is None:
        return Note(f'verdict.{what}_rows', values)
    values['duration'] = duration_note(analysis.hours_lost)
    return Note(f'verdict.{what}_hours', values)


def _name(path: str) -> str:
    return re.split(r'[/\\]', path.rstrip('/\\'))[-1]


def _place(event: LogEvent, lang: str, with_file: bool) -> str:
    notes = place_notes(event, with_file=with_file)
    return clean_text(say(Note('value.plain', {'value': notes}), lang))


def _mark(is_first: bool, is_worst: bool, lang: str) -> str:
    if is_first and is_worst:
        return label('first_and_worst', lang)
    if is_first or is_worst:
        return label('first' if is_first else 'worst', lang)
    return ''


def _facts(
    analysis: LogAnalysis, lang: str, span: str, files: Sequence[str]
) -> Iterable[tuple[str, str]]:
    for name, note in fact_notes(analysis, span, files):
        yield say(Note(f'fact.{name}'), lang), sentences([note], lang)[0]
