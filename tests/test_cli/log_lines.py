"""Lines of training logs as mmengine and mmcv 1.x print them, made up."""

from __future__ import annotations

import json
import math


def loss_at(row: int, nan_from: int) -> float:
    return math.nan if row >= nan_from else 2.0 / (1.0 + 0.02 * row)


def mmengine_text(
    num_rows: int = 60, *, spikes: tuple[int, ...] = (), nan_from: int = 10**9
) -> str:
    """Return a log of epochs of 1000 iterations, a row every 50 of them."""
    lines = []
    for row in range(num_rows):
        epoch, iteration = divmod(50 * (row + 1) - 1, 1000)
        loss = loss_at(row, nan_from)
        norm = math.nan if row >= nan_from else 5.0 + (row * 7 % 10) / 10
        if row in spikes:
            norm, loss = 3.11e7, 4e4
        lines.append(
            f'2025/04/09 13:{row % 60:02}:08 - mmengine - INFO - '
            f'Epoch(train)  [{epoch + 1}][{iteration + 1:4}/1000]  '
            f'lr: 1.0000e-04  eta: 1 day, 2:03:04  time: 0.5000  data_time: 0.0100  '
            f'memory: 5000  grad_norm: {norm:.4f}  loss: {loss:.4f}  '
            f'loss_cls: {0.7 * loss:.4f}  loss_bbox: {0.3 * loss:.4f}'
        )
    return '\n'.join(lines) + '\n'


def mmcv_json(num_rows: int = 60, *, scale: float = 1.0) -> str:
    """Return the ``.log.json`` of a healthy run."""
    lines = [json.dumps({'env_info': 'x', 'seed': 1})]
    for row in range(num_rows):
        epoch, iteration = divmod(50 * (row + 1) - 1, 1000)
        loss = scale * loss_at(row, 10**9)
        fields = {
            'mode': 'train',
            'epoch': epoch + 1,
            'iter': iteration + 1,
            'lr': 1e-4,
            'memory': 5000,
            'data_time': 0.01,
            'loss_cls': round(0.7 * loss, 5),
            'loss_bbox': round(0.3 * loss, 5),
            'loss': round(loss, 5),
            'grad_norm': 5.0 + (row * 7 % 10) / 10,
            'time': 0.5,
        }
        lines.append(json.dumps(fields))
    return '\n'.join(lines) + '\n'
