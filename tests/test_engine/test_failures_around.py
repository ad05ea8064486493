"""What a disk, a host or our own code does wrong: the run goes on, and says so."""

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
from toy import ToyModel, guard_dir, make_runner, read_incidents, read_steps, weights

from mmgradguard.incident import module_norms
from mmgradguard.incident import monitor as monitor_module

WATCH = dict(type='GradAnomalyHook', interval=5)
ACT = dict(type='AdaptiveClipHook', on_exception='skip')
NAN = dict(kind='grad_nan', target='head', iteration=3)


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
