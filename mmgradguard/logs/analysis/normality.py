"""Is this normal? The run's numbers beside those of healthy runs of its family."""

from __future__ import annotations

import statistics
from typing import Sequence

from mmgradguard.core.log_analysis import LogEvent, Note, RunFacts
from mmgradguard.logs.analysis.families import Family

#: Outside of the band by this factor is worth a word.
_FAR = 3.0
#: The norm "rises" from its first to its last third by this factor.
_RISES = 1.25
#: A norm is "far above max_norm" from this ratio on: every step is clipped.
_ALWAYS = 5.0


def describe_normality(
    facts: RunFacts,
    family: Family | None,
    healthy_norms: Sequence[float],
    events: Sequence[LogEvent],
) -> list[Note]:
    """Return sentences that place the run among healthy ones.

    Args:
        facts: Of the run.
        family: Its family, None if it is not known.
        healthy_norms: Printed norms of the usual rows, oldest first.
        events: What happened.
    """
    notes = []
    if facts.norm_quantiles:
        notes += _norm_notes(facts, family, healthy_norms)
    if family is not None:
        notes.append(_recipe(family))
        top = max(family.lr)
        if facts.lr is not None and facts.lr > 2 * top * 1.001:
            values = {'lr': facts.lr, 'usual': top, 'family': family.name}
            notes.append(Note('normal.lr_above', values))
    else:
        notes.append(Note('normal.no_family'))
    if any(e.kind in ('spike', 'burst') and e.recovered for e in events):
        notes.append(Note('normal.spikes'))
    if any(e.kind == 'amp_skip' and e.value_of == 'grad_norm' for e in events):
        notes.append(Note('normal.amp_skip'))
    return notes


def _norm_notes(
    facts: RunFacts, family: Family | None, norms: Sequence[float]
) -> list[Note]:
    assert facts.norm_quantiles is not None
    low, middle, high = facts.norm_quantiles
    notes = [Note('normal.norm', {'q05': low, 'q50': middle, 'q95': high})]
    if family is not None and family.norm is not None:
        ratio = middle / family.norm['q50'] if family.norm['q50'] else 1.0
        code = 'normal.norm_in_band'
        if ratio > _FAR or ratio < 1 / _FAR:
            code = 'normal.norm_above' if ratio > 1 else 'normal.norm_below'
        values = {**family.norm, 'family': family.name, 'source': family.source}
        notes.append(Note(code, values))
    limit = facts.max_norm
    if limit and middle > _ALWAYS * limit:
        values = {'ratio': middle / limit, 'max_norm': limit}
        notes.append(Note('normal.always_clipped', values))
    third = len(norms) // 3
    if third >= 5 and facts.first_loss and facts.last_loss is not None:
        early = statistics.median(norms[:third])
        late = statistics.median(norms[-third:])
        if late > _RISES * early > 0 and facts.last_loss < facts.first_loss:
            values = {'first': early, 'last': late}
            notes.append(Note('normal.norm_rises', values))
    return notes


def _recipe(family: Family) -> Note:
    return Note(
        'normal.recipe',
        {
            'family': family.name,
            'lr': max(family.lr),
            'max_norm': family.max_norm,
            'precision': family.precision,
            'schedule': family.schedule,
        },
    )
