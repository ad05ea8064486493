"""Fills a table block by block: new and lost terms, restarts, rows printed twice."""

from __future__ import annotations

import math
import operator
from array import array
from dataclasses import fields
from typing import Sequence, Tuple

from mmgradguard.logs.rows import Rows
from mmgradguard.logs.table import (
    NOT_PRINTED,
    Header,
    LogTable,
    Section,
    Validation,
)
from mmgradguard.logs.terms import tells_health

#: A term that first appears later than this is kept apart until the end: a line that
#: two processes wrote over each other must not cost a column of a million numbers.
_EARLY_ROWS = 256
#: And so are all beyond this number.
_MAX_COLUMNS = 2000
#: So many of those become columns, the most frequent ones first.
_MAX_LATE_TERMS = 64
#: A restart that keeps this share of what was reached is a resume from a checkpoint.
_KEPT_BY_RESUME = 0.5
#: Without epochs, a row up to here says that a training has only begun.
_EARLY_ITERATION = 100

Position = Tuple[int, int]


class TableBuilder:
    """Takes rows, metrics and headers in the order of the file.

    Args:
        source: What was asked for, for the table.
        keeps_bare_rows: Keep rows that print neither a loss nor a norm, too.
    """

    def __init__(self, source: str, *, keeps_bare_rows: bool = False) -> None:
        self.num_bare_rows = 0
        self._keeps_bare_rows = keeps_bare_rows
        self.table = LogTable(source, '')
        self._late: dict[str, tuple[array[int], array[float]]] = {}
        self._position: Position = (NOT_PRINTED, NOT_PRINTED)
        self._header: Header | None = None
        self._older: Header | None = None
        self._is_restart = self._says_resume = False

    def begin_file(self, path: str) -> None:
        """Let what follows come from another file."""
        self.table.files.append(path)
        self._is_restart = True

    def note_header(self, header: Header) -> None:
        """Remember a header: the next row begins a section.

        It may still be filled in; what it lacks by then is taken from a header that
        was noted before it and had no rows.
        """
        self._header, self._older = header, self._header or self._older
        self._is_restart = True

    def note_resume(self) -> None:
        """Remember that the log itself says that it resumes."""
        self._is_restart = self._says_resume = True

    def add_validation(
        self, line: int, epoch: int | None, metrics: dict[str, float]
    ) -> None:
        """Add a row of metrics; a validation may print its own over several lines."""
        after = len(self.table) - 1
        last = self.table.validations[-1] if self.table.validations else None
        if last and (last.after_row, last.epoch) == (after, epoch):
            if all(_same(last.metrics.get(k), v) for k, v in metrics.items()):
                return  # printed twice
            if not set(last.metrics) & set(metrics):
                last.metrics.update(metrics)
                return
        self.table.validations.append(Validation(line, after, epoch, metrics))

    def add_rows(self, rows: Rows) -> None:
        """Append rows; one that repeats the row before it, all numbers, is none.

        Nor is one that says nothing of how the training goes: only ``lr`` and times.
        """
        if not (self._keeps_bare_rows or tells_health(rows.columns)):
            self.num_bare_rows += len(rows.lines)
            self.table.num_skipped_lines += len(rows.lines)
            return
        twins = self._walk(rows)
        if twins:
            rows = rows.without(twins)
        table = self.table
        first, num = len(table), len(rows.lines)
        if not num:
            return
        table.lines.extend(rows.lines)
        table.epochs.extend(rows.epochs)
        table.iterations.extend(rows.iterations)
        table.epoch_lengths.extend(rows.epoch_lengths)
        if rows.stamps:
            table.add_stamps(first, rows.stamps)
        for index, skip in enumerate(rows.skips):
            if isinstance(skip, str):
                table.skips[first + index] = skip
        for name, values in rows.columns.items():
            column = table.columns.get(name)
            if column is None:
                self._add_term(name, first, values)
                continue
            if len(column) != first:
                self._fill(name, first)
            column.extend(values)

    def finish(self) -> LogTable:
        """Return the table, with the terms that appeared late as columns."""
        table = self.table
        total = len(table)
        for name, column in table.columns.items():
            if len(column) != total:
                self._fill(name, total)
        late = sorted(self._late.items(), key=lambda item: -len(item[1][0]))
        for name, (places, values) in late[:_MAX_LATE_TERMS]:
            column, seen = array('d', [math.nan]) * total, bytearray(total)
            for place, value in zip(places, values):
                column[place], seen[place] = value, 1
            table.columns[name] = column
            table.absent[name] = array('q', (i for i in range(total) if not seen[i]))
        self._late.clear()
        if not table.sections:
            file = table.files[0] if table.files else table.source
            table.sections.append(Section(0, 'start', file, self._take_header()))
        return table

    def _add_term(self, name: str, first: int, values: Sequence[float]) -> None:
        """Add a new term: as a column at once, or kept apart until the end."""
        if first < _EARLY_ROWS and len(self.table.columns) < _MAX_COLUMNS:
            column = self.table.columns[name] = array('d', [math.nan]) * first
            column.extend(values)
            if first:
                self.table.absent[name] = array('q', range(first))
            return
        places, kept = self._late.setdefault(name, (array('q'), array('d')))
        places.extend(range(first, first + len(values)))
        kept.extend(values)

    def _fill(self, name: str, stop: int) -> None:
        """Fill a column up to a row: not at each row that lacks it, which is slow."""
        column = self.table.columns[name]
        first = len(column)
        absent = self.table.absent.setdefault(name, array('q'))
        absent.extend(range(first, stop))
        column.extend(array('d', [math.nan]) * (stop - first))

    def _walk(self, rows: Rows) -> list[int]:
        """Open sections where they begin; return which rows are printed twice."""
        first = len(self.table)
        twins: list[int] = []
        epoch, iteration = self._position
        places = list(zip(rows.epochs, rows.iterations))
        if not self._is_restart:
            follow = places[:1] > [self._position]
            if follow and all(map(operator.lt, places, places[1:])):
                self._position = places[-1]
                return twins  # the usual case, quickly
        for index, (e, i) in enumerate(places):
            goes_on = i > iteration if e == epoch else e > epoch
            if not goes_on and i == iteration and e == epoch:
                if e != i and self._is_twin(rows, index):
                    twins.append(index)
                    continue
                goes_on = True
            if self._is_restart or not goes_on:
                self._open_section(
                    first + index - len(twins), (epoch, iteration), (e, i)
                )
            epoch, iteration = e, i
        self._position = (epoch, iteration)
        return twins

    def _open_section(self, row: int, before: Position, now: Position) -> None:
        table = self.table
        reason = self._reason(before, now) if table.sections else 'start'
        header = self._take_header()
        table.sections.append(Section(row, reason, table.files[-1], header))
        self._is_restart = self._says_resume = False

    def _take_header(self) -> Header:
        header = self._header or Header()
        if self._older is not None:
            for part in fields(header):
                if not getattr(header, part.name):
                    setattr(header, part.name, getattr(self._older, part.name))
        self._header = self._older = None
        return header

    def _reason(self, before: Position, now: Position) -> str:
        if self._says_resume:
            return 'resume'
        epoch, iteration = now
        if epoch == NOT_PRINTED:
            is_early, kept = iteration <= _EARLY_ITERATION, iteration
            reached = before[1]
        else:
            is_early, kept, reached = epoch <= 1, epoch, before[0]
        if now > before:
            return 'resume'
        is_new = is_early or kept < _KEPT_BY_RESUME * reached
        return 'experiment' if is_new else 'resume'

    def _is_twin(self, rows: Rows, index: int) -> bool:
        if index:
            pairs = ((v[index - 1], v[index]) for v in rows.columns.values())
            return all(_same(a, b) for a, b in pairs)
        if not len(self.table):
            return False
        last = len(self.table) - 1
        for name, column in self.table.columns.items():
            was_absent = len(column) <= last
            if was_absent != (name not in rows.columns):
                return False
            if not was_absent and not _same(column[-1], rows.columns[name][0]):
                return False
        return True


def _same(a: float | None, b: float | None) -> bool:
    return a == b or (a != a and b != b)
