"""Synthetic rows average as the frameworks do: against the real one, and by hand."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest
from synthetic_logs import Options
from synthetic_logs.averaging import print_values, rows_of
from synthetic_logs.layouts import LAYOUTS
from synthetic_logs.series import Steps


def options(**changes: object) -> Options:
    values = {
        'seed': 0,
        'kind': 'healthy',
        'format': 'mmengine_epoch_text',
        'layout': 'two_stage',
        'interval': 5,
        'window': 7,
        'accumulation': 1,
        'num_rows': 30,
        'epoch_length': 27,
        'schedule': 'step',
        'warmup': 0,
        'noise': 1.0,
        'has_norm': True,
        'has_header': False,
        'is_fine_tune': False,
        'is_validated': False,
        'is_amp': False,
    }
    return Options(**{**values, **changes})


def random_steps(opts: Options) -> Steps:
    rng = random.Random(7)
    num = opts.num_iterations
    names = LAYOUTS[opts.layout].terms
    return Steps(
        terms={name: [rng.random() for _ in range(num)] for name in names},
        norms=[rng.random() for _ in range(num // opts.accumulation)],
        lrs=[0.1] * num,
        times=[rng.random() for _ in range(num)],
        extras={'acc': [rng.random() for _ in range(num)]},
        scales=[],
    )


def entries_of(opts: Options, steps: Steps, iteration: int) -> dict[str, float]:
    """Return what a training loop records in one iteration."""
    parts = {name: values[iteration] for name, values in steps.terms.items()}
    found = {'loss': sum(parts.values()), **parts, 'time': steps.times[iteration]}
    found['acc'] = steps.extras['acc'][iteration]
    if (iteration + 1) % opts.accumulation == 0:
        found['grad_norm'] = steps.norms[iteration // opts.accumulation]
    return found


@pytest.mark.parametrize('accumulation', [1, 3, 4])
@pytest.mark.parametrize('window', [2, 5, 40])
def test_rows_average_as_the_log_processor_does(window: int, accumulation: int) -> None:
    from mmengine.logging import MessageHub
    from mmengine.runner import LogProcessor

    opts = options(window=window, accumulation=accumulation)
    steps, rows = random_steps(opts), rows_of(opts)
    printed = print_values(opts, steps, rows)
    hub = MessageHub(f'synthetic-{window}-{accumulation}')
    processor = LogProcessor(window_size=window)
    expected = []
    stops = {row.iteration for row in rows}
    for iteration in range(opts.num_iterations):
        for name, value in entries_of(opts, steps, iteration).items():
            hub.update_scalar(f'train/{name}', value)
        if iteration in stops:
            runner = SimpleNamespace(message_hub=hub)
            expected.append(dict(processor._collect_scalars([], runner, 'train')))
    assert len(expected) == opts.num_rows
    for row, wanted in zip(printed, expected):
        assert row == pytest.approx(wanted)


@pytest.mark.parametrize('accumulation', [1, 4])
def test_rows_average_as_the_log_buffer_of_mmcv_did(accumulation: int) -> None:
    opts = options(format='mmcv_epoch_text', window=5, accumulation=accumulation)
    steps, rows = random_steps(opts), rows_of(opts)
    printed = iter(print_values(opts, steps, rows))
    stops = {row.iteration for row in rows}
    history: dict[str, list[float]] = {}
    for iteration in range(opts.num_iterations):
        if iteration % opts.epoch_length == 0:
            history.clear()
        for name, value in entries_of(opts, steps, iteration).items():
            history.setdefault(name, []).append(value)
        if iteration in stops:
            wanted = {k: sum(v[-5:]) / len(v[-5:]) for k, v in history.items()}
            assert next(printed) == pytest.approx(wanted)
    assert next(printed, None) is None


def test_a_spike_under_accumulation_smears_as_measured_on_mmengine() -> None:
    opts = options(interval=50, window=50, accumulation=4, num_rows=6, epoch_length=400)
    steps = random_steps(opts)
    steps.norms[:] = [0.0] * len(steps.norms)
    steps.norms[5] = 600.0
    rows = print_values(opts, steps, rows_of(opts))
    norms = [row['grad_norm'] for row in rows]
    assert norms == pytest.approx([600 / 12, 600 / 25, 600 / 37, 600 / 50, 0, 0])
