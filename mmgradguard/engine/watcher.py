"""Measures before the host's own step; nothing of it is changed."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Callable

from torch import nn

from mmgradguard.clip.guarded_step import GuardedStep, StepOutcome
from mmgradguard.engine.guarded_wrapper import read_clip_grad
from mmgradguard.engine.seams import replace_method
from mmgradguard.ops.loss_scale import LossScale


class StepWatcher:
    """Looks at the gradients of one optimizer wrapper right before its step.

    Args:
        wrapper: mmengine's, of any type that has a torch optimizer.
        model: For the names of the parameters.
        warmup: Steps observed before a spike is called one.
        tell: Called with outcome, guarded step and the scale that gradients still
            carry; must not raise.
    """

    def __init__(
        self,
        wrapper: Any,
        model: nn.Module,
        warmup: int,
        tell: Callable[[Callable[[], None]], None],
        observe: Callable[[StepOutcome, GuardedStep, float], None],
    ) -> None:
        clip = {}
        if wrapper.clip_grad_kwargs and wrapper.grad_name == 'grad_norm':
            with suppress(ValueError):  # the host takes what we would refuse
                clip = read_clip_grad(wrapper.clip_grad_kwargs)
        self.guarded = GuardedStep(
            wrapper.optimizer, model=model, skip_nonfinite=False, warmup=warmup, **clip
        )
        self._scale = LossScale(
            getattr(wrapper, 'loss_scaler', None),
            wrapper.optimizer,
            getattr(wrapper, '_scale_update_param', None),
        )
        self._observe = observe
        host_step = wrapper.step

        def step(*args: Any, **kwargs: Any) -> Any:
            tell(self._look)
            return host_step(*args, **kwargs)

        if hasattr(host_step, '_with_counter'):  # schedulers look for it
            step._with_counter = True  # type: ignore[attr-defined]
        self.undo = replace_method(wrapper, 'step', step)

    def _look(self) -> None:
        scale = self._scale.get()
        outcome = self.guarded.look(
            loss_scale=scale, grads_are_scaled=scale is not None
        )
        if not outcome.is_finite and scale is not None:
            # what GradScaler is about to do
            searching = self._scale.is_searching()
            outcome.skipped = 'scaler' if searching else 'nonfinite'
        self._observe(outcome, self.guarded, scale or 1.0)
        if outcome.is_finite:
            self.guarded.accept(outcome)
