"""A row of text that may go on in the next line: a terminal or a mail broke it."""

from __future__ import annotations

import re
from typing import Pattern

from mmgradguard.logs.formats.text_clean import has_stamp, strip_prefix
from mmgradguard.logs.formats.text_pairs import (
    Pairs,
    complete_cut,
    join,
    parse_all_pairs,
)

#: A row is broken over no more lines than this.
_MAX_PARTS = 64
#: A line that holds more than a row, and is no row.
MAX_ROW = 2**16


class HeldRow:
    """Gathers the parts of a row.

    Args:
        number: Of its first line.
        text: That line, cleaned.
        row: Finds the beginning of a row.
    """

    def __init__(self, number: int, text: str, row: Pattern[str]) -> None:
        self.number, self.text = number, text
        self.num_parts = 1
        self._row = row

    @property
    def place(self) -> re.Match[str] | None:
        """The beginning of the row, None as long as it is not whole."""
        return self._row.search(self.text)

    def goes_on_with(self, line: str) -> bool:
        """Take a line that continues the row; return whether it does."""
        more = strip_prefix(line)
        if not more.strip() or self.num_parts >= _MAX_PARTS or has_stamp(more):
            return False
        if len(self.text) + len(more) > MAX_ROW:
            return False
        joined = self._join(more)
        if joined is None:
            return False
        self.text = joined
        self.num_parts += 1
        return True

    def _join(self, more: str) -> str | None:
        place = self.place
        if place is not None:
            tail = join(self.text[place.end() :], more)
            return None if tail is None else self.text[: place.end()] + tail
        for text in (self.text + more, f'{self.text.rstrip()} {more}'):
            if self._row.search(text):
                return text
        return None

    def pairs(self) -> Pairs:
        """Return what the row prints."""
        place = self.place
        if place is None:
            return Pairs([], [], self.text)
        return complete_cut(parse_all_pairs(self.text[place.end() :]))
