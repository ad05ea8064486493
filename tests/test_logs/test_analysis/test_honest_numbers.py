"""Numbers of real trainings that a rule must get right; the rows are synthetic."""

from __future__ import annotations

import pytest

from mmgradguard.core.types import Verdict
from mmgradguard.logs.analysis.analyze import analyze_table
from tests.log_tables import falling, make_table, noisy


def run(norm: list[float], loss: list[float], **options: object):
    columns = {'lr': [1e-4] * len(norm), 'grad_norm': norm, 'loss': loss}
    return analyze_table(make_table({**columns, 'loss_cls': loss}, **options))


@pytest.mark.parametrize(
    ('low', 'middle', 'high'), [(67, 86, 101), (202, 225, 258), (186, 229, 298)]
)
def test_a_norm_hundreds_of_times_max_norm_is_healthy(
    low: float, middle: float, high: float
) -> None:
    sigma = (high / low - 1) / 4
    norm = noisy([float(middle)] * 400, sigma=sigma, seed=3)
    config = {'optim_wrapper': {'clip_grad': {'max_norm': 0.1}}}
    result = run(norm, noisy(falling(400, start=30, end=10)), config=config)
    assert result.verdict is Verdict.HEALTHY
    assert result.events == []
    assert 'normal.always_clipped' in [note.code for note in result.normality]


def test_one_norm_of_3_7_times_the_usual_is_healthy() -> None:
    norm = noisy([229.0] * 300, sigma=0.12)
    norm[200] = 845.0
    assert run(norm, noisy(falling(300))).events == []


def test_a_norm_that_rises_while_the_loss_falls_is_healthy() -> None:
    norm = noisy([56 + 41 * row / 500 for row in range(500)])
    result = run(norm, noisy(falling(500, start=30, end=10)))
    assert result.verdict is Verdict.HEALTHY
    assert 'normal.norm_rises' in [note.code for note in result.normality]


def test_a_norm_that_settles_higher_while_the_loss_falls_is_healthy() -> None:
    norm = noisy([10.0] * 200 + [70.0] * 300)
    result = run(norm, noisy(falling(500, start=30, end=10)))
    assert result.verdict in (Verdict.HEALTHY, Verdict.BENIGN)


@pytest.mark.parametrize('more_rows', [0, 40])
def test_the_divergence_whose_loss_follows_five_rows_later(more_rows: int) -> None:
    climb = [0.78, 1.25, 1.73, 2.65, 6.05, 18.0, 60.0, 140.0, 260.0, 390.0, 495.0]
    norm = noisy([0.55] * 60, sigma=0.03) + climb
    loss = [
        *noisy(falling(65, start=1.0, end=0.38), sigma=0.06),
        0.9,
        1.6,
        2.4,
        3.1,
        3.6,
        3.9,
    ]
    norm += noisy([495.0] * more_rows)
    loss += noisy([4.0] * more_rows)
    result = run(norm, loss)
    (event,) = result.events
    assert event.kind == 'finite_divergence'
    assert event.line in (61, 62)
    assert event.norm_led_rows is not None
    assert 3 <= event.norm_led_rows <= 6
    assert not event.recovered
    expected = Verdict.FATAL if more_rows else Verdict.SUSPICIOUS
    assert result.verdict is expected


def test_the_early_warning_with_a_normal_loss() -> None:
    norm = [*noisy([62.0] * 50), 90.0, 130.0, 210.0, 330.0, 480.0, 649.0]
    result = run(norm, noisy(falling(56)))
    assert result.verdict is Verdict.SUSPICIOUS
    assert 50 < result.events[0].line <= 56


def test_the_warning_before_a_nan_is_an_event_of_its_own() -> None:
    norm = noisy([62.0] * 50) + [3637.0] + [float('nan')] * 10
    loss = [*noisy(falling(51)), *[float('nan')] * 10]
    result = run(norm, loss)
    assert [event.kind for event in result.events] == ['spike', 'nan_sticks']
    assert result.events[0].leads_into == result.events[1].line == 52
    assert result.verdict is Verdict.FATAL


def test_a_printed_mean_says_what_one_step_was() -> None:
    norm = noisy([3.2] * 20)
    norm[12] = 31101415.5974
    loss = noisy(falling(20))
    loss[12] = 63.1
    (event,) = run(norm, loss).events
    assert event.kind == 'spike'
    assert event.value_printed == 31101415.5974
    assert event.value_single_step == pytest.approx(1.56e9, rel=0.01)


def test_one_spike_under_accumulation_is_one_event() -> None:
    # four iterations a step, a window of 50 steps: S/12, S/25, S/37, S/50 at the start
    usual, spike = 2.0, 1e5
    norm = noisy([usual] * 40, sigma=0.02)
    for row, entries in ((0, 12), (1, 25), (2, 37), (3, 50)):
        norm[row] = usual + spike / entries
    config = {
        'optim_wrapper': {'accumulative_counts': 4},
        'log_processor': {'window_size': 50},
    }
    (event,) = run(norm, noisy(falling(40)), config=config).events
    assert event.kind == 'spike'
    assert event.recovered
    assert event.num_rows == 4
    assert event.value_single_step == pytest.approx(spike, rel=0.01)


def test_one_spike_in_a_window_longer_than_the_interval_is_one_event() -> None:
    norm = noisy([2.0] * 60, sigma=0.02)
    loss = noisy(falling(60), sigma=0.02)
    for row in range(30, 35):
        norm[row] += 1e6 / 50
        loss[row] += 400 / 50
    config = {'log_processor': {'window_size': 50}}
    (event,) = run(norm, loss, config=config, interval=10).events
    assert event.kind == 'spike'
    assert event.value_single_step == pytest.approx(1e6, rel=0.01)
