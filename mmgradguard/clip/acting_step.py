"""Takes or truly skips a step; shared by mmengine's wrappers and plain loops."""

from __future__ import annotations

import logging
import weakref
from typing import Any, Callable

from torch import nn
from torch.optim import Optimizer
from torch.utils.hooks import RemovableHandle

from mmgradguard.clip.guarded_step import GuardedStep, StepOutcome
from mmgradguard.compat import mark_as_stepped, unwrap_model
from mmgradguard.core.checks import check_count, find_unmatched
from mmgradguard.core.errors import GuardStop
from mmgradguard.ops.loss_scale import LossScale
from mmgradguard.ops.module_state import ModuleState
from mmgradguard.ops.ranks import agree_on_all_ranks

#: Batches that may raise before the first step was ever taken.
_SKIPS_BEFORE_FIRST_STEP = 2


_LOGGER = logging.getLogger('mmgradguard')


class ActingStep:
    """A guarded step with everything a true skip needs.

    A skipped step leaves weights, moments, step counts, buffers and attributes of the
    model as they were before the first forward since the last step.

    Args:
        optimizer: Whose step is guarded.
        loss_scale: Of its scaler.
        max_consecutive_skips: Skips in a row after which `GuardStop` is raised; the
            scaler's search of its scale does not count.
        **guarded: Arguments of `GuardedStep`.

    Raises:
        ValueError: If an argument is out of range; the message names it.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        loss_scale: LossScale,
        *,
        max_consecutive_skips: int = 100,
        **guarded: Any,
    ) -> None:
        self.optimizer, self.loss_scale = optimizer, loss_scale
        self.max_consecutive_skips = check_count(
            'max_consecutive_skips', max_consecutive_skips, 1
        )
        self.guarded = GuardedStep(optimizer, **guarded)
        #: Called with every outcome while the gradients are there.
        self.on_outcome: Callable[[StepOutcome], None] | None = None
        #: Decision of the running iteration, None where it took no step.
        self.last_outcome: StepOutcome | None = None
        self.num_consecutive_skips = 0
        self.has_stepped = False
        self.is_spoiled = False
        self._state: ModuleState | None = None
        self._is_synchronised = False
        #: Called with a sentence when the model's state cannot be kept.
        self.warn: Callable[[str], None] = _LOGGER.warning
        #: Whether ``optimizer.step`` was called since `decide`.
        self.is_taken = False
        self._forward_hook: RemovableHandle | None = None

    @property
    def is_watching(self) -> bool:
        """Whether a model was given."""
        return self._forward_hook is not None

    def watch_model(self, model: nn.Module) -> None:
        """Keep the model's state from before each accumulation, and learn its names."""
        self.detach_model()
        self.guarded.attach_model(model)
        self._warn_of_unmatched(model)
        self._state = ModuleState(model)
        self._is_synchronised = unwrap_model(model) is not model
        hook = _BeforeForward(self)
        self._forward_hook = model.register_forward_pre_hook(hook)

    def detach_model(self) -> None:
        """Stop watching the model's forward."""
        if self._forward_hook is not None:
            self._forward_hook.remove()
        self._forward_hook, self._state = None, None

    def begin_iteration(self) -> None:
        """Forget the decision of the iteration before."""
        self.last_outcome, self.is_taken = None, False

    def decide(self, is_loss_finite: Callable[[], bool]) -> StepOutcome:
        """Measure, and decide what happens to this step.

        Args:
            is_loss_finite: Asked only where gradients are not; tells a search of the
                loss scale from an overflow in the forward.
        """
        scale = self.loss_scale.get()
        self.loss_scale.unscale()
        outcome = self.guarded.look(loss_scale=scale)
        if self.is_spoiled:
            outcome.skipped, outcome.clip_coef = 'exception', 0.0
        elif outcome.skipped == 'nonfinite' and self.loss_scale.is_searching():
            # each rank sees its own loss, and all must call the step the same
            finite = is_loss_finite()
            if self._is_synchronised:
                finite = agree_on_all_ranks(finite, self.guarded.device)
            outcome.skipped = 'scaler' if finite else 'nonfinite'
        self.last_outcome, self.is_taken = outcome, False
        if self.on_outcome is not None:
            self.on_outcome(outcome)
        return outcome

    def take(self, outcome: StepOutcome, step: Callable[[], Any]) -> None:
        """Clip and step, or skip.

        Raises:
            GuardStop: After `max_consecutive_skips` skipped steps in a row.
        """
        if outcome.skipped is None:
            self.guarded.apply(outcome)
            # unscaled and found finite: a scaler's own step would ask the device again
            step()
            self.is_taken = True
            self.num_consecutive_skips, self.has_stepped = 0, True
        else:
            self._restore_state()
            mark_as_stepped(self.optimizer)
        self.loss_scale.update(overflowed=not outcome.is_finite)
        self.end_accumulation()
        if outcome.skipped not in (None, 'scaler'):
            self._count_skip(str(outcome.skipped))

    def can_skip_exception(self) -> bool:
        """Whether one more batch that raises may be passed over.

        A run whose every first batch raises has a broken setup, not a bad sample.
        """
        return self.has_stepped or self.num_consecutive_skips < _SKIPS_BEFORE_FIRST_STEP

    def drop_batch(self) -> None:
        """Give up the running accumulation: an iteration of it raised."""
        self.is_spoiled = True
        self._restore_state()
        self.loss_scale.update()
        self.optimizer.zero_grad()

    def skip_dropped(self) -> StepOutcome:
        """End an accumulation whose last iteration raised; no step comes any more.

        Raises:
            GuardStop: After `max_consecutive_skips` skipped steps in a row.
        """
        self.last_outcome = StepOutcome(float('nan'), [], skipped='exception')
        mark_as_stepped(self.optimizer)
        self.end_accumulation()
        self._count_skip('exception')
        return self.last_outcome

    def end_accumulation(self) -> None:
        """Forget the state from before: the next forward begins a new step."""
        self.is_spoiled = False
        if self._state is not None:
            self._state.forget()

    def _warn_of_unmatched(self, model: nn.Module) -> None:
        names = [name for name, _ in unwrap_model(model).named_parameters()]
        patterns = [g.pattern for g in self.guarded.groups if g.pattern is not None]
        for pattern in find_unmatched(patterns, names):
            # mmengine itself drops a warning that it printed before
            self.warn(
                f'`clip_groups`: no parameter matches {pattern!r}, such as '
                f'{names[0] if names else "none"}; this entry does nothing'
            )

    def _save_state(self) -> None:
        if self._state is not None and not self._state.is_saved:
            self._keep_state(self._state.save)

    def _restore_state(self) -> None:
        if self._state is not None:
            self._keep_state(self._state.restore)

    def _keep_state(self, action: Callable[[], None]) -> None:
        """Save or restore; where that is impossible the training goes on."""
        try:
            action()
        except Exception as error:
            self._state = None
            self.warn(
                'buffers and attributes of this model cannot be kept: a skip leaves '
                f'them as its forward wrote them ({error!r})'
            )

    def _count_skip(self, reason: str) -> None:
        self.num_consecutive_skips += 1
        if self.num_consecutive_skips >= self.max_consecutive_skips:
            raise GuardStop(
                f'{self.num_consecutive_skips} steps in a row were skipped '
                f'({reason}), `max_consecutive_skips` is '
                f'{self.max_consecutive_skips}: this does not recover by itself. '
                'Weights are as before the first of them'
            )


class _BeforeForward:
    """Forward pre-hook that saves the state; of a copied model it does nothing.

    Models are deep-copied and pickled in mid-training, by EMA and by users: that must
    neither fail nor drag the optimizer along.
    """

    def __init__(self, acting: ActingStep) -> None:
        self._acting = weakref.ref(acting)

    def __call__(self, module: nn.Module, inputs: Any) -> None:
        acting = self._acting()
        if acting is not None and module.training:
            acting._save_state()

    def __reduce__(self) -> tuple[Any, ...]:
        return _idle_hook, ()


def _idle_hook() -> Callable[[nn.Module, Any], None]:
    return _do_nothing


def _do_nothing(module: nn.Module, inputs: Any) -> None:
    """Stand for the hook on a copy."""
