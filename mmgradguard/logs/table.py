"""The training rows of a log as columns of numbers, whatever format they came from."""

from __future__ import annotations

import zlib
from array import array
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any, Sequence

#: Stands in `epochs` and `iterations` for a number that the row does not print.
NOT_PRINTED = -1


@dataclass
class Header:
    """What stands before the rows of an experiment."""

    config_text: str | None = None
    config: dict[str, Any] | None = None
    num_gpus: int | None = None
    seed: int | None = None
    versions: dict[str, str] = field(default_factory=dict)


@dataclass
class Section:
    """Rows of one process: from `first_row` to the next section.

    `reason` is ``start``, ``resume`` (the iterations go on, or back a little, after a
    restart) or ``experiment`` (another training in the same file, begun anew).
    """

    first_row: int
    reason: str
    file: str
    header: Header = field(default_factory=Header)


@dataclass
class Failure:
    """A message that says that a training died of bad numbers.

    `after_row` is the training row before it, -1 if none; `text` is one line of at most
    300 characters.
    """

    line: int
    after_row: int
    text: str


@dataclass
class Validation:
    """One row of metrics; `after_row` is the training row before it, -1 if none."""

    line: int
    after_row: int
    epoch: int | None
    metrics: dict[str, float]


class LogTable:
    """Rows as columns; a 300 MB log must fit, so numbers are kept in arrays.

    Names are as printed (``d0.loss_bbox``). ``columns['loss']`` has one float for each
    row, NaN where the row prints NaN and also where it lacks the key; the rows that
    lack it are in ``absent['loss']``, ascending. Strings, lists and nulls are left out.
    `lr`, `grad_norm`, `time`, `data_time`, `memory`, `loss` are columns like others;
    other formats' names for these are translated (``train_grad_norm``, ``total_norm``,
    ``total_loss``).

    Attributes:
        format: Name of the format, or of the first if files differ.
        source: What was asked for: a path, or ``-``.
        files: Every file read, in order.
        lines: Physical line in its file, from 1.
        epochs, iterations: As printed, `NOT_PRINTED` if not.
        epoch_lengths: Iterations of an epoch as printed in ``[1][50/788]``, 0 if not.
        sections: Ascending by `first_row`; the first one begins at row 0.
        skips: Row number -> why our own `steps.jsonl` says that no step was taken.
        validations: Rows of metrics.
        failures: Lines which say that training died of bad numbers.
        num_skipped_lines: Lines that are neither rows, metrics nor part of a header.
        num_newer_runs: Of a folder, newer runs that have no row that can be read.
        is_cut: The last line is cut: the log is still being written.
    """

    def __init__(self, source: str, format: str) -> None:
        self.source, self.format = source, format
        self.files: list[str] = []
        self.lines = array('q')
        self.epochs = array('q')
        self.iterations = array('q')
        self.epoch_lengths = array('q')
        self.columns: dict[str, array[float]] = {}
        self.absent: dict[str, array[int]] = {}
        self.sections: list[Section] = []
        self.skips: dict[int, str] = {}
        self.validations: list[Validation] = []
        self.failures: list[Failure] = []
        self.num_skipped_lines = 0
        self.num_newer_runs = 0
        self.is_cut = False
        self._stamps = _Stamps()

    def __len__(self) -> int:
        return len(self.lines)

    def section_of(self, row: int) -> Section:
        """Return the section that ``row`` belongs to."""
        first, stop = 0, len(self.sections)
        while stop - first > 1:  # `bisect` takes no key before Python 3.10
            middle = (first + stop) // 2
            if self.sections[middle].first_row <= row:
                first = middle
            else:
                stop = middle
        return self.sections[first]

    def file_of(self, row: int) -> str:
        """Return the file that ``row`` was read from."""
        return self.section_of(row).file

    def time_of(self, row: int) -> str | None:
        """Return the time stamp of ``row`` as printed, None if the format has none."""
        return self._stamps.get(row)

    def add_stamps(self, first_row: int, stamps: Sequence[str]) -> None:
        """Remember the time stamps, ``''`` for none, of the rows from `first_row`."""
        self._stamps.add(first_row, stamps)


class _Stamps:
    """Time stamps, packed: few are ever asked for, and a list needs 70 bytes each."""

    def __init__(self) -> None:
        self._first_rows = array('q')
        self._packs: list[tuple[int, bytes]] = []
        self._open: tuple[int, bytes] = (-1, b'')

    def add(self, first_row: int, stamps: Sequence[str]) -> None:
        width = max(map(len, stamps), default=0)
        if not width:
            return
        text = ''.join(stamps)
        if len(text) != width * len(stamps):
            text = ''.join(stamp.ljust(width) for stamp in stamps)
        packed = zlib.compress(text.encode('ascii', 'replace'), 1)
        self._first_rows.append(first_row)
        self._packs.append((width, packed))

    def get(self, row: int) -> str | None:
        number = bisect_right(self._first_rows, row) - 1
        if number < 0:
            return None
        width, packed = self._packs[number]
        if self._open[0] != number:
            self._open = (number, zlib.decompress(packed))
        start = (row - self._first_rows[number]) * width
        stamp = self._open[1][start : start + width].decode('ascii').strip()
        return stamp or None
