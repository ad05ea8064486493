"""bad-target: an annotation holds a NaN, an infinity or an absurd number."""

from __future__ import annotations

from typing import Any

CODE = 'bad-target'
TITLE = 'The ground truth of an image is not finite, or absurdly large'
CONFIDENCE = 0.9


def recognise(incident: dict[str, Any]) -> list[str]:
    """Return what shows it, nothing if it does not apply."""
    return [
        f'image {sample["img_id"]}: {note}'
        for sample in incident['samples']
        if sample['culprit']
        for note in sample['notes']
        if not note.startswith('input ')
    ]


def advise(incident: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what to do, most likely first."""
    images = ', '.join(str(s['img_id']) for s in incident['samples'] if s['culprit'])
    return [
        {
            'text': f'Repair or drop the annotation of image {images}. Until then, '
            "AdaptiveClipHook with on_exception='skip' passes over such batches.",
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
