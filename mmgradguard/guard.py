"""`GradGuard`: the same guard for a plain PyTorch loop."""

from __future__ import annotations

import logging
import math
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from mmgradguard.clip.acting_step import ActingStep
from mmgradguard.clip.guarded_step import StepOutcome
from mmgradguard.core.checks import check_choice, check_folder, refuse_unknown
from mmgradguard.core.errors import GuardStop
from mmgradguard.core.wall import Wall
from mmgradguard.incident.monitor import Iteration, Monitor
from mmgradguard.incident.plain_loop import (
    check_pair,
    check_state,
    parameter_names,
    read_losses,
)
from mmgradguard.incident.run_files import RunFiles
from mmgradguard.incident.settings import MonitorSettings
from mmgradguard.ops.loss_scale import LossScale
from mmgradguard.ops.norms import find_nonfinite

_LOGGER = logging.getLogger('mmgradguard')


class GradGuard:
    """Clip, skip, record and explain the steps of a training loop.

    ::

        guard = GradGuard(model, optimizer, max_norm=0.1, out_dir='runs/1')
        for batch in loader:
            losses = model(batch)
            optimizer.zero_grad()
            sum(losses.values()).backward()
            guard.step(losses=losses, batch=batch)      # in place of optimizer.step()
        guard.close()

    `step` unscales gradients, clips or skips, steps and updates the scaler; the caller
    zeroes gradients as before. A skipped step leaves weights, moments, buffers and
    tensor attributes of the model as they were before the batch.

    Args:
        model: The model that is called in the loop, wrapped in DDP or not.
        optimizer: Any torch optimizer of its parameters.
        scaler: A GradScaler, if the loss is scaled by one.
        loss_fn: ``loss_fn(model, batch) -> dict of losses``, with which an incident's
            batch can be run again. Not needed to guard the training.
        max_norm: Ceiling of the gradient norm; None does not clip.
        clip_policy: Config of a clip policy.
        out_dir: Folder for ``steps.jsonl``, incidents and the report; None writes no
            files.
        clip_groups: List of ``(regex, max_norm or policy)``.
        norm_type: p of the norm.
        skip_nonfinite: Skip steps with NaN or Inf in a gradient.
        skip_spikes: Skip finite steps far outside of the run's own past.
        max_consecutive_skips: Skips in a row after which `GuardStop` is raised.
        on_exception: What `iteration` does with an exception: ``'raise'`` or
            ``'skip'``.
        interval: Steps between two rows of norms per module.
        warmup: Steps observed before a finite spike is called one.
        module_groups: Regular expressions that group parameters.
        max_incidents: Written per run.

    Raises:
        TypeError: If `model` is no module or `optimizer` no optimizer.
        ValueError: If an argument is out of range, or the optimizer holds none of the
            model's parameters.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: Optimizer,
        scaler: Any = None,
        loss_fn: Callable[[nn.Module, Any], Mapping[str, Tensor]] | None = None,
        max_norm: float | None = None,
        clip_policy: Any = None,
        out_dir: Any = None,
        *,
        clip_groups: Any = None,
        norm_type: float = 2.0,
        skip_nonfinite: bool = True,
        skip_spikes: bool = False,
        max_consecutive_skips: int = 100,
        on_exception: str = 'raise',
        interval: int = 50,
        warmup: int = 16,
        module_groups: Sequence[str] | None = None,
        max_incidents: int = 20,
        **unknown: Any,
    ) -> None:
        refuse_unknown(GradGuard, unknown)
        check_pair(model, optimizer)
        check_folder('out_dir', out_dir)
        if scaler is not None and not hasattr(scaler, 'is_enabled'):
            raise ValueError(f'`scaler` must be a GradScaler or None, got {scaler!r}')
        if loss_fn is not None and not callable(loss_fn):
            raise ValueError(f'`loss_fn` must be callable or None, got {loss_fn!r}')
        check_choice('on_exception', on_exception, ('raise', 'skip'))
        settings = MonitorSettings(
            interval=interval,
            warmup=warmup,
            module_groups=module_groups,
            max_incidents=max_incidents,
        )
        if isinstance(optimizer, torch.optim.LBFGS):
            raise ValueError(
                '`optimizer` must step on its own; LBFGS needs a closure that runs the '
                'model several times a step'
            )
        self.model, self.optimizer, self.loss_fn = model, optimizer, loss_fn
        self.on_exception = on_exception
        self._acting = ActingStep(
            optimizer,
            LossScale(scaler, optimizer),
            max_consecutive_skips=max_consecutive_skips,
            max_norm=max_norm,
            norm_type=norm_type,
            clip_policy=clip_policy,
            clip_groups=clip_groups,
            skip_nonfinite=skip_nonfinite,
            skip_spikes=skip_spikes,
            warmup=warmup,
        )
        self._acting.watch_model(model)
        self._acting.on_outcome = self._observe
        device = next((str(p.device) for p in model.parameters()), 'cpu')
        self._monitor = Monitor(
            None if out_dir is None else RunFiles(Path(out_dir), _LOGGER.error),
            lambda level, text: _LOGGER.log(getattr(logging, level), text),
            settings=settings,
            device=device,
        )
        self._monitor.recorder.is_acting = True
        self._monitor.module_norms.warn_of_unmatched(
            parameter_names(model), self._monitor.log
        )
        self._iteration = 0
        self._batch: Any = None
        self._is_open = False
        self._try = Wall(_LOGGER.error)

    def step(self, losses: Any = None, batch: Any = None) -> StepOutcome:
        """Take or skip one optimizer step; in place of ``optimizer.step()``.

        Args:
            losses: The loss, or a dict of loss terms, of this step; for the records.
            batch: What the model was given; for the samples in an incident.

        Returns:
            What was measured and done: ``total_norm, max_norm, clip_coef, skipped``.

        Raises:
            GuardStop: After `max_consecutive_skips` skipped steps in a row.
        """
        terms = read_losses(losses)
        self._try('recording', self._begin, self._batch if batch is None else batch)
        outcome = self._decide(terms)
        if outcome is None:
            return self._plain_step(terms)
        try:
            self._acting.take(outcome, self.optimizer.step)
        except GuardStop as stop:
            self._try('recording', self._monitor.end, terms, self._lr())
            stop.name_incident(self._monitor.last_incident)
            raise
        except BaseException:
            self._try('recording', self._monitor.end, terms, self._lr())
            raise
        self._try('recording', self._monitor.end, terms, self._lr())
        if not outcome.is_finite and outcome.skipped is None:
            self._try('weights', self._check_weights)
        if not self._is_open:
            self._iteration += 1
        return outcome

    @contextmanager
    def iteration(self, batch: Any = None) -> Iterator[None]:
        """Wrap forward, backward and `step`, so that an exception leaves an incident.

        With ``on_exception='skip'`` the batch is passed over instead: gradients are
        dropped, buffers restored, and the loop goes on after the ``with`` block.

        Raises:
            GuardStop: After `max_consecutive_skips` skipped steps in a row.
        """
        self._batch, self._is_open = batch, True
        self._acting.begin_iteration()
        self._try('recording', self._begin, batch)
        try:
            yield
        except GuardStop:
            raise
        except Exception as error:
            acting = self._acting
            skips = self.on_exception == 'skip' and acting.can_skip_exception()
            # an error after the step comes too late: the weights have moved
            skips = skips and not acting.is_taken
            action = 'skipped' if skips else 'raised'
            self._try('recording', self._monitor.fail, error, action)
            if not skips:
                raise
            acting.drop_batch()
            max_norm = acting.guarded.max_norm
            self._try('recording', self._monitor.skip_step, self._lr(), max_norm)
            try:
                acting.skip_dropped()
            except GuardStop as stop:
                stop.name_incident(self._monitor.last_incident)
                raise
        finally:
            self._batch, self._is_open = None, False
            self._iteration += 1

    def close(self) -> None:
        """Judge open incidents, write the report and let go of the model."""
        self._acting.detach_model()
        self._try('recording', self._monitor.close)
        if self._monitor.files is not None:
            from mmgradguard.report.write import try_report

            self._try('report', try_report, self._monitor.files.out_dir, self._tell)

    def state_dict(self) -> dict[str, Any]:
        """Return what `load_state_dict` needs; loads with ``weights_only=True``."""
        return {
            'acting': self._acting.guarded.state_dict(),
            'monitor': self._monitor.state_dict(),
            'iteration': self._iteration,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state: the same gradients give the same decisions.

        Raises:
            ValueError: If `state` is not what `state_dict` returned.
        """
        check_state(state)
        self._acting.guarded.load_state_dict(state['acting'])
        self._monitor.load_state_dict(state['monitor'])
        self._iteration = int(state['iteration'])

    def _decide(self, terms: Mapping[str, float]) -> StepOutcome | None:
        return self._try(  # type: ignore[no-any-return]
            'acting',
            self._acting.decide,
            lambda: all(map(math.isfinite, terms.values())),
        )

    def _plain_step(self, terms: Mapping[str, float]) -> StepOutcome:
        """Step as a loop without us would: the guard itself failed."""
        guarded, scale = self._acting.guarded, self._acting.loss_scale
        params = [p for p in guarded.table.params if p.grad is not None]
        scale.unscale()
        total = float('nan')
        if guarded.max_norm is not None and params:
            total = float(
                nn.utils.clip_grad_norm_(params, guarded.max_norm, guarded.norm_type)
            )
        if scale.scaler is None:
            self.optimizer.step()
        else:
            scale.scaler.step(self.optimizer)
        scale.update()
        self._acting.end_accumulation()
        if not self._is_open:
            self._iteration += 1
        return StepOutcome(total, [], max_norm=guarded.max_norm)

    def _begin(self, batch: Any) -> None:
        place = f'iteration {self._iteration + 1}'
        self._monitor.begin(Iteration(self._iteration, 0, place, batch))

    def _observe(self, outcome: StepOutcome) -> None:
        self._try(
            'recording', self._monitor.observe, outcome, self._acting.guarded.table
        )

    def _tell(self, text: str) -> None:
        files = self._monitor.files
        if files is None or not files.is_unusable:  # that was told
            _LOGGER.warning(text)

    def _lr(self) -> float | None:
        rates = [
            float(group['lr']) for group in self.optimizer.param_groups if 'lr' in group
        ]
        return max(rates) if rates else None

    def _check_weights(self) -> None:
        named = [(name, p.detach()) for name, p in self.model.named_parameters()]
        bad = [named[i] for i in find_nonfinite([tensor for _, tensor in named])]
        if bad and self._monitor.weights_are_finite:
            self._monitor.mark_weights_bad(bad, is_stopping=False)
            _LOGGER.error('WEIGHTS ARE NOT FINITE: nothing from here on can be used')
