"""Time stamps, sections and files of rows."""

from __future__ import annotations

import random

from log_text import mmengine_row, read_text

from mmgradguard.logs.table import LogTable, Section


def test_every_row_has_its_stamp(tmp_path):
    stamps = [f'2024/05/10 15:{i // 60:02d}:{i % 60:02d}' for i in range(700)]
    lines = []
    for i, stamp in enumerate(stamps):
        lines.append(mmengine_row(i + 1, stamp=f'{stamp} - mmengine - INFO - '))
        if i % 97 == 0:
            lines.append('noise')
    table = read_text(tmp_path, '\n'.join(lines))
    rows = list(range(700))
    random.Random(0).shuffle(rows)
    assert {row: table.time_of(row) for row in rows} == dict(enumerate(stamps))


def test_stamps_of_different_length_and_none():
    table = LogTable('x', 'y')
    table.add_stamps(0, ['05/18 06:39:12', '', '2024/05/18 06:39:12'])
    table.add_stamps(3, ['', ''])
    table.add_stamps(5, ['05/18 06:39:13'])
    found = [table.time_of(row) for row in range(7)]
    assert found[:3] == ['05/18 06:39:12', None, '2024/05/18 06:39:12']
    assert found[3:] == [None, None, '05/18 06:39:13', None]


def test_a_table_without_stamps_has_no_times():
    assert LogTable('x', 'y').time_of(0) is None


def test_the_section_of_a_row():
    table = LogTable('x', 'y')
    table.sections += [Section(0, 'start', 'a'), Section(3, 'resume', 'b')]
    assert [table.section_of(row).reason for row in (0, 2, 3, 9)] == [
        'start',
        'start',
        'resume',
        'resume',
    ]
    assert [table.file_of(row) for row in (2, 3)] == ['a', 'b']
