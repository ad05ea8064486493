"""What the user of a plain loop hands over: checked, and read as far as it can be."""

from __future__ import annotations

from typing import Any, Mapping

from torch import Tensor, nn

from mmgradguard.compat import unwrap_model

_STATE_KEYS = {'acting': ('groups', 'spikes'), 'monitor': ('step', 'loss_spikes')}


def parameter_names(model: nn.Module) -> list[str]:
    """Return the names of all parameters, without those of DDP."""
    return [name for name, _ in unwrap_model(model).named_parameters()]


def check_pair(model: Any, optimizer: Any) -> None:
    """Raise unless these are a model and an optimizer of its parameters.

    Raises:
        TypeError: If one is not; the message names the argument and what is expected.
        ValueError: If the optimizer holds none of the model's parameters.
    """
    hint = ''
    if isinstance(optimizer, nn.Module) and hasattr(model, 'param_groups'):
        hint = '; are the two arguments swapped?'
    if not isinstance(model, nn.Module):
        kind = type(model).__name__
        raise TypeError(f'`model` must be a torch.nn.Module, got {kind}{hint}')
    if not hasattr(optimizer, 'param_groups') or not hasattr(optimizer, 'step'):
        kind = type(optimizer).__name__
        raise TypeError(f'`optimizer` must be a torch optimizer, got {kind}{hint}')
    own = {id(param) for param in model.parameters()}
    held = [param for group in optimizer.param_groups for param in group['params']]
    if not any(id(param) in own for param in held):
        raise ValueError(
            f'`optimizer` holds none of the {len(own)} parameters of `model` '
            f'({type(model).__name__}): build it from model.parameters() of the model '
            'that is guarded'
        )


def check_state(state: Any) -> None:
    """Raise unless this is what `GradGuard.state_dict` returned.

    Raises:
        ValueError: Naming what is missing.
    """
    if not isinstance(state, Mapping):
        kind = type(state).__name__
        raise ValueError(f'`state` must be what state_dict() returned, got a {kind}')
    missing = [key for key in (*_STATE_KEYS, 'iteration') if key not in state]
    for part, keys in _STATE_KEYS.items():
        inner = state.get(part, dict.fromkeys(keys))
        inner = inner if isinstance(inner, Mapping) else {}
        missing += [f'{part}.{key}' for key in keys if key not in inner]
    if missing:
        raise ValueError(
            '`state` must be what state_dict() returned; missing: '
            f'{", ".join(missing)}; it holds {", ".join(map(str, state)) or "nothing"}'
        )


def read_losses(losses: Any) -> dict[str, float]:
    """Return loss terms as floats, with their sum as ``loss`` where there is none.

    What is no number, a string or None, is left out.
    """
    if not isinstance(losses, Mapping):
        value = _read_number(losses)
        return {} if value is None else {'loss': value}
    numbers = {str(name): _read_number(value) for name, value in losses.items()}
    terms = {name: value for name, value in numbers.items() if value is not None}
    if terms and 'loss' not in terms:
        terms['loss'] = sum(terms.values())
    return terms


def _read_number(value: Any) -> float | None:
    if isinstance(value, (list, tuple)):  # detectors give a list per level
        numbers = [n for n in map(_read_number, value) if n is not None]
        return sum(numbers) if numbers else None
    if isinstance(value, Tensor):
        return float(value.detach().float().sum())
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number else None
