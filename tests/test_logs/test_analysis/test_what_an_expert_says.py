"""Cases in which a plain rule misleads: what an expert would say of each."""

from __future__ import annotations

import pytest

from mmgradguard.core.log_analysis import LogAnalysis
from mmgradguard.core.types import Verdict
from mmgradguard.logs.analysis.analyze import analyze_table
from tests.log_tables import INF, NAN, falling, healthy, make_table, noisy


def reasons(result: LogAnalysis) -> list[str]:
    return [note.code for note in result.reasons]


def scale(columns: dict[str, list[float]], factors: list[float], norm: bool) -> None:
    """Multiply the last rows of every loss, and of the norm."""
    names = ['loss', 'loss_cls', 'loss_bbox', *(['grad_norm'] if norm else [])]
    for name in names:
        for row, factor in enumerate(factors, len(columns[name]) - len(factors)):
            columns[name][row] *= factor


@pytest.mark.parametrize('reason', ['resume', 'experiment'])
def test_nan_that_a_resume_ended_did_not_come_back_by_itself(reason: str) -> None:
    columns = healthy(100)
    for name in ('grad_norm', 'loss', 'loss_cls', 'loss_bbox'):
        columns[name][60:70] = [NAN] * 10
    table = make_table(columns, sections=[(70, reason)])
    result = analyze_table(table)
    (event,) = result.events
    assert (event.kind, event.line, event.last_line) == ('nan_sticks', 61, 70)
    assert event.ended_by_resume is (reason == 'resume')
    assert result.rows_lost == 10
    assert result.verdict is (
        Verdict.SUSPICIOUS if reason == 'resume' else Verdict.FATAL
    )


@pytest.mark.parametrize('end', [0.0, 0.05])
def test_a_term_that_is_led_to_a_constant_is_no_mask(end: float) -> None:
    columns = healthy(100)
    ramp = [end + (0.4 - end) * max(0.0, 1 - row / 40) for row in range(100)]
    columns['loss_aux'] = ramp
    columns['loss'] = [a + b for a, b in zip(columns['loss'], ramp)]
    assert analyze_table(make_table(columns)).events == []


def test_harder_data_from_an_epoch_on_is_not_fatal() -> None:
    columns = healthy(120)
    scale(columns, [4.5 / (1 + 0.03 * row) for row in range(34)], norm=False)
    result = analyze_table(make_table(columns, epoch_rows=86))
    assert result.verdict is Verdict.SUSPICIOUS
    assert 'reason.diverged' not in reasons(result)


@pytest.mark.parametrize('bad', [NAN, INF])
def test_a_norm_that_is_never_finite_while_the_loss_falls(bad: float) -> None:
    columns = healthy(100)
    columns['grad_norm'] = [bad] * 100
    result = analyze_table(make_table(columns))
    assert result.verdict is Verdict.SUSPICIOUS
    assert reasons(result) == ['reason.norm_nan_only']


def test_a_loss_that_creeps_up_is_not_healthy() -> None:
    columns = healthy(160)
    scale(columns, [1 + 2.2 * row / 80 for row in range(80)], norm=False)
    result = analyze_table(make_table(columns))
    assert result.verdict is not Verdict.HEALTHY
    assert result.events[0].kind == 'finite_divergence'


def test_an_event_compares_a_value_with_its_own_usual_one() -> None:
    columns = healthy(100)
    scale(columns, [6.0] * 30, norm=False)
    (event,) = analyze_table(make_table(columns)).events
    assert event.value_of in ('loss', 'loss_cls', 'loss_bbox')
    usual = columns[event.value_of][40:68]
    assert min(usual) <= event.typical <= max(usual)


def test_a_negative_iou_loss_is_named() -> None:
    columns = healthy(80)
    columns['loss_iou'] = [*noisy([0.5] * 50), *noisy([-0.3] * 30)]
    result = analyze_table(make_table(columns))
    (event,) = result.events
    assert event.term == event.value_of == 'loss_iou'
    assert reasons(result) == ['reason.impossible']
    assert result.verdict is Verdict.FATAL


def test_one_term_of_nan_under_a_finite_total() -> None:
    columns = healthy(100)
    columns['loss_aux'] = [0.2] * 60 + [NAN] * 40
    result = analyze_table(make_table(columns))
    assert reasons(result) == ['reason.term_nan_only']
    assert result.events[0].value_of == 'loss_aux'


def test_a_metric_of_zero_for_many_epochs_is_not_learning() -> None:
    table = make_table(healthy(120), validations=[0.0] * 6)
    assert [e.kind for e in analyze_table(table).events] == ['not_learning']
    table = make_table(healthy(120), validations=[0.0] * 3)
    assert analyze_table(table).events == []  # transformers begin like this


def test_a_metric_that_collapsed_is_not_learning() -> None:
    table = make_table(healthy(120), validations=[0.2, 0.25, 0.3, 0.0, 0.0])
    for number, validation in enumerate(table.validations):
        validation.after_row = 20 * (number + 1) - 1
    (event,) = analyze_table(table).events
    assert (event.kind, event.line) == ('not_learning', 61)


def test_boxes_that_are_never_learned_from() -> None:
    columns = healthy(120)
    columns['loss_bbox'] = [0.0] * 120
    columns['loss'] = columns['loss_cls']
    result = analyze_table(make_table(columns))
    assert [event.kind for event in result.events] == ['not_learning']


def test_nan_in_every_second_row_is_told_once() -> None:
    num_rows = 6000
    columns = {'loss': noisy(falling(num_rows)), 'lr': [1e-4] * num_rows}
    columns['loss'][::2] = [NAN] * (num_rows // 2)
    result = analyze_table(make_table(columns, epoch_rows=num_rows))
    assert len(result.events) == 1


@pytest.mark.parametrize('bad', [NAN, INF])
@pytest.mark.parametrize('num', [1, 2])
def test_a_norm_that_is_bad_on_the_last_rows_is_undecided(bad: float, num: int) -> None:
    columns = healthy(100)
    columns['grad_norm'][-num:] = [bad] * num
    result = analyze_table(make_table(columns))
    assert result.verdict is Verdict.SUSPICIOUS
    assert not result.events[0].recovered
    assert result.would_decide


def test_a_loss_that_jumps_on_the_last_row_is_not_in_its_band() -> None:
    columns = healthy(100)
    for name in ('loss', 'loss_cls', 'grad_norm'):
        columns[name][-1] *= 1e6
    result = analyze_table(make_table(columns))
    assert result.verdict is Verdict.SUSPICIOUS
    assert 'reason.norm_only' not in reasons(result)


def test_a_constant_beside_a_nan_is_named() -> None:
    columns = healthy(100)
    columns['loss_cls'][59] *= 2
    columns['loss_cls'][60] *= 12
    columns['loss_cls'][61:] = [21.8341] * 39
    for name in ('loss', 'loss_bbox'):
        columns[name][60:] = [NAN] * 40
    result = analyze_table(make_table(columns))
    assert (result.events[-1].term, result.events[-1].value_of) == ('loss_cls', 'loss')
    assert 'reason.mask_beside' in reasons(result)


def test_a_log_that_stops_within_an_epoch_says_so() -> None:
    table = make_table(healthy(20))
    table.epoch_lengths[-1] = 3000
    codes = [note.code for note in analyze_table(table).unknowns]
    assert 'unknown.ends_early' in codes
    table.epoch_lengths[-1] = table.iterations[-1] + 49
    codes = [note.code for note in analyze_table(table).unknowns]
    assert 'unknown.ends_early' not in codes


def test_few_rows_prove_nothing() -> None:
    assert reasons(analyze_table(make_table(healthy(1)))) == ['reason.few_rows']
