"""What a log cannot tell, and what would."""

from __future__ import annotations

from typing import Sequence

from mmgradguard.core.log_analysis import LogEvent, Note
from mmgradguard.logs.analysis.stretch import Stretch
from mmgradguard.logs.analysis.timing import Timing


def list_unknowns(
    stretch: Stretch, timing: Timing, events: Sequence[LogEvent]
) -> list[Note]:
    """Return what stays open for the reader of this log."""
    notes = []
    if stretch.norm is None:
        notes.append(Note('unknown.no_grad_norm'))
    if 'window' in timing.inferred and timing.window:
        notes.append(Note('unknown.window', {'window': timing.window}))
    elif timing.window is None:
        notes.append(Note('unknown.no_window'))
    dead = [e for e in events if e.kind in ('nan_sticks', 'norm_overflow')]
    if any(e.kind == 'nan_sticks' and e.term is None for e in dead):
        notes.append(Note('unknown.first_term', {'line': dead[0].line}))
    if any(e.kind != 'amp_skip' for e in events):
        notes.append(Note('unknown.module'))
    row, length = len(stretch) - 1, stretch.table.epoch_lengths[stretch.stop - 1]
    iteration = stretch.iteration(row)
    if iteration is not None and iteration + (timing.interval or 1) <= length:
        values = {'iteration': iteration, 'length': length}
        notes.append(Note('unknown.ends_early', values))
    if (stretch.header.num_gpus or 1) > 1:
        notes.append(Note('unknown.ranks', {'num_gpus': stretch.header.num_gpus}))
    return notes
