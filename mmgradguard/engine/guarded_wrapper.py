"""The guarded step inside of mmengine's optimizer wrapper."""

from __future__ import annotations

import logging
import math
import traceback
from contextlib import contextmanager
from typing import Any, Iterator, Mapping

from mmengine.logging import print_log
from torch import Tensor, nn

from mmgradguard.clip.acting_step import ActingStep
from mmgradguard.clip.guarded_step import StepOutcome
from mmgradguard.core.checks import check_choice, check_positive
from mmgradguard.core.errors import GuardStop
from mmgradguard.ops.loss_scale import LossScale

#: Arguments of ours that every acting class takes, with their defaults.
ACTING_DEFAULTS: dict[str, Any] = {
    'clip_policy': {'type': 'FixedClip'},
    'clip_groups': None,
    'skip_nonfinite': True,
    'skip_spikes': False,
    'max_consecutive_skips': 100,
    'fused': 'keep',
}


class GuardedWrapperMixin:
    """Replaces ``step`` of an `OptimWrapper` by one that clips, or truly skips."""

    optimizer: Any
    message_hub: Any
    clip_grad_kwargs: Any

    def init_guard(
        self,
        clip_grad: Mapping[str, Any] | None,
        options: Mapping[str, Any],
        loss_scale_control: str | None = None,
    ) -> None:
        """Set up what mmengine's wrapper does not have.

        Args:
            clip_grad: As in the config, not yet consumed; None for no clipping.
            options: Values for the keys of `ACTING_DEFAULTS`.
            loss_scale_control: See `LossScale`.

        Raises:
            ValueError: If a value is out of range; the message names the key.
        """
        options = {**ACTING_DEFAULTS, **options}
        fused = options.pop('fused')
        check_choice('fused', fused, ('keep', True, False))
        scale = LossScale(
            getattr(self, 'loss_scaler', None),
            self.optimizer,
            getattr(self, '_scale_update_param', None),
            loss_scale_control,
        )
        self.acting = ActingStep(
            self.optimizer, scale, **read_clip_grad(clip_grad), **options
        )
        self.acting.warn = self._warn
        self._fused_flag = FusedFlag(self.optimizer, fused)
        self._last_loss: Tensor | None = None
        self._is_broken = self._told_alone = False

    def initialize_count_status(
        self, model: nn.Module, *args: Any, **kwargs: Any
    ) -> None:
        super().initialize_count_status(model, *args, **kwargs)  # type: ignore[misc]
        self.acting.watch_model(model)

    def backward(self, loss: Tensor, **kwargs: Any) -> None:
        self._last_loss = loss.detach()
        super().backward(loss, **kwargs)  # type: ignore[misc]

    def step(self, **kwargs: Any) -> None:
        """Measure, clip and step, or skip.

        Raises:
            GuardStop: After `max_consecutive_skips` skipped steps in a row.
        """
        outcome = self._decide()
        if outcome is None:
            self._host_step(**kwargs)
            return
        is_taken = False

        def take() -> None:
            nonlocal is_taken
            is_taken = True  # from here on an error is the optimizer's own
            self.optimizer.step(**kwargs)

        try:
            self.acting.take(outcome, take)
        except GuardStop:
            raise
        except Exception:
            if is_taken:
                raise
            # gradients may be half clipped: this step is left out, later ones are
            # mmengine's
            self._give_up()

    def _decide(self) -> StepOutcome | None:
        """Return what to do, None if the guard itself failed: then the host steps."""
        if self._is_broken:
            return None
        if self.acting.on_outcome is None and not self._told_alone:
            self._told_alone = True
            self._warn(
                'the wrapper clips and skips, and writes no files: add GradAnomalyHook '
                'to custom_hooks for records and incidents'
            )
        try:
            outcome = self.acting.decide(self._is_last_loss_finite)
            # as mmengine does, so that the log line keeps its grad_norm
            if self.clip_grad_kwargs and self.acting.guarded.clip_value is None:
                self.message_hub.update_scalar('train/grad_norm', outcome.total_norm)
            return outcome
        except Exception:
            self._give_up()
            return None

    def _give_up(self) -> None:
        self._is_broken = True
        self.acting.detach_model()
        self._warn(
            'failed, mmengine steps without it from here on:\n' + traceback.format_exc()
        )

    def _warn(self, text: str) -> None:
        print_log(f'[grad guard] {text}', logger='current', level=logging.WARNING)

    def _host_step(self, **kwargs: Any) -> None:
        super().step(**kwargs)  # type: ignore[misc]

    def _is_last_loss_finite(self) -> bool:
        loss = self._last_loss
        return loss is not None and math.isfinite(float(loss.float().sum()))

    def state_dict(self) -> dict[str, Any]:
        with self._fused_flag.own():
            state = super().state_dict()  # type: ignore[misc]
        try:
            state['grad_guard'] = self.acting.guarded.state_dict()
        except Exception as error:
            self._warn(f'clip statistics are not saved: {error!r}')
        return state  # type: ignore[no-any-return]

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        # a copy: mmengine pops from it, and the caller may load it again
        state_dict = dict(state_dict)
        saved = state_dict.pop('grad_guard', None)
        super().load_state_dict(state_dict)  # type: ignore[misc]
        self._fused_flag.adopt()
        if saved is None:
            return
        try:
            self.acting.guarded.load_state_dict(saved)
        except Exception as error:
            self._warn(f'clip statistics start anew: {error!r}')


def read_clip_grad(clip_grad: Mapping[str, Any] | None) -> dict[str, Any]:
    """Turn mmengine's ``clip_grad`` into arguments of `GuardedStep`.

    Raises:
        ValueError: If ``type`` or a key is unknown; the message lists what is allowed.
    """
    if clip_grad is None:
        return {}
    if not isinstance(clip_grad, Mapping):
        raise ValueError(f'`clip_grad` must be a dict or None, got {clip_grad!r}')
    settings = dict(clip_grad)
    kind = settings.pop('type', 'norm')
    allowed = {
        'norm': {'max_norm', 'norm_type', 'error_if_nonfinite', 'foreach'},
        'value': {'clip_value', 'foreach'},
    }
    if kind not in allowed:
        raise ValueError(f"`clip_grad.type` must be 'norm' or 'value', got {kind!r}")
    unknown = settings.keys() - allowed[kind]
    if unknown:
        raise ValueError(
            f'`clip_grad` has unknown keys {sorted(unknown)}; '
            f'type {kind!r} takes {sorted(allowed[kind])}'
        )
    needed = 'max_norm' if kind == 'norm' else 'clip_value'
    if needed not in settings:
        raise ValueError(
            f'`clip_grad` of type {kind!r} needs `{needed}`, got {settings!r}'
        )
    if settings.get('error_if_nonfinite'):
        raise ValueError(
            '`clip_grad.error_if_nonfinite` cannot be True: the guard skips such steps'
        )
    if settings.get('norm_type') == 'inf':
        settings['norm_type'] = math.inf  # torch takes the word as well
    return {
        name: check_positive(f'clip_grad.{name}', settings[name])
        for name in ('max_norm', 'norm_type', 'clip_value')
        if name in settings
    }


class FusedFlag:
    """Whether torch's fused kernel is used; the saved state keeps the user's own flag.

    Args:
        optimizer: Of torch.
        fused: ``'keep'``, True or False.

    Raises:
        ValueError: If the optimizer has no fused kernel and one was asked for or ruled
            out.
    """

    def __init__(self, optimizer: Any, fused: Any) -> None:
        self.optimizer, self.fused = optimizer, fused
        self.adopt()

    def adopt(self) -> None:
        """Take the flags there are as the user's own, then set ours."""
        groups = self.optimizer.param_groups
        self._own = [{k: g[k] for k in ('fused', 'foreach') if k in g} for g in groups]
        if self.fused == 'keep':
            return
        for group in groups:
            if 'fused' not in group:
                raise ValueError(
                    f'`fused={self.fused}`: {type(self.optimizer).__name__} has no '
                    "fused kernel; use fused='keep'"
                )
            group['fused'] = self.fused
            if self.fused:
                group['foreach'] = False

    @contextmanager
    def own(self) -> Iterator[None]:
        """Give the user's flags back for as long as the state is read."""
        groups = self.optimizer.param_groups
        ours = [{k: g[k] for k in ('fused', 'foreach') if k in g} for g in groups]
        for group, flags in zip(groups, self._own):
            group.update(flags)
        try:
            yield
        finally:
            for group, flags in zip(groups, ours):
                group.update(flags)
