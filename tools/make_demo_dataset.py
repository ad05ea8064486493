#!/usr/bin/env python3
"""Write a small COCO detection set from pictures that installed packages carry.

Handwritten digits (scikit-learn) are pasted onto crops of photographs (scikit-image),
without a download. The same seed gives the same bytes on every run.

    python tools/make_demo_dataset.py data/demo
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any, Dict, NamedTuple, Sequence

import numpy as np
import skimage
from PIL import Image
from sklearn.datasets import load_digits

SIZE = 128
SPLITS = {'train': 240, 'val': 40}
CLASSES = (
    *('zero', 'one', 'two', 'three', 'four'),
    *('five', 'six', 'seven', 'eight', 'nine'),
)
# Only files inside scikit-image's wheel: `skimage.data` downloads most of the others.
PHOTOGRAPHS = {
    'train': ('astronaut.png', 'brick.png', 'coffee.png', 'grass.png', 'rocket.jpg'),
    'val': ('camera.png', 'chelsea.png', 'gravel.png'),
}
# scikit-learn's digits are in the order of their writers: no writer is in both splits
DIGITS = {'train': slice(0, 1400), 'val': slice(1400, None)}
DEFAULT_INFINITE_BOX_IMAGE = 17

Json = Dict[str, Any]


class Glyph(NamedTuple):
    """One digit, ready to paste."""

    label: int
    mask: np.ndarray  # (H, W) in [0, 1]


def load_photographs(split: str) -> list[Image.Image]:
    """Read the photographs of ``split`` from scikit-image's own folder."""
    folder = Path(skimage.__file__).parent / 'data'
    return [Image.open(folder / name).convert('RGB') for name in PHOTOGRAPHS[split]]


def draw_background(photographs: Sequence[Image.Image], rng: Any) -> np.ndarray:
    """Cut a random square out of a random photograph, shape ``(SIZE, SIZE, 3)``."""
    photograph = photographs[int(rng.integers(len(photographs)))]
    side = int(rng.integers(SIZE, min(photograph.size) + 1))
    left = int(rng.integers(photograph.width - side + 1))
    top = int(rng.integers(photograph.height - side + 1))
    box = (left, top, left + side, top + side)
    square = photograph.resize((SIZE, SIZE), Image.Resampling.BILINEAR, box)
    return np.asarray(square, dtype=np.float64)


def draw_glyph(images: np.ndarray, labels: np.ndarray, rng: Any) -> Glyph:
    """Scale a random digit to 28 to 60 pixels and cut it at its visible border."""
    index = int(rng.integers(len(images)))
    side = int(rng.integers(28, 61))
    small = Image.fromarray((images[index] * (255 / 16)).astype(np.uint8))
    mask = (
        np.asarray(small.resize((side, side), Image.Resampling.BICUBIC), np.float64)
        / 255
    )
    rows, columns = np.nonzero(mask > 0.25)
    cut = mask[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
    return Glyph(int(labels[index]), cut)


def paste(canvas: np.ndarray, glyph: Glyph, rng: Any) -> list[int]:
    """Blend ``glyph`` into ``canvas`` in place; return its box ``[x, y, w, h]``.

    The ink is bright on a dark spot and dark on a bright one, so that a digit can be
    told from its background whatever the photograph shows there.
    """
    height, width = glyph.mask.shape
    left = int(rng.integers(SIZE - width + 1))
    top = int(rng.integers(SIZE - height + 1))
    spot = canvas[top : top + height, left : left + width]
    low, high = (170, 256) if spot.mean() < 128 else (0, 80)
    ink = rng.integers(low, high, size=3)
    alpha = glyph.mask[..., None] * rng.uniform(0.75, 1.0)
    spot[:] = spot * (1 - alpha) + ink * alpha
    return [left, top, width, height]


def write_split(out: Path, split: str, seed: int) -> Json:
    """Write the images of ``split`` and return their COCO annotations."""
    rng = np.random.default_rng([seed, list(SPLITS).index(split)])
    photographs = load_photographs(split)
    digits = load_digits()
    pool = digits.images[DIGITS[split]], digits.target[DIGITS[split]]
    (out / split).mkdir(parents=True, exist_ok=True)
    images: list[Json] = []
    annotations: list[Json] = []
    for image_id in range(1, SPLITS[split] + 1):
        canvas = draw_background(photographs, rng).copy()
        for _ in range(int(rng.integers(1, 5))):
            glyph = draw_glyph(*pool, rng)
            box = paste(canvas, glyph, rng)
            annotations.append(annotation(len(annotations) + 1, image_id, glyph, box))
        name = f'{image_id:06d}.png'
        pixels = np.clip(np.rint(canvas), 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(out / split / name)
        images.append(
            {'id': image_id, 'file_name': name, 'width': SIZE, 'height': SIZE}
        )
    categories = [{'id': i + 1, 'name': name} for i, name in enumerate(CLASSES)]
    return {'images': images, 'annotations': annotations, 'categories': categories}


def annotation(identity: int, image_id: int, glyph: Glyph, box: list[int]) -> Json:
    """Return one COCO annotation."""
    return {
        'id': identity,
        'image_id': image_id,
        'category_id': glyph.label + 1,
        'bbox': box,
        'area': box[2] * box[3],
        'iscrowd': 0,
    }


def with_infinite_box(coco: Json, image_id: int) -> Json:
    """Return a copy of ``coco`` in which one box of ``image_id`` is infinitely wide.

    mmdet's filters let such a box through (its area is positive, and it meets the
    image), and the matcher dies of it.

    Raises:
        ValueError: If no annotation belongs to ``image_id``.
    """
    copy = json.loads(json.dumps(coco))
    for item in copy['annotations']:
        if item['image_id'] == image_id:
            item['bbox'][2] = math.inf
            return copy
    last = len(copy['images'])
    raise ValueError(f'`--infinite-box` must be in 1..{last}, got {image_id!r}')


def make_dataset(
    out: Path, *, seed: int = 0, infinite_box: int = DEFAULT_INFINITE_BOX_IMAGE
) -> None:
    """Write both splits under ``out``, and the annotations with the infinite box."""
    cocos = {split: write_split(out, split, seed) for split in SPLITS}
    cocos['train_infinite_box'] = with_infinite_box(cocos['train'], infinite_box)
    (out / 'annotations').mkdir(exist_ok=True)
    for name, coco in cocos.items():
        path = out / 'annotations' / f'{name}.json'
        path.write_text(json.dumps(coco), encoding='utf-8')


def main(argv: Sequence[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('out', type=Path, help='folder to write (files are replaced)')
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument(
        '--infinite-box',
        type=int,
        metavar='IMAGE_ID',
        default=DEFAULT_INFINITE_BOX_IMAGE,
        help='training image that gets an infinitely wide box in '
        'annotations/train_infinite_box.json (default: %(default)s)',
    )
    args = parser.parse_args(argv)
    try:
        make_dataset(args.out, seed=args.seed, infinite_box=args.infinite_box)
    except (ValueError, OSError) as error:
        print(f'make_demo_dataset: {error}', file=sys.stderr)
        return 2
    summary = ', '.join(f'{number} {split}' for split, number in SPLITS.items())
    print(f'{args.out}: {summary} images of {SIZE}x{SIZE}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
