"""How many steps stand behind a printed value, and what one of them must have been."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any, Mapping

from mmgradguard.logs.analysis.config_facts import find_number
from mmgradguard.logs.analysis.stretch import Stretch
from mmgradguard.logs.formats import values_of
from mmgradguard.logs.formats.base import OTHER, STEP, WINDOW_MEAN

_ROWS_LOOKED_AT = 2000


@dataclass
class Timing:
    """Iterations between rows, entries in a mean, iterations per optimizer step.

    None where it is not known; `inferred` names those that no config states.
    """

    interval: int | None
    window: int | None
    accumulation: int | None
    inferred: list[str]

    @property
    def loss_rows(self) -> int:
        """Return on how many rows one step shows in a loss."""
        return self._rows(1)

    @property
    def norm_rows(self) -> int:
        """Return on how many rows one step shows in the norm."""
        return self._rows(self.accumulation or 1)

    @property
    def longest_smear(self) -> int:
        """Return `loss_rows`, or what a window of 50 would make of it if unknown."""
        if 'window' not in self.inferred:
            return self.loss_rows
        return max(self.loss_rows, 50 // (self.interval or 50))

    def _rows(self, iterations_per_entry: int) -> int:
        if not self.window or not self.interval:
            return 1
        return max(1, math.ceil(self.window * iterations_per_entry / self.interval))

    def entries(self, row: int, *, is_norm: bool) -> int | None:
        """Return how many entries are averaged in a value of ``row``.

        A window fills only in the course of the first rows.
        """
        if not self.window:
            return None
        if not self.interval:
            return self.window
        per_entry = (self.accumulation or 1) if is_norm else 1
        return max(1, min(self.window, (row + 1) * self.interval // per_entry))


def find_timing(stretch: Stretch) -> Timing:
    """Return the timing, from the config in the header where there is one."""
    config: Mapping[str, Any] = stretch.header.config or {}
    interval = _interval(stretch)
    inferred: list[str] = []
    accumulation = find_number(
        config,
        'optim_wrapper.accumulative_counts',
        'optimizer_config.cumulative_iters',
    )
    values = values_of(stretch.table.format)
    if values == STEP:
        return Timing(interval or 1, 1, None, inferred)
    if values == OTHER:
        return Timing(interval, None, accumulation, inferred)
    window = interval
    if values == WINDOW_MEAN:
        window = find_number(config, 'log_processor.window_size')
        if window is None:
            # mmdet prints every 50 iterations the mean of 50; so do mmengine's 10 of 10
            window = interval
            inferred.append('window')
    if accumulation is None and not config:
        inferred.append('accumulation')
    return Timing(interval, window, accumulation, inferred)


def single_step(
    value: float, typical: float | None, entries: int | None
) -> float | None:
    """Return what one step must have had if it alone moved a mean of ``entries``.

    An upper bound: several bad steps share the excess. None if nothing can be said.

    >>> round(single_step(3.1e7, 3.2, 50) / 1e9, 2)
    1.55
    """
    if entries is None or not math.isfinite(value):
        return None
    usual = 0.0 if typical is None else typical
    single = usual + (value - usual) * entries
    return single if math.isfinite(single) else None


def _interval(stretch: Stretch) -> int | None:
    stop = stretch.first + min(len(stretch), _ROWS_LOOKED_AT)
    rows = stretch.table.iterations[stretch.first : stop]
    steps = Counter(b - a for a, b in zip(rows, rows[1:]) if b > a >= 0)
    if steps:
        return steps.most_common(1)[0][0]
    return rows[0] if len(rows) and 0 < rows[0] <= 1000 else None
