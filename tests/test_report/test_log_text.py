from __future__ import annotations

import io
import re
import sys

import pytest
from test_report.log_builder import make_analysis, make_event
from test_report.run_builder import HOSTILE

from mmgradguard.core.log_analysis import Advice, Note
from mmgradguard.core.types import Verdict
from mmgradguard.report.log_story import build_story
from mmgradguard.report.log_text import render_log_text
from mmgradguard.report.wrap import cell_width


class Terminal(io.StringIO):
    def isatty(self):
        return True


def without_colours(text):
    """Drop what rich adds; of ours in HOSTILE nothing may be left of this form."""
    return re.sub(r'\x1b\[(0|1|2|1;\d+)m', '', text)


def text_of(analysis, lang='en', **options):
    options.setdefault('file', io.StringIO())
    return render_log_text(build_story(analysis, lang), **options)


def test_the_page_is_in_the_order_in_which_people_read():
    text = text_of(make_analysis(), width=100)
    parts = [
        'runs/a.log  fatal',
        'Fatal: from line 15',
        'From line 15 on losses are not finite',
        'What happened',
        'line 7, epoch 1, iteration 200 (first): Isolated spike',
        'line 15, epoch 1, iteration 600 (worst): d0.loss_bbox is not finite',
        'Is this normal?',
        'What to change, most likely first',
        'Lower the lr from 0.002 to 2.5e-4',
        '    optim_wrapper = dict(optimizer=dict(lr=0.00025))',
        'What would decide it',
        'What the log cannot tell',
        'Facts',
        'Skipped: 3 lines that are neither',
        'The last line is cut',
    ]
    found = [text.index(part) for part in parts]
    assert found == sorted(found)


def test_a_healthy_run_is_short():
    analysis = make_analysis(
        verdict=Verdict.HEALTHY,
        events=[],
        rows_lost=0,
        reasons=[],
        advice=[],
        would_decide=[],
        unknowns=[],
        normality=[],
    )
    text = text_of(analysis, width=80)
    assert 'Nothing abnormal.' in text
    for heading in ('Is this normal?', 'What to change', 'cannot tell', 'decide'):
        assert heading not in text


def test_long_lists_are_cut_with_a_count():
    events = [make_event(line=line) for line in range(1, 40)]
    text = text_of(make_analysis(events=events), width=100)
    assert '29 more events not shown; --json has all of them.' in text
    assert text.count('Isolated spike') == 10


def test_chinese_is_chinese_throughout():
    text = text_of(make_analysis(), 'zh', width=80)
    for english in ('Fatal', 'line ', 'Facts', 'The ', 'Which', 'rows'):
        assert english not in text
    assert '\u5b64\u7acb\u5c16\u5cf0\uff1agrad_norm' in text


def test_it_is_plain_when_piped_and_coloured_on_a_terminal(monkeypatch):
    for name in ('NO_COLOR', 'FORCE_COLOR', 'TTY_COMPATIBLE'):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv('TERM', 'xterm-256color')
    assert '\x1b' not in text_of(make_analysis())
    assert '\x1b[1;31mfatal' in text_of(make_analysis(), file=Terminal(), width=80)


@pytest.mark.parametrize('lang', ['en', 'zh'])
def test_rich_and_plain_say_the_same(lang, monkeypatch):
    monkeypatch.setenv('TERM', 'xterm')
    rich = text_of(make_analysis(), lang, file=Terminal(), width=200)
    monkeypatch.setitem(sys.modules, 'rich.console', None)
    plain = text_of(make_analysis(), lang, file=Terminal(), width=200)
    assert rich != plain
    assert without_colours(rich) == plain


@pytest.mark.parametrize('lang', ['en', 'zh'])
@pytest.mark.parametrize('file', [io.StringIO, Terminal])
def test_forty_columns_are_kept(lang, file, monkeypatch):
    monkeypatch.setenv('TERM', 'xterm')
    analysis = make_analysis()
    analysis.advice = [Advice(Note('advice.watch'))]  # a config is not folded
    text = text_of(analysis, lang, file=file(), width=40)
    assert max(map(cell_width, without_colours(text).splitlines())) <= 42


@pytest.mark.parametrize('text', HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize('file', [io.StringIO, Terminal])
def test_no_text_of_a_log_acts_on_the_terminal(text, file, monkeypatch):
    monkeypatch.setenv('TERM', 'xterm')
    event = make_event(term=text, value_of=text, layer=text, file=text)
    analysis = make_analysis(source=text or 'x', events=[event])
    shown = without_colours(text_of(analysis, file=file(), width=80))
    assert '\x1b' not in shown
    assert '\u202e' not in shown
    if '[bold]' in text:
        assert '[bold]red[/bold]' in ''.join(shown.split())
