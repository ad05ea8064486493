"""GradScaler, asked the few things that a guarded step needs of it."""

from __future__ import annotations

from typing import Any

from torch.optim import Optimizer

from mmgradguard.core.checks import check_choice

#: Of the adaptive control: steps without overflow until the scale doubles, at first and
#: at most; GradScaler's own is always 2000.
_FASTEST_GROWTH, _SLOWEST_GROWTH = 200, 2000
#: Below this a scale only loses gradients to underflow.
_FLOOR = 1.0


class LossScale:
    """A GradScaler and the optimizer it serves; without a scaler all of it is idle.

    Args:
        scaler: A ``torch.amp.GradScaler``, or None.
        optimizer: Whose gradients carry the scale.
        static_scale: Scale to return to after each step; None lets the scaler search.
        control: None keeps the scaler's own schedule. ``'adaptive'`` searches also from
            a static scale, grows ten times as fast until something overflows, twice as
            slowly after each overflow, and never goes below 1.

    Raises:
        ValueError: If ``control`` is neither.
    """

    def __init__(
        self,
        scaler: Any,
        optimizer: Optimizer,
        static_scale: float | None = None,
        control: str | None = None,
    ) -> None:
        check_choice('loss_scale_control', control, (None, 'adaptive'))
        self.scaler = scaler if scaler is not None and scaler.is_enabled() else None
        self.optimizer = optimizer
        self.control = control
        self.static_scale = None if control else static_scale
        if control and self.scaler is not None:
            self.scaler.set_growth_interval(_FASTEST_GROWTH)

    def get(self) -> float | None:
        """Return the scale, None without a scaler."""
        return None if self.scaler is None else float(self.scaler.get_scale())

    def is_searching(self) -> bool:
        """Whether the scale is being searched for: an overflow then is harmless."""
        scale = self.get()
        return scale is not None and scale > 1.0 and self.static_scale is None

    def is_unscaled(self) -> bool:
        """Whether this step's gradients were divided by the scale already."""
        if self.scaler is None:
            return False
        state = self.scaler._per_optimizer_states[id(self.optimizer)]
        return bool(state['found_inf_per_device'])

    def unscale(self) -> None:
        """Divide the gradients by the scale, once per step."""
        has_grads = any(
            p.grad is not None for g in self.optimizer.param_groups for p in g['params']
        )
        if self.scaler is not None and has_grads and not self.is_unscaled():
            self.scaler.unscale_(self.optimizer)

    def update(self, *, overflowed: bool = False) -> None:
        """Let the scale grow or back off by what `unscale` found.

        Args:
            overflowed: Whether it found NaN or Inf, for the adaptive control.
        """
        if not self.is_unscaled():
            return
        self.scaler.update(self.static_scale)
        if self.control and overflowed:
            # the interval is in the scaler's own state, and so in every checkpoint
            interval = 2 * self.scaler.get_growth_interval()
            self.scaler.set_growth_interval(min(interval, _SLOWEST_GROWTH))
            if self.scaler.get_scale() < _FLOOR:
                self.scaler.update(_FLOOR)
