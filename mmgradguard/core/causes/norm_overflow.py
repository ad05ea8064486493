"""norm-overflow: every gradient is finite, but the fp32 norm of all is not."""

from __future__ import annotations

from typing import Any

CODE = 'norm-overflow'
TITLE = 'Gradients are finite but too large for an fp32 norm'
CONFIDENCE = 0.9


def recognise(incident: dict[str, Any]) -> list[str]:
    """Return what shows it, nothing if it does not apply."""
    if incident['kind'] != 'norm_overflow':
        return []
    return [
        'every gradient is finite, their fp32 norm is inf: '
        'a plain clip makes this step 0'
    ]


def advise(incident: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what to do, most likely first."""
    return [
        {
            'text': 'Gradients above 1e19 are no bad luck: look at the loss terms '
            'and the learning rate before this step.',
            'config': {},
        }
    ]
