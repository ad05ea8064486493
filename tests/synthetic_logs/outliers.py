"""Steps that stand out of a healthy run, and are healthy: what must raise no alarm."""

from __future__ import annotations

from synthetic_logs.noise import HEALTHY_CAP
from synthetic_logs.planting import Site


def add_outliers(site: Site) -> None:
    """Let up to two printed norms stand out, as one in a good Deformable DETR did.

    They are far apart and print at most `HEALTHY_CAP` times what is usual.
    """
    num = len(site.rows)
    if not site.options.has_norm or num < 30 + 2 * site.smear:
        return
    for part in range(site.rng.randint(0, 2)):
        begin = num // 3 * (part + 1)
        row = site.rng.randrange(begin, begin + num // 6)
        first, stop = site.rows[row].norm_span
        if first == stop:  # an epoch that has just begun, before its first step
            continue
        usual = site.clean[row]['grad_norm'] / site.typical('grad_norm', row)
        factor = site.rng.uniform(2.0, HEALTHY_CAP)
        if usual < factor:
            # what the row prints already counts: the sum is what may not be passed
            site.raise_norm(stop - 1, 1 + factor - usual)
