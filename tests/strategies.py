"""Hypothesis strategies that several tests share."""

from __future__ import annotations

import gzip
import json
import random

from hypothesis import strategies as st
from log_text import OLD_STAMP, STAMP, mmcv_row, mmengine_row

#: Short logs of every kind, whole and clean.
LOGS = (
    '\n'.join(
        [
            f'{STAMP}Config:',
            "model = dict(type='DETR')",
            *(mmengine_row(i) for i in range(50, 1000, 50)),
            f'{STAMP}Epoch(val) [1][100/100]    coco/bbox_mAP: 0.0510  time: 0.0827',
            *(mmengine_row(i, epoch=2) for i in range(50, 200, 50)),
        ]
    )
    + '\n',
    '\n'.join(
        [
            f'{OLD_STAMP}Environment info:',
            'GPU 0,1,2,3: GeForce',
            *(mmcv_row(i, eta='1 day, 23:44:23') for i in range(50, 1000, 50)),
            f'{OLD_STAMP}Epoch(val) [1][625]\tbbox_mAP: 0.1230',
        ]
    )
    + '\n',
    '\n'.join(
        json.dumps({'mode': 'train', 'epoch': 1, 'iter': i, 'lr': 0.1, 'loss': i / 7})
        for i in range(50, 1000, 50)
    )
    + '\n',
    '\n'.join(
        json.dumps({'lr': 0.1, 'loss': i / 7, 'epoch': 1, 'iter': i, 'step': i})
        for i in range(50, 1000, 50)
    )
    + '\n',
    '\n'.join(
        json.dumps(
            {
                'step': i,
                'iteration': i,
                'epoch': 0,
                'total_norm': 'nan' if i == 7 else 1.5,
                'losses': {'loss': 1.0, 'loss_cls': 0.5},
                'skipped': 'nonfinite' if i == 7 else None,
                'max_norm': None,
            }
        )
        for i in range(20)
    )
    + '\n',
    'epoch, train/box_loss, metrics/mAP50(B), lr/pg0\n'
    + ''.join(f'{i}, {i / 7}, 0.1, 0.01\n' for i in range(1, 20)),
    '      Epoch    GPU_mem   box_loss   cls_loss  Instances       Size\n'
    '      1/100      2.61G      1.188      2.345         15        640: 100%|#| 8/8\n'
    '                 Class     Images  Instances      Box(P          R      mAP50\n'
    '                   all        128        929      0.678      0.532      0.6\n',
    ''.join(
        f'[08/13 15:12:11 d2.utils.events]:  eta: 3:14:12  iter: {i}  total_loss: 2.3  '
        'loss_cls: 0.8  time: 0.3465  lr: 1.9e-05  max_mem: 2345M\n'
        for i in range(19, 400, 20)
    ),
    ''.join(
        json.dumps(
            {
                'epoch': i,
                'train_lr': 1e-4,
                'train_loss': 1.5,
                'test_coco_eval_bbox': [0.1, 0.2, 0.3],
            }
        )
        + '\n'
        for i in range(20)
    ),
    ''.join(
        json.dumps({'iteration': i, 'total_loss': 1.5, 'bbox/AP': 38.0}) + '\n'
        for i in range(20)
    ),
)
ENCODINGS = ('utf-8', 'utf-8-sig', 'utf-16', 'utf-16-le', 'utf-16-be', 'latin-1')
#: What is put into a log somewhere.
_NOISE = (
    b'\x00',
    b'\xff\xfe',
    b'\xef\xbb\xbf',
    b'\r',
    b'\r\n',
    b'\n',
    b'\x1b[31m',
    b'nan',
    b'{',
    b'}',
    b'"',
    b'[',
    b']',
    b':',
    b',',
    b'e999',
    b'-',
    b'9' * 400,
    b'&nbsp;',
    '\u8bad\u7ec3'.encode('gbk'),
    '\u8bad\u7ec3'.encode(),
    b'Epoch(train) [1][',
    b'Epoch [1][50/788]\t',
    b' - mmengine - INFO - Config:\n',
    b'System environment:\n',
    b'x' * 2**20,
)


@st.composite
def damaged_logs(draw: st.DrawFn) -> bytes:
    """Draw the bytes of a log that was cut, shuffled, re-encoded or written over."""
    text = draw(st.sampled_from(LOGS))
    data = text.encode(draw(st.sampled_from(ENCODINGS)))
    rng = random.Random(draw(st.integers(0, 2**32)))
    for kind in draw(st.lists(st.integers(0, 5), max_size=6)):
        place, other = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        if kind == 0:
            data = data[:other]
        elif kind == 1:
            data = data[:place] + data[other:]
        elif kind == 2:
            data = data[:place] + rng.choice(_NOISE) + data[place:]
        elif kind == 3:
            data = data[:place] + _random_bytes(rng) + data[place:]
        elif kind == 4:
            data = data[:other] + data[place:other] + data[other:]
        else:
            lines = data.split(b'\n')
            rng.shuffle(lines)
            data = b'\n'.join(lines)
    return gzip.compress(data, 1, mtime=0) if draw(st.integers(0, 9)) == 0 else data


def _random_bytes(rng: random.Random) -> bytes:
    return bytes(rng.randrange(256) for _ in range(rng.choice((1, 8, 4000))))
