"""Rows of text: quickly where they look like the ones before, else with care."""

from __future__ import annotations

import re
from typing import Callable, ClassVar, Mapping, Pattern, Sequence

from mmgradguard.logs.builder import TableBuilder
from mmgradguard.logs.formats.base import LogParser
from mmgradguard.logs.formats.text_clean import clean, find_stamp
from mmgradguard.logs.formats.text_held import MAX_ROW, HeldRow
from mmgradguard.logs.formats.text_layout import (
    Layout,
    PendingRows,
    make_layout,
)
from mmgradguard.logs.formats.text_metrics import read_metrics
from mmgradguard.logs.formats.text_pairs import Pairs, drop_cut_number
from mmgradguard.logs.formats.text_template import RunReader, make_template
from mmgradguard.logs.header import HeaderReader

Match = Callable[[str], 're.Match[str] | None']

#: More looks of a row than this are damage, and not worth remembering.
_MAX_LAYOUTS = 256
#: No row looks like this.
_NO_LAYOUT = Layout([''], [], slice(0, 0))


class TextParser(LogParser):
    """Reads rows that stand in a line of text; a subclass says how they begin.

    Runs of rows that look alike are read as one (`RunReader`), a row whose names were
    seen before is split and compared (`_add_alike`). Any other is cleaned, held until
    the next line shows that it is whole, and parsed.
    """

    #: Finds the beginning of a row: groups of stamp, epoch, iteration and length.
    ROW: ClassVar[Pattern[str]]
    #: The same for a row that stands at the beginning of its line behind its stamp.
    PLAIN_ROW: ClassVar[Pattern[str]]
    #: The end of a line that may be the beginning of a row, broken before its pairs.
    BROKEN_ROW: ClassVar[Pattern[str]]
    #: Names of columns for the names that are printed.
    RENAMED: ClassVar[Mapping[str, str]] = {}
    HAS_COMMAS: ClassVar[bool] = False
    #: What the place of a row begins with, by epoch and by iteration.
    MARKS: ClassVar[tuple[str, str]] = ('', '')

    def __init__(self, builder: TableBuilder) -> None:
        super().__init__(builder)
        self._match: Match = self.PLAIN_ROW.match
        self._layouts: dict[tuple[str, ...], Layout] = {}
        self._layout = _NO_LAYOUT
        self._pending = PendingRows()
        self._held: HeldRow | None = None
        self._header = HeaderReader(builder, self.flush)
        self._is_interrupted = False
        self._runs = RunReader()

    @classmethod
    def claims_line(cls, line: str) -> bool:
        """Return whether a row begins in ``line``."""
        return cls.ROW.search(line) is not None

    def feed(self, first: int, lines: Sequence[str], is_open: bool = False) -> None:
        """Read consecutive lines."""
        stop = len(lines) - 1 if is_open else len(lines)
        place = 0
        while place < len(lines):
            rows = self._take_run(first, lines, place, stop)
            place += rows or 1
            if not rows:
                self._add_line(first + place - 1, lines[place - 1], place <= stop)
        if is_open:
            self._close(is_open=True)
        self.flush()

    def finish(self) -> None:
        """Read what is held back."""
        self._close()
        self.flush()

    def _take_run(self, first: int, lines: Sequence[str], place: int, stop: int) -> int:
        """Add rows that look like the last one; return how many there are."""
        if self._is_interrupted:
            return 0
        rows = self._runs.take(first, lines, place, stop)
        if rows is None:
            return 0
        self.flush()
        # no layout has these names: the next single row is compared anew
        self._pending.names, self._layout = list(rows.columns), _NO_LAYOUT
        self.builder.add_rows(rows)
        return len(rows.lines)

    def _add_line(self, number: int, line: str, has_end: bool) -> None:
        match = self._match(line) if has_end else None
        if match is None or not self._add_alike(number, line, match):
            for part in line.split('\r'):
                self._add_carefully(number, part)

    def _add_alike(self, number: int, line: str, match: re.Match[str]) -> bool:
        """Add a row if one with the same names was parsed before."""
        tail = line[match.end() :]
        words = (tail.replace(',', ' ') if self.HAS_COMMAS else tail).split()
        layout, pending = self._layout, self._pending
        if words[::2] != layout.words or self._is_interrupted:
            self._close()
            known = self._layouts.get(tuple(words[::2]))
            if known is None:
                return False
            self.flush()
            layout = self._layout = known
            pending.names = layout.names
            self._runs.use(layout.template)
        values = words[1::2]
        del values[layout.durations]
        try:
            pending.numbers += map(float, values)
        except ValueError:
            return pending.drop_half_row()
        if len(values) != len(layout.names):
            return pending.drop_half_row()
        pending.lines.append(number)
        place = match.groups()
        pending.places += place if place[0] else self._place(line, match)
        return True

    @staticmethod
    def _place(text: str, match: re.Match[str]) -> Sequence[str | None]:
        """Return stamp, epoch, iteration and length as printed."""
        stamp, *place = match.groups()
        return [stamp or find_stamp(text[: match.start()]), *place]

    def _add_carefully(self, number: int, line: str) -> None:
        if not line or line.isspace():
            self._close_held()
            self._header.take('')
            return
        text = clean(line)
        begins = self.ROW.search(text) or self.BROKEN_ROW.search(text)
        if begins and len(text) < MAX_ROW:
            self._close()
            self._held = HeldRow(number, text, self.ROW)
            self._is_interrupted = True
            return
        if self._held is not None and self._held.goes_on_with(text):
            return
        self._close_held()
        if not self._read_other(number, text):
            self.skip(line)

    def _close(self, is_open: bool = False) -> None:
        """Add what is held; what follows is no part of a header."""
        self._header.end()
        self._close_held(is_open)
        self._is_interrupted = False

    def _close_held(self, is_open: bool = False) -> None:
        held, self._held = self._held, None
        if held is None:
            return
        match, pairs = held.place, held.pairs()
        if is_open:
            pairs, is_cut = drop_cut_number(pairs, self._pending.names)
            self.builder.table.is_cut = is_cut
        if match is None or not pairs.names:
            self.skip(held.text)
            return
        self._add_parsed(held, match, pairs)

    def _add_parsed(self, held: HeldRow, match: re.Match[str], pairs: Pairs) -> None:
        self._header.end()
        names = [self.RENAMED.get(name, name) for name in pairs.names]
        if names != self._pending.names:
            self.flush()
            # no layout has just these names: the next row is compared anew
            self._pending.names, self._layout = names, _NO_LAYOUT
        place = self._place(held.text, match)
        self._pending.add(held.number, place, map(float, pairs.numbers))
        if pairs.is_whole and not pairs.has_gaps and held.num_parts == 1:
            self._learn(held.text, match, pairs)

    def _learn(self, text: str, match: re.Match[str], pairs: Pairs) -> None:
        """Let rows that look like this one be added quickly."""
        tail = text[match.end() :]
        words = (tail.replace(',', ' ') if self.HAS_COMMAS else tail).split()
        layout = make_layout(words, pairs.names)
        if layout is None or self.RENAMED or len(self._layouts) >= _MAX_LAYOUTS:
            return
        longer = (other.names for other in self._layouts.values())
        if any(names[: len(layout.names)] == layout.names for names in longer):
            return  # the first part of a row that is broken in two looks like this
        layout.template = make_template(
            text,
            match,
            self.MARKS[match.group(2) is None],
            pairs.names,
            has_commas=self.HAS_COMMAS,
        )
        self._runs.use(layout.template)
        self._layouts[tuple(layout.words)] = layout
        is_plain = self.PLAIN_ROW.match(text) is not None
        self._match = self.PLAIN_ROW.match if is_plain else self.ROW.search

    def _read_other(self, number: int, text: str) -> bool:
        """Read a line that is no row; return whether it is of any use."""
        metrics = read_metrics(text)
        if metrics is not None:
            if metrics.values:
                self.flush()
                self.builder.add_validation(number, metrics.epoch, metrics.values)
            return True
        if self.look_for_failure(number, text):
            return True
        if self._header.take(text):
            self._is_interrupted = True
            return True
        return False

    def flush(self) -> None:
        """Hand the builder the rows that were read and are still kept."""
        if self._pending.lines:
            self.builder.add_rows(self._pending.take())
