"""mmdet's own ``tools/train.py``, unchanged, on the demo's data."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

import pytest

from demo.launch import train_script

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope='session')
def demo_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('demo_data')
    subprocess.run(
        [sys.executable, str(ROOT / 'tools' / 'make_demo_dataset.py'), str(folder)],
        check=True,
        capture_output=True,
    )
    return folder


@pytest.fixture
def train(demo_data: Path, tmp_path: Path) -> Callable[..., Any]:
    """Return a function that trains a config for a few iterations."""

    def run(config: str, *options: str, iterations: int = 6) -> Any:
        path = tmp_path / 'config.py'
        path.write_text(config)
        data = [
            f'{p}_dataloader.dataset.data_root={demo_data}/' for p in ('train', 'val')
        ]
        return subprocess.run(
            [
                sys.executable, str(train_script()), str(path),
                '--work-dir', str(tmp_path / 'work'),
                '--cfg-options', *data,
                f'val_evaluator.ann_file={demo_data}/annotations/val.json',
                'train_cfg._delete_=True', 'train_cfg.type=IterBasedTrainLoop',
                f'train_cfg.max_iters={iterations}', 'train_cfg.val_interval=1000',
                'default_hooks.logger.interval=2',
                *options,
            ],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env={**os.environ, 'PYTHONPATH': str(ROOT), 'OMP_NUM_THREADS': '1'},
            timeout=300,
        )  # fmt: skip

    return run
