"""What stands before the rows: environment, GPUs, seed, config."""

from __future__ import annotations

import json

import pytest
from log_text import OLD_STAMP, STAMP, mmcv_row, mmengine_row, read_text

CONFIG_LINES = [
    'model = dict(',
    "    type='DETR',",
    '',
    "    bbox_head=dict(type='DETRHead', loss_cls=dict(weight=-1.0)))",
    "work_dir = './work_dirs/detr'",
]
CONFIG = {
    'model': {
        'type': 'DETR',
        'bbox_head': {'type': 'DETRHead', 'loss_cls': {'weight': -1.0}},
    },
    'work_dir': './work_dirs/detr',
}
MMENGINE = [
    STAMP,
    '-' * 60,
    'System environment:',
    '    sys.platform: linux',
    '    Python: 3.8.16 (default, Mar  2 2023, 03:21:46) [GCC 11.2.0]',
    '    CUDA available: True',
    '    GPU 0,1: NVIDIA A100',
    '    PyTorch: 2.0.1',
    '    MMEngine: 0.7.4',
    '',
    'Runtime environment:',
    '    cudnn_benchmark: False',
    '    seed: 21',
    '    Distributed launcher: pytorch',
    '    Distributed training: True',
    '    GPU number: 8',
    '-' * 60,
    '',
    f'{STAMP}Config:',
    *CONFIG_LINES,
    '',
    f'{STAMP}Hooks will be executed in the following order:',
    'before_run:',
    '(VERY_HIGH   ) RuntimeInfoHook',
]
MMCV = [
    f'{OLD_STAMP}Environment info:',
    '-' * 60,
    'Python: 3.6.12 |Anaconda, Inc.| [GCC 7.3.0]',
    'GPU 0,1,2,3: GeForce RTX 2080 Ti',
    'PyTorch: 1.4.0',
    'MMCV: 1.1.5',
    '-' * 60,
    '',
    f'{OLD_STAMP}Distributed training: True',
    f'{OLD_STAMP}Config:',
    *CONFIG_LINES,
    '',
    f'{OLD_STAMP}Set random seed to 7, deterministic: False',
]


@pytest.mark.parametrize(
    ('lines', 'row', 'num_gpus', 'seed', 'versions'),
    [
        (
            MMENGINE,
            mmengine_row(),
            8,
            21,
            {'Python': '3.8.16', 'PyTorch': '2.0.1', 'MMEngine': '0.7.4'},
        ),
        (
            MMCV,
            mmcv_row(),
            4,
            7,
            {'Python': '3.6.12', 'PyTorch': '1.4.0', 'MMCV': '1.1.5'},
        ),
    ],
)
@pytest.mark.parametrize('prefix', ['', 'rank0: '])
def test_a_header_is_read(tmp_path, lines, row, num_gpus, seed, versions, prefix):
    text = '\n'.join(prefix + line for line in [*lines, row])
    table = read_text(tmp_path, text)
    (section,) = table.sections
    assert section.header.config == CONFIG
    assert section.header.config_text.rstrip() == '\n'.join(CONFIG_LINES)
    assert section.header.num_gpus == num_gpus
    assert section.header.seed == seed
    assert section.header.versions == versions
    assert list(table.lines) == [len(lines) + 1]
    assert table.num_skipped_lines == 0


@pytest.mark.parametrize(
    ('environment', 'num_gpus'),
    [
        ('GPU 0: A\nGPU 1: A', 2),
        ('GPU 0,1,2,3: A\nDistributed training: False', 1),
        ('GPU 0,1: A\nGPU 2,3: B\nDistributed training: True', 4),
        ('CUDA available: False', None),
        ('GPU number: 16', 16),
    ],
)
def test_the_number_of_gpus(tmp_path, environment, num_gpus):
    text = f'{OLD_STAMP}Environment info:\n{environment}\n{mmcv_row()}\n'
    assert read_text(tmp_path, text).sections[0].header.num_gpus == num_gpus


def test_the_header_of_a_log_json(tmp_path):
    header = {
        'env_info': 'GPU 0,1: A\nMMCV: 1.1.5',
        'config': '\n'.join(CONFIG_LINES),
        'seed': 3,
        'exp_name': 'x.py',
    }
    row = {'mode': 'train', 'epoch': 1, 'iter': 50, 'lr': 0.1, 'loss': 1.5}
    table = read_text(tmp_path, f'{json.dumps(header)}\n{json.dumps(row)}\n')
    found = table.sections[0].header
    assert found.config == CONFIG
    assert (found.num_gpus, found.seed) == (2, 3)
    assert found.versions == {'MMCV': '1.1.5'}
    assert list(table.lines) == [2]


def test_a_log_without_a_header_has_an_empty_one(tmp_path):
    header = read_text(tmp_path, mmengine_row()).sections[0].header
    assert (header.config, header.num_gpus, header.versions) == (None, None, {})


def test_a_config_that_names_resume_is_no_resume(tmp_path):
    text = '\n'.join(
        [
            f'{STAMP}Config:',
            "resume_from = 'a.pth'",
            "load = 'resume from'",
            mmengine_row(50),
            mmengine_row(100),
        ]
    )
    table = read_text(tmp_path, text)
    assert [section.reason for section in table.sections] == ['start']
    assert table.sections[0].header.config['resume_from'] == 'a.pth'
