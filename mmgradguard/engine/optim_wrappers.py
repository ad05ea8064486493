"""`AdaptiveClipOptimWrapper` and its fp16 and bf16 form."""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import Any, Iterator

import torch
from mmengine.optim import AmpOptimWrapper, OptimWrapper
from mmengine.registry import OPTIM_WRAPPERS
from torch import nn

from mmgradguard.compat import grad_scaler
from mmgradguard.core.checks import (
    check_count,
    check_positive,
    refuse_unknown,
    refuse_unknown_keys,
)
from mmgradguard.engine.guarded_wrapper import (
    ACTING_DEFAULTS,
    GuardedWrapperMixin,
    read_clip_grad,
)

_SCALER_KEYS = (
    'init_scale', 'growth_factor', 'backoff_factor', 'growth_interval', 'enabled',
)  # fmt: skip


@OPTIM_WRAPPERS.register_module()
class AdaptiveClipOptimWrapper(GuardedWrapperMixin, OptimWrapper):
    """mmengine's `OptimWrapper` whose step clips, skips and counts.

    Alone it writes no files and cannot keep the copies of `EMAHook` out of a skip: add
    `GradAnomalyHook` for both.

    Args:
        optimizer: A torch optimizer.
        accumulative_counts: Iterations per step.
        clip_grad: As in mmengine. ``max_norm`` stays the ceiling for every policy.
        clip_policy: Config of a policy: `FixedClip` (default) or `PercentileClip`.
        clip_groups: List of ``(regex, max_norm or policy)``: parts clipped apart.
        skip_nonfinite: Skip steps with NaN or Inf in a gradient.
        skip_spikes: Skip finite steps far outside of the run's own past.
        max_consecutive_skips: Steps skipped in a row after which training stops.
        fused: ``'keep'`` what the optimizer's config says, or True or False.

    Raises:
        ValueError: If a value is out of range or a key unknown.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        accumulative_counts: int = 1,
        clip_grad: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        refuse_unknown(type(self), kwargs, ACTING_DEFAULTS)
        check_count('accumulative_counts', accumulative_counts, 1)
        read_clip_grad(clip_grad)
        # mmengine pops from the dict it is given
        OptimWrapper.__init__(
            self, optimizer, accumulative_counts, dict(clip_grad) if clip_grad else None
        )
        self.init_guard(clip_grad, kwargs)


@OPTIM_WRAPPERS.register_module()
class AdaptiveClipAmpOptimWrapper(GuardedWrapperMixin, AmpOptimWrapper):
    """The guarded step under mixed precision: fp16 with a loss scaler, or bf16.

    Unlike mmengine's it runs on a CPU as well.

    Args:
        loss_scale: ``'dynamic'``, a float for a static scale, or arguments of
            GradScaler.
        dtype: ``'float16'`` (default) or ``'bfloat16'``.
        loss_scale_control: None for GradScaler's own schedule. ``'adaptive'``: searched
            for also from a static scale, grows ten times as fast until something
            overflows, twice as slowly after each overflow, never below 1.
        **kwargs: Those of `AdaptiveClipOptimWrapper`.

    Raises:
        ValueError: If a value is out of range or a key unknown.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        loss_scale: Any = 'dynamic',
        dtype: Any = None,
        loss_scale_control: str | None = None,
        accumulative_counts: int = 1,
        clip_grad: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        refuse_unknown(type(self), kwargs, ACTING_DEFAULTS)
        check_count('accumulative_counts', accumulative_counts, 1)
        read_clip_grad(clip_grad)
        # not AmpOptimWrapper's: it refuses to run without a GPU
        OptimWrapper.__init__(
            self, optimizer, accumulative_counts, dict(clip_grad) if clip_grad else None
        )
        self.cast_dtype = read_dtype(dtype)
        self._scale_update_param = loss_scale if isinstance(loss_scale, float) else None
        self.loss_scaler = build_scaler(
            self._device_type(), loss_scale, self.cast_dtype
        )
        self.init_guard(clip_grad, kwargs, loss_scale_control)

    def _device_type(self) -> str:
        return next(
            (p.device.type for g in self.optimizer.param_groups for p in g['params']),
            'cpu',
        )

    @contextmanager
    def optim_context(self, model: nn.Module) -> Iterator[None]:
        if self._device_type() != 'cpu':
            with super().optim_context(model):
                yield
            return
        # mmengine's autocast knows no fp16 on a CPU
        dtype = self.cast_dtype or torch.float16
        with OptimWrapper.optim_context(self, model), torch.autocast(
            'cpu', dtype=dtype
        ):
            yield

    def _host_step(self, **kwargs: Any) -> None:
        # mmengine's step, for gradients that may have been unscaled already
        if self.clip_grad_kwargs:
            self.acting.loss_scale.unscale()
            self._clip_grad()
        self.loss_scaler.step(self.optimizer, **kwargs)
        self.loss_scaler.update(self._scale_update_param)


def read_dtype(dtype: Any) -> torch.dtype | None:
    """Return a torch dtype for autocast, None for the device's default.

    Raises:
        ValueError: If it is not one of autocast's.
    """
    known = {'float16': torch.float16, 'bfloat16': torch.bfloat16}
    if dtype is None or (isinstance(dtype, torch.dtype) and dtype in known.values()):
        return dtype
    if not isinstance(dtype, str) or dtype not in known:
        raise ValueError(f'`dtype` must be one of {sorted(known)}, got {dtype!r}')
    return known[dtype]


def build_scaler(device: str, loss_scale: Any, dtype: torch.dtype | None) -> Any:
    """Build the loss scaler; a disabled one for bf16, whose range needs none.

    Raises:
        ValueError: If ``loss_scale`` is neither 'dynamic', a float nor a dict.
    """
    enabled = dtype is not torch.bfloat16
    if loss_scale == 'dynamic':
        return grad_scaler(device, enabled=enabled)
    if isinstance(loss_scale, float):
        loss_scale = {'init_scale': loss_scale}
    if isinstance(loss_scale, dict):
        refuse_unknown_keys('loss_scale', loss_scale, _SCALER_KEYS, 'GradScaler')
        scale = check_positive('loss_scale', loss_scale.get('init_scale', 1.0))
        if not math.isfinite(scale):
            raise ValueError(f'`loss_scale` must be finite, got {scale}')
        try:
            return grad_scaler(device, **{'enabled': enabled, **loss_scale})
        except (TypeError, AssertionError) as error:
            raise ValueError(f'`loss_scale={loss_scale!r}`: {error}') from error
    raise ValueError(
        "`loss_scale` must be 'dynamic', a float such as 512.0, or a dict of "
        f"GradScaler's arguments, got {loss_scale!r}"
    )
