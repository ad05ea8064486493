"""Draws a run: how it trains, how it is printed."""

from __future__ import annotations

import random

from synthetic_logs.layouts import LAYOUTS
from synthetic_logs.schedules import SCHEDULES
from synthetic_logs.truth import FORMATS, KINDS, Options

#: Every fourth run is healthy, the failures share the rest.
HEALTHY_SHARE = 0.25
MIN_ROWS, MAX_ROWS = 25, 3000
#: A gradual failure needs room before it, for itself, and after it.
MIN_ROWS_OF = {'finite_divergence': 60, 'not_learning': 50, 'norm_overflow': 50}
#: Fewer iterations than this say nothing about whether a model learns.
MIN_ITERATIONS_TO_LEARN = 3000
#: Numbers before averaging: bounds the time that one run takes to make.
MAX_VALUES = 250_000


def draw_kind(seed: int) -> str:
    """Return the kind of failure of a seed; the same whatever is drawn later."""
    rng = random.Random(f'kind {seed}')
    if rng.random() < HEALTHY_SHARE:
        return 'healthy'
    return rng.choice([kind for kind in KINDS if kind != 'healthy'])


def draw_options(
    seed: int, kind: str, rng: random.Random, max_values: int = MAX_VALUES
) -> Options:
    """Return the options of a run of at most about `max_values` terms x iterations."""
    form = rng.choice(FORMATS)
    layout = rng.choice(sorted(LAYOUTS))
    interval, window, accumulation = _draw_printing(form, rng)
    # the guard's own steps hold no metric: a fine-tune there looks like a dead run
    is_fine_tune = (
        kind != 'not_learning'
        and form != 'steps'
        and rng.random() < (0.35 if kind == 'healthy' else 0.1)
    )
    num_rows = _draw_length(kind, layout, interval, max_values, rng)
    schedule = rng.choice(SCHEDULES)
    has_header = form not in ('steps', 'mmengine_scalars') and rng.random() < 0.6
    needs_norm = kind in ('amp_skip', 'norm_overflow') or form == 'steps'
    return Options(
        seed=seed,
        kind=kind,
        format=form,
        layout=layout,
        interval=interval,
        window=window,
        accumulation=accumulation,
        num_rows=num_rows,
        epoch_length=_draw_epoch(form, num_rows, interval, is_fine_tune, rng),
        schedule=schedule,
        warmup=0 if schedule == 'cyclic' else rng.choice([0, 500, 500, 1000]),
        noise=rng.choice([0.4, 1.0, 1.5]),
        has_norm=needs_norm or rng.random() < 0.8,
        has_header=has_header,
        is_fine_tune=is_fine_tune,
        # a fine-tune that hardly falls can be told from a dead run by its metric only
        is_validated=form != 'steps' and (is_fine_tune or rng.random() < 0.6),
        is_amp=kind == 'amp_skip' or rng.random() < 0.25,
    )


def _draw_printing(form: str, rng: random.Random) -> tuple[int, int, int]:
    """Return interval, window and accumulation."""
    accumulation = rng.choice([1, 1, 1, 2, 4])
    interval = rng.choice([1, 10, 50, 100])
    if form == 'steps':
        return accumulation, accumulation, accumulation
    if form.startswith('mmcv'):
        return interval, interval, accumulation
    # what people set: the default of mmdet, the default of mmengine, the interval
    return interval, rng.choice([50, 10, interval]), accumulation


def _draw_length(
    kind: str, layout: str, interval: int, max_values: int, rng: random.Random
) -> int:
    least = MIN_ROWS_OF.get(kind, MIN_ROWS)
    if kind == 'not_learning':
        least = max(least, -(-MIN_ITERATIONS_TO_LEARN // interval))
    most = min(MAX_ROWS, max_values // (len(LAYOUTS[layout].terms) * interval))
    most = max(most, least + 1)
    return int(least * (most / least) ** rng.random())


def _draw_epoch(
    form: str, num_rows: int, interval: int, is_fine_tune: bool, rng: random.Random
) -> int:
    if 'iter' in form:
        return num_rows * interval
    most = max(3, num_rows // 2) if is_fine_tune else num_rows
    rows = max(3, int(most * rng.uniform(0.05, 1.0)))
    rest = 0 if form == 'steps' else rng.randrange(interval)
    return rows * interval + rest
