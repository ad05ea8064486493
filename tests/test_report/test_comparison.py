from __future__ import annotations

import io
import json
import math
import re

import pytest
from test_report.html_page import Page, all_texts
from test_report.log_builder import make_analysis, make_event, make_page
from test_report.run_builder import HOSTILE

from mmgradguard.core.jsonio import dumps
from mmgradguard.core.log_analysis import Series
from mmgradguard.core.types import Verdict
from mmgradguard.report.compare_html import render_compare_html
from mmgradguard.report.compare_pages import (
    comparison_json,
    render_compare_markdown,
    render_compare_text,
)
from mmgradguard.report.compare_story import build_compare_story
from mmgradguard.report.comparison import compare_runs, unique_names


def run_of(source, losses, verdict=Verdict.HEALTHY, seconds=0.5, **fields):
    """Return a healthy run with these total losses, a row every 50 iterations."""
    num = len(losses)
    events = make_analysis().events if verdict is Verdict.FATAL else []
    for event in events:
        event.first_row = min(event.first_row, num - 1)
    analysis = make_analysis(
        source=source,
        verdict=verdict,
        events=events,
        num_rows=num,
        rows_lost=len(events),
    )
    series = [
        Series('loss', losses),
        Series('loss_cls', [0.75 * x for x in losses]),
        Series('loss_bbox', [0.25] * num),
        Series('grad_norm', [5.0] * num),
        Series('time', [seconds] * num),
        Series('lr', [1e-4] * num),
    ]
    values = dict(analysis=analysis, series=series, terms=['loss_cls', 'loss_bbox'])
    return make_page(num, **{**values, **fields})


def story_of(*pages, lang='en'):
    return build_compare_story(compare_runs(pages), lang)


def test_the_better_run_is_named_with_what_it_is_better_in():
    fixed = run_of('after.log', [1.0] * 30)
    lost = run_of('before.log', [2.0] * 30, Verdict.FATAL)
    story = story_of(lost, fixed)
    assert story.sentences[0] == (
        'after.log is better in verdict (healthy against fatal).'
    )
    slow = run_of('slow.log', [0.5] * 30, seconds=1.0)
    assert story_of(fixed, slow).sentences[:2] == [
        'slow.log is better in loss at the end of what they share (0.5 against 1).',
        'after.log is better in speed (0.5 s for one iteration against 1 s).',
    ]


def test_what_a_mask_prints_does_not_win():
    masked = run_of('masked.log', [0.01] * 30, Verdict.FATAL)
    healthy = run_of('healthy.log', [1.0] * 30)
    (first, *_) = story_of(masked, healthy).sentences
    assert first == 'healthy.log is better in verdict (healthy against fatal).'


@pytest.mark.parametrize('bad', [math.nan, math.inf])
def test_a_loss_that_is_not_finite_does_not_win(bad):
    good = run_of('good.log', [1.0] * 30)
    worse = run_of('bad.log', [0.5] * 15 + [bad] * 15, Verdict.SUSPICIOUS)
    (first, *_) = story_of(worse, good).sentences
    assert first.startswith('good.log is better in verdict (healthy against suspicious')
    assert 'loss at the end of what they share (1 against nan)' in first


def test_equal_runs_are_equal():
    pages = run_of('a.log', [1.0] * 30), run_of('b.log', [1.01] * 30)
    assert story_of(*pages).sentences[0].startswith('No difference that the logs show')
    assert compare_runs(pages).terms == []


@pytest.mark.parametrize(
    ('metric', 'better'), [('coco/bbox_mAP', 'b.log'), ('error', None)]
)
def test_the_run_that_validates_better_is_named(metric, better):
    runs = [run_of('a.log', [1.0] * 30), run_of('b.log', [1.0] * 30)]
    for run, value in zip(runs, (0.3, 0.4)):
        run.analysis.facts.metric, run.analysis.facts.last_metric = metric, value
    (first, *_) = story_of(*runs).sentences
    told = f'{better} is better in validation (coco/bbox_mAP 0.4 against 0.3).'
    assert (first == told) == (better is not None)


def test_one_of_three_wins_alone_or_nobody_does():
    runs = [run_of(f'{i}.log', [float(i)] * 30) for i in (3, 1, 2)]
    assert '1.log is better in loss' in story_of(*runs).sentences[0]
    assert '(1 against 3, 2)' in story_of(*runs).sentences[0]
    ties = [runs[1], run_of('x.log', [1.0] * 30), runs[0]]
    assert story_of(*ties).sentences[0] == 'No run is better than all the others.'


def test_a_lost_run_and_two_that_tie_are_not_one_verdict():
    runs = [run_of(name, [1.0] * 30) for name in ('a.log', 'b.log')]
    lost = run_of('lost.log', [1.0] * 30, Verdict.FATAL)
    (first, *_) = story_of(*runs, lost).sentences
    assert first == 'No run is better than all the others.'


def lost_at(row, source):
    page = run_of(source, [1.0] * 60, Verdict.FATAL)
    page.analysis.events = [
        make_event(kind='nan_sticks', recovered=False, first_row=row, last_row=59)
    ]
    return page


def test_of_two_lost_runs_the_one_that_got_further_is_named():
    story = story_of(lost_at(0, 'a.log'), lost_at(32, 'b.log'))
    assert story.sentences[:2] == [
        'b.log is better in how far it got before it was lost '
        '(iteration 1600 against 0).',
        'There is no loss to compare: the loss of a lost run counts for nothing.',
    ]
    by_row = lost_at(32, 'b.log')
    by_row.iterations = [-1] * 60
    (first, *_) = story_of(lost_at(0, 'a.log'), by_row).sentences
    assert first.endswith('before it was lost (row 32 against 0).')


def test_two_runs_that_are_lost_at_once_are_not_called_equal():
    story = story_of(lost_at(5, 'a.log'), lost_at(5, 'b.log'))
    assert story.sentences[0] == 'The verdict is the same.'
    assert story.sentences[1].startswith('There is no loss to compare')


@pytest.mark.parametrize(('num_rows', 'is_ranked'), [(4, False), (5, True)])
def test_losses_need_five_common_rows(num_rows, is_ranked):
    low, high = run_of('a.log', [1.0] * num_rows), run_of('b.log', [2.0] * 30)
    told = story_of(low, high).sentences
    assert any('better in loss' in text for text in told) == is_ranked
    few = 'Too few common rows to rank the losses: 5 are needed.'
    assert (few in told) != is_ranked


@pytest.mark.parametrize('format_', ['ultralytics_csv', 'detectron2_json'])
def test_a_time_that_is_not_of_one_iteration_wins_nothing(format_):
    runs = [run_of(f'{i}.log', [1.0] * 9, seconds=i) for i in (1.0, 2.0, 0.001)]
    runs[2].analysis.format = format_
    story = story_of(*runs)
    assert story.sentences[0] == (
        '1.0.log is better in speed (1 s for one iteration against 2 s).'
    )
    assert dict(story.rows)['seconds for one iteration'] == ['1', '2', '-']
    assert 'speed' not in story_of(*runs[1:]).sentences[0]


def test_only_common_iterations_are_compared():
    long = run_of('long.log', [10.0 - i for i in range(10)])
    short = run_of('short.log', [9.0, 8.0, 7.0, 6.0])
    comparison = compare_runs([long, short])
    assert (comparison.first, comparison.last, comparison.num_common) == (50, 200, 4)
    assert [run.loss_first for run in comparison.runs] == [10.0, 9.0]
    assert [run.loss_last for run in comparison.runs] == [7.0, 6.0]
    story = build_compare_story(comparison)
    assert 'Compared over iterations 50 to 200, which all have (4 rows).' in (
        story.sentences
    )
    assert dict(story.rows)['loss at 200'] == ['7', '6']


def test_other_intervals_are_compared_at_the_nearest_row():
    dense = run_of('dense.log', [float(i) for i in range(1, 101)])
    dense.iterations = list(range(10, 1010, 10))
    sparse = run_of('sparse.log', [1.0, 2.0, 3.0])
    sparse.iterations = [104, 205, 306]
    comparison = compare_runs([dense, sparse])
    assert comparison.num_common == 3
    assert comparison.runs[0].loss_first == 10.0  # iteration 100, next to 104
    assert comparison.runs[0].loss_last == 31.0


def test_runs_without_a_common_iteration_say_so():
    late = run_of('late.log', [1.0, 2.0])
    late.iterations = [9000, 9050]
    comparison = compare_runs([run_of('a.log', [1.0, 2.0]), late])
    story = build_compare_story(comparison)
    assert comparison.num_common == 0
    assert story.sentences[0] == 'The verdict is the same.'
    assert any('no iterations in common' in text for text in story.sentences)
    assert not any(name.startswith('loss') for name, _ in story.rows)
    data = comparison_json(comparison, story, 'en')
    assert data['common'] is None


def test_rows_are_compared_where_a_log_prints_no_iteration():
    epochs = run_of('epochs.log', [3.0, 2.0])
    epochs.iterations = [-1, -1]
    comparison = compare_runs([run_of('a.log', [1.0, 2.0, 3.0]), epochs])
    assert (comparison.first, comparison.last) == (1, 2)
    told = build_compare_story(comparison).sentences
    assert 'Compared by rows 1 to 2' in ' '.join(told)


def test_a_resumed_row_counts_once_and_the_newest():
    resumed = run_of('a.log', [1.0, 2.0, 3.0, 20.0, 30.0])
    resumed.iterations = [50, 100, 150, 100, 150]
    comparison = compare_runs([resumed, run_of('b.log', [1.0, 2.0, 3.0])])
    assert comparison.num_common == 3
    assert comparison.runs[0].loss_last == 30.0


def test_terms_that_differ_most_are_listed_and_other_terms_are_remarked():
    story = story_of(run_of('a.log', [1.0] * 30), run_of('b.log', [2.0] * 30))
    assert story.terms == [('loss_cls', ['0.75', '1.5'])]
    other = run_of('b.log', [2.0] * 30)
    other.terms = ['loss_cls']
    sentences = story_of(run_of('a.log', [1.0] * 30), other).sentences
    assert any('different loss terms' in text for text in sentences)


def test_a_log_without_a_total_or_time_is_compared_by_the_rest():
    bare = run_of('bare.log', [1.0] * 9, total=None)
    bare.series = [s for s in bare.series if s.name == 'grad_norm']
    story = story_of(bare, run_of('a.log', [1.0] * 9))
    assert dict(story.rows)['loss at 450'] == ['-', '1']
    assert story.terms == []


def test_names_tell_runs_apart():
    assert unique_names(['a/x.log', 'b/x.log', 'c/y.log'])[0] == 'a/x.log'
    assert unique_names(['a/x.log', 'a/x.log']) == ['x.log (1)', 'x.log (2)']
    assert unique_names(['-', 'm' * 99])[1].endswith('m' * 18)


def test_text_is_a_table_or_cards():
    story = story_of(run_of('a.log', [1.0] * 9), run_of('b.log', [2.0] * 9))
    wide = render_compare_text(story, file=io.StringIO(), width=100)
    assert re.search(r'^verdict +healthy +healthy$', wide, re.MULTILINE)
    assert re.search(r'^loss_cls +0.75 +1.5$', wide, re.MULTILINE)
    narrow = render_compare_text(story, file=io.StringIO(), width=40)
    assert '- figure: verdict\n  a.log: healthy\n  b.log: healthy\n' in narrow
    assert max(map(len, narrow.splitlines())) <= 40


def test_chinese_has_no_english_sentences():
    pages = run_of('a.log', [1.0] * 9, Verdict.FATAL), run_of('b.log', [2.0] * 9)
    text = render_compare_text(story_of(*pages, lang='zh'), width=100)
    for words in ('better', 'verdict', 'healthy', 'rows', 'Compared'):
        assert words not in text


def test_json_is_strict_and_whole():
    comparison = compare_runs(
        [run_of('a.log', [1.0] * 9), run_of('b.log', [math.nan] * 9, Verdict.FATAL)]
    )
    story = build_compare_story(comparison)
    text = dumps(comparison_json(comparison, story, 'en'))
    data = json.loads(text, parse_constant=pytest.fail)
    assert [run['name'] for run in data['runs']] == ['a.log', 'b.log']
    assert [run['loss_last'] for run in data['runs']] == [1.0, 'nan']
    assert data['runs'][1]['analysis']['verdict'] == 'fatal'
    assert data['common'] == {
        'first': 50,
        'last': 450,
        'num_rows': 9,
        'unit': 'iteration',
    }
    assert not comparison.is_clean


def test_the_page_overlays_the_curves():
    comparison = compare_runs([run_of('a.log', [1.0] * 9), run_of('b.log', [2.0] * 12)])
    page = Page(render_compare_html(comparison, build_compare_story(comparison)))
    titles = [f['layout']['yaxis']['title']['text'] for f in page.figures.values()]
    assert titles == ['grad_norm', 'loss', 'lr', 'loss_cls']
    norm = next(iter(page.figures.values()))['data']
    assert [(t['name'], len(t['x'])) for t in norm] == [('a.log', 9), ('b.log', 12)]
    assert 'b.log' in page.text
    assert page.urls == []


@pytest.mark.parametrize('text', HOSTILE, ids=range(len(HOSTILE)))
def test_no_string_of_a_log_becomes_markup(text):
    pages = run_of(text or 'x', [1.0] * 9), run_of('b.log', [2.0] * 9)
    for page in pages:
        page.series.append(Series(text, [1.0 if page is pages[0] else 2.0] * 9))
        page.terms = [*page.terms, text]
    comparison = compare_runs(pages)
    story = build_compare_story(comparison)
    page = Page(render_compare_html(comparison, story))
    assert page.tags.count('script') == 3
    assert not {'b', 'i', 'img'} & set(page.tags)
    for shown in all_texts(page.figures):
        assert not re.search(r'<(?!br>|extra>|/extra>)', shown)
    markdown = render_compare_markdown(story)
    assert '<script' not in markdown
    table = [line for line in markdown.splitlines() if line.startswith('|')]
    assert {line.count('|') for line in table} == {4}
    assert '\x1b' not in render_compare_text(story, file=io.StringIO(), width=80)
