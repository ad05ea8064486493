from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from mmgradguard.core.types import StepSample
from mmgradguard.report.series import (
    MAX_COLUMNS,
    MAX_MODULES,
    MAX_POINTS,
    build_heat_map,
    build_loss_curves,
    build_step_series,
    thin,
    total_loss,
)

norms = st.floats(0, 1e30) | st.sampled_from([math.nan, math.inf])


def sample(step, **fields):
    values = dict(step=step, iteration=step, epoch=0, total_norm=1.0)
    return StepSample(**{**values, **fields})


@given(st.lists(norms, max_size=300), st.integers(4, 100))
def test_thinning_keeps_the_largest_and_the_nonfinite(values, limit):
    kept = thin(values, limit)
    assert kept == sorted(set(kept))
    assert len(kept) <= limit
    finite = [value for value in values if math.isfinite(value)]
    if finite:
        assert max(finite) in [values[i] for i in kept]
    bad = {i for i, value in enumerate(values) if not math.isfinite(value)}
    if len(bad) <= limit // 2:
        assert bad <= set(kept)
    elif bad:
        assert bad & set(kept)


def test_a_single_spike_and_a_single_nan_survive_100000_steps():
    steps = [sample(i) for i in range(100_000)]
    steps[77_777].total_norm = 1e8
    steps[77_780].total_norm = math.nan
    series = build_step_series(steps)
    assert len(series.iteration) <= MAX_POINTS
    at = series.total_norm.index(1e8)
    assert series.iteration[at] == 77_778  # 1-based
    assert any(math.isnan(value) for value in series.total_norm)
    assert series.num_binned == math.ceil(100_000 / len(series.iteration))


def test_a_spike_in_one_loss_term_survives():
    steps = [sample(i, losses={'loss_a': 1.0, 'loss_b': 2.0}) for i in range(5000)]
    steps[1234].losses['loss_b'] = 99.0
    curves = {curve.term: curve for curve in build_loss_curves(steps)}
    assert list(curves) == ['sum of losses', 'loss_a', 'loss_b']
    assert max(curves['loss_b'].value) == 99.0
    assert max(curves['sum of losses'].value) == 100.0
    assert max(curves['loss_a'].value) == 1.0


def test_the_total_loss_is_the_hosts():
    assert total_loss({'loss_a': 1.0, 'acc': 90.0, 'd0.loss_a': 2.0}) == 3.0
    assert total_loss({'loss': 5.0, 'loss_a': 1.0}) == 5.0
    assert total_loss({'energy': 4.0}) == 4.0


def test_a_single_term_is_drawn_once():
    curves = build_loss_curves([sample(0, losses={'loss_a': 1.0})])
    assert [curve.term for curve in curves] == ['loss_a']


def test_the_heat_map_keeps_spikes_and_nonfinite_cells():
    steps = [sample(i, module_norms={'a': 1.0, 'b': 2.0}) for i in range(3000)]
    steps[2001].module_norms['b'] = 1e6
    steps[2500].module_norms['a'] = math.nan
    steps[2501].module_norms['a'] = 7.0
    heat = build_heat_map(steps)
    assert heat.modules == ['a', 'b']
    assert len(heat.iteration) <= MAX_COLUMNS
    assert all(len(row) == len(heat.iteration) for row in heat.norm)
    assert max(heat.norm[1]) == 1e6
    assert sum(math.isnan(value) for value in heat.norm[0]) == 1


def test_steps_without_module_norms_make_no_column():
    steps = [
        sample(i, module_norms={'a': 1.0} if i % 50 == 0 else None) for i in range(101)
    ]
    assert build_heat_map(steps).iteration == [1, 51, 101]


def test_a_module_that_appears_later_has_gaps():
    steps = [sample(0, module_norms={'a': 1.0}), sample(1, module_norms={'b': 2.0})]
    assert build_heat_map(steps).norm == [[1.0, None], [None, 2.0]]


def test_of_many_modules_the_hottest_are_kept_in_model_order():
    names = {f'm{i}': float(i) for i in range(MAX_MODULES + 10)}
    heat = build_heat_map([sample(0, module_norms=names)])
    assert heat.num_hidden == 10
    assert heat.modules == [f'm{i}' for i in range(10, MAX_MODULES + 10)]
