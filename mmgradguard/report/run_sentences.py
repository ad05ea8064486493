"""What the figures of a run mean, in plain words."""

from __future__ import annotations

from collections import Counter
from typing import Sequence

from mmgradguard.core.causes.bad_weights import where_to_resume
from mmgradguard.core.types import Verdict
from mmgradguard.report.incident_record import Incident
from mmgradguard.report.summary import Summary, is_loss_of_weights
from mmgradguard.report.values import (
    MAX_INT,
    format_count,
    format_number,
    format_place,
    format_share,
    shorten,
)

#: Above this share of clipped steps the threshold, not the gradient, sets the length.
ALWAYS_CLIPPED = 0.9

_NO_STEPS = {
    'read': 'No optimizer step is recorded.',
    'absent': 'No optimizer step is recorded: training ended before the first.',
    'empty': 'No optimizer step is recorded: steps.jsonl is empty, so nothing is known '
    'of the steps.',
    'damaged': 'No optimizer step can be read: every line of steps.jsonl is damaged, '
    'so nothing is known of the steps.',
}
_SKIP_WORDS = {
    'scaler': 'by the scaler while it searched for its loss scale: harmless, the '
    'weights stayed as they were',
    'nonfinite': 'because their gradients were not finite: the weights stayed as '
    'they were',
    'spike': 'because their gradients were a spike: the weights stayed as they were',
    'exception': 'because training raised on their batch: the weights stayed as '
    'they were',
}


def describe(summary: Summary, incidents: Sequence[Incident]) -> list[str]:
    """Return what the figures mean, the most important first."""
    if not summary.num_steps:
        return [
            *_describe_weights(incidents),
            _NO_STEPS[summary.steps_file],
            *_describe_incidents(summary, incidents),
        ]
    return [
        *_describe_weights(incidents),
        *_describe_incidents(summary, incidents),
        *_describe_nonfinite(summary),
        *_describe_skips(summary),
        *_describe_images(summary),
        *_describe_norms(summary),
        *_describe_restarts(summary),
        *_describe_clipping(summary),
    ]


def _describe_weights(incidents: Sequence[Incident]) -> list[str]:
    lost = [incident for incident in incidents if is_loss_of_weights(incident)]
    if not lost:
        return []
    # each incident from then on says the same; one without it saw the loss itself
    first = min(lost, key=_lost_at)
    told = next((i.weights_lost for i in lost if i.weights_lost is not None), None)
    epoch = first.weights_lost.epoch if first.weights_lost else first.epoch
    iteration = _lost_at(first) if _lost_at(first) < MAX_INT else None
    place = format_place(epoch, iteration)
    name = f', such as {told.name}' if told and told.name else ''
    return [
        f'Weights are not finite since {place} (or shortly before){name}: nothing '
        f'after that can be used. {where_to_resume(told.checkpoint if told else None)}'
    ]


def _lost_at(incident: Incident) -> int:
    lost = incident.weights_lost
    place = incident.iteration if lost is None else lost.iteration
    return MAX_INT if place is None else place


def _describe_incidents(summary: Summary, incidents: Sequence[Incident]) -> list[str]:
    if not incidents:
        steps = format_count(summary.num_steps, 'step')
        if summary.unrecorded:
            return [
                f'No incident is recorded in {steps}.{_describe_unrecorded(summary)}'
            ]
        return [f'No incident in {steps}.']
    counts = Counter(incident.verdict for incident in incidents)
    order = (Verdict.FATAL, Verdict.SUSPICIOUS, Verdict.BENIGN)
    parts = [f'{counts[v.value]} {v.value}' for v in order if counts[v.value]]
    text = f'{format_count(len(incidents), "incident")}: {", ".join(parts)}.'
    return [text + _describe_unrecorded(summary)]


def _describe_unrecorded(summary: Summary) -> str:
    total = sum(summary.unrecorded.values())
    if not total:
        return ''
    kinds = ', '.join(f'{num} {kind}' for kind, num in summary.unrecorded.items())
    were = 'was' if total == 1 else 'were'
    return f' {total} more {were} not recorded: max_incidents ({kinds}).'


def _describe_nonfinite(summary: Summary) -> list[str]:
    num = summary.num_nonfinite_taken
    if not num:
        return []
    check = '' if summary.weights_lost else ': check that the weights are finite'
    return [
        f'{format_count(num, "step")} with a non-finite grad_norm (total_norm) '
        f'{"was" if num == 1 else "were"} not skipped{check}. AdaptiveClipHook skips '
        'such steps.'
    ]


def _describe_skips(summary: Summary) -> list[str]:
    return [
        f'{num} of {format_count(summary.num_steps, "step")} skipped '
        f'{_SKIP_WORDS[reason]}.'
        for reason, num in summary.skipped.items()
    ]


def _describe_restarts(summary: Summary) -> list[str]:
    num = max(summary.num_runs, summary.num_restarts + 1)
    if num == 1:
        return []
    text = f'This folder holds {num} runs; they are counted and drawn together'
    if summary.num_replayed:
        steps = format_count(summary.num_replayed, 'step')
        was = 'was' if summary.num_replayed == 1 else 'were'
        text += f'. {steps} that {was} taken again after a resume {was} counted once'
    return [f'{text}.']


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
        f'{head}clipped at max_norm {limit}: lr x max_norm sets the step, not the size '
        'of the gradient, and an adaptive threshold below it hardly acts (median norm '
        f'{format_number(summary.median_norm)}).'
    ]
