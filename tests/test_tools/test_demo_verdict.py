"""What counts as found, what is printed of it, and what makes the demo fail."""

from __future__ import annotations

import io
import math
import re

import pytest
from rich.console import Console

from demo import plan, table, verdict
from demo.outcome import Curve

FAULTS = plan.plan_faults(plan.FULL, image_id=17)
UNGUARDED = {fault.name: f'without guard: {fault.name}' for fault in FAULTS}


def incident(iteration, kind, *, module=None, param=None, image=None, action='skipped'):
    return dict(
        iteration=iteration,
        kind=kind,
        action=action,
        first_bad=module and dict(phase='forward', module=module),
        params=[dict(name=param)] if param else [],
        samples=[
            dict(index=0, img_id=3, culprit=False),
            dict(index=1, img_id=image, culprit=image is not None),
        ],
    )


def spike(**changes):
    values = dict(param='decoder.layers.1.ffns.0.layers.1.weight', action='clipped')
    return incident(90, 'grad_spike', **{**values, **changes})


def box(iteration=77, **changes):
    return incident(iteration, 'exception', **{'image': 17, **changes})


def inf(**changes):
    return incident(150, 'nonfinite_gradient', **{'module': 'bbox_head', **changes})


def curve(first, final, *, iterations=240):
    rows = [
        dict(iter=i, loss=first if i <= 10 else final, grad_norm=1.0)
        for i in range(10, iterations + 1, 10)
    ]
    return Curve(rows)


def judge(incidents, *, guarded=None, weights_finite=True, judges_loss=True):
    return verdict.judge(
        FAULTS,
        incidents,
        clean=curve(14.0, 10.0),
        guarded=guarded or curve(14.0, 10.2),
        weights_finite=weights_finite,
        judges_loss=judges_loss,
        skips=dict(exception=4, nonfinite=1),
    )


def render(summary):
    stream = io.StringIO()
    console = Console(file=stream, width=250)
    console.print(table.build_table(summary, UNGUARDED))
    for line in table.describe_summary(summary, '/x/report.html', ['clean 0.1000']):
        console.print(line, soft_wrap=True)
    return stream.getvalue()


def test_an_ap_near_zero_is_explained():
    (line,) = [row for row in render(judge([])).splitlines() if 'COCO mAP' in row]
    assert 'clean 0.1000 (near 0 is expected: ' in line


def test_all_three_found():
    summary = judge([box(6), box(77), spike(), inf()])
    assert summary.failures() == []
    assert summary.share == pytest.approx(0.95)
    text = render(summary)
    cells = [re.split(r'  +', line.strip()) for line in text.splitlines()]
    for row in (
        ['where', 'decoder.layers.1', 'image 17', 'bbox_head.reg_ffn'],
        ['iteration', '90', 'once an epoch', '150'],
        ['found iteration', '90', '6, 77', '150'],
        ['kind', 'grad_spike', 'exception', 'nonfinite_gradient'],
        ['module', 'decoder.layers.1.ffns.0.layers.1', '-', 'bbox_head'],
        ['sample', '-', 'image 17', '-'],
        ['action', 'clipped', 'skipped', 'skipped'],
        ['right', 'yes', 'yes', 'yes'],
        ['without guard', *UNGUARDED.values()],
    ):
        assert row in cells
    assert '3 of 3 with the right module or sample' in text
    assert '14.00 -> 10.20, 95.0% of the clean fall (bar 90%)' in text
    assert '4 exception, 1 nonfinite' in text


@pytest.mark.parametrize(
    ('incidents', 'failure'),
    [
        ([box(), inf()], 'grad_spike: no incident at iteration 90'),
        ([box(), spike(), inf(module='neck')], 'names neck, not bbox_head'),
        ([box(), spike(), inf(module='bbox_header')], 'names bbox_header, not bbox_'),
        ([box(), spike(param=None), inf()], 'names no module, not decoder.layers.1'),
        ([box(), spike(param='decoder.layers.11.w'), inf()], 'names decoder.layers.11'),
        ([box(), spike(action='none'), inf()], 'is none, not clipped or skipped'),
        ([box(image=None), spike(), inf()], 'infinite_box: no incident names image 17'),
        ([box(6), box(action='raised'), spike(), inf()], 'iteration 77: action is rai'),
        ([box(), spike(), inf(action='clipped')], 'action is clipped, not skipped'),
    ],
)
def test_a_wrong_answer_fails(incidents, failure):
    summary = judge(incidents)
    assert len(summary.failures()) == 1
    assert failure in summary.failures()[0]
    text = render(summary)
    assert ' NO ' in text
    assert '2 of 3 with the right module or sample' in text


def test_a_loss_that_fell_too_little_fails():
    summary = judge([box(), spike(), inf()], guarded=curve(14.0, 10.5))
    assert summary.failures() == [
        'the loss fell by 87.5% of what the clean run reached, less than 90%'
    ]


@pytest.mark.parametrize('final', [math.nan, math.inf])
def test_a_loss_that_is_not_finite_fails(final):
    summary = judge([box(), spike(), inf()], guarded=curve(14.0, final))
    assert len(summary.failures()) == 1
    assert 'of what the clean run reached' in summary.failures()[0]


def test_a_short_run_is_not_judged_by_its_loss():
    summary = judge(
        [box(), spike(), inf()], guarded=curve(14.0, 15.0), judges_loss=False
    )
    assert summary.failures() == []
    assert 'too short a run to judge' in render(summary)


@pytest.mark.parametrize(
    ('finite', 'failure'),
    [
        (False, 'the guarded run ends with weights that are not finite'),
        (None, 'the guarded run left no checkpoint'),
    ],
)
def test_bad_weights_fail(finite, failure):
    summary = judge([box(), spike(), inf()], weights_finite=finite)
    assert summary.failures() == [failure]


def test_incidents_that_nobody_planted_are_shown():
    summary = judge([box(), spike(), inf(), incident(200, 'loss_spike', module='neck')])
    assert [item['iteration'] for item in summary.unplanned] == [200]
    assert 'iteration 200 loss_spike' in render(summary)


def test_a_clean_run_that_did_not_learn_gives_no_share():
    summary = judge([box(), spike(), inf()])
    summary.clean = curve(10.0, 10.0)
    assert math.isnan(summary.share)
    assert len(summary.failures()) == 1


def test_first_bad_module_comes_before_the_worst_parameter():
    assert verdict.module_of(inf(param='neck.conv.weight')) == 'bbox_head'
    assert verdict.module_of(spike()) == 'decoder.layers.1.ffns.0.layers.1'
    assert verdict.module_of(box()) is None


ROWS = [dict(iter=i, loss=13.0, grad_norm=float(i)) for i in range(1, 21)]


def test_without_guard_a_run_raised():
    text = table.describe_unguarded(1, 'ValueError: x', Curve(ROWS), None, 19)
    assert text == 'planted at iteration 19, died at 20: ValueError: x'


def test_without_guard_a_run_ended_with_bad_weights():
    text = table.describe_unguarded(0, None, Curve(ROWS), False, 8)
    assert text == 'planted at iteration 8, went on with weights that are not finite'


def test_without_guard_a_run_went_on():
    rows = [dict(r, loss=15.0) if r['iter'] > 9 else r for r in ROWS]
    text = table.describe_unguarded(0, None, Curve(rows), True, 8)
    assert text == (
        'planted at iteration 8, went on: grad_norm 9.00e+00 in its log, '
        'loss 13.00 before and 15.00 after'
    )
