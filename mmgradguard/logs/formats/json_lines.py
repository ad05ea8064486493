"""What every format of one JSON object per line has in common."""

from __future__ import annotations

import html
import json
import math
import re
from array import array
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Mapping, Sequence

from mmgradguard.logs.builder import TableBuilder
from mmgradguard.logs.formats.base import MAX_PAIRS, LogParser
from mmgradguard.logs.formats.text_clean import clean
from mmgradguard.logs.rows import Rows
from mmgradguard.logs.table import NOT_PRINTED

#: So many objects are read at once: the caches of a processor hold them.
_MAX_GROUP = 256
#: As people quote them; no underscores, which a time stamp of a name may have.
_NUMBER = re.compile(
    r'\s*[-+]?(?:\d{1,40}\.?\d{0,40}(?:e[-+]?\d{1,4})?|\.\d{1,40}|nan|inf(?:inity)?)\s*',
    re.IGNORECASE,
)


@dataclass
class Plan:
    """What to do with the objects that have the same keys.

    `columns` maps the keys of numbers that training rows print to names of columns,
    `metrics` those of a validation to names of metrics; either may be empty.
    """

    columns: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, str] = field(default_factory=dict)
    epoch: str | None = None
    iteration: str | None = None


#: For objects that are known and of no use: no line is lost with them.
NOTHING = Plan()


def load_object(line: str) -> dict[str, Any] | None:
    """Return the JSON object of a line, None if there is none.

    What a container puts before it, quotes of a mail and pasted HTML are taken off.
    """
    start, end = line.find('{'), line.rfind('}')
    if start < 0 or end < start:
        return None
    text = line[start : end + 1]
    for candidate in (text, html.unescape(text)):
        try:
            row = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        return row if isinstance(row, dict) else None
    return None


def load_objects(lines: Sequence[str]) -> list[dict[str, Any] | None]:
    """Return the JSON object of each line, None where there is none."""
    if all(line[:1] == '{' and line[-1:] == '}' for line in lines):
        try:  # one call for all of them: the keys are then shared, too
            rows = json.loads(f'[{",".join(lines)}]')
        except (ValueError, RecursionError):
            rows = []
        if len(rows) == len(lines):
            return rows  # type: ignore[no-any-return]
    return [load_object(line) for line in lines]


def as_number(value: Any) -> float | None:
    """Return a number, also one in a string; None for anything else."""
    if isinstance(value, str):
        return float(value) if _NUMBER.fullmatch(value) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def as_count(value: Any) -> int:
    """Return an epoch or iteration, `NOT_PRINTED` if it is none."""
    number = as_number(value)
    if number is None or not 0 <= number < 2**53:
        return NOT_PRINTED
    return int(number)


class JsonLinesParser(LogParser):
    """Reads objects in groups of the same keys; a subclass says what the keys mean."""

    def __init__(self, builder: TableBuilder) -> None:
        super().__init__(builder)
        self._plans: dict[tuple[str, ...], Plan | None] = {}

    def plan(self, row: Mapping[str, Any]) -> Plan | None:
        """Return what to do with objects that have the keys of ``row``.

        None if such an object is of no use, and counted as that.
        """
        raise NotImplementedError

    def prepare(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return the object to plan for, without anything nested."""
        return row

    def read_header(self, row: Mapping[str, Any]) -> bool:
        """Read a header; return whether ``row`` is one."""
        return False

    def feed(self, first: int, lines: Sequence[str], is_open: bool = False) -> None:
        """Read consecutive lines.

        Args:
            first: Number of the first of them.
            lines: Without their ends.
            is_open: The last one has no end, and the file ends there.
        """
        for start in range(0, len(lines), _MAX_GROUP):
            self._feed_some(first + start, lines[start : start + _MAX_GROUP])
        if is_open and '{' in lines[-1]:
            self.builder.table.is_cut = load_object(lines[-1]) is None

    def _feed_some(self, first: int, lines: Sequence[str]) -> None:
        group: list[dict[str, Any]] = []
        numbers: list[int] = []
        keys: list[str] = []
        mode = None
        for number, row in enumerate(load_objects(lines), first):
            if row is None:
                line = lines[number - first]
                failure = self._failures.find(number, clean(line))
                if failure is None:
                    self.skip(line)
                    continue
                if group:
                    self._add(numbers, group)
                    group, numbers = [], []
                self._failures.add(failure)
                continue
            row = self.prepare(row)
            if group and (list(row) != keys or row.get('mode') != mode):
                self._add(numbers, group)
                group, numbers = [], []
            if not group:
                keys, mode = list(row), row.get('mode')
            group.append(row)
            numbers.append(number)
        if group:
            self._add(numbers, group)

    def _add(self, numbers: list[int], group: list[dict[str, Any]]) -> None:
        plan = self._plan_of(group[0])
        if plan is None:
            self.builder.table.num_skipped_lines += len(group)
            return
        if plan.columns and plan.metrics and len(group) > 1:
            for number, row in zip(numbers, group):  # metrics follow their own row
                self._add([number], [row])
            return
        if plan.columns:
            try:
                values = array('d', _values(list(plan.columns), group))
            except (TypeError, OverflowError):
                self._add_singly(plan, numbers, group)
            else:
                num, names = len(plan.columns), plan.columns.values()
                columns = {name: values[i::num] for i, name in enumerate(names)}
                self._add_rows(plan, Rows(numbers, columns=columns), group)
        if plan.metrics:
            for number, row in zip(numbers, group):
                self._add_metrics(plan, number, row)

    def _plan_of(self, row: Mapping[str, Any]) -> Plan | None:
        if len(row) > MAX_PAIRS:
            return None
        keys = (*row, str(row.get('mode')))
        if keys not in self._plans:
            if self.read_header(row):
                return NOTHING  # not remembered: each one is to be read
            self._plans[keys] = self.plan(row)
        return self._plans[keys]

    def _add_singly(
        self, plan: Plan, numbers: list[int], group: list[dict[str, Any]]
    ) -> None:
        for number, row in zip(numbers, group):
            columns = {}
            for key, name in plan.columns.items():
                value = as_number(row[key])
                if value is not None:
                    columns[name] = [value]
            self._add_rows(plan, Rows([number], columns=columns), [row])

    def _add_rows(
        self, plan: Plan, rows: Rows, group: Sequence[Mapping[str, Any]]
    ) -> None:
        rows.epochs = _counts(plan.epoch, group)
        rows.iterations = _counts(plan.iteration, group)
        rows.epoch_lengths = [0] * len(group)
        if 'skipped' in group[0]:
            rows.skips = [row['skipped'] for row in group]
        self.builder.add_rows(rows)

    def _add_metrics(self, plan: Plan, number: int, row: Mapping[str, Any]) -> None:
        values = ((name, as_number(row[key])) for key, name in plan.metrics.items())
        metrics = {name: value for name, value in values if value is not None}
        epoch = as_count(row.get(plan.epoch)) if plan.epoch else NOT_PRINTED
        if metrics:
            self.builder.add_validation(
                number, None if epoch == NOT_PRINTED else epoch, metrics
            )


def _values(keys: Sequence[str], group: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return the values of all objects, one after the other: the quickest way."""
    if len(keys) == 1:
        return [row[keys[0]] for row in group]
    values: list[Any] = []
    of_keys = itemgetter(*keys)
    for row in group:
        values += of_keys(row)
    return values


def _counts(key: str | None, group: Sequence[Mapping[str, Any]]) -> list[int]:
    if key is None:
        return [NOT_PRINTED] * len(group)
    values: list[Any] = [row.get(key) for row in group]
    if set(map(type, values)) == {int} and 0 <= min(values) <= max(values) < 2**53:
        return values
    return [as_count(value) for value in values]
