"""Large logs for the benchmarks, written in a moment: rows of numbers from a pool."""

from __future__ import annotations

import json
import random
from itertools import count, cycle
from pathlib import Path
from typing import Iterator

from synthetic_logs.layouts import LAYOUTS

EPOCH_LENGTH = 50_000
INTERVAL = 50
POOL_SIZE = 3000
MEGABYTE = 1_000_000


def _pool(layout: str) -> list[dict[str, float]]:
    """Return what `POOL_SIZE` rows of a healthy run print after the header."""
    rng = random.Random(layout)
    terms = LAYOUTS[layout].terms
    pool = []
    for _ in range(POOL_SIZE):
        losses = {
            name: end * rng.lognormvariate(0, 0.08) for name, (_, end) in terms.items()
        }
        norm = LAYOUTS[layout].norm[1] * rng.lognormvariate(0, 0.05)
        pool.append({'grad_norm': norm, 'loss': sum(losses.values()), **losses})
    return pool


def _places() -> Iterator[tuple[int, int, int]]:
    """Yield epoch, iteration in it, and iteration of the run, from 1, without end."""
    for row in count(1):
        step = row * INTERVAL
        yield (step - 1) // EPOCH_LENGTH + 1, (step - 1) % EPOCH_LENGTH + 1, step


def text_rows(layout: str) -> Iterator[str]:
    """Yield rows of a text log of mmengine."""
    tails = [
        '  '.join(f'{name}: {value:.4f}' for name, value in row.items())
        for row in _pool(layout)
    ]
    for (epoch, inner, step), tail in zip(_places(), cycle(tails)):
        second = step // INTERVAL * 40
        clock = f'{second // 3600 % 24:02d}:{second // 60 % 60:02d}:{second % 60:02d}'
        yield (
            f'2023/01/{second // 86400 % 28 + 1:02d} {clock} - mmengine - INFO - '
            f'Epoch(train)  [{epoch}][{inner:5d}/{EPOCH_LENGTH}]  lr: 1.0000e-04  '
            'eta: 1 day, 3:04:05  time: 0.8151  data_time: 0.0131  memory: 15943  '
            f'{tail}\n'
        )


def scalars_rows(layout: str) -> Iterator[str]:
    """Yield rows of mmengine's scalars.json."""
    bodies = [json.dumps({'data_time': 0.0131, **row})[1:-1] for row in _pool(layout)]
    for (epoch, _, step), body in zip(_places(), cycle(bodies)):
        yield (
            f'{{"base_lr": 0.0001, "lr": 0.0001, {body}, "time": 0.8151, '
            f'"epoch": {epoch}, "iter": {step}, "memory": 15943, "step": {step}}}\n'
        )


def mmcv_json_rows(layout: str) -> Iterator[str]:
    """Yield rows of a .log.json of mmcv 1.x."""
    bodies = [
        json.dumps({name: round(value, 5) for name, value in row.items()})[1:-1]
        for row in _pool(layout)
    ]
    for (epoch, inner, _), body in zip(_places(), cycle(bodies)):
        yield (
            f'{{"mode": "train", "epoch": {epoch}, "iter": {inner}, "lr": 0.0001, '
            f'"memory": 15943, "data_time": 0.0131, {body}, "time": 0.8151}}\n'
        )


def write_rows(path: Path, rows: Iterator[str], megabytes: float) -> Path:
    """Write rows until the file has the size, and return its path."""
    size = 0
    with open(path, 'w', encoding='ascii') as file:
        for row in rows:
            file.write(row)
            size += len(row)
            if size >= megabytes * MEGABYTE:
                break
    return path
