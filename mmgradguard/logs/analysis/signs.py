"""Everything unusual in a stretch of rows, as runs of rows by what is wrong there."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Iterable, Sequence

from mmgradguard.core.rules.drift import find_drifts
from mmgradguard.core.rules.mask import find_mask
from mmgradguard.logs.analysis.excursions import (
    LOSS_BAND,
    NORM_BAND,
    SETTLED,
    STEP_LOSS_BAND,
    STEP_TERM_BAND,
    TERM_BAND,
    Excursion,
    find_excursions,
)
from mmgradguard.logs.analysis.nonfinite import loss_runs, norm_runs
from mmgradguard.logs.analysis.numbers import median
from mmgradguard.logs.analysis.runs import overlapping, unite
from mmgradguard.logs.analysis.stretch import Stretch
from mmgradguard.logs.analysis.timing import Timing

#: Below this a loss is negative, and not rounded.
_NEGATIVE = -0.01
#: With more runs than this, near ones are told as one.
_MANY_RUNS = 1000
#: A first loss this many times the next ones is that of a model that knows nothing.
_FIRST_LOSS = 3.0


@dataclass
class Signs:
    """Runs (first, last) of unusual rows, by what is unusual.

    `norm_out` and `loss_out` left their bands, `drifts` are slow climbs of the loss,
    `nan_losses` and `nan_norms` are not finite; `masks` are terms that print one
    constant to the end, with the row from which they do; `impossible` are rows of a
    term that cannot be negative and is.
    """

    norm_out: list[Excursion] = field(default_factory=list)
    loss_out: list[Excursion] = field(default_factory=list)
    drifts: list[Excursion] = field(default_factory=list)
    nan_losses: list[tuple[int, int]] = field(default_factory=list)
    nan_norms: list[tuple[int, int]] = field(default_factory=list)
    masks: dict[str, int] = field(default_factory=dict)
    impossible: list[tuple[int, int, str]] = field(default_factory=list)

    @property
    def mask(self) -> tuple[int, str] | None:
        """Return the first mask as (row, term)."""
        return min(((row, name) for name, row in self.masks.items()), default=None)

    def losses_out(self) -> list[tuple[int, int]]:
        """Return the runs of rows at which a finite loss is unusual."""
        return as_runs([*self.loss_out, *self.drifts])

    def unusual_losses(self) -> list[tuple[int, int]]:
        """Return those, and the runs of losses that are not finite."""
        return [*self.losses_out(), *self.nan_losses]

    def runs(self, num_rows: int) -> list[tuple[int, int]]:
        """Return all of them as disjoint runs; touching ones are one."""
        masked = [(self.mask[0], num_rows - 1)] if self.mask else []
        out = as_runs(self.norm_out)
        runs = unite([*out, *self.unusual_losses(), *self.nan_norms, *masked])
        for gap in (1, 2, 4, 8):  # nobody reads ten thousand events
            if len(runs) > _MANY_RUNS:
                runs = unite(runs, gap)
        return runs


def as_runs(excursions: Iterable[Excursion]) -> list[tuple[int, int]]:
    """Return the rows of excursions."""
    return [(e.first, e.last) for e in excursions]


def read_signs(stretch: Stretch, timing: Timing) -> Signs:
    """Run every rule over a stretch."""
    signs = Signs(nan_losses=loss_runs(stretch), nan_norms=norm_runs(stretch))
    restarts = stretch.regime_changes()
    total = stretch.total
    if total is not None:
        band = STEP_LOSS_BAND if timing.window == 1 else LOSS_BAND
        signs.loss_out = find_excursions(total, band, restarts)
        if not restarts:
            signs.drifts = _drifts(total, signs.loss_out)
    signs.impossible = _impossible(stretch)
    signs.loss_out += [
        Excursion(a, b, 0.0, b == len(stretch) - 1, math.inf)
        for a, b, _ in signs.impossible
    ]
    if stretch.norm is None:  # else a term that a total hides shows there
        band = STEP_TERM_BAND if timing.window == 1 else TERM_BAND
        for name in stretch.terms:
            signs.loss_out += find_excursions(stretch.column(name), band, restarts)
    signs.masks = _masks(stretch, timing.longest_smear)
    if stretch.norm is not None:
        found = find_excursions(
            stretch.norm, NORM_BAND, restarts, judges_first=_begins_usual(total)
        )
        signs.norm_out = [e for e in found if not _is_new_level(e, signs, total)]
    return signs


def _begins_usual(total: Sequence[float] | None) -> bool:
    # a model that has learned nothing yet has a large loss and a large norm
    if total is None:
        return False
    after = median(total[1:9])
    return after is not None and total[0] <= _FIRST_LOSS * after


def _drifts(total: Sequence[float], found: Sequence[Excursion]) -> list[Excursion]:
    # a climb that left the band on its way is known already, and to the row
    return [
        Excursion(*drift, limit=math.inf)
        for drift in find_drifts(total)
        if not overlapping(as_runs(found), drift.first, drift.last)
    ]


def _is_new_level(
    excursion: Excursion, signs: Signs, total: Sequence[float] | None
) -> bool:
    # the norm may go elsewhere for good while the loss goes on falling: no alarm
    if excursion.last - excursion.first + 1 < SETTLED or total is None:
        return False
    if overlapping(signs.unusual_losses(), excursion.first, excursion.last):
        return False
    before = median(total[max(excursion.first - 16, 0) : excursion.first])
    after = median(total[excursion.last - 15 : excursion.last + 1])
    return before is not None and after is not None and after <= 1.1 * before


def _impossible(stretch: Stretch) -> list[tuple[int, int, str]]:
    # an IoU loss is 1 - IoU, or GIoU's 0 to 2: a negative one has diverged
    found = []
    for name in stretch.terms:
        if 'iou' not in name.lower():
            continue
        values = stretch.column(name)
        if not min(values, default=0.0) < _NEGATIVE:
            continue
        rows = [r for r, v in enumerate(values) if v < _NEGATIVE]
        if 2 * len(rows) > len(values):
            continue  # such a run means something else by this name
        found += [(a, b, name) for a, b in unite((r, r) for r in rows)]
    return sorted(found)


def _masks(stretch: Stretch, smear: int) -> dict[str, int]:
    found = {}
    for name in stretch.terms:
        if stretch.absent(name):
            continue
        row = find_mask(stretch.column(name), smear)
        if row is not None:
            found[name] = row
    return found
