"""Text logs of mmcv 1.x and of mmengine."""

from __future__ import annotations

import datetime
import random
from typing import Iterator

from synthetic_logs.averaging import Row
from synthetic_logs.header import text_header
from synthetic_logs.truth import Options

NOISE_LINES = (
    'Saving checkpoint at {} epochs',
    'Exp name: run_{}',
    'workers per gpu reduced to {}',
)


class TextPrinter:
    """Prints rows as lines; what only looks differ in is drawn once a log."""

    def __init__(self, options: Options, lrs: list[float], rng: random.Random) -> None:
        self.options, self.lrs, self.rng = options, lrs, rng
        self.now = datetime.datetime(2023, 1, 2, 3, 4, 5)
        self.is_short_date = rng.random() < 0.4
        self.digits = 6 if rng.random() < 0.15 else 4
        self.name = rng.choice(['mmdet', 'mmdet3d'])
        self.has_memory = rng.random() < 0.9
        # mmengine records the norm in the first step, the losses after it
        self.is_norm_first = options.accumulation == 1

    def header(self) -> list[str]:
        """Return the lines before the first row."""
        if not self.options.has_header:
            return []
        return text_header(self.options, self._prefix())

    def row(self, row: Row, values: dict[str, float]) -> str:
        """Return the line of a training row."""
        self.now += datetime.timedelta(seconds=values['time'] * self.options.interval)
        if self.options.is_mmengine:
            return self._prefix() + self._mmengine(row, values)
        return self._prefix() + self._mmcv(row, values)

    def validation(self, row: Row, metric: float) -> str:
        """Return the line of a validation."""
        by_epoch = 'iter' not in self.options.format
        if not self.options.is_mmengine:
            place = f'Epoch(val) [{row.epoch + 1}][625]'
            place = place if by_epoch else 'Iter(val) [625]'
            return f'{self._prefix()}{place}\tbbox_mAP: {metric:.4f}, bbox_mAP_50: 0.0'
        place = f'Epoch(val) [{row.epoch + 1}][625/625]'
        place = place if by_epoch else 'Iter(val) [625/625]'
        return (
            f'{self._prefix()}{place}    coco/bbox_mAP: {metric:.4f}  '
            'data_time: 0.0030  time: 0.0827'
        )

    def other(self) -> Iterator[str]:
        """Yield lines that come between rows at times."""
        if self.rng.random() < 0.02:
            line = self.rng.choice(NOISE_LINES).format(self.rng.randint(1, 12))
            yield self._prefix() + line

    def _prefix(self) -> str:
        if not self.options.is_mmengine:
            stamp = self.now.strftime('%Y-%m-%d %H:%M:%S')
            return f'{stamp},{self.rng.randrange(1000):03d} - {self.name} - INFO - '
        form = '%m/%d %H:%M:%S' if self.is_short_date else '%Y/%m/%d %H:%M:%S'
        return f'{self.now.strftime(form)} - mmengine - INFO - '

    def _eta(self, row: Row, values: dict[str, float]) -> str:
        left = (self.options.num_iterations - row.iteration) * values['time']
        return str(datetime.timedelta(seconds=int(left)))

    def _mmcv(self, row: Row, values: dict[str, float]) -> str:
        options = self.options
        place = f'Epoch [{row.epoch + 1}][{row.inner + 1}/{options.epoch_length}]'
        if 'iter' in options.format:
            place = f'Iter [{row.iteration + 1}/{options.num_iterations}]'
        items = [
            f'{place}\tlr: {self.lrs[row.iteration]:.3e}',
            f'eta: {self._eta(row, values)}',
            f'time: {values["time"]:.3f}',
            'data_time: 0.013',
            'memory: 4885',
        ]
        rest = [name for name in values if name not in ('time', 'loss', 'grad_norm')]
        names = [name for name in [*rest, 'loss', 'grad_norm'] if name in values]
        items += [f'{name}: {values[name]:.4f}' for name in names]
        return ', '.join(items)

    def _mmengine(self, row: Row, values: dict[str, float]) -> str:
        options, digits = self.options, self.digits
        lr = self.lrs[row.iteration]
        width = len(str(options.epoch_length))
        inner = str(row.inner + 1).rjust(width)
        place = f'Epoch(train)  [{row.epoch + 1}][{inner}/{options.epoch_length}]'
        if 'iter' in options.format:
            inner = str(row.iteration + 1).rjust(len(str(options.num_iterations)))
            place = f'Iter(train) [{inner}/{options.num_iterations}]'
        items = [
            f'{place}  lr: {lr:.{digits}e}',
            f'eta: {self._eta(row, values)}',
            f'time: {values["time"]:.{digits}f}',
            f'data_time: {0.0131:.{digits}f}',
        ]
        if self.has_memory:
            items.append('memory: 15943')
        norm = ['grad_norm'] if 'grad_norm' in values else []
        names = [name for name in values if name not in ('time', 'grad_norm')]
        names = norm + names if self.is_norm_first else names + norm
        items += [f'{name}: {values[name]:.{digits}f}' for name in names]
        return '  '.join(items)
