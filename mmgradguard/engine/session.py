"""One guard per run, however many hooks ask for it: they join this session."""

from __future__ import annotations

import atexit
import logging
from pathlib import Path
from typing import Any, Callable

from mmengine.dist import get_rank
from mmengine.optim import OptimWrapperDict

from mmgradguard.clip.acting_step import ActingStep
from mmgradguard.clip.guarded_step import GuardedStep, StepOutcome
from mmgradguard.compat import unwrap_model
from mmgradguard.core.errors import GuardStop
from mmgradguard.core.wall import Wall
from mmgradguard.engine.average import guard_average
from mmgradguard.engine.checkpoints import CheckpointKeeper, find_nonfinite_state
from mmgradguard.engine.exceptions import guard_train_step
from mmgradguard.engine.guarded_wrapper import GuardedWrapperMixin
from mmgradguard.engine.host import (
    describe_place,
    ema_models,
    is_log_line,
    is_saving,
    largest_lr,
    read_losses,
)
from mmgradguard.engine.log_line import report_window
from mmgradguard.engine.seams import replace_method
from mmgradguard.engine.watcher import StepWatcher
from mmgradguard.incident.monitor import Iteration, Monitor
from mmgradguard.incident.run_files import RunFiles
from mmgradguard.incident.settings import MonitorSettings

_KEY = 'grad_guard'
_ATTRIBUTE = '_grad_guard_session'


class RunSession:
    """Ties the guard to one runner: seams, monitor, files, checkpoints.

    Hooks join it in ``before_run``; the first that joined drives it, the others only
    contribute their settings. Public methods never raise, but for `GuardStop`: a
    failure is logged once and switches off that part of the guard.
    """

    def __init__(self, runner: Any) -> None:
        self.runner = runner
        self.hooks: list[Any] = []
        self.settings = MonitorSettings()
        self.out_dir: Any = None
        self.on_fatal, self.on_exception = 'warn', 'raise'
        self.monitor: Monitor | None = None
        self._watchers: list[StepWatcher] = []
        self._undo: list[Callable[[], None]] = []
        self._try = Wall(lambda text: self._log('ERROR', text))
        self._loaded: dict[str, Any] = {}
        self._checkpoints = CheckpointKeeper(runner)
        self._saw_nonfinite = False
        #: Whether the running iteration raised and was passed over.
        self.is_dropped = False
        self._fatal = ''
        self._has_begun = False

    @staticmethod
    def of(runner: Any) -> RunSession:
        """Return the session of a runner, made at the first call."""
        # on the runner itself: the two refer to each other and are collected together
        session = vars(runner).get(_ATTRIBUTE)
        if session is None:
            session = RunSession(runner)
            setattr(runner, _ATTRIBUTE, session)
        return session

    def join(self, hook: Any) -> bool:
        """Add a hook; False if one of its kind is there already and it stands down."""
        others = [other for other in self.hooks if other is not hook]
        if any(type(other) is type(hook) for other in others):
            name = type(hook).__name__
            self._log('WARNING', f'a second {name} stands down: one is enough')
            return False
        self.hooks = [*others, hook] if hook not in self.hooks else self.hooks
        return True

    def is_driven_by(self, hook: Any) -> bool:
        """Whether this hook is the one that passes events on."""
        return bool(self.hooks) and self.hooks[0] is hook

    def start(self) -> None:
        """Put the seams in; the run is about to begin its loop."""
        self._try('setup', self._start)

    def before_iter(self, batch_idx: int, batch: Any) -> None:
        """Begin an iteration."""
        self._try('recording', self._before_iter, batch_idx, batch)

    def after_iter(self, batch_idx: int, outputs: Any) -> None:
        """Finish an iteration.

        Raises:
            GuardStop: If weights are not finite and ``on_fatal='stop'``.
        """
        # of a dropped iteration the outputs are those of the last good one
        seen = {} if self.is_dropped else outputs
        self._try('recording', self._after_iter, seen)
        if self.monitor is None:
            return
        at_log_line = self._try('log line', is_log_line, self.runner, batch_idx)
        is_due = at_log_line or self._try('checkpoints', is_saving, self.runner)
        if self._saw_nonfinite or is_due:
            self.check_weights()
        if at_log_line:
            args = (self.runner, self.monitor, self._log, self._fatal)
            self._try('log line', report_window, *args)

    def check_weights(self) -> None:
        """Look for NaN or Inf in weights, moments and EMA.

        Raises:
            GuardStop: If there are some and ``on_fatal='stop'``.
        """
        self._try('weights', self._check_weights)

    def record_exception(self, error: Exception, action: str) -> None:
        """Leave an incident of an iteration that raised."""
        if self.monitor is None:
            return
        bad = self._try(
            'weights', find_nonfinite_state, self.runner, self._optimizers()
        )
        kept = self._try('checkpoints', self._pin) if bad else None
        # a matcher that dies of lost weights is to be followed by a check of them
        self._saw_nonfinite = bool(bad)
        self._try('recording', self.monitor.fail, error, action, bad or (), kept)

    def record_dropped_step(self, lr: float | None, max_norm: float | None) -> None:
        """Record the step that did not happen because its iteration raised."""
        if self.monitor is not None:
            self._try('recording', self.monitor.skip_step, lr, max_norm)

    def record_last_step(self) -> None:
        """Record a step after which training stops before the hooks see it."""
        if self.monitor is not None:
            lr = largest_lr(self._optimizers())
            self._try('recording', self.monitor.end, {}, lr)

    def name_incident(self, stop: GuardStop) -> None:
        """Add to the reason of a stop where to read on."""
        if self.monitor is not None:
            stop.name_incident(self.monitor.last_incident)

    def note_saving(self, checkpoint: dict[str, Any]) -> None:
        """Add our state to a checkpoint, and remember whether it is finite."""
        self._try('checkpoints', self._note_saving, checkpoint)

    def note_loaded(self, checkpoint: dict[str, Any]) -> None:
        """Take our state from a checkpoint that the run resumes from."""
        self._try('checkpoints', self._note_loaded, checkpoint)

    def finish(self) -> None:
        """Undo the seams, judge what is open, write the report; twice is fine."""
        atexit.unregister(self.finish)
        while self._undo:
            self._undo.pop()()
        self._try('closing', self._close)

    # Below runs behind the wall of `_try`

    def _log(self, level: str, text: str) -> None:
        # mmengine prints the source line with an ERROR, which only distracts here
        number = logging.INFO if level == 'INFO' else logging.WARNING
        self.runner.logger.log(number, f'[grad guard] {text}')

    def _wrappers(self) -> list[Any]:
        wrapper = self.runner.optim_wrapper
        if isinstance(wrapper, OptimWrapperDict):
            return list(wrapper.optim_wrappers.values())
        return [wrapper]

    def _optimizers(self) -> list[Any]:
        return [wrapper.optimizer for wrapper in self._wrappers()]

    def _start(self) -> None:
        runner = self.runner
        self.finish()  # where train() is called again after an interrupt
        # a run that dies outside of train_step, in a data worker say, closes as well
        atexit.register(self.finish)
        out_dir = Path(self.out_dir or Path(runner.log_dir) / _KEY)
        self.monitor = Monitor(
            RunFiles(out_dir, lambda text: self._log('ERROR', text)),
            self._log,
            rank=get_rank(),
            device=next((str(p.device) for p in runner.model.parameters()), 'cpu'),
            settings=self.settings,
        )
        self.monitor.recorder.has_begun = self._has_begun
        names = [name for name, _ in unwrap_model(runner.model).named_parameters()]
        self.monitor.module_norms.warn_of_unmatched(names, self._log)
        if self._loaded:
            self._try_loading(
                lambda: self.monitor.load_state_dict(self._loaded['monitor'])
            )
        for wrapper in self._wrappers():
            if isinstance(wrapper, GuardedWrapperMixin):
                self._join_acting(wrapper.acting)
            else:
                self._watch(wrapper)
        self._replace(runner.model, 'train_step', guard_train_step(self))
        is_acting = any(isinstance(w, GuardedWrapperMixin) for w in self._wrappers())
        self.monitor.recorder.is_acting = is_acting
        for ema in ema_models(runner) if is_acting else ():
            self._replace(ema, 'update_parameters', guard_average(ema, self._outcomes))

    def _try_loading(self, load: Callable[[], None]) -> None:
        try:
            load()
        except Exception as error:
            self._log('WARNING', f'statistics start anew, the saved are odd: {error!r}')

    def _replace(self, owner: Any, name: str, method: Callable[..., Any]) -> None:
        self._undo.append(replace_method(owner, name, method))

    def _join_acting(self, acting: ActingStep) -> None:
        def observe(outcome: StepOutcome) -> None:
            self._try('recording', self._observe, outcome, acting.guarded, 1.0)

        if not acting.is_watching:  # of an OptimWrapperDict mmengine hands no model
            acting.watch_model(self.runner.model)
        acting.on_outcome = observe
        acting.guarded.spikes.warmup = self.settings.warmup
        self._undo.append(lambda: setattr(acting, 'on_outcome', None))
        self._undo.append(acting.detach_model)

    def _watch(self, wrapper: Any) -> None:
        watcher = StepWatcher(
            wrapper,
            self.runner.model,
            self.settings.warmup,
            lambda look: self._try('recording', look),
            self._observe,
        )
        number = len(self._watchers)
        if self._loaded:
            self._try_loading(
                lambda: watcher.guarded.load_state_dict(
                    self._loaded['watchers'][number]
                )
            )
        self._watchers.append(watcher)
        self._undo.append(watcher.undo)

    def _observe(
        self, outcome: StepOutcome, guarded: GuardedStep, scale: float
    ) -> None:
        assert self.monitor is not None
        if not outcome.is_finite or outcome.norm_overflow:
            self._saw_nonfinite = True
        self.monitor.observe(outcome, guarded.table, scale)

    def _outcomes(self) -> list[StepOutcome]:
        """Return what acting wrappers decided in this iteration; none between steps."""
        acting = [w.acting for w in self._wrappers() if hasattr(w, 'acting')]
        return [a.last_outcome for a in acting if a.last_outcome is not None]

    def _before_iter(self, batch_idx: int, batch: Any) -> None:
        if self.monitor is None:
            return
        runner = self.runner
        self._saw_nonfinite = self.is_dropped = False
        for wrapper in self._wrappers():
            if isinstance(wrapper, GuardedWrapperMixin):
                wrapper.acting.begin_iteration()
        place = describe_place(runner, batch_idx)
        self.monitor.begin(Iteration(runner.iter, runner.epoch, place, batch))

    def _after_iter(self, outputs: Any) -> None:
        if self.monitor is not None:
            self.monitor.end(read_losses(outputs), largest_lr(self._optimizers()))

    def _check_weights(self) -> None:
        monitor = self.monitor
        if monitor is None or not monitor.weights_are_finite:
            return
        bad = find_nonfinite_state(self.runner, self._optimizers())
        if not bad:
            return
        kept = self._pin()
        is_stopping = self.on_fatal == 'stop'
        monitor.mark_weights_bad(bad, is_stopping=is_stopping, checkpoint=kept)
        self._fatal = (
            f'{len(bad)} tensors of weights, moments or EMA hold NaN or Inf, such as '
            f'{bad[0][0]}. {_where_to_resume(kept)}'
        )
        self._log('ERROR', f'WEIGHTS ARE NOT FINITE: {self._fatal}')
        if is_stopping:
            stop = GuardStop(self._fatal)
            self.name_incident(stop)
            self.finish()
            raise stop

    def _pin(self) -> Path | None:
        # one process links it; the others may be about to die, and name what there is
        keeper = self._checkpoints
        return keeper.pin() if get_rank() == 0 else keeper.newest_finite

    def _note_saving(self, checkpoint: dict[str, Any]) -> None:
        if self.monitor is not None:
            checkpoint[_KEY] = self._state(self.monitor)
        self._checkpoints.note_saved(checkpoint)

    def _note_loaded(self, checkpoint: dict[str, Any]) -> None:
        if not self.runner._resume:
            return  # weights to start from: another run's history means nothing
        loaded = checkpoint.get(_KEY)
        self._loaded = loaded if isinstance(loaded, dict) else {}
        self._checkpoints.note_loaded(checkpoint, self.runner._load_from)

    def _state(self, monitor: Monitor) -> dict[str, Any]:
        return {
            'monitor': monitor.state_dict(),
            'watchers': [w.guarded.state_dict() for w in self._watchers],
        }

    def _close(self) -> None:
        monitor, self.monitor = self.monitor, None
        if monitor is None:
            return
        # train() may be called again on this runner, and goes on
        self._loaded = self._state(monitor)
        self._has_begun = monitor.recorder.has_begun
        self._watchers.clear()
        monitor.close()
        if get_rank() == 0 and monitor.files is not None:
            from mmgradguard.report.write import try_report

            path = try_report(monitor.files.out_dir, self._tell_of_report(monitor))
            if path is not None:
                self._log('INFO', f'report: {path}')

    def _tell_of_report(self, monitor: Monitor) -> Callable[[str], None]:
        is_told = monitor.files is not None and monitor.files.is_unusable
        return lambda text: None if is_told else self._log('WARNING', text)


def _where_to_resume(kept: Path | None) -> str:
    """Return what the log says; nothing may stand behind the path that is copied."""
    if kept is None:
        return 'No checkpoint with finite weights was written before.'
    return f'The newest checkpoint with finite weights is kept: resume from {kept}'
