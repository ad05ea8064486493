"""`max_incidents` caps what is harmless; what ends a run is written in any case."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from toy import guard_dir, make_runner, read_incidents

from mmgradguard.cli.main import main
from mmgradguard.report.html import render_html
from mmgradguard.report.markdown import render_markdown
from mmgradguard.report.model import build_report
from mmgradguard.report.run_files import read_run
from mmgradguard.report.terminal import render_terminal

CAPPED = dict(type='GradAnomalyHook', max_incidents=1)
ACT = dict(type='AdaptiveClipHook')


def spikes(*iterations: int) -> list[dict[str, Any]]:
    return [
        dict(kind='grad_spike', iteration=i, target='head', factor=1e4)
        for i in iterations
    ]


@pytest.mark.parametrize('max_incidents', [0, 1])
def test_a_crash_is_written_when_the_cap_is_used_up(
    tmp_path: Path, max_incidents: int
) -> None:
    crash = dict(kind='exception', target='head', iteration=22)
    hook = dict(CAPPED, max_incidents=max_incidents)
    runner = make_runner(tmp_path, [hook], faults=[*spikes(17, 19), crash])
    with pytest.raises(RuntimeError, match='planted'):
        runner.train()
    last = read_incidents(runner)[-1]
    assert (last['iteration'], last['kind'], last['action']) == (
        22,
        'exception',
        'raised',
    )
    assert len(read_incidents(runner)) == max_incidents + 1
    assert main(['report', str(guard_dir(runner)), '--no-html']) == 1


def test_lost_weights_are_written_when_the_cap_is_used_up(tmp_path: Path) -> None:
    lost = dict(kind='weight_nan', target='head', iteration=21)
    runner = make_runner(tmp_path, [CAPPED, ACT], faults=[*spikes(17, 19), lost])
    runner.train()
    assert [i['kind'] for i in read_incidents(runner)] == [
        'grad_spike',
        'nonfinite_weights',
    ]
    assert main(['report', str(guard_dir(runner)), '--no-html']) == 1


def test_batches_that_are_passed_over_use_the_cap(tmp_path: Path) -> None:
    # else a thousand of them would use up what is kept for a crash
    faults = [
        dict(kind='exception', target='head', iteration=i) for i in (3, 5, 7, 9, 11)
    ]
    skip = dict(ACT, on_exception='skip')
    runner = make_runner(tmp_path, [dict(CAPPED, max_incidents=2), skip], faults=faults)
    runner.train()
    assert [i['iteration'] for i in read_incidents(runner)] == [3, 5]


def test_the_report_counts_what_was_left_out(tmp_path: Path) -> None:
    runner = make_runner(tmp_path, [CAPPED], faults=spikes(17, 19, 21))
    runner.train()
    lines = (guard_dir(runner) / 'unrecorded.jsonl').read_text().splitlines()
    assert [json.loads(line)['iteration'] for line in lines] == [19, 21]
    report = build_report(read_run(guard_dir(runner)))
    words = '2 more were not recorded: max_incidents (2 grad_spike).'
    page = ' '.join(render_html(report).split())
    assert words in page
    # Markdown escapes the underscore of no word
    assert words in render_markdown(report)
    assert words in ' '.join(render_terminal(report, width=200).split())
    assert report.summary.unrecorded == {'grad_spike': 2}
    assert words in (guard_dir(runner) / 'report.html').read_text()


def test_a_run_within_the_cap_says_nothing_of_it(tmp_path: Path) -> None:
    runner = make_runner(tmp_path, [CAPPED], faults=spikes(17))
    runner.train()
    assert not (guard_dir(runner) / 'unrecorded.jsonl').exists()
    assert 'not recorded' not in (guard_dir(runner) / 'report.html').read_text()
