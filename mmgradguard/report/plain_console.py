"""A console of the standard library alone: wrapped text without colours."""

from __future__ import annotations

import shutil
from typing import IO, Sequence

from mmgradguard.report.wrap import MIN_WIDTH, cell_width, pad, wrap

#: Narrower columns than this make a table worse than a list.
MIN_COLUMN = 15
_GAP = 2


def card(names: Sequence[str], row: Sequence[str]) -> str:
    """Return a row of a table as lines of its own, for narrow terminals."""
    return '\n'.join(f'{name}: {cell}' for name, cell in zip(names, row) if cell)


class PlainConsole:
    """Collects text; styles are left out.

    Args:
        file: Where the text will go; decides about characters; None if it is closed.
        width: Columns; None for those of the terminal, 80 of a pipe.
    """

    def __init__(self, file: IO[str] | None, width: int | None) -> None:
        encoding = getattr(file, 'encoding', None) or 'utf-8'
        self.is_unicode = encoding.lower().startswith('utf')
        self.width = width or shutil.get_terminal_size((80, 24)).columns
        self._lines: list[str] = []

    def line(self, *parts: str | tuple[str, str]) -> None:
        """Print one paragraph."""
        self._lines += wrap(join(parts), self.width, whole_paths=True)

    def heading(self, text: str) -> None:
        """Print a heading after an empty line."""
        self._lines.append('')
        self.line(text)

    def item(self, *parts: str | tuple[str, str]) -> None:
        """Print an item of a list."""
        lines = wrap(join(parts), self.width - 2, whole_paths=True)
        self._lines += [f'{"  " if i else "- "}{line}' for i, line in enumerate(lines)]

    def note(self, text: str) -> None:
        """Print a remark."""
        self.line(text)

    def code(self, text: str) -> None:
        """Print code as it is: folded code cannot be copied."""
        self._lines += text.split('\n')

    def table(self, names: Sequence[str] | None, rows: Sequence[Sequence[str]]) -> None:
        """Print a table, or a list where the columns would be too narrow to read."""
        if names is not None and self.width < MIN_COLUMN * len(names):
            for row in rows:
                self.item(card(names, row))
            return
        shown = [*([names] if names is not None else []), *rows]
        widths = fit_columns(shown, self.width)
        for row in shown:
            cells = [wrap(cell, size) for cell, size in zip(row, widths)]
            for index in range(max(map(len, cells), default=0)):
                parts = [cell[index] if index < len(cell) else '' for cell in cells]
                padded = [pad(part, size) for part, size in zip(parts, widths)]
                self._lines.append((' ' * _GAP).join(padded).rstrip())

    def text(self) -> str:
        """Return what was printed."""
        return '\n'.join(line.rstrip() for line in self._lines) + '\n'


def join(parts: Sequence[str | tuple[str, str]]) -> str:
    """Return the text of all parts, without styles."""
    return ''.join(part if isinstance(part, str) else part[0] for part in parts)


def fit_columns(rows: Sequence[Sequence[str]], total: int) -> list[int]:
    """Return the width of each column of a table that is ``total`` columns wide."""
    return _fit(_natural_widths(rows), total)


def _natural_widths(rows: Sequence[Sequence[str]]) -> list[int]:
    widths = [0] * max(map(len, rows), default=0)
    for row in rows:
        for index, cell in enumerate(row):
            lines = cell.split('\n')
            widths[index] = max(widths[index], *map(cell_width, lines))
    return widths


def _fit(widths: list[int], total: int) -> list[int]:
    # the widest column gives way first: names and numbers stay whole longest
    widths = list(widths)
    while widths and sum(widths) + _GAP * (len(widths) - 1) > total:
        widest = widths.index(max(widths))
        if widths[widest] <= MIN_WIDTH:
            break
        widths[widest] -= 1
    return widths
