"""What a user writes wrong: an error that names key, value and what is allowed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from mmengine.registry import HOOKS, OPTIM_WRAPPERS
from torch import nn
from toy import ToyModel, make_runner

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
