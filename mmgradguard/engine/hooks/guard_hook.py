"""What both hooks have in common: they join the session and pass events on."""

from __future__ import annotations

from typing import Any

from mmengine.hooks import Hook

from mmgradguard.engine.seams import arm_train
from mmgradguard.engine.session import RunSession


class GuardHook(Hook):
    """Base of the guard's hooks; one of them drives the session of a run."""

    # before LoggerHook, which prints what we put into the message hub
    priority = 'NORMAL'

    def prepare(self) -> None:
        """Finish construction: the next training may be ended by the guard."""
        self._joined = False
        arm_train(self)

    def join_settings(self, session: RunSession) -> None:
        """Hand this hook's settings to the session, at the start of a run."""
        raise NotImplementedError

    def before_run(self, runner: Any) -> None:
        # also called by val() and test(), where there is nothing to guard
        if not hasattr(runner.optim_wrapper, 'update_params'):
            return
        session = RunSession.of(runner)
        self._joined = session.join(self)
        if self._joined:
            self.join_settings(session)

    def before_train(self, runner: Any) -> None:
        if self._drives(runner):
            RunSession.of(runner).start()

    def before_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None
    ) -> None:
        if self._drives(runner):
            RunSession.of(runner).before_iter(batch_idx, data_batch)

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None
    ) -> None:
        if self._drives(runner):
            RunSession.of(runner).after_iter(batch_idx, outputs)

    def after_train_epoch(self, runner: Any) -> None:
        if self._drives(runner):
            # before CheckpointHook writes
            RunSession.of(runner).check_weights()

    def before_save_checkpoint(self, runner: Any, checkpoint: dict[str, Any]) -> None:
        if self._drives(runner):
            RunSession.of(runner).note_saving(checkpoint)

    def after_load_checkpoint(self, runner: Any, checkpoint: dict[str, Any]) -> None:
        if self._drives(runner):
            RunSession.of(runner).note_loaded(checkpoint)

    def after_train(self, runner: Any) -> None:
        if self._drives(runner):
            RunSession.of(runner).finish()

    def after_run(self, runner: Any) -> None:
        # where the guard stopped the run, after_train was not called
        if self._drives(runner):
            RunSession.of(runner).finish()

    def _drives(self, runner: Any) -> bool:
        return self._joined and RunSession.of(runner).is_driven_by(self)
