"""What happens to a log between the trainer and the reader: one test for each trap."""

from __future__ import annotations

import math

import pytest
from log_text import (
    MMENGINE_ROW,
    STAMP,
    is_nan,
    mmcv_row,
    mmengine_row,
    read_text,
    row_of,
    sections_of,
)

TWO_ROWS = [mmengine_row(50), mmengine_row(100)]


def check_rows(table, num, iterations=(50, 100, 150, 200)):
    assert len(table) == num
    assert list(table.iterations) == list(iterations[:num])
    assert set(table.epochs) == {1}
    assert [row_of(table, row) for row in range(num)] == [MMENGINE_ROW] * num


@pytest.mark.parametrize(
    'prefix',
    [
        'rank0: ',
        '[1,0]<stdout>:',
        '[rank0]: ',
        '0: ',
        '2023-10-01T12:00:00.123456789Z stdout F ',
        '2023-10-01T12:00:00.123Z ',
        'trainer-0  | ',
        '> ',
        '> > ',
        '\x1b[32m[worker]\x1b[0m ',
        'Oct  1 12:00:00 node-3 python[123]: ',
    ],
)
def test_a_prefix_is_no_part_of_a_row(tmp_path, prefix):
    table = read_text(tmp_path, ''.join(f'{prefix}{row}\n' for row in TWO_ROWS))
    check_rows(table, 2)
    assert table.time_of(0) == '2024/05/10 15:46:31'


@pytest.mark.parametrize('stamp', ['', '10 15:46:31 - mmengine - INFO - '])
def test_a_first_line_without_its_time_stamp(tmp_path, stamp):
    rows = [mmengine_row(50, stamp=stamp), mmengine_row(100)]
    table = read_text(tmp_path, '\n'.join(rows) + '\n')
    check_rows(table, 2)
    assert [table.time_of(row) for row in (0, 1)] == [None, '2024/05/10 15:46:31']


def test_colours_are_taken_off(tmp_path):
    row = mmengine_row(50).replace('INFO', '\x1b[37mINFO\x1b[0m')
    other = mmengine_row(100).replace('loss:', '\x1b[31mloss:\x1b[0m')
    check_rows(read_text(tmp_path, f'{row}\n{other}\n'), 2)


@pytest.mark.parametrize(
    ('before', 'after'),
    [
        ('  ', ' '),
        ('  ', '&nbsp;&nbsp;'),
        ('  ', '\u00a0 '),
        ('_', '\\_'),
        (':', '\uff1a'),
        ('loss: 1.5043', '**loss: 1.5043**'),
        ('loss: 1.5043', '`loss: 1.5043`'),
        ('[', '\\['),
    ],
)
def test_what_a_web_page_does_to_a_row(tmp_path, before, after):
    tail_at = len(STAMP)
    rows = [row[:tail_at] + row[tail_at:].replace(before, after) for row in TWO_ROWS]
    check_rows(read_text(tmp_path, '\n'.join(rows)), 2)


def test_a_markdown_fence_and_words_around_it(tmp_path):
    text = '\n'.join(['My loss is nan: help', '```', *TWO_ROWS, '```', 'thanks'])
    table = read_text(tmp_path, text)
    check_rows(table, 2)
    assert list(table.lines) == [3, 4]
    assert table.num_skipped_lines == 4


@pytest.mark.parametrize('width', [40, 64, 80, 100, 132, 160])
def test_a_terminal_breaks_rows_anywhere(tmp_path, width):
    rows = [mmengine_row(iteration, gap=' ') for iteration in (50, 100, 150)]
    parts = [row[i : i + width] for row in rows for i in range(0, len(row), width)]
    check_rows(read_text(tmp_path, '\n'.join(parts) + '\n'), 3)


@pytest.mark.parametrize('prefix', ['', '> ', 'rank0: ', '   '])
@pytest.mark.parametrize('num_words', [10, 13, 14, 17])
def test_a_mail_breaks_rows_between_words(tmp_path, prefix, num_words):
    lines = []
    for row in (mmengine_row(50), mmengine_row(100), mmengine_row(150)):
        words = row.split()
        lines += [
            prefix + ' '.join(words[i : i + num_words])
            for i in range(0, len(words), num_words)
        ]
    check_rows(read_text(tmp_path, '\n'.join(lines) + '\n'), 3)


def test_a_broken_row_has_the_number_of_its_first_line(tmp_path):
    row = mmengine_row(50)
    text = f'{row[:100]}\n{row[100:]}\n{mmengine_row(100)}\n'
    assert list(read_text(tmp_path, text).lines) == [1, 3]


def test_other_lines_between_rows_are_counted(tmp_path):
    noise = [
        'UserWarning: torch.meshgrid: in an upcoming release',
        '  warnings.warn(',
        f'{STAMP}Exp name: dino_20240510_154631',
        'grad_norm is high: check',
    ]
    table = read_text(tmp_path, '\n'.join([TWO_ROWS[0], *noise, TWO_ROWS[1]]) + '\n')
    check_rows(table, 2)
    assert list(table.lines) == [1, 6]
    assert table.num_skipped_lines == 4


def test_progress_bars_in_the_same_line(tmp_path):
    bar = '\r 10%|#    | 5/50 [00:01<00:09]\r 20%|##   | 10/50 [00:02<00:08]\r'
    lines = [f'{bar}{mmengine_row(50)}', f'50%|##  | 2/4 [00:01]{mmengine_row(100)}']
    lines.append(f'{mmengine_row(150)} 60%|###  | 30/50')
    lines.append(f'{bar}{mmengine_row(200)}\r')
    table = read_text(tmp_path, '\n'.join(lines) + '\n')
    check_rows(table, 4)
    assert list(table.lines) == [1, 2, 3, 4]


@pytest.mark.parametrize('eta', ['5:31:28', '1 day, 23:44:23', '2 days, 10:28:21'])
def test_a_duration_is_no_column(tmp_path, eta):
    text = f'{mmcv_row(50, eta=eta)}\n{mmcv_row(100)}\n'
    table = read_text(tmp_path, text)
    assert list(table.columns) == [
        'lr',
        'time',
        'data_time',
        'memory',
        'loss_cls',
        'loss_bbox',
        'loss',
        'grad_norm',
    ]
    assert not table.absent
    new = mmengine_row(50).replace('4:14:00', eta)
    check_rows(read_text(tmp_path, f'{new}\n{mmengine_row(100)}\n'), 2)


@pytest.mark.parametrize(
    ('printed', 'value'),
    [
        ('nan', math.nan),
        ('NaN', math.nan),
        ('inf', math.inf),
        ('-inf', -math.inf),
        ('-0.2500', -0.25),
        ('1234567890123456789012345678.0000', 1234567890123456789012345678.0),
        ('1.5e+27', 1.5e27),
    ],
)
def test_numbers_as_they_are_printed(tmp_path, printed, value):
    row = mmengine_row(100, tail=f'loss: {printed}  loss_cls: {printed}')
    first = mmengine_row(50, tail='loss: 1.0  loss_cls: 1.0')
    for text in (f'{row}\n', f'{first}\n{row}\n'):
        table = read_text(tmp_path, text)
        found = table.columns['loss'][-1]
        assert found == value or (is_nan(found) and is_nan(value))


@pytest.mark.parametrize(
    ('end', 'value'),
    [('na', math.nan), ('n', math.nan), ('in', math.inf), ('-in', -math.inf)],
)
def test_a_number_that_is_cut_in_its_name(tmp_path, end, value):
    text = f'{mmengine_row(50)}\n{mmengine_row(100, tail=f"loss: {end}")}'
    table = read_text(tmp_path, text)
    found = row_of(table, 1)['loss']
    assert found == value or (is_nan(found) and is_nan(value))
    assert table.is_cut


@pytest.mark.parametrize('length', range(1, 60))
def test_a_last_line_that_is_still_being_written(tmp_path, length):
    last = mmengine_row(100)[:-length]
    table = read_text(tmp_path, f'{mmengine_row(50)}\n{last}')
    assert table.is_cut
    has_norm = length < 49  # else there are times and a learning rate: no row
    assert len(table) == 1 + has_norm
    row = row_of(table, len(table) - 1)
    # half a number is none, so all that is there is right
    assert {name: MMENGINE_ROW[name] for name in row} == row


def test_a_last_line_without_an_end_that_is_whole(tmp_path):
    table = read_text(tmp_path, '\n'.join(TWO_ROWS))
    check_rows(table, 2)
    assert not table.is_cut


def test_the_same_text_of_two_handlers_counts_once(tmp_path):
    rows = [mmengine_row(50), mmengine_row(50), mmengine_row(100), mmengine_row(100)]
    table = read_text(tmp_path, '\n'.join(rows) + '\n')
    check_rows(table, 2)
    assert list(table.lines) == [1, 3]


def test_a_row_of_another_rank_is_no_new_section(tmp_path):
    other = mmengine_row(50, tail='loss: 9.0  loss_cls: 8.0  loss_bbox: 1.0')
    text = f'{mmengine_row(50)}\n{other}\n{mmengine_row(100)}\n'
    table = read_text(tmp_path, text)
    assert len(table) == 3
    assert sections_of(table) == [(0, 'start')]


def test_a_line_of_a_megabyte_is_skipped(tmp_path):
    long = 'x' * 2**20
    table = read_text(
        tmp_path, f'{TWO_ROWS[0]}\n{long}\n{STAMP}{long}\n{TWO_ROWS[1]}\n'
    )
    check_rows(table, 2)
    assert table.num_skipped_lines == 2


def test_a_garbled_name_costs_no_column_of_a_long_log(tmp_path):
    rows = [mmengine_row(i % 788 + 1, epoch=i // 788 + 1) for i in range(1000)]
    for place in range(300, 500):
        rows[place] = rows[place].replace('loss_cls', f'lo{place}ss_cls')
    table = read_text(tmp_path, '\n'.join(rows) + '\n')
    assert len(table) == 1000
    assert len(table.columns) == len(MMENGINE_ROW) + 64
    assert len(table.absent['loss_cls']) == 200


@pytest.mark.parametrize('dots', ['...', '\u2026', '... ...'])
def test_dots_for_what_was_left_out(tmp_path, dots):
    rows = [
        f'Epoch(train) [1][{n}/733]  lr: 3.9e-05  {dots}  grad_norm: nan  loss: nan'
        for n in (20, 40)
    ]
    table = read_text(tmp_path, '\n'.join([*rows, f'{rows[0][:36]}  {dots}']))
    assert len(table) >= 2
    assert is_nan(table.columns['loss'][0])
    assert is_nan(table.columns['grad_norm'][1])
