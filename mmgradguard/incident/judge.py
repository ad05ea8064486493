"""Names what is wrong with a step, from what was seen of it."""

from __future__ import annotations

import math
from typing import Any, Mapping

from mmgradguard.core.causes import explain
from mmgradguard.core.incident import describe_loss_terms
from mmgradguard.core.rules.spike import SpikeRule
from mmgradguard.incident.evidence import Evidence, first_bad_place


def are_finite(losses: Mapping[str, float]) -> bool:
    """Whether every loss term is finite."""
    return all(map(math.isfinite, losses.values()))


def find_kind(
    evidence: Evidence, losses: Mapping[str, float], loss_spikes: SpikeRule
) -> str | None:
    """Return the kind of incident that a step is, None if it is healthy or harmless.

    A search of the loss scale is harmless; a step dropped for an exception has had its
    incident when it raised.
    """
    outcome = evidence.outcome
    if outcome.skipped in ('exception', 'scaler'):
        return None
    if outcome.is_finite and not outcome.norm_overflow:
        if not are_finite(losses):
            return 'nonfinite_loss'
        if outcome.spike is not None:
            return 'grad_spike'
        return 'loss_spike' if loss_spikes.judge(losses.get('loss', 0.0)) else None
    if evidence.weights_were_bad:
        return 'nonfinite_weights'
    if outcome.norm_overflow:
        return 'norm_overflow'
    if not are_finite(losses):
        return 'nonfinite_loss'
    # at scale 1 there is nothing left to search for
    collapsed = outcome.loss_scale is not None and outcome.loss_scale <= 1.0
    return 'scale_collapse' if collapsed else 'nonfinite_gradient'


def find_action(evidence: Evidence) -> str:
    """Return what was done about a step."""
    if evidence.outcome.skipped is not None:
        return 'skipped'
    return 'clipped' if evidence.outcome.clip_coef < 1.0 else 'none'


def fill_in(
    incident: dict[str, Any],
    samples: list[dict[str, Any]],
    evidence: Evidence | None,
    losses: Mapping[str, float],
) -> None:
    """Put the evidence into an incident, and conclude kind, place and cause."""
    incident['samples'] = samples
    incident['loss_terms'] = describe_loss_terms(losses)
    if evidence is not None:
        incident['params'] = evidence.params
        incident['first_bad'] = evidence.first_bad
        if incident['kind'] == 'nonfinite_loss' and evidence.all_are_bad:
            # the loss spoiled every gradient: none of them says where it began
            incident['first_bad'] = first_bad_place('loss', None, None)
    phase, note = _bad_sample(samples)
    if phase and incident['kind'] in ('nonfinite_loss', 'nonfinite_gradient'):
        incident['kind'] = f'nonfinite_{phase}'
    kinds = ('nonfinite_input', 'nonfinite_target', 'exception')
    # lost weights explain everything that comes after them
    weights_are_bad = (incident['first_bad'] or {}).get('phase') == 'weights'
    if phase and incident['kind'] in kinds and not weights_are_bad:
        incident['first_bad'] = first_bad_place(phase, None, {'note': note})
    explain(incident)


def _bad_sample(samples: list[dict[str, Any]]) -> tuple[str | None, str | None]:
    notes = [sample['notes'][0] for sample in samples if sample['culprit']]
    if not notes:
        return None, None
    return ('input' if notes[0].startswith('input ') else 'target'), notes[0]
