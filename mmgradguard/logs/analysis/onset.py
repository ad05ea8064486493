"""Which loss term moved first, and whether the gradient norm knew it before."""

from __future__ import annotations

import math
import statistics
from typing import Callable, Container, Sequence

from mmgradguard.core.rules.spike import SpikeRule
from mmgradguard.logs.analysis.stretch import Stretch

#: Rows of the past that a value is compared with, and rows a term may lead an event by.
_PAST, _LEAD = 32, 2
#: A term moved if it is this many times its usual value, and this many robust sigmas.
_RATIO, _Z_SCORE, _Z_SCORE_EARLY, _Z_SCORE_NAN = 1.3, 5.0, 8.0, 3.5
_Z_SCORE_LASTING = 6.0
#: The median of few rows, and their spread, are uncertain: as if the score were lower.
_FEW_ROWS = 2
#: Rows of a climb in which a loss may follow the norm.
_CLIMB_ROWS = 64
#: Rows before an event in which the norm may have risen.
_NORM_LEAD = 64

IsUsual = Callable[[int], bool]


def first_term(
    stretch: Stretch, row: int, is_usual: IsUsual, masked: Container[str] = ()
) -> str | None:
    """Return the loss term that moved first at the event that begins at ``row``.

    A term that had moved a row or two before wins; else the one that is most times its
    usual value, NaN most of all. None where every loss turned NaN on one row, or none
    moved: the print cannot tell. `masked` terms print a constant soon after.
    """
    now = _moved(stretch, row, is_usual, _Z_SCORE)
    if not now:
        return None
    if max(now.values()) == math.inf:
        # a mask prints a number and is a NaN all the same
        now = {n: math.inf if n in masked else ratio for n, ratio in now.items()}
    at_once = len(stretch.terms) > 1 and len(now) == len(stretch.terms)
    at_once = at_once and min(now.values()) == math.inf
    for at in range(max(row - _LEAD, 0), row):
        if not is_usual(at) and not at_once:
            continue  # another event: what moved there came back
        before = _moved(
            stretch, at, is_usual, _Z_SCORE_NAN if at_once else _Z_SCORE_EARLY
        )
        early = {name: ratio for name, ratio in before.items() if name in now}
        if early and not any(map(math.isinf, early.values())):
            return max(early, key=lambda name: early[name])
    if at_once:
        return None
    return max(now, key=lambda name: now[name])


def lasting_term(
    stretch: Stretch, first: int, last: int, is_usual: IsUsual
) -> str | None:
    """Return the loss term that moved first in a climb, and did not come right back."""
    last = min(last, first + _CLIMB_ROWS)
    for row in range(first, last + 1):
        now = _moved(stretch, row, is_usual, _Z_SCORE_LASTING, before=first)
        if now and row < last:
            then = _moved(stretch, row + 1, is_usual, _Z_SCORE_LASTING, before=first)
            now = {name: then[name] for name in now if name in then}
        if now:
            # among those on their way the one that goes farthest, not the steadiest
            final = min(row + 2, last)
            then = _moved(stretch, final, is_usual, _Z_SCORE, before=first)
            return max(now, key=lambda name: then.get(name, now[name]))
    return None


def _moved(
    stretch: Stretch,
    row: int,
    is_usual: IsUsual,
    z_score: float,
    before: int | None = None,
) -> dict[str, float]:
    past = usual_rows(len(stretch), row if before is None else before, is_usual)
    first, stop = min([*past, row]), max([*past, row]) + 1
    moved = {}
    for name in stretch.terms:
        values = stretch.near(name, first, stop)
        value, usual = values[row - first], [values[r - first] for r in past]
        if not math.isfinite(value):
            if not stretch.lacks(name, row):
                moved[name] = math.inf
            continue
        known = [v for v in usual if 0 < v < math.inf]
        score = z_score * (1 + _FEW_ROWS / max(len(known), 1))
        rule = SpikeRule(warmup=1, min_ratio=_RATIO, min_z_score=score)
        for each in known:
            rule.push(each)
        spike = rule.judge(value)
        if spike is not None:
            moved[name] = spike.ratio
    return moved


def usual_rows(num_rows: int, row: int, is_usual: IsUsual) -> list[int]:
    """Return usual rows to compare ``row`` with: before it, else after it."""
    stop = max(row - _LEAD, 1) if row else 0
    before = [r for r in range(max(stop - _PAST, 0), stop) if is_usual(r)]
    if before:
        return before
    after = range(row + 1, min(row + 1 + _PAST, num_rows))
    return [r for r in after if is_usual(r)]


def norm_lead(
    norm: Sequence[float] | None, loss_row: int, is_usual: IsUsual, in_loss: IsUsual
) -> int | None:
    """Return by how many rows the norm rose before the loss did at ``loss_row``.

    The norm rose where it left twice its usual value and did not come back until the
    loss moved, with no loss unusual in between. None if no norm is logged, 0 if it did
    not lead.
    """
    if norm is None:
        return None
    start = max(loss_row - _NORM_LEAD, 0)
    past = [norm[r] for r in range(max(start - _PAST, 0), loss_row) if is_usual(r)]
    usual = [v for v in past if 0 < v < math.inf]
    if len(usual) < 3:
        return None
    limit = 2 * statistics.median(usual)
    lead = 0
    row = loss_row - 1
    while row >= start and not norm[row] <= limit and not in_loss(row):
        lead, row = lead + 1, row - 1
    return lead
