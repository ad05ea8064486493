"""Models and optimizers that are not the usual ones are guarded all the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from mmengine.hooks import Hook
from mmengine.optim import OptimWrapperDict
from mmengine.registry import OPTIM_WRAPPERS
from torch import nn
from toy import ToyModel, make_runner, read_incidents, read_steps, weights

WATCH = dict(type='GradAnomalyHook', interval=5)
ACT = dict(type='AdaptiveClipHook', on_exception='skip')
NAN = dict(kind='grad_nan', target='head', iteration=3)


class Frozen(ToyModel):
    """Nothing to train but one bias; the rest is frozen."""

    def __init__(self) -> None:
        super().__init__()
        for name, param in self.named_parameters():
            param.requires_grad_(name == 'head.bias')


class Sparse(ToyModel):
    """With an embedding whose gradient is sparse, and a weight that is used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(8, 4, sparse=True)
        self.tied = self.head

    def forward(
        self, inputs: Any, data_samples: Any = None, mode: str = 'tensor'
    ) -> Any:
        rows = torch.tensor([s['img_id'] % 3 for s in data_samples])
        return super().forward(inputs + self.embedding(rows), data_samples, mode)


class Unused(ToyModel):
    """With parameters that no batch uses."""

    def __init__(self) -> None:
        super().__init__()
        self.unused = nn.Linear(3, 3)


@pytest.mark.parametrize('model', [Frozen, Sparse, Unused])
@pytest.mark.parametrize('hooks', [[WATCH], [WATCH, ACT]], ids=['watch', 'act'])
def test_odd_models_work(
    tmp_path: Path, model: type[ToyModel], hooks: list[Any]
) -> None:
    wrapper = dict(
        type='OptimWrapper',
        optimizer=dict(type='SGD', lr=1e-3),
        clip_grad=dict(max_norm=1.0) if model is not Sparse else None,
    )
    torch.manual_seed(0)
    plain = make_runner(tmp_path / 'a', optim_wrapper=wrapper, model=model())
    plain.train()
    torch.manual_seed(0)
    runner = make_runner(tmp_path / 'b', hooks, optim_wrapper=wrapper, model=model())
    runner.train()
    rows = read_steps(runner)
    assert len(rows) == 24
    assert all(row['total_norm'] > 0 for row in rows)
    assert plain.model.training == runner.model.training


def test_sparse_gradients_are_clipped_like_dense_ones(tmp_path: Path) -> None:
    wrapper = dict(
        type='AdaptiveClipOptimWrapper',
        optimizer=dict(type='SGD', lr=1.0),
        clip_grad=dict(max_norm=1e-3),
    )
    runner = make_runner(
        tmp_path, [WATCH], epochs=1, optim_wrapper=wrapper, model=Sparse()
    )
    before = weights(runner)
    runner.train()
    after = weights(runner)
    moved = sum(
        (after[k] - before[k]).square().sum()
        for k in before
        if 'running' not in k and 'num' not in k
    )
    assert float(moved) ** 0.5 <= 8 * 1e-3 * (1 + 1e-4)


def test_a_dict_of_wrappers_is_watched(tmp_path: Path) -> None:
    runner = _dict_runner(tmp_path, [WATCH])
    runner.train()
    rows = read_steps(runner)
    assert len(rows) == 16  # two steps an iteration
    (incident,) = read_incidents(runner)
    assert incident['params'][0]['name'].startswith('head.')


def test_a_dict_of_wrappers_is_acted_on(tmp_path: Path) -> None:
    runner = _dict_runner(tmp_path, [WATCH, dict(type='AdaptiveClipHook')])
    state = {}

    class Snapshot(Hook):
        priority = 'VERY_HIGH'

        def before_train_iter(self, runner: Any, *_: Any, **__: Any) -> None:
            state[runner.iter] = runner.model.backbone[1].running_mean.clone()

    runner.register_hook(Snapshot())
    runner.train()
    assert torch.equal(state[3], state[4])  # the skipped one
    assert not torch.equal(state[4], state[5])
    (incident,) = read_incidents(runner)
    assert incident['params'][0]['name'].startswith('head.')
    assert [r['skipped'] for r in read_steps(runner)].count('nonfinite') == 1
    assert all(torch.isfinite(v).all() for v in weights(runner).values())


class TwoOptimizers(ToyModel):
    """Steps two wrappers, one per part."""

    def train_step(self, data: Any, optim_wrapper: OptimWrapperDict) -> Any:
        data = self.data_preprocessor(data, True)
        losses, log = self.parse_losses(self(**data, mode='loss'))
        for wrapper in optim_wrapper.values():
            wrapper.zero_grad()
        losses.backward()
        for wrapper in optim_wrapper.values():
            wrapper.step()
        return log


def _dict_runner(tmp_path: Path, hooks: list[Any]) -> Any:
    model = TwoOptimizers()
    parts = {
        name: OPTIM_WRAPPERS.build(
            dict(type='OptimWrapper', clip_grad=dict(max_norm=1.0)),
            default_args=dict(optimizer=torch.optim.SGD(part.parameters(), lr=1e-3)),
        )
        for name, part in (('backbone', model.backbone), ('head', model.head))
    }
    runner = make_runner(tmp_path, hooks, epochs=1, model=model, faults=[NAN])
    runner.optim_wrapper = OptimWrapperDict(**parts)
    return runner


def test_skipping_exceptions_needs_a_single_optimizer(tmp_path: Path) -> None:
    runner = _dict_runner(tmp_path, [ACT])
    with pytest.raises(ValueError, match='needs a single optimizer'):
        runner.train()
