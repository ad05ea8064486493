"""The run as text for a terminal; plain when it is piped."""

from __future__ import annotations

import math
import sys
from typing import IO, Any, Sequence

from mmgradguard.report.console import Console, open_console
from mmgradguard.report.incident_record import Incident
from mmgradguard.report.model import RunReport
from mmgradguard.report.terminal_styles import STYLES
from mmgradguard.report.tiles import summary_tiles
from mmgradguard.report.values import format_number, shorten
from mmgradguard.report.words import (
    describe_action,
    describe_cause,
    describe_intervention,
    describe_kind,
    describe_when,
    describe_where,
    format_config,
)

#: Rows of a table; the page has more, the file has all.
MAX_ROWS = 10
#: Incidents told in detail; the table has them all.
MAX_DETAILS = 5

_BARS = '\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588'
_ASCII_BARS = '_.-:=+*#'


def render_terminal(
    report: RunReport, *, file: IO[str] | None = None, width: int | None = None
) -> str:
    """Return the report as text, coloured if ``file`` is a terminal.

    Args:
        report: What to show.
        file: Where the text will go; defaults to ``sys.stdout``.
        width: Columns; defaults to those of the terminal.
    """
    page = open_console(file or sys.stdout, width)
    page.line(f'{report.title}  ', (report.verdict, STYLES[report.verdict]))
    for sentence in report.sentences:
        page.item(sentence)
    page.heading('Summary')
    page.table(None, [list(tile) for tile in summary_tiles(report)])
    _add_curves(page, report)
    _add_incidents(page, report)
    _add_journal(page, report)
    if report.problems:
        page.heading('What could not be read')
        for problem in report.problems[:MAX_ROWS]:
            page.item(problem)
    return page.text()


def render_incident(
    incident: Incident, *, file: IO[str] | None = None, width: int | None = None
) -> str:
    """Return one incident as text, coloured if ``file`` is a terminal."""
    page = open_console(file or sys.stdout, width)
    _add_incident(page, incident)
    return page.text()


def _add_curves(page: Console, report: RunReport) -> None:
    curves = [('grad_norm', report.steps.total_norm, report.steps.iteration)]
    curves += [(c.term, c.value, c.iteration) for c in report.losses[:1]]
    for name, values, iteration in curves:
        finite = [value for value in values if math.isfinite(value)]
        if len(values) < 2 or not finite:
            continue
        page.heading(
            f'{shorten(name, 40)}, log scale, iteration {iteration[0]} to '
            f'{iteration[-1]}: {format_number(min(finite))} to '
            f'{format_number(max(finite))}'
        )
        bars = _BARS if page.is_unicode else _ASCII_BARS
        page.line(sparkline(values, max(10, min(page.width - 2, 100)), bars=bars))
    if any(not math.isfinite(value) for value in report.steps.total_norm):
        page.note('X: a non-finite step')


def sparkline(values: Sequence[float], width: int, *, bars: str = _ASCII_BARS) -> str:
    """Return the largest of each bin on a log scale, ``X`` where one is not finite.

    >>> sparkline([1, 10, 100, float('nan'), 1], 5, bars='123')
    '123X1'
    """
    size = math.ceil(len(values) / max(1, width))
    bins = [values[i : i + size] for i in range(0, len(values), size)]
    logs = [math.log10(v) for v in values if math.isfinite(v) and v > 0]
    low, high = min(logs, default=0.0), max(logs, default=0.0)
    line = ''
    for part in bins:
        if not all(math.isfinite(value) for value in part):
            line += 'X'
        elif max(part) <= 0:
            line += bars[0]
        else:
            share = (math.log10(max(part)) - low) / (high - low) if high > low else 0.0
            line += bars[min(len(bars) - 1, int(share * len(bars)))]
    return line


def _add_incidents(page: Console, report: RunReport) -> None:
    if not report.incidents:
        return
    page.heading('Incidents')
    rows = [
        [
            describe_when(incident),
            describe_kind(incident),
            shorten(describe_where(incident), 60),
            describe_action(incident),
            incident.verdict,
        ]
        for incident in report.incidents
    ]
    page.table(('When', 'What', 'Where', 'Action', 'Verdict'), rows[:50])
    for incident in report.incidents[:MAX_DETAILS]:
        _add_incident(page, incident)
    if len(report.incidents) > MAX_DETAILS:
        num_more = len(report.incidents) - MAX_DETAILS
        page.note(f'{num_more} more in report.html')


def _add_incident(page: Console, incident: Incident) -> None:
    page.heading(f'{describe_kind(incident)}, {describe_when(incident)}')
    first = incident.first_bad
    facts: list[tuple[str, Any]] = [
        ('verdict', incident.verdict),
        ('action', describe_action(incident)),
        ('grad_norm', incident.total_norm and format_number(incident.total_norm)),
        ('phase', first and first.phase),
        ('module', first and first.module),
        ('op', first and first.op),
        ('source', first and first.source),
        ('cause', describe_cause(incident)),
        ('time', incident.time),
        ('file', f'{incident.folder}/incident.json'),
    ]
    page.table(None, [[name, str(value)] for name, value in facts if value])
    for line in (incident.cause.evidence if incident.cause else None) or []:
        page.item(line)
    _add_tables(page, incident)
    for advice in incident.advice[:MAX_ROWS]:
        if advice.text:
            page.line(('To do: ', 'bold'), advice.text)
        if advice.config:
            page.code(format_config(advice.config))
    for problem in incident.problems:
        page.note(f'not read in full: {problem}')


def _add_tables(page: Console, incident: Incident) -> None:
    if incident.params:
        rows = [
            [
                shorten(row.name or '-', 60),
                'x'.join(map(str, row.shape)) if row.shape is not None else '-',
                format_number(row.num_nan),
                format_number(row.num_inf),
                format_number(row.norm),
            ]
            for row in incident.params[:MAX_ROWS]
        ]
        page.table(('Parameter', 'Shape', 'NaN', 'Inf', 'Norm'), rows)
    if incident.loss_terms:
        rows = [
            [
                shorten(term.name or '-', 60),
                format_number(term.value),
                format_number(term.grad_norm),
                'culprit' if term.culprit else '',
            ]
            for term in incident.loss_terms[:MAX_ROWS]
        ]
        page.table(('Loss term', 'Value', 'Grad norm', ''), rows)
    if incident.samples:
        rows = [
            [
                sample.img_id or '-',
                sample.img_path or '-',
                'culprit' if sample.culprit else '',
                '; '.join(sample.notes or []),
            ]
            for sample in incident.samples[:MAX_ROWS]
        ]
        page.table(('Image', 'File', '', 'Notes'), rows)
    for tried in incident.interventions[:MAX_ROWS]:
        page.item(describe_intervention(tried))


def _add_journal(page: Console, report: RunReport) -> None:
    if not report.journal:
        return
    page.heading(f'Journal, newest of {report.num_journal}')
    rows = [
        [
            '-' if entry.step is None else str(entry.step),
            entry.actor,
            f'{entry.knob} {entry.target}'.strip(),
            f'{entry.old} -> {entry.new}',
            entry.status,
        ]
        for entry in report.journal[-MAX_ROWS:]
    ]
    page.table(('Step', 'Actor', 'Knob', 'Change', 'Status'), rows)
