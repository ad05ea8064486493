"""What names say."""

from __future__ import annotations

import pytest

from mmgradguard.logs.terms import is_loss_term, layer_of, order_key, total_of


@pytest.mark.parametrize(
    'name',
    [
        'loss',
        'd0.loss_bbox',
        'frame_0_d0.dn_loss_cls',
        'loss/object/heatmap/task2',
        'layer_-1_loss_cls',
        'L_det',
        'cls',
        'reg',
        'box_loss',
        'dfl_loss',
        'train/box_loss',
        'train_loss_ce_0',
        'total_loss',
        'd3.cls',
    ],
)
def test_a_loss_term(name):
    assert is_loss_term(name)


@pytest.mark.parametrize(
    'name',
    [
        'acc',
        's0.acc',
        'matched_ious',
        'lr',
        'time',
        'data_time',
        'memory',
        'grad_norm',
        'coco/bbox_mAP',
        'loss_scale',
        'train_loss_ce_unscaled',
        'grad_guard/loss_max',
        'val/loss',
        'train_class_error',
    ],
)
def test_no_loss_term(name):
    assert not is_loss_term(name)


@pytest.mark.parametrize(
    ('columns', 'total'),
    [
        (['lr', 'loss_cls', 'loss'], 'loss'),
        (['total', 'L_det'], 'total'),
        (['loss_cls', 'loss_bbox'], None),
        ([], None),
    ],
)
def test_the_total(columns, total):
    assert total_of(columns) == total


@pytest.mark.parametrize(
    ('name', 'layer'),
    [
        ('d3.loss_bbox', 'd3'),
        ('d3.dn_loss_bbox', 'd3'),
        ('dn_d3.loss_bbox', 'dn_d3'),
        ('layer_-1_loss_cls', 'layer_-1'),
        ('layer_2_loss_cls', 'layer_2'),
        ('frame_0_d0.dn_loss_cls', 'frame_0_d0'),
        ('frame_1_loss_cls', 'frame_1'),
        ('s1.loss_cls', 's1'),
        ('enc_loss_cls', 'enc'),
        ('dn_loss_cls', 'dn'),
        ('loss_ce_4', '4'),
        ('loss_cls', None),
        ('loss', None),
        ('loss_l1', None),
        ('loss/object/heatmap/task2', None),
    ],
)
def test_the_layer(name, layer):
    assert layer_of(name) == layer


def test_numbers_are_sorted_as_numbers():
    names = ['d10.loss', 'layer_-1_x', 'd2.loss', 'loss', 'd2.acc']
    assert sorted(names, key=order_key) == [
        'd2.acc',
        'd2.loss',
        'd10.loss',
        'layer_-1_x',
        'loss',
    ]
