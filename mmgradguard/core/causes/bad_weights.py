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


def advise(incident: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what to do, most likely first."""
    return [
        {
            'text': 'Nothing that this run does from here on can be used. Resume from '
            'the newest checkpoint whose weights are finite, with the acting guard, '
            'which skips the step that broke them.',
            'config': {
                'default_hooks': {'grad_clip': {'type': 'mmgradguard.AdaptiveClipHook'}}
            },
        }
    ]
