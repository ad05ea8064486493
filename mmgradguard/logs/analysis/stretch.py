"""The rows of one experiment: what every rule of the analysis works on."""

from __future__ import annotations

from array import array
from bisect import bisect_left

from mmgradguard.logs.analysis.runs import unite
from mmgradguard.logs.table import Header, LogTable, Validation
from mmgradguard.logs.terms import is_loss_term, total_of

#: A term that is gone, or new, for so many rows changes what the total is a sum of.
_LASTING = 16


class Stretch:
    """The rows ``first`` to ``stop`` of a table, numbered from 0.

    Attributes:
        norm: Column ``grad_norm``, None where it was never logged.
        total: The total loss; the sum of the terms in logs that print none.
        total_name: As printed, None if it was summed.
        terms: Names of the loss terms, without the total.
        resumes: Rows at which the training was resumed.
    """

    def __init__(self, table: LogTable, first: int, stop: int) -> None:
        self.table, self.first, self.stop = table, first, stop
        self.header: Header = table.section_of(first).header
        self.resumes = [
            section.first_row - first
            for section in table.sections
            if section.reason == 'resume' and first < section.first_row < stop
        ]
        names = [name for name in table.columns if self._has_values(name)]
        self.total_name = total_of(names)
        self.terms = [n for n in names if is_loss_term(n) and n != self.total_name]
        self.norm = self.column('grad_norm') if 'grad_norm' in names else None
        self.lr = self.column('lr') if 'lr' in names else None
        self.total: array[float] | None = None
        if self.total_name:
            self.total = self.column(self.total_name)
        elif self.terms:
            columns = [self.column(name) for name in self.terms]
            self.total = array('d', map(sum, zip(*columns)))

    def __len__(self) -> int:
        return self.stop - self.first

    def column(self, name: str) -> array[float]:
        """Return a column; rows that lack the key hold NaN."""
        return self.table.columns[name][self.first : self.stop]

    def near(self, name: str, first: int, stop: int) -> array[float]:
        """Return a few rows of a column."""
        return self.table.columns[name][self.first + first : self.first + stop]

    def absent(self, name: str) -> array[int]:
        """Return the rows that lack a key, ascending."""
        rows = self.table.absent.get(name)
        if rows is None:
            return array('q')
        own = rows[bisect_left(rows, self.first) : bisect_left(rows, self.stop)]
        return array('q', (row - self.first for row in own)) if self.first else own

    def lacks(self, name: str, row: int) -> bool:
        """Return whether a row lacks a key."""
        rows = self.table.absent.get(name, ())
        place = bisect_left(rows, self.first + row)
        return place < len(rows) and rows[place] == self.first + row

    def regime_changes(self) -> list[int]:
        """Return the rows at which a loss term appears or vanishes for long."""
        changes: set[int] = set()
        for name in self.terms:
            for first, last in unite((row, row) for row in self.absent(name)):
                if last - first + 1 >= _LASTING:
                    changes |= {first, last + 1}
        return sorted(c for c in changes if 0 < c < len(self))

    def epoch(self, row: int) -> int | None:
        """Return the epoch as printed."""
        value = self.table.epochs[self.first + row]
        return value if value >= 0 else None

    def iteration(self, row: int) -> int | None:
        """Return the iteration as printed."""
        value = self.table.iterations[self.first + row]
        return value if value >= 0 else None

    def validations(self) -> list[Validation]:
        """Return the rows of metrics that belong to these rows."""
        rows = range(self.first, self.stop)
        return [v for v in self.table.validations if v.after_row in rows]

    def _has_values(self, name: str) -> bool:
        if name not in self.table.absent:
            return True
        return len(self.absent(name)) < len(self)


def stretches(table: LogTable) -> list[Stretch]:
    """Return one stretch for each experiment of a table."""
    starts = [
        s.first_row for s in table.sections if s.reason != 'resume' or not s.first_row
    ]
    starts = sorted({0, *starts})
    stops = [*starts[1:], len(table)]
    return [Stretch(table, a, b) for a, b in zip(starts, stops) if b > a]
