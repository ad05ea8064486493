"""Restarts, experiments, rows printed twice, terms that come and go."""

from __future__ import annotations

import pytest
from log_text import (
    OLD_STAMP,
    STAMP,
    is_nan,
    mmcv_row,
    mmengine_row,
    read_text,
    row_of,
    sections_of,
)

from mmgradguard.logs.read import read_log

ENVIRONMENT = (
    f'{STAMP}\n{"-" * 60}\nSystem environment:\n    Python: 3.8.16\n{"-" * 60}'
)
CONFIG = f"{STAMP}Config:\nmodel = dict(type='DETR')"
RESUMED = f'{STAMP}resumed epoch: 2, iter: 1576'


def rows_from(iteration, epoch=1, num=3):
    return [mmengine_row(iteration + 50 * i, epoch=epoch) for i in range(num)]


@pytest.mark.parametrize(
    ('between', 'second', 'reason'),
    [
        ([], rows_from(50), 'experiment'),
        ([ENVIRONMENT], rows_from(50), 'experiment'),
        ([ENVIRONMENT, CONFIG], rows_from(50), 'experiment'),
        ([ENVIRONMENT, RESUMED], rows_from(50, epoch=3), 'resume'),
        ([RESUMED], rows_from(50, epoch=3), 'resume'),
        ([ENVIRONMENT], rows_from(50, epoch=3), 'resume'),
        ([ENVIRONMENT], rows_from(50, epoch=2), 'resume'),
        ([], rows_from(50, epoch=2), 'resume'),
        ([ENVIRONMENT], rows_from(500, epoch=2), 'resume'),
    ],
)
def test_why_a_section_begins(tmp_path, between, second, reason):
    first = [*rows_from(50), *rows_from(50, epoch=2)]
    table = read_text(tmp_path, '\n'.join([*first, *between, *second]) + '\n')
    assert sections_of(table) == [(0, 'start'), (6, reason)]


def test_going_back_to_less_than_half_is_another_experiment(tmp_path):
    text = '\n'.join([*rows_from(50, epoch=12), *rows_from(50, epoch=3)])
    assert sections_of(read_text(tmp_path, text)) == [(0, 'start'), (3, 'experiment')]


def test_an_iteration_runner_that_resumes_and_begins_anew(tmp_path):
    def row(iteration):
        return f'{STAMP}Iter(train) [{iteration:6d}/160000]  lr: 1.0e-04  loss: 1.5'

    places = [50, 100, 150, 1000, 1050, 1000, 1050, 50, 100]
    table = read_text(tmp_path, '\n'.join(map(row, places)))
    assert sections_of(table) == [(0, 'start'), (5, 'resume'), (7, 'experiment')]
    assert list(table.iterations) == places
    assert set(table.epochs) == {-1}
    assert set(table.epoch_lengths) == {0}


def test_each_section_has_its_own_header(tmp_path):
    lines = [
        ENVIRONMENT,
        f"{STAMP}Config:\nmodel = dict(type='DETR')",
        *rows_from(50),
        ENVIRONMENT,
        f"{STAMP}Config:\nmodel = dict(type='DINO')",
        *rows_from(50),
    ]
    table = read_text(tmp_path, '\n'.join(lines))
    configs = [section.header.config for section in table.sections]
    assert configs == [{'model': {'type': 'DETR'}}, {'model': {'type': 'DINO'}}]
    assert table.section_of(2).header.config == configs[0]
    assert table.section_of(3).header.config == configs[1]
    assert table.num_skipped_lines == 0


def test_a_crash_before_the_first_row_leaves_the_header_of_the_next(tmp_path):
    lines = [
        f"{STAMP}Config:\nmodel = dict(type='DETR')",
        f"{STAMP}Config:\nmodel = dict(type='DINO')",
        *rows_from(50),
    ]
    table = read_text(tmp_path, '\n'.join(lines))
    assert table.sections[0].header.config == {'model': {'type': 'DINO'}}
    assert len(table.sections) == 1


def test_a_validation_between_epochs_is_no_resume(tmp_path):
    lines = [
        mmcv_row(700),
        mmcv_row(750),
        f'{OLD_STAMP}Saving checkpoint at 1 epochs',
        f'{OLD_STAMP}Epoch(val) [1][625]\tbbox_mAP: 0.1230, bbox_mAP_50: 0.2450, '
        'bbox_mAP_copypaste: 0.123 0.245 0.100',
        mmcv_row(50, epoch=2),
    ]
    table = read_text(tmp_path, '\n'.join(lines))
    assert sections_of(table) == [(0, 'start')]
    (validation,) = table.validations
    assert (validation.line, validation.after_row, validation.epoch) == (4, 1, 1)
    assert validation.metrics == {'bbox_mAP': 0.123, 'bbox_mAP_50': 0.245}


def test_a_validation_printed_twice_counts_once(tmp_path):
    line = f'{STAMP}Epoch(val) [1][100/100]    coco/bbox_mAP: 0.0510  time: 0.0827'
    other = f'{STAMP}Epoch(val) [1][100/100]    coco/segm_mAP: 0.0410'
    text = '\n'.join([mmengine_row(50), line, line, other])
    (validation,) = read_text(tmp_path, text).validations
    assert validation.metrics == {'coco/bbox_mAP': 0.051, 'coco/segm_mAP': 0.041}


def test_terms_that_appear_late_and_vanish(tmp_path):
    tails = ['loss: 1.0', 'loss: 2.0  loss_l1: 0.5', 'loss_l1: 0.25']
    rows = [mmengine_row(50 * i + 50, tail=tail) for i, tail in enumerate(tails)]
    table = read_text(tmp_path, '\n'.join(rows) + '\n')
    assert list(table.absent) == ['loss_l1', 'loss']
    assert list(table.absent['loss_l1']) == [0]
    assert list(table.absent['loss']) == [2]
    assert is_nan(table.columns['loss_l1'][0])
    assert is_nan(table.columns['loss'][2])
    assert list(table.columns['loss'])[:2] == [1.0, 2.0]
    assert list(table.columns['loss_l1'])[1:] == [0.5, 0.25]


def test_a_term_that_appears_after_hundreds_of_rows(tmp_path):
    rows = [
        mmengine_row(i % 788 + 1, epoch=i // 788 + 1, tail='loss: 1.0')
        for i in range(1000)
    ]
    for i in range(900, 1000):
        rows[i] += '  loss_l1: 0.5'
    table = read_text(tmp_path, '\n'.join(rows))
    assert list(table.absent['loss_l1']) == list(range(900))
    assert list(table.columns['loss_l1'])[900:] == [0.5] * 100
    assert len(table.columns['loss_l1']) == 1000


def test_two_files_are_one_table_with_a_section_each(tmp_path):
    for name, epoch in (('a.log', 1), ('b.log', 2)):
        (tmp_path / name).write_text('\n'.join(rows_from(50, epoch=epoch)) + '\n')
    names = [str(tmp_path / name) for name in ('a.log', 'b.log')]
    table = read_log(names)
    assert table.files == names
    assert sections_of(table) == [(0, 'start'), (3, 'resume')]
    assert [table.file_of(row) for row in range(6)] == [names[0]] * 3 + [names[1]] * 3
    assert list(table.lines) == [1, 2, 3, 1, 2, 3]


def test_an_identical_copy_counts_once(tmp_path):
    for name in ('a.log', 'copy.log'):
        (tmp_path / name).write_text('\n'.join(rows_from(50)))
    table = read_log([tmp_path / 'a.log', tmp_path / 'copy.log'])
    assert len(table) == 3
    assert table.files == [str(tmp_path / 'a.log')]


def test_rows_that_print_no_place_are_all_kept(tmp_path):
    table = read_text(tmp_path, '{"loss": 1.0}\n{"loss": 1.0}\n{"loss": 1.0}\n')
    assert len(table) == 3
    assert sections_of(table) == [(0, 'start')]
    assert row_of(table, 2) == {'loss': 1.0}
