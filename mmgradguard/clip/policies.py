"""Clip policies: pure functions of a state and a norm, on the device.

A policy answers with the ``max_norm`` for this step; the configured
``clip_grad.max_norm`` stays the ceiling above it. Nothing here waits for the device,
and a non-finite norm changes no state: one NaN alters no later decision.
"""

from __future__ import annotations

import inspect
import math
from typing import Any, Dict, Mapping, Protocol

import torch
from torch import Tensor

from mmgradguard.core.checks import check_count, check_positive, refuse_unknown_keys

State = Dict[str, Tensor]


class ClipPolicy(Protocol):
    """What a policy must have; add your own to `POLICIES`."""

    def init(self, device: torch.device) -> State:
        """Return the state before the first step."""

    def update(self, state: State, total_norm: Tensor) -> tuple[Tensor, State]:
        """Return ``max_norm`` (0-dim, inf for no limit) and the next state."""


class FixedClip:
    """The same threshold at every step: what mmengine does, and the default.

    Args:
        max_norm: Threshold; None leaves it to ``clip_grad.max_norm`` alone.

    Raises:
        ValueError: If ``max_norm`` is not a positive number.
    """

    def __init__(self, max_norm: float | None = None) -> None:
        self.max_norm = (
            math.inf if max_norm is None else check_positive('max_norm', max_norm)
        )

    def __repr__(self) -> str:
        return f'FixedClip(max_norm={self.max_norm})'

    def init(self, device: torch.device) -> State:
        return {'max_norm': torch.full((), self.max_norm, device=device)}

    def update(self, state: State, total_norm: Tensor) -> tuple[Tensor, State]:
        return state['max_norm'], state


class PercentileClip:
    """AutoClip on a sliding window: a percentile of the run's own past norms.

    The window holds finite norms only.

    Args:
        percentile: Of past norms, in (0, 100]. The paper's 10 clips nine steps of ten.
        window: Optimizer steps remembered.
        warmup: Optimizer steps observed before the first clip.

    Raises:
        ValueError: If an argument is out of range.

    Reference: Seetharaman et al., *AutoClip* (2020), arXiv:2007.14469.
    """

    def __init__(
        self, percentile: float = 95.0, window: int = 1000, warmup: int = 50
    ) -> None:
        check_positive('percentile', percentile)
        if percentile > 100:
            raise ValueError(f'`percentile` must be in (0, 100], got {percentile!r}')
        check_count('window', window, 1)
        if check_count('warmup', warmup, 1) > window:
            raise ValueError(
                f'`warmup` must be in [1, window={window!r}], got {warmup!r}'
            )
        self.percentile, self.window, self.warmup = percentile, window, warmup

    def __repr__(self) -> str:
        return (
            f'PercentileClip(percentile={self.percentile}, window={self.window}, '
            f'warmup={self.warmup})'
        )

    def init(self, device: torch.device) -> State:
        return {
            'norms': torch.full((self.window,), math.nan, device=device),
            'count': torch.zeros((), dtype=torch.long, device=device),
        }

    def update(self, state: State, total_norm: Tensor) -> tuple[Tensor, State]:
        past, count = state['norms'], state['count']
        limit = torch.nanquantile(past, self.percentile / 100)
        max_norm = torch.where(
            count < self.warmup, torch.full_like(limit, math.inf), limit
        )
        finite = total_norm.isfinite()
        slot = (count % self.window).view(1)
        entry = torch.where(finite, total_norm.to(past.dtype), past[slot])
        return max_norm, {
            'norms': past.index_copy(0, slot, entry.view(1)),
            'count': count + finite,
        }


#: Policies by the name that a config uses; entries may be added.
POLICIES: dict[str, type] = {'FixedClip': FixedClip, 'PercentileClip': PercentileClip}


def build_policy(config: Any, key: str = 'clip_policy') -> ClipPolicy:
    """Build a policy from ``dict(type=..., ...)``; a policy is returned as it is.

    Raises:
        ValueError: If ``type`` or an argument is unknown or wrong; the message names
            ``key``, the value and what is allowed.
    """
    is_config = isinstance(config, Mapping)
    if not is_config and hasattr(config, 'update') and hasattr(config, 'init'):
        return config  # type: ignore[no-any-return]
    kind = config.get('type') if is_config else None
    if not isinstance(kind, str) or kind not in POLICIES:
        raise ValueError(
            f'`{key}` must be a dict whose `type` is one of {sorted(POLICIES)}, '
            f'got {config!r}'
        )
    arguments = {name: value for name, value in config.items() if name != 'type'}
    _refuse_unknown_arguments(key, kind, arguments)
    try:
        return POLICIES[kind](**arguments)  # type: ignore[no-any-return]
    except (TypeError, ValueError) as error:
        raise ValueError(f'`{key}={dict(config)!r}`: {error}') from error


def _refuse_unknown_arguments(
    key: str, kind: str, arguments: Mapping[str, Any]
) -> None:
    parameters = inspect.signature(POLICIES[kind]).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):  # an entry that was added
        return
    known = ['type', *(p.name for p in parameters)]
    refuse_unknown_keys(key, arguments, known, kind)
