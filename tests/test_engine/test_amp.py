"""fp16 with a loss scaler, and bf16, on a CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from toy import guard_dir, make_runner, read_incidents, read_steps, weights

from mmgradguard.ops.loss_scale import LossScale

AMP = dict(
    type='AdaptiveClipAmpOptimWrapper',
    optimizer=dict(type='AdamW', lr=1e-2),
    clip_grad=dict(max_norm=1.0),
)
WATCH = dict(type='GradAnomalyHook')


def run(tmp_path: Path, *, faults: Any = None, **wrapper: Any) -> Any:
    runner = make_runner(
        tmp_path, [WATCH], optim_wrapper={**AMP, **wrapper}, faults=faults
    )
    runner.train()
    return runner


def test_norms_are_those_of_unscaled_gradients(tmp_path: Path) -> None:
    norms = {}
    for scale in (8.0, 512.0):
        runner = run(tmp_path / str(scale), loss_scale=scale, dtype='float16')
        norms[scale] = [row['total_norm'] for row in read_steps(runner)][:3]
        assert all(row['loss_scale'] == scale for row in read_steps(runner))
    assert norms[8.0] == pytest.approx(norms[512.0], rel=0.05)


def test_a_search_of_the_scale_is_harmless(tmp_path: Path) -> None:
    runner = run(tmp_path, loss_scale=dict(init_scale=2.0**24), dtype='float16')
    rows = read_steps(runner)
    assert rows[0]['skipped'] == 'scaler'
    assert rows[0]['nonfinite_params'] > 0
    scales = [row['loss_scale'] for row in rows]
    skipped = [row['skipped'] for row in rows].count('scaler')
    assert scales[-1] == 2.0 ** (24 - skipped)
    assert not (guard_dir(runner) / 'incidents').exists()
    log = (guard_dir(runner).parent / f'{runner.timestamp}.log').read_text()
    assert f'{min(skipped, 4)} of 4 steps skipped by the scaler, weights finite' in log


def test_the_search_does_not_count_as_skips_in_a_row(tmp_path: Path) -> None:
    runner = run(
        tmp_path,
        loss_scale=dict(init_scale=2.0**24),
        dtype='float16',
        max_consecutive_skips=1,
    )
    assert runner.iter == 24


def test_an_overflow_that_starts_in_the_forward_is_no_search(tmp_path: Path) -> None:
    fault = dict(kind='forward_nan', target='backbone.0', iteration=12)
    runner = run(tmp_path, loss_scale=64.0, dtype='float16', faults=[fault])
    assert read_steps(runner)[12]['skipped'] == 'nonfinite'
    (incident,) = read_incidents(runner)
    assert incident['kind'] == 'nonfinite_loss'
    assert incident['action'] == 'skipped'


def test_a_static_scale_searches_nothing(tmp_path: Path) -> None:
    fault = dict(kind='grad_inf', target='head', iteration=12)
    runner = run(tmp_path, loss_scale=512.0, dtype='float16', faults=[fault])
    assert read_steps(runner)[12]['skipped'] == 'nonfinite'
    (incident,) = read_incidents(runner)
    assert incident['kind'] == 'nonfinite_gradient'


def test_an_overflow_at_scale_one_is_a_collapse(tmp_path: Path) -> None:
    fault = dict(kind='grad_inf', target='head', iteration=12)
    runner = run(tmp_path, loss_scale=1.0, dtype='float16', faults=[fault])
    assert read_steps(runner)[12]['skipped'] == 'nonfinite'
    (incident,) = read_incidents(runner)
    assert incident['kind'] == 'scale_collapse'


def test_an_exception_between_unscale_and_step_leaves_the_scaler_usable(
    tmp_path: Path,
) -> None:
    def break_once(runner: Any) -> None:
        optimizer = runner.optim_wrapper.optimizer
        host = optimizer.step

        def step(*args: Any, **kwargs: Any) -> Any:
            if runner.iter == 5:
                raise RuntimeError('in the optimizer')
            return host(*args, **kwargs)

        optimizer.step = step

    runner = make_runner(
        tmp_path,
        [dict(type='AdaptiveClipHook', on_exception='skip')],
        optim_wrapper={**AMP, 'loss_scale': 64.0},
        spy=break_once,
    )
    runner.train()
    assert [r['skipped'] for r in read_steps(runner)].count('exception') == 1
    assert runner.iter == 24


def test_bf16_needs_no_scaler(tmp_path: Path) -> None:
    runner = run(tmp_path, dtype='bfloat16')
    rows = read_steps(runner)
    assert all(row['loss_scale'] is None and row['skipped'] is None for row in rows)
    assert rows[-1]['losses']['loss'] < rows[0]['losses']['loss'] * 2


def test_the_scaler_survives_a_resume(tmp_path: Path) -> None:
    loss_scale = dict(init_scale=2.0**24)
    ends = []
    for epochs, resume in ((1, False), (2, True)):
        runner = make_runner(
            tmp_path,
            [WATCH],
            optim_wrapper={**AMP, 'loss_scale': loss_scale},
            epochs=epochs,
            resume=resume,
        )
        runner.train()
        ends.append(runner.optim_wrapper.loss_scaler.get_scale())
    assert ends[1] <= ends[0] < 2.0**24
    assert read_steps(runner)[-8]['loss_scale'] == ends[0]


@pytest.mark.parametrize(
    ('options', 'words'),
    [
        (dict(loss_scale=512), '`loss_scale` must be'),
        (dict(loss_scale='static'), '`loss_scale` must be'),
        (
            dict(loss_scale=dict(init=2.0)),
            '`loss_scale` has unknown keys init; GradScaler takes backoff_factor, '
            'enabled, growth_factor, growth_interval, init_scale',
        ),
        (dict(dtype='float8'), '`dtype` must be one of'),
        (dict(loss_scale_control='fast'), "one of None, 'adaptive', got 'fast'"),
        (dict(loss_scales=1.0), 'has no argument loss_scales'),
    ],
)
def test_wrong_arguments_name_key_and_value(
    options: dict[str, Any], words: str
) -> None:
    from mmgradguard import AdaptiveClipAmpOptimWrapper

    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], lr=0.1)
    with pytest.raises(ValueError, match=words):
        AdaptiveClipAmpOptimWrapper(optimizer=optimizer, **options)


def test_weights_stay_finite(tmp_path: Path) -> None:
    faults = [
        dict(kind=kind, target='head', iteration=i)
        for i, kind in enumerate(('grad_inf', 'grad_nan', 'forward_inf'))
    ]
    runner = run(tmp_path, faults=faults)
    assert all(torch.isfinite(v).all() for v in weights(runner).values())


def test_adaptive_control_searches_from_a_static_scale(tmp_path: Path) -> None:
    runner = run(
        tmp_path, loss_scale=2.0**24, dtype='float16', loss_scale_control='adaptive'
    )
    rows = read_steps(runner)
    overflows = [row['skipped'] for row in rows].count('scaler')
    assert 0 < overflows < 24
    assert rows[-1]['skipped'] is None
    assert rows[-1]['loss_scale'] == 2.0 ** (24 - overflows)
    scaler = runner.optim_wrapper.loss_scaler
    assert scaler.get_growth_interval() == min(200 * 2**overflows, 2000)
    saved = runner.optim_wrapper.state_dict()['loss_scaler']
    assert saved['growth_interval'] == scaler.get_growth_interval()


def test_adaptive_control_grows_faster_and_has_a_floor() -> None:
    param = torch.nn.Parameter(torch.ones(2))
    scaler = torch.amp.GradScaler('cpu', init_scale=1.0)
    scale = LossScale(scaler, torch.optim.SGD([param], lr=0.1), control='adaptive')
    for overflows in (False, True, True):
        scaler.scale(param.sum() * (float('inf') if overflows else 1.0)).backward()
        scale.unscale()
        scale.update(overflowed=overflows)
        param.grad = None
        assert scale.get() == 1.0
    for _ in range(800):
        scaler.scale(param.sum()).backward()
        scale.unscale()
        scale.update()
        param.grad = None
    assert scale.get() == 2.0  # after 200 * 2 * 2 steps; GradScaler needs 2000


def test_the_host_schedule_is_the_default(tmp_path: Path) -> None:
    runner = run(tmp_path, dtype='float16')
    assert runner.optim_wrapper.loss_scaler.get_growth_interval() == 2000
