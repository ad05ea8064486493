"""Turns the optimizer wrapper that mmengine built into a guarded one, in place."""

from __future__ import annotations

from typing import Any, Mapping

from mmengine.optim import AmpOptimWrapper, OptimWrapper, OptimWrapperDict

from mmgradguard.engine.guarded_wrapper import GuardedWrapperMixin
from mmgradguard.engine.optim_wrappers import (
    AdaptiveClipAmpOptimWrapper,
    AdaptiveClipOptimWrapper,
)

_GUARDED_FORM = {
    OptimWrapper: AdaptiveClipOptimWrapper,
    AmpOptimWrapper: AdaptiveClipAmpOptimWrapper,
}


def adopt_optim_wrapper(
    runner: Any, options: Mapping[str, Any], loss_scale_control: str | None = None
) -> bool:
    """Replace ``runner.optim_wrapper`` by its guarded form; False if it already is one.

    The optimizer, its schedulers, counters, scaler and ceiling are carried over: the
    run is bit-identical to one with the guarded wrapper in its config.

    Args:
        runner: In ``before_run``: the wrapper and the schedulers are built.
        options: Of `ACTING_DEFAULTS`.
        loss_scale_control: For a wrapper with a loss scaler.

    Raises:
        TypeError: If the wrapper is of a type that cannot be adopted.
        ValueError: If an option is out of range.
    """
    current = runner.optim_wrapper
    if isinstance(current, OptimWrapperDict):
        adopted = False
        for name, wrapper in current.optim_wrappers.items():
            new = _adopt(wrapper, options, loss_scale_control)
            if new is not wrapper:
                current.optim_wrappers[name] = new
                _hand_over(runner, wrapper, new)
                adopted = True
        return adopted
    new = _adopt(current, options, loss_scale_control)
    if new is current:
        return False
    runner.optim_wrapper = new
    _hand_over(runner, current, new)
    return True


def _adopt(old: Any, options: Mapping[str, Any], loss_scale_control: str | None) -> Any:
    if isinstance(old, GuardedWrapperMixin):
        return old
    form = _GUARDED_FORM.get(type(old))
    if form is None:
        raise TypeError(
            'AdaptiveClipHook cannot act on '
            f'`optim_wrapper.type={type(old).__name__}`: it adopts '
            f'{" and ".join(t.__name__ for t in _GUARDED_FORM)}. '
            'Use GradAnomalyHook to watch this run'
        )
    new = form.__new__(form)
    # `step` on the instance is bound to the old wrapper
    new.__dict__.update({k: v for k, v in vars(old).items() if k != 'step'})
    clip_grad = None
    if old.clip_grad_kwargs:
        kind = 'norm' if old.grad_name == 'grad_norm' else 'value'
        clip_grad = {'type': kind, **old.clip_grad_kwargs}
    new.init_guard(clip_grad, options, loss_scale_control)
    if 'step' in vars(old):
        new.step = _counted(new)
    return new


def _counted(wrapper: Any) -> Any:
    """Return ``step`` with the counter by which schedulers check the order of calls."""
    step = type(wrapper).step

    def counted_step(*args: Any, **kwargs: Any) -> None:
        wrapper._global_step += 1
        step(wrapper, *args, **kwargs)

    counted_step._with_counter = True  # type: ignore[attr-defined]
    return counted_step


def _hand_over(runner: Any, old: Any, new: Any) -> None:
    """Point every scheduler at the new wrapper."""
    schedulers = runner.param_schedulers or []
    if isinstance(schedulers, dict):
        schedulers = [s for group in schedulers.values() for s in group]
    for scheduler in schedulers:
        if scheduler.optimizer is old:
            scheduler.optimizer = new
