from __future__ import annotations

import math

import pytest
from test_report.log_builder import make_analysis, make_event
from test_report.run_builder import HOSTILE

from mmgradguard.core.log_analysis import (
    COINCIDENCES,
    EVENT_KINDS,
    Advice,
    Note,
    RunFacts,
)
from mmgradguard.core.types import Verdict
from mmgradguard.report.log_json import analysis_json
from mmgradguard.report.log_story import MAX_EVENTS, build_story, describe_event


def told(event, **facts):
    return describe_event(event, make_analysis(facts=RunFacts(**facts)))


def test_a_spike_is_told_as_one_step():
    assert told(make_event(), window=50) == (
        'Isolated spike: grad_norm had one step of about 1.6e9 (printed as a mean of '
        '3.11e7 over 50 iterations); typical is 5.2. loss_cls moved first. '
        'Back in its band at line 8.'
    )
    assert 'over 50 optimizer steps' in told(make_event(), window=50, accumulation=4)
    of_loss = make_event(value_of='loss_cls')
    assert 'over 50 iterations' in told(of_loss, window=50, accumulation=4)
    assert 'a mean of 3.11e7);' in told(make_event())


@pytest.mark.parametrize('single', [None, math.inf, math.nan, 3.11e7])
def test_a_step_that_is_not_known_is_not_claimed(single):
    text = told(make_event(value_single_step=single), window=50)
    assert text.startswith('Isolated spike: grad_norm prints 3.11e7; typical is 5.2.')


def test_no_number_at_all():
    text = told(make_event(value_printed=None, value_single_step=None))
    assert text.startswith('Isolated spike: no number is printed for it.')


@pytest.mark.parametrize(
    ('fields', 'words'),
    [
        (dict(kind='burst', num_rows=3, last_line=9), 'over 3 rows, to line 9: grad_'),
        (
            dict(
                kind='masked_nan',
                value_of='loss_cls',
                value_printed=21.8341,
                recovered=False,
            ),
            'loss_cls prints exactly 21.8341 in 1 row',
        ),
        (
            dict(kind='nan_sticks', value_of='loss_cls', value_printed=math.nan),
            'loss_cls is not finite (it prints nan) in 1 row',
        ),
        (
            dict(kind='norm_overflow', value_printed=math.inf),
            'The gradient norm itself overflows: grad_norm prints inf',
        ),
        (dict(kind='finite_divergence', num_rows=20), 'finite values over 20 rows'),
        (
            dict(kind='not_learning', value_of='loss', value_printed=2.3, num_rows=99),
            'loss stays at about 2.3 over 99 rows',
        ),
        (
            dict(kind='amp_skip', value_printed=math.inf, term=None),
            'grad_norm prints inf and the losses stay normal',
        ),
        (
            dict(kind='amp_skip', value_printed=math.nan, value_of='loss', num_rows=2),
            'loss prints nan in 2 rows, and the next rows are finite',
        ),
        (
            dict(ended_by_resume=True, recovered=False),
            'only because training was resumed from an older checkpoint.',
        ),
        (dict(kind='from_the_future'), 'from_the_future in grad_norm: grad_norm had'),
        (dict(recovered=False), 'Not back in its band where the log ends.'),
        (dict(recovered_line=None), 'It recovered.'),
        (dict(leads_into=9), 'A worse event follows at once, at line 9.'),
        (dict(norm_led_rows=5), 'grad_norm rose 5 rows before the loss.'),
        (dict(norm_led_rows=-1), 'The loss rose 1 row before grad_norm.'),
        (dict(layer='d3'), 'loss_cls (layer d3) moved first.'),
        (
            dict(coincides_with=['warmup_end', 'epoch_border', 'unheard_of']),
            'It coincides with the end of the warmup and the border of an epoch.',
        ),
    ],
)
def test_every_kind_and_every_circumstance_is_told(fields, words):
    assert words in told(make_event(**fields))


def test_a_loss_that_printed_nan_did_not_stay_normal():
    skip = make_event(kind='amp_skip', value_printed=math.nan, value_of='loss')
    assert 'losses stay normal' not in told(skip)


def test_several_healthy_experiments_say_which_one_is_told():
    facts = RunFacts(num_experiments=3)
    reasons = [Note('reason.healthy', {'rows': 60})]
    analysis = make_analysis(
        verdict=Verdict.HEALTHY, events=[], rows_lost=0, facts=facts, reasons=reasons
    )
    (text,) = build_story(analysis).reasons
    assert text.startswith('Of the last experiment, whose facts are below, none of 60')
    assert text.endswith('nor does any row of the other 2 experiments.')
    assert analysis_json(analysis)['reasons'] == [text]
    facts.num_experiments = 1
    assert build_story(analysis).reasons[0].startswith('No row of 60 leaves')


def test_one_row_that_is_lost_is_one():
    story = build_story(make_analysis(rows_lost=1, hours_lost=1.004))
    assert '1 row of 21 (5 %) is lost, about 1 hour of training.' in story.headline


def test_what_moved_first_is_not_told_twice():
    event = make_event(kind='nan_sticks', value_of='loss_cls', value_printed=math.nan)
    assert 'moved first' not in told(event)
    assert 'moved first' not in told(make_event(term=None))
    skip = told(make_event(kind='amp_skip', term=None))
    assert 'Back in its band' not in skip


@pytest.mark.parametrize('lang', ['en', 'zh'])
@pytest.mark.parametrize('kind', EVENT_KINDS)
def test_no_code_is_shown_for_words(kind, lang):
    event = make_event(kind=kind, coincides_with=list(COINCIDENCES), norm_led_rows=1)
    for recovered in (True, False):
        event.recovered = recovered
        story = build_story(make_analysis(events=[event]), lang)
        assert 'event.' not in story.events[0].text
        assert 'coincidence.' not in story.events[0].text
        assert story.events[0].text[-1] in '.\u3002'


def test_the_first_and_the_worst_come_first():
    events = [make_event(line=line, last_line=line) for line in range(1, 31)]
    events[20] = make_event(kind='norm_overflow', line=21, recovered=True)
    events[25] = make_event(kind='burst', line=26, recovered=False)
    story = build_story(make_analysis(events=events))
    lines = [text.event.line for text in story.events]
    assert lines == [1, 26, 2, 3, 4, 5, 6, 7, 8, 9]
    assert [text.mark for text in story.events[:3]] == ['first', 'worst', '']
    assert story.events[0].title == 'line 1, epoch 1, iteration 200 (first): '
    assert story.num_hidden == 30 - MAX_EVENTS


def test_one_event_needs_no_mark():
    story = build_story(make_analysis(events=[make_event(recovered=False)]))
    assert story.events[0].title == 'line 7, epoch 1, iteration 200: '
    both = [make_event(recovered=False), make_event(line=9)]
    assert build_story(make_analysis(events=both)).events[0].mark == 'first and worst'


def test_of_a_folder_the_file_is_named():
    story = build_story(make_analysis(source='runs/x/'))
    assert story.events[0].place == 'a.log, line 7, epoch 1, iteration 200'
    story = build_story(make_analysis(), files=['runs/a.log', 'x/b.log'])
    assert story.source == 'a.log, b.log'
    assert story.events[0].place.startswith('a.log, line 7')
    event = make_event(epoch=None, iteration=None)
    assert build_story(make_analysis(events=[event])).events[0].place == 'line 7'


@pytest.mark.parametrize(
    ('fields', 'headline'),
    [
        (
            {},
            'Fatal: from line 15, epoch 1, iteration 600 on, the training is lost. '
            '10 rows of 21 (48 %) are lost, about 1.5 hours of training.',
        ),
        (
            dict(hours_lost=None),
            'Fatal: from line 15, epoch 1, iteration 600 on, the training is lost. '
            '10 rows of 21 (48 %) are lost.',
        ),
        (
            dict(verdict=Verdict.SUSPICIOUS, rows_lost=0),
            'Suspicious: look at line 15, epoch 1, iteration 600; the log does not '
            'settle it.',
        ),
        (
            dict(verdict=Verdict.SUSPICIOUS, rows_lost=0, events=[]),
            'Suspicious: the log does not settle it.',
        ),
        (
            dict(verdict=Verdict.BENIGN, rows_lost=0, events=[make_event()]),
            'Benign: 1 event, over by itself and without harm; the first at line 7, '
            'epoch 1, iteration 200.',
        ),
        (
            dict(verdict=Verdict.HEALTHY, rows_lost=0, events=[]),
            'Healthy: nothing abnormal in 21 training rows.',
        ),
    ],
)
def test_the_verdict_is_one_sentence_and_what_was_lost(fields, headline):
    assert build_story(make_analysis(**fields)).headline == headline


def test_facts_that_are_known_are_told():
    facts = RunFacts(
        interval=50,
        window=50,
        accumulation=4,
        inferred=['accumulation'],
        is_amp=True,
        loss_scale='dynamic',
        model='DETR',
        family='detr',
        num_resumes=2,
        num_validations=3,
        metric='bbox_mAP',
        best_metric=0.4,
        last_metric=0.39,
        hours=12.5,
        lr=1e-4,
    )
    story = build_story(make_analysis(facts=facts), span='[1][50] - [2][100]')
    assert dict(story.facts) == {
        'format': 'mmengine_text',
        'training rows': '21',
        'span': '[1][50] - [2][100]',
        'printed every': '50 iterations',
        'a value is a mean over': '50 entries',
        'gradient accumulation': '4 iterations for one optimizer step '
        '(inferred from the rows)',
        'lr': '1e-4',
        'model': 'DETR (family detr)',
        'mixed precision': 'yes, loss scale dynamic',
        'validation': '3 rows; bbox_mAP best 0.4, last 0.39',
        'parts': '1 experiment, 2 resumes',
        'time': '12 hours',
    }
    facts = dict(build_story(make_analysis(facts=RunFacts(is_amp=False))).facts)
    assert facts == {
        'format': 'mmengine_text',
        'training rows': '21',
        'mixed precision': 'no',
    }


def test_skipped_lines_and_a_cut_end_are_remarked():
    assert len(build_story(make_analysis()).remarks) == 2
    assert build_story(make_analysis(facts=RunFacts())).remarks == []


def test_advice_comes_with_lines_for_a_config():
    story = build_story(make_analysis())
    assert story.advice[0].config == 'optim_wrapper = dict(optimizer=dict(lr=0.00025))'
    assert story.advice[1].config == ''


@pytest.mark.parametrize('text', HOSTILE, ids=range(len(HOSTILE)))
def test_every_string_is_one_clean_line(text):
    analysis = make_analysis(
        source=text or 'x',
        events=[make_event(term=text, value_of=text, layer=text, file=text)],
        reasons=[Note('reason.masked_nan', {'line': 1, 'term': text})],
        advice=[Advice(Note(text or 'x', {'a': text}), {'a': text})],
        facts=RunFacts(model=text, metric=text, best_metric=1.0, num_validations=1),
    )
    for lang in ('en', 'zh'):
        story = build_story(analysis, lang, span=text)
        strings = [story.headline, story.source, *story.reasons]
        strings += [story.events[0].text, story.events[0].title, story.advice[0].text]
        strings += [value for _, value in story.facts]
        for shown in strings:
            assert '\n' not in shown
            assert '\x1b' not in shown
            assert '\u202e' not in shown
            assert len(shown) <= 1000
