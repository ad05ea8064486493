"""`AdaptiveClipHook`: lets the guard act on a run with mmengine's own wrapper."""

from __future__ import annotations

from typing import Any

from mmengine.dist import get_world_size
from mmengine.optim import OptimWrapperDict
from mmengine.registry import HOOKS

from mmgradguard.clip.groups import build_groups
from mmgradguard.core.checks import (
    check_choice,
    check_count,
    check_flag,
    refuse_unknown,
)
from mmgradguard.engine.adopt import adopt_optim_wrapper
from mmgradguard.engine.guarded_wrapper import ACTING_DEFAULTS
from mmgradguard.engine.hooks.guard_hook import GuardHook


@HOOKS.register_module()
class AdaptiveClipHook(GuardHook):
    """Make the optimizer wrapper that mmengine built clip and truly skip.

    Works with any config, also with ``--amp``, which rewrites the wrapper's type. Files
    are written as by `GradAnomalyHook`, whose settings count if both are there.

    Args:
        on_fatal: ``'stop'`` (default) ends the run when weights are not finite,
            ``'warn'`` says so at every log line.
        on_exception: ``'raise'`` (default) leaves an incident and raises; ``'skip'``
            passes over the batch, where there is one process.
        loss_scale_control: Of `AdaptiveClipAmpOptimWrapper`, for a run with ``--amp``.
        **options: Those of `AdaptiveClipOptimWrapper`: ``clip_policy, clip_groups,
            skip_nonfinite, skip_spikes, max_consecutive_skips, fused``.

    Raises:
        ValueError: If a value is out of range or an argument unknown.
    """

    def __init__(
        self,
        *,
        on_fatal: str = 'stop',
        on_exception: str = 'raise',
        loss_scale_control: str | None = None,
        **options: Any,
    ) -> None:
        refuse_unknown(AdaptiveClipHook, options, ACTING_DEFAULTS)
        self.on_fatal = check_choice('on_fatal', on_fatal, ('stop', 'warn'))
        self.on_exception = check_choice(
            'on_exception', on_exception, ('raise', 'skip')
        )
        self.loss_scale_control = check_choice(
            'loss_scale_control', loss_scale_control, (None, 'adaptive')
        )
        self.options = {**ACTING_DEFAULTS, **options}
        build_groups(self.options['clip_policy'], self.options['clip_groups'])
        check_count('max_consecutive_skips', self.options['max_consecutive_skips'], 1)
        for key in ('skip_nonfinite', 'skip_spikes'):
            check_flag(key, self.options[key])
        check_choice('fused', self.options['fused'], ('keep', True, False))
        self._given = options
        self.prepare()

    def join_settings(self, session: Any) -> None:
        runner = session.runner
        if self.on_exception == 'skip' and get_world_size() > 1:
            raise ValueError(
                "AdaptiveClipHook: `on_exception='skip'` needs a single process, this "
                f'run has {get_world_size()}: one rank would skip and the others wait. '
                "Use on_exception='raise'"
            )
        if self.on_exception == 'skip' and isinstance(
            runner.optim_wrapper, OptimWrapperDict
        ):
            raise ValueError(
                "AdaptiveClipHook: `on_exception='skip'` needs a single optimizer: of "
                "an OptimWrapperDict some may have stepped. Use on_exception='raise'"
            )
        session.on_exception = self.on_exception
        if self.on_fatal == 'stop':
            session.on_fatal = 'stop'
        adopted = adopt_optim_wrapper(runner, self.options, self.loss_scale_control)
        if not adopted and self._given:
            runner.logger.warning(
                '[grad guard] the optimizer wrapper in the config already clips: '
                f'{", ".join(sorted(self._given))} of AdaptiveClipHook stand down'
            )
