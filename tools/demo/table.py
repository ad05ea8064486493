"""The closing table, from what was read."""

from __future__ import annotations

from typing import Mapping

from rich import box
from rich.table import Column, Table

from demo.outcome import Curve
from demo.verdict import BAR, Finding, Summary, culprits_of, module_of


def describe_unguarded(
    status: int, words: str | None, curve: Curve, finite: bool | None, at: int | None
) -> str:
    """Say what a fault did to a run without guard.

    Args:
        status: Exit status of the run.
        words: The exception that ended it.
        curve: Its losses, logged at every iteration.
        finite: Whether the weights of its last checkpoint are finite.
        at: The iteration of the fault, 0-based, where it is known.
    """
    planted = '' if at is None else f'planted at iteration {at}, '
    if status:
        # iterations that were logged count from 1: this is the next one, 0-based
        return f'{planted}died at {curve.last}: {words or "without a word"}'
    if finite is False:
        return f'{planted}went on with weights that are not finite'
    if at is None:
        return f'went on, final loss {curve.final_loss:.2f}'
    before = curve.loss(after=at - 5, until=at)
    after = curve.loss(after=at + 1, until=at + 6)
    norms = [row['grad_norm'] for row in curve.rows if row['iter'] == at + 1]
    norm = f'grad_norm {norms[0]:.2e} in its log, ' if norms else ''
    return f'{planted}went on: {norm}loss {before:.2f} before and {after:.2f} after'


def _join(values: list[str]) -> str:
    return ', '.join(dict.fromkeys(values)) or '-'


def _found(finding: Finding) -> dict[str, str]:
    incidents = finding.incidents
    return {
        'iteration': _join([str(incident['iteration']) for incident in incidents]),
        'kind': _join([str(incident.get('kind')) for incident in incidents]),
        'module': _join([module_of(incident) or '-' for incident in incidents]),
        'sample': _join([f'image {i}' for x in incidents for i in culprits_of(x)]),
        'action': _join([str(incident.get('action')) for incident in incidents]),
        'right': 'yes' if finding.is_found else 'NO',
    }


def build_table(summary: Summary, unguarded: Mapping[str, str]) -> Table:
    """Return planted against found, and what happened without guard.

    A column per fault: so it fits a terminal of 80 columns.
    """
    findings = summary.findings
    faults = [finding.fault for finding in findings]
    table = Table(
        '',
        # folded, not cut: a module name is there to be copied
        *(Column(fault.name, overflow='fold', ratio=1) for fault in faults),
        title='Planted and found (iterations count from 0, as in incident.json)',
        box=box.SIMPLE_HEAD,
    )
    table.add_row('planted', *(fault.what for fault in faults))
    table.add_row('  where', *(fault.where for fault in faults))
    table.add_row('  iteration', *(fault.when for fault in faults), end_section=True)
    found = [_found(finding) for finding in findings]
    for index, name in enumerate(found[0]):
        label = f'found {name}' if index == 0 else f'  {name}'
        table.add_row(label, *(cells[name] for cells in found))
    table.add_section()
    table.add_row('without guard', *(unguarded[fault.name] for fault in faults))
    return table


_WHY_MAP = (
    'near 0 is expected: from scratch a DETR needs many thousand iterations for its '
    'first boxes, these runs have a few hundred; the losses are what to compare'
)


def describe_summary(summary: Summary, report: str, maps: list[str]) -> list[str]:
    """Return the lines under the table."""
    clean, guarded = summary.clean, summary.guarded
    skips = ', '.join(f'{n} {reason}' for reason, n in summary.skips.items())
    finite = {True: 'finite', False: 'NOT finite', None: 'unknown: no checkpoint'}
    bar = f'bar {BAR:.0%}' if summary.judges_loss else 'too short a run to judge'
    other = ', '.join(
        f'iteration {i["iteration"]} {i.get("kind")}' for i in summary.unplanned
    )
    found = sum(finding.is_found for finding in summary.findings)
    return [
        f'found:          {found} of {len(summary.findings)} with the right module or '
        'sample',
        f'clean loss:     {clean.first_loss:.2f} -> {clean.final_loss:.2f}',
        f'guarded loss:   {guarded.first_loss:.2f} -> {guarded.final_loss:.2f}, '
        f'{summary.share:.1%} of the clean fall ({bar})',
        f'weights:        {finite[summary.weights_finite]} (guarded run)',
        f'skipped steps:  {skips or "none"}',
        f'other findings: {other or "none"}',
        f'COCO mAP:       {", ".join(maps)} ({_WHY_MAP})',
        f'report:         {report}',
    ]
