from __future__ import annotations

import json
import math
import re

import pytest
from test_report.html_page import Page, all_texts
from test_report.log_builder import make_analysis, make_event, make_page
from test_report.run_builder import HOSTILE

from mmgradguard.core.log_analysis import Advice, Note, RunFacts, Series
from mmgradguard.report.log_html import render_log_html
from mmgradguard.report.log_story import build_story


def page_of(log_page, lang='en'):
    story = build_story(log_page.analysis, lang, log_page.span())
    return Page(render_log_html(log_page, story))


def traces(figure):
    return {trace['name']: trace for trace in figure['data']}


def test_the_page_tells_what_the_terminal_tells():
    page = page_of(make_page())
    for words in (
        'Fatal: from line 15, epoch 1, iteration 600 on, the training is lost.',
        'Isolated spike: grad_norm had one step of about 1.6e9',
        'What to change, most likely first',
        'optim_wrapper = dict(optimizer=dict(lr=0.00025))',
        'What the log cannot tell',
        '[1][50] - [1][1050]',
        'Skipped: 3 lines that are neither a training row nor a metric',
    ):
        assert words in page.text
    assert page.ids.count('event-1') == page.ids.count('event-2') == 1
    assert '\u53d1\u751f\u4e86\u4ec0\u4e48' in page_of(make_page(), 'zh').text


def test_the_page_asks_the_network_for_nothing():
    page = page_of(make_page())
    assert page.urls == []
    assert not {'link', 'iframe', 'img'} & set(page.tags)
    scripts = [code for tag, code in page.scripts if tag == 'script']
    assert sum(len(code) > 500_000 for code in scripts) == 1


def test_the_curves_hold_the_spike_the_nan_and_the_events():
    figures = page_of(make_page()).figures
    assert list(figures) == ['norm', 'losses']
    norm = traces(figures['norm'])
    layout = figures['norm']['layout']
    assert layout['yaxis']['type'] == 'log'
    assert max(norm['grad_norm']['y']) == 3.11e7
    assert norm['grad_norm']['x'][3] == 200
    assert norm['grad_norm']['customdata'][3] == 'line 7, epoch 1, iteration 200'
    assert norm['event']['x'] == [200, 600]
    assert norm['event']['customdata'] == [1, 2]
    assert 'one step of about 1.6e9' in norm['event']['text'][0]
    assert [(s['x0'], s['x1']) for s in layout['shapes']] == [(200, 200), (600, 1050)]
    losses = traces(figures['losses'])
    assert losses['not finite']['x'] == list(range(600, 1100, 50))
    assert losses['not finite']['text'][0].startswith('d0.loss_bbox nan<br>line 15')
    assert 'event' in losses


def test_the_learning_rate_shares_the_axis_of_the_first_chart():
    figures = page_of(make_page()).figures
    lr = traces(figures['norm'])['lr']
    assert (lr['yaxis'], set(lr['y'])) == ('y3', {1e-4})
    assert 'xaxis' not in lr
    assert figures['norm']['layout']['xaxis']['anchor'] == 'y3'
    assert 'lr' not in traces(figures['losses'])
    page = make_page()
    page.series = [s for s in page.series if s.name != 'grad_norm']
    (figure,) = page_of(page).figures.values()
    assert 'lr' in traces(figure)


def test_the_terms_of_a_decoder_layer_are_one_entry_of_the_legend():
    names = [f'd{i}.loss_{k}' for i in range(2) for k in ('cls', 'bbox', 'iou')]
    names += ['frame_0_d1.loss_cls', 'layer_-1_loss_cls', 'dice_loss']
    series = [Series(name, [1.0] * 21) for name in names]
    page = make_page(series=series, total=None, terms=names)
    (figure,) = page_of(page).figures.values()
    shown = [t['name'] for t in figure['data'] if t.get('showlegend', True)]
    assert shown == [
        'd0 (3)',
        'd1 (3)',
        'frame_0_d1 (1)',
        'layer_-1 (1)',
        'dice_loss',
        'event',
    ]
    assert figure['layout']['legend']['groupclick'] == 'togglegroup'
    folded = [t for t in figure['data'] if t.get('legendgroup') == 'd0']
    assert {t['visible'] for t in folded} == {'legendonly'}
    assert [t['text'] for t in folded] == names[:3]


def test_a_long_log_is_bounded_and_keeps_every_abnormal_row():
    num_rows = 60_000
    norm = [5.0 + (row * 7919 % 100) / 100 for row in range(num_rows)]
    norm[30_000], norm[50_001] = 1e9, math.nan
    terms = {f'd{i}.loss_{k}': norm for i in range(6) for k in ('a', 'b', 'c', 'd')}
    rows = [12_345, 12_346, 12_347]
    event = make_event(first_row=rows[0], last_row=rows[-1])
    page = make_page(num_rows, analysis=make_analysis(events=[event]))
    page.series = [Series(name, v) for name, v in {'grad_norm': norm, **terms}.items()]
    page.total, page.terms = None, list(terms)
    story = build_story(page.analysis)
    text = render_log_html(page, story)
    figures = Page(text).figures
    data = json.dumps(figures)
    assert len(data) < 3_500_000
    drawn = traces(figures['norm'])
    x = [50 * (row + 1) for row in (*rows, 30_000)]
    assert set(x) <= set(drawn['grad_norm']['x'])
    assert drawn['not finite']['x'] == [50 * 50_002]


def test_resumed_curves_are_lifted_and_experiments_are_laid_end_to_end():
    page = make_page(6, analysis=make_analysis(events=[]))
    page.iterations = [50, 100, 150, 100, 150, 200]
    x = traces(page_of(page).figures['norm'])['grad_norm']['x']
    assert x == [50, 100, 150, None, 100, 150, 200]
    page.analysis.facts = RunFacts(num_experiments=2)
    figure = page_of(page).figures['norm']
    assert traces(figure)['grad_norm']['x'] == [1, 2, 3, 4, 5, 6]
    assert figure['layout']['xaxis']['title'] == {'text': 'row'}


def test_of_several_files_the_point_names_its_own():
    page = make_page(files=[(0, 'x/a.log'), (3, 'x/<b>.log')])
    where = traces(page_of(page).figures['norm'])['grad_norm']['customdata']
    assert where[2].startswith('a.log, line 6')
    assert where[3].startswith('&lt;b&gt;.log, line 7')


@pytest.mark.parametrize('values', [[math.nan] * 9, [0.0] * 9, [-1.0, 1e308] * 5, [1]])
def test_extreme_columns_are_drawn(values):
    page = make_page(len(values), analysis=make_analysis(events=[]))
    page.series = [Series('grad_norm', values), Series('loss', values)]
    page.terms = []
    figures = page_of(page).figures
    assert set(figures) == {'norm', 'losses'}
    assert figures['losses']['layout']['yaxis']['type'] == 'linear'


def test_a_log_without_curves_still_gives_a_page():
    page = page_of(make_page(series=[]))
    assert 'script' not in page.tags
    assert 'Isolated spike' in page.text


def hostile_page(text):
    name = f'd0.{text}'
    event = make_event(term=name, value_of=text, layer=text, file=text)
    analysis = make_analysis(
        source=text or 'x',
        events=[event],
        reasons=[Note('reason.masked_nan', {'line': 1, 'term': text})],
        advice=[Advice(Note(text or 'x'), {'a': text})],
    )
    analysis.facts.model = text
    page = make_page(analysis=analysis, files=[(0, text), (5, 'b')])
    page.series += [Series(name, [math.nan] * 21)]
    page.terms = [*page.terms, name]
    return page


@pytest.mark.parametrize('text', HOSTILE, ids=range(len(HOSTILE)))
def test_no_string_of_a_log_becomes_markup(text):
    hostile, harmless = page_of(hostile_page(text)), page_of(hostile_page('harmless'))
    assert hostile.tags.count('script') == harmless.tags.count('script') == 3
    assert set(hostile.tags) <= set(harmless.tags)
    for shown in all_texts(hostile.figures):
        assert not re.search(r'<(?!br>|extra>|/extra>)', shown)
    for figure in hostile.figures.values():
        for trace in figure['data']:
            assert not text or text not in trace.get('hovertemplate', '')
