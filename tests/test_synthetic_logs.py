"""The opponent of the log analyser is itself checked: by slow, independent means."""

from __future__ import annotations

import json
import math
import random
import re
from collections import Counter
from statistics import median

import pytest
from synthetic_logs import FORMATS, KINDS, SyntheticLog, generate, healthy_steps
from synthetic_logs.layouts import LAYOUTS
from synthetic_logs.noise import HEALTHY_CAP, student_t
from synthetic_logs.options import draw_kind

FAILURES = [kind for kind in KINDS if kind != 'healthy']
SMALL = 20_000  # values in a run: keeps these tests short
ITEM = re.compile(r'([\w.]+): ([-+.\w]+)')


def read_rows(log: SyntheticLog) -> list[dict[str, float]]:
    """Read the printed rows back, by other means than the project's parsers."""
    lines = log.content.decode().split('\n')
    names = {'loss', 'grad_norm', *LAYOUTS[log.options.layout].terms}
    return [read_line(lines[number - 1], names) for number in log.lines]


def read_line(line: str, names: set[str]) -> dict[str, float]:
    if line.startswith('{'):
        found = json.loads(line)
        found = {'grad_norm': found.pop('total_norm', None), **found}
        found.update(found.pop('losses', {}))
        items = found.items()
    else:
        items = ITEM.findall(line.split('INFO - ')[1])
    return {k: float(v) for k, v in items if k in names and v is not None}


@pytest.mark.parametrize('kind', KINDS)
def test_a_seed_gives_the_same_bytes_again(kind: str) -> None:
    first, again = (generate(3, kind, SMALL) for _ in range(2))
    assert first == again
    assert first != generate(4, kind, SMALL)


def test_a_quarter_is_healthy_and_the_failures_share_the_rest() -> None:
    counts = Counter(draw_kind(seed) for seed in range(2000))
    assert set(counts) == set(KINDS)
    assert 440 < counts.pop('healthy') < 560
    assert min(counts.values()) > 140


def test_every_format_and_way_to_average_occurs() -> None:
    seen = [generate(seed, max_values=SMALL // 4).options for seed in range(100)]
    assert {o.format for o in seen} == set(FORMATS)
    relations = {(o.window > o.interval) - (o.window < o.interval) for o in seen}
    assert relations == {-1, 0, 1}
    assert {o.accumulation for o in seen} == {1, 2, 4}
    assert {o.has_norm for o in seen} == {o.has_header for o in seen} == {True, False}


@pytest.mark.parametrize('seed', range(3))
@pytest.mark.parametrize('kind', KINDS)
def test_lines_of_rows_are_rows(kind: str, seed: int) -> None:
    log = generate(seed, kind, SMALL)
    assert len(log.lines) == log.options.num_rows
    assert list(log.lines) == sorted(set(log.lines))
    for values in read_rows(log):
        assert 'loss' in values
        total = sum(values[name] for name in LAYOUTS[log.options.layout].terms)
        if log.options.layout != 'unnamed' and math.isfinite(total):
            assert values['loss'] == pytest.approx(total, rel=1e-3, abs=0.01)


@pytest.mark.parametrize('seed', range(6))
@pytest.mark.parametrize('kind', ['spike', 'burst'])
def test_a_spike_stands_out_of_the_rows_before(kind: str, seed: int) -> None:
    log = generate(seed, kind, SMALL)
    truth = log.truth
    assert truth.onset_row is not None
    rows = read_rows(log)
    before, now = rows[: truth.onset_row], rows[truth.onset_row]
    names = [name for name in now if name in before[-1]]
    if truth.first_term is not None and not log.options.has_norm:
        names = [truth.first_term]
    factors = [
        now[n] / max(median([r.get(n, 0) for r in before[-20:]]), 1e-9) for n in names
    ]
    assert max(factors) > 5 or truth.onset_row < 8
    # and the row before it does not: the onset is the first row that shows it
    last = before[-1]
    assert all(now[n] > 1.5 * last[n] for n, f in zip(names, factors) if f > 5)


@pytest.mark.parametrize('seed', range(6))
def test_nan_begins_in_the_onset_row_and_stays(seed: int) -> None:
    log = generate(seed, 'nan_sticks', SMALL)
    has_nan = [
        any(math.isnan(v) for k, v in row.items() if k != 'grad_norm')
        for row in read_rows(log)
    ]
    assert has_nan.index(True) == log.truth.onset_row
    assert all(has_nan[log.truth.onset_row :])
    assert log.truth.verdict == 'fatal'


@pytest.mark.parametrize('seed', range(6))
def test_a_mask_is_constant_for_good_and_the_total_finite(seed: int) -> None:
    log = generate(seed, 'masked_nan', SMALL)
    assert log.truth.latest_row is not None
    rows = read_rows(log)[log.truth.latest_row :]
    assert all(math.isfinite(row['loss']) for row in rows)
    for name in log.truth.first_terms:
        if name is not None:
            values = {round(row[name], 4) for row in rows}
            assert len(values) == 1
            mask = values.pop() / (0.25 * 87.3365447505531)
            assert mask == pytest.approx(round(mask), abs=1e-4)


@pytest.mark.parametrize('seed', range(6))
def test_an_overflow_and_a_divergence_end_high_and_finite(seed: int) -> None:
    for kind in ('norm_overflow', 'finite_divergence'):
        log = generate(seed, kind, SMALL)
        onset = log.truth.onset_row
        assert onset is not None
        losses = [row['loss'] for row in read_rows(log)]
        assert all(math.isfinite(loss) for loss in losses)
        assert losses[-1] > 2 * median(losses[max(0, onset - 20) : onset])
        falls = losses[-1] < losses[-2] < losses[-3]
        assert falls or log.truth.verdict == 'fatal'


@pytest.mark.parametrize('seed', range(6))
def test_a_searching_scaler_leaves_the_losses_alone(seed: int) -> None:
    log = generate(seed, 'amp_skip', 2 * SMALL)
    rows = read_rows(log)
    bad = [
        r for r, row in enumerate(rows) if not math.isfinite(row.get('grad_norm', 0))
    ]
    assert bad[0] == log.truth.onset_row
    assert bad[-1] <= (log.truth.end_row or 0)
    assert all(math.isfinite(row['loss']) for row in rows)


def test_healthy_rows_keep_their_bound() -> None:
    for seed in range(12):
        log = generate(seed, 'healthy', SMALL)
        norms = [r['grad_norm'] for r in read_rows(log) if 'grad_norm' in r][8:]
        for place, norm in enumerate(norms):
            near = norms[max(0, place - 10) : place + 11]
            # the bound is on the usual value of a step; a short median wanders
            assert norm < 1.8 * HEALTHY_CAP * median(near)


def test_healthy_steps_have_heavy_tails_within_their_bound() -> None:
    rows = [json.loads(line) for line in healthy_steps(5000, seed=1)]
    assert [row['step'] for row in rows] == list(range(5000))
    norms = [row['total_norm'] for row in rows[1000:]]
    assert 1.8 < max(norms) / median(norms) < 1.5 * HEALTHY_CAP


def test_student_t_of_two_degrees_has_no_variance() -> None:
    with pytest.raises(ValueError, match='at least 3, got 2'):
        student_t(random.Random(0), 2)
