"""Which run of a work directory is read, and from which of its files."""

from __future__ import annotations

import json

import pytest
from log_text import OLD_STAMP, STAMP, mmcv_row, mmengine_row

from mmgradguard.core.errors import LogParseError
from mmgradguard.logs.folders import find_runs
from mmgradguard.logs.read import read_log

CONFIG = f"{STAMP}Config:\nmodel = dict(type='DETR')\n"
SCALAR = {'lr': 0.1, 'loss': 1.50431234, 'epoch': 1, 'iter': 50, 'step': 50}
STEP = {
    'step': 0,
    'iteration': 0,
    'epoch': 0,
    'total_norm': 5.0,
    'losses': {'loss': 9.0},
}


def make_run(work_dir, stamp, *, scalars=(SCALAR,), steps=()):
    run = work_dir / stamp
    (run / 'vis_data').mkdir(parents=True)
    (run / f'{stamp}.log').write_text(f'{CONFIG}{mmengine_row(50)}\n')
    text = ''.join(json.dumps(row) + '\n' for row in scalars)
    for name in ('scalars.json', f'{stamp}.json'):
        (run / 'vis_data' / name).write_text(text)
    (run / 'vis_data' / 'config.py').write_text('model = 1')
    if steps:
        (run / 'grad_guard').mkdir()
        text = ''.join(json.dumps(row) + '\n' for row in steps)
        (run / 'grad_guard' / 'steps.jsonl').write_text(text)
    return run


def test_the_newest_run_with_rows_from_json_and_header_from_text(tmp_path):
    make_run(tmp_path, '20240101_000000')
    run = make_run(tmp_path, '20240301_000000', scalars=[{**SCALAR, 'loss': 2.0}])
    make_run(tmp_path, '20240201_000000')
    table = read_log([tmp_path])
    assert list(table.columns['loss']) == [2.0]
    assert table.files == [str(run / 'vis_data' / 'scalars.json')]
    assert table.format == 'mmengine_scalars'
    assert table.sections[0].header.config == {'model': {'type': 'DETR'}}
    assert table.source == str(tmp_path)
    assert table.num_skipped_lines == 0


@pytest.mark.parametrize('part', ['', 'vis_data', 'grad_guard'])
def test_a_part_of_a_run_will_do(tmp_path, part):
    run = make_run(tmp_path, '20240101_000000', steps=[STEP] if part else ())
    table = read_log([run / part])
    assert len(table) == 1
    assert table.format == ('steps_jsonl' if part == 'grad_guard' else table.format)


def test_single_steps_are_preferred_to_means(tmp_path):
    make_run(tmp_path, '20240101_000000', steps=[STEP])
    table = read_log([tmp_path])
    assert table.format == 'steps_jsonl'
    assert list(table.columns['loss']) == [9.0]
    assert table.sections[0].header.config == {'model': {'type': 'DETR'}}


def test_a_file_without_rows_gives_way_to_the_next(tmp_path):
    run = make_run(tmp_path, '20240101_000000', scalars=())
    assert read_log([tmp_path]).files == [str(run / '20240101_000000.log')]


def test_an_older_run_is_read_if_the_newest_has_no_rows(tmp_path):
    make_run(tmp_path, '20240101_000000')
    run = make_run(tmp_path, '20240201_000000', scalars=())
    (run / '20240201_000000.log').write_text(CONFIG)
    assert '20240101_000000' in read_log([tmp_path]).files[0]


def test_a_work_directory_of_mmcv(tmp_path):
    for stamp in ('20230101_000000', '20230301_000000'):
        (tmp_path / f'{stamp}.log').write_text(f'{OLD_STAMP}Hi\n{mmcv_row(50)}\n')
        row = {'mode': 'train', 'epoch': 1, 'iter': 50, 'loss': 1.5}
        (tmp_path / f'{stamp}.log.json').write_text(json.dumps(row) + '\n')
    table = read_log([tmp_path])
    assert table.files == [str(tmp_path / '20230301_000000.log.json')]


@pytest.mark.parametrize(
    ('name', 'text', 'kind'),
    [
        ('results.csv', 'epoch,train/box_loss\n1,0.5\n', 'ultralytics_csv'),
        ('metrics.json', '{"iteration": 19, "total_loss": 2.0}\n', 'detectron2_json'),
        ('log.txt', '{"epoch": 0, "train_loss": 2.0}\n', 'detr_json'),
        ('train.out', f'{mmengine_row(50)}\n', 'mmengine_text'),
    ],
)
def test_folders_of_other_frameworks(tmp_path, name, text, kind):
    (tmp_path / name).write_text(text)
    assert read_log([tmp_path]).format == kind


def test_the_last_checkpoint_if_there_is_nothing_else(tmp_path):
    for name in ('epoch_1.pth', 'epoch_2.pth'):
        (tmp_path / name).write_bytes(b'PK\x03\x04')
    (tmp_path / 'last_checkpoint').write_text('/elsewhere/epoch_1.pth')
    assert find_runs(str(tmp_path))[0].checkpoint == str(tmp_path / 'epoch_1.pth')
    table = read_log([tmp_path], lambda path: {'train/loss': [1.0]})
    assert table.format == 'checkpoint'


def test_a_folder_without_runs(tmp_path):
    (tmp_path / 'notes.md').write_text('nothing')
    with pytest.raises(LogParseError, match='a directory without runs; looked for'):
        read_log([tmp_path])
    with pytest.raises(LogParseError, match='a directory without runs'):
        read_log([tmp_path, tmp_path])


def test_a_folder_whose_logs_hold_no_rows(tmp_path):
    (tmp_path / 'a.log').write_text('nothing\n')
    (tmp_path / 'b.log').write_bytes(b'')
    with pytest.raises(LogParseError, match=r'no training rows in its 1 logs \(1 li'):
        read_log([tmp_path])


def test_the_text_beside_the_rows_tells_how_it_died(tmp_path):
    run = tmp_path / '20250101_000000'
    (run / 'vis_data').mkdir(parents=True)
    row = '{"lr": 1e-4, "loss": 1.5, "epoch": 1, "iter": 50, "step": 50}\n'
    (run / 'vis_data' / 'scalars.json').write_text(row)
    died = 'ValueError: matrix contains invalid numeric entries\n'
    (run / '20250101_000000.log').write_text(f'{mmengine_row()}\n{died}')
    table = read_log([tmp_path])
    assert table.files[0].endswith('scalars.json')
    assert [failure.text for failure in table.failures] == [died.strip()]
