"""Kinds of events, the term that moved first, and what they coincide with."""

from __future__ import annotations

import pytest

from mmgradguard.core.log_analysis import LogAnalysis
from mmgradguard.core.types import Verdict
from mmgradguard.logs.analysis.analyze import analyze_table
from tests.log_tables import INF, NAN, falling, healthy, make_table, noisy, plant


def kinds(result: LogAnalysis) -> list[str]:
    return [event.kind for event in result.events]


@pytest.mark.parametrize('num_rows', [1, 5, 25, 300])
@pytest.mark.parametrize('seed', range(5))
def test_a_healthy_run_has_no_events(num_rows: int, seed: int) -> None:
    result = analyze_table(make_table(healthy(num_rows, seed=seed)))
    assert result.verdict is Verdict.HEALTHY
    assert result.events == []
    assert (result.rows_lost, result.first_anomaly) == (0, None)


@pytest.mark.parametrize('row', [1, 5, 20, 98])
def test_a_spike_recovers_on_the_next_row(row: int) -> None:
    columns = plant(healthy(100), row, grad_norm=1e4, loss_bbox=60)
    result = analyze_table(make_table(columns))
    (event,) = result.events
    assert (event.kind, event.line, event.term) == ('spike', row + 1, 'loss_bbox')
    assert event.recovered
    assert event.recovered_line == row + 2
    assert result.verdict is Verdict.BENIGN
    assert result.rows_lost == 0


def test_a_spike_on_the_last_row_is_undecided() -> None:
    columns = plant(healthy(100), 99, grad_norm=1e4, loss_bbox=60)
    result = analyze_table(make_table(columns))
    assert result.verdict is Verdict.SUSPICIOUS
    assert not result.events[0].recovered
    assert result.would_decide


def test_a_spike_of_the_norm_alone_names_no_term() -> None:
    (event,) = analyze_table(make_table(plant(healthy(100), 50, grad_norm=1e3))).events
    assert (event.kind, event.term, event.value_of) == ('spike', None, 'grad_norm')


def test_without_a_norm_the_loss_tells() -> None:
    columns = plant(healthy(100), 50, grad_norm=1, loss_cls=80)
    del columns['grad_norm']
    result = analyze_table(make_table(columns))
    (event,) = result.events
    assert (event.kind, event.term, event.value_of) == ('spike', 'loss_cls', 'loss_cls')
    assert 'unknown.no_grad_norm' in [note.code for note in result.unknowns]


def test_spikes_with_hardly_a_row_between_are_a_burst() -> None:
    columns = healthy(100)
    for row in (50, 52, 53, 55):
        plant(columns, row, grad_norm=1e4, loss_cls=30)
    result = analyze_table(make_table(columns))
    (event,) = result.events
    assert (event.kind, event.line, event.last_line) == ('burst', 51, 56)
    assert event.recovered
    assert result.verdict is Verdict.BENIGN


def test_spikes_far_apart_are_events_of_their_own() -> None:
    columns = healthy(100)
    for row in (20, 50, 80):
        plant(columns, row, grad_norm=1e4, loss_cls=30)
    assert kinds(analyze_table(make_table(columns))) == ['spike'] * 3


@pytest.mark.parametrize('has_norm', [True, False])
def test_a_nan_that_sticks_is_fatal(has_norm: bool) -> None:
    columns = healthy(100)
    for name in ('grad_norm', 'loss', 'loss_cls', 'loss_bbox'):
        columns[name][60:] = [NAN] * 40
    if not has_norm:
        del columns['grad_norm']
    result = analyze_table(make_table(columns))
    (event,) = result.events
    assert (event.kind, event.line, event.iteration) == ('nan_sticks', 61, 61 * 50)
    assert event.term is None
    assert result.verdict is Verdict.FATAL
    assert result.rows_lost == 40
    assert result.hours_lost == pytest.approx(40 * 50 * 0.5 / 3600)
    assert 'unknown.first_term' in [note.code for note in result.unknowns]


def test_the_first_term_to_be_nan_is_named() -> None:
    columns = healthy(100)
    for name in ('loss', 'loss_bbox'):
        columns[name][60:] = [NAN] * 40
    columns['loss_cls'][61:] = [NAN] * 39
    (event,) = analyze_table(make_table(columns)).events
    assert (event.kind, event.term) == ('nan_sticks', 'loss_bbox')


def test_the_term_that_rose_before_all_turned_nan_is_named() -> None:
    columns = healthy(100)
    columns['loss_cls'][59] *= 3.5
    for name in ('loss', 'loss_cls', 'loss_bbox', 'grad_norm'):
        columns[name][60:] = [NAN] * 40
    event = analyze_table(make_table(columns)).events[-1]
    assert (event.kind, event.line, event.term) == ('nan_sticks', 61, 'loss_cls')


def test_one_nan_on_the_last_row_is_not_yet_fatal() -> None:
    columns = healthy(100)
    for name in ('grad_norm', 'loss', 'loss_cls', 'loss_bbox'):
        columns[name][99] = NAN
    result = analyze_table(make_table(columns))
    assert kinds(result) == ['nan_sticks']
    assert result.verdict is Verdict.SUSPICIOUS


@pytest.mark.parametrize('value', [0.0, 21.8341, 43.6682])
def test_a_mask_over_nan_is_fatal(value: float) -> None:
    columns = healthy(100)
    columns['loss_cls'][60:] = [value] * 40
    columns['loss_bbox'][60:] = [0.0] * 40
    columns['loss'][60:] = [value] * 40
    columns['grad_norm'][60:] = [NAN] * 40
    result = analyze_table(make_table(columns))
    (event,) = result.events
    assert (event.kind, event.line) == ('masked_nan', 61)
    assert event.value_printed == columns[event.term or 'loss'][60]
    assert result.verdict is Verdict.FATAL


@pytest.mark.parametrize(
    ('share', 'verdict'), [(0.4, Verdict.FATAL), (0.01, Verdict.SUSPICIOUS)]
)
def test_a_small_term_may_have_been_switched_off(
    share: float, verdict: Verdict
) -> None:
    columns = healthy(100)
    columns['loss_aux'] = [share * v for v in columns['loss_cls'][:60]] + [0.0] * 40
    columns['loss'] = [a + b for a, b in zip(columns['loss'], columns['loss_aux'])]
    result = analyze_table(make_table(columns))
    assert kinds(result) == ['masked_nan']
    assert result.verdict is verdict


@pytest.mark.parametrize('bad', [NAN, INF])
@pytest.mark.parametrize('rows', [[0], [0, 1, 2], [3, 40, 80]])
def test_skips_of_the_loss_scaler_are_harmless(bad: float, rows: list[int]) -> None:
    columns = healthy(100)
    for row in rows:
        columns['grad_norm'][row] = bad
    result = analyze_table(make_table(columns))
    assert set(kinds(result)) == {'amp_skip'}
    assert result.verdict is Verdict.BENIGN
    assert 'advice.nothing_amp' in [advice.note.code for advice in result.advice]


def test_in_fp32_an_infinite_norm_is_an_overflow() -> None:
    columns = healthy(100)
    columns['grad_norm'][50] = INF
    config = {'optim_wrapper': {'type': 'OptimWrapper'}}
    (event,) = analyze_table(make_table(columns, config=config)).events
    assert (event.kind, event.recovered) == ('norm_overflow', True)


def test_an_overflow_that_goes_on_with_its_losses() -> None:
    columns = healthy(60)
    for row in range(40, 60):
        columns['grad_norm'][row] = INF
        plant(columns, row, loss_bbox=1e8)
    result = analyze_table(make_table(columns))
    (event,) = result.events
    assert (event.kind, event.term) == ('norm_overflow', 'loss_bbox')
    assert result.verdict is Verdict.FATAL


def test_what_still_falls_at_the_end_is_undecided() -> None:
    columns = healthy(60)
    for row in range(50, 60):
        factor = 10 ** (11 - (row - 50))
        plant(columns, row, grad_norm=factor, loss_bbox=factor)
    result = analyze_table(make_table(columns))
    assert result.verdict is Verdict.SUSPICIOUS
    assert 'reason.still_falls' in [note.code for note in result.reasons]


def test_a_divergence_that_comes_back_is_benign() -> None:
    columns = healthy(100)
    for row in range(30, 55):
        plant(columns, row, grad_norm=40 + row % 3, loss_cls=5 + row % 4)
    result = analyze_table(make_table(columns))
    (event,) = result.events
    assert (event.kind, event.recovered) == ('finite_divergence', True)
    assert result.verdict is Verdict.BENIGN


def test_a_negative_iou_loss_has_diverged() -> None:
    columns = healthy(60)
    columns['loss_iou'] = noisy([0.5] * 50) + [-4.0] * 10
    result = analyze_table(make_table(columns))
    assert result.events[0].line == 51
    assert not result.events[0].recovered


def test_a_flat_loss_is_not_learning() -> None:
    columns = healthy(100)
    for name in ('loss', 'loss_cls', 'loss_bbox'):
        columns[name] = noisy([2.0] * 100, sigma=0.02)
    result = analyze_table(make_table(columns))
    assert kinds(result) == ['not_learning']
    assert result.verdict is Verdict.SUSPICIOUS


@pytest.mark.parametrize('excuse', ['metric', 'load_from', 'lr', 'late'])
def test_a_fine_tune_may_stay_flat(excuse: str) -> None:
    columns = healthy(100)
    for name in ('loss', 'loss_cls', 'loss_bbox'):
        columns[name] = noisy([2.0] * 100, sigma=0.02)
    if excuse == 'lr':
        columns['lr'] = [1e-6] * 100
    table = make_table(
        columns,
        validations=[0.41] if excuse == 'metric' else (),
        config={'load_from': 'a.pth'} if excuse == 'load_from' else None,
    )
    if excuse == 'late':
        table.epochs[0] = 7
    assert analyze_table(table).events == []


def test_a_zero_metric_convicts_a_flat_loss() -> None:
    columns = healthy(100)
    columns['loss'] = noisy([2.0] * 50 + [1.9] * 50, sigma=0.02)
    result = analyze_table(make_table(columns, validations=[0.0, 0.0]))
    assert kinds(result) == ['not_learning']


def test_a_term_that_some_rows_lack_is_no_nan() -> None:
    columns = healthy(100)
    columns['loss_mask'] = [0.5 if row % 3 else None for row in range(100)]
    assert analyze_table(make_table(columns)).events == []


def test_the_first_rows_of_a_model_that_knows_nothing_are_large() -> None:
    # a heatmap loss begins at hundreds, its norm at thousands; fp16 skips a step
    columns = healthy(60)
    columns['loss_heatmap'] = [836.0, 11.4, *noisy(falling(58))]
    columns['loss'] = [a + b for a, b in zip(columns['loss'], columns['loss_heatmap'])]
    columns['grad_norm'][:3] = [3874.0, 128.0, 30.0]
    assert analyze_table(make_table(columns)).events == []
    columns['grad_norm'][0] = NAN
    assert kinds(analyze_table(make_table(columns))) == ['amp_skip']


def test_a_new_loss_term_is_no_divergence() -> None:
    columns = healthy(100)
    columns['loss_mask'] = [None] * 50 + noisy([9.0] * 50)
    columns['loss'] = [
        v + (m or 0) for v, m in zip(columns['loss'], columns['loss_mask'])
    ]
    assert analyze_table(make_table(columns)).events == []


def test_a_log_without_a_total_is_read_by_its_terms() -> None:
    columns = plant(healthy(100), 50, grad_norm=1, loss_cls=80)
    del columns['loss'], columns['grad_norm']
    (event,) = analyze_table(make_table(columns)).events
    assert (event.kind, event.term) == ('spike', 'loss_cls')


@pytest.mark.parametrize(
    ('place', 'row'), [('warmup', 5), ('warmup_end', 10), ('lr_step', 60)]
)
def test_what_an_event_coincides_with(place: str, row: int) -> None:
    columns = plant(healthy(100), row, grad_norm=1e5, loss_cls=90)
    lr = [1e-5 * (i + 1) for i in range(10)] + [1e-4] * 50 + [1e-5] * 40
    columns['lr'] = lr
    (event,) = analyze_table(make_table(columns)).events
    assert place in event.coincides_with


def test_peak_border_and_resume() -> None:
    columns = healthy(100)
    columns['lr'] = [1e-4 * (1 + min(i, 100 - i) / 10) for i in range(100)]
    plant(columns, 50, grad_norm=1e5, loss_cls=90)
    table = make_table(columns, epoch_rows=25, sections=[(50, 'resume')])
    (event,) = analyze_table(table).events
    assert event.coincides_with == ['lr_peak', 'epoch_border', 'resume']


def test_two_experiments_in_one_file_do_not_mix() -> None:
    first, second = healthy(40), healthy(40, seed=5)
    for name in ('grad_norm', 'loss', 'loss_cls', 'loss_bbox'):
        first[name][30:] = [NAN] * 10
    columns = {name: first[name] + second[name] for name in first}
    table = make_table(columns, epoch_rows=40, sections=[(40, 'experiment')])
    result = analyze_table(table)
    (event,) = result.events
    assert (event.kind, event.last_line) == ('nan_sticks', 40)
    assert result.rows_lost == 10
    assert result.facts.num_experiments == 2


def test_falling_losses_of_many_scales_are_healthy() -> None:
    for scale in (1e-3, 1.0, 1e4):
        loss = noisy([scale * v for v in falling(200, start=20, end=1)])
        table = make_table({'loss': loss, 'loss_cls': loss})
        assert analyze_table(table).events == []
