"""Keeps EMA copies out of skipped steps."""

from __future__ import annotations

from typing import Any, Callable, Sequence

from torch import Tensor

from mmgradguard.clip.guarded_step import StepOutcome


def guard_average(
    ema: Any, outcomes: Callable[[], Sequence[StepOutcome]]
) -> Callable[[Any], None]:
    """Return the ``update_parameters`` of an averaged model that obeys skips.

    An average moves at every iteration, also where the weights did not: at a skipped
    step it must not. In the earlier iterations of an accumulation nobody knows yet
    whether its step will be skipped, so there the average is kept, to be brought back.

    Args:
        ema: mmengine's averaged model.
        outcomes: Returns the decisions of this iteration, nothing between steps.
    """
    host_update = ema.update_parameters
    kept: dict[str, Tensor] = {}
    is_kept = False

    def update_parameters(model: Any) -> None:
        nonlocal is_kept
        decisions = outcomes()
        if not decisions:
            if not is_kept:
                _keep(ema, kept)
                is_kept = True
        elif any(outcome.skipped is not None for outcome in decisions):
            if is_kept:
                _bring_back(ema, kept)
            is_kept = False
            return
        else:
            is_kept = False
        host_update(model)

    return update_parameters


def _keep(ema: Any, kept: dict[str, Tensor]) -> None:
    for name, value in ema.state_dict().items():
        if name in kept:
            kept[name].copy_(value)
        else:
            kept[name] = value.detach().clone()


def _bring_back(ema: Any, kept: dict[str, Tensor]) -> None:
    for name, value in ema.state_dict().items():
        value.copy_(kept[name])
