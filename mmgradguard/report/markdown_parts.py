"""Pieces of Markdown for an issue tracker: nothing breaks out, paths are shortened."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Sequence

from mmgradguard.report.values import clean_text, shorten

#: Issue trackers refuse texts above 65536 characters.
MAX_LENGTH = 60000
_MAX_CELL = 160

_PLAIN = re.compile(r'[\w.\-/:,+ ()\[\]]+', re.ASCII)
# an underscore inside a word is no markup, and names are full of them
_SPECIAL = re.compile(r'[&<>|`*~#\[\\!$]|(?<!\w)_|_(?!\w)')
# an absolute path of two parts or more inside a text; not a URL, not a/b
_PART = r'[^\s/\\\'"|:]'
_PATH = re.compile(
    rf'(?<![\w/\\.~])(?:file://)?(?:[A-Za-z]:)?(?:/|\\{{1,2}}){_PART}+(?:[/\\]+{_PART}*)+'
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
    owned = [i + 2 for i, part in enumerate(parts) if part.lower() in _HOMES]
    if not is_absolute and not owned:
        return '/'.join(['...', *parts[-3:]] if len(parts) > 3 else parts)
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


def table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table; the cells are Markdown already."""
    lines = [names, ['---'] * len(names), *rows]
    return [f'| {" | ".join(line)} |' for line in lines]


def escape(text: str) -> str:
    """Return ``text`` on one line, with no markup and no mention in it."""
    text = _one_line(text)
    # an entity is never markup; `@name` would call that person into the issue
    text = _SPECIAL.sub(lambda match: f'&#{ord(match.group())};', text)
    return text.replace('@', '@\u200b')


def code(text: str) -> str:
    """Return ``text`` on one line in a code font."""
    text = shorten(_one_line(text), _MAX_CELL)
    if _PLAIN.fullmatch(text):
        return f'`{text}`'
    return f'<code>{_SPECIAL.sub(lambda m: f"&#{ord(m.group())};", text)}</code>'


def fence(text: str) -> list[str]:
    """Return the lines of a block of Python."""
    longest = max((len(run) for run in re.findall('`+', text)), default=0)
    marks = '`' * max(3, longest + 1)
    return [f'{marks}python', *shorten_paths(text).splitlines(), marks]


def limit_length(lines: Sequence[str], note: str) -> str:
    """Return the lines as a text that a tracker takes; ``note`` says if it is cut."""
    text = '\n'.join(lines) + '\n'
    if len(text) <= MAX_LENGTH:
        return text
    kept: list[str] = []
    size = len(note) + 10
    marks = ''
    for line in lines:
        size += len(line) + 1
        if size > MAX_LENGTH:
            break
        kept.append(line)
        if line.startswith('```'):
            marks = '' if marks else line.rstrip('python')
    return '\n'.join([*kept, *([marks] if marks else []), '', note]) + '\n'


def _one_line(text: str) -> str:
    return clean_text(shorten_paths(text), 2000)
