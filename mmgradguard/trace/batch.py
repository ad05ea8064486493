"""Which images a batch holds, and what is wrong with their ground truth.

Nothing of mmdet is imported: a data sample is anything with ``metainfo``, boxes are
any tensor under a name that says so.
"""

from __future__ import annotations

from typing import Any, Iterator, Mapping

import torch
from torch import Tensor

#: A box this many times the image's size is not an annotation any more.
_ABSURD = 100.0
_ID_KEYS = ('img_id', 'image_id', 'sample_idx', 'token', 'id')
_PATH_KEYS = ('img_path', 'filename', 'file_name', 'lidar_path', 'path')


def describe_samples(batch: Any, max_notes: int = 5) -> list[dict[str, Any]]:
    """Return ``{index, img_id, img_path, culprit, notes}`` for each image of a batch.

    A sample whose input or ground truth is not finite, or absurdly large, is a culprit;
    a degenerate or missing ground truth is common and only noted.

    Args:
        batch: What mmengine hands to a hook, or the batch of a plain loop: a dict or
            tuple with ``inputs`` and ``data_samples``, or anything with tensors in it.
        max_notes: Notes per sample and kind of trouble.
    """
    samples = _data_samples(batch)
    if not samples:
        samples = [{}] * _batch_size(batch)
    inputs = _inputs(batch, len(samples))
    return [
        _describe(index, sample, inputs[index] if inputs else None, max_notes)
        for index, sample in enumerate(samples)
    ]


def _describe(index: int, sample: Any, value: Any, max_notes: int) -> dict[str, Any]:
    bad, notes = [], []
    meta = _metainfo(sample)
    try:
        bad += _judge_input(value)
        for name, target in _fields(sample):
            some_bad, some_notes = _judge_target(name, target, meta)
            bad += some_bad[:max_notes]
            notes += some_notes[:max_notes]
    except Exception as error:  # a structure of somebody's own; the others still count
        notes.append(f'could not be looked at: {error!r}')
    return {
        'index': index,
        'img_id': _first(meta, _ID_KEYS),
        'img_path': _first(meta, _PATH_KEYS),
        'culprit': bool(bad),
        'notes': bad + notes,
    }


def _data_samples(batch: Any) -> list[Any]:
    if isinstance(batch, Mapping):
        samples = batch.get('data_samples')
        if isinstance(samples, (list, tuple)):
            return list(samples)
        for key in ('targets', 'labels', 'target'):
            if isinstance(batch.get(key), (list, tuple)):
                return list(batch[key])
    if isinstance(batch, (list, tuple)):
        if len(batch) == 2 and isinstance(batch[1], (list, tuple)):
            return list(batch[1])
        if batch and all(
            _metainfo(item) or isinstance(item, Mapping) for item in batch
        ):
            return list(batch)
    return []


def _batch_size(batch: Any) -> int:
    for tensor in _tensors(batch):
        if tensor.dim():
            return int(tensor.shape[0])
    return 0


def _inputs(batch: Any, num_samples: int) -> list[Any]:
    """Return what belongs to each sample of the input, or nothing if unclear."""
    inputs = batch
    if isinstance(batch, Mapping):
        inputs = batch.get('inputs', batch.get('img', batch.get('images')))
    elif isinstance(batch, (list, tuple)) and batch:
        inputs = batch[0]
    if isinstance(inputs, Mapping):
        inputs = inputs.get('img', inputs.get('imgs'))
    if isinstance(inputs, Tensor) and not inputs.dim():
        return []
    if isinstance(inputs, (list, tuple, Tensor)) and len(inputs) == num_samples:
        return list(inputs)
    return []


def _metainfo(sample: Any) -> Mapping[str, Any]:
    meta = getattr(sample, 'metainfo', None)
    if isinstance(meta, Mapping):
        return meta
    return sample if isinstance(sample, Mapping) else {}


def _fields(sample: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the ground-truth tensors of a sample by dotted name."""
    if hasattr(sample, 'all_items'):
        items = sample.all_items()
    elif isinstance(sample, Mapping):
        items = sample.items()
    else:
        return
    for name, value in items:
        name = str(name)
        inner = getattr(value, 'tensor', None)
        if isinstance(inner, Tensor):
            value = inner
        if isinstance(value, Tensor):
            yield name, value
        elif depth < 2 and not name.startswith('pred'):
            for inner_name, inner_value in _fields(value, depth + 1):
                yield f'{name}.{inner_name}', inner_value


def _tensors(value: Any, depth: int = 0) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif depth < 4 and isinstance(value, Mapping):
        for item in value.values():
            yield from _tensors(item, depth + 1)
    elif depth < 4 and isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item, depth + 1)


def _judge_input(value: Any) -> list[str]:
    for tensor in _tensors(value):
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            bad = int((~torch.isfinite(tensor)).sum())
            return [f'input holds {bad} NaN or Inf of {tensor.numel()} values']
    return []


def _judge_target(
    name: str, value: Tensor, meta: Mapping[str, Any]
) -> tuple[list[str], list[str]]:
    """Return what is non-finite in a target, and what is merely odd."""
    if name.rpartition('.')[2] in ('ids', 'img_id') or value.is_sparse:
        return [], []
    value = value.detach()
    bad, notes = [], []
    if value.is_floating_point():
        # one row per box, point or label, also where there are none
        rows = value.unsqueeze(-1).flatten(1) if value.dim() else value.view(1, 1)
        bad += _tell(~torch.isfinite(rows).all(1), rows, f'{name}[{{}}] is not finite')
    is_boxes = 'box' in name and value.dim() == 2 and value.shape[1] == 4
    if is_boxes and 'ignored' not in name:
        absurd, odd = _judge_boxes(name, value, meta)
        bad, notes = bad + absurd, notes + odd
    return bad, notes


def _judge_boxes(
    name: str, boxes: Tensor, meta: Mapping[str, Any]
) -> tuple[list[str], list[str]]:
    if not len(boxes):
        return [], [f'{name} is empty: no ground truth in this image']
    bad: list[str] = []
    sizes = boxes[:, 2:] - boxes[:, :2]
    notes = _tell((sizes <= 0).any(1), boxes, f'{name}[{{}}] has no area')
    shape = meta.get('img_shape')
    if isinstance(shape, (list, tuple)) and len(shape) >= 2:
        height, width = float(shape[0]), float(shape[1])
        limit = _ABSURD * max(height, width, 1.0)
        absurd = (boxes.abs() > limit).any(1) & torch.isfinite(boxes).all(1)
        bad += _tell(absurd, boxes, f'{name}[{{}}] is absurdly large')
        corner = boxes.new_tensor([width, height])
        outside = (boxes[:, 2:] <= 0) | (boxes[:, :2] >= corner)
        words = f'{name}[{{}}] lies outside of the image'
        notes += _tell(outside.any(1) & ~absurd, boxes, words)
    return bad, notes


def _tell(which: Tensor, rows: Tensor, words: str) -> list[str]:
    """Return one note for each row that is marked."""
    indices = which.nonzero().flatten().tolist()
    return [f'{words.format(i)}: {_numbers(rows[i])}' for i in indices]


def _numbers(row: Tensor) -> str:
    shown = ', '.join(f'{x:.4g}' for x in row[:8].double().tolist())
    return f'[{shown}{", ..." if row.numel() > 8 else ""}]'


def _first(meta: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    for key in keys:
        value = meta.get(key)
        if hasattr(value, 'item'):  # a tensor, or a number of NumPy's
            try:
                value = value.item()
            except (ValueError, RuntimeError):
                continue  # it holds several
        if isinstance(value, (str, int, float)):
            return value
        if isinstance(value, (list, tuple)) and value and isinstance(value[0], str):
            return value[0]  # multi-view detectors keep one file per camera
    return None
