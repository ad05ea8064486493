"""What the frameworks print of a series: which entries a row averages.

mmengine's LogProcessor: the last `window` entries of each key, over epoch borders; a
key without ``loss``, ``time`` or ``grad_norm`` in it prints its last value.
mmcv 1.x: the last `interval` entries since the epoch began.
A norm has one entry for each optimizer step, so with accumulation the same number of
entries reaches back further.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Sequence

from synthetic_logs.layouts import LAYOUTS
from synthetic_logs.series import Steps
from synthetic_logs.truth import Options

MEAN_PATTERN = re.compile(r'.*(loss|time|data_time|grad_norm).*')


@dataclass(frozen=True)
class Row:
    """Where a row stands: its iteration (0-based), and the entries that it averages."""

    iteration: int
    epoch: int
    inner: int
    span: tuple[int, int]  # of iterations, half open
    norm_span: tuple[int, int]  # of optimizer steps, half open

    def __contains__(self, iteration: int) -> bool:
        return self.span[0] <= iteration < self.span[1]


def rows_of(options: Options) -> list[Row]:
    """Return the rows that the run prints."""
    rows = []
    per_epoch = options.epoch_length // options.interval
    for number in range(options.num_rows):
        epoch, place = divmod(number, per_epoch)
        inner = (place + 1) * options.interval - 1
        begin = epoch * options.epoch_length
        stop = begin + inner + 1
        # mmcv's buffer is emptied where an epoch begins
        floor = 0 if options.is_mmengine else begin
        span = (max(floor, stop - options.window), stop)
        rows.append(
            Row(begin + inner, epoch, inner, span, _norm_span(options, stop, floor))
        )
    return rows


def _norm_span(options: Options, stop: int, floor: int) -> tuple[int, int]:
    steps = stop // options.accumulation
    if options.format == 'steps':  # a row is a step
        return steps - 1, steps
    # the first step that ends in or after iteration `floor`
    first = -(-(floor + 1) // options.accumulation) - 1
    return max(first, steps - options.window, 0), steps


def mean(values: Sequence[float]) -> float:
    """Return the mean, NaN and infinities as floats give them; NaN of nothing."""
    return sum(values) / len(values) if values else math.nan


def print_values(
    options: Options, steps: Steps, rows: list[Row]
) -> list[dict[str, float]]:
    """Return the numbers of each row, in printed order.

    A norm is left out where no optimizer step has been taken yet.
    """
    layout = LAYOUTS[options.layout]
    names = [layout.total, *steps.terms, *steps.extras, 'time']
    columns = {'time': steps.times, **steps.terms, **steps.extras}
    columns[layout.total] = [sum(parts) for parts in zip(*steps.terms.values())]
    means = {
        name: not options.is_mmengine or MEAN_PATTERN.match(name) is not None
        for name in names
    }
    printed = []
    for row in rows:
        first, stop = row.span
        values = {}
        for name in names:
            column = columns[name]
            values[name] = mean(column[first:stop]) if means[name] else column[stop - 1]
        if options.has_norm and row.norm_span[0] < row.norm_span[1]:
            values['grad_norm'] = mean(steps.norms[slice(*row.norm_span)])
        printed.append(values)
    return printed
