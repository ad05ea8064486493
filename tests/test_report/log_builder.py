"""Analyses and pages made by hand, with every field filled."""

from __future__ import annotations

import math

from mmgradguard.core.log_analysis import (
    Advice,
    LogAnalysis,
    LogEvent,
    Note,
    RunFacts,
    Series,
)
from mmgradguard.core.types import Verdict
from mmgradguard.report.log_page import LogPage


def make_event(**fields) -> LogEvent:
    """Return a spike at line 7 that came back at line 8."""
    values = dict(
        kind='spike',
        file='runs/a.log',
        line=7,
        last_line=7,
        epoch=1,
        iteration=200,
        term='loss_cls',
        value_printed=3.11e7,
        value_single_step=1.555e9,
        recovered=True,
        value_of='grad_norm',
        typical=5.2,
        recovered_line=8,
        first_row=3,
        last_row=3,
    )
    return LogEvent(**{**values, **fields})


def make_analysis(**fields) -> LogAnalysis:
    """Return a run with a spike and a NaN that stays."""
    sticks = make_event(
        kind='nan_sticks',
        line=15,
        last_line=24,
        iteration=600,
        term='d0.loss_bbox',
        layer='d0',
        value_of='d0.loss_bbox',
        value_printed=math.nan,
        value_single_step=None,
        recovered=False,
        recovered_line=None,
        num_rows=10,
        norm_led_rows=2,
        coincides_with=['warmup_end', 'epoch_border'],
        first_row=11,
        last_row=20,
    )
    values = dict(
        source='runs/a.log',
        format='mmengine_text',
        num_rows=21,
        verdict=Verdict.FATAL,
        events=[make_event(), sticks],
        rows_lost=10,
        hours_lost=1.54,
        advice=[
            Advice(
                Note('advice.lower_lr', {'lr': 2e-3, 'new': 2.5e-4}),
                {'optim_wrapper': {'optimizer': {'lr': 2.5e-4}}},
            ),
            Advice(Note('advice.clip_no_cure')),
        ],
        reasons=[Note('reason.nan_sticks', {'line': 15, 'rows': 10})],
        normality=[Note('normal.no_family')],
        would_decide=[Note('decide.norm_only')],
        unknowns=[Note('unknown.module')],
        facts=RunFacts(
            interval=50,
            window=50,
            inferred=['window'],
            num_gpus=8,
            norm_quantiles=[3.0, 5.2, 8.0],
            first_loss=2.5,
            last_loss=1.25,
            max_norm=0.1,
            num_skipped_lines=3,
            is_cut=True,
        ),
    )
    return LogAnalysis(**{**values, **fields})


def make_page(num_rows: int = 21, **fields) -> LogPage:
    """Return the same run with its curves; a row every 50 iterations."""
    rows = range(num_rows)
    norm = [5.0 + row % 3 for row in rows]
    loss = [2.0 / (1 + row) for row in rows]
    box: list[float | None] = [1.0 / (1 + row) for row in rows]
    if num_rows > 11:
        norm[3] = 3.11e7
        box[11:] = [math.nan] * (num_rows - 11)
    values = dict(
        analysis=make_analysis(num_rows=num_rows),
        series=[
            Series('lr', [1e-4] * num_rows),
            Series('grad_norm', norm),
            Series('loss', loss),
            Series('loss_cls', loss),
            Series('d0.loss_bbox', box),
            Series('time', [0.5] * num_rows),
        ],
        lines=[4 + row for row in rows],
        epochs=[1] * num_rows,
        iterations=[50 * (row + 1) for row in rows],
        total='loss',
        terms=['loss_cls', 'd0.loss_bbox'],
        epoch_lengths=[0] * num_rows,
        files=[(0, 'runs/a.log')],
    )
    return LogPage(**{**values, **fields})
