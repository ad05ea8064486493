"""From bytes to lines."""

from __future__ import annotations

import gzip
import io
import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_text import STAMP, mmengine_row, read_text

from mmgradguard.logs import sources
from mmgradguard.logs.read import read_log
from mmgradguard.logs.recognise import sniff
from mmgradguard.logs.sources import read_blocks


def lines_of(data):
    texts, first = [], 1
    for block in read_blocks(io.BytesIO(data)):
        assert block.first == first
        first += len(block.texts)
        texts += block.texts
    return texts


@given(st.lists(st.text(st.characters(exclude_characters='\r\n\0'))), st.integers(1, 9))
def test_lines_come_back_whatever_the_block(lines, size):
    data = '\n'.join(lines).encode('utf-8', 'replace')
    expected = data.decode().split('\n') if data else []
    if expected and not expected[-1]:
        del expected[-1]
    if data.startswith(b'\xef\xbb\xbf'):
        expected[0] = expected[0][1:]
    before, sources._BLOCK = sources._BLOCK, size
    try:
        if sources._wide_encoding(data) is None and size > 3:
            assert lines_of(data) == expected
    finally:
        sources._BLOCK = before


@pytest.mark.parametrize(
    ('data', 'is_open'),
    [(b'a\nb', True), (b'a\nb\n', False), (b'', False), (b'a', True)],
)
def test_an_open_end_is_seen(data, is_open):
    *_, last = read_blocks(io.BytesIO(data))
    assert (last.is_last, last.is_open) == (True, is_open)


def test_mixed_encodings_cost_no_row(tmp_path):
    data = b'\n'.join(
        [
            mmengine_row(50).encode(),
            '\u8bad\u7ec3 gbk'.encode('gbk'),
            '\u8bad\u7ec3 utf-8'.encode(),
            b'\xe9t\xe9 latin-1',
            mmengine_row(100).encode(),
        ]
    )
    table = read_text(tmp_path, data)
    assert list(table.lines) == [1, 5]


def test_a_hole_of_zeros_after_a_crash(tmp_path):
    row = mmengine_row(50).encode()
    table = read_text(
        tmp_path, row + b'\n' + bytes(5000) + row.replace(b' 50/', b'100/')
    )
    assert list(table.iterations) == [50, 100]


def test_a_gzip_that_is_still_being_written(tmp_path):
    rows = [mmengine_row(i % 788 + 1, epoch=i // 788 + 1) for i in range(3000)]
    noise = [os.urandom(8).hex() for _ in rows]
    text = '\n'.join(f'{row}\n{word}' for row, word in zip(rows, noise))
    data = gzip.compress(text.encode())
    table = read_text(tmp_path, data[: len(data) // 2], name='x.log.gz')
    assert 100 < len(table) < 3000


def test_a_line_beyond_the_limit_is_cut(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, 'MAX_LINE', 2**20)
    long = f'{STAMP}{"x" * 2**22}'
    table = read_text(tmp_path, f'{mmengine_row(50)}\n{long}\n{mmengine_row(100)}\n')
    assert list(table.lines) == [1, 3]


@pytest.mark.parametrize('num_rows', [3, 5000])
def test_a_pipe_is_opened_once(tmp_path, num_rows):
    path, other = tmp_path / 'pipe', tmp_path / 'x.log'
    os.mkfifo(path)
    other.write_text(mmengine_row(7, epoch=9) + '\n')
    rows = [mmengine_row(i % 700 + 1, epoch=i // 700 + 1) for i in range(num_rows)]
    writer = threading.Thread(
        target=path.write_text, args=('\n'.join(rows) + '\n',), daemon=True
    )
    writer.start()
    assert sniff(path) == 'log'
    table = read_log([path, other])
    writer.join(10)
    assert not writer.is_alive()
    assert len(table) == num_rows + 1
