"""A skipped step leaves everything as it was before its batch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from mmengine.hooks import Hook
from toy import guard_dir, make_runner, read_incidents, read_steps

OPTIMIZERS = {
    'SGD': dict(type='SGD', lr=1e-2, momentum=0.9, weight_decay=0.1),
    'AdamW': dict(type='AdamW', lr=1e-2, weight_decay=0.1),
    'AdamW fused': dict(type='AdamW', lr=1e-2, weight_decay=0.1, fused=True),
    'Adam amsgrad': dict(type='Adam', lr=1e-2, amsgrad=True),
    'RMSprop': dict(type='RMSprop', lr=1e-2, momentum=0.5),
    'Adagrad': dict(type='Adagrad', lr=1e-2, weight_decay=0.1),
}
FAULTS = {
    'NaN in the forward': dict(kind='forward_nan', target='backbone.0'),
    'Inf in a gradient': dict(kind='grad_inf', target='head'),
    'exception': dict(kind='exception', target='head'),
}
ACT = dict(type='AdaptiveClipHook', on_exception='skip')
AT = 10


class Snapshots(Hook):
    """Copies all state before an iteration and after it, all hooks done."""

    priority = 'VERY_HIGH'

    def __init__(self) -> None:
        self.at: dict[int, dict[str, Any]] = {}

    def before_train_iter(self, runner: Any, *_: Any, **__: Any) -> None:
        self.at[runner.iter] = snapshot(runner)


def snapshot(runner: Any) -> dict[str, Any]:
    model, wrapper = runner.model, runner.optim_wrapper
    state = {f'model.{k}': v.clone() for k, v in model.state_dict().items()}
    state['memory'] = None if model.memory is None else model.memory.clone()
    for i, slots in enumerate(wrapper.optimizer.state.values()):
        for key, value in slots.items():
            state[f'moment.{i}.{key}'] = torch.as_tensor(value).clone()
    for hook in runner.hooks:
        if hasattr(hook, 'ema_model'):
            for key, value in hook.ema_model.state_dict().items():
                state[f'ema.{key}'] = value.clone()
    guarded = wrapper.acting.guarded
    for g, group in enumerate(guarded.state_dict()['groups']):
        state.update({f'clip.{g}.{key}': value.clone() for key, value in group.items()})
    state['spikes'] = torch.tensor(guarded.spikes.state_dict()['values'])
    return state


def changed(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    assert before.keys() == after.keys()
    return {
        key
        for key, value in before.items()
        if (value is None) != (after[key] is None)
        or (value is not None and not torch.equal(value, after[key]))
    }


@pytest.mark.parametrize('fault', FAULTS)
@pytest.mark.parametrize('optimizer', OPTIMIZERS)
def test_all_state_is_bit_identical(tmp_path: Path, optimizer: str, fault: str) -> None:
    spy = Snapshots()
    policy = dict(type='PercentileClip', warmup=2, window=8)
    runner = make_runner(
        tmp_path,
        [dict(type='EMAHook'), dict(ACT, clip_policy=policy), spy],
        optim_wrapper=dict(
            type='OptimWrapper',
            optimizer=OPTIMIZERS[optimizer],
            clip_grad=dict(max_norm=1.0),
        ),
        epochs=2,
        faults=[dict(FAULTS[fault], iteration=AT)],
    )
    runner.train()
    assert changed(spy.at[AT], spy.at[AT + 1]) == set()
    # the comparison can fail: the step before moved weights, moments, buffers, EMA,
    # memory and statistics
    moved = changed(spy.at[AT - 1], spy.at[AT])
    for part in ('model.head.weight', 'model.backbone.1.running_mean', 'memory'):
        assert part in moved
    for part in ('moment.', 'ema.', 'clip.', 'spikes'):
        assert any(key.startswith(part) for key in moved)
    row = read_steps(runner)[AT]
    assert row['skipped'] == ('exception' if fault == 'exception' else 'nonfinite')
    assert row['clip_coef'] == 0
    (incident,) = read_incidents(runner)
    assert incident['action'] == 'skipped'
    assert incident['iteration'] == AT
    (line,) = (guard_dir(runner) / 'journal.jsonl').read_text().splitlines()
    entry = json.loads(line)
    assert set(entry) == {
        'schema_version', 'time', 'step', 'iteration', 'actor', 'knob', 'target', 'old',
        'new', 'evidence', 'mode', 'status', 'reverts',
    }  # fmt: skip
    assert (entry['step'], entry['knob'], entry['new']) == (AT, 'step', 'skipped')


@pytest.mark.parametrize('fault', FAULTS)
def test_an_accumulation_is_dropped_as_a_whole(tmp_path: Path, fault: str) -> None:
    spy = Snapshots()
    runner = make_runner(
        tmp_path,
        [ACT, spy],
        optim_wrapper=dict(
            type='OptimWrapper',
            optimizer=OPTIMIZERS['AdamW'],
            clip_grad=dict(max_norm=1.0),
            accumulative_counts=4,
        ),
        epochs=2,
        faults=[dict(FAULTS[fault], iteration=5)],
    )
    runner.train()
    # iterations 4 to 7 make one step
    assert changed(spy.at[4], spy.at[8]) == set()
    assert 'model.head.weight' in changed(spy.at[8], spy.at[12])
    rows = read_steps(runner)
    assert [row['iteration'] for row in rows] == [3, 7, 11, 15]
    assert rows[1]['skipped'] is not None


@pytest.mark.parametrize('update_buffers', [False, True])
@pytest.mark.parametrize('iteration', [4, 5, 7])
def test_an_average_stays_as_before_a_dropped_accumulation(
    tmp_path: Path, update_buffers: bool, iteration: int
) -> None:
    spy = Snapshots()
    wrapper = dict(
        type='OptimWrapper', optimizer=OPTIMIZERS['AdamW'], accumulative_counts=4
    )
    runner = make_runner(
        tmp_path,
        [dict(type='EMAHook', update_buffers=update_buffers), ACT, spy],
        optim_wrapper=wrapper,
        epochs=2,
        faults=[dict(FAULTS['NaN in the forward'], iteration=iteration)],
    )
    runner.train()
    assert changed(spy.at[4], spy.at[8]) == set()
    ema = {key for key in changed(spy.at[8], spy.at[12]) if key.startswith('ema.')}
    assert ema


def test_an_average_of_a_healthy_accumulation_is_the_hosts(tmp_path: Path) -> None:
    ends = []
    for name, hooks in (('a', []), ('b', [ACT])):
        runner = make_runner(
            tmp_path / name,
            [dict(type='EMAHook'), *hooks],
            optim_wrapper=dict(
                type='OptimWrapper',
                optimizer=OPTIMIZERS['AdamW'],
                accumulative_counts=4,
            ),
            epochs=2,
        )
        runner.train()
        ema = next(h.ema_model for h in runner.hooks if hasattr(h, 'ema_model'))
        ends.append(ema.state_dict())
    assert all(torch.equal(ends[0][key], ends[1][key]) for key in ends[0])


def test_an_exception_in_the_last_iteration_of_an_accumulation(tmp_path: Path) -> None:
    spy = Snapshots()
    runner = make_runner(
        tmp_path,
        [ACT, spy],
        optim_wrapper=dict(
            type='OptimWrapper', optimizer=OPTIMIZERS['AdamW'], accumulative_counts=4
        ),
        epochs=2,
        faults=[dict(kind='exception', target='head', iteration=7)],
    )
    runner.train()
    assert changed(spy.at[4], spy.at[8]) == set()
    assert [row['skipped'] for row in read_steps(runner)] == [
        None, 'exception', None, None,
    ]  # fmt: skip


def test_the_run_after_a_skip_is_the_run_without_that_batch(tmp_path: Path) -> None:
    """The next loss equals that of a run which never saw the bad batch."""

    def drop(runner: Any) -> None:
        host = runner.model.train_step

        def train_step(data: Any, optim_wrapper: Any) -> Any:
            if runner.iter == AT:
                optim_wrapper._inner_count += 1
                return {}
            return host(data, optim_wrapper=optim_wrapper)

        runner.model.train_step = train_step

    fault = dict(kind='forward_nan', target='backbone.0', iteration=AT)
    skipped = make_runner(tmp_path / 'a', [ACT], faults=[fault])
    skipped.train()
    without = make_runner(tmp_path / 'b', [ACT], spy=drop)
    without.train()
    by_iteration = {r['iteration']: r['losses']['loss'] for r in read_steps(skipped)}
    for row in read_steps(without):
        assert row['losses']['loss'] == by_iteration[row['iteration']]


def test_after_an_exception_hooks_see_the_last_good_losses(tmp_path: Path) -> None:
    seen = {}

    class Outputs(Hook):
        def after_train_iter(self, runner: Any, *_: Any, **given: Any) -> None:
            seen[runner.iter] = float(given['outputs']['loss'])

    faults = [
        dict(kind='forward_nan', target='backbone.0', iteration=4),
        dict(kind='exception', target='head', iteration=5),
    ]
    runner = make_runner(tmp_path, [ACT, Outputs()], epochs=1, faults=faults)
    runner.train()
    assert seen[4] != seen[4]  # what a skipped step printed stays as it is
    assert seen[5] == seen[3]  # and what mmdet's CheckInvalidLossHook needs is finite
    assert read_steps(runner)[5]['losses'] == {}


def test_spikes_are_skipped_only_if_asked(tmp_path: Path) -> None:
    fault = dict(kind='grad_spike', target='head', iteration=20, factor=1e5)
    for folder, wanted in (('a', None), ('b', 'spike')):
        spy = Snapshots()
        hook = dict(ACT, skip_spikes=wanted is not None)
        runner = make_runner(tmp_path / folder, [hook, spy], faults=[fault])
        runner.train()
        assert read_steps(runner)[20]['skipped'] == wanted
        assert (changed(spy.at[20], spy.at[21]) == set()) == (wanted is not None)


def test_nonfinite_steps_are_taken_if_asked(tmp_path: Path) -> None:
    fault = dict(kind='grad_nan', target='head', iteration=3)
    hook = dict(ACT, skip_nonfinite=False, on_fatal='warn')
    runner = make_runner(tmp_path, [hook], epochs=1, faults=[fault])
    runner.train()
    assert read_steps(runner)[3]['skipped'] is None
    assert not torch.isfinite(runner.model.head.weight).all()


def test_too_many_skips_in_a_row_stop_the_run_with_an_explanation(
    tmp_path: Path,
) -> None:
    faults = [dict(kind='grad_nan', target='head', iteration=i) for i in (5, 7, 8, 9)]
    hook = dict(ACT, max_consecutive_skips=3)
    runner = make_runner(tmp_path, [hook], faults=faults)
    runner.train()  # ends without an exception
    assert runner.iter == 9
    assert [r['skipped'] for r in read_steps(runner)[5:]] == [
        'nonfinite', None, 'nonfinite', 'nonfinite', 'nonfinite',
    ]  # fmt: skip
    log = (guard_dir(runner).parent / f'{runner.timestamp}.log').read_text()
    assert 'TRAINING STOPPED: 3 steps in a row were skipped' in log
    assert (guard_dir(runner) / 'report.html').is_file()
    assert torch.isfinite(runner.model.head.weight).all()


def test_skips_bring_no_warning_about_the_order_of_schedulers(tmp_path: Path) -> None:
    import warnings

    schedule = [dict(type='LinearLR', start_factor=0.1, by_epoch=False, end=6)]
    faults = [dict(kind=k, target='head', iteration=0) for k in ('grad_nan',)]
    faults.append(dict(kind='exception', target='head', iteration=1))
    with warnings.catch_warnings():
        warnings.filterwarnings('error', message='.*scheduler.step.*')
        runner = make_runner(
            tmp_path, [ACT], epochs=1, faults=faults, param_scheduler=schedule
        )
        runner.train()
    plain = make_runner(tmp_path / 'plain', epochs=1, param_scheduler=schedule)
    plain.train()
    assert runner.optim_wrapper.get_lr() == plain.optim_wrapper.get_lr()
