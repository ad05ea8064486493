"""The judge of the log analyser: what counts as right, and as a false alarm."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from synthetic_logs import Truth, generate
from synthetic_logs.judge import Score, judge
from synthetic_logs.tally import Tally


def event(kind: str, row: int, term: str | None = None) -> SimpleNamespace:
    return SimpleNamespace(kind=kind, first_row=row, term=term)


NAN = Truth(
    'nan_sticks',
    ('fatal',),
    onset_row=20,
    earliest_row=20,
    latest_row=20,
    warning_row=16,
    first_terms=('loss_cls',),
    recovered=False,
)
SPIKE = Truth(
    'spike', ('benign',), onset_row=9, earliest_row=9, latest_row=9, end_row=10
)


@pytest.mark.parametrize(
    ('truth', 'verdict', 'events', 'right'),
    [
        (NAN, 'fatal', [event('nan_sticks', 20, 'loss_cls')], 'kovt'),
        (
            NAN,
            'fatal',
            [event('spike', 17), event('nan_sticks', 20, 'loss_cls')],
            'kovt',
        ),
        (NAN, 'fatal', [event('spike', 3), event('nan_sticks', 20, 'loss_cls')], 'v'),
        (NAN, 'benign', [event('nan_sticks', 21, 'loss_bbox')], 'k'),
        (NAN, 'healthy', [], ''),
        (SPIKE, 'benign', [event('spike', 9)], 'kovt'),
        (SPIKE, 'benign', [event('spike', 9), event('spike', 30)], 'ovt'),
        (SPIKE, 'benign', [event('burst', 9, 'loss')], 'ov'),
        (Truth('healthy', ('healthy',)), 'healthy', [], 'kovt'),
        (Truth('healthy', ('healthy',)), 'benign', [event('spike', 4)], ''),
    ],
)
def test_judge(truth: Truth, verdict: str, events: list, right: str) -> None:
    score = judge(truth, SimpleNamespace(verdict=verdict, events=events))
    assert (score.kind, score.onset, score.verdict, score.first_term) == tuple(
        letter in right for letter in 'kovt'
    )
    assert score.is_right == (right == 'kovt')


def test_tally_counts_by_kind_and_names_the_seed_of_a_miss() -> None:
    tally = Tally()
    log = generate(11, 'spike', 20_000)
    tally.add(log, Score(True, True, True, True, 'benign: spike@9(None)'))
    tally.add(log, Score(True, False, True, True, 'benign: spike@8(None)'))
    assert tally.share('onset') == tally.share('is_right', 'spike') == 0.5
    assert tally.share('verdict') == 1
    assert 'spike' in tally.table()
    assert '50.0%' in tally.table()
    assert 'spike: 1 of 2 not all right' in tally.miss_table()
    assert 'seed 11' in tally.miss_table()
    assert 'wrong onset;' in tally.miss_table()
