"""Parts of a model that are clipped apart, each with its own policy and state."""

from __future__ import annotations

import re
from typing import Any, Mapping, Sequence

import torch
from torch import Tensor

from mmgradguard.clip.policies import ClipPolicy, FixedClip, State, build_policy
from mmgradguard.core.checks import check_pattern, check_positive, refuse_duplicates


class ClipGroup:
    """One part of the model: a pattern, a policy and the policy's state."""

    def __init__(self, pattern: str | None, policy: ClipPolicy) -> None:
        self.pattern = pattern
        self.policy = policy
        self.state: State | None = None

    def decide(self, total_norm: Tensor) -> tuple[Tensor, State]:
        """Return ``max_norm`` and the next state, which the caller keeps or drops."""
        if self.state is None:
            self.state = self.policy.init(total_norm.device)
        return self.policy.update(self.state, total_norm)

    def state_dict(self) -> dict[str, Any]:
        """Return tensors on the CPU, loadable with ``weights_only=True``."""
        return {
            name: value.detach().cpu() for name, value in (self.state or {}).items()
        }

    def load_state_dict(
        self, state: Mapping[str, Tensor], device: torch.device
    ) -> None:
        """Go on from a saved state; one of another policy or size is not taken.

        Raises:
            ValueError: If names or shapes are not those of this policy.
        """
        fresh = self.policy.init(device)
        if not state:
            self.state = None
            return
        same = fresh.keys() == state.keys() and all(
            fresh[name].shape == state[name].shape for name in fresh
        )
        if not same:
            raise ValueError(
                f'the saved clip state holds {sorted(state)}, {self.policy!r} needs '
                f'{sorted(fresh)}: another policy or window was configured'
            )
        self.state = {name: state[name].to(device, fresh[name].dtype) for name in fresh}


def build_groups(clip_policy: Any, clip_groups: Any) -> list[ClipGroup]:
    """Build the groups; the last one takes what no pattern matches.

    Args:
        clip_policy: Policy, or its config, of the parameters in no other group.
        clip_groups: None, or a list of ``(regex, max_norm or policy)``.

    Raises:
        ValueError: If an entry is malformed, naming it.
    """
    groups: list[ClipGroup] = []
    if clip_groups is not None and not isinstance(clip_groups, (list, tuple)):
        raise ValueError(
            '`clip_groups` must be a list of (regex, max_norm or policy), '
            f'got {clip_groups!r}'
        )
    for i, entry in enumerate(clip_groups or ()):
        key = f'clip_groups[{i}]'
        if not isinstance(entry, (list, tuple)) or len(entry) != 2:
            raise ValueError(
                f'`{key}` must be (regex, max_norm or policy), got {entry!r}'
            )
        pattern, limit = entry
        check_pattern(key, pattern)
        if isinstance(limit, (int, float)):
            groups.append(ClipGroup(pattern, FixedClip(check_positive(key, limit))))
        else:
            groups.append(ClipGroup(pattern, build_policy(limit, key)))
    refuse_duplicates('clip_groups', [str(group.pattern) for group in groups])
    return [*groups, ClipGroup(None, build_policy(clip_policy))]


def assign_groups(names: Sequence[str], groups: Sequence[ClipGroup]) -> list[int]:
    """Return for each parameter name the index of the first group that matches."""
    patterns = [
        re.compile(group.pattern) for group in groups if group.pattern is not None
    ]
    rest = len(groups) - 1
    return [
        next((i for i, pattern in enumerate(patterns) if pattern.search(name)), rest)
        for name in names
    ]
