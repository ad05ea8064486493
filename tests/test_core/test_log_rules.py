"""Rules on whole series: what they find, and what they must leave alone."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmgradguard.core.rules.drift import find_drifts
from mmgradguard.core.rules.mask import find_mask, is_focal_mask
from mmgradguard.core.rules.spike import SpikeRule
from tests.log_tables import NAN, noisy

values = st.floats(1e-3, 1e6, allow_nan=False)


@given(
    st.lists(values, min_size=1, max_size=200),
    st.lists(st.lists(values, min_size=1, max_size=40), min_size=1, max_size=5),
    st.sampled_from([1, 16]),
    st.sampled_from([8, 128]),
)
def test_skimming_never_passes_over_a_spike(
    past: list[float], chunks: list[list[float]], warmup: int, window: int
) -> None:
    quick = SpikeRule(warmup=warmup, window=window, min_ratio=3.0)
    slow = SpikeRule(warmup=warmup, window=window, min_ratio=3.0)
    for value in past:
        quick.push(value)
        slow.push(value)
    for chunk in chunks:
        if not quick.skim(chunk):
            for value in chunk:
                quick.push(value)
            for value in chunk:
                slow.push(value)
            continue
        for value in chunk:
            assert slow.judge(value) is None
            slow.push(value)
        assert quick.state_dict() == slow.state_dict()


@pytest.mark.parametrize('bad', [math.nan, math.inf, 0.0, -1.0])
@pytest.mark.parametrize('place', [0, 1, 2])
def test_skimming_leaves_values_that_are_no_positive_numbers(
    bad: float, place: int
) -> None:
    rule = SpikeRule()
    for value in noisy([1.0] * 40):
        rule.push(value)
    chunk = [1.0, 1.1, 0.9]
    assert SpikeRule().skim(chunk) is False  # nothing is known yet
    chunk[place] = bad
    before = rule.state_dict()
    assert rule.skim(chunk) is False
    assert rule.state_dict() == before


def test_skimming_takes_what_is_usual() -> None:
    rule = SpikeRule()
    for value in noisy([1.0] * 40):
        rule.push(value)
    assert rule.skim(noisy([1.0] * 32, seed=1)) is True


def test_a_loss_that_doubles_slowly_has_drifted() -> None:
    series = noisy([1.0] * 100 + [1.005**row for row in range(300)])
    (drift,) = find_drifts(series)
    assert 100 < drift.first < 260
    assert drift.last == len(series) - 1
    assert drift.is_open


def test_a_drift_that_comes_back_ends_there() -> None:
    series = noisy([1.0] * 64 + [3.0] * 64 + [1.0] * 64)
    (drift,) = find_drifts(series)
    assert drift.first == 64
    assert abs(drift.last - 127) < 8
    assert not drift.is_open


@pytest.mark.parametrize('sigma', [0.05, 0.3])
@pytest.mark.parametrize('num_rows', [100, 5000])
def test_noise_does_not_drift(sigma: float, num_rows: int) -> None:
    for seed in range(20):
        series = noisy([1.0] * num_rows, sigma=sigma, seed=seed)
        assert list(find_drifts(series)) == []


def test_a_nan_is_no_drift() -> None:
    assert list(find_drifts([1.0, NAN] * 100)) == []


@pytest.mark.parametrize(
    ('series', 'row'),
    [
        ([0.7, 0.6, 0.65, 0.0, 0.0, 0.0], 3),
        ([0.7, 0.6, 0.65, 21.8341, 21.8341, 21.8341], 3),
        ([0.7, 0.6, 0.65, 87.33656, 87.33656, 87.33656], 3),
        ([0.7, 0.6, 0.65, 0.61, 1.5, 1.5, 1.5, 1.5], 4),
        ([0.7, 0.6, 0.65, 0.61, 0.61, 0.61], None),  # few digits, too few rows
        ([0.7, 0.6, 0.65, 0.0, 0.0], None),  # two rows
        ([0.7, 0.6, 0.0, 0.0, 0.0, 0.6], None),  # came back
        ([0.0] * 10, None),  # switched off from the beginning
        ([0.003, 0.002, 0.001, 0.0, 0.0, 0.0], None),  # fell to zero
        ([0.5] * 10, None),
        ([0.7, NAN, NAN, NAN, NAN, NAN], None),
        ([], None),
    ],
)
def test_masks(series: list[float], row: int | None) -> None:
    assert find_mask(series) == row


@pytest.mark.parametrize(
    ('value', 'expected'),
    [(21.8341, True), (43.6683, True), (21.83, False), (0.0, False), (NAN, False)],
)
def test_focal_mask(value: float, expected: bool) -> None:
    assert is_focal_mask(value) is expected
