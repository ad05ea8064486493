"""What is planted, where and when, and the config of each run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parents[2] / 'configs' / 'examples'
BATCH_SIZE = 4

SPIKE, INFINITE_BOX, FORWARD_INF = 'grad_spike', 'infinite_box', 'forward_inf'
SPIKE_TARGET = 'decoder.layers.1'
SPIKE_FACTOR = 1e6
INF_TARGET = 'bbox_head.reg_ffn'


@dataclass(frozen=True)
class Scale:
    """How long the runs are; iterations are 0-based, as in the guard's files."""

    num_images: int
    num_val: int
    num_brief: int  # images of the runs without guard, which take one epoch
    epochs: int
    spike_at: int
    inf_at: int
    unguarded_at: int  # where the short runs without guard meet their fault
    judges_loss: bool  # whether the runs are long enough to compare their losses


FULL = Scale(
    num_images=240,
    num_val=40,
    num_brief=240,
    epochs=4,
    spike_at=90,
    inf_at=150,
    unguarded_at=30,
    judges_loss=True,
)
SHORT = Scale(
    num_images=64,
    num_val=8,
    num_brief=48,
    epochs=2,
    spike_at=24,  # the guard's spike rule has seen its 16 steps of warmup
    inf_at=29,
    unguarded_at=5,
    judges_loss=False,
)


@dataclass(frozen=True)
class Fault:
    """One planted fault."""

    name: str
    what: str
    where: str  # a module, or an image
    when: str
    iteration: int | None = None  # None: whenever its image comes
    module: str | None = None  # this module or one inside it is the right answer
    image_id: int | None = None
    actions: tuple[str, ...] = ('skipped',)


def plan_faults(scale: Scale, image_id: int) -> list[Fault]:
    """Return the three faults of the guarded run."""
    return [
        Fault(
            SPIKE,
            f'gradients x {SPIKE_FACTOR:.0e}',
            SPIKE_TARGET,
            str(scale.spike_at),
            iteration=scale.spike_at,
            module=SPIKE_TARGET,
            actions=('clipped', 'skipped'),
        ),
        Fault(
            INFINITE_BOX,
            'box infinitely wide',
            f'image {image_id}',
            'once an epoch',
            image_id=image_id,
        ),
        Fault(
            FORWARD_INF,
            'one Inf in the output',
            INF_TARGET,
            str(scale.inf_at),
            iteration=scale.inf_at,
            module=INF_TARGET.split('.')[0],
        ),
    ]


@dataclass(frozen=True)
class Run:
    """One call of mmdet's `tools/train.py`."""

    name: str
    iterations: int
    config: str


def plan_runs(scale: Scale, data: Path) -> list[Run]:
    """Return the five runs: clean, guarded, and one per fault without guard."""
    spike = injection(SPIKE, scale.spike_at)
    inf = injection(FORWARD_INF, scale.inf_at)
    runs = [
        plan_run('clean', scale, data, guarded=False),
        plan_run('guarded', scale, data, faults=[spike, inf], infinite_box=True),
    ]
    for name in (SPIKE, INFINITE_BOX, FORWARD_INF):
        box = name == INFINITE_BOX
        faults = [] if box else [injection(name, scale.unguarded_at)]
        options: dict[str, Any] = dict(faults=faults, infinite_box=box, guarded=False)
        runs.append(plan_run(f'unguarded_{name}', scale, data, brief=True, **options))
    return runs


def injection(name: str, iteration: int) -> dict[str, Any]:
    """Return one entry of the `faults` of `FaultInjectionHook`."""
    if name == SPIKE:
        extra: dict[str, Any] = dict(target=SPIKE_TARGET, factor=SPIKE_FACTOR)
    else:
        extra = dict(target=INF_TARGET)
    return dict(kind=name, iteration=iteration, **extra)


def plan_run(
    name: str,
    scale: Scale,
    data: Path,
    *,
    guarded: bool = True,
    faults: list[dict[str, Any]] | None = None,
    infinite_box: bool = False,
    brief: bool = False,
) -> Run:
    """Return a run whose config is the example's with the changes it needs.

    A brief run is one epoch without validation that logs every iteration.
    """
    epochs = 1 if brief else scale.epochs
    num_images = scale.num_brief if brief else scale.num_images
    stem = 'detr_r18_demo' if guarded else 'detr_r18_demo_unguarded'
    train = 'train_infinite_box' if infinite_box else 'train'
    dataset = dict(
        data_root=str(data),
        ann_file=f'annotations/{train}.json',
        indices=num_images,
    )
    hooks: dict[str, Any] = dict(checkpoint=dict(interval=epochs))
    values: dict[str, Any] = dict(
        train_dataloader=dict(dataset=dataset),
        train_cfg=dict(max_epochs=epochs, val_interval=epochs),
        default_hooks=hooks,
    )
    if faults:
        hooks['faults'] = dict(type='mmgradguard.FaultInjectionHook', faults=faults)
    if brief:
        hooks['logger'] = dict(interval=1)
        values['log_processor'] = dict(window_size=1)
        values.update(val_cfg=None, val_dataloader=None, val_evaluator=None)
    else:
        validation = dict(data_root=str(data), indices=scale.num_val)
        values['val_dataloader'] = dict(dataset=validation)
        values['val_evaluator'] = dict(ann_file=f'{data}/annotations/val.json')
    lines = [f'_base_ = {str(EXAMPLES / f"{stem}.py")!r}']
    lines += [f'{key} = {value!r}' for key, value in values.items()]
    iterations = epochs * num_images // BATCH_SIZE
    return Run(name, iterations, '\n'.join(lines) + '\n')


def find_infinite_box(data: Path) -> int:
    """Return the image that holds the infinite box, from the annotations.

    Raises:
        ValueError: If no image does.
    """
    path = data / 'annotations' / 'train_infinite_box.json'
    for item in json.loads(path.read_text(encoding='utf-8'))['annotations']:
        if float('inf') in item['bbox']:
            return int(item['image_id'])
    raise ValueError(f'{path}: no annotation has an infinite box')
