"""Failures that end in NaN, infinity, or a mask over them."""

from __future__ import annotations

import math

from synthetic_logs.planting import Planted, Site, UndecidableError, log_uniform

#: mmcv's focal loss of a NaN logit: 0.25 * -log(FLT_MIN).
FOCAL_MASK = 0.25 * 87.3365447505531


def plant_nan(site: Site) -> Planted:
    """One term turns NaN and never comes back; the others follow or stay finite."""
    row = site.draw_row(site.smear + 4, is_early=site.rng.random() < 0.2)
    first = site.draw_term()
    has_warning = site.options.has_norm and site.rng.random() < 0.4 and row > 14
    if has_warning:
        _rise_before(site, row)
    iteration = site.rng.choice(site.new_iterations(row))
    if site.rng.random() < 0.3:
        iteration = site.rows[row].iteration  # the others follow a row later
    everything = site.rng.random() < 0.7
    for name in site.layout.terms:
        begin = iteration if name == first else iteration + 1
        if name == first or everything:
            _set(site.steps.terms[name], begin, math.nan)
    _set(site.steps.norms, iteration // site.options.accumulation, math.nan)
    return Planted(('fatal',), (first,), [row], False, has_warning)


def plant_mask(site: Site) -> Planted:
    """NaN is replaced by a constant in the printed loss: the total stays finite."""
    row = site.draw_row(site.smear + 6)
    iteration = site.rng.choice(site.new_iterations(row))
    terms = sorted(site.layout.terms)
    way = site.rng.choice(['one', 'all', 'focal'])
    focal = [name for name in terms if 'cls' in name]
    if way == 'focal' and focal:
        value = FOCAL_MASK * site.rng.choice([1, 1, 2, 3])
        masked = {name: value if name in focal else 0.0 for name in terms}
    elif way == 'one':
        masked = {site.draw_term(): 0.0}
    else:
        masked = dict.fromkeys(terms, 0.0)
    for name, value in masked.items():
        _set(site.steps.terms[name], iteration, value)
    if site.options.has_norm and site.rng.random() < 0.7:
        _set(site.steps.norms, iteration // site.options.accumulation, math.nan)
    # several masked in the same step: the print cannot say which was first
    answers = (*masked, None) if len(masked) > 1 else tuple(masked)
    return Planted(('fatal',), answers, [row], False, masked=masked)


def plant_overflow(site: Site) -> Planted:
    """The norm overflows while the losses are finite, huge, and do not come back."""
    still_falls = site.rng.random() < 0.4
    if still_falls:
        num_inf, num_after = site.rng.randint(2, 3), site.rng.randint(3, 5)
        row = len(site.rows) - num_inf - num_after
    else:
        num_inf, num_after = site.rng.randint(2, 8), 25
        row = site.draw_row(num_inf + num_after + site.smear)
    if row < 8:
        raise UndecidableError('no room')
    # a step in which everything is lost; later steps of the row are lost as well
    first = site.draw_term()
    height = log_uniform(site.rng, 1e4, 1e8)
    fall = log_uniform(site.rng, 3.0, 12.0) if still_falls else 1.0
    tail = [height / fall**k for k in range(1, num_after + 1)]
    for name in site.layout.terms:
        share = 1.0 if name == first else site.rng.uniform(1e-4, 1e-2)
        factors = [max(1.0, share * f) for f in [height] * num_inf + tail]
        site.multiply_term(name, row, factors)
    keeps = not still_falls and site.rng.random() < 0.5
    peak = log_uniform(site.rng, 1e15, 1e18)
    norm_fall = fall**2 if still_falls else 1.0
    after = [peak / norm_fall**k for k in range(num_after)]
    site.multiply_norms(row, [math.inf] * num_inf + ([] if keeps else after))
    verdict = 'suspicious' if still_falls else 'fatal'
    return Planted((verdict,), (first,), [row], False)


def _rise_before(site: Site, row: int) -> None:
    """Let the norm rise over some rows before `row`, with losses as usual."""
    growth = site.rng.uniform(1.7, 2.5)
    length = site.rng.randint(3, 6)
    factors = [growth ** (k + 1) for k in range(length)]
    site.multiply_norms(row - length, factors)


def _set(values: list[float], begin: int, value: float) -> None:
    values[begin:] = [value] * (len(values) - begin)
