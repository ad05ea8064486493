"""What DETR and its children print: ``Epoch: [0]  [ 20/14786]  eta: ... loss: ...``."""

from __future__ import annotations

import re
from typing import Sequence

from mmgradguard.logs.formats.text_parser import TextParser

#: Behind the median of the last 20 iterations stands the mean since the epoch began.
_MEAN = re.compile(r'(?<=\S) \([^\s()]{1,24}\)(?=\s|$)')


class DetrText(TextParser):
    """Rows of a `MetricLogger`; what is read is the first number of each pair."""

    NAME = 'detr_text'
    ROW = re.compile(
        r'()Epoch:\s{0,9}\[\s{0,9}(\d{1,12})\s{0,9}\]\s{0,9}'
        r'\[\s{0,9}(\d{1,12})\s{0,9}/\s{0,9}(\d{1,12})\s{0,9}\](?=\s{1,9}eta:)'
    )
    PLAIN_ROW = ROW
    BROKEN_ROW = re.compile(r'Epoch:\s{0,9}\[[\s\[\]\d/]*$')
    MARKS = ('Epoch: [', 'Epoch: [')

    def feed(self, first: int, lines: Sequence[str], is_open: bool = False) -> None:
        """Read consecutive lines."""
        super().feed(first, [_plain(line) for line in lines], is_open)


def _plain(line: str) -> str:
    """Return a line without its means, and with the names that all formats share."""
    if 'Epoch:' not in line:
        return line
    line = _MEAN.sub('', line) if '(' in line else line
    return line.replace('max mem:', 'memory:').replace(' data: ', ' data_time: ')
