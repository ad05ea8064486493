"""Norms of gradients, against torch's own."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mmgradguard.ops.clip import compute_clip_coef, scale_grads_
from mmgradguard.ops.norms import (
    compute_grad_norms,
    compute_scaled_norm,
    find_nonfinite,
)

SHAPES = [(3,), (4, 5), (), (2, 3, 4), (1,)]


def random_grads(seed: int, dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(s, generator=generator).to(dtype) * 7 for s in SHAPES]


def params_with(grads: list[torch.Tensor]) -> list[torch.nn.Parameter]:
    params = [torch.nn.Parameter(torch.zeros_like(g)) for g in grads]
    for param, grad in zip(params, grads):
        param.grad = grad.clone()
    return params


@pytest.mark.parametrize('seed', range(5))
@pytest.mark.parametrize('norm_type', [1.0, 2.0, 3.0, math.inf])
@pytest.mark.parametrize('max_norm', [0.1, 1.0, 1e6])
@pytest.mark.parametrize('dtype', [torch.float32, torch.float64])
def test_norm_and_clip_are_bit_identical_to_torch(
    seed: int, norm_type: float, max_norm: float, dtype: torch.dtype
) -> None:
    grads = random_grads(seed, dtype)
    params = params_with(grads)
    expected = torch.nn.utils.clip_grad_norm_(params, max_norm, norm_type)
    total = compute_grad_norms(grads, norm_type).total
    assert torch.equal(total, expected)
    limit = torch.full((), math.inf).to(dtype).clamp(max=max_norm)
    scale_grads_(grads, compute_clip_coef(total, limit))
    for ours, param in zip(grads, params):
        assert torch.equal(ours, param.grad)


@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16])
def test_half_precision_is_accumulated_in_fp32(dtype: torch.dtype) -> None:
    # 300 * sqrt(65536) = 76800 is above fp16's largest number
    grads = [torch.full((65536,), 300.0, dtype=dtype)]
    norms = compute_grad_norms(grads)
    assert norms.total.dtype == torch.float32
    assert norms.total.item() == pytest.approx(76800, rel=1e-2)


def test_mixed_dtypes_give_one_norm() -> None:
    grads = [
        torch.tensor([3.0], dtype=torch.float16),
        torch.tensor([4.0], dtype=torch.float64),
        torch.tensor([12.0]),
    ]
    norms = compute_grad_norms(grads)
    assert norms.total.item() == pytest.approx(13.0)
    assert norms.per_param.tolist() == [3.0, 4.0, 12.0]


def test_sparse_entries_that_repeat_are_summed() -> None:
    index = torch.tensor([[0, 0, 2]])
    values = torch.tensor([[1.0], [2.0], [4.0]])
    grad = torch.sparse_coo_tensor(index, values, (5, 1), check_invariants=True)
    assert compute_grad_norms([grad]).total.item() == 5.0
    scale_grads_([grad], torch.tensor(0.5))
    assert grad.to_dense().flatten().tolist() == [1.5, 0, 2.0, 0, 0]


@pytest.mark.parametrize('bad', [math.nan, math.inf, -math.inf])
def test_a_bad_value_is_never_hidden(bad: float) -> None:
    grads = random_grads(0)
    grads[1][2, 3] = bad
    norms = compute_grad_norms(grads)
    assert not torch.isfinite(norms.total)
    assert torch.isfinite(norms.per_param).tolist() == [True, False, True, True, True]
    assert find_nonfinite(grads) == [1]


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.floats(-1e3, 1e3, width=32), min_size=1, max_size=20),
    st.integers(-30, 30),
)
def test_scaling_by_a_power_of_two_scales_the_norm_exactly(
    values: list[float], exponent: int
) -> None:
    grads = [torch.tensor(values)]
    factor = 2.0**exponent
    scaled = compute_grad_norms([grads[0] * factor]).total
    expected = compute_grad_norms(grads).total * factor
    tiny = float(scaled) < 1e-15  # below, squares lose bits to underflow
    assert tiny or torch.equal(scaled, expected)


@settings(deadline=None, max_examples=50)
@given(st.floats(1e19, 1e38), st.integers(1, 50))
def test_the_scaled_norm_holds_what_fp32_cannot(largest: float, count: int) -> None:
    grad = torch.full((count,), largest, dtype=torch.float32)
    m, s = compute_scaled_norm([grad])
    assert m * s == pytest.approx(largest * count**0.5, rel=1e-5)


def test_the_scaled_norm_of_bad_values_says_so() -> None:
    assert math.isnan(compute_scaled_norm([torch.tensor([math.nan, 1.0])])[0])
    assert compute_scaled_norm([torch.tensor([math.inf])])[0] == math.inf
    assert compute_scaled_norm([torch.zeros(3)]) == (0.0, 0.0)


def test_no_gradients_are_the_callers_business() -> None:
    with pytest.raises(ValueError, match='`grads` is empty'):
        compute_grad_norms([])


def test_empty_gradients_have_norm_zero() -> None:
    grads = [torch.zeros(0), torch.tensor([3.0])]
    assert compute_grad_norms(grads, math.inf).per_param.tolist() == [0.0, 3.0]
    assert compute_grad_norms(grads).total.item() == 3.0
