from __future__ import annotations

import io
import sys

import pytest
from test_report.run_builder import (
    HOSTILE,
    bad_run,
    hostile_run,
    incident_row,
    write_run,
)

from mmgradguard.report import build_report, read_run
from mmgradguard.report.incident_record import parse_incident
from mmgradguard.report.terminal import render_incident, render_terminal, sparkline
from mmgradguard.report.words import format_config


class Terminal(io.StringIO):
    def isatty(self):
        return True


def text_of(work_dir, **options):
    options.setdefault('file', io.StringIO())
    return render_terminal(build_report(read_run(work_dir)), **options)


def test_the_terminal_tells_what_the_page_tells(tmp_path):
    bad_run(tmp_path)
    text = text_of(tmp_path, width=120)
    for words in (
        'suspicious',
        '3 incidents: 2 suspicious, 1 benign.',
        'epoch 2, iteration 71',
        'bbox_head.reg_ffn',
        'bbox_head.fc_reg.weight',
        '4x256',
        'confidence 0.85, high',
        'culprit',
        'optim_wrapper = dict(clip_grad=dict(max_norm=0.1))',
        'AdaptiveClipHook',
        'X: a non-finite step',
    ):
        assert words in text


def test_it_is_plain_when_piped_and_coloured_on_a_terminal(tmp_path, monkeypatch):
    for name in ('NO_COLOR', 'FORCE_COLOR', 'TTY_COMPATIBLE'):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv('TERM', 'xterm-256color')
    bad_run(tmp_path)
    assert '\x1b' not in text_of(tmp_path)
    assert '\x1b[' in text_of(tmp_path, file=Terminal())


@pytest.mark.parametrize('text', HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize('width', [40, 100])
def test_a_narrow_terminal_is_kept_and_no_text_acts_on_it(tmp_path, text, width):
    hostile_run(tmp_path, text)
    report = build_report(read_run(tmp_path))
    shown = render_terminal(report, file=io.StringIO(), width=width)
    assert '\x1b' not in shown
    assert '\u202e' not in shown
    if '[bold]' in text:
        assert '[bold]red[/bold]' in ''.join(shown.split())
    # a config is not folded, so that it can be copied
    advice = report.incidents[0].advice[0]
    config = [line.rstrip() for line in format_config(advice.config).splitlines()]
    long = [line for line in shown.splitlines() if len(line) > width]
    assert set(long) <= set(config)


def test_forty_columns_show_every_incident(tmp_path):
    bad_run(tmp_path)
    shown = text_of(tmp_path, width=40)
    assert 'When: epoch 2, iteration 51' in shown
    assert max(len(line) for line in shown.splitlines()) <= 51  # the config, whole


def test_an_empty_run_says_so(tmp_path):
    write_run(tmp_path, steps=[])
    assert 'No optimizer step is recorded' in text_of(tmp_path)


def test_many_incidents_are_counted(tmp_path):
    write_run(tmp_path, incidents=[incident_row(i) for i in range(8)])
    text = text_of(tmp_path, width=100)
    assert '3 more in report.html' in text
    assert 'epoch 2, iteration 8' in text


def test_one_incident_is_told_alone():
    incident = parse_incident(incident_row(70, rank=3), folder='x/70-rank3')
    text = render_incident(incident, file=io.StringIO(), width=100)
    assert text.strip().startswith('Non-finite gradient, epoch 2, iteration 71, rank 3')
    assert 'x/70-rank3/incident.json' in text


@pytest.mark.parametrize(
    'values', [[0.0, 0.0], [1.0], [float('inf')] * 3, [1e-300, 1e300]]
)
def test_a_curve_of_extremes_is_drawn(values):
    assert len(sparkline(values, 10)) == len(values)


def test_without_rich_a_terminal_gets_the_plain_page(tmp_path, monkeypatch):
    bad_run(tmp_path)
    plain = text_of(tmp_path, width=80)
    monkeypatch.setitem(sys.modules, 'rich.console', None)
    assert text_of(tmp_path, file=Terminal(), width=80) == plain
