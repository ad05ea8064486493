"""One decision on every rank."""

from __future__ import annotations

import torch
from torch import distributed


def agree_on_all_ranks(flag: bool, device: torch.device) -> bool:
    """Return whether ``flag`` is set on every rank; waits for the others.

    For rare steps only, and only where all ranks come by: after an all-reduce of the
    gradients, say, which made them non-finite on each.
    """
    if not (distributed.is_available() and distributed.is_initialized()):
        return flag
    if distributed.get_world_size() == 1:
        return flag
    number = torch.tensor(float(flag), device=device)
    distributed.all_reduce(number, op=distributed.ReduceOp.MIN)
    return bool(number)
