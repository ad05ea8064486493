"""What a person wants to know of a bad tensor."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from mmgradguard.ops.norms import dense_values


def describe_tensor(tensor: Tensor, divide_by: float = 1.0) -> dict[str, Any]:
    """Count NaN and Inf in a tensor and describe its finite part; waits once.

    Args:
        tensor: Any floating-point tensor; of a sparse one the stored values.
        divide_by: The loss scale, where gradients still carry it.

    Returns:
        ``numel, num_nan, num_inf``, and of the finite part ``mean, std, min, max``
        (None where nothing is finite) and ``norm`` (L2, in double precision).

    >>> stats = describe_tensor(torch.tensor([1.0, 3.0, float('nan')]))
    >>> stats['num_nan'], stats['mean'], stats['max']
    (1, 2.0, 3.0)
    """
    values = dense_values(tensor.detach()).flatten()
    finite = values[torch.isfinite(values)].double() / divide_by
    stats: dict[str, Any] = {
        'shape': list(tensor.shape),
        'numel': tensor.numel(),
        'num_nan': int(torch.isnan(values).sum()),
        'num_inf': int(torch.isinf(values).sum()),
    }
    names = ('mean', 'std', 'min', 'max', 'norm')
    if not finite.numel():
        return {**stats, **dict.fromkeys(names, None)}
    numbers = torch.stack(
        [
            finite.mean(),
            finite.std(unbiased=False),
            finite.min(),
            finite.max(),
            finite.norm(),
        ]
    ).tolist()
    return {**stats, **dict(zip(names, numbers))}
