"""Reading what runs leave behind, and the configs they get."""

from __future__ import annotations

import json
import math
import re
from collections import OrderedDict
from pathlib import Path

import pytest

import run_demo
from demo import launch, outcome, plan

EXAMPLES = Path(__file__).resolve().parents[2] / 'configs' / 'examples'


def write_scalars(work_dir: Path, rows: list, *, run: str = '20260101_000000') -> Path:
    path = work_dir / run / 'vis_data' / 'scalars.json'
    path.parent.mkdir(parents=True)
    path.write_text(''.join(f'{json.dumps(row)}\n' for row in rows))
    return path


def row(iteration: int, loss: float) -> dict:
    return dict(iter=iteration, step=iteration, loss=loss)


def test_losses_are_means_of_the_ends(tmp_path):
    losses = [14.0] + [12.0] * 20 + [10.0, 9.0, 8.0]
    write_scalars(tmp_path, [row(10 * i, x) for i, x in enumerate(losses, 1)])
    curve = outcome.read_curve(tmp_path)
    assert (curve.first_loss, curve.final_loss, curve.last) == (14.0, 9.0, 240)


def test_a_very_short_run_ends_with_its_last_ten_iterations(tmp_path):
    write_scalars(tmp_path, [row(10 * i, float(10 - i)) for i in range(1, 5)])
    assert outcome.read_curve(tmp_path).final_loss == 6.0


def test_nan_and_a_cut_line_are_read(tmp_path):
    path = write_scalars(tmp_path, [row(1, 3.0), row(2, math.nan)])
    with path.open('a') as file:
        file.write('{"iter": 3, "lo')
    curve = outcome.read_curve(tmp_path)
    assert curve.last == 2
    assert math.isnan(curve.final_loss)
    assert launch.last_iteration(tmp_path) == 2


def test_the_newest_run_counts(tmp_path):
    write_scalars(tmp_path, [row(10, 5.0)], run='20260101_000000')
    write_scalars(tmp_path, [row(10, 4.0)], run='20260102_000000')
    assert outcome.read_curve(tmp_path).first_loss == 4.0


def test_a_run_without_files_is_empty(tmp_path):
    assert outcome.read_curve(tmp_path).last == 0
    assert launch.last_iteration(tmp_path) == 0
    assert outcome.has_finite_weights(tmp_path) is None
    assert outcome.read_validation(tmp_path) is None
    with pytest.raises(outcome.OutcomeError, match='the guard wrote nothing'):
        outcome.guard_dir(tmp_path)


def test_the_validation_is_read(tmp_path):
    write_scalars(tmp_path, [row(10, 5.0), {'coco/bbox_mAP': 0.25, 'step': 1}])
    assert outcome.read_validation(tmp_path) == 0.25


def test_incidents_come_in_the_order_of_their_iterations(tmp_path):
    for name, iteration in (('9', 9), ('100', 100), ('20-rank1', 20)):
        path = tmp_path / 'incidents' / name / 'incident.json'
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(dict(iteration=iteration)))
    incidents = outcome.read_incidents(tmp_path)
    assert [incident['iteration'] for incident in incidents] == [9, 20, 100]


def test_a_damaged_incident_is_named(tmp_path):
    path = tmp_path / 'incidents' / '9' / 'incident.json'
    path.parent.mkdir(parents=True)
    path.write_text('{"iteration": 9,')
    with pytest.raises(outcome.OutcomeError, match=r'incident\.json: no JSON'):
        outcome.read_incidents(tmp_path)


def test_skips_are_counted_by_reason(tmp_path):
    reasons = ['nonfinite', None, 'exception', 'exception']
    lines = [json.dumps(dict(step=i, skipped=r)) for i, r in enumerate(reasons)]
    (tmp_path / 'steps.jsonl').write_text('\n'.join(lines))
    assert outcome.count_skips(tmp_path) == dict(exception=2, nonfinite=1)


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('a\nValueError: bad x\n', 'ValueError: bad x'),
        ('KeyError: 1\nmore\ntorch.cuda.OutOfMemoryError: y\n', 'torch.cuda.OutOf.*y'),
        ('mmgradguard.core.errors.GuardStop: z', 'mmgradguard.core.errors.GuardStop'),
    ],
)
def test_the_last_exception_is_found(tmp_path, text, words):
    log = tmp_path / 'run.log'
    log.write_text(text)
    found = outcome.last_words(log)
    assert found is not None
    assert re.match(words, found)


def test_a_log_without_exception_has_no_last_words(tmp_path):
    log = tmp_path / 'run.log'
    log.write_text('INFO - loss: 3\nno Error: here\n')
    assert outcome.last_words(log) is None


@pytest.mark.parametrize(('bad', 'finite'), [(0.0, True), (math.nan, False)])
def test_weights_are_read_without_running_what_the_checkpoint_holds(
    tmp_path, bad, finite
):
    import torch
    from mmengine.logging import HistoryBuffer

    state = OrderedDict(a=torch.ones(3), b=torch.tensor([1.0, bad]))
    checkpoint = dict(state_dict=state, message_hub=dict(x=HistoryBuffer([1.0], [1])))
    path = tmp_path / 'epoch_1.pth'
    torch.save(checkpoint, path)
    (tmp_path / 'last_checkpoint').write_text(str(path))
    assert outcome.has_finite_weights(tmp_path) is finite
    loaded = outcome.load_tensors(path)
    assert type(loaded['message_hub']['x']).__name__ == '_Inert'


def test_five_runs_differ_in_guard_faults_and_data():
    runs = {run.name: run for run in plan.plan_runs(plan.FULL, Path('/data'))}
    assert [run.iterations for run in runs.values()] == [240, 240, 60, 60, 60]
    assert [name for name in runs if 'unguarded.py' in runs[name].config] == [
        name for name in runs if name != 'guarded'
    ]
    assert {name for name in runs if 'infinite_box' in runs[name].config} == {
        'guarded',
        'unguarded_infinite_box',
    }
    assert {name for name in runs if 'FaultInjectionHook' in runs[name].config} == {
        'guarded',
        'unguarded_grad_spike',
        'unguarded_forward_inf',
    }


@pytest.mark.mmdet
@pytest.mark.parametrize('scale', [plan.FULL, plan.SHORT], ids=['full', 'short'])
def test_the_configs_say_what_was_planned(tmp_path, scale):
    from mmengine.config import Config

    for run in plan.plan_runs(scale, tmp_path):
        path = tmp_path / f'{run.name}.py'
        path.write_text(run.config)
        config = Config.fromfile(str(path))
        guards = [hook['type'] for hook in config.custom_hooks]
        guarded = run.name == 'guarded'
        assert guards == (['GradAnomalyHook', 'AdaptiveClipHook'] if guarded else [])
        assert config.train_dataloader.dataset.data_root == str(tmp_path)
        assert (config.val_cfg is None) == run.name.startswith('unguarded')
        loader = config.train_dataloader
        num_images = config.train_cfg.max_epochs * loader.dataset.indices
        assert num_images == run.iterations * loader.batch_size


@pytest.mark.mmdet
def test_the_example_downloads_nothing_and_resizes_no_training_image():
    from mmengine.config import Config

    config = Config.fromfile(str(EXAMPLES / 'detr_r18_demo.py'))
    steps = [step['type'] for step in config.train_dataloader.dataset.pipeline]
    assert steps == ['LoadImageFromFile', 'LoadAnnotations', 'PackDetInputs']
    assert config.model.backbone.init_cfg is None
    assert config.custom_imports == dict(
        imports=['mmgradguard'], allow_failed_imports=False
    )
    assert config.custom_hooks[1] == dict(type='AdaptiveClipHook', on_exception='skip')


def test_a_folder_of_other_files_is_left_alone(tmp_path, capsys):
    (tmp_path / 'thesis.tex').write_text('x')
    assert run_demo.main(['--out', str(tmp_path)]) == 2
    assert 'holds files that no demo wrote' in capsys.readouterr().err
    assert (tmp_path / 'thesis.tex').exists()


def test_the_folder_of_an_earlier_demo_is_emptied(tmp_path):
    out = tmp_path / 'demo'
    run_demo.prepare(out)
    (out / 'old.log').touch()
    run_demo.prepare(out)
    assert [path.name for path in out.iterdir()] == [run_demo.MARKER]


def test_the_image_of_the_box_is_read_from_the_annotations(tmp_path):
    path = tmp_path / 'annotations' / 'train_infinite_box.json'
    path.parent.mkdir()
    boxes = [dict(image_id=4, bbox=[0, 0, 1, 1])]
    path.write_text(json.dumps(dict(annotations=boxes)))
    with pytest.raises(ValueError, match='no annotation has an infinite box'):
        plan.find_infinite_box(tmp_path)
    boxes.append(dict(image_id=5, bbox=[0, 0, math.inf, 1]))
    path.write_text(json.dumps(dict(annotations=boxes)))
    assert plan.find_infinite_box(tmp_path) == 5
