"""Formats of one JSON object per line."""

from __future__ import annotations

import json

import pytest
from log_text import is_nan, read_text, row_of


def lines(*rows):
    return ''.join(json.dumps(row) + '\n' for row in rows)


def test_mmcv_json(tmp_path):
    row = {'mode': 'train', 'epoch': 1, 'iter': 50, 'lr': 0.1, 'loss': float('nan')}
    val = {'mode': 'val', 'epoch': 1, 'iter': 1601, 'lr': 0.1, 'mAP': 0.5, 'AP50': 0.4}
    bare = {'mode': 'val', 'epoch': 1, 'iter': 1601, 'lr': 0.1}
    last = {**row, 'iter': 100, 'loss': float('inf')}
    table = read_text(tmp_path, lines(row, val, bare, last))
    assert table.format == 'mmcv_json'
    assert list(table.lines) == [1, 4]
    assert list(table.iterations) == [50, 100]
    assert is_nan(table.columns['loss'][0])
    assert table.columns['loss'][1] == float('inf')
    assert list(table.columns) == ['lr', 'loss']
    (validation,) = table.validations
    assert validation.metrics == {'mAP': 0.5, 'AP50': 0.4}
    assert (validation.line, validation.after_row, validation.epoch) == (2, 0, 1)
    assert table.num_skipped_lines == 0


def test_mmengine_scalars(tmp_path):
    row = {'base_lr': 1e-4, 'lr': 1e-5, 'loss': 1.5, 'epoch': 1, 'iter': 50, 'step': 50}
    val = {'coco/bbox_mAP': 0.1, 'data_time': 0.1, 'time': 0.2, 'step': 1}
    test = {'coco/bbox_mAP': 0.2, 'time': 0.2}
    ours = {'grad_guard_norm/backbone': 0.5, 'step': 50}
    table = read_text(tmp_path, lines(row, ours, val, test))
    assert table.format == 'mmengine_scalars'
    assert row_of(table, 0) == {'base_lr': 1e-4, 'lr': 1e-5, 'loss': 1.5}
    assert [v.metrics for v in table.validations] == [
        {'coco/bbox_mAP': 0.1},
        {'coco/bbox_mAP': 0.2},
    ]
    assert [v.epoch for v in table.validations] == [1, None]
    assert table.num_skipped_lines == 0


def test_mmengine_scalars_with_hierarchy(tmp_path):
    row = {'train/lr': 1e-5, 'train/loss': 1.5, 'iter': 50, 'step': 50}
    table = read_text(tmp_path, lines(row, {'val/loss': 0.5, 'step': 1}))
    assert row_of(table, 0) == {'lr': 1e-5, 'loss': 1.5}
    assert table.validations[0].metrics == {'val/loss': 0.5}


def test_steps_jsonl(tmp_path):
    step = {
        'step': 0,
        'iteration': 0,
        'epoch': 0,
        'lr': 0.1,
        'losses': {'loss': 1.5, 'd0.loss_cls': 'inf'},
        'total_norm': 5.5,
        'max_norm': None,
        'clip_coef': 1.0,
        'skipped': None,
        'loss_scale': None,
        'nonfinite_params': 0,
        'module_norms': {'backbone': 1.0},
    }
    bad = {
        **step,
        'iteration': 1,
        'total_norm': 'nan',
        'skipped': 'scaler',
        'loss_scale': 512.0,
    }
    table = read_text(tmp_path, lines(step, bad))
    assert table.format == 'steps_jsonl'
    assert list(table.iterations) == [0, 1]
    assert row_of(table, 0) == {
        'loss': 1.5,
        'd0.loss_cls': float('inf'),
        'lr': 0.1,
        'grad_norm': 5.5,
        'clip_coef': 1.0,
        'nonfinite_params': 0.0,
    }
    assert is_nan(table.columns['grad_norm'][1])
    assert list(table.absent['loss_scale']) == [0]
    assert table.skips == {1: 'scaler'}


def test_a_null_is_an_absent_number(tmp_path):
    row = {'loss': 1.0, 'grad_norm': 2.0, 'iter': 1}
    table = read_text(tmp_path, lines(row, {**row, 'grad_norm': None, 'iter': 2}, row))
    assert list(table.absent['grad_norm']) == [1]
    assert list(table.columns['loss']) == [1.0] * 3


def test_numbers_in_strings_and_giant_integers(tmp_path):
    rows = [{'loss': 'nan', 'x': 'text', 'iter': 1}, {'loss': 10**400, 'iter': 2}]
    table = read_text(tmp_path, lines(*rows))
    assert list(table.columns) == ['loss']
    assert is_nan(table.columns['loss'][0])
    assert table.columns['loss'][1] == float('inf')


@pytest.mark.parametrize('mode', [{}, {'mode': 'train'}])
def test_quoted_numbers(tmp_path, mode):
    rows = [
        {**mode, 'iter': 1, 'loss': '1.23', 'name': '2024_01'},
        {**mode, 'iter': 2, 'loss': ' -4e-1 ', 'name': '1.2.3'},
    ]
    table = read_text(tmp_path, lines(*rows))
    assert {name: list(v) for name, v in table.columns.items()} == {
        'loss': [1.23, -0.4]
    }


def test_ultralytics_csv_shows_the_metric_that_chooses_the_best(tmp_path):
    text = (
        'epoch,time,train/box_loss,metrics/precision(B),metrics/mAP50-95(B)\n'
        '1,30.5,1.5,0.7,0.4\n2,61.0,1.4,0.8,0.5\n'
    )
    table = read_text(tmp_path, text)
    # its time is the time since the start
    assert list(table.columns) == ['train/box_loss']
    assert [list(v.metrics) for v in table.validations] == [
        ['metrics/mAP50-95(B)', 'metrics/precision(B)']
    ] * 2


def test_an_iteration_that_vanishes_is_not_printed(tmp_path):
    rows = [{'iteration': 19, 'total_loss': 2.0}, {'total_loss': 3.0}]
    table = read_text(tmp_path, lines(*rows))
    assert list(table.iterations) == [19, -1]


def test_detr(tmp_path):
    row = {
        'train_lr': 1e-4,
        'train_grad_norm': 12.5,
        'train_loss': 20.1,
        'train_loss_ce_0': 1.3,
        'test_loss': 18.0,
        'test_coco_eval_bbox': [0.1, 0.2, 0.05, 0.0],
        'epoch': 0,
        'n_parameters': 41302368,
    }
    table = read_text(tmp_path, lines(row, {**row, 'epoch': 1}))
    assert table.format == 'detr_json'
    assert list(table.epochs) == [0, 1]
    assert set(table.iterations) == {-1}
    assert row_of(table, 0) == {
        'lr': 1e-4,
        'grad_norm': 12.5,
        'loss': 20.1,
        'train_loss_ce_0': 1.3,
    }
    assert [v.after_row for v in table.validations] == [0, 1]
    assert table.validations[0].metrics == {
        'test_coco_eval_bbox': 0.1,
        'test_coco_eval_bbox_50': 0.2,
        'test_coco_eval_bbox_75': 0.05,
    }


def test_detectron2(tmp_path):
    row = {
        'eta_seconds': 1234.5,
        'iteration': 19,
        'lr': 1e-5,
        'total_loss': 2.3,
        'loss_cls': 0.8,
    }
    due = {**row, 'iteration': 39, 'bbox/AP': 38.1, 'bbox/AP50': 50.0}
    table = read_text(tmp_path, lines(row, due))
    assert table.format == 'detectron2_json'
    assert row_of(table, 1) == {'lr': 1e-5, 'loss': 2.3, 'loss_cls': 0.8}
    (validation,) = table.validations
    assert (validation.after_row, validation.metrics['bbox/AP']) == (1, 38.1)


@pytest.mark.parametrize('blanks', ['', '  '])
def test_ultralytics_csv(tmp_path, blanks):
    text = (
        'epoch,train/box_loss,metrics/mAP50(B),val/box_loss,lr/pg0\n'
        '1,1.5,0.1,1.4,0.001\n2,nan,0.0,nan,0.001\n'
    ).replace(',', f',{blanks}')
    table = read_text(tmp_path, text)
    assert table.format == 'ultralytics_csv'
    assert list(table.epochs) == [1, 2]
    assert row_of(table, 0) == {'train/box_loss': 1.5, 'lr': 0.001}
    assert is_nan(table.columns['train/box_loss'][1])
    assert [v.metrics for v in table.validations] == [
        {'metrics/mAP50(B)': 0.1},
        {'metrics/mAP50(B)': 0.0},
    ]


@pytest.mark.parametrize('prefix', ['rank0: ', '> ', '2023-10-01T12:00:00Z stdout F '])
@pytest.mark.parametrize('suffix', ['', ',', ' 45%|#'])
def test_prefixes_and_commas_around_an_object(tmp_path, prefix, suffix):
    row = json.dumps({'mode': 'train', 'epoch': 1, 'iter': 50, 'loss': 1.5})
    table = read_text(tmp_path, f'{prefix}{row}{suffix}\nnoise\n{row}\n')
    assert table.format == 'mmcv_json'
    assert len(table) == 1  # the same row, printed twice
    assert table.num_skipped_lines == 1


def test_a_last_line_that_is_cut(tmp_path):
    row = json.dumps({'mode': 'train', 'epoch': 1, 'iter': 50, 'loss': 1.5})
    table = read_text(tmp_path, f'{row}\n{row[:-9]}')
    assert (len(table), table.is_cut) == (1, True)
    table = read_text(tmp_path, row)
    assert (len(table), table.is_cut) == (1, False)
