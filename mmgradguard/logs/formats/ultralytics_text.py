"""What ultralytics and YOLOv5 print: a table per epoch, redrawn by a progress bar."""

from __future__ import annotations

import re
from typing import Sequence

from mmgradguard.logs.builder import TableBuilder
from mmgradguard.logs.formats.base import LogParser
from mmgradguard.logs.formats.text_clean import clean
from mmgradguard.logs.rows import Rows
from mmgradguard.logs.table import NOT_PRINTED

_TITLES = re.compile(r'^\W*Epoch\s+gpu_mem\s+(\S.*)$', re.IGNORECASE)
_ROW = re.compile(r'^\W*(\d{1,9})/(\d{1,9})\s+[\d.]+[GMK]?\s+(\S.*?)(?::\s|$)')
_METRIC_TITLES = re.compile(r'^\s*Class\s+Images\s+(?:Instances|Labels)\s+(.*?)(?::|$)')
_METRICS = re.compile(r'^\s*all\s+\d+\s+\d+\s+([\d.einaf\s+-]+)$')
#: Titles of what is no loss, in either generation.
_COUNTS = ('instances', 'labels', 'size', 'img_size', 'total', 'targets')


class UltralyticsText(LogParser):
    """The row of an epoch is the last that the bar has drawn."""

    NAME = 'ultralytics_text'

    def __init__(self, builder: TableBuilder) -> None:
        super().__init__(builder)
        self._titles: list[str] = []
        self._metric_titles: list[str] = []
        self._held: tuple[int, int, dict[str, float]] | None = None

    @classmethod
    def claims_line(cls, line: str) -> bool:
        """Return whether ``line`` has the titles of the table."""
        return _TITLES.match(line) is not None

    def feed(self, first: int, lines: Sequence[str], is_open: bool = False) -> None:
        """Read consecutive lines."""
        for number, line in enumerate(lines, first):
            parts = [part for part in line.split('\r') if part.strip()]
            for part in parts:
                text = clean(part)
                if not (
                    self._read(number, text) or self.look_for_failure(number, text)
                ):
                    self.skip(part)

    def flush(self) -> None:
        """Add the epoch that is still drawn."""
        self._add_held()

    def finish(self) -> None:
        """Add the last epoch, however far it came."""
        self._add_held()

    def _read(self, number: int, text: str) -> bool:
        titles = _TITLES.match(text)
        row = _ROW.match(text)
        if titles:
            self._titles = titles.group(1).split()
            return True
        if row:
            return self._hold(number, int(row.group(1)), row.group(3))
        metric_titles = _METRIC_TITLES.match(text)
        if metric_titles:
            # 'Box(P R mAP50 mAP50-95)': the brackets are for people
            words = metric_titles.group(1).replace('Box(', '').replace('Mask(', '')
            self._metric_titles = words.replace(')', '').split()
            return True
        metrics = _METRICS.match(text)
        if metrics:
            self._add_metrics(number, metrics.group(1).split())
        return metrics is not None

    def _hold(self, number: int, epoch: int, text: str) -> bool:
        values = {}
        for title, word in zip(self._titles, text.split()):
            if title.lower() in _COUNTS:
                break
            try:
                values[title] = float(word)
            except ValueError:
                return False
        if not values:
            return False
        if self._held is not None and self._held[1] != epoch:
            self._add_held()
        self._held = (number, epoch, values)
        return True

    def _add_held(self) -> None:
        if self._held is not None:
            number, epoch, values = self._held
            columns = {name: [value] for name, value in values.items()}
            rows = Rows([number], [epoch], [NOT_PRINTED], [0], columns=columns)
            self.builder.add_rows(rows)
        self._held = None

    def _add_metrics(self, number: int, words: Sequence[str]) -> None:
        epoch = self._held[1] if self._held else None
        self._add_held()
        metrics = {}
        for title, word in zip(self._metric_titles, words):
            try:
                metrics[title] = float(word)
            except ValueError:
                break
        if metrics:
            self.builder.add_validation(number, epoch, metrics)
