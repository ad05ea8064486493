"""The guarded step: measure, decide, apply; everything before ``optimizer.step``."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from mmgradguard.clip.groups import assign_groups, build_groups
from mmgradguard.clip.param_table import ParamTable
from mmgradguard.clip.policies import State
from mmgradguard.core.checks import check_flag, check_positive
from mmgradguard.core.rules.spike import Spike, SpikeRule
from mmgradguard.ops.clip import compute_clip_coef, scale_grads_
from mmgradguard.ops.norms import (
    compute_grad_norms,
    compute_scaled_norm,
    find_nonfinite,
)


@dataclass
class StepOutcome:
    """What was measured and decided at one optimizer step; all of it on the host.

    `param_norms` has one entry per parameter of the optimizer, 0 where it has no
    gradient. `nonfinite` are indices of parameters whose gradient holds NaN or Inf.
    """

    total_norm: float
    param_norms: list[float]
    max_norm: float | None = None
    clip_coef: float = 1.0
    skipped: str | None = None
    nonfinite: list[int] = field(default_factory=list)
    norm_overflow: bool = False
    spike: Spike | None = None
    loss_scale: float | None = None

    @property
    def is_finite(self) -> bool:
        """Whether every gradient is finite."""
        return not self.nonfinite


class GuardedStep:
    """Measures gradients, decides on clipping and skipping, and clips.

    It never calls the optimizer: the caller steps if ``outcome.skipped`` is None. A
    skipped step leaves the state of policies and rules as it was.

    Args:
        optimizer: Whose parameters are guarded.
        max_norm: Ceiling for every policy; None for none.
        clip_value: Clip each gradient element to this magnitude instead.
        norm_type: p of the norm.
        clip_policy: A policy or its config.
        clip_groups: See `mmgradguard.clip.groups.build_groups`.
        skip_nonfinite: Skip steps with a NaN or Inf in a gradient.
        skip_spikes: Skip finite steps far outside of the run's own past.
        warmup: Optimizer steps observed before a spike is called one.

    Raises:
        ValueError: If an argument is out of range or malformed.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        *,
        model: nn.Module | None = None,
        max_norm: float | None = None,
        clip_value: float | None = None,
        norm_type: float = 2.0,
        clip_policy: Any = None,
        clip_groups: Any = None,
        skip_nonfinite: bool = True,
        skip_spikes: bool = False,
        warmup: int = 16,
    ) -> None:
        self.table = ParamTable(optimizer, model)
        self.max_norm = (
            None if max_norm is None else check_positive('max_norm', max_norm)
        )
        self.clip_value = clip_value
        self.norm_type = check_positive('norm_type', norm_type)
        self.groups = build_groups(
            {'type': 'FixedClip'} if clip_policy is None else clip_policy, clip_groups
        )
        self.skip_nonfinite = check_flag('skip_nonfinite', skip_nonfinite)
        self.skip_spikes = check_flag('skip_spikes', skip_spikes)
        self.spikes = SpikeRule(warmup=warmup)
        self._group_of = assign_groups(self.table.names, self.groups)
        self._next_states: list[State | None] = []

    def attach_model(self, model: nn.Module) -> None:
        """Learn the names of the parameters."""
        self.table = ParamTable(self.table.optimizer, model)
        self._group_of = assign_groups(self.table.names, self.groups)

    @torch.no_grad()
    def look(
        self, *, loss_scale: float | None = None, grads_are_scaled: bool = False
    ) -> StepOutcome:
        """Measure and decide; gradients are read, nothing is changed.

        Args:
            loss_scale: Of GradScaler; None without one.
            grads_are_scaled: Whether gradients still carry `loss_scale`.
        """
        if self.table.refresh():
            self._group_of = assign_groups(self.table.names, self.groups)
        used = [i for i, p in enumerate(self.table.params) if p.grad is not None]
        if not used:
            return StepOutcome(
                0.0, [0.0] * len(self.table.params), loss_scale=loss_scale
            )
        grads = self._grads(used)
        divide_by = loss_scale if grads_are_scaled and loss_scale else 1.0
        per_param, total = compute_grad_norms(grads, self.norm_type)
        if divide_by != 1.0:
            per_param, total = per_param / divide_by, total / divide_by
        limits, coefs = self._limits(per_param, total, used)
        # the one wait for the device in a step
        values = torch.cat([total.view(1), limits, coefs, per_param]).tolist()
        num_groups = len(self.groups)
        outcome = StepOutcome(
            total_norm=values[0],
            param_norms=[0.0] * len(self.table.params),
            max_norm=self._as_configured(values[num_groups]),
            clip_coef=min(values[1 + num_groups : 1 + 2 * num_groups]),
            loss_scale=loss_scale,
        )
        for i, norm in zip(used, values[1 + 2 * num_groups :]):
            outcome.param_norms[i] = norm
        if not math.isfinite(values[0]):
            self._explain_nonfinite(outcome, used, grads, divide_by)
        outcome.spike = self.spikes.judge(outcome.total_norm)
        self._decide(outcome)
        self._coefs = coefs
        return outcome

    @torch.no_grad()
    def apply(self, outcome: StepOutcome) -> None:
        """Clip the gradients as decided, and remember a step that is not skipped."""
        used = [i for i, p in enumerate(self.table.params) if p.grad is not None]
        if not used:
            return
        if outcome.norm_overflow:
            self._apply_overflow(outcome, used)
        elif self.clip_value is not None:
            nn.utils.clip_grad_value_(
                [self.table.params[i] for i in used], self.clip_value
            )
        elif outcome.clip_coef < 1.0 or not outcome.is_finite:
            for g in range(len(self.groups)):
                members = [i for i in used if self._group_of[i] == g]
                if members:
                    scale_grads_(self._grads(members), self._coefs[g])
        self.accept(outcome)

    def accept(self, outcome: StepOutcome) -> None:
        """Remember a step that is taken; a skipped one leaves no trace."""
        self.spikes.push(outcome.total_norm)
        for group, state in zip(self.groups, self._next_states):
            group.state = state

    @property
    def device(self) -> torch.device:
        """Device of the first parameter."""
        params = self.table.params
        return params[0].device if params else torch.device('cpu')

    def state_dict(self) -> dict[str, Any]:
        """Return what `load_state_dict` needs; loads with ``weights_only=True``."""
        return {
            'groups': [group.state_dict() for group in self.groups],
            'spikes': self.spikes.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state: the same gradients give the same decisions.

        Raises:
            ValueError: If it was saved with other groups or policies.
        """
        if len(state['groups']) != len(self.groups):
            raise ValueError(
                f'the saved clip state has {len(state["groups"])} groups, '
                f'`clip_groups` makes {len(self.groups)}'
            )
        device = self.device
        for group, saved in zip(self.groups, state['groups']):
            group.load_state_dict(saved, device)
        self.spikes.load_state_dict(state['spikes'])

    def _grads(self, indices: Sequence[int]) -> list[Tensor]:
        grads = [self.table.params[i].grad for i in indices]
        return [grad for grad in grads if grad is not None]

    def _limits(
        self, per_param: Tensor, total: Tensor, used: Sequence[int]
    ) -> tuple[Tensor, Tensor]:
        """Return ``max_norm`` and clip coefficient of each group, on the device."""
        limits, coefs, self._next_states = [], [], []
        for g, group in enumerate(self.groups):
            norm = total
            if len(self.groups) > 1:
                rows = [k for k, i in enumerate(used) if self._group_of[i] == g]
                if not rows:  # all of it is frozen, or was not used by this batch
                    limits.append(torch.full_like(total, math.inf))
                    coefs.append(torch.ones_like(total))
                    self._next_states.append(group.state)
                    continue
                norm = torch.linalg.vector_norm(per_param[rows], self.norm_type)
            max_norm, state = group.decide(norm)
            max_norm = max_norm.to(total.dtype)
            if self.max_norm is not None:
                max_norm = torch.clamp(max_norm, max=self.max_norm)
            limits.append(max_norm)
            coefs.append(compute_clip_coef(norm, limits[-1]))
            self._next_states.append(state)
        return torch.stack(limits), torch.stack(coefs)

    def _as_configured(self, limit: float) -> float | None:
        """Return a limit as a person wrote it: 0.1, and not its fp32 neighbour."""
        if not math.isfinite(limit):
            return None
        if self.max_norm is not None and math.isclose(
            limit, self.max_norm, rel_tol=1e-6
        ):
            return self.max_norm
        return limit

    def _explain_nonfinite(
        self,
        outcome: StepOutcome,
        used: Sequence[int],
        grads: Sequence[Tensor],
        divide_by: float,
    ) -> None:
        """Tell a non-finite gradient from finite ones whose norm fp32 cannot hold."""
        outcome.nonfinite = [used[k] for k in find_nonfinite(grads)]
        if outcome.nonfinite:
            return
        largest, scaled = compute_scaled_norm(grads, self.norm_type)
        outcome.norm_overflow = True
        outcome.total_norm = largest * scaled / divide_by
        if outcome.max_norm is not None:
            outcome.clip_coef = min(1.0, outcome.max_norm / outcome.total_norm)

    def _decide(self, outcome: StepOutcome) -> None:
        if not outcome.is_finite:
            outcome.skipped = 'nonfinite' if self.skip_nonfinite else None
        elif outcome.norm_overflow and (
            outcome.max_norm is None or len(self.groups) > 1
        ):
            # unclipped, the squares in any adaptive optimizer's moments would overflow
            outcome.skipped = 'nonfinite' if self.skip_nonfinite else None
        elif outcome.spike is not None and self.skip_spikes:
            outcome.skipped = 'spike'
        if outcome.skipped is not None:
            outcome.clip_coef = 0.0

    def _apply_overflow(self, outcome: StepOutcome, used: Sequence[int]) -> None:
        """Clip in two steps, each of which fp32 can hold."""
        grads = self._grads(used)
        largest, scaled = compute_scaled_norm(grads, self.norm_type)
        limit = math.inf if outcome.max_norm is None else outcome.max_norm
        # as double: 1 / largest may be too small for fp32
        factors = [1.0 / largest, min(limit / scaled, largest)]
        first, second = torch.tensor(factors, dtype=torch.float64).to(grads[0].device)
        scale_grads_(grads, first)
        scale_grads_(grads, second)
