"""A healthy training, iteration by iteration: terms, norms, lr, time."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from synthetic_logs.layouts import LAYOUTS, Layout
from synthetic_logs.noise import autoregressive, scatter
from synthetic_logs.schedules import PEAK, relative_lrs
from synthetic_logs.truth import Options


@dataclass
class Steps:
    """Values before any averaging.

    `terms` have one value for each iteration, `norms` one for each optimizer step:
    step s ends with iteration ``(s + 1) * accumulation - 1``. `scales` is the loss
    scale of each optimizer step where the run uses mixed precision, else empty.
    """

    terms: dict[str, list[float]]
    norms: list[float]
    lrs: list[float]
    times: list[float]
    extras: dict[str, list[float]]
    scales: list[float]

    def copy(self) -> Steps:
        """Return a copy that a failure can be planted in."""
        return Steps(
            {name: values[:] for name, values in self.terms.items()},
            self.norms[:],
            self.lrs,
            self.times,
            self.extras,
            self.scales[:],
        )


def simulate(options: Options, rng: random.Random) -> Steps:
    """Return the values of a healthy run."""
    layout = LAYOUTS[options.layout]
    num = options.num_iterations
    lrs = [layout.lr * relative for relative in relative_lrs(options)]
    if options.is_fine_tune:
        lrs = [0.05 * lr for lr in lrs]
    remaining = _remaining(options, lrs, layout, rng)
    terms = _terms(options, layout, remaining, rng)
    norms = _norms(options, layout, remaining, rng)
    times = [0.8 * x for x in scatter(num, 0.05, rng)]
    extras = {
        name: [min(99.9, 82 + 15 * (1 - r) + 0.4 * (f - 1)) for r, f in pairs]
        for name in layout.extras
        for pairs in [zip(remaining, scatter(num, 0.3, rng))]
    }
    scales = [65536.0] * len(norms) if options.is_amp else []
    return Steps(terms, norms, lrs, times, extras, scales)


def _remaining(
    options: Options, lrs: list[float], layout: Layout, rng: random.Random
) -> list[float]:
    """Return how much of the way is left, from 1 on: a power law in lr spent."""
    if options.is_fine_tune:
        # begins low and hardly falls: nearly all of the way is behind it
        drop = rng.uniform(0.0, 0.03)
        num = len(lrs)
        return [0.06 - drop * i / num for i in range(num)]
    if options.kind == 'not_learning':
        return [1.0] * len(lrs)
    half = rng.uniform(150, 600) * layout.lr
    power = rng.uniform(0.5, 0.9)
    spent, remaining = 0.0, []
    for lr in lrs:
        spent += lr
        remaining.append((1 + spent / half) ** -power)
    return remaining


def _terms(
    options: Options, layout: Layout, remaining: list[float], rng: random.Random
) -> dict[str, list[float]]:
    num = options.num_iterations
    shared = autoregressive(num, 0.10 * options.noise, 0.2, rng)
    if options.schedule == 'cyclic' and rng.random() < 0.5:
        # at the peak of the lr the loss of a healthy run may rise a little
        peak = 0.4 * num
        width = 0.15 * num
        for i in range(num):
            shared[i] *= 1 + 0.15 * math.exp(-(((i - peak) / width) ** 2)) * PEAK / 8
    terms = {}
    for name, (start, end) in layout.terms.items():
        sigma = options.noise * rng.uniform(0.15, 0.35)
        way = start - end
        terms[name] = [
            (end + way * left) * common * own
            for left, common, own in zip(remaining, shared, scatter(num, sigma, rng))
        ]
    is_flat = options.is_fine_tune or options.kind == 'not_learning'
    if not is_flat and rng.random() < 0.4:
        _start_high(terms, rng)
    if options.kind == 'healthy' and len(terms) > 2 and rng.random() < 0.1:
        _fade_out(terms, rng)
    for name in layout.constants:
        terms[name] = [0.0] * num
    return terms


def _start_high(terms: dict[str, list[float]], rng: random.Random) -> None:
    """Let one term begin up to four times higher and come down in some iterations."""
    values = terms[rng.choice(sorted(terms))]
    height, length = rng.uniform(1.0, 3.0), rng.uniform(10, 60)
    for i in range(min(len(values), int(8 * length))):
        values[i] *= 1 + height * math.exp(-i / length)


def _fade_out(terms: dict[str, list[float]], rng: random.Random) -> None:
    """Let one term fall under what four digits can print: learnt, and no mask."""
    values = terms[rng.choice(sorted(terms))]
    num = len(values)
    for i, value in enumerate(values):
        values[i] = value * math.exp(-11.0 * i / num)


def _norms(
    options: Options, layout: Layout, remaining: list[float], rng: random.Random
) -> list[float]:
    accumulation = options.accumulation
    num = len(remaining) // accumulation
    spread = autoregressive(
        num, 0.32 * options.noise, rng.choice([0.0, 0.3, 0.6, 0.85]), rng
    )
    start, end = layout.norm
    drift = rng.uniform(-0.4, 0.4)
    height, length = 0.0, 1.0
    if not options.is_fine_tune and rng.random() < 0.4:
        height, length = rng.uniform(0.5, 3.5), rng.uniform(10, 60)
    norms = []
    for s in range(num):
        i = s * accumulation
        level = start * (end / start) ** (1 - remaining[i]) * math.exp(drift * s / num)
        norms.append(level * spread[s] * (1 + height * math.exp(-i / length)))
    return norms
