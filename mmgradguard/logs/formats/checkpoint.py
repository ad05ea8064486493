"""The history of every iteration that mmengine keeps in a checkpoint."""

from __future__ import annotations

import math
from array import array
from typing import Mapping, Sequence

from mmgradguard.core.errors import LogParseError
from mmgradguard.logs.builder import TableBuilder
from mmgradguard.logs.formats.base import STEP
from mmgradguard.logs.rows import Rows
from mmgradguard.logs.table import NOT_PRINTED, LogTable
from mmgradguard.logs.terms import tells_health

NAME = 'checkpoint'
VALUES_ARE = STEP
_TRAIN = 'train/'


def table_from_history(path: str, history: Mapping[str, Sequence[float]]) -> LogTable:
    """Return the history of a message hub as a table, one row per iteration.

    Iterations count from 1, or so that the last ones are aligned where the hub has
    forgotten the first. A quantity of every optimizer step stands at the iteration
    that ended its accumulation.

    Args:
        path: The checkpoint.
        history: Values by name, as in the hub: ``train/loss``.

    Raises:
        LogParseError: If it holds no history of a training.
    """
    columns = {
        name[len(_TRAIN) :]: values
        for name, values in history.items()
        if name.startswith(_TRAIN) and len(values)
    }
    if not tells_health(columns):
        raise LogParseError(f'{path}: a checkpoint without a history of its training')
    num = max(map(len, columns.values()))
    builder = TableBuilder(path, keeps_bare_rows=True)
    builder.begin_file(path)
    builder.table.format = NAME
    rows = Rows(
        lines=list(range(1, num + 1)),
        epochs=[NOT_PRINTED] * num,
        iterations=list(range(1, num + 1)),
        epoch_lengths=[0] * num,
    )
    rows.columns = {n: v for n, v in columns.items() if len(v) == num}
    builder.add_rows(rows)
    table = builder.finish()
    for name, values in columns.items():
        if len(values) < num:
            _add_sparse(table, name, values)
    return table


def _add_sparse(table: LogTable, name: str, values: Sequence[float]) -> None:
    num = len(table)
    every, rest = divmod(num, len(values))
    is_regular = rest < every and every > 1
    first = every - 1 if is_regular else num - len(values)
    step = every if is_regular else 1
    places = range(first, first + step * len(values), step)
    column = array('d', [math.nan]) * num
    for place, value in zip(places, values):
        column[place] = value
    table.columns[name] = column
    kept = set(places)
    table.absent[name] = array('q', (row for row in range(num) if row not in kept))
