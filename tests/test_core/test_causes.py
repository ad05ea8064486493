"""What an incident is explained by, and what it advises."""

from __future__ import annotations

from typing import Any

import pytest

from mmgradguard.core.causes import explain
from mmgradguard.core.incident import name_image, new_incident

BOX = 'gt_instances.bboxes[0] is not finite: [1, 2, inf, 3]'


def incident(kind: str, action: str, **sample: Any) -> dict[str, Any]:
    made = new_incident(kind=kind, iteration=3, step=3, epoch=0, rank=0, action=action)
    made['samples'] = [
        {'index': 2, 'img_id': 17, 'img_path': None, 'culprit': True, 'notes': [BOX]}
    ]
    made['samples'][0].update(sample)
    explain(made)
    return made


@pytest.mark.parametrize('action', ['raised', 'none'])
def test_passing_over_is_advised_where_it_was_not_done(action: str) -> None:
    (advice,) = incident('exception', action)['advice']
    assert advice['text'].startswith('Repair or drop the annotation of image 17.')
    assert "on_exception='skip'" in advice['text']
    assert advice['config']['default_hooks']['grad_clip']['on_exception'] == 'skip'


def test_passing_over_is_not_advised_for_a_batch_that_was_passed_over() -> None:
    (advice,) = incident('exception', 'skipped')['advice']
    assert advice['text'].startswith('Repair or drop the annotation of image 17.')
    assert 'on_exception' not in str(advice)


def test_an_image_without_id_is_named_by_its_place() -> None:
    made = incident('exception', 'raised', img_id=None)
    assert 'of the image at index 2 of the batch' in made['advice'][0]['text']
    assert made['cause']['evidence'] == [f'the image at index 2 of the batch: {BOX}']
    assert name_image({'index': 2, 'img_id': 0}) == 'image 0'
