"""Rows of text that look alike: their names are compared, not parsed."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Iterable, Sequence

from mmgradguard.logs.formats.text_template import Template
from mmgradguard.logs.rows import Rows
from mmgradguard.logs.table import NOT_PRINTED


@dataclass
class Layout:
    """The words of a row at even places, and what the others are.

    `words` are as printed (``lr:``), `names` those of the numbers, `durations` the
    places of the values that are none: of ``eta: 1 day, 3:14:12`` for instance;
    `template` reads many of such rows at once.
    """

    words: list[str]
    names: list[str]
    durations: slice
    template: Template | None = None


@dataclass
class PendingRows:
    """Rows that print the same names, and that the builder has not seen yet.

    Flat lists: a tuple for each row would keep the garbage collector busy. `places`
    has four items for each row, as printed: stamp, epoch or None, iteration, length.
    """

    names: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    places: list[str | None] = field(default_factory=list)
    numbers: list[float] = field(default_factory=list)

    def add(
        self, line: int, place: Iterable[str | None], numbers: Iterable[float]
    ) -> None:
        """Add a row."""
        self.lines.append(line)
        self.places += place
        self.numbers += numbers

    def drop_half_row(self) -> bool:
        """Forget numbers that turned out to be of no row; return False."""
        del self.numbers[len(self.lines) * len(self.names) :]
        return False

    def take(self) -> Rows:
        """Return the rows and forget them."""
        stamps, epochs, iterations, lengths = (self.places[i::4] for i in range(4))
        num, numbers = len(self.names), array('d', self.numbers)
        rows = Rows(
            self.lines,
            _counts(epochs, NOT_PRINTED),
            [int(iteration or NOT_PRINTED) for iteration in iterations],
            # without an epoch it is the length of the run that is printed
            _counts(lengths if None not in epochs else [None] * len(epochs), 0),
            [stamp or '' for stamp in stamps],
            columns={name: numbers[i::num] for i, name in enumerate(self.names)},
        )
        self.lines, self.places, self.numbers = [], [], []
        return rows


def _counts(texts: Sequence[str | None], nothing: int) -> list[int]:
    """Return numbers of which there are few, ``nothing`` where none is printed."""
    known = {text: int(text or nothing) for text in set(texts)}
    return [known[text] for text in texts]


def make_layout(words: Sequence[str], names: Sequence[str]) -> Layout | None:
    """Return the layout of a row, None if its words do not stand at even places.

    Args:
        words: Of the row, split at white space.
        names: Of its pairs.
    """
    keys = list(words[::2])
    if len(words) % 2 or len(set(names)) != len(names):
        return None
    wanted = set(names)
    others = [i for i, key in enumerate(keys) if key[:-1] not in wanted]
    if others and others[-1] - others[0] + 1 != len(others):
        return None
    durations = slice(others[0], others[-1] + 1) if others else slice(0, 0)
    del keys[durations]
    if keys != [f'{name}:' for name in names]:
        return None
    return Layout(list(words[::2]), list(names), durations)
