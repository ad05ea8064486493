"""Line by line JSON: mmcv 1.x, mmengine's scalars, and the guard's own steps."""

from __future__ import annotations

import json
import math
from typing import Any

from synthetic_logs.averaging import Row
from synthetic_logs.header import base_lr, mmcv_config
from synthetic_logs.layouts import LAYOUTS
from synthetic_logs.series import Steps
from synthetic_logs.truth import Options


class JsonPrinter:
    """Prints rows as JSON objects, a line each."""

    def __init__(self, options: Options, steps: Steps) -> None:
        self.options, self.steps = options, steps

    def header(self) -> list[str]:
        """Return the first line of a .log.json, where it has one."""
        if not self.options.has_header:
            return []
        head = {
            'env_info': 'sys.platform: linux\nGPU 0,1,2,3,4,5,6,7: RTX 3090',
            'config': mmcv_config(self.options),
            'seed': 0,
            'exp_name': 'run.py',
        }
        return [json.dumps(head)]

    def row(self, row: Row, values: dict[str, float]) -> str:
        """Return the line of a training row."""
        ways = {'mmcv_json': self._mmcv, 'mmengine_scalars': self._scalars}
        return json.dumps(ways.get(self.options.format, self._step)(row, values))

    def validation(self, row: Row, metric: float) -> str:
        """Return the line of a validation."""
        if self.options.format == 'mmcv_json':
            head = {'mode': 'val', 'epoch': row.epoch + 1, 'iter': 625, 'lr': 0.0001}
            return json.dumps({**head, 'bbox_mAP': metric})
        tail = {'data_time': 0.003, 'time': 0.0827, 'step': row.epoch + 1}
        return json.dumps({'coco/bbox_mAP': metric, **tail})

    def other(self) -> tuple[str, ...]:
        """Return no lines: only rows are JSON."""
        return ()

    def _mmcv(self, row: Row, values: dict[str, float]) -> dict[str, Any]:
        rest = [name for name in values if name not in ('time', 'loss', 'grad_norm')]
        names = [*rest, 'loss', *(['grad_norm'] if 'grad_norm' in values else [])]
        return {
            'mode': 'train',
            'epoch': row.epoch + 1,
            'iter': row.inner + 1,
            'lr': round(self.steps.lrs[row.iteration], 5),
            'memory': 4885,
            'data_time': 0.01342,
            **{name: round(values[name], 5) for name in names},
            'time': round(values['time'], 5),
        }

    def _scalars(self, row: Row, values: dict[str, float]) -> dict[str, Any]:
        lr = self.steps.lrs[row.iteration]
        norm = {'grad_norm': values['grad_norm']} if 'grad_norm' in values else {}
        rest = {k: v for k, v in values.items() if k not in ('time', 'grad_norm')}
        return {
            **({'base_lr': base_lr(self.options)} if self.options.seed % 2 else {}),
            'lr': lr,
            'data_time': 0.005030198097229004,
            **norm,
            **rest,
            'time': values['time'],
            'epoch': row.epoch + 1,
            'iter': row.iteration + 1,
            'memory': 4100,
            'step': row.iteration + 1,
        }

    def _step(self, row: Row, values: dict[str, float]) -> dict[str, Any]:
        step = row.norm_span[0]
        norm = values['grad_norm']
        max_norm = LAYOUTS[self.options.layout].max_norm
        scale = self.steps.scales[step] if self.steps.scales else None
        is_finite = math.isfinite(norm)
        skips = self.options.kind == 'amp_skip' and not is_finite
        is_lost = math.isnan(norm) and not skips
        names = [name for name in values if name not in ('time', 'grad_norm')]
        return {
            'step': step,
            'iteration': row.iteration,
            'epoch': row.epoch,
            'total_norm': _plain(norm),
            'lr': self.steps.lrs[row.iteration],
            'losses': {name: _plain(values[name]) for name in names},
            'max_norm': max_norm,
            'clip_coef': min(1.0, max_norm / norm) if is_finite and norm else 1.0,
            'skipped': 'scaler' if skips else None,
            'loss_scale': scale,
            'nonfinite_params': 113 if is_lost else 0,
        }


def _plain(value: float) -> float | str:
    """Name what strict JSON has no number for."""
    if math.isfinite(value):
        return value
    return 'nan' if math.isnan(value) else 'inf' if value > 0 else '-inf'
