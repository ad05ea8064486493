"""The batch of an incident on disk, as plain data that ``weights_only=True`` loads."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, Mapping

import torch
from torch import Tensor

#: A bundle above this size is not written: a disk is shared.
MAX_BYTES = 512 * 1024 * 1024


def write_bundle(folder: Path, batch: Any, rng: Mapping[str, Any] | None) -> None:
    """Write ``bundle/batch.pt`` and ``bundle/rng.pt`` under an incident, whole or not
    at all.

    Args:
        folder: Of the incident.
        batch: As the training step got it; unknown objects are kept as their repr.
        rng: Random state from before the forward.

    Raises:
        OSError: If the disk is full or the folder cannot be written.
        ValueError: If the batch is larger than `MAX_BYTES`.
    """
    tree = to_plain(batch)
    size = sum(t.numel() * t.element_size() for t in _tensors(tree))
    if size > MAX_BYTES:
        raise ValueError(f'the batch holds {size} bytes, a bundle at most {MAX_BYTES}')
    folder.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=folder, prefix='.bundle.'))
    try:
        torch.save({'schema_version': 1, 'batch': tree}, temporary / 'batch.pt')
        torch.save({'schema_version': 1, 'rng': to_plain(rng)}, temporary / 'rng.pt')
        temporary.chmod(0o755)
        shutil.rmtree(folder / 'bundle', ignore_errors=True)
        os.replace(temporary, folder / 'bundle')
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def to_plain(value: Any) -> Any:
    """Return ``value`` as tensors, numbers, strings, lists, tuples and dicts.

    What is none of these becomes ``{'__kind__': ..., ...}``: ``element`` (mmengine's
    data elements), ``boxes`` (a tensor with a class of its own), ``array`` (NumPy),
    ``object`` (its repr only).

    >>> to_plain({'a': (1, 'x')})
    {'a': (1, 'x')}
    """
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, Tensor):
        # a subclass would need its own code to be loaded
        return value.detach().as_subclass(Tensor).cpu().clone()
    if isinstance(value, Mapping):
        return {
            key if type(key) in (bool, int, float, str) else str(key): to_plain(item)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        items = [to_plain(item) for item in value]
        return tuple(items) if isinstance(value, tuple) else items
    try:
        return _tagged(value)
    except Exception as error:  # an object of somebody's own
        name = type(value).__qualname__
        return {'__kind__': 'object', 'class': name, 'repr': f'unreadable: {error!r}'}


def _tagged(value: Any) -> dict[str, Any]:
    name = f'{type(value).__module__}.{type(value).__qualname__}'
    if hasattr(value, 'metainfo_items') and hasattr(value, 'items'):
        return {
            '__kind__': 'element',
            'class': name,
            'metainfo': {key: to_plain(item) for key, item in value.metainfo_items()},
            'data': {key: to_plain(item) for key, item in value.items()},
        }
    tensor = getattr(value, 'tensor', None)
    if isinstance(tensor, Tensor):
        return {'__kind__': 'boxes', 'class': name, 'tensor': to_plain(tensor)}
    if type(value).__module__ == 'numpy' and hasattr(value, 'tolist'):
        try:
            return {'__kind__': 'array', 'values': torch.as_tensor(value).clone()}
        except (TypeError, ValueError, RuntimeError):
            return {'__kind__': 'array', 'values': to_plain(value.tolist())}
    return {'__kind__': 'object', 'class': name, 'repr': repr(value)[:1000]}


def _tensors(tree: Any) -> list[Tensor]:
    if isinstance(tree, Tensor):
        return [tree]
    if isinstance(tree, dict):
        return [t for item in tree.values() for t in _tensors(item)]
    if isinstance(tree, (list, tuple)):
        return [t for item in tree for t in _tensors(item)]
    return []
