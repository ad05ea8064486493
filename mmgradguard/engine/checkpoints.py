"""Are weights, moments and averages finite, and which checkpoint still was."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, Iterable, Iterator

import torch
from torch import Tensor, nn

from mmgradguard.compat import unwrap_model
from mmgradguard.engine.host import ema_models
from mmgradguard.ops.norms import compute_grad_norms, find_nonfinite

_PREFIX = 'last_finite_'


def find_nonfinite_state(
    runner: Any, optimizers: Iterable[Any]
) -> list[tuple[str, Tensor]]:
    """Return, by name, what a run cannot recover from.

    That is NaN or Inf in trainable weights, their moments and their EMA, and NaN in
    buffers and frozen weights: an Inf there may be a mask that is meant to be one.
    """
    return find_bad(_state_tensors(runner, optimizers))


def find_bad(tensors: Iterable[tuple[str, Tensor, bool]]) -> list[tuple[str, Tensor]]:
    """Return the bad ones of ``(name, tensor, Inf is allowed)``.

    Usually one pass that computes norms; only where those are not finite (they may
    overflow) is every tensor looked at.
    """
    named = [entry for entry in tensors if entry[1].numel()]
    values = [tensor for _, tensor, _ in named]
    if not values or bool(compute_grad_norms(values).total.isfinite()):
        return []
    suspects = [named[i] for i in find_nonfinite(values)]
    return [
        (name, tensor)
        for name, tensor, may_be_inf in suspects
        if not may_be_inf or bool(torch.isnan(tensor).any())
    ]


def _state_tensors(
    runner: Any, optimizers: Iterable[Any]
) -> Iterator[tuple[str, Tensor, bool]]:
    model = unwrap_model(runner.model)
    names = {}
    trainable = set()
    for name, param in model.named_parameters():
        names[id(param)] = name
        if param.requires_grad:
            trainable.add(name)
    yield from _model_tensors(model, '', trainable)
    for ema in ema_models(runner):
        # the average is a copy of the model under `module`
        yield from _model_tensors(ema, 'ema.', {f'module.{name}' for name in trainable})
    for optimizer in optimizers:
        for param, state in optimizer.state.items():
            for key, value in state.items():
                if isinstance(value, Tensor) and value.is_floating_point():
                    yield f'{names.get(id(param), "?")} ({key})', value, False


def _model_tensors(
    model: nn.Module, prefix: str, trainable: set[str]
) -> Iterator[tuple[str, Tensor, bool]]:
    for name, param in model.named_parameters():
        yield prefix + name, param.detach(), name not in trainable
    for name, buffer in model.named_buffers():
        if buffer.is_floating_point():
            yield prefix + name, buffer, True


class CheckpointKeeper:
    """Knows the newest checkpoint with finite weights, and keeps it when needed."""

    def __init__(self, runner: Any) -> None:
        self.runner = runner
        self.newest_finite: Path | None = None

    def note_saved(self, checkpoint: dict[str, Any]) -> None:
        """Look at a checkpoint that is about to be written."""
        path = self.runner.message_hub.get_info('last_ckpt')
        if path is not None and is_finite_checkpoint(checkpoint, self._trainable()):
            self.newest_finite = Path(path)

    def note_loaded(self, checkpoint: dict[str, Any], path: str | None) -> None:
        """Look at the checkpoint that a run resumes from."""
        if (
            path
            and os.path.isfile(path)
            and is_finite_checkpoint(checkpoint, self._trainable())
        ):
            self.newest_finite = Path(path)

    def _trainable(self) -> set[str]:
        named = unwrap_model(self.runner.model).named_parameters()
        return {name for name, param in named if param.requires_grad}

    def pin(self) -> Path | None:
        """Keep the newest finite checkpoint beside the others, out of mmengine's reach.

        A hard link costs nothing; where the file system has none it is a copy. Returns
        the kept file, None if there is no such checkpoint on this file system.
        """
        source = self.newest_finite
        if source is None or not source.is_file():
            return None
        if source.name.startswith(_PREFIX):
            return source
        kept = source.with_name(_PREFIX + source.name)
        temporary = source.with_name(f'.{kept.name}.{os.getpid()}')
        try:
            os.link(source, temporary)
        except OSError:
            shutil.copy2(source, temporary)
        os.replace(temporary, kept)
        return kept


def is_finite_checkpoint(checkpoint: dict[str, Any], trainable: set[str]) -> bool:
    """Whether the weights of a checkpoint, and of an EMA copy in it, can be used."""
    tensors = [
        (name, value, name.replace('module.', '', 1) not in trainable)
        for key in ('state_dict', 'ema_state_dict')
        for name, value in (checkpoint.get(key) or {}).items()
        if isinstance(value, Tensor) and value.is_floating_point()
    ]
    return not find_bad(tensors)
