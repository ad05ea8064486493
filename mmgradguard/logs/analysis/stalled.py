"""GG301: the loss stays where it began, and nothing is learned."""

from __future__ import annotations

import math
import statistics
from typing import Sequence

from mmgradguard.core.robust import median_error, robust_sigma
from mmgradguard.logs.analysis.config_facts import find
from mmgradguard.logs.analysis.episode import Episode
from mmgradguard.logs.analysis.numbers import finite, median
from mmgradguard.logs.analysis.stretch import Stretch
from mmgradguard.logs.table import Validation

#: Fewer rows or iterations prove nothing.
_ROWS, _ITERATIONS = 24, 1000
#: The end is at least this share of the beginning: without and with an AP of zero.
_FLAT, _FLAT_AND_ZERO = 0.97, 0.9
#: And so is the lowest block of rows.
_LOWEST = 0.94
#: Below this a metric is zero; a fine-tune of a small lr may stay where it is.
_ZERO, _SMALL_LR = 0.005, 3e-5
#: So many validations of exactly zero, with nothing else, are no slow start.
_ZERO_EPOCHS = 5
_BOX_WORDS = ('bbox', 'box', 'iou')


def find_stall(
    stretch: Stretch, interval: int, unusual: Sequence[tuple[int, int]]
) -> Episode | None:
    """Return an episode over all rows if the loss never fell, else None.

    A run that begins from trained weights may have nothing left to fall: a metric above
    zero, a small lr, ``load_from``, or a log that begins in mid-training, excuse it.
    """
    total, num_rows = stretch.total, len(stretch)
    if total is None or num_rows < _ROWS or num_rows * interval < _ITERATIONS:
        return None
    if sum(b - a + 1 for a, b in unusual) > 0.2 * num_rows:
        return None
    for dead in (_dead_metric(stretch), _no_targets(stretch)):
        if dead is None:
            continue
        return Episode('not_learning', dead, num_rows - 1, median(total), False)
    metrics = [max(v.metrics.values()) for v in _with_metrics(stretch)]
    is_zero = bool(metrics) and max(metrics) < _ZERO
    if metrics and not is_zero:
        return None
    if not is_zero and (_is_late(stretch) or _is_fine_tune(stretch)):
        return None
    first, last = _ends(total)
    if first is None or last is None or first <= 0:
        return None
    noise = _noise(total)
    flat = _FLAT_AND_ZERO if is_zero else min(_FLAT, 1 - 2 * noise)
    if last < flat * first:
        return None
    if not is_zero and _lowest_block(total) < min(_LOWEST, 1 - 3 * noise) * first:
        return None
    return Episode('not_learning', 0, num_rows - 1, first, recovered=False)


def _dead_metric(stretch: Stretch) -> int | None:
    """Return the row from which on a metric is zero for good, None if it is not.

    Some first epochs of zero are usual, for transformers above all.
    """
    validations = _with_metrics(stretch)
    values = [max(v.metrics.values()) for v in validations]
    num_zero = 0
    for value in reversed(values):
        if value >= _ZERO / 10:
            break
        num_zero += 1
    if num_zero == len(values) >= _ZERO_EPOCHS:
        return 0
    if num_zero < 2 or num_zero == len(values) or max(values) < 10 * _ZERO:
        return None
    good = validations[len(values) - num_zero - 1]
    return max(good.after_row + 1 - stretch.first, 0)


def _no_targets(stretch: Stretch) -> int | None:
    """Return 0 if no box is ever learned from: every box loss is zero throughout."""
    boxes = [n for n in stretch.terms if any(w in n.lower() for w in _BOX_WORDS)]
    columns: list[Sequence[float]] = [stretch.column(name) for name in boxes]
    columns = columns or [stretch.total or ()]
    is_zero = all(len(c) and not any(c) for c in columns)
    return 0 if is_zero else None


def _with_metrics(stretch: Stretch) -> list[Validation]:
    return [v for v in stretch.validations() if v.metrics]


def _is_late(stretch: Stretch) -> bool:
    epoch, iteration = stretch.epoch(0), stretch.iteration(0)
    return (epoch or 0) > 1 or (iteration or 0) > 1000


def _is_fine_tune(stretch: Stretch) -> bool:
    config = stretch.header.config or {}
    if find(config, 'load_from') or find(config, 'resume_from'):
        return True
    return stretch.lr is not None and max(stretch.lr) < _SMALL_LR


def _num_first(total: Sequence[float]) -> int:
    return max(5, min(50, len(total) // 10))


def _ends(total: Sequence[float]) -> tuple[float | None, float | None]:
    size = _num_first(total)
    return median(total[:size]), median(total[-max(size, len(total) // 5) :])


def _noise(total: Sequence[float]) -> float:
    """Return the relative scatter of the median of the first rows."""
    values = finite(total[: _num_first(total)])
    middle = statistics.median(values)
    sigma = robust_sigma(values, middle) / middle
    return min(median_error(sigma, len(values)), 0.1)


def _lowest_block(total: Sequence[float]) -> float:
    size = max(8, len(total) // 16)
    starts = range(0, len(total) - size // 2, size)
    medians = [median(total[start : start + size]) for start in starts]
    return min((m for m in medians if m is not None), default=math.inf)
