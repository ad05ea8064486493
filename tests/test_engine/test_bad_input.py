"""What a user or a disk does wrong: a clear error first, or a run that goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from mmengine.hooks import Hook
from mmengine.optim import OptimWrapperDict
from mmengine.registry import HOOKS, OPTIM_WRAPPERS
from torch import nn
from toy import ToyModel, guard_dir, make_runner, read_incidents, read_steps, weights

from mmgradguard.incident import module_norms
from mmgradguard.incident import monitor as monitor_module

WATCH = dict(type='GradAnomalyHook', interval=5)
ACT = dict(type='AdaptiveClipHook', on_exception='skip')
NAN = dict(kind='grad_nan', target='head', iteration=3)


@pytest.mark.parametrize(
    ('config', 'words'),
    [
        (dict(WATCH, interval=0), '`interval` must be an integer >= 1, got 0'),
        (dict(WATCH, interval=True), '`interval` must be'),
        (dict(WATCH, warmup='10'), "`warmup` must be an integer >= 1, got '10'"),
        (dict(WATCH, on_fatal='raise'), "`on_fatal` must be one of .*got 'raise'"),
        (dict(WATCH, module_groups='head'), "`module_groups` must be .*got 'head'"),
        (dict(WATCH, module_groups=['(']), r"`module_groups` must hold .*'\('"),
        (dict(WATCH, trace='yes'), '`trace` must be True or False'),
        (
            dict(WATCH, intervall=5),
            'has no argument intervall; it takes bundle, interval',
        ),
        (dict(ACT, on_exception='ignore'), '`on_exception` must be one of'),
        (dict(ACT, max_norm=1.0), 'has no argument max_norm; it takes clip_groups'),
        (dict(ACT, max_consecutive_skips=0), '`max_consecutive_skips` must be'),
        (dict(ACT, fused='yes'), "`fused` must be one of 'keep', True, False"),
        (
            dict(ACT, clip_policy=dict(type='Fixed')),
            "one of .'FixedClip', 'PercentileClip'",
        ),
        (dict(ACT, clip_policy=dict(type='FixedClip', max_norm=-1)), 'got -1'),
        (
            dict(ACT, clip_policy=dict(type='PercentileClip', percentil=5)),
            'has unknown keys percentil; PercentileClip takes percentile, type, warmup',
        ),
        (
            dict(ACT, clip_policy=dict(type='FixedClip', norm=1)),
            '`clip_policy` has unknown keys norm; FixedClip takes max_norm, type',
        ),
        (
            dict(ACT, clip_groups=[('a', dict(type='FixedClip', norm=1))]),
            r'`clip_groups\[0\]` has unknown keys norm',
        ),
        (
            dict(ACT, clip_groups=[('head', 1.0), ('head', 2.0)]),
            "`clip_groups` holds the pattern 'head' more than once",
        ),
        (dict(WATCH, module_groups=['head', 'head']), "'head' more than once"),
        (
            dict(type='FaultInjectionHook'),
            'a list of dicts with the keys kind, iteration, target, factor, got None',
        ),
        (
            dict(type='FaultInjectionHook', faults=[dict(kind='x', at=3)]),
            r'`faults\[0\]` has unknown keys at; a fault takes factor, iteration, kind',
        ),
        (dict(ACT, clip_groups=[('head',)]), r'`clip_groups\[0\]` must be'),
        (
            dict(ACT, clip_groups=[('(', 1.0)]),
            r'`clip_groups\[0\]` must hold regular expressions',
        ),
        (
            dict(type='FaultInjectionHook', faults=[dict(kind='x')]),
            r'`faults\[0\].kind`',
        ),
        (
            dict(type='FaultInjectionHook', faults=[dict(kind='grad_nan', target='a')]),
            r'`faults\[0\].iteration` must be',
        ),
    ],
    ids=str,
)
def test_a_wrong_config_names_key_and_value(config: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        HOOKS.build(config)


@pytest.mark.parametrize(
    ('options', 'words'),
    [
        (dict(clip_grad=dict(max_norm=-1)), '`clip_grad.max_norm` must be a positive'),
        (
            dict(clip_grad=dict(max_norm=None)),
            '`clip_grad.max_norm` must be a positive',
        ),
        (dict(clip_grad=dict(type='adaptive')), '`clip_grad.type` must be'),
        (dict(clip_grad=dict(maxnorm=1)), r"unknown keys \['maxnorm'\]"),
        (dict(clip_grad=dict(norm_type=2)), 'needs `max_norm`'),
        (dict(clip_gradient=1), 'has no argument clip_gradient'),
        (dict(skip_nonfinite='no'), '`skip_nonfinite` must be True or False'),
    ],
    ids=str,
)
def test_a_wrong_wrapper_names_key_and_value(
    options: dict[str, Any], words: str
) -> None:
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(2))], lr=0.1)
    config = dict(type='AdaptiveClipOptimWrapper', **options)
    with pytest.raises(ValueError, match=words):
        OPTIM_WRAPPERS.build(config, default_args=dict(optimizer=optimizer))


def test_an_unknown_target_of_a_fault_names_its_neighbours(tmp_path: Path) -> None:
    fault = dict(NAN, target='backbon.0')
    runner = make_runner(tmp_path, faults=[fault])
    with pytest.raises(
        ValueError, match=r"no module 'backbon.0'; did you mean backbone.0"
    ):
        runner.train()


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


def test_no_trainable_parameter_says_what_mmengine_says(tmp_path: Path) -> None:
    messages = []
    for folder, hooks in (('a', []), ('b', [WATCH, ACT])):
        model = ToyModel()
        model.requires_grad_(False)
        runner = make_runner(tmp_path / folder, hooks, model=model)
        with pytest.raises(RuntimeError, match='does not require grad') as info:
            runner.train()
        messages.append(str(info.value))
    # also with on_exception='skip': a run in which nothing ever worked is no run
    assert messages[0] == messages[1]
    assert runner.iter == 2


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


def test_a_foreign_wrapper_is_refused_by_name(tmp_path: Path) -> None:
    from mmengine.optim import OptimWrapper

    class Foreign(OptimWrapper):
        pass

    runner = make_runner(tmp_path, [ACT])
    optimizer = torch.optim.SGD(runner.model.parameters(), lr=0.1)
    runner.optim_wrapper = Foreign(optimizer)
    with pytest.raises(TypeError, match=r'optim_wrapper\.type=Foreign'):
        runner.train()


def test_validation_alone_has_nothing_to_guard(tmp_path: Path) -> None:
    HOOKS.build(WATCH).before_run(make_runner(tmp_path))


@pytest.mark.parametrize(
    'kind', ['a file in the way', 'no permission', 'a name too long']
)
def test_a_folder_that_cannot_be_written(tmp_path: Path, kind: str) -> None:
    blocked = tmp_path / 'blocked'
    if kind == 'a file in the way':
        blocked.write_text('')
    elif kind == 'no permission':
        blocked = Path('/proc/mmgradguard')  # nobody may write there
    else:
        blocked = tmp_path / ('x' * 300)
    hooks = [dict(WATCH, out_dir=str(blocked)), ACT]
    plain = make_runner(tmp_path / 'plain', [ACT], epochs=1, faults=[NAN])
    plain.train()
    runner = make_runner(tmp_path / 'b', hooks, epochs=1, faults=[NAN])
    runner.train()
    log = (Path(runner.log_dir) / f'{runner.timestamp}.log').read_text()
    assert log.count(f'cannot write into {blocked}') == 1
    assert 'Traceback' not in log
    assert log.count(str(blocked)) <= 2  # the system's reason names it too
    ours, theirs = weights(runner), weights(plain)
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)


def test_a_full_disk_loses_nothing_that_was_written(tmp_path: Path) -> None:
    """A file that fills up stands in for a full disk: the same error."""
    script, limit = Path(__file__).parent / 'full_disk_run.py', 3000
    result = subprocess.run(
        [sys.executable, str(script), str(tmp_path), str(limit)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path)},
        timeout=120,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    assert 'finished 24 iterations' in result.stdout
    assert (result.stdout + result.stderr).count('No space left on device') == 1
    (path,) = tmp_path.glob('*/grad_guard/steps.jsonl')
    assert 0 < path.stat().st_size <= limit
    whole = path.read_text().splitlines()[:-1]
    assert [json.loads(line)['step'] for line in whole] == list(range(len(whole)))


@pytest.mark.parametrize(
    'target', ['describe_samples', 'find_kind', 'collect_evidence', 'group_parameters']
)
def test_a_failure_inside_the_guard_is_told_once_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    place = module_norms if target == 'group_parameters' else monitor_module
    spike = dict(kind='grad_spike', target='head', iteration=20, factor=1e4)
    plain = make_runner(tmp_path / 'a', [], faults=[spike])
    plain.train()

    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError('a bug of ours')

    monkeypatch.setattr(place, target, broken)
    runner = make_runner(tmp_path / 'b', [WATCH, ACT], faults=[spike])
    runner.train()
    log = (guard_dir(runner).parent / f'{runner.timestamp}.log').read_text()
    told = log.count('recording failed and is switched off')
    told += log.count('cannot describe the batch')
    assert told == 1
    ours, theirs = weights(runner), weights(plain)
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)


def test_a_failure_of_the_acting_step_hands_over_to_mmengine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mmgradguard.clip import guarded_step

    plain = make_runner(tmp_path / 'a')
    plain.train()
    calls = []
    real = guarded_step.compute_grad_norms

    def broken(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        if len(calls) == 5:
            raise ZeroDivisionError('a bug of ours')
        return real(*args, **kwargs)

    monkeypatch.setattr(guarded_step, 'compute_grad_norms', broken)
    runner = make_runner(tmp_path / 'b', [ACT])
    runner.train()
    ours, theirs = weights(runner), weights(plain)
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)
    log = (Path(runner.log_dir) / f'{runner.timestamp}.log').read_text()
    assert log.count('mmengine steps without it from here on') == 1


def test_skipping_exceptions_needs_a_single_optimizer(tmp_path: Path) -> None:
    runner = _dict_runner(tmp_path, [ACT])
    with pytest.raises(ValueError, match='needs a single optimizer'):
        runner.train()


@pytest.mark.parametrize('broken', ['save', 'restore'])
def test_a_model_whose_state_cannot_be_kept_trains_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    from mmgradguard.ops.module_state import ModuleState

    def fail(*_: Any) -> None:
        raise ZeroDivisionError('a bug of ours')

    monkeypatch.setattr(ModuleState, broken, fail)
    runner = make_runner(tmp_path, [ACT], faults=[NAN])
    runner.train()
    assert runner.iter == 24
    assert torch.isfinite(runner.model.head.weight).all()
    log = (Path(runner.log_dir) / f'{runner.timestamp}.log').read_text()
    assert log.count('cannot be kept') == 1


@pytest.mark.parametrize('broken', ['apply', 'accept', 'state_dict'])
def test_a_failure_while_clipping_or_saving_is_survived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    from mmgradguard.clip.guarded_step import GuardedStep

    def fail(*_: Any) -> None:
        raise ZeroDivisionError('a bug of ours')

    monkeypatch.setattr(GuardedStep, broken, fail)
    runner = make_runner(tmp_path, [ACT])
    runner.train()
    assert runner.iter == 24


@pytest.mark.parametrize('garbage', ['text', [1], {'groups': [5]}, {'monitor': 3}])
def test_a_checkpoint_with_odd_statistics_starts_them_anew(
    tmp_path: Path, garbage: Any
) -> None:
    make_runner(tmp_path, [ACT], epochs=1).train()
    path = tmp_path / 'epoch_1.pth'
    checkpoint = torch.load(path, weights_only=False)
    checkpoint['grad_guard'] = checkpoint['optimizer']['grad_guard'] = garbage
    torch.save(checkpoint, path)
    runner = make_runner(tmp_path, [WATCH, ACT], epochs=2, resume=True)
    runner.train()
    assert runner.iter == 16
    assert read_steps(runner)[-1]['iteration'] == 15


def test_train_can_be_called_again_after_an_interrupt(tmp_path: Path) -> None:
    class CtrlC(Hook):
        def before_train_iter(self, runner: Any, *_: Any, **__: Any) -> None:
            if runner.iter == 5 and not hasattr(self, 'done'):
                self.done = True
                raise KeyboardInterrupt

    runner = make_runner(tmp_path, [WATCH, CtrlC()], epochs=1)
    with pytest.raises(KeyboardInterrupt):
        runner.train()
    runner.train()
    steps = [row['step'] for row in read_steps(runner)]
    assert steps == list(range(len(steps)))
    assert 'train_step' not in vars(runner.model)


def test_an_error_after_the_step_is_no_skip(tmp_path: Path) -> None:
    class FailsLate(ToyModel):
        def train_step(self, data: Any, optim_wrapper: Any) -> Any:
            log = super().train_step(data, optim_wrapper)
            if optim_wrapper._inner_count == 5:
                raise RuntimeError('after the step')
            return log

    runner = make_runner(tmp_path, [ACT], model=FailsLate())
    with pytest.raises(RuntimeError, match='after the step'):
        runner.train()
    assert read_incidents(runner)[-1]['action'] == 'raised'
