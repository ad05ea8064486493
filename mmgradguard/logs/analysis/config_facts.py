"""Facts of a run that the config in the header of its log states."""

from __future__ import annotations

from typing import Any, Mapping


def find(config: Mapping[str, Any], *paths: str) -> Any:
    """Return the value at the first dotted path that exists, else None."""
    for path in paths:
        value: Any = config
        for key in path.split('.'):
            value = value.get(key) if isinstance(value, Mapping) else None
        if value is not None:
            return value
    return None


def find_number(config: Mapping[str, Any], *paths: str) -> int | None:
    """Return the positive integer at the first path that holds one."""
    for path in paths:
        value = find(config, path)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


def find_float(config: Mapping[str, Any], *paths: str) -> float | None:
    """Return the number at the first path that holds one."""
    for path in paths:
        value = find(config, path)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
    return None


def is_amp(config: Mapping[str, Any]) -> bool | None:
    """Return whether training is in mixed precision, None without a config."""
    if not config:
        return None
    if find(config, 'fp16') is not None:
        return True
    kinds = [find(config, 'optim_wrapper.type'), find(config, 'optimizer_config.type')]
    return any('Amp' in str(kind) or 'Fp16' in str(kind) for kind in kinds if kind)


def loss_scale(config: Mapping[str, Any]) -> str | None:
    """Return the loss scale as configured: ``dynamic``, or a number as text."""
    value = find(
        config,
        'optim_wrapper.loss_scale',
        'fp16.loss_scale',
        'optimizer_config.loss_scale',
    )
    if isinstance(value, Mapping):
        return 'dynamic'
    return None if value is None else str(value)


def max_norm(config: Mapping[str, Any]) -> float | None:
    """Return the clip threshold."""
    return find_float(
        config,
        'optim_wrapper.clip_grad.max_norm',
        'optimizer_config.grad_clip.max_norm',
    )


def learning_rate(config: Mapping[str, Any]) -> float | None:
    """Return the base learning rate."""
    return find_float(config, 'optim_wrapper.optimizer.lr', 'optimizer.lr')


def model_type(config: Mapping[str, Any]) -> str | None:
    """Return the type of the detector."""
    value = find(config, 'model.type')
    return str(value) if isinstance(value, str) else None


def is_mmengine(config: Mapping[str, Any]) -> bool:
    """Return whether the config is of the mmengine generation."""
    return 'optim_wrapper' in config or 'train_dataloader' in config
