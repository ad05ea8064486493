"""The demo's data: the same bytes on every run, and a box that mmdet lets through."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import make_demo_dataset


@pytest.fixture(scope='module')
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp('demo') / 'data'
    make_demo_dataset.make_dataset(out)
    return out


def annotations(data: Path, name: str) -> dict:
    return json.loads((data / 'annotations' / f'{name}.json').read_text())


def digest(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob('*') if path.is_file())
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def test_two_runs_write_the_same_bytes(data, tmp_path):
    make_demo_dataset.make_dataset(tmp_path)
    first = digest(data)
    assert first == digest(tmp_path)
    assert len(first) == 240 + 40 + 3


def test_another_seed_gives_other_images(data, tmp_path, monkeypatch):
    monkeypatch.setattr(make_demo_dataset, 'SPLITS', {'train': 20, 'val': 1})
    make_demo_dataset.make_dataset(tmp_path, seed=1)
    image = 'train/000001.png'
    assert (tmp_path / image).read_bytes() != (data / image).read_bytes()


@pytest.mark.parametrize(('split', 'number'), [('train', 240), ('val', 40)])
def test_annotations_are_whole(data, split, number):
    coco = annotations(data, split)
    assert len(coco['images']) == number
    assert [category['id'] for category in coco['categories']] == list(range(1, 11))
    assert {item['category_id'] for item in coco['annotations']} == set(range(1, 11))
    assert {item['image_id'] for item in coco['annotations']} == {
        image['id'] for image in coco['images']
    }
    for image in coco['images']:
        assert Image.open(data / split / image['file_name']).size == (128, 128)


@pytest.mark.parametrize('split', ['train', 'val'])
def test_boxes_lie_inside_the_image(data, split):
    boxes = np.array([item['bbox'] for item in annotations(data, split)['annotations']])
    assert (boxes[:, :2] >= 0).all()
    assert (boxes[:, 2:] >= 4).all()
    assert (boxes[:, :2] + boxes[:, 2:] <= 128).all()


def test_a_box_is_where_the_pixels_changed():
    rng = np.random.default_rng(0)
    canvas = np.full((128, 128, 3), 60.0)
    glyph = make_demo_dataset.Glyph(3, np.ones((20, 10)))
    left, top, width, height = make_demo_dataset.paste(canvas, glyph, rng)
    rows, columns = np.nonzero((canvas != 60).any(axis=2))
    assert (columns.min(), rows.min()) == (left, top)
    assert (columns.max() + 1, rows.max() + 1) == (left + width, top + height)


def test_only_one_box_is_infinite(data):
    clean = annotations(data, 'train')['annotations']
    planted = annotations(data, 'train_infinite_box')['annotations']
    different = [(a, b) for a, b in zip(clean, planted) if a != b]
    assert len(clean) == len(planted)
    assert len(different) == 1
    before, after = different[0]
    assert after['image_id'] == make_demo_dataset.DEFAULT_INFINITE_BOX_IMAGE
    assert after['bbox'][2] == math.inf
    assert {**after, 'bbox': before['bbox']} == before


def test_the_image_of_the_infinite_box_can_be_chosen(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(make_demo_dataset, 'SPLITS', {'train': 4, 'val': 1})
    status = make_demo_dataset.main([str(tmp_path), '--infinite-box', '3'])
    planted = annotations(tmp_path, 'train_infinite_box')['annotations']
    assert status == 0
    assert [a['image_id'] for a in planted if a['bbox'][2] == math.inf] == [3]
    assert '4 train, 1 val images of 128x128' in capsys.readouterr().out


def test_an_image_that_is_not_there_is_an_error(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(make_demo_dataset, 'SPLITS', {'train': 4, 'val': 1})
    status = make_demo_dataset.main([str(tmp_path), '--infinite-box', '5'])
    assert status == 2
    assert '`--infinite-box` must be in 1..4, got 5' in capsys.readouterr().err


@pytest.mark.mmdet
def test_mmdet_loads_the_image_with_the_infinite_box(data):
    from mmdet.datasets import CocoDataset
    from mmdet.utils import register_all_modules

    register_all_modules(init_default_scope=True)
    dataset = CocoDataset(
        data_root=str(data),
        ann_file='annotations/train_infinite_box.json',
        data_prefix=dict(img='train/'),
        metainfo=dict(classes=make_demo_dataset.CLASSES),
        filter_cfg=dict(filter_empty_gt=True, min_size=32),
        pipeline=[
            dict(type='LoadImageFromFile'),
            dict(type='LoadAnnotations', with_bbox=True),
            dict(type='PackDetInputs'),
        ],
    )
    samples = [dataset[i]['data_samples'] for i in range(12, 20)]
    boxes = {s.img_id: s.gt_instances.bboxes.tensor for s in samples}
    assert len(dataset) == 240
    assert [i for i, box in boxes.items() if not box.isfinite().all()] == [
        make_demo_dataset.DEFAULT_INFINITE_BOX_IMAGE
    ]
