"""Small questions to mmengine: where are we, which numbers, which hooks."""

from __future__ import annotations

from typing import Any, Iterator, Mapping

import torch
from mmengine.hooks import CheckpointHook, LoggerHook
from torch import Tensor


def describe_place(runner: Any, batch_idx: int) -> str:
    """Return where the training is, as mmengine's log line says it, 1-based."""
    if runner.train_loop.__class__.__name__.startswith('IterBased'):
        return f'Iter(train) [{runner.iter + 1}/{runner.max_iters}]'
    length = len(runner.train_dataloader)
    return f'Epoch(train) [{runner.epoch + 1}][{batch_idx + 1}/{length}]'


def is_log_line(runner: Any, batch_idx: int) -> bool:
    """Whether `LoggerHook` prints a line at this iteration."""
    hook = next((h for h in runner.hooks if isinstance(h, LoggerHook)), None)
    if hook is None:
        return False
    if hook.every_n_inner_iters(batch_idx, hook.interval):
        return True
    length = len(runner.train_dataloader)
    return batch_idx + 1 == length and (not hook.ignore_last or length <= hook.interval)


def is_saving(runner: Any) -> bool:
    """Whether `CheckpointHook` writes a checkpoint right after this iteration."""
    return any(
        not hook.by_epoch and hook.every_n_train_iters(runner, hook.interval)
        for hook in runner.hooks
        if isinstance(hook, CheckpointHook)
    )


def largest_lr(optimizers: Iterator[Any] | list[Any]) -> float | None:
    """Return the largest learning rate of all parameter groups."""
    rates = [
        float(group['lr'])
        for o in optimizers
        for group in o.param_groups
        if 'lr' in group
    ]
    return max(rates) if rates else None


def read_losses(outputs: Mapping[str, Any] | None) -> dict[str, float]:
    """Return the loss terms of a train step as floats, in one transfer.

    mmengine adds up the keys that contain ``loss``; the others are measures.
    """
    names, values = [], []
    for name, value in (outputs or {}).items():
        if 'loss' not in name:
            continue
        if isinstance(value, Tensor) and value.numel() == 1:
            names.append(name)
            values.append(value.detach().reshape(()))
        elif isinstance(value, (int, float)):
            names.append(name)
            values.append(torch.tensor(float(value)))
    if not values:
        return {}
    device = values[0].device
    return dict(
        zip(names, torch.stack([v.to(device).float() for v in values]).tolist())
    )


def ema_models(runner: Any) -> list[Any]:
    """Return the averaged models that hooks keep."""
    models = [getattr(hook, 'ema_model', None) for hook in runner.hooks]
    return [m for m in models if m is not None and hasattr(m, 'update_parameters')]
