"""Several runs that write into one folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from toy import make_runner

from mmgradguard.report.model import build_report
from mmgradguard.report.run_files import read_run

BAD = dict(kind='grad_nan', target='head', iteration=12)
ACT = dict(type='AdaptiveClipHook')
SAVE = dict(checkpoint=dict(type='CheckpointHook', interval=1))
WORDS = 'already holds steps of another run'


def log_of(runner: Any) -> str:
    return (Path(runner.log_dir) / f'{runner.timestamp}.log').read_text()


def test_a_second_run_is_told_once_and_counted(tmp_path: Path) -> None:
    watch = dict(type='GradAnomalyHook', out_dir=str(tmp_path / 'out'))
    first = make_runner(tmp_path / 'a', [watch], epochs=1)
    first.train()
    assert WORDS not in log_of(first)
    second = make_runner(tmp_path / 'b', [watch], epochs=1)
    second.train()
    assert log_of(second).count(WORDS) == 1
    report = build_report(read_run(tmp_path / 'out'))
    assert 'This folder holds 2 runs' in ' '.join(report.sentences)
    assert report.summary.num_steps == 16
    assert report.summary.num_replayed == 0


def test_what_a_resume_takes_again_is_counted_once(tmp_path: Path) -> None:
    watch = dict(type='GradAnomalyHook', out_dir=str(tmp_path / 'out'))
    crash = dict(kind='exception', target='head', iteration=14)
    first = make_runner(
        tmp_path / 'a', [watch, ACT], faults=[BAD, crash], default_hooks=SAVE
    )
    with pytest.raises(RuntimeError, match='planted'):
        first.train()
    second = make_runner(
        tmp_path / 'b',
        [watch, ACT],
        faults=[BAD],
        resume=True,
        load_from=str(tmp_path / 'a' / 'epoch_1.pth'),
        default_hooks=SAVE,
    )
    second.train()
    report = build_report(read_run(tmp_path / 'out'))
    assert report.summary.num_steps == 24
    assert report.summary.skipped == {'nonfinite': 1}
    assert (report.summary.num_runs, report.summary.num_replayed) == (2, 6)
    assert {image.num_skips for image in report.summary.skipped_images} == {1}
    text = ' '.join(report.sentences)
    assert 'This folder holds 2 runs' in text
    assert '6 steps that were taken again after a resume were counted once' in text
    assert 'skipped steps' not in text


def test_a_run_that_goes_on_in_its_process_is_one_run(tmp_path: Path) -> None:
    watch = dict(type='GradAnomalyHook', out_dir=str(tmp_path / 'out'))
    runner = make_runner(tmp_path / 'a', [watch], epochs=1)
    runner.train()
    runner.train_loop._max_epochs = 2
    runner.train()
    rows = (tmp_path / 'out' / 'steps.jsonl').read_text().splitlines()
    assert len(rows) > 8
    assert [i for i, row in enumerate(rows) if 'started' in json.loads(row)] == [0]
    assert WORDS not in log_of(runner)
