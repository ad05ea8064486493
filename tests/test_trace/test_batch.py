"""Which image of a batch is to blame."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from mmengine.structures import BaseDataElement, InstanceData

from mmgradguard.trace.batch import describe_samples


class Boxes:
    """Boxes with a class of their own, as mmdet's."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def __len__(self) -> int:
        return len(self.tensor)


def sample(boxes: list[list[float]], img_id: int = 7, **more: Any) -> BaseDataElement:
    data = BaseDataElement(
        metainfo=dict(img_id=img_id, img_path=f'{img_id}.jpg', img_shape=(100, 200))
    )
    tensor = torch.tensor(boxes, dtype=torch.float32).reshape(-1, 4)
    labels = torch.zeros(len(tensor), dtype=torch.long)
    data.gt_instances = InstanceData(bboxes=tensor, labels=labels, **more)
    data.ignored_instances = InstanceData(bboxes=torch.zeros(0, 4))
    return data


def describe(*samples: Any, inputs: Any = None) -> list[dict[str, Any]]:
    if inputs is None:
        inputs = [torch.zeros(3, 4, 4) for _ in samples]
    return describe_samples({'inputs': inputs, 'data_samples': list(samples)})


GOOD = [10.0, 10.0, 20.0, 20.0]


def test_a_healthy_batch_has_ids_and_no_notes() -> None:
    rows = describe(sample([GOOD], 1), sample([GOOD, GOOD], 2))
    assert [r['img_id'] for r in rows] == [1, 2]
    assert [r['img_path'] for r in rows] == ['1.jpg', '2.jpg']
    assert not any(r['culprit'] or r['notes'] for r in rows)


@pytest.mark.parametrize('bad', [math.inf, -math.inf, math.nan, 1e38])
@pytest.mark.parametrize('position', range(4))
def test_a_box_that_is_not_finite_or_absurd_blames_its_image(
    bad: float, position: int
) -> None:
    box = list(GOOD)
    box[position] = bad
    rows = describe(sample([GOOD]), sample([GOOD, box], 8), sample([]))
    assert [r['culprit'] for r in rows] == [False, True, False]
    assert rows[1]['notes'][0].startswith('gt_instances.bboxes[1] is ')


@pytest.mark.parametrize(
    ('boxes', 'words'),
    [
        ([], 'no ground truth in this image'),
        ([[5, 5, 5, 20]], 'has no area'),
        ([[20, 20, 10, 30]], 'has no area'),
        ([[300, 10, 320, 20]], 'lies outside of the image'),
    ],
)
def test_odd_ground_truth_is_noted_but_not_blamed(
    boxes: list[list[float]], words: str
) -> None:
    (row,) = describe(sample(boxes))
    assert not row['culprit']
    assert words in row['notes'][0]


def test_boxes_of_a_class_of_their_own_are_seen() -> None:
    data = sample([GOOD])
    data.gt_instances.bboxes = Boxes(torch.tensor([[0.0, 0.0, math.inf, 1.0]]))
    (row,) = describe(data)
    assert row['culprit']


def test_velocities_masks_and_depths_are_looked_at_too() -> None:
    (row,) = describe(sample([GOOD], velocity=torch.tensor([[1.0, math.nan]])))
    assert row['culprit']
    assert row['notes'] == ['gt_instances.velocity[0] is not finite: [1, nan]']


def test_predictions_are_not_ground_truth() -> None:
    data = sample([GOOD])
    data.pred_instances = InstanceData(bboxes=torch.full((1, 4), math.nan))
    (row,) = describe(data)
    assert not row['culprit']


def test_a_bad_pixel_is_told_from_a_bad_target() -> None:
    images = [torch.zeros(3, 4, 4), torch.zeros(3, 4, 4)]
    images[1][0, 0, 0] = math.nan
    rows = describe(sample([GOOD]), sample([GOOD]), inputs=images)
    assert [r['culprit'] for r in rows] == [False, True]
    assert rows[1]['notes'] == ['input holds 1 NaN or Inf of 48 values']


def test_byte_images_are_finite() -> None:
    (row,) = describe(sample([GOOD]), inputs=[torch.zeros(3, 4, 4, dtype=torch.uint8)])
    assert not row['notes']


class Hostile:
    """Raises at every touch."""

    def __init__(self) -> None:
        self.metainfo = {'img_id': 3}

    def all_items(self) -> Any:
        raise KeyError('no')


def test_a_sample_that_cannot_be_read_costs_only_itself() -> None:
    rows = describe(Hostile(), sample([[0, 0, math.inf, 1]]))
    assert 'could not be looked at' in rows[0]['notes'][0]
    assert rows[1]['culprit']


@pytest.mark.parametrize(
    'batch',
    [
        None,
        [],
        {},
        'text',
        torch.zeros(0),
        torch.tensor(1.0),
        {'data_samples': None},
        (torch.zeros(2, 3), [{'id': 1}, {'id': 2}]),
        [{'inputs': torch.zeros(3), 'img_id': 4}],
        {'inputs': np.zeros((2, 3)), 'data_samples': [1, 'x']},
        {'inputs': {'img': torch.zeros(2, 3)}, 'data_samples': [{}, {}]},
        (torch.zeros(5, 3), torch.zeros(5)),
    ],
    ids=str,
)
def test_any_batch_gives_a_list(batch: Any) -> None:
    rows = describe_samples(batch)
    assert all(
        {'index', 'img_id', 'img_path', 'culprit', 'notes'} == set(r) for r in rows
    )


def test_a_plain_tuple_batch_is_numbered() -> None:
    assert len(describe_samples((torch.zeros(5, 3), torch.zeros(5)))) == 5


@pytest.mark.parametrize('value', [np.int64(5), torch.tensor(5), 5, np.array([5])])
def test_ids_of_any_number_type(value: Any) -> None:
    (row,) = describe_samples({'data_samples': [{'img_id': value}]})
    assert row['img_id'] == 5
