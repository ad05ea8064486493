"""The run as Markdown to paste into an issue: paths shortened, nothing breaks out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Sequence

from mmgradguard.report.incident_record import Incident
from mmgradguard.report.model import RunReport
from mmgradguard.report.tiles import summary_tiles
from mmgradguard.report.values import clean_text, format_number, shorten
from mmgradguard.report.words import (
    describe_action,
    describe_cause,
    describe_intervention,
    describe_kind,
    describe_when,
    describe_where,
    format_config,
)

#: Issue trackers refuse texts above 65536 characters.
MAX_LENGTH = 60000
MAX_INCIDENTS = 40
MAX_ROWS = 12
_MAX_CELL = 160

_PLAIN = re.compile(r'[\w.\-/:,+ ()\[\]]+', re.ASCII)
# an underscore inside a word is no markup, and names are full of them
_SPECIAL = re.compile(r'[&<>|`*~#\[\\!$]|(?<!\w)_|_(?!\w)')
# an absolute path of two parts or more inside a text; not a URL, not a/b
_PART = r'[^\s/\\\'"|:]'
_PATH = re.compile(
    rf'(?<![\w/\\.~])(?:file://)?(?:[A-Za-z]:)?[/\\]{_PART}+(?:[/\\]+{_PART}*)+'
)
_HOMES = ('home', 'users', 'user')


def shorten_path(path: str) -> str:
    """Return the last parts of ``path``, at most three, without the owner's name.

    The first two parts of an absolute path, and what follows ``home``, name machines
    and people.

    >>> shorten_path('/home/alice/data/coco/train2017/0001.jpg')
    '.../coco/train2017/0001.jpg'
    >>> shorten_path('/home/alice/0001.jpg'), shorten_path('data/0001.jpg')
    ('.../0001.jpg', 'data/0001.jpg')
    """
    is_absolute = re.match(r'file://|[A-Za-z]:|[/\\]|~', path) is not None
    path = path[7:] if path.startswith('file://') else path
    parts = [part for part in re.split(r'[/\\]+', path) if part]
    if is_absolute and parts and re.fullmatch('[A-Za-z]:', parts[0]):
        parts = parts[1:]
    if not is_absolute:
        return '/'.join(['...', *parts[-3:]] if len(parts) > 3 else parts)
    owned = [i + 2 for i, part in enumerate(parts) if part.lower() in _HOMES]
    if owned and max(owned) >= len(parts):
        return '...'
    start = max(2, len(parts) - 3, *owned)
    return '/'.join(['...', *(parts[start:] or parts[-1:])])


def shorten_paths(text: str) -> str:
    """Return ``text`` with every absolute path in it shortened.

    >>> shorten_paths('cannot open /data/alice/coco/train/1.jpg: gone')
    'cannot open .../coco/train/1.jpg: gone'
    """
    home = str(Path.home())
    if len(home) > 3:
        text = text.replace(f'{home}/', '/home/user/')
    return _PATH.sub(lambda match: shorten_path(match.group()), text)


def render_markdown(report: RunReport) -> str:
    """Return the summary, the incidents, and the worst incident in detail."""
    lines = [f'### Gradient report: {report.verdict}', '']
    lines += [f'- {_text(sentence)}' for sentence in report.sentences]
    lines += ['', *_table(('Figure', 'Value', ''), summary_tiles(report))]
    if report.incidents:
        rows = [
            (
                _text(describe_when(incident)),
                _text(describe_kind(incident)),
                _code(describe_where(incident)),
                _text(describe_action(incident)),
                incident.verdict,
            )
            for incident in report.incidents[:MAX_INCIDENTS]
        ]
        lines += ['', f'#### Incidents ({len(report.incidents)})', '']
        lines += _table(('When', 'What', 'Where', 'Action', 'Verdict'), rows)
    if report.worst_incident is not None:
        lines += ['', *_detail(report.worst_incident)]
    if report.problems:
        lines += ['', '#### What could not be read', '']
        lines += [f'- {_text(problem)}' for problem in report.problems[:MAX_ROWS]]
    return _limit(lines)


def _detail(incident: Incident) -> list[str]:
    kind, when = describe_kind(incident), describe_when(incident)
    lines = [f'#### {_text(kind)}, {_text(when)}', '']
    first = incident.first_bad
    facts = [
        ('grad_norm', incident.total_norm and format_number(incident.total_norm)),
        ('phase', first and first.phase),
        ('module', first and first.module),
        ('op', first and first.op),
        ('source', first and first.source),
    ]
    lines += [f'- {name}: {_code(value)}' for name, value in facts if value]
    cause = describe_cause(incident)
    if cause:
        lines.append(f'- cause: {_text(cause)}')
        evidence = (incident.cause.evidence if incident.cause else None) or []
        lines += [f'  - {_text(line)}' for line in evidence[:MAX_ROWS]]
    lines += [
        f'- tried {_text(describe_intervention(tried))}'
        for tried in incident.interventions[:MAX_ROWS]
    ]
    lines += _detail_tables(incident)
    for advice in incident.advice[:MAX_ROWS]:
        lines += ['', _text(advice.text)] if advice.text else []
        lines += ['', *_fence(format_config(advice.config))] if advice.config else []
    versions = ', '.join(f'{name} {value}' for name, value in incident.versions.items())
    return lines + (['', _text(versions)] if versions else [])


def _detail_tables(incident: Incident) -> list[str]:
    lines: list[str] = []
    if incident.params:
        rows = [
            (
                _code(row.name or '-'),
                'x'.join(map(str, row.shape)) if row.shape is not None else '-',
                format_number(row.num_nan),
                format_number(row.num_inf),
                format_number(row.norm),
            )
            for row in incident.params[:MAX_ROWS]
        ]
        lines += ['', *_table(('Parameter', 'Shape', 'NaN', 'Inf', 'Norm'), rows)]
    if incident.loss_terms:
        rows = [
            (
                _code(term.name or '-'),
                format_number(term.value),
                format_number(term.grad_norm),
                'culprit' if term.culprit else '',
                '',
            )
            for term in incident.loss_terms[:MAX_ROWS]
        ]
        names = ('Loss term', 'Value', 'Gradient norm', '')
        lines += ['', *_table(names, [row[:4] for row in rows])]
    if incident.samples:
        samples = [
            (
                _code(sample.img_id or '-'),
                _code(shorten_path(sample.img_path)) if sample.img_path else '-',
                'culprit' if sample.culprit else '',
                _text('; '.join(sample.notes or [])),
            )
            for sample in incident.samples[:MAX_ROWS]
        ]
        lines += ['', *_table(('Image', 'File', '', 'Notes'), samples)]
    return lines


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [names, ['---'] * len(names), *rows]
    return [f'| {" | ".join(line)} |' for line in lines]


def _text(text: str) -> str:
    text = _one_line(text)
    # an entity is never markup; `@name` would call that person into the issue
    text = _SPECIAL.sub(lambda match: f'&#{ord(match.group())};', text)
    return text.replace('@', '@\u200b')


def _code(text: str) -> str:
    text = shorten(_one_line(text), _MAX_CELL)
    if _PLAIN.fullmatch(text):
        return f'`{text}`'
    return f'<code>{_SPECIAL.sub(lambda m: f"&#{ord(m.group())};", text)}</code>'


def _one_line(text: str) -> str:
    return clean_text(shorten_paths(text), 2000)


def _fence(text: str) -> list[str]:
    longest = max((len(run) for run in re.findall('`+', text)), default=0)
    fence = '`' * max(3, longest + 1)
    return [f'{fence}python', *shorten_paths(text).splitlines(), fence]


def _limit(lines: list[str]) -> str:
    text = '\n'.join(lines) + '\n'
    if len(text) <= MAX_LENGTH:
        return text
    note = '... cut here; the rest is in report.html'
    kept: list[str] = []
    size = len(note) + 10
    fence = ''
    for line in lines:
        size += len(line) + 1
        if size > MAX_LENGTH:
            break
        kept.append(line)
        if line.startswith('```'):
            fence = '' if fence else line.rstrip('python')
    return '\n'.join([*kept, *([fence] if fence else []), '', note]) + '\n'
