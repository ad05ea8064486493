"""Figures of a run, and what they mean in plain words."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from dataclasses import dataclass, field
from typing import Sequence

from mmgradguard.core.types import StepSample
from mmgradguard.report.incident_record import Incident


@dataclass
class SkippedImage:
    """An image of batches whose step was skipped; counts are of iterations."""

    img_id: str
    img_path: str | None = None
    num_skips: int = 0
    num_culprit: int = 0


@dataclass
class Summary:
    """Figures of a run. Norms are of single steps, unscaled, before clipping.

    `num_clipped` of `num_clippable` steps were shortened: those taken, with a
    threshold and a finite norm. `num_runs` wrote into the folder; `num_replayed` steps
    were taken again after a resume and count once; `num_restarts`: how often the
    iteration still goes back. `unrecorded`: incidents beyond ``max_incidents``, by
    kind. `weights_lost`: whether weights were seen not to be finite. `steps_file`: see
    `RunRecord`. `largest_*` is the largest finite norm of one step and where it was
    (0-based, as in the file); None without one.
    """

    num_steps: int = 0
    num_iterations: int = 0
    num_runs: int = 1
    num_replayed: int = 0
    num_restarts: int = 0
    steps_file: str = 'read'
    weights_lost: bool = False
    num_incidents: int = 0
    unrecorded: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    num_nonfinite: int = 0
    num_nonfinite_taken: int = 0
    median_norm: float | None = None
    p95_norm: float | None = None
    largest_norm: float | None = None
    largest_epoch: int | None = None
    largest_iteration: int | None = None
    largest_skipped: str | None = None
    num_clippable: int = 0
    num_clipped: int = 0
    median_clip_coef: float | None = None
    smallest_max_norm: float | None = None
    largest_max_norm: float | None = None
    skipped_images: list[SkippedImage] = field(default_factory=list)


def build_summary(
    steps: Sequence[StepSample], incidents: Sequence[Incident]
) -> Summary:
    """Return the figures of a run."""
    summary = Summary(num_steps=len(steps), num_incidents=len(incidents))
    summary.skipped_images = count_skipped_images(incidents)
    summary.weights_lost = any(map(is_loss_of_weights, incidents))
    if not steps:
        return summary
    iterations = [sample.iteration for sample in steps]
    summary.num_iterations = max(iterations) - min(iterations) + 1
    summary.num_restarts = sum(b < a for a, b in zip(iterations, iterations[1:]))
    summary.skipped = dict(Counter(s.skipped for s in steps if s.skipped))
    nonfinite = [s for s in steps if not math.isfinite(s.total_norm)]
    summary.num_nonfinite = len(nonfinite)
    summary.num_nonfinite_taken = sum(s.skipped is None for s in nonfinite)
    finite = [s for s in steps if math.isfinite(s.total_norm)]
    if finite:
        norms = sorted(s.total_norm for s in finite)
        summary.median_norm = statistics.median(norms)
        # nearest rank: a norm that was seen, not one between two
        summary.p95_norm = norms[math.ceil(0.95 * len(norms)) - 1]
        largest = max(finite, key=lambda s: s.total_norm)
        summary.largest_norm = largest.total_norm
        summary.largest_epoch = largest.epoch
        summary.largest_iteration = largest.iteration
        summary.largest_skipped = largest.skipped
    _add_clipping(summary, finite)
    return summary


def _add_clipping(summary: Summary, finite: Sequence[StepSample]) -> None:
    clippable = [
        s
        for s in finite
        if s.skipped is None and s.max_norm is not None and math.isfinite(s.max_norm)
    ]
    coefs = [s.clip_coef for s in clippable if math.isfinite(s.clip_coef)]
    summary.num_clippable = len(clippable)
    summary.num_clipped = sum(coef < 1 for coef in coefs)
    if clippable:
        limits = [s.max_norm for s in clippable if s.max_norm is not None]
        summary.smallest_max_norm, summary.largest_max_norm = min(limits), max(limits)
    if coefs:
        summary.median_clip_coef = statistics.median(coefs)


def count_skipped_images(incidents: Sequence[Incident]) -> list[SkippedImage]:
    """Return the images of skipped batches, the most often skipped first."""
    paths: dict[str, str | None] = {}
    skipped: dict[str, set[object]] = {}
    blamed: dict[str, set[object]] = {}
    for incident in incidents:
        # one batch may hold an image twice (Mosaic), and a resume may take it again:
        # what counts are iterations
        place = incident.folder if incident.iteration is None else incident.iteration
        for sample in incident.samples if incident.action == 'skipped' else []:
            if sample.img_id is None:
                continue
            paths[sample.img_id] = paths.get(sample.img_id) or sample.img_path
            skipped.setdefault(sample.img_id, set()).add(place)
            if sample.culprit:
                blamed.setdefault(sample.img_id, set()).add(place)
    images = [
        SkippedImage(img_id, path, len(skipped[img_id]), len(blamed.get(img_id, ())))
        for img_id, path in paths.items()
    ]
    return sorted(images, key=lambda i: (-i.num_culprit, -i.num_skips))


def is_loss_of_weights(incident: Incident) -> bool:
    """Whether weights, moments or EMA were seen not to be finite."""
    phase = incident.first_bad.phase if incident.first_bad else None
    return (
        incident.weights_lost is not None
        or incident.kind == 'nonfinite_weights'
        or phase == 'weights'
    )
