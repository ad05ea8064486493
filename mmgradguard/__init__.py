"""Find, survive and explain exploding gradients in detector training.

Importing this package is cheap: no torch, no mmengine. The hooks and wrappers are
imported on first use, and registered with mmengine as soon as mmengine is there.
"""

from __future__ import annotations

from typing import Any

from mmgradguard.presets import config_path
from mmgradguard.registration import (
    import_or_explain,
    register,
    register_when_imported,
)
from mmgradguard.version import __version__

_EXPORTS = {
    'GradGuard': 'mmgradguard.guard',
    'FaultInjectionHook': 'mmgradguard.testing',
    'GradAnomalyHook': 'mmgradguard.engine',
    'AdaptiveClipHook': 'mmgradguard.engine',
    'AdaptiveClipOptimWrapper': 'mmgradguard.engine',
    'AdaptiveClipAmpOptimWrapper': 'mmgradguard.engine',
}

__all__ = ['__version__', 'config_path', 'register', *_EXPORTS]


def __getattr__(name: str) -> Any:
    # mmengine resolves type='mmgradguard.GradAnomalyHook' through this
    if name not in _EXPORTS:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    return getattr(import_or_explain(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_EXPORTS])


register_when_imported()
