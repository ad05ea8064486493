"""`FaultInjectionHook`: break a training on purpose, to see what the guard does."""

from __future__ import annotations

import difflib
import math
from typing import Any, Callable, Sequence

import torch
from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from torch import Tensor, nn

from mmgradguard.compat import unwrap_model
from mmgradguard.core.checks import (
    check_positive,
    refuse_unknown,
    refuse_unknown_keys,
)

_KINDS = {
    'grad_spike': 'gradients of the parameters under `target` times `factor`',
    'grad_nan': 'one NaN in the gradient of each parameter under `target`',
    'grad_inf': 'one Inf in the gradient of each parameter under `target`',
    'forward_nan': 'one NaN in the output of module `target`',
    'forward_inf': 'one Inf in the output of module `target`',
    'weight_nan': 'one NaN in the first parameter under `target`',
    'exception': 'module `target` raises in its forward',
}
_KEYS = ('kind', 'iteration', 'target', 'factor')


@HOOKS.register_module()
class FaultInjectionHook(Hook):
    """Plant faults at given iterations; for trying the guard, never for a real run.

    Args:
        faults: Dicts with ``kind``, ``iteration`` (0-based, ``runner.iter``),
            ``target`` (a module name without ``module.``; ``''`` is the model) and, for
            ``grad_spike``, ``factor`` (default 1e6). Kinds: ``grad_spike, grad_nan,
            grad_inf, forward_nan, forward_inf, weight_nan, exception``.

    Raises:
        ValueError: If a fault is malformed, or, when training starts, if the model has
            no module of that name.

    >>> FaultInjectionHook(faults=[dict(kind='grad_nan', iteration=3, target='head')])
    FaultInjectionHook(1 faults)
    """

    # after every other hook has seen the iteration begin
    priority = 'VERY_LOW'

    def __init__(
        self, *, faults: Sequence[dict[str, Any]] | None = None, **unknown: Any
    ) -> None:
        refuse_unknown(FaultInjectionHook, unknown)
        if not isinstance(faults, (list, tuple)):
            raise ValueError(
                '`faults` must be a list of dicts with the keys '
                f'{", ".join(_KEYS)}, got {faults!r}'
            )
        self.faults = [_check_fault(i, fault) for i, fault in enumerate(faults)]
        self._remove: list[Callable[[], None]] = []

    def __repr__(self) -> str:
        return f'FaultInjectionHook({len(self.faults)} faults)'

    def before_train(self, runner: Any) -> None:
        for fault in self.faults:
            module = _find_module(runner.model, fault['target'])
            needs_params = fault['kind'].startswith(('grad_', 'weight_'))
            if needs_params and not any(p.numel() for p in module.parameters()):
                raise ValueError(
                    f'`faults`: {fault["kind"]} needs a module with parameters, '
                    f'{fault["target"]!r} has none'
                )

    def before_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None
    ) -> None:
        for remove in self._remove:  # also where the last iteration raised
            remove()
        self._remove.clear()
        for fault in self.faults:
            if fault['iteration'] == runner.iter:
                module = _find_module(runner.model, fault['target'])
                runner.logger.warning(
                    f'[fault injection] planted: {fault["kind"]} in {fault["target"]!r}'
                )
                self._plant(fault, module)

    def after_train(self, runner: Any) -> None:
        for remove in self._remove:
            remove()
        self._remove.clear()

    def _plant(self, fault: dict[str, Any], module: nn.Module) -> None:
        kind = fault['kind']
        if kind.startswith('grad_'):
            change = _gradient_change(kind, fault['factor'])
            for param in module.parameters():
                if param.requires_grad:
                    self._remove.append(param.register_hook(change).remove)
        elif kind.startswith('forward_'):
            value = math.nan if kind == 'forward_nan' else math.inf
            handle = module.register_forward_hook(
                lambda _module, _inputs, output: _spoil_first(output, value)[0]
            )
            self._remove.append(handle.remove)
        elif kind == 'weight_nan':
            with torch.no_grad():
                param = next(p for p in module.parameters() if p.numel())
                param[(0,) * param.dim()] = math.nan
        else:
            self._remove.append(module.register_forward_pre_hook(_raise).remove)


def _raise(module: nn.Module, inputs: Any) -> None:
    raise RuntimeError('planted by FaultInjectionHook')


def _gradient_change(kind: str, factor: float) -> Callable[[Tensor], Tensor]:
    def change(grad: Tensor) -> Tensor:
        if kind == 'grad_spike':
            return grad * factor
        value = math.nan if kind == 'grad_nan' else math.inf
        if grad.is_sparse:  # of an embedding: every stored value
            return grad * value
        grad = grad.clone()
        if grad.numel():
            grad[(0,) * grad.dim()] = value
        return grad

    return change


def _spoil_first(output: Any, value: float) -> tuple[Any, bool]:
    """Return ``output`` with one element of its first float tensor replaced."""
    if isinstance(output, Tensor):
        if not output.is_floating_point() or not output.numel():
            return output, False
        mask = torch.zeros_like(output, dtype=torch.bool)
        mask[(0,) * mask.dim()] = True
        return output.masked_fill(mask, value), True
    if isinstance(output, dict):
        items = list(output.items())
    elif isinstance(output, (list, tuple)):
        items = list(enumerate(output))
    else:
        return output, False
    for key, item in items:
        spoiled, done = _spoil_first(item, value)
        if done:
            changed = dict(items)
            changed[key] = spoiled
            return (
                changed if isinstance(output, dict) else type(output)(changed.values())
            ), True
    return output, False


def _check_fault(index: int, fault: Any) -> dict[str, Any]:
    key = f'faults[{index}]'
    if not isinstance(fault, dict):
        raise ValueError(f'`{key}` must be a dict, got {fault!r}')
    refuse_unknown_keys(key, fault, _KEYS, 'a fault')
    if not isinstance(fault.get('kind'), str) or fault['kind'] not in _KINDS:
        raise ValueError(
            f'`{key}.kind` must be one of {", ".join(_KINDS)}, '
            f'got {fault.get("kind")!r}'
        )
    iteration = fault.get('iteration')
    if isinstance(iteration, bool) or not isinstance(iteration, int) or iteration < 0:
        raise ValueError(
            f'`{key}.iteration` must be an integer >= 0, got {iteration!r}'
        )
    if not isinstance(fault.get('target'), str):
        raise ValueError(
            f'`{key}.target` must be a module name, got {fault.get("target")!r}'
        )
    check_positive(f'{key}.factor', fault.get('factor', 1e6))
    return {'factor': 1e6, **fault}


def _find_module(model: nn.Module, name: str) -> nn.Module:
    modules = dict(unwrap_model(model).named_modules())
    if name not in modules:
        near = difflib.get_close_matches(name, modules, n=3)
        hint = f'; did you mean {", ".join(near)}?' if near else ''
        raise ValueError(f'`faults`: the model has no module {name!r}{hint}')
    return modules[name]
