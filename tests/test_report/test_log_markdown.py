from __future__ import annotations

import re

import pytest
from test_report.log_builder import make_analysis, make_event
from test_report.run_builder import HOSTILE

from mmgradguard.core.log_analysis import Advice, Note
from mmgradguard.report.log_markdown import render_log_markdown
from mmgradguard.report.log_story import build_story
from mmgradguard.report.markdown_parts import MAX_LENGTH


def markdown_of(analysis, lang='en'):
    return render_log_markdown(build_story(analysis, lang))


def test_it_can_be_pasted():
    text = markdown_of(make_analysis())
    assert text.startswith('### Training log: fatal\n\n**Fatal: from line 15')
    assert '- **line 7, epoch 1, iteration 200 (first):** Isolated spike: ' in text
    assert '1. Lower the lr from 0.002 to 2.5e-4' in text
    assert '\n   ```python\n   optim_wrapper = dict(' in text
    assert '2. A lower max_norm alone is no cure' in text
    assert '| log | `runs/a.log` |' in text
    assert '| max_norm | 0.1 |' in text
    assert text.endswith('still be growing.\n')
    assert '### \u8bad\u7ec3\u65e5\u5fd7' in markdown_of(make_analysis(), 'zh')


@pytest.mark.parametrize(
    ('source', 'shown'),
    [
        ('/home/alice/runs/detr/20250101.log', '.../runs/detr/20250101.log'),
        ('/data/alice/20250101.log', '.../20250101.log'),
        ('home/alice/20250101.log', '.../20250101.log'),
        (r'C:\Users\alice\x.log', '.../x.log'),
        ('~/x.log', '.../x.log'),
    ],
)
def test_no_user_name_leaks(source, shown):
    event = make_event(file=source)
    note = Note('a', {'path': source})
    analysis = make_analysis(
        source=source,
        events=[event, make_event(file='other.log')],
        advice=[Advice(note, {'load_from': source})] * (source[:5] != 'home/'),
        unknowns=[note] * (source[:5] != 'home/'),
    )
    text = markdown_of(analysis)
    assert 'alice' not in text
    assert f'`{shown}`' in text


@pytest.mark.parametrize('text', HOSTILE, ids=range(len(HOSTILE)))
def test_no_string_becomes_markup(text):
    event = make_event(term=text, value_of=text, layer=text, file=text)
    analysis = make_analysis(
        source=text or 'x',
        events=[event],
        reasons=[Note('reason.masked_nan', {'line': 1, 'term': text})],
        advice=[Advice(Note(text or 'x'), {'a': text})],
    )
    analysis.facts.model = text
    shown = markdown_of(analysis)
    outside = re.sub(r'(?ms)^ *(`{3,})python$.*?^ *\1$', '', shown)
    assert '<script' not in outside
    assert '</script' not in outside
    assert not re.search(r'@\w', re.sub('<code>.*?</code>', '', outside))
    for line in outside.splitlines():
        if line.startswith('|'):
            assert line.endswith('|')
            assert line.count('|') == 3
        assert re.sub('`[^`|]+`', '', line).count('`') == 0


def test_a_long_page_is_cut_for_the_tracker():
    notes = [Note('x' * 900)] * 200
    analysis = make_analysis(reasons=notes, unknowns=notes, normality=notes)
    text = markdown_of(analysis)
    assert len(text) < MAX_LENGTH + 1
    assert text.endswith('... cut here; the rest is in --json\n')
