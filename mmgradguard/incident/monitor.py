"""From measured steps to rows and incidents; knows no training framework."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

from torch import Tensor

from mmgradguard.clip.guarded_step import StepOutcome
from mmgradguard.clip.param_table import ParamTable
from mmgradguard.core.rules.spike import SpikeRule
from mmgradguard.core.types import StepSample, Verdict
from mmgradguard.incident.book import IncidentBook
from mmgradguard.incident.evidence import (
    Evidence,
    collect_evidence,
    describe_params,
    first_bad_place,
)
from mmgradguard.incident.judge import are_finite, fill_in, find_action, find_kind
from mmgradguard.incident.module_norms import ModuleNorms
from mmgradguard.incident.recorder import StepRecorder
from mmgradguard.incident.run_files import RunFiles
from mmgradguard.incident.settings import MonitorSettings
from mmgradguard.incident.window import LogWindow
from mmgradguard.ops.rng import capture_rng
from mmgradguard.trace.batch import describe_samples

#: Healthy steps remembered for comparison.
_HISTORY = 32
#: Of an unbroken run of abnormal steps, this many are written out, the rest counted.
_STREAK = 3


@dataclass
class Iteration:
    """Where the training is: mmengine's 0-based counters, its words, its batch."""

    iteration: int
    epoch: int
    place: str
    batch: Any = None


class Monitor:
    """Turns steps into ``steps.jsonl`` and incidents.

    Per iteration: `begin`, then `observe` at each optimizer step while its gradients
    are there, then `end` with the loss terms; or `fail` if the iteration raised.

    Args:
        files: Where to write; None writes nothing (a rank above 0 without trouble).
        log: Called with ``(level, sentence)``; levels are logging's names.
        settings: What the user chose.
        rank: Of this process.
        device: For the versions in an incident.
    """

    def __init__(
        self,
        files: RunFiles | None,
        log: Callable[[str, str], None],
        *,
        settings: MonitorSettings,
        rank: int = 0,
        device: str = 'cpu',
    ) -> None:
        self.files, self.log, self.rank = files, log, rank
        self.settings = settings
        self.window = LogWindow()
        self.step = 0
        #: Where weights were first seen to be lost, as an incident says it.
        self.weights_lost: dict[str, Any] | None = None
        self.recorder = StepRecorder(None if rank else files, log)
        self._book = IncidentBook(
            files,
            log,
            max_incidents=settings.max_incidents,
            rank=rank,
            device=device,
            bundle=settings.bundle,
        )
        self._loss_spikes = SpikeRule(warmup=settings.warmup)
        self._now = Iteration(0, 0, '')
        self._rng: dict[str, Any] | None = None
        self._seen: list[tuple[Evidence, ParamTable]] = []
        self._losses: list[Mapping[str, float]] = []
        self._param_norms: deque[list[float]] = deque(maxlen=_HISTORY)
        self._healthy: deque[StepSample] = deque(maxlen=_HISTORY)
        self._streak = 0
        self.module_norms = ModuleNorms(settings.module_groups)

    @property
    def weights_are_finite(self) -> bool:
        """Whether weights, moments and EMA were finite whenever they were looked at."""
        return self.weights_lost is None

    @property
    def last_incident(self) -> Path | None:
        """Folder of the newest incident that is on disk."""
        return self._book.last_written

    def begin(self, now: Iteration) -> None:
        """Start an iteration, before its forward draws random numbers."""
        self._now = now
        self._rng = capture_rng()
        self._seen.clear()

    def observe(
        self, outcome: StepOutcome, table: ParamTable, grads_scaled_by: float = 1.0
    ) -> None:
        """Look at a step before it is taken; an abnormal one is described."""
        evidence = Evidence(outcome)
        is_odd = not outcome.is_finite or outcome.norm_overflow or outcome.spike
        if is_odd and self.settings.trace:
            evidence = collect_evidence(
                outcome, table, self._param_norms, grads_scaled_by
            )
        self._seen.append((evidence, table))

    def end(self, losses: Mapping[str, float], lr: float | None) -> None:
        """Finish an iteration; without a step it is part of an accumulation."""
        if losses:
            self._losses.append(losses)
        if not self._seen:
            return
        means = _mean_losses(self._losses)
        self._losses.clear()
        seen, self._seen = self._seen, []
        for evidence, table in seen:
            self._record(evidence, table, means, lr)

    def fail(
        self,
        error: BaseException,
        action: str,
        bad_weights: Sequence[tuple[str, Tensor]] = (),
        checkpoint: Path | None = None,
    ) -> None:
        """Write the incident of an iteration that raised.

        With ``action='skipped'`` the training goes on, and the step that this iteration
        belongs to is recorded by `skip_step` when it is due.

        Args:
            error: What was raised.
            action: ``'skipped'`` or ``'raised'``.
            bad_weights: Weights that hold NaN or Inf, by name: they come before any
                other cause.
            checkpoint: The newest one with finite weights, where those are lost.
        """
        incident = self._new('exception', action)
        incident['exception'] = {
            'type': type(error).__name__,
            'message': str(error)[:2000],
        }
        if bad_weights:
            incident['verdict'] = Verdict.FATAL.value
            lost = self.weights_lost or self._describe_loss(bad_weights, checkpoint)
            incident['weights_lost'] = lost
            incident['params'] = describe_params(bad_weights)
            worst = incident['params'][0] if incident['params'] else None
            place = first_bad_place('weights', bad_weights[0][0], worst)
            incident['first_bad'] = place
        fill_in(incident, self._describe_batch(), None, {})
        self.window.num_incidents += 1
        self._seen.clear()
        self._publish(incident, None)

    def skip_step(self, lr: float | None, max_norm: float | None) -> None:
        """Record the step that did not happen because an iteration raised."""
        self._losses.clear()
        sample = StepSample(
            step=self.step, iteration=self._now.iteration, epoch=self._now.epoch,
            total_norm=math.nan, lr=lr, max_norm=max_norm, clip_coef=0.0,
            skipped='exception',
        )  # fmt: skip
        self._keep(sample)

    def mark_weights_bad(
        self,
        tensors: Sequence[tuple[str, Tensor]],
        *,
        is_stopping: bool,
        checkpoint: Path | None = None,
    ) -> None:
        """Weights, moments or EMA hold NaN or Inf: what led there is fatal.

        Args:
            tensors: Those that do, by name.
            is_stopping: Whether the training ends for it.
            checkpoint: The newest one with finite weights, if any is known.
        """
        self.weights_lost = self._describe_loss(tensors, checkpoint)
        if is_stopping:
            why = f'not finite: {tensors[0][0]}'
            place = (self.step, self._now.iteration)
            self.recorder.journal(*place, 'run', 'running', 'stopped', why)
        if self._book.close_as_fatal(self.weights_lost, is_stopping=is_stopping):
            return
        # no step looked abnormal before: say at least what is broken
        action = 'stopped' if is_stopping else 'none'
        incident = self._new('nonfinite_weights', action)
        incident['params'] = describe_params(tensors)
        worst = incident['params'][0] if incident['params'] else None
        incident['first_bad'] = first_bad_place('weights', tensors[0][0], worst)
        fill_in(incident, self._describe_batch(), None, {})
        self._publish(incident, None)

    def close(self) -> None:
        """Judge what is still open and close the files."""
        self._book.close()
        if self.files is not None:
            self.files.close()

    @property
    def place(self) -> str:
        """Where the training is, in the host's words."""
        return self._now.place

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs to count on."""
        return {'step': self.step, 'loss_spikes': self._loss_spikes.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue the count of steps."""
        self.step = int(state['step'])
        self._loss_spikes.load_state_dict(state['loss_spikes'])

    def _record(
        self,
        evidence: Evidence,
        table: ParamTable,
        losses: dict[str, float],
        lr: float | None,
    ) -> None:
        outcome = evidence.outcome
        if outcome.skipped == 'scaler' and not are_finite(losses):
            outcome.skipped = 'nonfinite'  # the forward itself overflowed
        sample = StepSample(
            step=self.step, iteration=self._now.iteration, epoch=self._now.epoch,
            total_norm=outcome.total_norm, lr=lr, losses=losses,
            max_norm=outcome.max_norm, clip_coef=outcome.clip_coef,
            skipped=outcome.skipped,
            loss_scale=outcome.loss_scale, nonfinite_params=len(outcome.nonfinite),
        )  # fmt: skip
        kind = find_kind(evidence, losses, self._loss_spikes)
        self.module_norms.note(outcome, table)
        if self.step % self.settings.interval == 0 or kind is not None:
            sample.module_norms = self.module_norms.of(outcome, table)
        self._keep(sample, is_healthy=kind is None)
        if kind is not None:
            self._streak += 1
            self._report(kind, evidence, losses)
        elif outcome.skipped is None and outcome.is_finite:
            self._streak = 0
            self._param_norms.append(outcome.param_norms)
            self._healthy.append(sample)
            self._loss_spikes.push(losses.get('loss', math.nan))

    def _report(
        self, kind: str, evidence: Evidence, losses: Mapping[str, float]
    ) -> None:
        """Write an incident, unless it only repeats the last one."""
        self.window.num_incidents += 1
        if self._streak > _STREAK or (not self.weights_are_finite and self._streak > 1):
            return
        incident = self._new(kind, find_action(evidence))
        fill_in(incident, self._describe_batch(), evidence, losses)
        self._publish(incident, evidence.outcome.total_norm)

    def _new(self, kind: str, action: str) -> dict[str, Any]:
        now = self._now
        # where training raised, the step was not counted yet
        step = self.step if kind == 'exception' else max(self.step - 1, 0)
        incident = self._book.new(
            kind=kind,
            action=action,
            iteration=now.iteration,
            epoch=now.epoch,
            step=step,
        )
        if not self.weights_are_finite or kind == 'nonfinite_weights':
            incident['verdict'] = Verdict.FATAL.value
        if self.weights_lost is not None:
            incident['weights_lost'] = self.weights_lost
        return incident

    def _describe_loss(
        self, tensors: Sequence[tuple[str, Tensor]], checkpoint: Path | None
    ) -> dict[str, Any]:
        return {
            'iteration': self._now.iteration,
            'epoch': self._now.epoch,
            'name': tensors[0][0],
            'num_tensors': len(tensors),
            'checkpoint': None if checkpoint is None else str(checkpoint),
        }

    def _publish(self, incident: dict[str, Any], total_norm: float | None) -> None:
        self._book.publish(
            incident,
            place=self._now.place,
            total_norm=total_norm,
            before=self._healthy,
            batch=self._now.batch,
            rng=self._rng,
        )

    def _keep(self, sample: StepSample, *, is_healthy: bool = True) -> None:
        """Count a step and write it."""
        self.step += 1
        self.window.add(sample, is_healthy=is_healthy)
        self.recorder.write(sample)
        self._book.follow(sample)

    def _describe_batch(self) -> list[dict[str, Any]]:
        try:
            return describe_samples(self._now.batch)
        except Exception as error:  # any batch of any user may come here
            self.log('WARNING', f'cannot describe the batch: {error!r}')
            return []


def _mean_losses(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for row in rows for name in row)
    means = {}
    for name in names:
        values = [row[name] for row in rows if name in row]
        means[name] = sum(values) / len(values)
    return means
