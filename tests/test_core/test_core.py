"""The layer that needs nothing but Python."""

from __future__ import annotations

import json
import math
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmgradguard.core import jsonio
from mmgradguard.core.module_groups import MAX_GROUPS, group_parameters
from mmgradguard.core.robust import RollingWindow, robust_z_score
from mmgradguard.core.rules.spike import SpikeRule
from mmgradguard.core.types import StepSample, Verdict
from mmgradguard.core.verdicts import judge_recovery

NUMBERS = st.floats(allow_nan=True, allow_infinity=True)


@given(st.recursive(NUMBERS | st.text() | st.none(), st.lists, max_leaves=10))
def test_json_is_strict_and_comes_back(value: Any) -> None:
    def refuse(name: str) -> None:
        raise ValueError(name)

    loaded = json.loads(jsonio.dumps(value), parse_constant=refuse)
    assert loaded == jsonio.encode_nonfinite(value)


@given(NUMBERS)
def test_named_infinities_are_read_back(value: float) -> None:
    back = jsonio.as_float(jsonio.encode_nonfinite(value))
    assert back == value or (math.isnan(back) and math.isnan(value))


@pytest.mark.parametrize('value', [True, [], {}, 'much'])
def test_what_is_no_number_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r'not a number|could not convert'):
        jsonio.as_float(value)


def test_a_file_is_the_old_or_the_new_one(tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / 'a' / 'file.json'
    jsonio.write_text_atomic(path, 'old')

    def full(*_: Any) -> None:
        raise OSError('No space left on device')

    monkeypatch.setattr(jsonio.os, 'fsync', full)
    with pytest.raises(OSError, match='No space left'):
        jsonio.write_text_atomic(path, 'new')
    assert path.read_text() == 'old'
    assert [p.name for p in path.parent.iterdir()] == ['file.json']


def test_files_are_readable_by_the_group(tmp_path: Path) -> None:
    jsonio.write_text_atomic(tmp_path / 'f', 'x')
    assert stat.S_IMODE((tmp_path / 'f').stat().st_mode) & 0o400
    plain = tmp_path / 'plain'
    plain.write_text('x')
    assert (tmp_path / 'f').stat().st_mode == plain.stat().st_mode


def test_damaged_lines_are_counted(tmp_path: Path) -> None:
    path = tmp_path / 'steps.jsonl'
    path.write_bytes(b'{"step": 1}\n\n[1]\n\xff\xfe\n{"step": 2}\n{"st')
    rows, damaged = jsonio.read_jsonl(path)
    assert [row['step'] for row in rows] == [1, 2]
    assert damaged == 3


def test_a_step_sample_goes_through_its_file() -> None:
    sample = StepSample(
        step=1, iteration=2, epoch=0, total_norm=math.inf, losses={'loss': math.nan}
    )
    back = StepSample.from_json(json.loads(jsonio.dumps(sample.to_json())))
    assert back.total_norm == math.inf
    assert math.isnan(back.losses['loss'])
    assert 'module_norms' not in sample.to_json()


@pytest.mark.parametrize('row', [{'step': None}, {'step': 'x'}, {'losses': 3}])
def test_a_broken_row_is_refused(row: dict[str, Any]) -> None:
    base = {'step': 0, 'iteration': 0, 'epoch': 0, 'total_norm': 1.0}
    with pytest.raises(ValueError, match=r'not a step|invalid literal'):
        StepSample.from_json({**base, **row})


def test_a_window_refuses_nan() -> None:
    window = RollingWindow(3)
    for value in (1.0, math.nan, 2.0, math.inf, 3.0, 4.0):
        window.push(value)
    assert list(window) == [2.0, 3.0, 4.0]
    assert window.median() == 3.0
    assert RollingWindow(2).median() is None


def test_the_score_of_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match='`history` is empty'):
        robust_z_score(1.0, [], 0.1)
    assert robust_z_score(math.nan, [1.0], 0.1) == math.inf


def rule_after(values: list[float], **options: Any) -> SpikeRule:
    rule = SpikeRule(**options)
    for value in values:
        rule.push(value)
    return rule


STEADY = [70.0, 86.0, 90.0, 101.0, 80.0, 67.0] * 5


@pytest.mark.parametrize('value', [300.0, 56.0, 97.0, 0.0, -1.0, math.nan, math.inf])
def test_healthy_norms_are_no_spikes(value: float) -> None:
    assert rule_after(STEADY).judge(value) is None


def test_the_one_large_norm_of_a_healthy_deformable_detr_is_no_spike() -> None:
    past = [186.0, 229.0, 298.0, 240.0, 215.0] * 6
    assert rule_after(past).judge(845.0) is None


@pytest.mark.parametrize('value', [3637.0, 1e6, 1e30])
def test_spikes_are_found(value: float) -> None:
    spike = rule_after(STEADY).judge(value)
    assert spike is not None
    assert spike.ratio == pytest.approx(value / 83, rel=0.1)


def test_one_spike_does_not_hide_the_next() -> None:
    rule = rule_after([*STEADY, 1e6, 1e6, 1e6])
    assert rule.judge(1e6) is not None


def test_nothing_is_a_spike_during_warmup() -> None:
    assert rule_after(STEADY[:10], warmup=16).judge(1e9) is None
    assert rule_after(STEADY[:16], warmup=16).judge(1e9) is not None


@given(st.lists(st.floats(1e-3, 1e6), min_size=20, max_size=60), st.integers(0, 19))
def test_nan_amnesia(values: list[float], at: int) -> None:
    dirty = [*values[:at], math.nan, math.inf, *values[at:]]
    assert rule_after(values).state_dict() == rule_after(dirty).state_dict()


@given(st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=60))
def test_a_rule_goes_on_from_its_state(values: list[float]) -> None:
    first, second = rule_after(values), SpikeRule()
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    for value in (1e9, 5.0):
        assert first.judge(value) == second.judge(value)


def steps(
    norms: list[float], loss: float = 1.0, skipped: Any = None
) -> list[StepSample]:
    return [
        StepSample(
            step=i,
            iteration=i,
            epoch=0,
            total_norm=n,
            losses={'loss': loss},
            skipped=skipped,
        )
        for i, n in enumerate(norms)
    ]


@pytest.mark.parametrize(
    ('after', 'verdict'),
    [
        (steps([80.0] * 20), Verdict.BENIGN),
        (steps([8000.0] * 5 + [80.0] * 15), Verdict.BENIGN),
        (steps([80.0] * 20, loss=50.0), Verdict.SUSPICIOUS),
        (steps([8000.0] * 20), Verdict.SUSPICIOUS),
        (steps([math.nan] * 20, skipped='nonfinite'), Verdict.SUSPICIOUS),
        (steps([80.0] * 20, loss=math.nan), Verdict.SUSPICIOUS),
        (steps([80.0] * 2), Verdict.SUSPICIOUS),
        ([], Verdict.SUSPICIOUS),
        (steps([math.inf] * 5, skipped='scaler') + steps([80.0] * 5), Verdict.BENIGN),
    ],
    ids=range(9),
)
def test_recovery(after: list[StepSample], verdict: Verdict) -> None:
    assert judge_recovery(steps(STEADY), after) is verdict


def test_groups_never_exceed_the_limit_and_cover_everything() -> None:
    names = [f'a.{i}.b.{j}.weight' for i in range(30) for j in range(9)] + ['x', 'y.w']
    groups = group_parameters(names)
    assert len(groups) == len(names)
    assert len(set(groups)) <= MAX_GROUPS
    assert group_parameters([]) == []


def test_a_flat_model_is_one_group() -> None:
    assert group_parameters(['w', 'b']) == ['(root)', '(root)']


def test_a_bad_pattern_is_named() -> None:
    with pytest.raises(ValueError, match=r"`module_groups` must hold .* got '\['"):
        group_parameters(['a'], ['['])
