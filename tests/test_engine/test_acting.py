"""`AdaptiveClipHook` and the wrapper: same run as mmengine's where nothing happens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from mmengine.config import ConfigDict
from toy import (
    DEFAULT_WRAPPER,
    guard_dir,
    make_runner,
    read_incidents,
    read_steps,
    weights,
)

ACT = dict(type='AdaptiveClipHook')
SCHEDULE = [
    dict(type='LinearLR', start_factor=0.1, by_epoch=False, end=6),
    dict(type='MultiStepLR', by_epoch=False, milestones=[14]),
]
CASES = {
    'clipped': {},
    'unclipped': dict(clip_grad=None),
    'rarely clipped': dict(clip_grad=dict(max_norm=12.0)),
    'max norm': dict(clip_grad=dict(max_norm=1.0, norm_type='inf')),
    'by value': dict(clip_grad=dict(type='value', clip_value=0.1)),
    'accumulating': dict(accumulative_counts=3),
    'grouped': dict(paramwise_cfg=dict(custom_keys={'backbone': dict(lr_mult=0.1)})),
    'fused': dict(optimizer=dict(type='AdamW', lr=1e-2, fused=True)),
}


def wrapper_of(case: str, **more: Any) -> dict[str, Any]:
    return {**DEFAULT_WRAPPER, **CASES[case], **more}


@pytest.mark.parametrize('case', CASES)
def test_acting_on_a_healthy_run_changes_no_bit(tmp_path: Path, case: str) -> None:
    runs = {}
    for name, hooks, kind in (
        ('plain', [], 'OptimWrapper'),
        ('adopted', [ACT], 'OptimWrapper'),
        ('configured', [], 'AdaptiveClipOptimWrapper'),
    ):
        wrapper = wrapper_of(case, type=kind)
        runner = make_runner(
            tmp_path / name, hooks, optim_wrapper=wrapper, param_scheduler=SCHEDULE
        )
        runner.train()
        runs[name] = runner
    plain = weights(runs['plain'])
    for name in ('adopted', 'configured'):
        other = weights(runs[name])
        assert all(torch.equal(plain[key], other[key]) for key in plain), name
        assert runs[name].optim_wrapper.get_lr() == runs['plain'].optim_wrapper.get_lr()
        if case in ('clipped', 'accumulating'):
            ours, _ = runs[name].message_hub.get_scalar('train/grad_norm').data
            theirs, _ = runs['plain'].message_hub.get_scalar('train/grad_norm').data
            assert ours.tolist() == theirs.tolist()


def test_resumed_and_adopted_equals_resumed_and_configured(tmp_path: Path) -> None:
    policy = dict(type='PercentileClip', percentile=50, warmup=2, window=16)
    ends = []
    for folder, hooks, wrapper in (
        ('a', [dict(ACT, clip_policy=policy)], wrapper_of('clipped')),
        (
            'b',
            [],
            wrapper_of('clipped', type='AdaptiveClipOptimWrapper', clip_policy=policy),
        ),
    ):
        for epochs, resume in ((1, False), (3, True)):
            runner = make_runner(
                tmp_path / folder,
                hooks,
                optim_wrapper=wrapper,
                epochs=epochs,
                resume=resume,
                param_scheduler=SCHEDULE,
            )
            runner.train()
        ends.append((weights(runner), runner.optim_wrapper.state_dict()['grad_guard']))
    (first, first_state), (second, second_state) = ends
    assert all(torch.equal(first[key], second[key]) for key in first)
    norms = first_state['groups'][0]['norms']
    assert torch.equal(norms, second_state['groups'][0]['norms'])
    assert torch.isfinite(norms).all()  # 24 steps filled a window of 16: it went on


def test_a_checkpoint_goes_back_to_a_run_without_us(tmp_path: Path) -> None:
    make_runner(tmp_path, [ACT], epochs=1).train()
    runner = make_runner(tmp_path, epochs=2, resume=True)
    runner.train()
    assert runner.iter == 16


def test_a_checkpoint_made_without_us_can_be_resumed(tmp_path: Path) -> None:
    make_runner(tmp_path, epochs=1).train()
    runner = make_runner(tmp_path, [ACT], epochs=2, resume=True)
    runner.train()
    assert [row['iteration'] for row in read_steps(runner)] == list(range(8, 16))


def test_a_policy_clips_below_the_ceiling_and_never_above(tmp_path: Path) -> None:
    policy = dict(type='PercentileClip', percentile=50, warmup=4, window=16)
    wrapper = wrapper_of('clipped', clip_grad=dict(max_norm=14.0))
    runner = make_runner(
        tmp_path, [dict(ACT, clip_policy=policy)], optim_wrapper=wrapper
    )
    runner.train()
    limits = [row['max_norm'] for row in read_steps(runner)]
    assert limits[:4] == [14.0] * 4
    assert all(limit <= 14.0 for limit in limits)
    assert min(limits) < 14.0


def test_groups_are_clipped_apart(tmp_path: Path) -> None:
    fault = dict(kind='grad_spike', target='head', iteration=4, factor=1e8)
    groups = [('^head', 0.5)]
    norms: dict[str, float] = {}

    def look(runner: Any) -> None:
        optimizer = runner.optim_wrapper.optimizer
        host = optimizer.step

        def step(*args: Any, **kwargs: Any) -> Any:
            if runner.iter == 4:
                for name, param in runner.model.named_parameters():
                    norms[name] = float(param.grad.norm())
            return host(*args, **kwargs)

        optimizer.step = step

    runner = make_runner(
        tmp_path, [dict(ACT, clip_groups=groups)], epochs=1, faults=[fault], spy=look
    )
    runner.train()
    head = (norms['head.weight'] ** 2 + norms['head.bias'] ** 2) ** 0.5
    assert head == pytest.approx(0.5, rel=1e-5)
    # one exploding head does not scale the rest of the step to nothing
    assert norms['backbone.0.weight'] > 0.01


def test_finite_gradients_with_an_infinite_norm_are_clipped_right(
    tmp_path: Path,
) -> None:
    fault = dict(kind='grad_spike', target='', iteration=20, factor=1e21)
    runner = make_runner(tmp_path, [ACT], faults=[fault])
    runner.train()
    row = read_steps(runner)[20]
    assert row['skipped'] is None
    assert 1e19 < row['total_norm'] < 1e25
    assert row['nonfinite_params'] == 0
    assert row['clip_coef'] == pytest.approx(1.0 / row['total_norm'], rel=1e-5)
    (incident,) = read_incidents(runner)
    assert incident['kind'] == 'norm_overflow'
    assert incident['action'] == 'clipped'
    assert incident['cause']['code'] == 'norm-overflow'
    assert all(torch.isfinite(v).all() for v in weights(runner).values())


def test_the_wrapper_alone_skips_and_writes_no_files(tmp_path: Path) -> None:
    fault = dict(kind='grad_nan', target='head', iteration=3)
    wrapper = wrapper_of('clipped', type='AdaptiveClipOptimWrapper')
    runner = make_runner(tmp_path, optim_wrapper=wrapper, faults=[fault], epochs=1)
    runner.train()
    assert torch.isfinite(runner.model.head.weight).all()
    assert not guard_dir(runner).exists()
    log = (Path(runner.log_dir) / f'{runner.timestamp}.log').read_text()
    assert log.count('add GradAnomalyHook') == 1


def test_wrapper_and_hooks_are_one_guard(tmp_path: Path) -> None:
    fault = dict(kind='grad_nan', target='head', iteration=3)
    wrapper = wrapper_of('clipped', type='AdaptiveClipOptimWrapper')
    hooks = [
        dict(type='GradAnomalyHook', interval=2),
        dict(ACT, clip_policy=dict(type='PercentileClip')),
        dict(type='GradAnomalyHook', interval=7),
    ]
    runner = make_runner(
        tmp_path, hooks, optim_wrapper=wrapper, faults=[fault], epochs=1
    )
    runner.train()
    rows = read_steps(runner)
    assert [row['step'] for row in rows] == list(range(8))
    assert [i for i, r in enumerate(rows) if 'module_norms' in r] == [0, 2, 3, 4, 6]
    assert len(read_incidents(runner)) == 1
    log = (guard_dir(runner).parent / f'{runner.timestamp}.log').read_text()
    assert 'a second GradAnomalyHook stands down' in log
    assert 'clip_policy of AdaptiveClipHook stand down' in log


@pytest.mark.parametrize('cls', ['AdaptiveClipOptimWrapper', 'AdaptiveClipHook'])
def test_the_config_is_never_changed(cls: str) -> None:
    from mmengine.registry import HOOKS, OPTIM_WRAPPERS

    options = dict(
        clip_policy=dict(type='PercentileClip', window=8, warmup=2),
        clip_groups=[['head', dict(type='FixedClip', max_norm=1.0)]],
    )
    if cls == 'AdaptiveClipHook':
        config = ConfigDict(type=cls, **options)
        build = HOOKS.build
    else:
        config = ConfigDict(
            type=cls, clip_grad=dict(type='norm', max_norm=1.0), **options
        )

        def build(cfg: Any) -> Any:
            optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], lr=0.1)
            return OPTIM_WRAPPERS.build(cfg, default_args=dict(optimizer=optimizer))

    before = config.to_dict()
    build(config)
    build(config)
    assert config.to_dict() == before


def test_fused_can_be_switched_and_the_checkpoint_keeps_the_users_flag(
    tmp_path: Path,
) -> None:
    runner = make_runner(tmp_path, [dict(ACT, fused=True)], epochs=1)
    runner.train()
    assert all(g['fused'] for g in runner.optim_wrapper.optimizer.param_groups)
    saved = torch.load(tmp_path / 'epoch_1.pth', weights_only=False)
    assert not any(g['fused'] for g in saved['optimizer']['param_groups'])
    resumed = make_runner(tmp_path, [dict(ACT, fused=True)], epochs=2, resume=True)
    resumed.train()
    assert all(g['fused'] for g in resumed.optim_wrapper.optimizer.param_groups)
