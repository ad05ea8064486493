"""The history of every iteration inside a checkpoint of mmengine.

A run without a guard leaves it behind all the same: its message hub is saved whole. It
is read with ``weights_only=True``, with stand-ins for the classes that it needs and no
others, so mmengine need not be installed; weights stay on the disk where torch can map
them.
"""

from __future__ import annotations

import math
import os
import pickle
import re
import warnings
from contextlib import contextmanager
from typing import Any, Iterator

import torch

from mmgradguard.compat import TORCH_VERSION, numpy_safe_globals
from mmgradguard.core.errors import LogParseError

_BUFFER = 'mmengine.logging.history_buffer.HistoryBuffer'
_OLD_BUFFER = 'mmengine.logging.HistoryBuffer'


class _HistoryBuffer:
    """Stands for mmengine's: keeps its arrays and none of its methods."""

    def __setstate__(self, state: Any) -> None:
        self.values = state.get('_log_history', ())
        self.counts = state.get('_count_history', ())

    def numbers(self) -> list[float]:
        """Return one mean for each update."""
        pairs = zip(map(float, self.values), map(float, self.counts))
        return [value / count if count else math.nan for value, count in pairs]


def read_history(path: str | os.PathLike[str]) -> dict[str, list[float]]:
    """Return what the message hub of a checkpoint remembers, by name: ``train/loss``.

    Raises:
        LogParseError: If it cannot be read, holds other classes than a checkpoint of
            mmengine does, or has no message hub.
    """
    checkpoint = _load(os.fspath(path))
    hub = checkpoint.get('message_hub') if isinstance(checkpoint, dict) else None
    scalars = hub.get('log_scalars') if isinstance(hub, dict) else None
    if not isinstance(scalars, dict):
        raise LogParseError(
            f'{path}: a checkpoint without a message hub; only training checkpoints of '
            'mmengine have one'
        )
    return {
        str(name): buffer.numbers()
        for name, buffer in scalars.items()
        if isinstance(buffer, _HistoryBuffer)
    }


def _load(path: str) -> Any:
    if TORCH_VERSION < (2, 6):
        raise LogParseError(
            f'{path}: its history needs torch >= 2.6 (this is {torch.__version__})'
        )
    with _only_needed_classes(), warnings.catch_warnings():
        warnings.simplefilter('ignore')  # of a file that is no checkpoint after all
        for mmap in (True, False):  # a checkpoint of an old torch cannot be mapped
            try:
                return torch.load(path, 'cpu', weights_only=True, mmap=mmap)
            except OSError as error:
                reason = error.strerror or str(error)
                raise LogParseError(f'{path}: cannot be read ({reason})') from error
            except Exception as error:  # a damaged pickle raises almost anything
                problem = error
    raise LogParseError(f'{path}: {_reason(problem)}') from problem


def _reason(problem: Exception) -> str:
    refused = re.search(r'(?:GLOBAL|class) (\S+)', str(problem))
    if isinstance(problem, pickle.UnpicklingError) and refused:
        return f'not read: it holds {refused.group(1)[:80]}, which no history needs'
    # torch's own words are a paragraph, and of its insides
    return f'not a checkpoint that can be read (torch: {type(problem).__name__})'


@contextmanager
def _only_needed_classes() -> Iterator[None]:
    """Allow our stand-ins and nothing that the process has allowed for itself."""
    allowed = torch.serialization.get_safe_globals()
    torch.serialization.clear_safe_globals()
    try:
        torch.serialization.add_safe_globals(_needed_classes())
        yield
    finally:
        torch.serialization.clear_safe_globals()
        torch.serialization.add_safe_globals(allowed)


def _needed_classes() -> list[Any]:
    return [
        (_HistoryBuffer, _BUFFER),
        (_HistoryBuffer, _OLD_BUFFER),
        (_history_method, 'builtins.getattr'),
        *numpy_safe_globals(),
    ]


def _history_method(owner: Any, name: str) -> None:
    """Stand for ``getattr``: a pickled history refers to its own methods."""
    if owner is not _HistoryBuffer or name not in ('min', 'max', 'mean', 'current'):
        raise AttributeError(f'not allowed in a checkpoint: {owner!r}.{name}')
