"""The two ways of the README, with mmdet's own train.py and a real DETR."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.mmdet, pytest.mark.slow]
EXAMPLES = Path(__file__).parents[2] / 'configs' / 'examples'
PLAIN = f"_base_ = '{EXAMPLES}/detr_r18_demo_unguarded.py'\n"


def steps(tmp_path: Path) -> list[dict[str, Any]]:
    (path,) = (tmp_path / 'work').glob('*/grad_guard/steps.jsonl')
    return [json.loads(line) for line in path.open()]


def test_one_option_without_touching_a_config(train: Any, tmp_path: Path) -> None:
    option = 'default_hooks.grad_guard.type=mmgradguard.GradAnomalyHook'
    result = train(PLAIN, option)
    assert result.returncode == 0, result.stderr[-3000:]
    rows = steps(tmp_path)
    assert [row['step'] for row in rows] == list(range(6))
    norms = rows[0]['module_norms']
    assert 10 <= len(norms) <= 40
    assert {'decoder.layers.0', 'encoder.layers.1'} <= {
        '.'.join(name.split('.')[:3]) for name in norms
    }
    assert all(row['max_norm'] == 0.1 for row in rows)
    assert 'd0.loss_bbox' in rows[0]['losses']
    assert list((tmp_path / 'work').glob('*/grad_guard/report.html'))


@pytest.mark.parametrize('preset', ['watch', 'detr'])
def test_a_fragment_among_the_bases(train: Any, tmp_path: Path, preset: str) -> None:
    # DETR's own config has no custom_hooks: the fragment is a base like any other
    config = (
        f"_base_ = ['mmdet::detr/detr_r18_8xb2-500e_coco.py',\n"
        f"          __import__('mmgradguard').config_path('{preset}')]\n"
        + (EXAMPLES / 'detr_r18_demo.py').read_text().replace('_base_ =', '_unused =')
    )
    start = config.index('custom_hooks = [')
    config = config[:start] + config[config.index(']', start) + 2 :]
    result = train(config)
    assert result.returncode == 0, result.stderr[-3000:]
    assert len(steps(tmp_path)) == 6
    adopted = 'AdaptiveClipHook' in result.stderr + result.stdout
    assert adopted == (preset == 'detr')


def test_a_config_that_lost_its_guard_is_told(train: Any) -> None:
    config = PLAIN + "custom_imports = dict(imports=['mmgradguard'])\n"
    result = train(config, iterations=2)
    assert result.returncode == 0, result.stderr[-3000:]
    assert 'NO GUARD IS ACTIVE' in result.stderr + result.stdout


def test_a_wrong_argument_is_a_clear_error(train: Any) -> None:
    result = train(
        PLAIN,
        'default_hooks.grad_guard.type=mmgradguard.GradAnomalyHook',
        'default_hooks.grad_guard.intervall=5',
    )
    assert result.returncode == 1
    assert 'GradAnomalyHook has no argument intervall; it takes' in result.stderr
