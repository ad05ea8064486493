"""A small model in a plain loop, and what its guard has written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import nn

from mmgradguard import GradGuard


def make_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))


def batches(count: int = 30, bad: tuple[int, ...] = ()) -> list[dict[str, Any]]:
    generator = torch.Generator().manual_seed(1)
    made = []
    for i in range(count):
        x = torch.randn(4, 4, generator=generator)
        if i in bad:
            x[1, 2] = float('nan')
        made.append(
            {'inputs': x, 'targets': [{'img_id': 10 * i + k} for k in range(4)]}
        )
    return made


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / 'steps.jsonl').open()]


def incidents(folder: Path) -> dict[int, dict[str, Any]]:
    found = (folder / 'incidents').glob('*/incident.json')
    loaded = [json.loads(path.read_text()) for path in found]
    return {incident['iteration']: incident for incident in loaded}


def losses_of(model: nn.Module, batch: Any) -> dict[str, torch.Tensor]:
    out = model(batch['inputs'])
    return {'loss_cls': out.square().mean(), 'loss_box': (out - 1).abs().mean()}


def train(guard: GradGuard, data: list[Any], raise_at: int = -1) -> None:
    for i, batch in enumerate(data):
        with guard.iteration(batch):
            losses = losses_of(guard.model, batch)
            if i == raise_at:
                raise ValueError('matcher')
            guard.optimizer.zero_grad()
            sum(losses.values()).backward()
            guard.step(losses=losses)
    guard.close()


def state_of(model: nn.Module) -> dict[str, torch.Tensor]:
    return {key: value.clone() for key, value in model.state_dict().items()}


def equal(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return all(torch.equal(a[key], b[key]) for key in a)


def step_once(guard: GradGuard, x: torch.Tensor) -> None:
    guard.optimizer.zero_grad()
    guard.model(x).square().mean().backward()
    guard.step(batch={'inputs': x})
