"""`GradAnomalyHook`: watches, explains, records; never changes the training."""

from __future__ import annotations

from typing import Any, Sequence

from mmengine.registry import HOOKS

from mmgradguard.core.checks import check_choice, check_folder, refuse_unknown
from mmgradguard.engine.hooks.guard_hook import GuardHook
from mmgradguard.incident.settings import MonitorSettings


@HOOKS.register_module()
class GradAnomalyHook(GuardHook):
    """Record gradient norms at every step and explain abnormal ones.

    Watching is inert: weights are bit-identical with and without this hook.

    Args:
        interval: Optimizer steps between two rows of norms per module in
            ``steps.jsonl``.
        warmup: Optimizer steps observed before a finite spike is called one.
        module_groups: Regular expressions that group parameters; None chooses 10 to 40
            groups by the module tree.
        on_fatal: ``'warn'`` or ``'stop'`` when weights are not finite any more.
        trace: Look for the origin of an anomaly.
        bundle: Keep the batch of an incident for replay.
        max_incidents: Written per run; further ones are only counted.
        out_dir: Folder for all files; None is ``<work_dir>/<timestamp>/grad_guard``.

    Raises:
        ValueError: If a value is out of range or an argument unknown.

    ==============================  ==================================================
    logged key                      meaning, over the window since the last log line
    ==============================  ==================================================
    train/grad_guard/norm_max       largest grad_norm of one step; nan if one was
    train/grad_guard/skipped        steps skipped
    train/grad_guard/bad_params     most parameters with NaN or Inf in one step
    train/grad_guard/incidents      incidents
    train/grad_guard/max_norm       threshold of the last step, where there is one
    train/grad_guard/clip_coef      smallest factor applied, where there is a threshold
    train/grad_guard/amp_scale      loss scale, under fp16
    ==============================  ==================================================
    """

    def __init__(
        self,
        *,
        interval: int = 50,
        warmup: int = 16,
        module_groups: Sequence[str] | None = None,
        on_fatal: str = 'warn',
        trace: bool = True,
        bundle: bool = True,
        max_incidents: int = 20,
        out_dir: str | None = None,
        **unknown: Any,
    ) -> None:
        refuse_unknown(GradAnomalyHook, unknown)
        self.settings = MonitorSettings(
            interval=interval,
            warmup=warmup,
            module_groups=module_groups,
            max_incidents=max_incidents,
            trace=trace,
            bundle=bundle,
        )
        self.on_fatal = check_choice('on_fatal', on_fatal, ('warn', 'stop'))
        self.out_dir = check_folder('out_dir', out_dir)
        self.prepare()

    def join_settings(self, session: Any) -> None:
        session.settings = self.settings
        session.out_dir = self.out_dir
        if self.on_fatal == 'stop':
            session.on_fatal = 'stop'
