"""What stands before the rows: environment and config, as the frameworks write them."""

from __future__ import annotations

from synthetic_logs.layouts import LAYOUTS
from synthetic_logs.truth import Options

RULE = '-' * 60
TYPES = {
    'detr': 'ConditionalDETR',
    'retina': 'RetinaNet',
    'two_stage': 'FasterRCNN',
    'stream': 'Petr3D',
    'unnamed': 'PlanningNet',
    'fcos': 'FCOS',
}


def mmcv_config(options: Options) -> str:
    """Return a config of the time of mmcv 1.x."""
    layout = LAYOUTS[options.layout]
    clip = f'dict(max_norm={layout.max_norm}, norm_type=2)'
    clip = clip if options.has_norm else 'None'
    cumulative = ''
    if options.accumulation > 1:
        cumulative = (
            "type='GradientCumulativeOptimizerHook', "
            f'cumulative_iters={options.accumulation}, '
        )
    lines = [
        'model = dict(',
        f"    type='{TYPES[options.layout]}',",
        "    backbone=dict(type='ResNet', depth=50, norm_eval=True))",
        f"optimizer = dict(type='AdamW', lr={base_lr(options)}, weight_decay=0.0001)",
        f'optimizer_config = dict({cumulative}grad_clip={clip})',
        f"lr_config = dict(policy='{options.schedule}', warmup='linear', "
        f'warmup_iters={options.warmup}, warmup_ratio=0.001)',
        'runner = ' + _mmcv_runner(options),
        f'log_config = dict(interval={options.interval}, '
        "hooks=[dict(type='TextLoggerHook')])",
    ]
    if options.is_amp:
        lines.append("fp16 = dict(loss_scale='dynamic')")
    return '\n'.join([*lines, "work_dir = './work_dirs/run'", 'gpu_ids = range(0, 8)'])


def _mmcv_runner(options: Options) -> str:
    if 'iter' in options.format:
        return f"dict(type='IterBasedRunner', max_iters={options.num_iterations})"
    return "dict(type='EpochBasedRunner', max_epochs=12)"


def mmengine_config(options: Options) -> str:
    """Return a config of mmengine, with defaults written out as its runner does."""
    layout = LAYOUTS[options.layout]
    wrapper = 'AmpOptimWrapper' if options.is_amp else 'OptimWrapper'
    clip = f'dict(max_norm={layout.max_norm}, norm_type=2)'
    by_epoch = 'iter' not in options.format
    lines = [
        "default_scope = 'mmdet'",
        'default_hooks = dict(',
        "    timer=dict(type='IterTimerHook'),",
        f"    logger=dict(type='LoggerHook', interval={options.interval}),",
        "    param_scheduler=dict(type='ParamSchedulerHook'))",
        'log_processor = dict(',
        f"    type='LogProcessor', window_size={options.window}, by_epoch={by_epoch})",
        'model = dict(',
        f"    type='{TYPES[options.layout]}',",
        "    backbone=dict(type='ResNet', depth=50, norm_eval=True))",
        'optim_wrapper = dict(',
        f"    type='{wrapper}',",
        f"    optimizer=dict(type='AdamW', lr={base_lr(options)}, weight_decay=1e-4),",
        f'    clip_grad={clip if options.has_norm else None},',
        f'    accumulative_counts={options.accumulation}'
        + (",\n    loss_scale='dynamic')" if options.is_amp else ')'),
        f"param_scheduler = [dict(type='LinearLR', start_factor=0.001, by_epoch=False, "
        f'begin=0, end={options.warmup})]',
        "launcher = 'pytorch'",
        "work_dir = './work_dirs/run'",
    ]
    return '\n'.join(lines)


def base_lr(options: Options) -> float:
    """Return the lr that the config asks for."""
    return LAYOUTS[options.layout].lr * (0.05 if options.is_fine_tune else 1.0)


def text_header(options: Options, prefix: str) -> list[str]:
    """Return the lines before the rows of a text log; `prefix` is time and logger."""
    is_mmengine = options.is_mmengine
    config = mmengine_config(options) if is_mmengine else mmcv_config(options)
    title = '' if is_mmengine else 'Environment info:'
    return [
        f'{prefix}{title}',
        RULE,
        'sys.platform: linux',
        'Python: 3.8.16 (default, Mar  2 2023, 03:21:46) [GCC 11.2.0]',
        'CUDA available: True',
        'GPU 0,1,2,3,4,5,6,7: NVIDIA GeForce RTX 3090',
        'PyTorch: 1.13.1',
        'MMEngine: 0.10.3' if is_mmengine else 'MMCV: 1.7.1',
        RULE,
        f'{prefix}{"" if is_mmengine else "Distributed training: True"}',
        f'{prefix}Config:',
        *config.split('\n'),
        '',
        f'{prefix}Set random seed to 0, deterministic: False',
    ]
