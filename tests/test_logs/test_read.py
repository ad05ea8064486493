"""What the one entrance to the layer refuses, and in which words."""

from __future__ import annotations

import io
import subprocess
import sys
from types import SimpleNamespace

import pytest
from log_text import OLD_STAMP, STAMP, mmcv_row, mmengine_row

from mmgradguard.core.errors import GradGuardError, LogParseError
from mmgradguard.logs.read import read_log

HEAVY = ('torch', 'mmengine', 'mmcv', 'numpy', 'rich', 'plotly', 'jinja2')


def test_reading_loads_nothing_heavy():
    code = (
        'import mmgradguard.logs.read, sys\n'
        f'print(*[name for name in {HEAVY} if name in sys.modules])'
    )
    done = subprocess.run(
        [sys.executable, '-c', code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


@pytest.mark.parametrize(
    ('data', 'reason'),
    [
        (b'', 'the file is empty'),
        (b'\x89PNG\r\n\x1a\n' + bytes(100), 'a binary file, not a log'),
        (bytes(range(256)) * 20, 'a binary file, not a log'),
        (b'PK\x03\x04' + bytes(100), 'a checkpoint or an archive, not a log'),
        (b'\x1f\x8b\x08\x00broken, all of it', 'a damaged gzip'),
        (b'hello\nworld\n', 'no training rows in 2 lines: nothing in it looks like'),
        (
            f'{OLD_STAMP}Environment info:\nMMCV: 1.1.5\n\n'.encode(),
            'no training rows in 3 lines: an mmcv 1.x header and no iteration',
        ),
        (
            f"{STAMP}Config:\nmodel = dict(type='DETR')\n".encode(),
            'no training rows in 2 lines: an mmengine header and no iteration',
        ),
        (
            f'{STAMP}Epoch(val) [1][9/9]  coco/bbox_mAP: 0.1\n'.encode(),
            'no training rows in 1 lines: only validation rows',
        ),
        (b'{"coco/bbox_mAP": 0.1, "step": 1}\n', 'only validation rows'),
    ],
)
def test_what_is_no_log_is_refused_in_one_line(tmp_path, data, reason):
    path = tmp_path / 'x.log'
    path.write_bytes(data)
    with pytest.raises(LogParseError, match=reason) as caught:
        read_log([path])
    assert str(caught.value).startswith(f'{path}: ')
    assert '\n' not in str(caught.value)
    assert isinstance(caught.value, GradGuardError)


def test_a_missing_file(tmp_path):
    with pytest.raises(LogParseError, match=r'none\.log: no such file or directory'):
        read_log([tmp_path / 'none.log'])


def test_a_path_that_no_system_has():
    with pytest.raises(LogParseError, match='null'):
        read_log(['a\0b'])


def test_a_file_without_permission(tmp_path, monkeypatch):
    path = tmp_path / 'x.log'
    path.write_text(mmengine_row())

    def refuse(*_):
        raise PermissionError(13, 'Permission denied')

    # root may read everything, so the refusal is played
    monkeypatch.setattr('builtins.open', refuse)
    with pytest.raises(LogParseError, match='no permission to read it'):
        read_log([path])


@pytest.mark.parametrize('paths', [[], 'x.log', b'x.log'])
def test_paths_that_are_no_list(paths):
    with pytest.raises(ValueError, match='`paths` must be a list of paths'):
        read_log(paths)


def test_stdin(monkeypatch):
    data = f'{mmengine_row(50)}\n{mmengine_row(100)}\n'.encode()
    monkeypatch.setattr(sys, 'stdin', SimpleNamespace(buffer=io.BytesIO(data)))
    table = read_log(['-'])
    assert len(table) == 2
    assert table.source == '-'
    assert table.files == ['-']
    assert not sys.stdin.buffer.closed


def test_a_checkpoint_goes_to_its_reader(tmp_path):
    path = tmp_path / 'epoch_1.pth'
    path.write_bytes(b'PK\x03\x04' + bytes(100))
    asked = []

    def read_history(name):
        asked.append(name)
        return {'train/loss': [1.0, 0.5], 'val/mAP': [0.1]}

    table = read_log([path], read_history)
    assert asked == [str(path)]
    assert list(table.columns['loss']) == [1.0, 0.5]


def test_a_text_and_its_json_twin_are_one_log(tmp_path):
    text, twin = tmp_path / 'a.log', tmp_path / 'a.log.json'
    text.write_text(f"{OLD_STAMP}Config:\nmodel = dict(type='X')\n{mmcv_row(50)}\n")
    twin.write_text('{"mode": "train", "epoch": 1, "iter": 50, "loss": 1.50431}\n')
    for paths in ([text, twin], [twin, text]):
        table = read_log(paths)
        assert list(table.columns['loss']) == [1.50431]
        assert table.sections[0].header.config == {'model': {'type': 'X'}}
        assert table.files == [str(twin)]
