"""`GradAnomalyHook` records and explains; the training stays as it was."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from mmengine.hooks import Hook
from mmengine.logging import MessageHub
from mmengine.optim import OptimWrapper
from toy import guard_dir, make_runner, read_incidents, read_steps, weights

WATCH = dict(type='mmgradguard.GradAnomalyHook', interval=5)
SGD = dict(type='SGD', lr=1e-2, momentum=0.9)
WRAPPERS = {
    'clipped': dict(type='OptimWrapper', optimizer=SGD, clip_grad=dict(max_norm=0.5)),
    'unclipped': dict(type='OptimWrapper', optimizer=dict(type='AdamW', lr=1e-3)),
    'by value': dict(
        type='OptimWrapper', optimizer=SGD, clip_grad=dict(type='value', clip_value=0.1)
    ),
    'accumulating': dict(
        type='OptimWrapper',
        optimizer=SGD,
        clip_grad=dict(max_norm=0.5),
        accumulative_counts=4,
    ),
    'grouped': dict(
        type='OptimWrapper',
        optimizer=dict(type='AdamW', lr=1e-3),
        clip_grad=dict(max_norm=0.5),
        paramwise_cfg=dict(custom_keys={'backbone': dict(lr_mult=0.1)}),
    ),
}


@pytest.mark.parametrize('name', WRAPPERS)
def test_watching_changes_no_bit(tmp_path: Path, name: str) -> None:
    states = []
    for folder, hooks in (('plain', []), ('watched', [WATCH])):
        runner = make_runner(tmp_path / folder, hooks, optim_wrapper=WRAPPERS[name])
        runner.train()
        states.append((weights(runner), torch.get_rng_state()))
    (plain, plain_rng), (watched, watched_rng) = states
    assert all(torch.equal(plain[key], watched[key]) for key in plain)
    assert torch.equal(plain_rng, watched_rng)


def test_watching_changes_no_bit_of_a_scheduled_run_by_iteration(
    tmp_path: Path,
) -> None:
    schedule = [
        dict(type='LinearLR', start_factor=0.1, by_epoch=False, end=6),
        dict(type='MultiStepLR', by_epoch=False, milestones=[8]),
    ]
    loop = dict(type='IterBasedTrainLoop', max_iters=12)
    rows = []
    for folder, hooks in (('plain', []), ('watched', [WATCH])):
        runner = make_runner(
            tmp_path / folder, hooks, train_cfg=dict(loop), param_scheduler=schedule
        )
        runner.train()
        rows.append((weights(runner), runner.optim_wrapper.get_lr()['lr']))
    (plain, plain_lr), (watched, watched_lr) = rows
    assert all(torch.equal(plain[key], watched[key]) for key in plain)
    assert plain_lr == watched_lr == [pytest.approx(1e-3)]


def test_every_seam_is_undone(tmp_path: Path) -> None:
    schedule = [dict(type='LinearLR', start_factor=0.1, by_epoch=False, end=6)]
    found = {}

    def look(runner: Any) -> None:
        found['step'] = vars(runner.optim_wrapper).get('step')

    runner = make_runner(tmp_path, [WATCH], param_scheduler=schedule, spy=look)
    runner.train()
    assert found['step'] is not None  # the schedulers' counter
    assert vars(runner.optim_wrapper).get('step') is found['step']
    assert 'train_step' not in vars(runner.model)
    assert not runner.model._forward_pre_hooks


def test_one_line_per_step_with_the_norm_that_mmengine_computes(tmp_path: Path) -> None:
    runner = make_runner(tmp_path, [WATCH], epochs=2)
    runner.train()
    rows = read_steps(runner)
    assert [row['step'] for row in rows] == list(range(16))
    assert [row['epoch'] for row in rows] == [0] * 8 + [1] * 8
    history, _ = runner.message_hub.get_scalar('train/grad_norm').data
    assert [row['total_norm'] for row in rows] == history.tolist()
    assert all(row['max_norm'] == 1.0 and row['clip_coef'] <= 1 for row in rows)
    assert [i for i, row in enumerate(rows) if 'module_norms' in row] == [0, 5, 10, 15]
    norms = rows[0]['module_norms']
    assert set(norms) == {'backbone.0', 'backbone.1', 'head'}
    total = sum(value**2 for value in norms.values()) ** 0.5
    assert total == pytest.approx(rows[0]['total_norm'], rel=1e-6)
    assert set(rows[0]['losses']) == {'loss', 'loss_a', 'd0.loss_b'}


def test_a_row_of_an_accumulation_holds_the_mean_of_its_losses(tmp_path: Path) -> None:
    wrapper = dict(WRAPPERS['accumulating'])
    runner = make_runner(tmp_path, [WATCH], epochs=1, optim_wrapper=wrapper)
    runner.train()
    rows = read_steps(runner)
    history, _ = runner.message_hub.get_scalar('train/loss').data
    means = [history[:4].mean(), history[4:].mean()]
    assert [row['losses']['loss'] for row in rows] == pytest.approx(means, rel=1e-5)
    assert [row['iteration'] for row in rows] == [3, 7]


def test_module_groups_by_regex(tmp_path: Path) -> None:
    hook = dict(WATCH, module_groups=['backbone', 'head'])
    runner = make_runner(tmp_path, [hook], epochs=1)
    runner.train()
    assert set(read_steps(runner)[0]['module_norms']) == {'backbone', 'head'}


def test_nan_gradients_leave_an_incident_that_says_what_followed(
    tmp_path: Path,
) -> None:
    fault = dict(kind='grad_nan', iteration=9, target='head')
    runner = make_runner(tmp_path, [WATCH], faults=[fault])
    runner.train()
    (incident,) = read_incidents(runner)
    assert incident['kind'] == 'nonfinite_gradient'
    assert (incident['iteration'], incident['epoch'], incident['step']) == (9, 1, 9)
    assert incident['action'] == 'none'
    assert incident['verdict'] == 'fatal'  # mmengine's clip made every weight NaN
    assert incident['first_bad']['phase'] == 'backward'
    assert incident['first_bad']['module'] == 'head'
    worst = incident['params'][0]
    assert (worst['name'], worst['num_nan'], worst['num_inf']) == ('head.bias', 1, 0)
    assert incident['params'][1]['shape'] == [1, 8]
    assert incident['params'][1]['num_nan'] == 1
    assert incident['params'][1]['norm'] > 0  # of the finite part
    assert {term['name'] for term in incident['loss_terms']} == {'loss_a', 'd0.loss_b'}
    assert len(incident['samples']) == 4
    assert all(s['img_path'] == f'{s["img_id"]}.png' for s in incident['samples'])


def test_a_nan_in_the_ground_truth_names_the_image(tmp_path: Path) -> None:
    def spoil(runner: Any) -> None:
        runner.train_dataloader.dataset.y[13] = float('nan')

    runner = make_runner(tmp_path, [WATCH], epochs=1, spy=spoil)
    runner.train()
    incident = read_incidents(runner)[0]
    assert incident['kind'] == 'nonfinite_target'
    assert [s['img_id'] for s in incident['samples'] if s['culprit']] == [13]
    assert incident['first_bad']['phase'] == 'target'
    assert incident['cause']['code'] == 'bad-target'
    assert any('13' in item['text'] for item in incident['advice'])


def test_a_finite_spike_is_found_in_its_module(tmp_path: Path) -> None:
    fault = dict(kind='grad_spike', iteration=20, target='backbone.0', factor=1e4)
    runner = make_runner(tmp_path, [WATCH], faults=[fault])
    runner.train()
    (incident,) = read_incidents(runner)
    assert incident['kind'] == 'grad_spike'
    assert incident['action'] == 'clipped'  # by mmengine's own max_norm
    assert incident['first_bad']['module'] == 'backbone.0'
    row = read_steps(runner)[20]
    assert row['total_norm'] > 1e4
    assert 'module_norms' in row


def test_a_wider_window_does_not_hide_the_step(tmp_path: Path) -> None:
    # mmengine prints the mean of the last entries; the maximum is what matters
    fault = dict(kind='grad_spike', iteration=21, target='head', factor=1e4)
    runner = make_runner(tmp_path, [WATCH], faults=[fault])
    runner.train()
    history, _ = runner.message_hub.get_scalar('train/grad_guard/norm_max').data
    assert max(history) == read_steps(runner)[21]['total_norm']


def test_exceptions_leave_an_incident_and_are_raised(tmp_path: Path) -> None:
    fault = dict(kind='exception', iteration=5, target='head')
    runner = make_runner(tmp_path, [WATCH], faults=[fault])
    with pytest.raises(RuntimeError, match='planted by FaultInjectionHook'):
        runner.train()
    (incident,) = read_incidents(runner)
    assert (incident['kind'], incident['action']) == ('exception', 'raised')
    assert incident['exception']['type'] == 'RuntimeError'
    assert (guard_dir(runner) / 'report.html').is_file()
    assert 'train_step' not in vars(runner.model)


def test_watching_warns_at_every_log_line_once_weights_are_lost(tmp_path: Path) -> None:
    fault = dict(kind='grad_nan', iteration=2, target='head')
    runner = make_runner(tmp_path, [WATCH], epochs=2, faults=[fault])
    runner.train()
    log = (guard_dir(runner).parent / f'{runner.timestamp}.log').read_text()
    assert log.count('EVERY STEP FROM HERE ON IS WASTED') == 4
    assert len(read_incidents(runner)) == 1  # the same trouble is not told again


@pytest.mark.parametrize('backend', ['LocalVisBackend', 'TensorboardVisBackend'])
def test_module_norms_reach_the_vis_backends(tmp_path: Path, backend: str) -> None:
    visualizer = dict(type='Visualizer', vis_backends=[dict(type=backend)])
    runner = make_runner(tmp_path, [WATCH], epochs=1, visualizer=visualizer)
    runner.train()
    vis = guard_dir(runner).parent / 'vis_data'
    if backend == 'LocalVisBackend':
        rows = [json.loads(line) for line in (vis / 'scalars.json').open()]
        found = {key for row in rows for key in row}
    else:
        from tensorboard.backend.event_processing.event_accumulator import (
            EventAccumulator,
        )

        events = EventAccumulator(str(vis))
        events.Reload()
        found = set(events.Tags()['scalars'])
    assert {
        f'grad_guard_norm/{n}' for n in ('backbone.0', 'backbone.1', 'head')
    } <= found
    assert any(key.endswith('grad_guard/norm_max') for key in found)
    log = (guard_dir(runner).parent / f'{runner.timestamp}.log').read_text()
    assert 'grad_guard_norm' not in log  # not printed
    printed = [line for line in log.splitlines() if 'Epoch(train)' in line]
    assert printed
    assert all(line.count('grad_guard/') <= 8 for line in printed)


def test_the_step_count_goes_on_over_a_resume(tmp_path: Path) -> None:
    first = make_runner(tmp_path, [WATCH], epochs=1)
    first.train()
    second = make_runner(tmp_path, [WATCH], epochs=2, resume=True)
    second.train()
    rows = read_steps(second)[-8:]  # both may have begun within one second
    assert [row['step'] for row in rows] == list(range(8, 16))
    assert rows[0]['iteration'] == 8


def test_starting_from_weights_counts_from_zero(tmp_path: Path) -> None:
    first = make_runner(tmp_path / 'a', [WATCH], epochs=1)
    first.train()
    checkpoint = str(tmp_path / 'a' / 'epoch_1.pth')
    second = make_runner(tmp_path / 'b', [WATCH], epochs=1, load_from=checkpoint)
    second.train()
    assert read_steps(second)[0]['step'] == 0


def test_incidents_are_capped(tmp_path: Path) -> None:
    faults = [
        dict(kind='grad_spike', iteration=i, target='head', factor=1e4)
        for i in (17, 19, 21)
    ]
    hook = dict(WATCH, max_incidents=2)
    runner = make_runner(tmp_path, [hook], faults=faults)
    runner.train()
    assert [i['iteration'] for i in read_incidents(runner)] == [17, 19]


def test_the_bundle_is_data(tmp_path: Path) -> None:
    fault = dict(kind='grad_nan', iteration=2, target='head')
    runner = make_runner(tmp_path, [WATCH], epochs=1, faults=[fault])
    runner.train()
    bundle = guard_dir(runner) / 'incidents' / '2' / 'bundle'
    batch = torch.load(bundle / 'batch.pt', weights_only=True)['batch']
    assert batch['inputs'].shape == (4, 4)
    assert [s['img_id'] for s in batch['data_samples']] == [
        s['img_id'] for s in read_incidents(runner)[0]['samples']
    ]
    rng = torch.load(bundle / 'rng.pt', weights_only=True)['rng']
    assert {'python', 'torch', 'numpy'} <= set(rng)


def test_trace_and_bundle_can_be_switched_off(tmp_path: Path) -> None:
    fault = dict(kind='grad_nan', iteration=2, target='head')
    hook = dict(WATCH, trace=False, bundle=False)
    runner = make_runner(tmp_path, [hook], epochs=1, faults=[fault])
    runner.train()
    (incident,) = read_incidents(runner)
    assert incident['params'] == []
    assert incident['first_bad'] is None
    assert not (guard_dir(runner) / 'incidents' / '2' / 'bundle').exists()


def test_the_message_hub_of_the_next_run_is_clean(tmp_path: Path) -> None:
    runner = make_runner(tmp_path, [WATCH], epochs=1)
    runner.train()
    keys = [k for k in MessageHub.get_current_instance().log_scalars if 'guard' in k]
    assert 0 < len(keys) <= 8
    assert not any(word in key for key in keys for word in ('loss', 'time'))


def test_copies_made_in_mid_training_are_free_of_us(tmp_path: Path) -> None:
    copies = []

    class Copies(Hook):
        def after_train_iter(self, runner: Any, *_: Any, **__: Any) -> None:
            if runner.iter == 3:
                torch.save(runner.model, tmp_path / 'model.pt')
                loaded = torch.load(tmp_path / 'model.pt', weights_only=False)
                copies.extend([copy.deepcopy(runner.model), loaded])

    act = dict(type='AdaptiveClipHook')
    runner = make_runner(tmp_path, [WATCH, act, Copies()], epochs=1)
    runner.train()
    for model in copies:
        assert model.train_step.__self__ is model
        before = weights(runner)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        data = next(iter(runner.train_dataloader))
        model.train_step(data, OptimWrapper(optimizer))
        assert all(torch.equal(v, before[k]) for k, v in weights(runner).items())


def test_the_others_of_a_window_are_the_steps_without_incident(tmp_path: Path) -> None:
    spike = dict(kind='grad_spike', iteration=21, target='head', factor=1e4)
    hooks = [WATCH, dict(type='AdaptiveClipHook')]
    runner = make_runner(tmp_path, hooks, faults=[spike])
    runner.train()
    rows = [row for row in read_steps(runner) if 20 <= row['iteration'] < 24]
    usual = [row['total_norm'] for row in rows if row['iteration'] != 21]
    (line,) = [
        text for text in log_lines(runner) if 'grad_norm over the others' in text
    ]
    told = float(line.rpartition(' ')[2])
    assert told == pytest.approx(sum(usual) / 3, rel=1e-3)
    assert rows[1]['total_norm'] > 100 * told


def test_patterns_that_match_nothing_are_told_once(tmp_path: Path) -> None:
    hooks = [
        dict(WATCH, module_groups=['head', 'neck']),
        dict(type='AdaptiveClipHook', clip_groups=[('encoder', 1.0), ('head', 2.0)]),
    ]
    runner = make_runner(tmp_path, hooks, epochs=1)
    runner.train()
    runner.train_loop._max_epochs = 2
    runner.train()
    log = '\n'.join(log_lines(runner))
    assert log.count("`module_groups`: no parameter matches 'neck'") == 1
    assert log.count("`clip_groups`: no parameter matches 'encoder'") == 1
    assert log.count('no parameter matches') == 2


def log_lines(runner: Any) -> list[str]:
    path = guard_dir(runner).parent / f'{runner.timestamp}.log'
    return path.read_text().splitlines()
