"""Norms of gradients: one read, fp32 accumulation, nothing waits for the device."""

from __future__ import annotations

from typing import NamedTuple, Sequence

import torch
from torch import Tensor

from mmgradguard.compat import foreach_norm


class GradNorms(NamedTuple):
    """Norm of each gradient ``(P,)`` and of all together, 0-dim, on one device."""

    per_param: Tensor
    total: Tensor


def compute_grad_norms(grads: Sequence[Tensor], norm_type: float = 2.0) -> GradNorms:
    """Return the norms of ``grads`` without waiting for the device.

    The total is bit-identical to :func:`torch.nn.utils.clip_grad_norm_`'s for dense
    fp32 gradients on one device. A NaN or Inf in a gradient makes its norm, and the
    total, NaN or Inf; so do finite values whose square overflows (above about 1.8e19),
    which :func:`compute_scaled_norm` can tell apart.

    Args:
        grads: Dense or sparse gradients, of any dtype and device.
        norm_type: p of the p-norm; ``math.inf`` for the largest magnitude.

    Raises:
        ValueError: If ``grads`` is empty: the caller decides what no gradient means.

    >>> norms = compute_grad_norms([torch.tensor([3.0, 4.0]), torch.tensor([12.0])])
    >>> norms.per_param.tolist(), norms.total.item()
    ([5.0, 12.0], 13.0)
    """
    if not grads:
        raise ValueError('`grads` is empty: there is no norm of nothing')
    device = grads[0].device
    norms: list[Tensor] = [grads[0]] * len(grads)
    for indices in _same_kind(grads):
        values = [dense_values(grads[i]) for i in indices]
        if norm_type == float('inf'):  # of no element there is no largest
            values = [v if v.numel() else v.new_zeros(1) for v in values]
        for i, norm in zip(indices, foreach_norm(values, norm_type)):
            norms[i] = norm
    if any(norm.device != device or norm.dtype != norms[0].dtype for norm in norms):
        wide = torch.promote_types(norms[0].dtype, torch.float32)
        norms = [norm.to(device, wide) for norm in norms]
    per_param = torch.stack(norms)
    return GradNorms(per_param, torch.linalg.vector_norm(per_param, norm_type))


def dense_values(grad: Tensor) -> Tensor:
    """Return the values of a gradient, repeated entries of a sparse one summed."""
    return grad.coalesce()._values() if grad.is_sparse else grad


def compute_scaled_norm(
    grads: Sequence[Tensor], norm_type: float = 2.0
) -> tuple[float, float]:
    """Return ``(largest magnitude m, norm of grads / m)``; waits for the device.

    The product is the norm that fp32 cannot hold. If any gradient is not finite, the
    first value is not.

    >>> largest, scaled = compute_scaled_norm([torch.tensor([3e30, 4e30])])
    >>> round(largest * scaled / 1e30, 3)
    5.0
    """
    values = [dense_values(grad) for grad in grads if grad.numel()]
    if not values:
        return 0.0, 0.0
    largest = max(float(value.abs().max()) for value in values)
    if not 0 < largest < float('inf'):
        return largest, 0.0
    if norm_type == float('inf'):
        return largest, 1.0
    powers = sum(
        float((v.double().abs() / largest).pow(norm_type).sum()) for v in values
    )
    return largest, powers ** (1 / norm_type)


def find_nonfinite(tensors: Sequence[Tensor]) -> list[int]:
    """Return the indices of the tensors that hold a NaN or an Inf; waits once."""
    flags = [torch.isfinite(dense_values(t)).all() for t in tensors]
    if not flags:
        return []
    finite = torch.stack([flag.to(flags[0].device) for flag in flags]).tolist()
    return [i for i, is_finite in enumerate(finite) if not is_finite]


def _same_kind(grads: Sequence[Tensor]) -> list[list[int]]:
    """Group indices by device and dtype, in order of first appearance."""
    kinds: dict[tuple[torch.device, torch.dtype], list[int]] = {}
    for i, grad in enumerate(grads):
        kinds.setdefault((grad.device, grad.dtype), []).append(i)
    return list(kinds.values())
