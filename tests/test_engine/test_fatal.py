"""Weights that are lost: the run ends or shouts, and a good checkpoint is kept."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from mmengine.hooks import Hook
from mmengine.runner import Runner
from toy import guard_dir, make_runner, read_incidents, weights

from mmgradguard.engine.seams import arm_train
from mmgradguard.report.markdown import render_markdown
from mmgradguard.report.model import build_report
from mmgradguard.report.run_files import read_run
from mmgradguard.report.terminal import render_terminal

WATCH = dict(type='GradAnomalyHook')
ACT = dict(type='AdaptiveClipHook')
LOST = dict(kind='weight_nan', target='head', iteration=19)
KEEP_ONE = dict(checkpoint=dict(type='CheckpointHook', interval=1, max_keep_ckpts=1))


def log_of(runner: Any) -> str:
    return (guard_dir(runner).parent / f'{runner.timestamp}.log').read_text()


@pytest.mark.parametrize('hooks', [[ACT], [dict(WATCH, on_fatal='stop')], [WATCH, ACT]])
def test_stop_ends_the_run_cleanly(tmp_path: Path, hooks: list[Any]) -> None:
    runner = make_runner(tmp_path, hooks, faults=[LOST])
    assert runner.train() is runner.model
    assert runner.iter == 19
    incident = read_incidents(runner)[-1]
    assert incident['kind'] == 'nonfinite_weights'
    assert incident['verdict'] == 'fatal'
    assert incident['first_bad']['phase'] == 'weights'
    assert incident['first_bad']['module'] == 'head'
    assert incident['cause']['code'] == 'bad-weights'
    assert 'TRAINING STOPPED' in log_of(runner)
    journal = (guard_dir(runner) / 'journal.jsonl').read_text().splitlines()
    assert json.loads(journal[-1])['new'] == 'stopped'
    assert (guard_dir(runner) / 'report.html').is_file()
    assert 'train_step' not in vars(runner.model)


def test_warn_goes_on(tmp_path: Path) -> None:
    runner = make_runner(tmp_path, [dict(ACT, on_fatal='warn')], faults=[LOST])
    runner.train()
    assert runner.iter == 24
    assert log_of(runner).count('EVERY STEP FROM HERE ON IS WASTED') == 2


def test_the_newest_finite_checkpoint_outlives_max_keep_ckpts(tmp_path: Path) -> None:
    runner = make_runner(
        tmp_path, [WATCH], epochs=5, faults=[LOST], default_hooks=KEEP_ONE
    )
    runner.train()
    assert sorted(p.name for p in tmp_path.glob('*.pth')) == [
        'epoch_5.pth',
        'last_finite_epoch_2.pth',
    ]
    kept = torch.load(tmp_path / 'last_finite_epoch_2.pth', weights_only=False)
    assert all(torch.isfinite(v).all() for v in kept['state_dict'].values())
    assert f'resume from {tmp_path}/last_finite_epoch_2.pth' in log_of(runner)


def test_it_is_kept_also_where_weights_are_lost_right_before_a_save(
    tmp_path: Path,
) -> None:
    # no log line in between that would look at the weights first
    checkpoint = dict(
        type='CheckpointHook', interval=3, max_keep_ckpts=1, by_epoch=False
    )
    runner = make_runner(
        tmp_path,
        [WATCH],
        faults=[dict(LOST, iteration=8)],
        default_hooks=dict(checkpoint=checkpoint),
    )
    runner.train()
    assert (tmp_path / 'last_finite_iter_6.pth').is_file()


def test_a_healthy_run_keeps_no_extra_checkpoint(tmp_path: Path) -> None:
    make_runner(tmp_path, [WATCH, ACT], default_hooks=KEEP_ONE).train()
    assert [p.name for p in tmp_path.glob('*.pth')] == ['epoch_3.pth']


def test_a_lost_average_is_fatal_too(tmp_path: Path) -> None:
    class Spoil(Hook):
        def before_train_iter(self, runner: Any, *_: Any, **__: Any) -> None:
            if runner.iter == 5:
                ema = next(h.ema_model for h in runner.hooks if hasattr(h, 'ema_model'))
                ema.module.head.weight.data[0, 0] = float('nan')

    runner = make_runner(tmp_path, [dict(type='EMAHook'), ACT, Spoil()])
    runner.train()
    assert runner.iter == 7  # the next log line
    assert 'ema.module.head.weight' in log_of(runner)


def test_large_finite_weights_are_finite(tmp_path: Path) -> None:
    def grow(runner: Any) -> None:
        # squares overflow fp32, the numbers do not
        runner.model.register_parameter(
            'big', torch.nn.Parameter(torch.full((2,), 1e25), requires_grad=False)
        )

    runner = make_runner(tmp_path, [ACT], epochs=1, spy=grow)
    runner.train()
    assert runner.iter == 8


def test_train_is_wrapped_once_and_undone(tmp_path: Path) -> None:
    runner = make_runner(tmp_path, [ACT], epochs=1)
    assert Runner.train._is_guarded
    arm_train()
    gc.collect()  # hooks of other tests that still wait for their run
    runner.train()
    assert not hasattr(Runner.train, '_is_guarded')


@pytest.mark.parametrize(
    ('hooks', 'wrapper', 'is_loud'),
    [
        ([], None, True),
        ([WATCH], None, False),
        ([ACT], None, False),
        (
            [],
            dict(type='AdaptiveClipOptimWrapper', optimizer=dict(type='SGD', lr=0.1)),
            False,
        ),
    ],
)
def test_a_config_that_imports_us_without_a_guard_is_told(
    tmp_path: Path, hooks: list[Any], wrapper: Any, is_loud: bool
) -> None:
    runner = make_runner(
        tmp_path,
        hooks,
        optim_wrapper=wrapper,
        epochs=1,
        cfg=dict(
            custom_imports=dict(imports=['mmgradguard']), optim_wrapper=wrapper or {}
        ),
    )
    arm_train()
    runner.train()
    assert ('NO GUARD IS ACTIVE' in log_of(runner)) == is_loud


def test_a_second_run_in_the_process_has_its_own_guard(tmp_path: Path) -> None:
    lost = make_runner(tmp_path / 'a', [WATCH, ACT], faults=[LOST])
    lost.train()
    fine = make_runner(tmp_path / 'b', [WATCH, ACT])
    fine.train()
    assert not (guard_dir(fine) / 'incidents').exists()
    assert all(torch.isfinite(v).all() for v in weights(fine).values())


def test_weights_lost_in_the_last_iteration_leave_an_incident(tmp_path: Path) -> None:
    class Spoil(Hook):
        def after_train_iter(self, runner: Any, *_: Any, **__: Any) -> None:
            if runner.iter == 23:
                runner.model.head.weight.data[0, 0] = float('inf')

    runner = make_runner(tmp_path, [Spoil(), WATCH])
    runner.train()
    (incident,) = read_incidents(runner)
    assert incident['kind'] == 'nonfinite_weights'
    assert incident['first_bad']['module'] == 'head'
    assert incident['params'][0]['num_inf'] == 1
    assert incident['samples']


def test_an_exception_that_lost_weights_caused_says_so(tmp_path: Path) -> None:
    crash = dict(kind='exception', target='head', iteration=19)
    runner = make_runner(tmp_path, [WATCH], faults=[LOST, crash])
    with pytest.raises(RuntimeError, match='planted'):
        runner.train()
    (incident,) = read_incidents(runner)
    assert incident['kind'] == 'exception'
    assert incident['verdict'] == 'fatal'
    assert incident['first_bad']['phase'] == 'weights'
    assert incident['cause']['code'] == 'bad-weights'


def test_an_infinite_mask_is_healthy(tmp_path: Path) -> None:
    def mask(runner: Any) -> None:
        minus_inf = torch.full((2, 2), float('-inf')).triu(1)
        runner.model.register_buffer('causal', minus_inf)
        frozen = torch.nn.Parameter(minus_inf.clone(), requires_grad=False)
        runner.model.register_parameter('mask', frozen)

    runner = make_runner(
        tmp_path,
        [WATCH, dict(ACT, on_fatal='warn')],
        epochs=3,
        spy=mask,
        faults=[LOST],
        default_hooks=KEEP_ONE,
    )
    runner.train()
    assert log_of(runner).count('TRAINING STOPPED') == 0
    assert (tmp_path / 'last_finite_epoch_2.pth').is_file()


def test_two_runs_built_before_either_is_trained(tmp_path: Path) -> None:
    runners = [
        make_runner(tmp_path / name, [ACT], faults=[LOST]) for name in ('a', 'b')
    ]
    for runner in runners:
        runner.train()
        assert 'TRAINING STOPPED' in log_of(runner)


def test_somebody_elses_wrap_of_train_stays(tmp_path: Path) -> None:
    original = Runner.train
    calls = []
    runner = make_runner(tmp_path, [ACT], epochs=1)
    ours = Runner.train

    def theirs(self: Any) -> Any:
        calls.append(1)
        return ours(self)

    Runner.train = theirs
    try:
        runner.train()
        assert Runner.train is theirs
        runner.train()
        assert len(calls) == 2
    finally:
        Runner.train = getattr(original, '__wrapped__', original)


@pytest.mark.parametrize('hooks', [[WATCH], [WATCH, ACT], [dict(ACT, on_fatal='warn')]])
def test_the_report_begins_with_lost_weights_and_names_the_checkpoint(
    tmp_path: Path, hooks: list[Any]
) -> None:
    runner = make_runner(
        tmp_path, hooks, epochs=5, faults=[LOST], default_hooks=KEEP_ONE
    )
    runner.train()
    kept = tmp_path / 'last_finite_epoch_2.pth'
    report = build_report(read_run(guard_dir(runner)))
    assert report.sentences[0].startswith(
        'Weights are not finite since epoch 3, iteration 20'
    )
    assert f'Resume from {kept} (' in report.sentences[0]
    texts = [
        render_terminal(report, width=500),
        render_markdown(report),
        (guard_dir(runner) / 'report.html').read_text(),
    ]
    for text in texts:
        first = text.index('Weights are not finite since')
        assert first < text.index('incident', first)
        assert kept.name in text[first : first + 500]
    for text in texts:  # they were looked at: nobody is to check them again
        assert 'check that the weights are finite' not in text


@pytest.mark.parametrize('hooks', [[WATCH], [WATCH, ACT]])
def test_the_advice_of_an_incident_names_the_checkpoint(
    tmp_path: Path, hooks: list[Any]
) -> None:
    runner = make_runner(tmp_path, hooks, faults=[LOST], default_hooks=KEEP_ONE)
    runner.train()
    kept = str(tmp_path / 'last_finite_epoch_2.pth')
    incidents = read_incidents(runner)
    assert [i['verdict'] for i in incidents] == ['fatal'] * len(incidents)
    for incident in incidents:
        assert kept in incident['advice'][0]['text']
        assert incident['weights_lost']['checkpoint'] == kept
        assert incident['weights_lost']['iteration'] == 19
    assert len({i['iteration'] for i in incidents}) == len(incidents)


def test_a_nan_gradient_that_is_only_watched_names_the_checkpoint(
    tmp_path: Path,
) -> None:
    # the step itself broke the weights: its own incident says what to do
    fault = dict(kind='grad_nan', target='head', iteration=19)
    runner = make_runner(tmp_path, [WATCH], faults=[fault], default_hooks=KEEP_ONE)
    runner.train()
    first = read_incidents(runner)[0]
    assert (first['kind'], first['verdict']) == ('nonfinite_gradient', 'fatal')
    assert 'last_finite_epoch_2.pth' in first['advice'][0]['text']


def test_a_crash_of_lost_weights_keeps_and_names_the_checkpoint(tmp_path: Path) -> None:
    crash = dict(kind='exception', target='head', iteration=19)
    runner = make_runner(
        tmp_path, [WATCH], faults=[LOST, crash], default_hooks=KEEP_ONE
    )
    with pytest.raises(RuntimeError, match='planted'):
        runner.train()
    (incident,) = read_incidents(runner)
    assert (tmp_path / 'last_finite_epoch_2.pth').is_file()
    assert 'last_finite_epoch_2.pth' in incident['advice'][0]['text']


def test_without_a_finite_checkpoint_none_is_named(tmp_path: Path) -> None:
    runner = make_runner(tmp_path, [ACT], faults=[dict(LOST, iteration=2)])
    runner.train()
    report = build_report(read_run(guard_dir(runner)))
    assert 'No checkpoint with finite weights is known.' in report.sentences[0]


@pytest.mark.parametrize('reason', ['weights', 'skips'])
def test_a_stop_names_its_incident(tmp_path: Path, reason: str) -> None:
    act, faults = ACT, [LOST]
    if reason == 'skips':
        act = dict(ACT, max_consecutive_skips=2)
        faults = [dict(kind='grad_nan', target='head', iteration=i) for i in (5, 6)]
    runner = make_runner(tmp_path, [WATCH, act], faults=faults)
    runner.train()
    (line,) = [text for text in log_of(runner).splitlines() if 'STOPPED' in text]
    folder = Path(line.rpartition('; see ')[2])
    assert (folder / 'incident.json').is_file()
    assert folder.name == str(runner.iter)
