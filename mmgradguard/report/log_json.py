"""The JSON of ``mmgradguard analyze --json``; its schema is in ``docs/formats.md``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from mmgradguard.core.log_analysis import LogAnalysis, LogEvent
from mmgradguard.report.log_story import describe_event, sentences
from mmgradguard.report.log_words import reason_notes

#: Layout of ``mmgradguard analyze --json``.
SCHEMA_VERSION = 1


def analysis_json(analysis: LogAnalysis, lang: str = 'en') -> dict[str, Any]:
    """Return plain data; write it with ``jsonio`` for its infinities."""
    events = [_event(event, analysis, lang) for event in analysis.events]
    return {
        'schema_version': SCHEMA_VERSION,
        'source': analysis.source,
        'format': analysis.format,
        'num_rows': analysis.num_rows,
        'verdict': analysis.verdict.value,
        'first_anomaly': events[0] if events else None,
        'events': events,
        'rows_lost': analysis.rows_lost,
        'hours_lost': analysis.hours_lost,
        'advice': [
            {'text': sentences([advice.note], lang)[0], 'config': advice.config}
            for advice in analysis.advice
        ],
        'reasons': sentences(reason_notes(analysis), lang),
        'normality': sentences(analysis.normality, lang),
        'would_decide': sentences(analysis.would_decide, lang),
        'unknowns': sentences(analysis.unknowns, lang),
        'facts': analysis.facts_json(),
        'lang': lang,
    }


def _event(event: LogEvent, analysis: LogAnalysis, lang: str) -> dict[str, Any]:
    row = asdict(event)
    # rows of a table that the reader of the JSON never sees
    del row['first_row'], row['last_row']
    finding = event.to_finding(describe_event(event, analysis, lang))
    return {
        **row,
        'code': finding.code,
        'severity': finding.severity.name.lower(),
        'text': finding.message,
    }
