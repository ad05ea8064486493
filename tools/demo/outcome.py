"""Read what a run left behind: its losses, weights, incidents and last words."""

from __future__ import annotations

import json
import math
import pickle
import re
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterable

from demo.launch import scalars_file

Json = Dict[str, Any]
#: The loss at the start is the mean of this many iterations, and at the end of that.
FIRST, LAST = 10, 30

_ERROR = re.compile(r'^(?:\w+\.)*\w*(?:Error|Exception|Interrupt|GuardStop)\b.*')


class OutcomeError(Exception):
    """A run did not leave the file that a figure is read from."""


@dataclass(frozen=True)
class Curve:
    """The logged training rows of a run, ordered; `iter` counts from 1."""

    rows: list[Json]

    def loss(self, *, after: int, until: int) -> float:
        """Return the mean logged loss of the iterations in ``(after, until]``."""
        values = [r['loss'] for r in self.rows if after < r['iter'] <= until]
        return sum(values) / len(values) if values else math.nan

    @property
    def last(self) -> int:
        """Number of iterations logged."""
        return self.rows[-1]['iter'] if self.rows else 0

    @property
    def first_loss(self) -> float:
        """Mean of the first iterations."""
        return self.loss(after=0, until=FIRST)

    @property
    def final_loss(self) -> float:
        """Mean of the last iterations; of a very short run, of its last tenth."""
        span = LAST if self.last >= 4 * LAST else FIRST
        return self.loss(after=self.last - span, until=self.last)


def read_rows(path: Path) -> list[Json]:
    """Return the JSON objects of a file, one a line; a cut last line is left out."""
    rows = []
    for line in path.read_text(encoding='utf-8').splitlines():
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue
    return [row for row in rows if isinstance(row, dict)]


def read_curve(work_dir: Path) -> Curve:
    """Return the losses of the newest run in ``work_dir``; empty if it logged none."""
    path = scalars_file(work_dir)
    rows = read_rows(path) if path else []
    return Curve([row for row in rows if 'iter' in row and 'loss' in row])


def read_validation(work_dir: Path) -> float | None:
    """Return the last COCO mAP that the run measured, or None."""
    path = scalars_file(work_dir)
    rows = read_rows(path) if path else []
    values = [row['coco/bbox_mAP'] for row in rows if 'coco/bbox_mAP' in row]
    return values[-1] if values else None


def guard_dir(work_dir: Path) -> Path:
    """Return the guard's folder of the newest run.

    Raises:
        OutcomeError: If there is none.
    """
    folders = sorted(work_dir.glob('*/grad_guard'))
    if not folders:
        raise OutcomeError(f'{work_dir}: the guard wrote nothing')
    return folders[-1]


def read_incidents(folder: Path) -> list[Json]:
    """Return the incidents of a guard's folder in the order they happened.

    Raises:
        OutcomeError: If one cannot be read.
    """
    incidents = []
    for path in folder.glob('incidents/*/incident.json'):
        try:
            incidents.append(json.loads(path.read_text(encoding='utf-8')))
        except ValueError as error:
            raise OutcomeError(f'{path}: no JSON ({error})') from error
    return sorted(incidents, key=lambda incident: incident['iteration'])


def count_skips(folder: Path) -> dict[str, int]:
    """Return how many steps were skipped, by reason, from `steps.jsonl`."""
    path = folder / 'steps.jsonl'
    rows = read_rows(path) if path.is_file() else []
    reasons = [row['skipped'] for row in rows if row.get('skipped')]
    return {reason: reasons.count(reason) for reason in sorted(set(reasons))}


def last_words(log: Path) -> str | None:
    """Return the exception that ended a run, as Python printed it, or None."""
    lines = log.read_text(encoding='utf-8', errors='replace').splitlines()
    found = [line for line in lines if _ERROR.match(line)]
    return found[-1] if found else None


def has_finite_weights(work_dir: Path) -> bool | None:
    """Tell whether every weight of the last checkpoint is finite; None without one."""
    pointer = work_dir / 'last_checkpoint'
    if not pointer.is_file():
        return None
    checkpoint = load_tensors(Path(pointer.read_text(encoding='utf-8').strip()))
    return all_finite(checkpoint['state_dict'].values())


def all_finite(tensors: Iterable[Any]) -> bool:
    """Tell whether no tensor holds a NaN or an infinity."""
    return all(bool(tensor.isfinite().all()) for tensor in tensors)


class _Inert:
    """Stands for every object of a checkpoint that is no tensor."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __call__(self, *args: Any, **kwargs: Any) -> _Inert:
        return self

    def __setstate__(self, state: Any) -> None:
        pass

    def __setitem__(self, key: Any, value: Any) -> None:
        pass  # subclasses of dict are filled through this

    def extend(self, values: Any) -> None:
        pass  # and subclasses of list through this


class _TensorUnpickler(pickle.Unpickler):
    """Builds tensors and containers; imports and calls nothing else.

    ``weights_only=True`` refuses mmengine's checkpoints altogether, because of the
    message hub in them, which nobody asks for here.
    """

    def find_class(self, module: str, name: str) -> Any:
        is_torch = module in ('torch', 'torch.storage', 'torch._utils')
        if is_torch or (module, name) == ('collections', 'OrderedDict'):
            return super().find_class(module, name)
        return _Inert


def load_tensors(path: Path) -> Any:
    """Load a checkpoint with everything but its tensors left out."""
    import torch

    reader = types.ModuleType('tensor_pickle')
    reader.Unpickler = _TensorUnpickler  # type: ignore[attr-defined]
    return torch.load(
        path, map_location='cpu', pickle_module=reader, weights_only=False
    )
