"""The places where the guard touches the host; each can be undone."""

from __future__ import annotations

import logging
import weakref
from typing import Any, Callable

from mmengine.logging import print_log
from mmengine.runner import Runner

from mmgradguard.core.errors import GuardStop

#: Names of our hooks and wrappers by which an active guard is known.
_GUARD_HOOKS = ('GradAnomalyHook', 'AdaptiveClipHook')
_GUARD_WRAPPERS = ('AdaptiveClipOptimWrapper', 'AdaptiveClipAmpOptimWrapper')

#: Hooks that were built and whose run has not begun.
_WAITING: Any = weakref.WeakSet()


class _Replacement:
    """A method on an instance that a copy of the instance does not inherit.

    EMA and users copy models in mid-training; the copy must call its own method.
    """

    def __init__(self, owner: Any, name: str, method: Callable[..., Any]) -> None:
        self._owner, self._name, self._method = owner, name, method
        vars(self).update(vars(method))  # the counter mark of mmengine's schedulers

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._method(*args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        # of the copy, whose fields are not filled yet: this is its class's own method
        return getattr, (self._owner, self._name)


def replace_method(
    owner: Any, name: str, method: Callable[..., Any]
) -> Callable[[], None]:
    """Put ``method`` on the instance; returns what puts back exactly what was there."""
    had_own, own = name in vars(owner), vars(owner).get(name)
    replacement = _Replacement(owner, name, method)
    setattr(owner, name, replacement)

    def undo() -> None:
        if vars(owner).get(name) is not replacement:
            return  # somebody wrapped it after us: theirs stays, ours is inert by then
        if had_own:
            setattr(owner, name, own)
        else:
            delattr(owner, name)

    return undo


def arm_train(guard: Any = None) -> None:
    """Wrap the next call of ``Runner.train``, once.

    It ends a run that the guard stops without a traceback, and says loudly when a
    config imports this package but no guard is active: losing it silently is the worst
    case.

    Args:
        guard: A hook whose run is still to come; where several runs are built before
            the first is trained, the wrap comes back for the next.
    """
    if guard is not None:
        _WAITING.add(guard)
    if getattr(Runner.train, '_is_guarded', False):
        return
    original = Runner.train
    is_spent = False

    def train(runner: Runner) -> Any:
        nonlocal is_spent
        if Runner.train is train:
            Runner.train = original
        if is_spent:  # somebody wrapped it in between and still calls it
            return original(runner)
        is_spent = True
        for hook in runner.hooks:
            _WAITING.discard(hook)
        _warn_if_inactive(runner)
        try:
            return original(runner)
        except GuardStop as stop:
            runner.logger.warning(f'[grad guard] TRAINING STOPPED: {stop}')
            runner.call_hook('after_run')
            return runner.model
        finally:
            if _WAITING:
                arm_train()

    train._is_guarded = True  # type: ignore[attr-defined]
    train.__doc__ = original.__doc__
    train.__wrapped__ = original  # type: ignore[attr-defined]
    Runner.train = train


def _warn_if_inactive(runner: Any) -> None:
    imports = (runner.cfg.get('custom_imports') or {}).get('imports') or []
    imports = [imports] if isinstance(imports, str) else imports
    if not any(str(name).split('.')[0] == 'mmgradguard' for name in imports):
        return
    hooks = [type(hook).__name__ for hook in runner.hooks]
    wrapper = runner.cfg.get('optim_wrapper') or {}
    wrapper_type = str(wrapper.get('type', '')).rpartition('.')[2]
    if any(name in hooks for name in _GUARD_HOOKS) or wrapper_type in _GUARD_WRAPPERS:
        return
    print_log(
        '\n'
        + '=' * 78
        + '\n[grad guard] NO GUARD IS ACTIVE, though this config imports '
        'mmgradguard.\nProbably `custom_hooks` of the config replaced those of its '
        'base. Add\n    default_hooks = dict(grad_guard=dict(type="GradAnomalyHook"))\n'
        'which is merged, not replaced.\n' + '=' * 78,
        logger=runner.logger,
        level=logging.WARNING,
    )
