"""bad-weights: the weights were not finite before this batch was seen."""

from __future__ import annotations

from typing import Any

CODE = 'bad-weights'
TITLE = 'The weights were already not finite'
CONFIDENCE = 0.95


def recognise(incident: dict[str, Any]) -> list[str]:
    """Return what shows it, nothing if it does not apply."""
    first = incident['first_bad'] or {}
    if incident['kind'] != 'nonfinite_weights' and first.get('phase') != 'weights':
        return []
    module = first.get('module') or 'a module'
    return [f'{module} held NaN or Inf before the step']


def where_to_resume(checkpoint: str | None) -> str:
    """Return what to resume from, as a sentence."""
    if checkpoint is None:
        return 'No checkpoint with finite weights is known.'
    # no full stop behind a path: it would be copied with it
    return f'Resume from {checkpoint} (the newest checkpoint with finite weights).'


def advise(incident: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what to do, most likely first."""
    lost = incident.get('weights_lost') or {}
    return [
        {
            'text': 'Nothing that this run does from here on can be used. '
            f'{where_to_resume(lost.get("checkpoint"))} The acting guard skips a step '
            'that would break them.',
            'config': {
                'default_hooks': {'grad_clip': {'type': 'mmgradguard.AdaptiveClipHook'}}
            },
        }
    ]
