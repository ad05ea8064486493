"""What happens when ``train_step`` raises: an incident, and perhaps the next batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping

import torch

from mmgradguard.core.errors import GuardStop
from mmgradguard.engine.guarded_wrapper import GuardedWrapperMixin
from mmgradguard.engine.host import largest_lr

if TYPE_CHECKING:
    from mmgradguard.engine.session import RunSession


def guard_train_step(session: RunSession) -> Callable[..., Any]:
    """Return the model's ``train_step``, which leaves an incident when it raises.

    No hook of mmengine runs when training raises, so this is the only place. With
    ``on_exception='skip'`` the batch is dropped and the log variables of the last good
    iteration are returned: hooks such as mmdet's `CheckInvalidLossHook` need finite
    ones.
    """
    host_train_step = session.runner.model.train_step
    last_outputs: Mapping[str, Any] = {'loss': torch.zeros(())}

    def train_step(data: Any, optim_wrapper: Any) -> Any:
        nonlocal last_outputs
        count = getattr(optim_wrapper, '_inner_count', None)
        try:
            outputs = host_train_step(data, optim_wrapper=optim_wrapper)
        except GuardStop as stop:
            session.record_last_step()
            session.name_incident(stop)
            raise
        except BaseException as error:
            if not isinstance(error, Exception):  # Ctrl-C, say
                session.finish()
                raise
            skips = session.on_exception == 'skip' and _can_drop(optim_wrapper)
            session.record_exception(error, 'skipped' if skips else 'raised')
            if not skips:
                session.finish()
                raise
            session.is_dropped = True
            _drop_batch(session, optim_wrapper, count)
            return last_outputs
        if _is_good(optim_wrapper):
            last_outputs = outputs
        return outputs

    return train_step


def _is_good(wrapper: Any) -> bool:
    outcome = getattr(getattr(wrapper, 'acting', None), 'last_outcome', None)
    return outcome is not None and outcome.skipped is None


def _can_drop(wrapper: Any) -> bool:
    if not isinstance(wrapper, GuardedWrapperMixin):
        return False
    acting = wrapper.acting
    # an error after the step comes too late: the weights have moved
    return acting.can_skip_exception() and not acting.is_taken


def _drop_batch(session: RunSession, wrapper: Any, count: int | None) -> None:
    """Go on as if the iteration had been counted and its step skipped."""
    wrapper.acting.drop_batch()
    if wrapper._inner_count == count:  # it raised before backward counted it
        wrapper._inner_count += 1
    if not wrapper.should_update():
        return
    if hasattr(wrapper, '_global_step'):  # schedulers check the order of calls by it
        wrapper._global_step += 1
    session.record_dropped_step(
        largest_lr([wrapper.optimizer]), wrapper.acting.guarded.max_norm
    )
    try:
        wrapper.acting.skip_dropped()
    except GuardStop as stop:
        session.name_incident(stop)
        raise
