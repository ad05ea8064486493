"""bad-target: an annotation holds a NaN, an infinity or an absurd number."""

from __future__ import annotations

from typing import Any

from mmgradguard.core.incident import name_image

CODE = 'bad-target'
TITLE = 'The ground truth of an image is not finite, or absurdly large'
CONFIDENCE = 0.9


def recognise(incident: dict[str, Any]) -> list[str]:
    """Return what shows it, nothing if it does not apply."""
    return [
        f'{name_image(sample)}: {note}'
        for sample in incident['samples']
        if sample['culprit']
        for note in sample['notes']
        if not note.startswith('input ')
    ]


def advise(incident: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what to do, most likely first."""
    images = ', '.join(name_image(s) for s in incident['samples'] if s['culprit'])
    text = f'Repair or drop the annotation of {images}.'
    if incident['action'] == 'skipped':
        return [{'text': f'{text} This batch was passed over.', 'config': {}}]
    return [
        {
            'text': f"{text} Until then, AdaptiveClipHook with on_exception='skip' "
            'passes over such batches.',
            'config': {
                # a dict, which merges; `custom_hooks` would replace the user's list
                'default_hooks': {
                    'grad_clip': {
                        'type': 'mmgradguard.AdaptiveClipHook',
                        'on_exception': 'skip',
                    }
                }
            },
        }
    ]
