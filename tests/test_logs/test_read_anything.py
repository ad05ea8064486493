"""Whatever a file holds: a table or one clear error, soon."""

from __future__ import annotations

import gzip
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from log_text import STAMP, contents_of, mmengine_row, read_text
from strategies import ENCODINGS, LOGS, damaged_logs

from mmgradguard.core.errors import LogParseError
from mmgradguard.logs.read import read_log
from mmgradguard.logs.recognise import sniff


def check_table(table):
    """A table keeps its promises."""
    num = len(table)
    assert num > 0
    for name, column in table.columns.items():
        assert len(column) == num, name
    for name, rows in table.absent.items():
        assert list(rows) == sorted(set(rows)), name
        assert all(0 <= row < num for row in rows), name
    for numbers in (table.epochs, table.iterations, table.epoch_lengths):
        assert len(numbers) == num
    assert all(line > 0 for line in table.lines)
    first_rows = [section.first_row for section in table.sections]
    assert first_rows[0] == 0
    assert first_rows == sorted(set(first_rows))
    for row in (0, num - 1):
        table.time_of(row)
        assert table.file_of(row) in table.files


def read_bytes(data):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / 'x.log'
        path.write_bytes(data)
        sniff(path)
        problem = table = None
        try:
            table = read_log([path])
        except LogParseError as error:
            problem = str(error)
    if table is not None:
        check_table(table)
    else:
        assert str(path) in problem
        assert '\n' not in problem
    return table


@given(damaged_logs())
@settings(max_examples=150, deadline=None)
def test_a_damaged_log_gives_a_table_or_one_clear_error(data):
    read_bytes(data)


@given(st.binary(max_size=3000))
@example(b'{' * 3000)
@example(b'[' * 3000 + b'{}')
@example(b'{"loss": ' + b'9' * 5000 + b'}')
@example(b'{"loss": 1, "iter": 1e400, "epoch": -1}')
@example(b'{"loss": 1, "iter": true, "epoch": null}')
@example(b'{"loss": {"a": 1}, "iter": 1}')
@example(b'{"mode": "train", "mode": []}')
@example(b'{"mode": {}, "env_info": 5, "config": 7, "seed": "x"}')
@example(b'epoch,train/x\n1e999,1\nnan,2\n-5,3\n')
@settings(max_examples=150, deadline=None)
def test_noise_gives_a_table_or_one_clear_error(data):
    read_bytes(data)


@pytest.mark.parametrize('log', LOGS, ids=lambda log: log[:24].strip())
def test_every_sample_is_read(log):
    table = read_bytes(log.encode())
    assert table is not None
    assert table.num_skipped_lines == 0


@given(
    st.sampled_from(LOGS),
    st.sampled_from(['\n', '\r\n', '\r']),
    st.sampled_from(ENCODINGS),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_line_ends_encoding_and_gzip_change_nothing(log, end, encoding, is_packed):
    data = log.replace('\n', end).encode(encoding)
    table = read_bytes(gzip.compress(data) if is_packed else data)
    assert contents_of(table) == contents_of(read_bytes(log.encode()))


@pytest.mark.parametrize(
    'word',
    [
        'x',
        ' ',
        ': ',
        'a: ',
        'a: 1 ',
        'a: 1, ',
        '0101T00:00:00',
        'loss',
        'iter: 5 ',
        'Epoch(train) [1][5/9] ',
        'Epoch(val) [1][5/9] ',
        'Epoch [',
        '- INFO -',
        '{"',
        '{"loss": 1}',
        '&nbsp;',
        '\x1b]',
        '\r',
        '1:00:00',
        '1 day, ',
        '> ',
        'GPU 0,',
    ],
)
@pytest.mark.parametrize(
    'start',
    ['', STAMP, 'Epoch(val) [1][5/9] ', mmengine_row(50), 'iter: 5 ', 'Config:\n'],
    ids=['nothing', 'stamp', 'validation', 'row', 'iter', 'config'],
)
def test_a_giant_line_takes_no_longer_than_others(tmp_path, start, word):
    line = start + word * (2**18 // len(word))
    before = time.process_time()
    table = read_text(tmp_path, f'{mmengine_row(1)}\n{line}\n{mmengine_row(700)}\n')
    assert time.process_time() - before < 3
    check_table(table)


def test_blank_lines_without_end_in_a_header(tmp_path):
    text = f'{STAMP}\nSystem environment:\n' + '\n' * 2**18 + mmengine_row(50)
    before = time.process_time()
    assert len(read_text(tmp_path, text)) == 1
    assert time.process_time() - before < 5
