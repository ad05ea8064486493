"""Curves and the heat map of a run, thinned so that no single-step spike vanishes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Sequence

from mmgradguard.core.types import StepSample
from mmgradguard.report.values import clean_text

#: Points of the main curve, columns and rows of the heat map, loss terms drawn.
MAX_POINTS = 4000
MAX_COLUMNS = 400
MAX_MODULES = 120
MAX_TERMS = 24
#: Points of one loss term; a DETR has 18 of them.
MAX_TERM_POINTS = 1000


@dataclass
class StepSeries:
    """Curves over the kept steps; `iteration` is 1-based, for people.

    `num_binned` steps stand behind one point at most: the one with the largest norm.
    """

    num_binned: int = 1
    step: list[int] = field(default_factory=list)
    iteration: list[int] = field(default_factory=list)
    epoch: list[int] = field(default_factory=list)
    total_norm: list[float] = field(default_factory=list)
    max_norm: list[float | None] = field(default_factory=list)
    clip_coef: list[float] = field(default_factory=list)
    skipped: list[str | None] = field(default_factory=list)
    nonfinite_params: list[int] = field(default_factory=list)
    lr: list[float | None] = field(default_factory=list)
    loss_scale: list[float | None] = field(default_factory=list)


@dataclass
class LossCurve:
    """One loss term; `iteration` is 1-based."""

    term: str
    iteration: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)


@dataclass
class HeatMap:
    """Largest L2 norm by module (row) and bin of steps (column); None: not measured."""

    modules: list[str] = field(default_factory=list)
    iteration: list[int] = field(default_factory=list)
    norm: list[list[float | None]] = field(default_factory=list)
    num_hidden: int = 0


def thin(values: Sequence[float], limit: int) -> list[int]:
    """Return at most ``limit`` indices: the maximum of each bin, non-finite ones first.

    Non-finite values are all kept while they fit in half of ``limit``; beyond that
    every bin that holds one keeps its first.

    >>> thin([1, 5, 2, float('nan'), 3, 9], 4)
    [1, 2, 3, 5]
    """
    if len(values) <= limit:
        return list(range(len(values)))
    bad = [i for i, value in enumerate(values) if not math.isfinite(value)]
    if len(bad) > limit // 2:
        width = math.ceil(len(values) / max(1, limit // 2))
        bad = list({i // width: i for i in reversed(bad)}.values())
    kept = set(bad)
    width = math.ceil(len(values) / max(1, limit - len(bad)))
    for start in range(0, len(values), width):
        finite = [
            i
            for i in range(start, min(start + width, len(values)))
            if math.isfinite(values[i])
        ]
        if finite:
            kept.add(max(finite, key=values.__getitem__))
    return sorted(kept)


def build_step_series(steps: Sequence[StepSample]) -> StepSeries:
    """Return the curves of a run; a spike or a non-finite step is always among them."""
    kept = thin([sample.total_norm for sample in steps], MAX_POINTS)
    series = StepSeries(num_binned=math.ceil(len(steps) / max(1, len(kept))))
    for index in kept:
        sample = steps[index]
        series.step.append(sample.step)
        series.iteration.append(sample.iteration + 1)
        series.epoch.append(sample.epoch + 1)
        series.total_norm.append(sample.total_norm)
        series.max_norm.append(sample.max_norm)
        series.clip_coef.append(sample.clip_coef)
        series.skipped.append(sample.skipped)
        series.nonfinite_params.append(sample.nonfinite_params)
        series.lr.append(sample.lr)
        series.loss_scale.append(sample.loss_scale)
    return series


def build_loss_curves(steps: Sequence[StepSample]) -> list[LossCurve]:
    """Return the total loss, as the host adds it up, and then each term."""
    terms: dict[str, tuple[list[int], list[float]]] = {}
    totals: tuple[list[int], list[float]] = ([], [])
    for sample in steps:
        for term, value in sample.losses.items():
            if term not in terms:
                if len(terms) >= MAX_TERMS:
                    continue
                terms[term] = ([], [])
            terms[term][0].append(sample.iteration + 1)
            terms[term][1].append(value)
        if sample.losses:
            totals[0].append(sample.iteration + 1)
            totals[1].append(total_loss(sample.losses))
    # a term named `loss` is the sum already; one term needs no sum
    if 'loss' not in terms and len(terms) > 1:
        terms = {'sum of losses': totals, **terms}
    return [_thin_curve(term, *curve) for term, curve in terms.items()]


def total_loss(losses: dict[str, float]) -> float:
    """Return the loss that the host prints: the sum of the terms named `loss`."""
    if 'loss' in losses:
        return losses['loss']
    named = [value for term, value in losses.items() if 'loss' in term]
    return sum(named or losses.values())


def build_heat_map(steps: Sequence[StepSample]) -> HeatMap:
    """Return the module norms in at most ``MAX_COLUMNS`` columns."""
    rows = [sample for sample in steps if sample.module_norms]
    width = math.ceil(len(rows) / MAX_COLUMNS) or 1
    names: dict[str, float] = {}
    for sample in rows:
        for name, value in (sample.module_norms or {}).items():
            names[name] = _larger(names.get(name), value)
    hottest = sorted(names, key=lambda name: _rank(names[name]), reverse=True)
    shown = set(hottest[:MAX_MODULES])
    modules = [name for name in names if name in shown]
    columns = []
    for start in range(0, len(rows), width):
        column: dict[str, float] = {}
        for sample in rows[start : start + width]:
            for name, value in (sample.module_norms or {}).items():
                column[name] = _larger(column.get(name), value)
        columns.append(column)
    return HeatMap(
        modules=[clean_text(name, 200) for name in modules],
        iteration=[rows[i].iteration + 1 for i in range(0, len(rows), width)],
        norm=[[column.get(name) for column in columns] for name in modules],
        num_hidden=len(names) - len(modules),
    )


def _rank(value: float) -> float:
    return math.inf if math.isnan(value) else value


def _larger(old: float | None, new: float) -> float:
    # NaN is worse than any number: it must not lose against one
    return new if old is None or _rank(new) > _rank(old) else old


def _thin_curve(term: str, iteration: list[int], value: list[float]) -> LossCurve:
    kept = thin(value, MAX_TERM_POINTS)
    return LossCurve(
        term=clean_text(term, 200),
        iteration=[iteration[i] for i in kept],
        value=[value[i] for i in kept],
    )
