"""Messages that say of what a training died."""

from __future__ import annotations

import json

import pytest
from log_text import STAMP, mmengine_row, read_text

from mmgradguard.logs.failures import FailureFinder
from mmgradguard.logs.table import LogTable

MESSAGES = (
    'FloatingPointError: Loss became infinite or NaN at iteration=7!',
    'Loss is nan, stopping training',
    'ValueError: matrix contains invalid numeric entries',
    'ValueError: cost matrix is infeasible',
    'RuntimeError: The total norm of order 2.0 for gradients from `parameters` is '
    'non-finite, so it cannot be clipped.',
    "RuntimeError: Function 'PowBackward0' returned nan values in its 0th output.",
    'AssertionError: NaN in boxes',
    'AssertionError: loss is infinite or NaN',
    f'{STAMP}loss become infinite or NaN!',
)
OTHERS = (
    'RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB',
    'KeyboardInterrupt',
    'RuntimeError: NCCL error: unhandled system error, infinite timeout',
    'AssertionError: loss log variables are different across GPUs!',
    'AssertionError: 3 financed boxes',
    "    raise FloatingPointError(f'Loss became infinite or NaN at {i}!')",
    'a banana is no nan',
)


def failures_of(folder, lines):
    rows = [mmengine_row(50), mmengine_row(100)]
    table = read_text(folder, '\n'.join([*rows, *lines]) + '\n')
    return [(f.line, f.after_row, f.text) for f in table.failures]


@pytest.mark.parametrize('message', MESSAGES)
def test_a_message_behind_a_traceback(tmp_path, message):
    lines = ['Traceback (most recent call last):', '  File "a.py", line 1, in f']
    # code marks of Markdown are taken off every line
    expected = message.replace('`', '')
    assert failures_of(tmp_path, [*lines, message]) == [(5, 1, expected)]


@pytest.mark.parametrize('message', OTHERS)
def test_other_ends(tmp_path, message):
    assert failures_of(tmp_path, [message]) == []


@pytest.mark.parametrize('width', range(40, 76, 5))
def test_a_terminal_breaks_a_message_anywhere(tmp_path, width):
    text = MESSAGES[5]
    found = failures_of(tmp_path, [text[:width], text[width:]])
    assert [row for _, row, _ in found] == [1]


def test_between_rows_and_before_any(tmp_path):
    text = f'{MESSAGES[1]}\n{mmengine_row(50)}\n{MESSAGES[1]}\n{mmengine_row(100)}\n'
    table = read_text(tmp_path, text)
    assert [(f.line, f.after_row) for f in table.failures] == [(1, -1), (3, 0)]
    assert table.num_skipped_lines == 0


def test_of_several_ranks_one_is_kept(tmp_path):
    assert len(failures_of(tmp_path, [MESSAGES[1]] * 8)) == 1


def test_between_json_rows(tmp_path):
    rows = [json.dumps({'iter': i, 'loss': 1.0}) for i in (1, 2, 3)]
    table = read_text(tmp_path, '\n'.join([*rows, MESSAGES[1], rows[0]]) + '\n')
    assert [(f.line, f.after_row) for f in table.failures] == [(4, 2)]


def test_in_the_console_of_ultralytics(tmp_path):
    text = (
        '      Epoch    GPU_mem   box_loss   cls_loss  Instances       Size\n'
        '      1/100      2.61G      1.188      2.345         15        640: 100%\n'
    )
    table = read_text(tmp_path, text + MESSAGES[0] + '\n')
    assert [(f.line, f.after_row) for f in table.failures] == [(3, 0)]


def test_a_text_is_one_short_line():
    finder = FailureFinder(LogTable('x', ''))
    found = finder.find(1, 'x' * 2000 + ' \x07\t' + MESSAGES[1] + '  y' * 900)
    assert len(found.text) <= 300
    assert MESSAGES[1] in found.text
    assert found.text.isprintable()
