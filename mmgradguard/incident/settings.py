"""What a user may choose about watching; the same for mmengine and plain loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence

from mmgradguard.core.checks import check_count, check_flag, check_patterns


@dataclass
class MonitorSettings:
    """How much is recorded.

    Args:
        interval: Optimizer steps between two rows of norms per module.
        warmup: Optimizer steps observed before a finite spike is called one.
        module_groups: Regular expressions that group parameters; None goes by the
            module tree.
        max_incidents: Written per run, besides those that end it; further ones are
            only logged and counted.
        trace: Look for where an anomaly sits.
        bundle: Keep the batch of an incident.

    Raises:
        ValueError: If a value is out of range.
    """

    interval: int = 50
    warmup: int = 16
    module_groups: Sequence[str] | None = None
    max_incidents: int = 20
    trace: bool = True
    bundle: bool = True

    def __post_init__(self) -> None:
        check_count('interval', self.interval, 1)
        check_count('warmup', self.warmup, 1)
        self.module_groups = check_patterns('module_groups', self.module_groups)
        check_count('max_incidents', self.max_incidents, 0)
        check_flag('trace', self.trace)
        check_flag('bundle', self.bundle)
