"""What is read of a checkpoint, and what is refused."""

from __future__ import annotations

import subprocess
import sys

import numpy
import pytest
import torch
from mmengine.logging import MessageHub

from mmgradguard.core.errors import LogParseError
from mmgradguard.ops.checkpoint_history import read_history


@pytest.fixture
def checkpoint(request):
    hub = MessageHub.get_instance(request.node.name)
    for loss in (3.0, 2.0, float('nan')):
        hub.update_scalar('train/loss', loss)
        hub.update_scalar('train/lr', numpy.float64(0.1))
    hub.update_info('iter', 3)
    hub.update_info('cfg', 'x = 1')
    return {
        'message_hub': hub.state_dict(),
        'state_dict': {'w': torch.zeros(1000)},
        'meta': {'epoch': 1},
    }


@pytest.mark.parametrize('is_zip', [True, False])
def test_the_history_of_mmengine(tmp_path, checkpoint, is_zip):
    path = tmp_path / 'epoch_1.pth'
    torch.save(checkpoint, path, _use_new_zipfile_serialization=is_zip)
    history = read_history(path)
    assert list(history) == ['train/loss', 'train/lr']
    assert history['train/loss'][:2] == [3.0, 2.0]
    assert numpy.isnan(history['train/loss'][2])
    assert history['train/lr'] == [0.1] * 3


def test_mmengine_need_not_be_there(tmp_path, checkpoint):
    path = tmp_path / 'epoch_1.pth'
    torch.save(checkpoint, path)
    code = (
        'import sys; sys.modules["mmengine"] = None\n'
        'from mmgradguard.ops.checkpoint_history import read_history\n'
        f'print(read_history({str(path)!r})["train/lr"])'
    )
    done = subprocess.run(
        [sys.executable, '-c', code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == '[0.1, 0.1, 0.1]'


def test_what_the_process_allows_stays_as_it_was(tmp_path, checkpoint):
    path = tmp_path / 'epoch_1.pth'
    torch.save(checkpoint, path)
    before = set(map(repr, torch.serialization.get_safe_globals()))
    read_history(path)
    assert set(map(repr, torch.serialization.get_safe_globals())) == before


class Evil:
    def __reduce__(self):
        return print, ('this must not be printed',)


class Stealthy:
    """Asks for an attribute through the `getattr` that histories need."""

    def __reduce__(self):
        return getattr, (numpy.ndarray, 'tofile')


@pytest.mark.parametrize('evil', [Evil(), Stealthy()])
def test_other_classes_are_refused(tmp_path, checkpoint, evil, capsys):
    path = tmp_path / 'evil.pth'
    torch.save({**checkpoint, 'optimizer': evil}, path)
    with pytest.raises(LogParseError, match=r'evil\.pth: not'):
        read_history(path)
    assert capsys.readouterr().out == ''


@pytest.mark.parametrize(
    ('data', 'reason'),
    [
        (b'PK\x03\x04 and no more', 'not a checkpoint that can be read'),
        (b'\x80\x02}', 'not a checkpoint that can be read'),
    ],
)
def test_a_damaged_file(tmp_path, data, reason):
    path = tmp_path / 'a.pth'
    path.write_bytes(data)
    with pytest.raises(LogParseError, match=reason) as caught:
        read_history(path)
    assert len(str(caught.value)) < len(str(path)) + 80


@pytest.mark.parametrize('content', [{'state_dict': {}}, [1, 2], {'message_hub': 5}])
def test_a_checkpoint_without_a_hub(tmp_path, content):
    path = tmp_path / 'a.pth'
    torch.save(content, path)
    with pytest.raises(LogParseError, match='a checkpoint without a message hub'):
        read_history(path)


def test_a_missing_file(tmp_path):
    with pytest.raises(LogParseError, match='cannot be read'):
        read_history(tmp_path / 'none.pth')
