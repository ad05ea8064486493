"""Tables of training rows for tests, written as the numbers that matter in them."""

from __future__ import annotations

import math
import random
from array import array
from typing import Any, Mapping, Sequence

from mmgradguard.logs.table import Header, LogTable, Section, Validation

NAN, INF = math.nan, math.inf


def make_table(
    columns: Mapping[str, Sequence[float]],
    *,
    interval: int = 50,
    epoch_rows: int = 1000,
    config: dict[str, Any] | None = None,
    kind: str = 'mmengine_text',
    validations: Sequence[float] = (),
    sections: Sequence[tuple[int, str]] = (),
) -> LogTable:
    """Return a table of rows printed every ``interval`` iterations.

    A value None stands for a key that the row lacks. `validations` are metrics, one
    after the last row each; `sections` are (first row, reason) after the first one.
    """
    table = LogTable('synthetic.log', kind)
    table.files.append('synthetic.log')
    num_rows = len(next(iter(columns.values())))
    table.lines = array('q', range(1, num_rows + 1))
    table.epochs = array('q', (row // epoch_rows + 1 for row in range(num_rows)))
    table.iterations = array(
        'q', ((row % epoch_rows + 1) * interval for row in range(num_rows))
    )
    table.epoch_lengths = array('q', [0]) * num_rows
    for name, values in columns.items():
        assert len(values) == num_rows, name
        table.columns[name] = array('d', (NAN if v is None else v for v in values))
        missing = [row for row, value in enumerate(values) if value is None]
        if missing:
            table.absent[name] = array('q', missing)
    header = Header(config=config)
    table.sections.append(Section(0, 'start', 'synthetic.log', header))
    for first, reason in sections:
        table.sections.append(Section(first, reason, 'synthetic.log'))
    for metric in validations:
        table.validations.append(
            Validation(num_rows + 1, num_rows - 1, 1, {'bbox_mAP': metric})
        )
    return table


def noisy(
    values: Sequence[float], *, sigma: float = 0.05, seed: int = 0
) -> list[float]:
    """Return ``values`` times log-normal noise."""
    rng = random.Random(seed)
    return [value * math.exp(rng.gauss(0, sigma)) for value in values]


def falling(num_rows: int, *, start: float = 3.0, end: float = 1.0) -> list[float]:
    """Return a loss that falls as losses do: fast at first."""
    return [end + (start - end) / (1 + row / 10) for row in range(num_rows)]


def healthy(num_rows: int, *, seed: int = 0) -> dict[str, list[float]]:
    """Return columns of a healthy detector: two losses, their total, norm and lr."""
    cls = noisy(falling(num_rows), seed=seed)
    bbox = noisy(falling(num_rows, start=2.0, end=0.8), seed=seed + 1)
    return {
        'lr': [1e-4] * num_rows,
        'time': [0.5] * num_rows,
        'grad_norm': noisy([8.0] * num_rows, sigma=0.15, seed=seed + 2),
        'loss': [a + b for a, b in zip(cls, bbox)],
        'loss_cls': cls,
        'loss_bbox': bbox,
    }


def plant(
    columns: dict[str, list[float]], row: int, **factors: float
) -> dict[str, list[float]]:
    """Multiply values of one row, and let the total be the sum again."""
    for name, factor in factors.items():
        columns[name][row] *= factor
    columns['loss'][row] = columns['loss_cls'][row] + columns['loss_bbox'][row]
    return columns
