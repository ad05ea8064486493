from __future__ import annotations

import re
import sys

import pytest
from test_report.html_page import Page, all_texts
from test_report.run_builder import (
    HOSTILE,
    bad_run,
    hostile_run,
    step_row,
    write_run,
)

from mmgradguard.report import build_report, read_run
from mmgradguard.report.html import render_html
from mmgradguard.report.packages import MissingPackageError


def page_of(work_dir):
    return Page(render_html(build_report(read_run(work_dir))))


def test_the_page_tells_the_run(tmp_path):
    bad_run(tmp_path)
    page = page_of(tmp_path)
    for words in (
        '3 incidents: 2 suspicious, 1 benign.',
        'grad_norm (total_norm)',
        'Non-finite gradient',
        'epoch 2, iteration 71',
        'bbox_head.reg_ffn',
        'aten::addmm',
        'mmdet/models/x.py:123',
        'bbox_head.fc_reg.weight',
        '4 x 256',
        'One Inf in the output of reg_ffn (overflow), confidence 0.85, high',
        '1 of 20480 values is inf',
        '/home/alice/data/coco/train2017/000017.jpg',
        'box 3: width inf',
        'without sample 0: the anomaly was gone',
        'optim_wrapper = dict(clip_grad=dict(max_norm=0.1))',
        'torch 2.13.0',
        'AdaptiveClipHook',
    ):
        assert words in page.text
    assert page.ids.count('incident-1') == 1


def test_the_page_asks_the_network_for_nothing(tmp_path):
    bad_run(tmp_path)
    text = render_html(build_report(read_run(tmp_path)))
    page = Page(text)
    assert 'link' not in page.tags
    assert 'iframe' not in page.tags
    assert all(re.match(r'#|incidents/', url) for url in page.urls)
    assert "default-src 'none'" in text
    # plotly.js has a button that sends a chart to a server, on by default
    assert 'showSendToCloud: false' in text
    assert '@import' not in ''.join(
        code for tag, code in page.scripts if tag == 'style'
    )


def test_plotly_is_inlined_once(tmp_path):
    bad_run(tmp_path)
    page = page_of(tmp_path)
    sizes = [len(code) for tag, code in page.scripts if tag == 'script']
    assert len(sizes) == 3
    assert sum(size > 500_000 for size in sizes) == 1


def test_the_charts_hold_the_spike_the_nan_and_the_incidents(tmp_path):
    bad_run(tmp_path)
    figures = page_of(tmp_path).figures
    assert set(figures) == {'norm', 'modules', 'losses', 'lr'}
    traces = {trace['name']: trace for trace in figures['norm']['data']}
    assert figures['norm']['layout']['yaxis']['type'] == 'log'
    assert max(y for y in traces['grad_norm (total_norm)']['y'] if y) == 1e8
    assert traces['max_norm']['y'][0] == 0.1
    assert traces['non-finite step']['x'] == [71]
    assert traces['non-finite step']['yaxis'] == 'y2'
    assert traces['incident']['x'] == [51, 71, 91]
    assert traces['incident']['customdata'] == [1, 2, 3]
    assert 'bbox_head.reg_ffn' in traces['incident']['text'][1]
    assert figures['modules']['data'][0]['y'] == ['backbone', 'bbox_head']


def test_a_constant_lr_is_drawn_on_a_scale_that_shows_it(tmp_path):
    write_run(tmp_path, steps=[step_row(i, lr=1e-4) for i in range(3)])
    low, high = page_of(tmp_path).figures['lr']['layout']['yaxis']['range']
    assert low == 0
    assert 1e-4 < high < 2e-4


def test_a_skipped_finite_step_is_marked(tmp_path):
    rows = [step_row(i) for i in range(5)]
    rows[2]['skipped'] = 'spike'
    write_run(tmp_path, steps=rows)
    traces = {t['name']: t for t in page_of(tmp_path).figures['norm']['data']}
    assert traces['skipped step']['x'] == [3]
    assert 'skipped: spike' in traces['skipped step']['text'][0]


def test_the_heat_map_marks_what_its_colours_cannot_show(tmp_path):
    rows = [step_row(i, module_norms={'a': 1.0, 'b': 2.0}) for i in range(60)]
    rows[30]['module_norms']['b'] = 1e8
    rows[40]['module_norms']['a'] = 'nan'
    write_run(tmp_path, steps=rows)
    cells, bad, above = page_of(tmp_path).figures['modules']['data']
    assert cells['zmax'] < 2  # the spike does not paint the rest in one colour
    assert (bad['x'], bad['y'], bad['text']) == ([41], ['a'], ['nan'])
    assert (above['x'], above['y'], above['text']) == ([31], ['b'], ['1e+08'])


@pytest.mark.parametrize('text', HOSTILE, ids=range(len(HOSTILE)))
def test_no_string_of_a_file_becomes_markup(tmp_path, text):
    hostile_run(tmp_path / 'hostile', text)
    hostile_run(tmp_path / 'harmless', 'harmless')
    hostile, harmless = page_of(tmp_path / 'hostile'), page_of(tmp_path / 'harmless')
    # a broken escape shows as a tag more or less than the same run has elsewhere;
    # an empty text leaves its own row out, and adds nothing
    if text:
        assert hostile.tags.count('script') == harmless.tags.count('script') == 3
    assert set(hostile.tags) <= set(harmless.tags)
    assert ('{{ 7 * 7 }}' in hostile.text) == ('{{ 7 * 7 }}' in text)
    for trace in all_texts(hostile.figures):
        assert not re.search(r'<(?!br>|extra>|/extra>)', trace)


def test_the_meta_test_finds_markup():
    page = Page('<p><script>alert(1)</script></p>')
    assert page.tags == ['p', 'script']
    assert list(all_texts({'a': ['<b>']})) == ['a', '<b>']


def test_a_template_of_plotly_holds_no_text_of_a_file(tmp_path):
    hostile_run(tmp_path, 'HOSTILE %{x}')
    for figure in page_of(tmp_path).figures.values():
        for trace in figure['data']:
            assert 'HOSTILE' not in trace.get('hovertemplate', '')


def test_a_long_module_name_is_shortened_and_stays_apart(tmp_path):
    names = {'m' * 10_000 + str(i) + 'n' * 100: 1.0 + i for i in range(3)}
    write_run(tmp_path, steps=[step_row(0, module_norms=names)])
    page = page_of(tmp_path)
    labels = page.figures['modules']['data'][0]['y']
    assert len(set(labels)) == 3
    assert all(len(label) < 50 for label in labels)


def test_a_run_without_steps_gives_a_page_that_says_so(tmp_path):
    write_run(tmp_path, steps=[])
    page = page_of(tmp_path)
    assert 'No optimizer step is recorded' in page.text
    assert 'script' not in page.tags


@pytest.mark.parametrize('norm', ['nan', 'inf', 0.0, 1e-320, 1.7e308])
def test_extreme_norms_are_drawn(tmp_path, norm):
    rows = [step_row(i, total_norm=norm, module_norms={'a': norm}) for i in range(3)]
    write_run(tmp_path, steps=rows)
    assert page_of(tmp_path).figures['norm']['data']


@pytest.mark.parametrize(
    ('module', 'line'),
    [
        ('jinja2', 'an HTML page needs Jinja2: pip install Jinja2'),
        ('plotly.offline', 'an HTML page needs plotly: pip install plotly'),
    ],
)
def test_a_missing_package_is_one_clear_line(tmp_path, monkeypatch, module, line):
    write_run(tmp_path)
    report = build_report(read_run(tmp_path))
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingPackageError, match=f'^{re.escape(line)}$'):
        render_html(report)
