"""Wrapping and padding of text in terminal columns; a Chinese character takes two."""

from __future__ import annotations

import re
import unicodedata

#: No line of a wrapped text is narrower than this, however narrow the terminal.
MIN_WIDTH = 8
#: A longer word with slashes in it is no path that somebody wants to copy.
_LONGEST_PATH = 400


def cell_width(text: str) -> int:
    r"""Return the columns that ``text`` takes.

    >>> cell_width('loss'), cell_width('\u635f\u5931')
    (4, 4)
    """
    return len(text) if text.isascii() else sum(map(_char_width, text))


def pad(text: str, width: int) -> str:
    """Return ``text`` filled with spaces to ``width`` columns."""
    return text + ' ' * max(0, width - cell_width(text))


def wrap(text: str, width: int, *, whole_paths: bool = False) -> list[str]:
    """Return ``text`` in lines of at most ``width`` columns; newlines are kept.

    Lines break at spaces and between wide characters; a longer word is folded, a path
    behind a slash where it can be.

    Args:
        text: What to wrap.
        width: Columns, at least `MIN_WIDTH`.
        whole_paths: Whether a path stays whole instead and makes its line longer: the
            terminal folds it, and it can be copied.

    >>> wrap('one step of about 1.6e9', 12)
    ['one step of', 'about 1.6e9']
    >>> wrap('loss_classification', 8)
    ['loss_cla', 'ssificat', 'ion']
    >>> wrap('see runs/1/incidents/7', 12)
    ['see', 'runs/1/', 'incidents/7']
    """
    width = max(width, MIN_WIDTH)
    lines: list[str] = []
    for paragraph in text.split('\n'):
        lines += _wrap_paragraph(paragraph, width, whole_paths)
    return lines


def _wrap_paragraph(text: str, width: int, whole_paths: bool) -> list[str]:
    if cell_width(text) <= width:
        return [text.rstrip()]
    lines = ['']
    used = 0
    for word in _words(text):
        size = cell_width(word)
        if used + cell_width(word.rstrip()) > width and lines[-1]:
            lines.append('')
            used = 0
        if cell_width(word.rstrip()) > width and not (whole_paths and _is_path(word)):
            folded = _fold(word.rstrip(), width)
            lines[-1:] = [lines[-1] + folded[0], *folded[1:]]
            used = cell_width(lines[-1])
            word = word[len(word.rstrip()) :]
            size = len(word)
        lines[-1] += word
        used += size
    return [line.rstrip() for line in lines]


def _fold(word: str, width: int) -> list[str]:
    lines = ['']
    used = 0
    for piece in re.findall(r'[^/\\]*[/\\]+|[^/\\]+', word):
        if used and used + cell_width(piece) > width:
            lines.append('')
            used = 0
        for char in piece:
            if used + _char_width(char) > width:
                lines.append('')
                used = 0
            lines[-1] += char
            used += _char_width(char)
    return lines


def _is_path(word: str) -> bool:
    return len(word) <= _LONGEST_PATH and len(re.findall(r'[/\\]', word)) > 1


def _words(text: str) -> list[str]:
    # a piece is a word with the spaces after it, or one wide character with what
    # follows it and must not begin a line
    pieces: list[str] = []
    open_word = False
    for char in text:
        is_wide = _char_width(char) == 2
        if char == ' ':
            if pieces:
                pieces[-1] += char
            else:
                pieces.append(char)
            open_word = False
        elif is_wide and unicodedata.category(char) in ('Po', 'Pe') and pieces:
            pieces[-1] += char
            open_word = False
        elif not open_word or (is_wide and not _opens(pieces)):
            pieces.append(char)
            # an opening bracket stays with what it opens
            open_word = not is_wide or _opens(pieces)
        else:
            pieces[-1] += char
    return pieces


def _opens(pieces: list[str]) -> bool:
    return bool(pieces) and unicodedata.category(pieces[-1][-1]) == 'Ps'


def _char_width(char: str) -> int:
    if char.isascii():
        return 1
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in 'WF' else 1
