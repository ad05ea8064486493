"""Small real mmengine runners for the tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from mmengine.config import ConfigDict
from mmengine.hooks import Hook
from mmengine.model import BaseModel
from mmengine.registry import FUNCTIONS
from mmengine.runner import Runner
from torch import nn
from torch.utils.data import Dataset

import mmgradguard  # noqa: F401  registers the hooks

DEFAULT_WRAPPER = dict(
    type='OptimWrapper',
    optimizer=dict(type='AdamW', lr=1e-2, weight_decay=0.1),
    clip_grad=dict(max_norm=1.0),
)
_COUNT = 0


class ToyData(Dataset):
    """Linear regression with an image id; deterministic."""

    def __init__(self, size: int = 32) -> None:
        generator = torch.Generator().manual_seed(0)
        self.x = torch.randn(size, 4, generator=generator)
        self.y = self.x @ torch.tensor([[1.0], [-2.0], [0.5], [3.0]])

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, i: int) -> dict[str, Any]:
        return {
            'inputs': self.x[i],
            'data_samples': {'img_id': i, 'img_path': f'{i}.png', 'y': self.y[i]},
        }


@FUNCTIONS.register_module()
def toy_collate(items: list[dict[str, Any]]) -> dict[str, Any]:
    """Stack the inputs, keep the samples as a list, as detectors do."""
    return {
        'inputs': torch.stack([item['inputs'] for item in items]),
        'data_samples': [item['data_samples'] for item in items],
    }


class ToyModel(BaseModel):
    """Two layers with BatchNorm and a query memory in a plain attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU())
        self.head = nn.Linear(8, 1)
        self.memory = None

    def forward(
        self, inputs: Any, data_samples: Any = None, mode: str = 'tensor'
    ) -> Any:
        features = self.backbone(inputs)
        if mode != 'loss':
            return self.head(features)
        if self.memory is None:
            self.memory = torch.zeros(8)
        self.memory = 0.9 * self.memory + 0.1 * features.detach().mean(0)
        error = self.head(features + 0.1 * self.memory) - torch.stack(
            [s['y'] for s in data_samples]
        )
        return {'loss_a': error.square().mean(), 'd0.loss_b': error.abs().mean()}


class SpyHook(Hook):
    """Calls a function right before the loop begins."""

    priority = 'VERY_HIGH'

    def __init__(self, look: Any) -> None:
        self.look = look

    def before_train(self, runner: Any) -> None:
        self.look(runner)


def make_runner(
    work_dir: Any,
    hooks: list[dict[str, Any]] | None = None,
    *,
    optim_wrapper: dict[str, Any] | None = None,
    epochs: int = 3,
    batch_size: int = 4,
    model: nn.Module | None = None,
    faults: list[dict[str, Any]] | None = None,
    spy: Any = None,
    **cfg: Any,
) -> Runner:
    """Build a runner of the toy model: 8 iterations an epoch."""
    global _COUNT
    _COUNT += 1
    torch.manual_seed(0)
    hooks = list(hooks or [])
    if faults:
        hooks.append(dict(type='FaultInjectionHook', faults=faults))
    if spy is not None:
        hooks.append(SpyHook(spy))
    return Runner(
        model=model or ToyModel(),
        work_dir=str(work_dir),
        train_dataloader=dict(
            batch_size=batch_size,
            num_workers=0,
            dataset=ToyData(),
            sampler=dict(type='DefaultSampler', shuffle=True),
            collate_fn=dict(type='toy_collate'),
        ),
        train_cfg=cfg.pop('train_cfg', None) or dict(by_epoch=True, max_epochs=epochs),
        optim_wrapper=ConfigDict(optim_wrapper or DEFAULT_WRAPPER),
        default_hooks=dict(
            logger=dict(type='LoggerHook', interval=4), **cfg.pop('default_hooks', {})
        ),
        custom_hooks=hooks,
        randomness=dict(seed=0),
        default_scope='mmengine',
        # mmengine keeps one message hub per name in a process
        experiment_name=f'toy_{_COUNT}',
        **cfg,
    )


def weights(runner: Runner) -> dict[str, torch.Tensor]:
    """Return weights and buffers."""
    return {k: v.clone() for k, v in runner.model.state_dict().items()}


def guard_dir(runner: Runner) -> Path:
    """Return the folder that the guard writes to."""
    return Path(runner.log_dir) / 'grad_guard'


def read_steps(runner: Runner) -> list[dict[str, Any]]:
    """Return the rows of ``steps.jsonl``, strictly parsed."""
    lines = (guard_dir(runner) / 'steps.jsonl').read_text().splitlines()
    return [json.loads(line, parse_constant=_refuse) for line in lines]


def read_incidents(runner: Runner) -> list[dict[str, Any]]:
    """Return all incidents, ordered by iteration."""
    files = (guard_dir(runner) / 'incidents').glob('*/incident.json')
    incidents = [json.loads(f.read_text(), parse_constant=_refuse) for f in files]
    return sorted(incidents, key=lambda incident: incident['iteration'])


def _refuse(name: str) -> None:
    raise ValueError(f'{name} is not JSON')
