"""What an optimizer step costs with the guard, side by side in one run.

The parameters are those of mmdet's DETR-R50: 41 M in 235 trainable tensors. Each
figure is the median of interleaved rounds on one thread, so that a busy machine slows
all of them alike.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from typing import Callable

import torch
from mmengine.config import Config
from mmengine.optim import OptimWrapper
from mmengine.registry import init_default_scope
from rich.console import Console
from rich.table import Table

from mmgradguard import AdaptiveClipOptimWrapper
from mmgradguard.engine.watcher import StepWatcher
from mmgradguard.incident.monitor import Iteration, Monitor
from mmgradguard.incident.settings import MonitorSettings
from mmgradguard.ops.module_state import ModuleState
from mmgradguard.ops.rng import capture_rng

CLIP = {'max_norm': 0.1, 'norm_type': 2}


def build_detr() -> torch.nn.Module:
    """Return mmdet's DETR-R50, without downloading its weights."""
    import mmdet
    from mmdet.registry import MODELS

    init_default_scope('mmdet')
    root = f'{mmdet.__path__[0]}/.mim/configs'
    config = Config.fromfile(f'{root}/detr/detr_r50_8xb2-150e_coco.py')
    config.model.backbone.init_cfg = None
    return MODELS.build(config.model)


def steps(model: torch.nn.Module, fused: bool) -> dict[str, Callable[[], None]]:
    """Return the steps to compare; each has optimizer state of its own."""
    params = [p for p in model.parameters() if p.requires_grad]
    for param in params:
        param.grad = torch.zeros_like(param)

    def optimizer() -> torch.optim.Optimizer:
        return torch.optim.AdamW(params, lr=0.0, weight_decay=0.0, fused=fused)

    plain = OptimWrapper(optimizer(), clip_grad=dict(CLIP))
    acting = AdaptiveClipOptimWrapper(optimizer(), clip_grad=dict(CLIP))
    acting.acting.watch_model(model)
    watched = OptimWrapper(optimizer(), clip_grad=dict(CLIP))
    monitor = Monitor(None, lambda *_: None, settings=MonitorSettings())
    StepWatcher(
        watched,
        model,
        16,
        lambda look: look(),
        lambda outcome, guarded, scale: monitor.observe(outcome, guarded.table, scale),
    )

    def watch() -> None:
        monitor.begin(Iteration(0, 0, ''))
        watched.step()
        monitor.end({'loss': 1.0}, 1e-4)

    return {
        'mmengine OptimWrapper': plain.step,
        'AdaptiveClipOptimWrapper': acting.step,
        'GradAnomalyHook, watching': watch,
    }


def refill_grads(model: torch.nn.Module) -> Callable[[], None]:
    """Return what sets fresh gradients, of a norm that every step has to clip."""
    params = [p for p in model.parameters() if p.requires_grad]
    grads = [torch.randn_like(p) * 1e-2 for p in params]

    def refill() -> None:
        torch._foreach_copy_([p.grad for p in params], grads)

    return refill


def measure(
    functions: dict[str, Callable[[], None]],
    rounds: int,
    prepare: Callable[[], None] = lambda: None,
) -> dict[str, list[float]]:
    """Time each function once a round, in turn; preparing is not timed."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for function in functions.values():
        function()
    for _ in range(rounds):
        for name, function in functions.items():
            prepare()
            start = time.perf_counter()
            function()
            times[name].append((time.perf_counter() - start) * 1e3)
    return times


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--rounds', type=int, default=15)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    model = build_detr().train()
    table = Table(title=f'{platform.processor() or platform.machine()}, 1 thread')
    for heading in ('AdamW', 'step', 'median ms', 'against mmengine'):
        table.add_column(heading)
    for fused in (False, True):
        functions = steps(model, fused)
        times = measure(functions, rounds, refill_grads(model))
        base = statistics.median(times['mmengine OptimWrapper'])
        for name, values in times.items():
            median = statistics.median(values)
            kind = 'fused' if fused else 'default'
            table.add_row(kind, name, f'{median:.1f}', f'{median / base:.3f}')
    state = ModuleState(model)
    for name, function in (
        ('state of buffers and attributes', state.save),
        ('random state', capture_rng),
    ):
        values = measure({name: function}, 50)[name]
        table.add_row('', name, f'{statistics.median(values):.2f}', '')
    Console().print(table)


if __name__ == '__main__':
    main()
