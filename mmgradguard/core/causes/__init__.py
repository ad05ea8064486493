"""Known causes, one file each: how an incident shows it, and what to do about it."""

from __future__ import annotations

from typing import Any

from mmgradguard.core.causes import bad_input, bad_target, bad_weights, norm_overflow

#: Asked in this order; of those that answer, the most confident is taken.
CAUSES = (bad_weights, bad_input, bad_target, norm_overflow)


def explain(incident: dict[str, Any]) -> None:
    """Fill in `cause` and `advice` of an incident from its own evidence."""
    found = []
    for cause in CAUSES:
        evidence = cause.recognise(incident)
        if evidence:
            found.append((cause.CONFIDENCE, cause, evidence))
    if not found:
        advise_lost_weights(incident)
        return
    confidence, cause, evidence = max(found, key=lambda entry: entry[0])
    incident['cause'] = {
        'code': cause.CODE,
        'title': cause.TITLE,
        'confidence': confidence,
        'evidence': evidence,
    }
    incident['advice'] = cause.advise(incident)
    if cause is not bad_weights:
        advise_lost_weights(incident)


def advise_lost_weights(incident: dict[str, Any]) -> None:
    """Put first what to resume from, where weights are lost by now."""
    if incident.get('weights_lost') is None:
        return
    first = bad_weights.advise(incident)
    rest = [advice for advice in incident['advice'] if advice not in first]
    incident['advice'] = first + rest
