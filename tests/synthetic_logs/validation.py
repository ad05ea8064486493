"""When a run validates, and what its metric is."""

from __future__ import annotations

from synthetic_logs.averaging import Row
from synthetic_logs.truth import Options, Truth


def validations(options: Options, rows: list[Row], truth: Truth) -> dict[int, float]:
    """Return the mAP after each row that a validation follows."""
    if not options.is_validated:
        return {}
    if 'iter' in options.format:
        every = max(4, len(rows) // 5)
        places = range(every - 1, len(rows), every)
    else:
        per_epoch = options.epoch_length // options.interval
        places = range(per_epoch - 1, len(rows), per_epoch)
    return {row: _metric(options, row / len(rows), row, truth) for row in places}


def _metric(options: Options, progress: float, row: int, truth: Truth) -> float:
    if options.kind == 'not_learning':
        return 0.0
    if not truth.recovered and row >= (truth.onset_row or 0):
        return 0.0
    if options.is_fine_tune:
        return round(0.412 + 0.01 * progress, 3)
    return round(0.03 + 0.36 * progress**0.5, 3)
