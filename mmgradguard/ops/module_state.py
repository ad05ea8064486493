"""Buffers and plain attributes of a model, as they were before a batch.

A skipped step must not leave a NaN in BatchNorm's running mean or in the query memory
of a temporal detector, and nobody knows before the forward which of them it will write.
So a copy of each tensor is kept. Large ones are copied anew only where their version
counter says that they were written since; small ones always, since BatchNorm's kernel
writes its statistics without moving the counter.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Iterator, NamedTuple

import torch
from torch import Tensor, nn

from mmgradguard.compat import foreach_copy_

#: What `nn.Module` itself keeps in ``__dict__``: hooks, modes, children.
_OWN_FIELDS = frozenset(nn.Module().__dict__)
_PLAIN = frozenset((int, float, bool, str, type, torch.dtype))
_CONTAINERS = (list, dict, deque)
#: Saves between two walks over all fields of all modules; in between only those are
#: looked at that held tensors, or nothing yet, and modules that have a new field.
_SCAN_INTERVAL = 16
#: Bytes up to which a tensor is copied at every save.
_SMALL = 1 << 20
_MAX_DEPTH = 3
_MAX_ITEMS = 1000


class _Copy(NamedTuple):
    tensor: Tensor
    version: int
    values: Tensor

    def is_stale(self) -> bool:
        """Whether the tensor may hold other values than the copy."""
        values = self.values
        if values.numel() * values.element_size() <= _SMALL:
            return True
        return self.tensor._version != self.version

    def fits(self) -> bool:
        """Whether the copy's memory can take the tensor's values."""
        tensor, values = self.tensor, self.values
        return (tensor.shape, tensor.dtype) == (values.shape, values.dtype)


class _Held(NamedTuple):
    """A container object, and what it held."""

    container: Any
    items: Any


class _Fields(NamedTuple):
    """A ``__dict__`` or ``_buffers``, and the names in it that may hold tensors."""

    owner: dict[str, Any]
    size: int
    names: list[str]


class ModuleState:
    """Saves and restores what a forward pass may change besides the parameters.

    Covered are buffers and attributes of modules: numbers, and tensors on their own or
    in lists, deques and dicts (three levels). Not covered: parameters, also frozen ones
    that a forward moves; tensors that carry an autograd graph or live in inference
    mode; numbers inside of containers; the insides of other objects; large tensors
    written behind torch's back (through ``.data`` or NumPy).
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self._copies: dict[int, _Copy] = {}
        self._saved: list[tuple[dict[str, Any], dict[str, Any]]] | None = None
        self._plan: list[_Fields] = []
        self._num_saves = 0

    @property
    def is_saved(self) -> bool:
        """Whether there is a state to go back to."""
        return self._saved is not None

    def save(self) -> None:
        """Remember the state as it is now."""
        if self._num_saves % _SCAN_INTERVAL == 0:
            self._plan = [
                _look_at(owner)
                for module in self.model.modules()
                for owner in (module.__dict__, module._buffers)
                if owner
            ]
        self._num_saves += 1
        old, self._copies = self._copies, {}
        stale: list[_Copy] = []
        saved = []
        for i, (owner, size, names) in enumerate(self._plan):
            if len(owner) != size:
                self._plan[i] = _look_at(owner)
                names = self._plan[i].names
            fields = owner.copy()
            for name in names:
                value = fields.get(name)
                if value is None:
                    continue
                if isinstance(value, _CONTAINERS):
                    fields[name] = _hold(value)
                for tensor in _tensors_in(value):
                    self._keep(tensor, old, stale)
            saved.append((owner, fields))
        if stale:
            with torch.no_grad():
                foreach_copy_([c.values for c in stale], [c.tensor for c in stale])
        self._saved = saved

    def restore(self) -> None:
        """Bring back what was saved: the same objects, holding the same values."""
        if self._saved is None:
            return
        with torch.no_grad():
            for key, copy in self._copies.items():
                if not copy.fits() or _overlaps(copy.tensor):
                    copy.tensor.data = copy.values.clone()
                elif copy.is_stale():
                    copy.tensor.copy_(copy.values)
                self._copies[key] = copy._replace(version=copy.tensor._version)
        for owner, fields in self._saved:
            for name in owner.keys() - _OWN_FIELDS - fields.keys():
                del owner[name]
            for name in fields.keys() - _OWN_FIELDS:
                owner[name] = _put_back(fields[name])

    def forget(self) -> None:
        """Drop the saved state, but keep the copies for the next save."""
        self._saved = None

    def _keep(self, tensor: Tensor, old: dict[int, _Copy], stale: list[_Copy]) -> None:
        known = old.get(id(tensor))
        if known is None or not known.fits():
            copy = _Copy(tensor, tensor._version, tensor.detach().clone())
        elif known.is_stale():
            copy = known._replace(version=tensor._version)
            stale.append(copy)
        else:
            copy = known
        self._copies[id(tensor)] = copy


def _look_at(owner: dict[str, Any]) -> _Fields:
    names = [n for n in owner.keys() - _OWN_FIELDS if _may_hold_tensors(owner[n])]
    return _Fields(owner, len(owner), names)


def _may_hold_tensors(value: Any) -> bool:
    if isinstance(value, (*_CONTAINERS, tuple)):
        # an empty one may be filled; one of plain values is configuration
        return not value or next(_tensors_in(value), None) is not None
    return value is None or isinstance(value, Tensor)


def _tensors_in(value: Any, depth: int = 0) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        if _can_be_kept(value):
            yield value
        return
    if depth >= _MAX_DEPTH or not isinstance(value, (*_CONTAINERS, tuple)):
        return
    if len(value) <= _MAX_ITEMS:
        for item in value.values() if isinstance(value, dict) else value:
            if item is not None and type(item) not in _PLAIN:
                yield from _tensors_in(item, depth + 1)


def _can_be_kept(tensor: Tensor) -> bool:
    # a tensor with a graph belongs to one iteration, and keeping it would keep the
    # activations of that iteration alive
    if isinstance(tensor, nn.Parameter) or tensor.grad_fn is not None:
        return False
    if nn.parameter.is_lazy(tensor) or tensor.is_inference() or tensor.is_nested:
        return False
    return tensor.layout is torch.strided and not tensor.is_meta


def _overlaps(tensor: Tensor) -> bool:
    """Whether several elements share memory, as those of an expanded tensor do."""
    return any(s == 0 and n > 1 for s, n in zip(tensor.stride(), tensor.shape))


def _hold(value: Any) -> Any:
    """Remember what containers hold, so that an append in the forward can be undone."""
    if isinstance(value, dict):
        return _Held(value, {key: _hold(item) for key, item in value.items()})
    if isinstance(value, (list, deque)):
        return _Held(value, [_hold(item) for item in value])
    return value


def _put_back(value: Any) -> Any:
    """Return a value as it was; containers are the same objects as before."""
    if not isinstance(value, _Held):
        return value
    container, items = value
    container.clear()
    if isinstance(container, dict):
        container.update({key: _put_back(item) for key, item in items.items()})
    else:
        container.extend([_put_back(item) for item in items])
    return container
