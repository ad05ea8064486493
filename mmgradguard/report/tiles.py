"""The summary figures of a run as label, figure and remark."""

from __future__ import annotations

from mmgradguard.report.model import RunReport
from mmgradguard.report.values import (
    format_count,
    format_number,
    format_place,
    format_share,
)


def summary_tiles(report: RunReport) -> list[tuple[str, str, str]]:
    """Return label, figure and a remark for each summary figure of the run."""
    summary = report.summary
    norms = [
        (f'{label} grad_norm', format_number(value), '')
        for label, value in (
            ('median', summary.median_norm),
            ('95 % of steps below', summary.p95_norm),
        )
    ]
    place = format_place(summary.largest_epoch, summary.largest_iteration)
    largest = format_number(summary.largest_norm)
    norms.append(
        ('largest single step', largest, place if summary.largest_norm else '')
    )
    skipped = ', '.join(f'{num} {why}' for why, num in summary.skipped.items())
    unrecorded = sum(summary.unrecorded.values())
    remark = f'{unrecorded} more not recorded' if unrecorded else ''
    tiles = [
        ('steps', str(summary.num_steps), f'{summary.num_iterations} iterations'),
        ('incidents', str(summary.num_incidents), remark),
        ('skipped steps', str(sum(summary.skipped.values())), skipped),
        ('non-finite steps', str(summary.num_nonfinite), ''),
        *norms,
    ]
    if summary.num_clippable:
        share = format_share(summary.num_clipped, summary.num_clippable)
        coef = f'median clip_coef {format_number(summary.median_clip_coef)}'
        tiles.append(('steps clipped', share, coef))
    if report.num_damaged:
        damaged = format_count(report.num_damaged, 'item')
        tiles.append(('damaged in the files', damaged, ''))
    return tiles
