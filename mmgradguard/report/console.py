"""A rich console that collects text; plain when it is piped."""

from __future__ import annotations

from typing import IO, Sequence

from mmgradguard.report.packages import require

#: Narrower columns than this make a table worse than a list.
_MIN_COLUMN = 15


class Console:
    """A rich console that collects; texts from files are never read as markup.

    Args:
        file: Where the text will go; decides about colours and characters.
        width: Columns; None for those of the terminal.

    Raises:
        MissingPackageError: If rich is not installed.
    """

    def __init__(self, file: IO[str], width: int | None) -> None:
        console = require('rich.console', 'rich', 'terminal output')
        self._text = require('rich.text', 'rich', 'terminal output').Text
        self._table = require('rich.table', 'rich', 'terminal output').Table
        self._console = console.Console(
            file=file, width=width, markup=False, highlight=False, emoji=False
        )
        self.is_unicode = self._console.encoding.lower().startswith('utf')
        self.width: int = self._console.width
        self._console.begin_capture()

    def line(self, *parts: str | tuple[str, str]) -> None:
        """Print text and ``(text, style)`` pairs as one paragraph."""
        self._console.print(self._text.assemble(*parts, overflow='fold'))

    def heading(self, text: str) -> None:
        """Print a heading after an empty line."""
        self._console.print()
        self.line((text, 'bold'))

    def item(self, text: str) -> None:
        """Print an item of a list."""
        body = self._text(text, overflow='fold')
        grid = self._table.grid(padding=(0, 1))
        grid.add_column(no_wrap=True)
        grid.add_column(overflow='fold')
        grid.add_row('-', body)
        self._console.print(grid)

    def note(self, text: str) -> None:
        """Print a remark."""
        self.line((text, 'dim'))

    def code(self, text: str) -> None:
        """Print code as it is."""
        # folded code cannot be copied: let the terminal wrap it
        self._console.print(self._text(text), no_wrap=True, crop=False, soft_wrap=True)

    def table(self, names: Sequence[str] | None, rows: Sequence[Sequence[str]]) -> None:
        """Print a table, or a list where the columns would be too narrow to read."""
        if names is not None and self.width < _MIN_COLUMN * len(names):
            self._cards(names, rows)
            return
        table = self._table(
            box=None,
            padding=(0, 2, 0, 0),
            show_header=names is not None,
            pad_edge=False,
        )
        for name in names or [''] * max(map(len, rows), default=0):
            table.add_column(name, header_style='dim', overflow='fold')
        for row in rows:
            table.add_row(*(self._text(cell) for cell in row))
        self._console.print(table)

    def text(self) -> str:
        """Return what was printed."""
        text = self._console.end_capture()
        return '\n'.join(line.rstrip() for line in text.splitlines()) + '\n'

    def _cards(self, names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        for row in rows:
            shown = [f'{n}: {cell}' for n, cell in zip(names, row) if cell]
            self.item('\n'.join(shown))
