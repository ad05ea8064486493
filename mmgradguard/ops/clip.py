"""Clipping as two pure steps: the factor, and its application."""

from __future__ import annotations

from typing import Sequence

import torch
from torch import Tensor


def compute_clip_coef(total_norm: Tensor, max_norm: Tensor) -> Tensor:
    """Return the factor, at most 1, that brings ``total_norm`` down to ``max_norm``.

    Bit-identical to torch's: the same reciprocal, the same 1e-6. NaN stays NaN.

    >>> round(compute_clip_coef(torch.tensor(20.0), torch.tensor(5.0)).item(), 6)
    0.25
    """
    coef = (total_norm + 1e-6).reciprocal() * max_norm
    return torch.clamp(coef, max=1.0)


def scale_grads_(grads: Sequence[Tensor], factor: Tensor) -> None:
    """Multiply every gradient by a 0-dim factor, in place."""
    kinds: dict[tuple[torch.device, torch.dtype], list[Tensor]] = {}
    for grad in grads:
        # also right where a sparse gradient still holds entries to be summed
        values = grad._values() if grad.is_sparse else grad
        kinds.setdefault((values.device, values.dtype), []).append(values)
    for (device, _), values in kinds.items():
        torch._foreach_mul_(values, factor.to(device))
