"""bad-input: the pixels or points of a sample hold a NaN or an infinity."""

from __future__ import annotations

from typing import Any

from mmgradguard.core.incident import name_image

CODE = 'bad-input'
TITLE = 'The input of an image is not finite'
CONFIDENCE = 0.92


def recognise(incident: dict[str, Any]) -> list[str]:
    """Return what shows it, nothing if it does not apply."""
    return [
        f'{name_image(sample)}: {note}'
        for sample in incident['samples']
        for note in sample['notes']
        if note.startswith('input ')
    ]


def advise(incident: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what to do, most likely first."""
    return [
        {
            'text': 'Look at the file and at the pipeline behind it: a decoder, or a '
            'normalisation with a standard deviation of 0, makes such values.',
            'config': {},
        }
    ]
