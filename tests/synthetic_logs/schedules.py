"""Learning rate of an iteration, as mmcv and mmengine schedule it."""

from __future__ import annotations

import math

from synthetic_logs.truth import Options

SCHEDULES = ('step', 'cosine', 'cyclic')
#: By how much a cyclic schedule exceeds the base lr at its peak.
PEAK = 8.0


def relative_lrs(options: Options) -> list[float]:
    """Return the lr over the base lr, by iteration."""
    num = options.num_iterations
    return [_relative_lr(options, i, i / num) for i in range(num)]


def _relative_lr(options: Options, iteration: int, progress: float) -> float:
    """Return the lr over the base lr; warmup is linear from 1/1000."""
    warming = 1.0
    if iteration < options.warmup:
        warming = 0.001 + 0.999 * iteration / options.warmup
    if options.schedule == 'step':
        return warming * (1.0 if progress < 0.7 else 0.1 if progress < 0.9 else 0.01)
    if options.schedule == 'cosine':
        return warming * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * progress)))
    if progress < 0.4:
        return 1 + (PEAK - 1) * math.sin(math.pi / 2 * progress / 0.4)
    return 1e-3 + PEAK * 0.5 * (1 + math.cos(math.pi * (progress - 0.4) / 0.6))
