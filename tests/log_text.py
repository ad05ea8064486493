"""Synthetic lines of training logs, and what a table made of them shows."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from mmgradguard.logs.read import read_log
from mmgradguard.logs.table import LogTable

STAMP = '2024/05/10 15:46:31 - mmengine - INFO - '
OLD_STAMP = '2020-10-28 21:59:39,109 - mmdet - INFO - '
#: What a row of `mmengine_row` says.
MMENGINE_ROW = {
    'lr': 2e-3,
    'time': 0.8167,
    'data_time': 0.0169,
    'memory': 15943,
    'grad_norm': 3.4572,
    'loss': 1.5043,
    'loss_cls': 0.8781,
    'loss_bbox': 0.6262,
}


def mmengine_row(
    iteration: int = 50,
    *,
    epoch: int = 1,
    stamp: str = STAMP,
    gap: str = '  ',
    tail: str = 'loss: 1.5043  loss_cls: 0.8781  loss_bbox: 0.6262',
) -> str:
    """Return a row of mmengine, 788 iterations to an epoch."""
    items = [
        f'{stamp}Epoch(train)  [{epoch}][{iteration:3d}/788]',
        'lr: 2.0000e-03',
        'eta: 4:14:00',
        'time: 0.8167',
        'data_time: 0.0169',
        'memory: 15943',
        'grad_norm: 3.4572',
        tail,
    ]
    return '  '.join(items).replace('  ', gap)


def mmcv_row(
    iteration: int = 50,
    *,
    epoch: int = 1,
    stamp: str = OLD_STAMP,
    eta: str = '5:31:28',
    tail: str = 'loss_cls: 0.8781, loss_bbox: 0.6262, loss: 1.5043, grad_norm: 3.4572',
) -> str:
    """Return a row of mmcv 1.x, 788 iterations to an epoch."""
    return (
        f'{stamp}Epoch [{epoch}][{iteration}/788]\tlr: 2.000e-02, eta: {eta}, '
        f'time: 0.289, data_time: 0.101, memory: 2570, {tail}'
    )


def read_text(folder: Path, text: str | bytes, name: str = 'x.log') -> LogTable:
    """Write ``text`` to a file, line ends as they are, and read it."""
    path = folder / name
    path.write_bytes(text.encode('utf-8') if isinstance(text, str) else text)
    return read_log([path])


def row_of(table: LogTable, row: int) -> dict[str, float]:
    """Return the numbers that a row prints, in the order of the columns."""
    return {
        name: values[row]
        for name, values in table.columns.items()
        if row not in table.absent.get(name, ())
    }


def sections_of(table: LogTable) -> list[tuple[int, str]]:
    """Return where sections begin, and why."""
    return [(section.first_row, section.reason) for section in table.sections]


def contents_of(table: LogTable) -> dict[str, Any]:
    """Return all that a table holds but for the names of files, to be compared."""
    num = len(table)
    return {
        'format': table.format,
        'places': list(zip(table.lines, table.epochs, table.iterations)),
        'lengths': list(table.epoch_lengths),
        'columns': {n: list(map(repr, v)) for n, v in table.columns.items()},
        'absent': {n: list(rows) for n, rows in table.absent.items()},
        'sections': [(s.first_row, s.reason, repr(s.header)) for s in table.sections],
        'validations': list(map(repr, table.validations)),
        'stamps': [table.time_of(row) for row in range(num)],
        'skips': table.skips,
        'num_skipped_lines': table.num_skipped_lines,
    }


def is_nan(value: float) -> bool:
    """Whether a column holds NaN there."""
    return math.isnan(value)
