"""Figures of a run, and what they mean in plain words."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from dataclasses import dataclass, field
from typing import Sequence

from mmgradguard.core.types import StepSample, Verdict
from mmgradguard.report.incident_record import Incident
from mmgradguard.report.values import (
    format_count,
    format_number,
    format_place,
    format_share,
    shorten,
)

#: Above this share of clipped steps the threshold, not the gradient, sets the length.
ALWAYS_CLIPPED = 0.9

_SKIP_WORDS = {
    'scaler': 'by the scaler while it searched for its loss scale: harmless, the '
    'weights stayed as they were',
    'nonfinite': 'because their gradients were not finite: the weights stayed as '
    'they were',
    'spike': 'because their gradients were a spike: the weights stayed as they were',
    'exception': 'because training raised on their batch: the weights stayed as '
    'they were',
}


@dataclass
class SkippedImage:
    """An image of batches whose step was skipped."""

    img_id: str
    img_path: str | None = None
    num_skips: int = 0
    num_culprit: int = 0


@dataclass
class Summary:
    """Figures of a run. Norms are of single steps, unscaled, before clipping.

    `num_clipped` of `num_clippable` steps were shortened: those taken, with a
    threshold and a finite norm. `num_restarts`: how often the iteration went back, by a
    resume or by another run in the same folder. `largest_*` is the largest finite norm
    of one step and where it was (0-based, as in the file); None without one.
    """

    num_steps: int = 0
    num_iterations: int = 0
    num_restarts: int = 0
    num_incidents: int = 0
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
    images: dict[str, SkippedImage] = {}
    for incident in incidents:
        seen = set()
        for sample in incident.samples if incident.action == 'skipped' else []:
            if sample.img_id is None:
                continue
            image = images.setdefault(sample.img_id, SkippedImage(sample.img_id))
            image.img_path = image.img_path or sample.img_path
            image.num_culprit += bool(sample.culprit)
            # one batch may hold an image twice (Mosaic); it was skipped once
            image.num_skips += sample.img_id not in seen
            seen.add(sample.img_id)
    return sorted(images.values(), key=lambda i: (-i.num_culprit, -i.num_skips))


def describe(summary: Summary, incidents: Sequence[Incident]) -> list[str]:
    """Return what the figures mean, the most important first."""
    if not summary.num_steps:
        sentences = ['No optimizer step is recorded: training ended before the first.']
        return sentences + _describe_incidents(summary, incidents)
    return [
        *_describe_incidents(summary, incidents),
        *_describe_nonfinite(summary),
        *_describe_skips(summary),
        *_describe_images(summary),
        *_describe_norms(summary),
        *_describe_clipping(summary),
        *_describe_restarts(summary),
    ]


def _describe_incidents(summary: Summary, incidents: Sequence[Incident]) -> list[str]:
    if not incidents:
        return [f'No incident in {format_count(summary.num_steps, "step")}.']
    counts = Counter(incident.verdict for incident in incidents)
    order = (Verdict.FATAL, Verdict.SUSPICIOUS, Verdict.BENIGN)
    parts = [f'{counts[v.value]} {v.value}' for v in order if counts[v.value]]
    return [f'{format_count(len(incidents), "incident")}: {", ".join(parts)}.']


def _describe_nonfinite(summary: Summary) -> list[str]:
    num = summary.num_nonfinite_taken
    if not num:
        return []
    return [
        f'{format_count(num, "step")} with a non-finite grad_norm (total_norm) '
        f'{"was" if num == 1 else "were"} not skipped: check that the weights are '
        'finite. AdaptiveClipHook skips such steps.'
    ]


def _describe_skips(summary: Summary) -> list[str]:
    return [
        f'{num} of {format_count(summary.num_steps, "step")} skipped '
        f'{_SKIP_WORDS[reason]}.'
        for reason, num in summary.skipped.items()
    ]


def _describe_restarts(summary: Summary) -> list[str]:
    if not summary.num_restarts:
        return []
    times = format_count(summary.num_restarts, 'time')
    return [
        f'The iteration goes back {times}: a resume, or several runs that wrote into '
        'this folder; all of them are counted and drawn here.'
    ]


def _describe_images(summary: Summary) -> list[str]:
    sentences = []
    is_explained = any(image.num_culprit for image in summary.skipped_images)
    for image in summary.skipped_images[:5]:
        name = shorten(image.img_id, 60)
        if image.img_path:
            name += f' ({shorten(image.img_path, 160)})'
        batches = format_count(image.num_skips, 'skipped step')
        if image.num_culprit:
            sentences.append(
                f'Image {name} was in {batches}, marked as the culprit in '
                f'{image.num_culprit}: look at it and at its annotation.'
            )
        elif image.num_skips > 1 and not is_explained:
            sentences.append(f'Image {name} was in {batches}: look at it.')
    return sentences


def _describe_norms(summary: Summary) -> list[str]:
    if summary.largest_norm is None:
        return ['No step had a finite grad_norm (total_norm).']
    place = format_place(summary.largest_epoch, summary.largest_iteration)
    text = (
        'Largest grad_norm (total_norm) of a single step: '
        f'{format_number(summary.largest_norm)} at {place}'
    )
    ratio = summary.largest_norm / summary.median_norm if summary.median_norm else 0
    if ratio >= 10:
        text += f', {format_number(ratio)} times the median'
    if summary.largest_skipped:
        text += '; that step was skipped'
    return [f'{text}.']


def _describe_clipping(summary: Summary) -> list[str]:
    num, total = summary.num_clipped, summary.num_clippable
    if not total:
        return []
    low, high = summary.smallest_max_norm, summary.largest_max_norm
    head = f'{num} of {format_count(total, "step")} ({format_share(num, total)}) '
    fixed = low is not None and high is not None and high - low <= 1e-6 * high
    limit = format_number(low)
    if num < ALWAYS_CLIPPED * total:
        return [f'{head}clipped.'] if num else ['No step was clipped.']
    if not fixed:
        return [
            f'{head}clipped, by a threshold between {limit} and {format_number(high)}.'
        ]
    return [
        f'{head}clipped at max_norm {limit}, so every such step has the same length, '
        f'{limit}: the effective step is set by lr x max_norm, not by the size of the '
        'gradient. An adaptive threshold acts only below this ceiling, and past norms '
        f'(median {format_number(summary.median_norm)}) lie above it: it cannot act '
        'here. Lowering max_norm is only a lower lr (and under Adam or AdamW, which '
        'divide a constant factor out again, hardly even that).'
    ]
