from __future__ import annotations

import math
import statistics

from test_report.run_builder import incident_row

from mmgradguard.core.types import StepSample
from mmgradguard.report.incident_record import parse_incident
from mmgradguard.report.run_sentences import describe
from mmgradguard.report.summary import build_summary, count_skipped_images


def steps_of(norms, max_norm=0.1, **fields):
    return [
        StepSample(
            step=i,
            iteration=2 * i + 1,  # two iterations a step
            epoch=0,
            total_norm=norm,
            max_norm=max_norm,
            clip_coef=1.0 if max_norm is None else min(1.0, max_norm / norm),
            **fields,
        )
        for i, norm in enumerate(norms)
    ]


def told(steps, incidents=()):
    return ' '.join(describe(build_summary(steps, incidents), incidents))


def test_figures_match_an_independent_reference():
    norms = [float(i) for i in range(1, 101)]
    summary = build_summary(steps_of(norms, max_norm=50.0), [])
    assert summary.num_steps == 100
    assert summary.num_iterations == 199
    assert summary.median_norm == statistics.median(norms)
    assert summary.p95_norm == 95.0
    assert (summary.largest_norm, summary.largest_iteration) == (100.0, 199)
    assert (summary.num_clipped, summary.num_clippable) == (50, 100)
    expected = statistics.median([min(1.0, 50 / norm) for norm in norms])
    assert summary.median_clip_coef == expected


def test_nonfinite_norms_enter_no_figure():
    steps = steps_of([1.0, 2.0, 3.0])
    steps[1].total_norm, steps[1].clip_coef = math.nan, math.nan
    steps[1].skipped = 'nonfinite'
    summary = build_summary(steps, [])
    assert (summary.median_norm, summary.largest_norm) == (2.0, 3.0)
    assert (summary.num_nonfinite, summary.num_nonfinite_taken) == (1, 0)
    assert summary.num_clippable == 2


def test_a_run_that_is_always_clipped_is_explained():
    steps = steps_of([60.0 + i for i in range(20)])
    text = told(steps)
    assert '20 of 20 steps (100 %) clipped at max_norm 0.1' in text
    assert 'lr x max_norm sets the step' in text
    # short, and after what needs a person
    assert len(describe(build_summary(steps, []), [])[-1]) < 220
    assert text.index('Largest grad_norm') < text.index('(100 %) clipped')


def test_a_run_that_is_sometimes_clipped_is_not_explained():
    text = told(steps_of([1.0] * 11 + [200.0] * 89, max_norm=100.0))
    assert '89 of 100 steps (89 %) clipped.' in text
    assert 'lr x max_norm' not in text


def test_a_moving_threshold_that_always_clips_is_not_called_a_ceiling():
    steps = steps_of([60.0] * 20)
    for index, step in enumerate(steps):
        step.max_norm = 10.0 + index
    text = told(steps)
    assert 'by a threshold between 10 and 29' in text
    assert 'lr x max_norm' not in text


def test_skips_of_the_scaler_are_called_harmless():
    steps = steps_of([41.0] * 50, max_norm=None)
    for index in (0, 1, 2):
        steps[index].skipped, steps[index].total_norm = 'scaler', math.inf
    text = told(steps)
    assert '3 of 50 steps skipped by the scaler' in text
    assert 'harmless' in text
    assert 'not skipped' not in text


def test_a_nonfinite_step_that_was_taken_is_a_warning():
    steps = steps_of([1.0, 1.0])
    steps[0].total_norm = math.nan
    assert '1 step with a non-finite grad_norm (total_norm) was not skipped' in told(
        steps
    )


def test_the_largest_step_is_told_in_the_words_of_the_host():
    text = told(steps_of([60.0] * 9 + [6e7]))
    assert 'Largest grad_norm (total_norm) of a single step: 6e+07' in text
    assert 'epoch 1, iteration 20, 1e+06 times the median' in text


def test_skipped_images_are_counted_over_skipped_incidents_only():
    rows = [
        incident_row(1),
        incident_row(2),
        incident_row(3, action='clipped'),
    ]
    rows[0]['samples'].append(dict(rows[0]['samples'][1]))  # Mosaic: twice in a batch
    incidents = [parse_incident(row, folder=str(row['iteration'])) for row in rows]
    images = count_skipped_images(incidents)
    assert [(i.img_id, i.num_skips, i.num_culprit) for i in images] == [
        ('17', 2, 2),
        ('18', 2, 0),
    ]
    text = told(steps_of([1.0]), incidents)
    assert 'was in 2 skipped steps, marked as the culprit in 2' in text
    assert 'Image 18' not in text  # the batch has its culprit


def test_an_image_in_many_skipped_steps_is_told_when_no_culprit_is_known():
    rows = [incident_row(1), incident_row(2)]
    for row in rows:
        row['samples'][0]['culprit'] = False
    incidents = [parse_incident(row, folder='x') for row in rows]
    assert 'Image 18 (' in told(steps_of([1.0]), incidents)


def test_runs_that_share_a_folder_are_told():
    steps = steps_of([1.0, 1.0, 1.0])
    assert 'This folder holds' not in told(steps)
    assert 'This folder holds 2 runs; they are counted' in told(steps + steps)


def test_an_empty_run_says_so():
    assert told([]).startswith('No optimizer step is recorded')


def test_a_run_of_zero_and_of_huge_norms_has_figures():
    assert 'of a single step: 0 at' in told(steps_of([0.0, 0.0], max_norm=None))
    text = told(steps_of([1e-308, 1e-308, 1e308], max_norm=None))
    assert 'inf times the median' in text


def test_a_run_without_a_finite_norm_says_so():
    steps = steps_of([1.0])
    steps[0].total_norm, steps[0].skipped = math.inf, 'nonfinite'
    assert 'No step had a finite grad_norm' in told(steps)


def test_an_image_of_a_replayed_incident_is_counted_once():
    rows = [incident_row(5), incident_row(5), incident_row(9)]
    names = ('incidents/5', 'incidents/5-2', 'incidents/9')
    incidents = [parse_incident(row, folder=name) for row, name in zip(rows, names)]
    image = count_skipped_images(incidents)[0]
    assert (image.img_id, image.num_skips, image.num_culprit) == ('17', 2, 2)


def test_lost_weights_come_first_and_are_not_to_be_checked():
    steps = steps_of([1.0, math.nan])
    lost = {
        'iteration': 3,
        'epoch': 0,
        'name': 'w',
        'checkpoint': '/w/last_finite_a.pth',
    }
    row = incident_row(3, kind='nonfinite_weights', verdict='fatal', weights_lost=lost)
    sentences = describe(
        build_summary(steps, [parse_incident(row, folder='x')]),
        [parse_incident(row, folder='x')],
    )
    assert sentences[0] == (
        'Weights are not finite since epoch 1, iteration 4 (or shortly before), '
        'such as w: nothing after that can be used. Resume from '
        '/w/last_finite_a.pth (the newest checkpoint with finite weights).'
    )
    text = ' '.join(sentences)
    assert '1 step with a non-finite grad_norm (total_norm) was not skipped.' in text
    assert 'check that the weights are finite' not in text
    assert 'check that the weights are finite' in told(steps)


def test_lost_weights_of_an_older_release_are_told_too():
    row = incident_row(3, kind='nonfinite_weights', verdict='fatal')
    text = told(steps_of([1.0]), [parse_incident(row, folder='x')])
    assert text.startswith('Weights are not finite since epoch 2, iteration 4')
