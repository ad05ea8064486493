"""Advice: the config change that fits the run, most likely first, and never a lie."""

from __future__ import annotations

from typing import Any

import pytest

from mmgradguard.core.log_analysis import LogAnalysis
from mmgradguard.core.phrases import load_phrases, say
from mmgradguard.logs.analysis.advice import ADVICE
from mmgradguard.logs.analysis.analyze import analyze_table
from mmgradguard.logs.analysis.families import families, find_family
from tests.log_tables import INF, NAN, healthy, make_table, plant

MMENGINE = {'optim_wrapper': {'type': 'OptimWrapper', 'optimizer': {'lr': 4e-4}}}


def dead(config: dict[str, Any] | None = None, *, kind: str = 'mmengine_text'):
    columns = healthy(100)
    columns['lr'] = [1e-5 * (row + 1) for row in range(60)] + [6e-4] * 40
    for name in ('grad_norm', 'loss', 'loss_cls', 'loss_bbox'):
        columns[name][60:] = [NAN] * 40
    return make_table(columns, config=config, kind=kind)


def codes(result: LogAnalysis) -> list[str]:
    return [advice.note.code for advice in result.advice]


def config_of(result: LogAnalysis, code: str) -> Any:
    return next(a.config for a in result.advice if a.note.code == code)


def test_the_learning_rate_comes_before_clipping_is_even_named() -> None:
    result = analyze_table(dead(MMENGINE))
    names = codes(result)
    assert names[0].startswith('advice.lower_lr')
    assert names[-1] == 'advice.clip_no_cure'
    assert config_of(result, names[0]) == {'optim_wrapper': {'optimizer': {'lr': 1e-4}}}


def test_an_8_gpu_lr_on_2_gpus_is_scaled() -> None:
    table = dead(MMENGINE)
    table.sections[0].header.num_gpus = 2
    result = analyze_table(table)
    assert config_of(result, 'advice.scale_lr') == {
        'optim_wrapper': {'optimizer': {'lr': 1e-4}}
    }


def test_auto_scale_lr_that_is_off_is_found() -> None:
    config = {**MMENGINE, 'auto_scale_lr': {'base_batch_size': 16, 'enable': False}}
    result = analyze_table(dead(config))
    assert codes(result)[0] == 'advice.auto_scale_lr'
    assert config_of(result, 'advice.auto_scale_lr') == {
        'auto_scale_lr': {'enable': True}
    }


def test_a_static_loss_scale_is_made_dynamic() -> None:
    wrapper = {'type': 'AmpOptimWrapper', 'loss_scale': 512.0}
    result = analyze_table(dead({'optim_wrapper': wrapper}))
    assert config_of(result, 'advice.dynamic_scale') == {
        'optim_wrapper': {'loss_scale': 'dynamic'}
    }
    guard = config_of(result, 'advice.guard')['optim_wrapper']['type']
    assert guard == 'mmgradguard.AdaptiveClipAmpOptimWrapper'


def test_an_mmcv1_run_gets_mmcv1_keys_and_no_hooks() -> None:
    config = {
        'optimizer': {'type': 'SGD', 'lr': 0.02},
        'fp16': {'loss_scale': 512.0},
        'optimizer_config': {'grad_clip': None},
    }
    result = analyze_table(dead(config, kind='mmcv_text'))
    assert config_of(result, 'advice.lower_lr_here') == {'optimizer': {'lr': 0.005}}
    assert config_of(result, 'advice.dynamic_scale') == {
        'fp16': {'loss_scale': 'dynamic'}
    }
    assert 'advice.guard_mmcv1' in codes(result)
    assert not any('mmgradguard' in str(a.config) for a in result.advice)


def test_without_a_norm_the_first_thing_missing_is_named() -> None:
    table = dead({'model': {'type': 'ConditionalDETR'}, **MMENGINE})
    del table.columns['grad_norm']
    result = analyze_table(table)
    assert config_of(result, 'advice.log_norm') == {
        'optim_wrapper': {'clip_grad': {'max_norm': 0.1, 'norm_type': 2}}
    }


def test_the_family_lr_is_advised_when_the_run_is_far_above_it() -> None:
    config = {
        'model': {'type': 'DINO'},
        'optim_wrapper': {'type': 'OptimWrapper', 'optimizer': {'lr': 2e-3}},
    }
    result = analyze_table(dead(config))
    assert config_of(result, 'advice.family_lr') == {
        'optim_wrapper': {'optimizer': {'lr': 2e-4}}
    }
    assert 'normal.lr_above' in [note.code for note in result.normality]


def test_a_resume_is_suspected_first() -> None:
    table = dead(MMENGINE)
    table.sections.append(type(table.sections[0])(60, 'resume', 'synthetic.log'))
    assert codes(analyze_table(table))[0] == 'advice.resume'


def test_a_healthy_run_gets_no_advice() -> None:
    assert analyze_table(make_table(healthy(100))).advice == []


@pytest.mark.parametrize('bad', [NAN, INF])
def test_harmless_skips_ask_for_nothing(bad: float) -> None:
    columns = healthy(100)
    columns['grad_norm'][3] = bad
    assert codes(analyze_table(make_table(columns))) == ['advice.nothing_amp']


def test_a_spike_that_came_back_changes_nothing_but_may_be_watched() -> None:
    columns = plant(healthy(100), 50, grad_norm=1e4, loss_bbox=60)
    result = analyze_table(make_table(columns))
    assert codes(result) == ['advice.nothing', 'advice.box_targets', 'advice.watch']
    hook = config_of(result, 'advice.watch')['default_hooks']['grad_guard']
    assert hook == {'type': 'mmgradguard.GradAnomalyHook'}


def test_every_code_that_the_analysis_uses_has_its_words() -> None:
    import re
    from pathlib import Path

    from mmgradguard.logs import analysis

    folder = Path(analysis.__file__).parent
    text = '\n'.join(path.read_text() for path in folder.glob('*.py'))
    used = set(re.findall(r"'((?:reason|advice|normal|decide|unknown)\.\w+)'", text))
    assert len(used) > 40
    assert used <= set(load_phrases('en'))
    assert len(ADVICE) > 10


def test_every_sentence_has_its_values() -> None:
    tables = [dead(MMENGINE), dead(), make_table(healthy(100))]
    for table in tables:
        result = analyze_table(table)
        notes = [advice.note for advice in result.advice]
        for note in [*notes, *result.reasons, *result.normality, *result.unknowns]:
            for lang in ('en', 'zh'):
                assert not say(note, lang).startswith(note.code), note


@pytest.mark.parametrize(
    ('config', 'terms', 'name'),
    [
        ({'model': {'type': 'DINO'}}, [], 'DETR family'),
        ({'model': {'type': 'Petr3D'}}, [], 'PETR'),
        (
            {
                'model': {
                    'type': 'Petr3D',
                    'pts_bbox_head': {'type': 'StreamPETRHead'},
                }
            },
            [],
            'StreamPETR',
        ),
        ({}, ['d0.loss_cls', 'd0.loss_bbox'], 'DETR family'),
        ({}, ['d3.loss_mask', 'd3.loss_dice'], 'Mask2Former'),
        ({'model': {'type': 'RetinaNet'}}, ['d0.loss_cls'], None),
        ({}, ['loss_cls', 'loss_bbox'], None),
    ],
)
def test_families(config: dict[str, Any], terms: list[str], name: str | None) -> None:
    found = find_family(config, terms)
    assert (found.name if found else None) == name


def test_every_family_has_a_source() -> None:
    assert len({family.name for family in families()}) == len(families()) > 8
    for family in families():
        assert family.source
        assert family.max_norm > 0
        assert 0 < min(family.lr) <= max(family.lr) < 1
