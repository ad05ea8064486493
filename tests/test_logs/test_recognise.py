"""A file is told by what it holds, whatever it is called."""

from __future__ import annotations

import pytest
from log_text import STAMP, mmcv_row, mmengine_row
from strategies import LOGS

from mmgradguard.logs.recognise import format_of, sniff


@pytest.mark.parametrize('log', LOGS, ids=lambda log: log[:24].strip())
def test_every_format_is_a_log(tmp_path, log):
    path = tmp_path / 'model.py'
    path.write_text(log)
    assert sniff(path) == 'log'


@pytest.mark.parametrize(
    ('text', 'kind'),
    [
        ("_base_ = '../detr.py'\n", 'config'),
        ("model = dict(type='DETR')\nx = [i for i in range(3)]\n", 'config'),
        ('with read_base():\n    from .detr import *\n', 'config'),
        ('{"model": {"type": "DETR"}, "optimizer": {"type": "SGD"}}', 'config'),
        ('{\n  "model": {"type": "DETR"}\n}\n', 'config'),
        ('x = 1\nprint(x)\n', None),
        ('# Notes\nsome words\n', None),
        ('{"a": 1}', None),
        ('', None),
        (f'{STAMP}System environment:\n', 'log'),
    ],
)
def test_logs_configs_and_neither(tmp_path, text, kind):
    path = tmp_path / 'x.log'
    path.write_text(text)
    assert sniff(path) == kind


def test_what_is_no_text(tmp_path):
    (tmp_path / 'a.pth').write_bytes(b'PK\x03\x04')
    assert sniff(tmp_path / 'a.pth') == 'log'
    assert sniff(tmp_path / 'none') is None
    assert sniff(tmp_path) == 'log'
    (tmp_path / 'empty').mkdir()
    assert sniff(tmp_path / 'empty') is None


@pytest.mark.parametrize(
    ('line', 'name'),
    [
        (mmengine_row(), 'mmengine_text'),
        (mmcv_row(), 'mmcv_text'),
        ('Iter(train) [    50/160000]  loss: 1', 'mmengine_text'),
        ('2020-01-01 00:00:00,1 - x - INFO - Iter [50/9]\tlr: 1', 'mmcv_text'),
        ('{"mode": "train", "epoch": 1}', 'mmcv_json'),
        ('{"env_info": "x", "config": "y"}', 'mmcv_json'),
        ('{"step": 1, "iteration": 1, "total_norm": 1}', 'steps_jsonl'),
        ('{"iteration": 1, "total_loss": 1}', 'detectron2_json'),
        ('{"epoch": 1, "train_loss": 1}', 'detr_json'),
        ('{"loss": 1, "lr": 1, "step": 1}', 'mmengine_scalars'),
        ('rank0: {"loss": 1, "lr": 1, "step": 1}', 'mmengine_scalars'),
    ],
)
def test_the_format_of_a_line(line, name):
    assert getattr(format_of(line), 'NAME', None) == name


@pytest.mark.parametrize(
    'line', ['', 'Epoch', 'model = dict()', '{', '{"a": 1}', '[1]']
)
def test_a_line_of_no_format(line):
    assert format_of(line) is None
