"""Buffers and attributes come back as they were, whatever a forward did to them."""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Any, Callable

import pytest
import torch
from torch import nn

from mmgradguard.ops.module_state import ModuleState


class Memory(nn.Module):
    """State of every kind that models keep outside of their parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(2)
        self.register_buffer('large', torch.zeros(1 << 19))
        self.register_buffer('nothing', None)
        self.query = torch.zeros(3)
        self.queue = [torch.zeros(2), torch.ones(2)]
        self.by_name = {'a': torch.zeros(2), 'deep': [torch.zeros(1)]}
        self.empty: list[Any] = []
        self.none = None
        self.count = 0
        self.ring = deque([torch.zeros(2)], maxlen=2)
        self.ordered = OrderedDict(a=torch.zeros(1))
        self.register_buffer('shared', torch.ones(1).expand(4))


def fill(module: Memory) -> dict[str, Any]:
    return {
        'query': module.query.clone(),
        'queue': [t.clone() for t in module.queue],
        'a': module.by_name['a'].clone(),
        'deep': module.by_name['deep'][0].clone(),
        'buffers': {k: v.clone() for k, v in module.named_buffers()},
        'count': module.count,
        'ring': list(module.ring or ()),
        'ordered': dict(module.ordered),
        'sizes': (len(module.queue), len(module.empty), sorted(module.by_name)),
        'none': module.none,
        'fields': sorted(vars(module)),
    }


def same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    return a == b


def set_attribute(name: str, value: Any) -> Callable[[Memory], None]:
    return lambda m: setattr(m, name, value)


CHANGES: dict[str, Callable[[Memory], Any]] = {
    'BatchNorm, whose kernel moves no version counter': lambda m: m.norm(
        torch.full((4, 2), float('nan'))
    ),
    'a large buffer in place': lambda m: m.large.fill_(1),
    'a buffer by assignment': set_attribute('large', torch.ones(3)),
    'a buffer that was None': set_attribute('nothing', torch.ones(3)),
    'a tensor in place': lambda m: m.query.add_(1),
    'a tensor by assignment': set_attribute('query', torch.ones(3)),
    'a list in place': lambda m: m.queue[0].add_(1),
    'a list that grows': lambda m: m.queue.append(torch.ones(2)),
    'a list that moves on': lambda m: m.queue.pop(0),
    'an empty list that is filled': lambda m: m.empty.append(torch.ones(2)),
    'a dict in place': lambda m: m.by_name['deep'][0].add_(1),
    'a dict that grows': lambda m: m.by_name.update(b=torch.ones(2)),
    'a None that becomes a tensor': set_attribute('none', torch.ones(2)),
    'a new attribute': set_attribute('fresh', torch.ones(2)),
    'a counter': set_attribute('count', 7),
    'a deque': lambda m: m.ring.append(torch.ones(2)),
    'a deque by assignment': set_attribute('ring', None),
    'an ordered dict': lambda m: m.ordered.update(b=torch.ones(1)),
    'a buffer that grows': lambda m: setattr(m.norm.running_var, 'data', torch.ones(5)),
    'an expanded buffer': lambda m: setattr(
        m, 'shared', torch.full((4,), float('nan'))
    ),
    'through data': lambda m: m.query.data.add_(1),
}


@pytest.mark.parametrize('saves', [1, 2, 7])
@pytest.mark.parametrize('change', CHANGES)
def test_restored(change: str, saves: int) -> None:
    module = Memory()
    state = ModuleState(module)
    for _ in range(saves):
        state.save()
    before, objects = fill(module), (module.queue, module.by_name, module.query)
    CHANGES[change](module)
    assert not same(before, fill(module))
    state.restore()
    assert same(before, fill(module))
    # the model may have handed its containers to others: they are the same objects
    assert all(
        a is b for a, b in zip(objects, (module.queue, module.by_name, module.query))
    )
    CHANGES[change](module)
    state.restore()
    assert same(before, fill(module))


def test_a_save_after_a_change_keeps_the_change() -> None:
    module = Memory()
    state = ModuleState(module)
    state.save()
    for change in CHANGES.values():
        if change is not CHANGES['a buffer by assignment']:
            change(module)
    state.save()
    before = fill(module)
    module.query.zero_()
    module.queue.clear()
    state.restore()
    assert same(before, fill(module)) or torch.isnan(module.norm.running_mean).all()


def test_parameters_and_graphs_are_left_alone() -> None:
    module = Memory()
    module.weight = nn.Parameter(torch.zeros(2))
    module.last = (module.weight * 2).sum()
    state = ModuleState(module)
    state.save()
    with torch.no_grad():
        module.weight.add_(1)
    state.restore()
    assert module.weight.tolist() == [1, 1]
    assert id(module.last) not in state._copies


def test_nothing_is_restored_before_the_first_save() -> None:
    module = Memory()
    state = ModuleState(module)
    assert not state.is_saved
    module.query.add_(1)
    state.restore()
    assert module.query.tolist() == [1, 1, 1]


def test_random_state_is_not_touched() -> None:
    module = Memory()
    state = ModuleState(module)
    before = torch.get_rng_state()
    state.save()
    state.restore()
    assert torch.equal(before, torch.get_rng_state())


class Late(nn.Module):
    """Makes its memory some iterations later than the first."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = None
        self.calls = 0

    def forward(self, value: float) -> None:
        self.calls += 1
        if self.calls == 6:
            self.memory = torch.zeros(2)
            self.by_name = {'a': torch.zeros(2)}
        if self.memory is not None:
            self.memory.add_(value)
            self.by_name['a'].add_(value)


def test_memory_that_appears_late_is_restored() -> None:
    module = Late()
    state = ModuleState(module)
    for value in (1.0,) * 8:
        state.save()
        module(value)
    state.save()
    module(float('nan'))
    state.restore()
    assert module.memory.tolist() == [3, 3]
    assert module.by_name['a'].tolist() == [3, 3]


def test_odd_tensors_do_no_harm() -> None:
    module = nn.Module()
    module.lazy = nn.LazyBatchNorm1d()
    module.nested = torch.nested.nested_tensor([torch.ones(1), torch.ones(2)])
    module.meta = torch.ones(2, device='meta')
    module.sparse = torch.eye(2).to_sparse()
    with torch.inference_mode():
        module.inference = torch.ones(2)
    state = ModuleState(module)
    for _ in range(3):
        state.save()
        state.restore()
    module.lazy(torch.ones(2, 3))
    state.save()
    state.restore()
