"""mmengine adapters: hooks and optimizer wrappers. Importing this registers them."""

from mmgradguard.engine.hooks.adaptive_clip_hook import AdaptiveClipHook
from mmgradguard.engine.hooks.grad_anomaly_hook import GradAnomalyHook
from mmgradguard.engine.optim_wrappers import (
    AdaptiveClipAmpOptimWrapper,
    AdaptiveClipOptimWrapper,
)

__all__ = [
    'AdaptiveClipAmpOptimWrapper',
    'AdaptiveClipHook',
    'AdaptiveClipOptimWrapper',
    'GradAnomalyHook',
]
