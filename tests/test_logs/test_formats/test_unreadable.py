"""What stands in a row and is no number: the rest of the row is read all the same."""

from __future__ import annotations

import math

import pytest
from log_text import STAMP, is_nan, mmcv_row, mmengine_row, read_text, row_of

from mmgradguard.core.errors import LogParseError
from mmgradguard.logs.read import read_log


@pytest.mark.parametrize(
    'gap',
    [
        ', ..., ',
        '  ...  ',
        '  [...]  ',
        '  \u2026  ',
        '  tag: N/A  ',
        '  foo: bar  ',
        '  a b c  ',
        '  <cut>  ',
        '\u00a0\u00a0',
        '  \u00a0  ',
        '&nbsp;&nbsp;',
    ],
)
@pytest.mark.parametrize('num', [2, 40])
def test_it_hides_nothing_behind_it(tmp_path, gap, num):
    tail = f'loss: 1.5{gap}loss_cls: nan  loss_box: 0.7'
    rows = [mmengine_row(i + 1, tail=tail) for i in range(num)]
    table = read_text(tmp_path, '\n'.join(rows) + '\n')
    assert len(table) == num
    for row in (0, num - 1):
        found = row_of(table, row)
        assert list(found)[-4:] == ['grad_norm', 'loss', 'loss_cls', 'loss_box']
        assert (found['loss'], found['loss_box']) == (1.5, 0.7)
        assert is_nan(found['loss_cls'])


@pytest.mark.parametrize(
    ('printed', 'value'),
    [
        ('tensor(nan)', math.nan),
        ("tensor(1.25, device='cuda:0')", 1.25),
        ("tensor(-inf, device='cuda:0', grad_fn=<MulBackward0>)", -math.inf),
        ('tensor([2.5])', 2.5),
        ('1.#QNAN', math.nan),
        ('-1.#IND00', math.nan),
        ('1.#INF', math.inf),
        ('-nan', math.nan),
        ('-nan(ind)', math.nan),
        ('nan(ind)', math.nan),
        ('0,75', 0.75),
        ('1,5e-03', 0.0015),
    ],
)
@pytest.mark.parametrize('num', [1, 30])
def test_numbers_of_other_printers(tmp_path, printed, value, num):
    tail = f'loss: {printed}  loss_cls: {printed}  loss_box: 0.7'
    rows = [mmengine_row(i + 1, tail=tail) for i in range(num)]
    found = row_of(read_text(tmp_path, '\n'.join(rows) + '\n'), num - 1)
    assert found['loss_box'] == 0.7
    for name in ('loss', 'loss_cls'):
        assert found[name] == value or (is_nan(found[name]) and is_nan(value))


@pytest.mark.parametrize('end', ['<br>', '</td>', ' <-- here'])
@pytest.mark.parametrize('blank', [' ', '\u00a0'])
def test_what_a_page_leaves_at_the_end(tmp_path, end, blank):
    row = mmcv_row(eta='1 day, 4:00:00', tail='loss: nan').replace(' ', blank)
    stamp = row.find('Epoch')
    row = row[:stamp].replace(blank, ' ') + row[stamp:] + end
    found = row_of(read_text(tmp_path, row + '\n'), 0)
    assert list(found) == ['lr', 'time', 'data_time', 'memory', 'loss']
    assert is_nan(found['loss'])


def test_decimal_commas_between_commas(tmp_path):
    row = mmcv_row(tail='loss: 1,5').replace('0.289', '0,289')
    found = row_of(read_text(tmp_path, row + '\n'), 0)
    assert (found['time'], found['loss'], found['memory']) == (0.289, 1.5, 2570)


def test_a_row_that_another_process_wrote_into(tmp_path):
    glued = mmengine_row(50) + mmengine_row(100, tail='loss: 9.0  loss_new: 9.0')
    table = read_text(tmp_path, f'{glued}\n{mmengine_row(150)}\n')
    assert 9.0 not in row_of(table, 0).values()


@pytest.mark.parametrize('width', [60, 80, 100])
def test_a_broken_row(tmp_path, width):
    tail = 'loss: 1.5  tag: N/A  loss_cls: nan  <cut> some words  loss_box: 0.7'
    row = mmengine_row(50, tail=tail)
    parts = [row[i : i + width] for i in range(0, len(row), width)]
    table = read_text(tmp_path, '\n'.join([*parts, mmengine_row(100)]) + '\n')
    assert len(table) == 2
    found = row_of(table, 0)
    assert found['loss'] == 1.5
    assert is_nan(found['loss_cls'])


def test_a_message_is_no_part_of_the_row_before_it(tmp_path):
    text = f'{mmengine_row(50)}\nsome warning of a thing: 5 \n{mmengine_row(100)}\n'
    table = read_text(tmp_path, text)
    assert 'thing' not in table.columns
    assert table.num_skipped_lines == 1


@pytest.mark.parametrize(
    'row',
    [
        f'{STAMP}Epoch(train) [1][ 1/9]  lr: 1.0e-04  time: 0.5',
        '{"lr": 0.1, "time": 0.5, "iter": 1, "epoch": 1}',
    ],
    ids=['text', 'json'],
)
def test_rows_without_any_loss_are_no_training(tmp_path, row):
    later = row.replace(' 1/9', ' 2/9').replace('"iter": 1', '"iter": 2')
    path = tmp_path / '20240101_000000.log'
    path.write_text(f'{row}\n{later}\n')
    for asked in (path, tmp_path):
        with pytest.raises(
            LogParseError, match='2 rows, but none prints a loss or grad_norm'
        ):
            read_log([asked])


def test_detr(tmp_path):
    rows = [
        f'Epoch: [{epoch}]  [{i:5d}/14786]  eta: 4:01:22  lr: 0.000100  '
        f'class_error: 97.01  loss: {loss} ({loss})  loss_ce: 0.5 (0.6)  '
        'time: 0.5  data: 0.01  max mem: 1234'
        for epoch in (0, 1)
        for i, loss in [*((i, 40.5) for i in range(0, 200, 10)), (200, 'nan')]
    ]
    table = read_text(tmp_path, '\n'.join(rows) + '\n')
    assert table.format == 'detr_text'
    assert len(table) == 42
    assert (table.epochs[41], table.iterations[41]) == (1, 200)
    assert set(table.epoch_lengths) == {14786}
    assert row_of(table, 1) == {
        'lr': 1e-4,
        'class_error': 97.01,
        'loss': 40.5,
        'loss_ce': 0.5,
        'time': 0.5,
        'data_time': 0.01,
        'memory': 1234,
    }
    assert is_nan(table.columns['loss'][41])
    assert len(table.sections) == 1
