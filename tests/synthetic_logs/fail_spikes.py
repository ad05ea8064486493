"""Single bad steps: a spike, a burst, the skips of a scaler that seeks its scale."""

from __future__ import annotations

import math

from synthetic_logs.planting import (
    VISIBLE_FACTOR,
    Planted,
    Site,
    UndecidableError,
    log_uniform,
)

#: PyTorch's GradScaler doubles its scale after this many good steps.
GROWTH_INTERVAL = 2000


def plant_spike(site: Site) -> Planted:
    """One step goes wrong, the next one is as before."""
    size = _draw_size(site)
    is_early = size > 1e3 and site.rng.random() < 0.5
    row = site.draw_row(site.smear + 4, is_early)
    term = _draw_moving_term(site)
    bad_row = _bad_step(site, row, term, size)
    return Planted(('benign',), (term,), [bad_row])


def plant_burst(site: Site) -> Planted:
    """Several steps in rows close together go wrong, then all is as before."""
    count = site.rng.randint(3, 6)
    # bad steps one or two optimizer steps or rows apart, whichever is longer
    stride = max(1, -(-site.options.accumulation // site.options.interval))
    rows = [site.draw_row(2 * stride * count + site.smear + 4)]
    for _ in range(count - 1):
        gap = site.rng.choice([1, 1, 2]) if stride == 1 else stride
        rows.append(rows[-1] + gap)
    term = _draw_moving_term(site)
    size = _draw_size(site)
    bad_rows = []
    for row in rows:
        bad_rows.append(_bad_step(site, row, term, size * site.rng.uniform(1.0, 2.5)))
        if site.smear > 1:
            # a smaller step drowns in the mean of the last one
            size *= site.rng.uniform(1.3, 2.0)
    return Planted(('benign',), (term,), bad_rows)


def plant_amp_skips(site: Site) -> Planted:
    """The scaler skips at the start, and wherever it tries a doubled scale."""
    num = len(site.steps.norms)
    value = site.rng.choice([math.inf, math.inf, math.nan])
    searches = site.rng.randint(1, 5) if site.rng.random() < 0.7 else 0
    skipped = set(range(searches))
    place = searches + GROWTH_INTERVAL
    while place < num:
        skipped.add(place)
        place += GROWTH_INTERVAL + 1
    if not skipped:
        raise UndecidableError('too short for the scale to grow')
    scale = 65536.0 * 2**searches
    for step in range(num):
        if step in skipped:
            site.steps.norms[step] = value
        site.steps.scales[step] = scale
        if step in skipped:
            scale /= 2
        elif step + 1 in skipped and step + 1 >= searches:
            scale *= 2
    seen = [step for step in skipped if _is_seen(site, step)]
    bad_rows = sorted({site.row_of_step(step) for step in seen})
    if not bad_rows:
        raise UndecidableError('no skip is printed')
    return Planted(('benign',), (None,), bad_rows)


def _is_seen(site: Site, step: int) -> bool:
    return any(row.norm_span[0] <= step < row.norm_span[1] for row in site.rows)


def _draw_moving_term(site: Site) -> str | None:
    """Return the term that the bad step comes from, None if only the norm shows it."""
    if site.options.has_norm and site.rng.random() < 0.35:
        return None
    return site.draw_term()


def _draw_size(site: Site) -> float:
    huge = site.rng.random() < 0.2
    return log_uniform(site.rng, VISIBLE_FACTOR, 1e7 if huge else 100.0)


def _bad_step(site: Site, row: int, term: str | None, size: float) -> int:
    """Plant one bad step; return the row that shows it first."""
    iteration = site.rng.choice(site.new_iterations(row))
    seen = []
    if site.options.has_norm:
        least = site.visible_factor('grad_norm', VISIBLE_FACTOR)
        step = iteration // site.options.accumulation
        seen.append(site.raise_norm(step, max(size, least)))
    if term is not None:
        least = VISIBLE_FACTOR if not site.options.has_norm else 1.6
        least = site.visible_factor(term, least)
        # the loss moves less than the norm
        factor = max(least, size if not site.options.has_norm else size**0.6)
        site.raise_term(term, iteration, row, factor)
        seen.append(row)
        if site.rng.random() < 0.3:
            other = site.draw_term()
            if other != term:
                site.raise_term(other, iteration, row, 1 + 0.2 * (factor - 1))
    return min(seen)
