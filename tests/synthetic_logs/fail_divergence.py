"""A finite divergence: the norm rises by factors, the loss follows some rows later."""

from __future__ import annotations

from synthetic_logs.planting import Planted, Site, UndecidableError, log_uniform

#: Rows on a high plateau after which nobody waits for a return.
ROWS_LOST = 25


def plant_divergence(site: Site) -> Planted:
    """The norm leaves its band for good; the loss follows, ends high, is never NaN."""
    still_falls = site.rng.random() < 0.4
    growth = site.rng.uniform(1.3, 2.5)
    peak = log_uniform(site.rng, 20, 3000)
    norms = _climb(growth, peak)
    lag = site.rng.randint(3, 6) if site.options.has_norm else 0
    height = log_uniform(site.rng, 8, 500)
    losses = _climb(site.rng.uniform(1.5, 2.5), height)
    climb = max(len(norms), lag + len(losses))
    norms += [norms[-1]] * (climb - len(norms))
    losses = [1.0] * lag + losses
    losses += [losses[-1]] * (climb - len(losses))
    if still_falls:
        after = site.rng.randint(4, 7)
        # by factors a row, but not yet back at the end
        fall = min(site.rng.uniform(1.25, 2.0), (height / 3) ** (1 / after))
        falling = [fall ** -(k + 1) for k in range(after)]
        norms += [norms[-1] * f for f in falling]
        losses += [losses[-1] * f for f in falling]
        row = len(site.rows) - len(losses)
    else:
        row = site.draw_row(climb + ROWS_LOST + site.smear)
    if row < 10:
        raise UndecidableError('no room')
    first = site.draw_term()
    for name in site.layout.terms:
        power = 1.0 if name == first else site.rng.uniform(0.2, 0.5)
        site.multiply_term(name, row, [factor**power for factor in losses])
    site.multiply_norms(row, norms)
    verdict = 'suspicious' if still_falls else 'fatal'
    return Planted((verdict,), (first,), [row], False)


def _climb(growth: float, height: float) -> list[float]:
    """Return factors that grow by `growth` a row until `height` is reached."""
    factors = [growth]
    while factors[-1] < height:
        factors.append(min(height, factors[-1] * growth))
    return factors
