"""Many rows of text at once: split as one, if each has the words of the row before."""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass
from typing import Sequence

from mmgradguard.logs.formats.text_clean import find_stamp
from mmgradguard.logs.rows import Rows
from mmgradguard.logs.table import NOT_PRINTED

#: Fewer rows are read one by one: to gather them would cost more.
_MIN_ROWS = 8
#: More are read in parts, each of which the caches of a processor hold.
_MAX_ROWS = 128
#: So many lines at most are read one by one before another attempt.
_MAX_PATIENCE = 4096
#: As in the pattern of a row: no count has more digits.
_MAX_COUNT = 10**12


@dataclass
class Template:
    """A row as words: which of them are the same in all rows, and what the others are.

    Attributes:
        mark: What every row has and hardly another line: ``Epoch(train)``.
        length: Behind the iteration, as printed: ``788``.
        has_commas: Whether items are set apart by commas.
        num_words: Of a row; what follows are places among them.
        fixed: Words that every row has.
        columns: Numbers, by name.
        epoch: None if none is printed.
        iteration: Without the length, which is taken off.
        stamp: The date; the time stands behind it. None if there is none.
    """

    mark: str
    length: str
    has_commas: bool
    num_words: int
    fixed: dict[int, str]
    columns: dict[str, int]
    epoch: int | None
    iteration: int
    stamp: int | None

    def read(self, first: int, lines: Sequence[str]) -> Rows | None:
        """Return consecutive lines as rows, None if any of them looks different."""
        num, step = len(lines), self.num_words
        words = _split('\n'.join(lines), self.length, has_commas=self.has_commas)
        if len(words) != step * num:
            return None
        for place, word in self.fixed.items():
            if words[place::step].count(word) != num:
                return None
        epochs = words[self.epoch :: step] if self.epoch is not None else []
        try:
            counts = {word: int(word) for word in set(epochs)}
            iterations = list(map(int, words[self.iteration :: step]))
            columns = {
                name: array('d', [*map(float, words[place::step])])
                for name, place in self.columns.items()
            }
        except ValueError:
            return None
        seen = [*counts.values(), min(iterations), max(iterations)]
        if not 0 <= min(seen) <= max(seen) < _MAX_COUNT:
            return None
        return Rows(
            list(range(first, first + num)),
            [counts[word] for word in epochs] or [NOT_PRINTED] * num,
            iterations,
            [int(self.length) if epochs else 0] * num,
            self._stamps(words),
            columns=columns,
        )

    def _stamps(self, words: Sequence[str]) -> list[str]:
        if self.stamp is None:
            return []
        dates = words[self.stamp :: self.num_words]
        times = words[self.stamp + 1 :: self.num_words]
        return [f'{date} {time}' for date, time in zip(dates, times)]


class RunReader:
    """Finds runs of lines that fit a template; learns to leave a file alone."""

    def __init__(self) -> None:
        self._template: Template | None = None
        self._mark = ''
        self._rest = 0
        self._patience = _MIN_ROWS

    def use(self, template: Template | None) -> None:
        """Compare with another row from now on."""
        self._template = template
        self._mark = template.mark if template else ''

    def take(
        self, first: int, lines: Sequence[str], place: int, stop: int
    ) -> Rows | None:
        """Return the rows from ``place`` on that look alike, None if these are few.

        Args:
            first: Number of the first line.
            lines: Of the block.
            place: Where to begin.
            stop: Where to end at the latest.
        """
        if self._template is None or self._rest > 0:
            self._rest -= 1
            return None
        end, limit, mark = place, min(place + _MAX_ROWS, stop), self._mark
        while end < limit and mark in lines[end]:
            end += 1
        if end - place < _MIN_ROWS:
            return None
        rows = self._template.read(first + place, lines[place:end])
        if rows is None:
            # the odd one is among these: read them singly, and more if that goes on
            self._rest = max(end - place, self._patience)
            self._patience = min(2 * self._patience, _MAX_PATIENCE)
        else:
            self._patience = _MIN_ROWS
        return rows


def make_template(
    text: str,
    match: re.Match[str],
    mark: str,
    names: Sequence[str],
    *,
    has_commas: bool,
) -> Template | None:
    """Return the template of a row, None if its words cannot be told apart.

    Args:
        text: The row, which is whole and in one line.
        match: Of its place: groups of nothing, epoch, iteration and length.
        mark: What its place begins with.
        names: Of its numbers, in their order.
        has_commas: Whether its items are set apart by commas.
    """
    _, epoch, _, length = match.groups()
    before = text[: match.start()].split()
    words = _split(text, length, has_commas=has_commas)
    start = len(before)
    tail = start + (2 if epoch is None else 3)
    fixed = {i: w for i, w in enumerate(words) if i >= tail and w.endswith(':')}
    columns = {word[:-1]: i + 1 for i, word in fixed.items() if word[:-1] in names}
    word = mark.rstrip(' [')
    if list(columns) != list(names) or words[start : start + 1] != [word]:
        return None
    fixed[start] = word
    stamp = find_stamp(text[: match.start()])
    stamp_at = start - 7  # date, time, '-', name, '-', level, '-'
    if stamp and (stamp_at < 0 or words[stamp_at : stamp_at + 2] != stamp.split()):
        return None
    if stamp:
        fixed[start - 5] = fixed[start - 1] = '-'
    return Template(
        mark,
        length,
        has_commas,
        len(words),
        fixed,
        columns,
        epoch=None if epoch is None else start + 1,
        iteration=tail - 1,
        stamp=stamp_at if stamp else None,
    )


def _split(text: str, length: str, *, has_commas: bool) -> list[str]:
    """Return words, without the brackets and the length of a place."""
    text = text.replace(f'/{length}]', ' ').replace('[', ' ').replace(']', ' ')
    return (text.replace(',', ' ') if has_commas else text).split()
