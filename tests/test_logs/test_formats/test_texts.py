"""Rows of mmengine, mmcv and detectron2, and of ultralytics' console."""

from __future__ import annotations

import pytest
from log_text import (
    MMENGINE_ROW,
    OLD_STAMP,
    STAMP,
    is_nan,
    mmcv_row,
    mmengine_row,
    read_text,
    row_of,
)


@pytest.mark.parametrize('gap', ['  ', ' ', '    ', '\t'])
@pytest.mark.parametrize('stamp', [STAMP, '05/18 06:39:12 - mmengine - INFO - '])
def test_mmengine(tmp_path, gap, stamp):
    rows = [mmengine_row(i, gap=gap, stamp=stamp) for i in (50, 100, 150)]
    table = read_text(tmp_path, '\n'.join(rows) + '\n')
    assert table.format == 'mmengine_text'
    assert list(table.iterations) == [50, 100, 150]
    assert set(table.epochs) == {1}
    assert set(table.epoch_lengths) == {788}
    assert table.time_of(2) == stamp.partition(' - ')[0]
    assert row_of(table, 2) == MMENGINE_ROW


def test_mmengine_names_learning_rates_apart(tmp_path):
    text = f'{STAMP}Epoch(train) [1][ 1/9]  base_lr: 1.0e-04 lr: 1.0e-05  eta: 0:00:01'
    table = read_text(tmp_path, f'{text}  loss: 1.0\n')
    assert row_of(table, 0) == {'base_lr': 1e-4, 'lr': 1e-5, 'loss': 1.0}


@pytest.mark.parametrize('name', ['mmdet', 'mmdet3d', 'mmseg', 'mmocr', 'my.logger'])
@pytest.mark.parametrize('gap', ['\t', '    ', ' '])
def test_mmcv(tmp_path, name, gap):
    stamp = OLD_STAMP.replace('mmdet', name)
    rows = [mmcv_row(i, stamp=stamp).replace('\t', gap) for i in (50, 100, 150)]
    table = read_text(tmp_path, '\n'.join(rows) + '\n')
    assert table.format == 'mmcv_text'
    assert list(table.iterations) == [50, 100, 150]
    assert set(table.epoch_lengths) == {788}
    assert table.time_of(0) == '2020-10-28 21:59:39,109'
    assert row_of(table, 1) == {
        'lr': 2e-2,
        'time': 0.289,
        'data_time': 0.101,
        'memory': 2570,
        'loss_cls': 0.8781,
        'loss_bbox': 0.6262,
        'loss': 1.5043,
        'grad_norm': 3.4572,
    }


@pytest.mark.parametrize(
    ('place', 'name'),
    [('Iter [5400/84384]\t', 'mmcv_text'), ('Iter(train) [  5400/84384]  ', None)],
)
def test_iteration_runners(tmp_path, place, name):
    row = f'{OLD_STAMP}{place}lr: 1.0e-02, loss: 1.5'
    table = read_text(tmp_path, f'{row}\n')
    assert table.format == (name or 'mmengine_text')
    assert (table.epochs[0], table.iterations[0]) == (-1, 5400)
    assert table.epoch_lengths[0] == 0


@pytest.mark.parametrize('num', [5, 50, 300])
def test_quick_and_careful_reading_agree(tmp_path, num):
    # a comment behind each row takes the careful path, word by word
    rows = [mmengine_row(i % 700 + 1, tail=f'loss: {i / 7:.4f}') for i in range(num)]
    quick = read_text(tmp_path, '\n'.join(rows) + '\n')
    careful = read_text(tmp_path, '\n'.join(f'{row} #' for row in rows) + '\n')
    for table in (quick, careful):
        assert list(table.columns['loss']) == [round(i / 7, 4) for i in range(num)]
    assert quick.iterations == careful.iterations
    assert [quick.time_of(i) for i in range(num)] == [
        careful.time_of(i) for i in range(num)
    ]


@pytest.mark.parametrize('place', [0, 1, 40, 63, 64, 199])
@pytest.mark.parametrize(
    'odd',
    [
        mmengine_row(0, tail='loss: 1.5043  loss_cls: 0.8781  loss_box: 0.6262'),
        mmengine_row(0, tail='loss: 1.5043'),
        mmengine_row(0).replace('memory: 15943  ', ''),
        mmengine_row(0).replace('4:14:00', '1 day, 4:14:00'),
        mmengine_row(0).replace('/788]', '/900]'),
        mmengine_row(0).replace('0.8781', 'much'),
        mmengine_row(0).replace('[1]', '[99999999999999999999999]'),
    ],
)
def test_one_odd_row_among_many(tmp_path, place, odd):
    rows = [mmengine_row(i + 1) for i in range(200)]
    rows[place] = odd.replace('[  0/', f'[{place + 1:3d}/')
    table = read_text(tmp_path, '\n'.join(rows) + '\n')
    expected = set(range(1, 201))
    if '999]' in odd:
        expected.discard(place + 1)  # no place that a run can have
    assert set(table.iterations) == expected
    regular = [i for i, n in enumerate(table.iterations) if n != place + 1]
    assert {repr(row_of(table, i)) for i in regular} == {
        repr(row_of(table, regular[0]))
    }
    assert row_of(table, regular[0]) == MMENGINE_ROW


def test_rows_that_take_turns_in_their_looks(tmp_path):
    rows = [
        mmengine_row(i + 1, tail='loss: 1.0' if i % 2 else 'loss: 2.0  loss_cls: 2.0')
        for i in range(400)
    ]
    table = read_text(tmp_path, '\n'.join(rows) + '\n')
    assert list(table.columns['loss']) == [2.0, 1.0] * 200
    assert list(table.absent['loss_cls']) == list(range(1, 400, 2))


def test_detectron2(tmp_path):
    line = (
        '[08/13 15:12:11 d2.utils.events]:  eta: 1 day, 3:14:12  iter: {}  '
        'total_loss: {}  loss_cls: 0.8012  time: 0.3465  lr: 1.9e-05  max_mem: 2345M'
    )
    text = f'{line.format(19, 2.345)}\n{line.format(39, "nan")}\n'
    table = read_text(tmp_path, text)
    assert table.format == 'detectron2_text'
    assert list(table.iterations) == [19, 39]
    assert row_of(table, 0) == {
        'loss': 2.345,
        'loss_cls': 0.8012,
        'time': 0.3465,
        'lr': 1.9e-5,
        'memory': 2345,
    }
    assert is_nan(table.columns['loss'][1])
    assert table.time_of(0) == '08/13 15:12:11'


def test_ultralytics_console(tmp_path):
    titles = '      Epoch    GPU_mem   box_loss   cls_loss  Instances       Size'
    lines = [
        titles,
        '\r      1/9      2.61G      1.1      2.3         15        640:   0%|   | 0/8'
        '\r      1/9      2.61G      1.2      2.4         15        640: 100%|###| 8/8',
        '                 Class     Images  Instances      Box(P          R      mAP50',
        '                   all        128        929      0.678      0.532      0.6',
        titles,
        '      2/9      2.61G        nan        nan         15        640: 100%|#| 8/8',
    ]
    table = read_text(tmp_path, '\n'.join(lines) + '\n')
    assert table.format == 'ultralytics_text'
    assert list(table.epochs) == [1, 2]
    assert list(table.iterations) == [-1, -1]
    assert list(table.lines) == [2, 6]
    assert row_of(table, 0) == {'box_loss': 1.2, 'cls_loss': 2.4}
    assert is_nan(table.columns['box_loss'][1])
    (validation,) = table.validations
    assert validation.metrics == {'P': 0.678, 'R': 0.532, 'mAP50': 0.6}
    assert (validation.epoch, validation.after_row) == (1, 0)
