"""Healthy steps without end, for the number of false alarms."""

from __future__ import annotations

import json
import math
import random
from typing import Iterator

from synthetic_logs.layouts import LAYOUTS
from synthetic_logs.noise import HEALTHY_CAP, student_t

LAYOUT = LAYOUTS['retina']


def healthy_steps(num: int, seed: int) -> Iterator[str]:
    """Yield `num` lines of a steps.jsonl in which nothing goes wrong.

    Norms are autocorrelated and heavy-tailed: a Student-t with 4 degrees of freedom,
    drawn anew for every step, and bounded where a healthy step is.
    """
    rng = random.Random(f'stream {seed}')
    memory = rng.choice([0.0, 0.5, 0.8, 0.95])
    sigma = rng.uniform(0.15, 0.4)
    gain = sigma * math.sqrt(1 - memory * memory)
    cap = math.log(HEALTHY_CAP)
    start, end = LAYOUT.norm
    state = 0.0
    for step in range(num):
        state = memory * state + gain * student_t(rng)
        bounded = max(-cap, min(cap, state))
        if bounded != state:
            state = 0.0
        left = (1 + step / 500) ** -0.7
        norm = start * (end / start) ** (1 - left) * math.exp(bounded)
        losses = {
            name: (low + (high - low) * left)
            * min(HEALTHY_CAP, math.exp(0.25 * rng.gauss(0, 1)))
            for name, (high, low) in LAYOUT.terms.items()
        }
        yield json.dumps(
            {
                'step': step,
                'iteration': step,
                'epoch': step // 5000,
                'total_norm': norm,
                'lr': LAYOUT.lr * min(1.0, 0.001 + step / 500),
                'losses': {'loss': sum(losses.values()), **losses},
                'max_norm': LAYOUT.max_norm,
                'clip_coef': min(1.0, LAYOUT.max_norm / norm),
                'skipped': None,
                'loss_scale': None,
                'nonfinite_params': 0,
            }
        )
