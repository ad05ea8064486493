"""A log with its curves, as plain data: what a page and a comparison need."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Sequence

from mmgradguard.core.log_analysis import LogAnalysis, Series


@dataclass
class LogPage:
    """An analysis and the columns it was made from.

    `total` names the column of the total loss, `terms` those of its terms.
    `epochs` and `iterations` are as printed, -1 where they are not; `epoch_lengths`
    holds 0 where it is not printed. `files` are (first row, path), ascending.
    """

    analysis: LogAnalysis
    series: list[Series]
    lines: Sequence[int]
    epochs: Sequence[int]
    iterations: Sequence[int]
    total: str | None = None
    terms: list[str] = field(default_factory=list)
    epoch_lengths: Sequence[int] = ()
    files: list[tuple[int, str]] = field(default_factory=list)

    def column(self, name: str) -> Sequence[float | None] | None:
        """Return a column by its name, None if the log has none."""
        for series in self.series:
            if series.name == name:
                return series.values
        return None

    def paths(self) -> list[str]:
        """Return the files that the rows came from, in order."""
        return list(dict.fromkeys(path for _, path in self.files))

    def losses(self) -> list[Series]:
        """Return the losses, the total first."""
        names = [self.total, *self.terms]
        found = {series.name: series for series in self.series}
        return [found[name] for name in names if name in found]

    def total_values(self) -> Sequence[float | None] | None:
        """Return the total loss, None if the log prints none."""
        return None if self.total is None else self.column(self.total)

    def positions(self) -> list[int]:
        """Return the iteration of each row, counted through all epochs.

        Where epochs restart the count and their length is not printed, the largest
        iteration that is printed stands for it. Rows without numbers count rows.
        """
        if not len(self.iterations) or min(self.iterations) < 0:
            return list(range(1, len(self.lines) + 1))
        if not self._restarts():
            return list(self.iterations)
        length = max(self.iterations)
        lengths = self.epoch_lengths or [0] * len(self.iterations)
        return [
            (max(epoch, 1) - 1) * (printed or length) + iteration
            for epoch, iteration, printed in zip(self.epochs, self.iterations, lengths)
        ]

    def span(self) -> str:
        """Return the first and the last row as printed, '' if there is no number."""
        if not len(self.lines):
            return ''
        first, last = self._place(0), self._place(-1)
        return f'{first} - {last}' if first and last else ''

    def is_printed(self) -> bool:
        """Return whether positions are iterations, and not rows."""
        return len(self.iterations) > 0 and min(self.iterations) >= 0

    def _place(self, row: int) -> str:
        epoch, iteration = self.epochs[row], self.iterations[row]
        shown = [f'[{n}]' for n in (epoch, iteration) if n >= 0]
        return ''.join(shown)

    def _restarts(self) -> bool:
        if any(self.epoch_lengths):
            return max(self.epochs, default=0) > 0
        return any(
            epoch > before and iteration <= last
            for before, epoch, last, iteration in zip(
                self.epochs, self.epochs[1:], self.iterations, self.iterations[1:]
            )
        )
