"""One of two gloo processes; prints what it saw. Started by test_distributed.py."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).parents[1]))

from toy import make_runner, weights

work_dir, scenario = sys.argv[1], sys.argv[2]
rank = int(os.environ['RANK'])
torch.set_num_threads(1)
dist.init_process_group('gloo')
hooks: list[dict[str, Any]] = [dict(type='GradAnomalyHook')]
faults = []
if scenario != 'watch':
    act: dict[str, Any] = dict(type='AdaptiveClipHook')
    if scenario == 'refused':
        act['on_exception'] = 'skip'
    hooks.append(act)
if scenario in ('nan', 'watch') and rank == 1:
    faults.append(dict(kind='forward_nan', iteration=2, target='backbone.0'))
if scenario == 'amp' and rank == 1:
    faults += [
        dict(kind='forward_nan', iteration=i, target='backbone.0') for i in (2, 3, 4)
    ]
if scenario == 'raise' and rank == 1:
    faults.append(dict(kind='exception', iteration=2, target='head'))
wrapper = None
if scenario == 'amp':
    wrapper = dict(
        type='AdaptiveClipAmpOptimWrapper',
        optimizer=dict(type='SGD', lr=1e-3),
        loss_scale=dict(init_scale=64.0),
        max_consecutive_skips=3,
    )
runner = make_runner(
    work_dir,
    hooks,
    optim_wrapper=wrapper,
    faults=faults,
    epochs=2,
    launcher='pytorch',
    cfg=dict(model_wrapper_cfg=dict(type='MMDistributedDataParallel', device_ids=None)),
)
error = ''
try:
    runner.train()
except Exception as caught:
    error = f'{type(caught).__name__}: {caught}'
state = weights(runner)
Path(work_dir, f'rank{rank}.json').write_text(
    json.dumps(
        {
            'error': error,
            'iter': runner.iter,
            'finite': all(bool(torch.isfinite(v).all()) for v in state.values()),
            'sum': {k: float(v.double().sum()) for k, v in state.items()},
            'log_dir': str(runner.log_dir),
        }
    )
)
# a rank that raised leaves the others waiting; nothing of it is part of the test
os._exit(0)
