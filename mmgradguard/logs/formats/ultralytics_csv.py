"""ultralytics' ``results.csv``: one line per epoch, training and validation."""

from __future__ import annotations

from typing import Sequence

from mmgradguard.logs.builder import TableBuilder
from mmgradguard.logs.formats.base import MAX_PAIRS, LogParser
from mmgradguard.logs.rows import Rows
from mmgradguard.logs.table import NOT_PRINTED

_VALIDATIONS = ('metrics/', 'val/')
#: Seconds since the start, unlike the ``time`` of an iteration elsewhere.
_NO_COLUMNS = ('time',)
#: What the best checkpoint is chosen by, in either generation.
_MAIN_METRICS = ('metrics/mAP50-95(B)', 'metrics/mAP_0.5:0.95')


class UltralyticsCsv(LogParser):
    """Also of YOLOv5, whose names are padded with blanks; `lr/pg0` is ``lr``."""

    NAME = 'ultralytics_csv'

    def __init__(self, builder: TableBuilder) -> None:
        super().__init__(builder)
        self._names: list[str] = []

    @classmethod
    def claims_line(cls, line: str) -> bool:
        """Return whether ``line`` is the header of such a table."""
        names = _split(line)
        return names[0] == 'epoch' and any(name.startswith('train/') for name in names)

    def feed(self, first: int, lines: Sequence[str], is_open: bool = False) -> None:
        """Read consecutive lines."""
        for number, line in enumerate(lines, first):
            if self.claims_line(line):
                self._names = _split(line)
            elif not self._add(number, _split(line)):
                if self.look_for_failure(number, line):
                    continue
                self.skip(line)
                if is_open and number == first + len(lines) - 1:
                    self.builder.table.is_cut = True

    def _add(self, number: int, cells: Sequence[str]) -> bool:
        if len(cells) != len(self._names) or len(cells) > MAX_PAIRS:
            return False
        try:
            epoch = int(float(cells[0]))
            row = dict(zip(self._names[1:], map(float, cells[1:])))
        except (ValueError, OverflowError):  # OverflowError: an epoch of inf
            return False
        columns = {
            'lr' if name == 'lr/pg0' else name: [value]
            for name, value in row.items()
            if not name.startswith(_VALIDATIONS) and name not in _NO_COLUMNS
        }
        epoch = epoch if 0 <= epoch < 2**53 else NOT_PRINTED
        rows = Rows([number], [epoch], [NOT_PRINTED], [0], columns=columns)
        self.builder.add_rows(rows)
        names = [name for name in row if name.startswith('metrics/')]
        names.sort(key=lambda name: name not in _MAIN_METRICS)
        metrics = {name: row[name] for name in names}
        if metrics:
            self.builder.add_validation(number, epoch, metrics)
        return True


def _split(line: str) -> list[str]:
    return [cell.strip() for cell in line.split(',')]
