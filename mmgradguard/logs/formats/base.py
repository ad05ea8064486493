"""What a format of training logs is to the reader."""

from __future__ import annotations

from typing import Any, ClassVar, Mapping, Sequence

from mmgradguard.logs.builder import TableBuilder
from mmgradguard.logs.failures import FailureFinder

#: What a printed value is: a mean over the window of mmengine's LogProcessor, a mean
#: over the iterations since the last row, one step, or a median or a whole epoch, of
#: which nothing can be said for one step.
WINDOW_MEAN, INTERVAL_MEAN, STEP, OTHER = 'window', 'interval', 'step', 'other'
#: A row of more numbers is damage: the terms of a detector are some dozens.
MAX_PAIRS = 1000


class LogParser:
    """Turns the lines of one file into rows of a builder; one subclass per format.

    A parser is fed all lines of a file in order, in blocks, and `finish` once.
    """

    #: As shown to people and in ``LogTable.format``.
    NAME: ClassVar[str] = ''
    #: What a printed value stands for.
    VALUES_ARE: ClassVar[str] = OTHER

    def __init__(self, builder: TableBuilder) -> None:
        self.builder = builder
        self._failures = FailureFinder(builder.table)

    @classmethod
    def claims_line(cls, line: str) -> bool:
        """Return whether ``line`` can only be a row or a header of this format."""
        return False

    @classmethod
    def claims_row(cls, row: Mapping[str, Any]) -> bool:
        """Return whether a line that is a JSON object is one of this format."""
        return False

    def feed(self, first: int, lines: Sequence[str], is_open: bool = False) -> None:
        """Read consecutive lines.

        Args:
            first: Number of the first of them.
            lines: Without their ends.
            is_open: The last one has no end, and the file ends there.
        """
        raise NotImplementedError

    def finish(self) -> None:
        """Read what is held back; nothing follows."""

    def flush(self) -> None:
        """Hand the builder the rows that were read and are still kept."""

    def look_for_failure(self, number: int, line: str) -> bool:
        """Return whether a line says of what the training died, and note that."""
        failure = self._failures.find(number, line)
        if failure is None:
            return False
        self.flush()
        self._failures.add(failure)
        return True

    def skip(self, line: str) -> None:
        """Count a line that is of no use, unless it is blank."""
        if line.strip():
            self.builder.table.num_skipped_lines += 1
