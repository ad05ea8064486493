"""Consoles that collect text: rich on a terminal, else plain.

A pipe gets the same text whether rich is installed or not, so that the command line
works from a bare source tree.
"""

from __future__ import annotations

import os
from typing import IO, Any, Protocol, Sequence, Union

from mmgradguard.report.packages import MissingPackageError, require
from mmgradguard.report.plain_console import (
    MIN_COLUMN,
    PlainConsole,
    card,
    fit_columns,
    join,
)
from mmgradguard.report.wrap import cell_width, wrap

#: Text, or ``(text, style)``; a plain console shows the text alone.
Part = Union[str, 'tuple[str, str]']


class Console(Protocol):
    """What a page is printed on; texts from files are never read as markup."""

    width: int
    is_unicode: bool

    def line(self, *parts: Part) -> None:
        """Print one paragraph."""

    def heading(self, text: str) -> None:
        """Print a heading after an empty line."""

    def item(self, *parts: Part) -> None:
        """Print an item of a list."""

    def note(self, text: str) -> None:
        """Print a remark."""

    def code(self, text: str) -> None:
        """Print code as it is: folded code cannot be copied."""

    def table(self, names: Sequence[str] | None, rows: Sequence[Sequence[str]]) -> None:
        """Print a table, or a list where the columns would be too narrow to read."""

    def text(self) -> str:
        """Return what was printed."""


def open_console(file: IO[str] | None, width: int | None) -> Console:
    """Return a console for what will go to ``file``.

    Args:
        file: Where the text will go; decides about colours and characters. None is a
            stdout that was closed.
        width: Columns; None for those of the terminal.
    """
    if file is not None and _wants_colour(file):
        try:
            return RichConsole(file, width)
        except MissingPackageError:
            pass  # colours are a luxury
    return PlainConsole(file, width)


def _wants_colour(file: IO[str]) -> bool:
    return bool(os.environ.get('FORCE_COLOR')) or file.isatty()


class RichConsole:
    """A rich console that collects.

    Raises:
        MissingPackageError: If rich is not installed.
    """

    def __init__(self, file: IO[str], width: int | None) -> None:
        console = require('rich.console', 'rich', 'colours')
        self._text = require('rich.text', 'rich', 'colours').Text
        self._table = require('rich.table', 'rich', 'colours').Table
        self._console = console.Console(
            file=file, width=width, markup=False, highlight=False, emoji=False
        )
        self.is_unicode: bool = self._console.encoding.lower().startswith('utf')
        self.width: int = self._console.width
        self._console.begin_capture()

    def line(self, *parts: Part) -> None:
        """Print one paragraph."""
        if self._has_long_word(parts, self.width):
            lines = wrap(join(parts), self.width, whole_paths=True)
            self.code('\n'.join(lines))
        else:
            self._console.print(self._assemble(parts))

    def heading(self, text: str) -> None:
        """Print a heading after an empty line."""
        self._console.print()
        self.line((text, 'bold'))

    def item(self, *parts: Part) -> None:
        """Print an item of a list."""
        if self._has_long_word(parts, self.width - 2):
            lines = wrap(join(parts), self.width - 2, whole_paths=True)
            self.code('- ' + '\n  '.join(lines))
            return
        grid = self._table.grid(padding=(0, 1))
        grid.add_column(no_wrap=True)
        grid.add_column(overflow='fold')
        grid.add_row('-', self._assemble(parts))
        self._console.print(grid)

    def note(self, text: str) -> None:
        """Print a remark."""
        self.line((text, 'dim'))

    def code(self, text: str) -> None:
        """Print code as it is: folded code cannot be copied."""
        # the terminal wraps it
        self._console.print(self._text(text), no_wrap=True, crop=False, soft_wrap=True)

    def table(self, names: Sequence[str] | None, rows: Sequence[Sequence[str]]) -> None:
        """Print a table, or a list where the columns would be too narrow to read."""
        if names is not None and self.width < MIN_COLUMN * len(names):
            for row in rows:
                self.item(card(names, row))
            return
        table = self._table(
            box=None,
            padding=(0, 2, 0, 0),
            show_header=names is not None,
            pad_edge=False,
        )
        widths = fit_columns(
            [*([names] if names is not None else []), *rows], self.width
        )
        for name in names or [''] * max(map(len, rows), default=0):
            table.add_column(name, header_style='dim', overflow='fold')
        for row in rows:
            # rich would fold a path in mid-word
            cells = ['\n'.join(wrap(c, size)) for c, size in zip(row, widths)]
            table.add_row(*map(self._text, cells))
        self._console.print(table)

    def text(self) -> str:
        """Return what was printed."""
        text = self._console.end_capture()
        return '\n'.join(line.rstrip() for line in text.splitlines()) + '\n'

    def _has_long_word(self, parts: Sequence[Part], width: int) -> bool:
        return any(cell_width(word) > width for word in join(parts).split())

    def _assemble(self, parts: Sequence[Part]) -> Any:
        return self._text.assemble(*parts, overflow='fold')
