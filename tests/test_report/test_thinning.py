from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from mmgradguard.report.thinning import thin_range

VALUES = st.lists(st.one_of(st.none(), st.floats()), max_size=300)


@given(VALUES, st.integers(1, 40), st.lists(st.integers(-5, 400), max_size=5))
def test_no_extreme_no_kept_row_and_no_nan_is_lost(values, num_bins, keep):
    rows = thin_range(values, num_bins, keep)
    assert rows == sorted(set(rows))
    assert all(values[row] is not None for row in rows)
    finite = [v for v in values if v is not None and math.isfinite(v)]
    drawn = [values[row] for row in rows if math.isfinite(values[row])]
    if finite:
        assert (min(drawn), max(drawn)) == (min(finite), max(finite))
    assert len(drawn) == len(rows) or any(
        v is not None and not math.isfinite(v) for v in values
    )
    has_bad = any(v is not None and not math.isfinite(v) for v in values)
    assert has_bad == (len(drawn) < len(rows))
    assert {r for r in keep if 0 <= r < len(values) and values[r] is not None} <= set(
        rows
    )
    assert len(rows) <= max(3 * num_bins + len(keep), 2 * num_bins)


def test_a_short_column_is_drawn_whole():
    assert thin_range([1.0, None, math.nan, 2.0], 2) == [0, 2, 3]
