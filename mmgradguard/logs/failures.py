"""Messages that say that a training died of NaN or infinite numbers."""

from __future__ import annotations

import re

from mmgradguard.logs.table import Failure, LogTable

#: Each is of an exception or a last word; nothing that a training survives.
_MESSAGE = re.compile(
    r'loss bec[ao]mes? (?:infinite|nan|inf)\b'
    r'|loss (?:is|are) infinite or nan'
    r'|loss is \S{1,40} stopping training'
    r'|loss returned in .{1,40} is nan'
    r'|matrix contains invalid numeric entries|cost matrix is infeasible'
    r'|total norm .{1,100} is non-?finite'
    r'|returned nan values in its \d'
    r"|function '\w+backward\d*' returned nan"
    r'|array must not contain infs or nans|input (?:\S{1,20} )?contains nan'
    r'|(?:floatingpointerror|assertionerror)\b.{0,200}\b(?:nans?|infinite|non-?finite)\b'
)
#: Every message has one of these: quickly told.
_HINTS = ('nan', 'finite', 'infeasible', 'invalid numeric')
#: The line of code in a traceback that raises such an error; the message follows.
_CODE = re.compile(
    r'\W*(?:raise|assert|print|if|self\.|runner\.|logger\.|warnings\.)\b'
)
_MAX_TEXT = 300
_MAX_SEARCHED = 4096
#: Ranks all die of the same, and a job that restarts dies again and again.
_MAX_FAILURES = 100


class FailureFinder:
    """Looks at the lines that are no rows; a message may be broken over two of them."""

    def __init__(self, table: LogTable) -> None:
        self._table = table
        self._before = (0, '')

    def find(self, number: int, line: str) -> Failure | None:
        """Return the failure that a line tells of, None if it tells of none.

        Its `after_row` is still to be set. Args are the number of the line, and its
        text without colours.
        """
        before_at, before = self._before
        line = line[:_MAX_SEARCHED]
        self._before = (number, line[-_MAX_TEXT:])
        if _is_message(line):
            self._before = (0, '')
            return Failure(number, -1, _one_line(line))
        if before and number == before_at + 1:
            more = line[:_MAX_TEXT]
            for whole in (before + more, f'{before.rstrip()} {more.lstrip()}'):
                if _is_message(whole):
                    self._before = (0, '')
                    return Failure(before_at, -1, _one_line(whole))
        return None

    def add(self, failure: Failure) -> None:
        """Add a failure behind the last row, unless another rank said the same."""
        failure.after_row = len(self._table) - 1
        failures = self._table.failures
        is_known = any(
            other.text == failure.text and other.after_row == failure.after_row
            for other in failures
        )
        if not is_known and len(failures) < _MAX_FAILURES:
            failures.append(failure)


def _is_message(text: str) -> bool:
    lower = text.lower()
    if not any(hint in lower for hint in _HINTS) or _CODE.match(text):
        return False
    return _MESSAGE.search(lower) is not None


def _one_line(text: str) -> str:
    found = _MESSAGE.search(text.lower())
    if len(text) > _MAX_TEXT and found:
        text = text[max(found.start() - _MAX_TEXT // 3, 0) :]
    printable = ''.join(c if c.isprintable() else ' ' for c in text)
    return ' '.join(printable.split())[:_MAX_TEXT]
