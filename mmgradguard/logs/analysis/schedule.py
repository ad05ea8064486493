"""Landmarks of the run - warmup, lr steps, epochs, resumes - and what coincides."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Sequence

from mmgradguard.logs.analysis.stretch import Stretch

#: A change of lr by this factor between two rows is a step of the schedule.
_STEP = 1.9
#: A peak later than this share of the rows is one of a cyclic schedule, not of warmup.
_LATE = 0.2
_CHUNK = 256


@dataclass
class Schedule:
    """Rows at which the schedule does something."""

    warmup_end: int | None = None
    lr_peak: int | None = None
    lr_steps: list[int] = field(default_factory=list)


def read_schedule(lr: Sequence[float] | None) -> Schedule:
    """Find the landmarks of a column of learning rates.

    >>> read_schedule([1e-4, 2e-4, 3e-4, 3e-4, 3e-4, 3e-5, 3e-5]).warmup_end
    2
    """
    schedule = Schedule()
    if lr is None or len(lr) < 3:
        return schedule
    row = 1
    while row < len(lr) and lr[row] >= lr[row - 1] > 0 and lr[row] < 2e3:
        if lr[row] == lr[row - 1] and not _rises_later(lr, row):
            break
        row += 1
    if row > 1 and lr[row - 1] > lr[0] * 1.01 and row < len(lr):
        if row - 1 > _LATE * len(lr) and row - 1 > 20:
            schedule.lr_peak = row - 1
        else:
            schedule.warmup_end = row - 1
    for first in range(row, len(lr), _CHUNK):
        chunk = lr[first - 1 : first + _CHUNK]
        if max(chunk) < _STEP * min(chunk):
            continue
        for later in range(first, first + len(chunk) - 1):
            before, now = lr[later - 1], lr[later]
            if before > 0 and now > 0 and not 1 / _STEP < now / before < _STEP:
                schedule.lr_steps.append(later)
    return schedule


def coincidences(stretch: Stretch, schedule: Schedule, row: int) -> list[str]:
    """Return what the schedule does where ``row`` is, see `COINCIDENCES`."""
    found = []
    end = schedule.warmup_end
    if end is not None:
        if -1 <= row - end <= 1:
            found.append('warmup_end')
        elif row < end:
            found.append('warmup')
    if any(0 <= row - step <= 1 for step in schedule.lr_steps):
        found.append('lr_step')
    peak = schedule.lr_peak
    if peak is not None and abs(row - peak) <= max(2, len(stretch) // 20):
        found.append('lr_peak')
    if row and stretch.epoch(row) != stretch.epoch(row - 1):
        found.append('epoch_border')
    if any(0 <= row - resume <= 1 for resume in stretch.resumes):
        found.append('resume')
    return found


def _rises_later(lr: Sequence[float], row: int) -> bool:
    # printed with few digits, a slow warmup repeats a value for some rows
    return any(value > lr[row] for value in lr[row : row + 8])
