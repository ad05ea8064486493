"""The run as Markdown to paste into an issue: paths shortened, nothing breaks out."""

from __future__ import annotations

from mmgradguard.report import markdown_parts as md
from mmgradguard.report.incident_record import Incident
from mmgradguard.report.model import RunReport
from mmgradguard.report.tiles import summary_tiles
from mmgradguard.report.values import format_number
from mmgradguard.report.words import (
    describe_action,
    describe_cause,
    describe_intervention,
    describe_kind,
    describe_when,
    describe_where,
    format_config,
)

MAX_INCIDENTS = 40
MAX_ROWS = 12


def render_markdown(report: RunReport) -> str:
    """Return the summary, the incidents, and the worst incident in detail."""
    lines = [f'### Gradient report: {report.verdict}', '']
    lines += [f'- {md.escape(sentence)}' for sentence in report.sentences]
    lines += ['', *md.table(('Figure', 'Value', ''), summary_tiles(report))]
    if report.incidents:
        rows = [
            (
                md.escape(describe_when(incident)),
                md.escape(describe_kind(incident)),
                md.code(describe_where(incident)),
                md.escape(describe_action(incident)),
                incident.verdict,
            )
            for incident in report.incidents[:MAX_INCIDENTS]
        ]
        lines += ['', f'#### Incidents ({len(report.incidents)})', '']
        lines += md.table(('When', 'What', 'Where', 'Action', 'Verdict'), rows)
    if report.worst_incident is not None:
        lines += ['', *_detail(report.worst_incident)]
    if report.problems:
        lines += ['', '#### What could not be read', '']
        lines += [f'- {md.escape(problem)}' for problem in report.problems[:MAX_ROWS]]
    return md.limit_length(lines, '... cut here; the rest is in report.html')


def _detail(incident: Incident) -> list[str]:
    kind, when = describe_kind(incident), describe_when(incident)
    lines = [f'#### {md.escape(kind)}, {md.escape(when)}', '']
    first = incident.first_bad
    facts = [
        ('grad_norm', incident.total_norm and format_number(incident.total_norm)),
        ('phase', first and first.phase),
        ('module', first and first.module),
        ('op', first and first.op),
        ('source', first and first.source),
    ]
    lines += [f'- {name}: {md.code(value)}' for name, value in facts if value]
    cause = describe_cause(incident)
    if cause:
        lines.append(f'- cause: {md.escape(cause)}')
        evidence = (incident.cause.evidence if incident.cause else None) or []
        lines += [f'  - {md.escape(line)}' for line in evidence[:MAX_ROWS]]
    lines += [
        f'- tried {md.escape(describe_intervention(tried))}'
        for tried in incident.interventions[:MAX_ROWS]
    ]
    lines += _detail_tables(incident)
    for advice in incident.advice[:MAX_ROWS]:
        lines += ['', md.escape(advice.text)] if advice.text else []
        lines += ['', *md.fence(format_config(advice.config))] if advice.config else []
    versions = ', '.join(f'{name} {value}' for name, value in incident.versions.items())
    return lines + (['', md.escape(versions)] if versions else [])


def _detail_tables(incident: Incident) -> list[str]:
    lines: list[str] = []
    if incident.params:
        rows = [
            (
                md.code(row.name or '-'),
                'x'.join(map(str, row.shape)) if row.shape is not None else '-',
                format_number(row.num_nan),
                format_number(row.num_inf),
                format_number(row.norm),
            )
            for row in incident.params[:MAX_ROWS]
        ]
        lines += ['', *md.table(('Parameter', 'Shape', 'NaN', 'Inf', 'Norm'), rows)]
    if incident.loss_terms:
        rows = [
            (
                md.code(term.name or '-'),
                format_number(term.value),
                format_number(term.grad_norm),
                'culprit' if term.culprit else '',
                '',
            )
            for term in incident.loss_terms[:MAX_ROWS]
        ]
        names = ('Loss term', 'Value', 'Gradient norm', '')
        lines += ['', *md.table(names, [row[:4] for row in rows])]
    if incident.samples:
        samples = [
            (
                md.code(sample.img_id or '-'),
                md.code(md.shorten_path(sample.img_path)) if sample.img_path else '-',
                'culprit' if sample.culprit else '',
                md.escape('; '.join(sample.notes or [])),
            )
            for sample in incident.samples[:MAX_ROWS]
        ]
        lines += ['', *md.table(('Image', 'File', '', 'Notes'), samples)]
    return lines
