"""Derives the truth from the print: the run with the failure against the same without.

No analysis is needed for it, because both are known. Where the printed numbers cannot
show what was planted, it is refused, so that the truth is never more than the log says.
"""

from __future__ import annotations

import math

from synthetic_logs.planting import (
    VISIBLE_FACTOR,
    VISIBLE_SIGMAS,
    Planted,
    Site,
    UndecidableError,
)
from synthetic_logs.truth import Truth

#: A printed value differs if it is off by more than this factor.
DIFFERS = 1.15
#: Rows that a reader may be late, or early, where a quantity leaves its band by and by.
#: It counts from the row that prints twice the usual: a doubling shows in any noise
#: used here, and a climb takes at most three rows for one.
GRADUAL_ROWS = 4


def read_truth(site: Site, printed: list[dict[str, float]], planted: Planted) -> Truth:
    """Return what the print says of a planted failure.

    Raises:
        UndecidableError: If it does not say it.
    """
    kind = site.options.kind
    onset = earliest = latest = planted.bad_rows[0]
    warning, terms = None, planted.first_terms
    changed = [r for r in range(len(printed)) if _changed(site, printed, r)]
    if not changed:
        raise UndecidableError('nothing shows')
    if kind in ('spike', 'burst'):
        _check_spikes(site, printed, planted)
    elif kind == 'nan_sticks':
        terms = _nan_terms(site, printed, onset)
        warning = changed[0] if planted.has_warning else None
    elif kind == 'masked_nan':
        latest = _first_masked(printed, planted)
    else:
        onset = _onset_of_rise(site, printed, kind, terms[0])
        earliest = latest = onset
        if kind == 'finite_divergence':
            earliest, latest = changed[0], onset + GRADUAL_ROWS
        _check_end(site, printed, planted)
    is_elsewhere = changed[0] != onset if planted.recovered else changed[0] < earliest
    if is_elsewhere and warning is None:
        raise UndecidableError('shows in another row')
    _check_first_term(site, printed, kind, onset, terms)
    return Truth(
        kind=kind,
        verdicts=planted.verdicts,
        onset_row=onset,
        earliest_row=earliest,
        latest_row=latest,
        warning_row=warning,
        end_row=changed[-1] if planted.recovered else None,
        first_terms=terms,
        recovered=planted.recovered,
    )


def skips_truth(site: Site, planted: Planted) -> Truth:
    """Return the truth of a run whose scaler skipped: exact, the norm is not finite."""
    return Truth(
        kind='amp_skip',
        verdicts=planted.verdicts,
        onset_row=planted.bad_rows[0],
        earliest_row=planted.bad_rows[0],
        latest_row=planted.bad_rows[0],
        end_row=min(len(site.rows) - 1, planted.bad_rows[-1] + site.smear),
    )


def _changed(site: Site, printed: list[dict[str, float]], row: int) -> bool:
    return any(
        _ratio(value, site.clean[row][name]) > DIFFERS
        for name, value in printed[row].items()
    )


def _ratio(value: float, other: float) -> float:
    """Return how far apart two values are, as a factor of at least 1."""
    if value == other:
        return 1.0
    if not (math.isfinite(value) and math.isfinite(other)) or min(value, other) <= 0:
        return math.inf
    return max(value / other, other / value)


def _check_spikes(
    site: Site, printed: list[dict[str, float]], planted: Planted
) -> None:
    """Each bad step prints far above the usual, and above what is left of the last."""
    if len(set(planted.bad_rows)) != len(planted.bad_rows):
        raise UndecidableError('two bad steps in a row')
    for row in planted.bad_rows:
        if max(_factors(site, printed, row).values()) < VISIBLE_FACTOR * 0.95:
            raise UndecidableError('lost in the mean')
    for row, following in zip(planted.bad_rows, planted.bad_rows[1:]):
        between = range(row + 1, following)
        usual = [r for r in between if max(_factors(site, printed, r).values()) < 3]
        if len(usual) > 1:
            raise UndecidableError('too far apart to be one burst')
        now = _factors(site, printed, following)
        before = _factors(site, printed, following - 1)
        if site.smear > 1 and not any(
            now[name] > VISIBLE_FACTOR * 0.95 and now[name] > 1.25 * before[name]
            for name in now
        ):
            raise UndecidableError('hidden behind the last bad step')


def _factors(site: Site, printed: list[dict[str, float]], row: int) -> dict[str, float]:
    """Return each norm and term over its usual value before the failure."""
    names = [*site.layout.terms]
    if site.options.has_norm:
        names.append('grad_norm')
    return {
        name: printed[row].get(name, math.nan) / site.typical(name, row)
        for name in names
    }


def _nan_terms(
    site: Site, printed: list[dict[str, float]], onset: int
) -> tuple[str | None, ...]:
    """Return the term that is NaN alone, or all of them and None."""
    names = [name for name in site.layout.terms if math.isnan(printed[onset][name])]
    if not names:
        raise UndecidableError('NaN does not show yet')
    return tuple(names) if len(names) == 1 else (*names, None)


def _first_masked(printed: list[dict[str, float]], planted: Planted) -> int:
    """Return the first row in which every masked term prints its mask."""
    for number, row in enumerate(printed):
        if all(abs(row[name] - value) < 1e-6 for name, value in planted.masked.items()):
            return number
    raise UndecidableError('the mask never stands alone')


def _onset_of_rise(
    site: Site, printed: list[dict[str, float]], kind: str, term: str | None
) -> int:
    if kind == 'norm_overflow':
        rows = [r for r, row in enumerate(printed) if row.get('grad_norm') == math.inf]
        if len(rows) < 2:
            raise UndecidableError('no overflow shows')
        return rows[0]
    name = 'grad_norm' if site.options.has_norm else str(term)
    for row in range(len(printed)):
        now, before = printed[row].get(name), site.clean[row].get(name)
        if now is not None and before is not None and now >= 2 * before:
            return row
    raise UndecidableError('the rise does not show')


def _check_end(site: Site, printed: list[dict[str, float]], planted: Planted) -> None:
    """The total is still high where the log ends; it falls, or it does not."""
    total = site.layout.total
    usual = site.typical(total, planted.bad_rows[0])
    last = [row[total] for row in printed[-5:]]
    if min(last) < 2.5 * usual:
        raise UndecidableError('the total hardly moved')
    if 'suspicious' in planted.verdicts:
        # a window longer than the interval may hide that it falls
        if not all(a > 1.1 * b for a, b in zip(last[-3:], last[-2:])):
            raise UndecidableError('the fall does not show')
    elif min(row[total] for row in printed[-15:]) < 2.5 * usual:
        raise UndecidableError('not high for long enough')


def _check_first_term(
    site: Site,
    printed: list[dict[str, float]],
    kind: str,
    onset: int,
    terms: tuple[str | None, ...],
) -> None:
    """The planted term leads by any measure: factor and robust deviations."""
    if kind in ('nan_sticks', 'masked_nan', 'amp_skip') or terms[0] is None:
        return
    row = onset if kind in ('spike', 'burst') else len(printed) - 1
    factors = _factors(site, printed, row)
    usual = _factors(site, site.clean, row)
    factors.pop('grad_norm', None)
    first = str(terms[0])
    moved = {name: value / usual[name] for name, value in factors.items()}
    others = [value for name, value in moved.items() if name != first]
    if moved[first] - 1 < 1.5 * max([0.0, *(value - 1 for value in others)]):
        raise UndecidableError('another term moved as much')
    scores = {
        name: math.log(max(value, 1.0)) / max(site.spread(name), 1e-3)
        for name, value in factors.items()
    }
    if scores[first] < VISIBLE_SIGMAS * 0.9 or scores[first] < max(scores.values()):
        raise UndecidableError('the term does not stand out')
