"""Spikes with hardly a usual row between them are one burst."""

from __future__ import annotations

from typing import Iterator, Sequence

from mmgradguard.logs.analysis.episode import Episode

#: A burst has at least so many bad rows, and at most so many usual ones between two.
_BURST_EPISODES, _BURST_GAP = 3, 1


def merge_bursts(episodes: Sequence[Episode]) -> Iterator[Episode]:
    """Join recovered spikes with hardly a usual row between them."""
    group: list[Episode] = []
    for episode in [*episodes, None]:
        joins = (
            episode is not None
            and episode.kind in ('spike', 'burst')
            and (not group or episode.first - group[-1].last - 1 <= _BURST_GAP)
        )
        if joins and episode is not None:
            group.append(episode)
            continue
        yield from _as_burst(group)
        group = []
        if episode is None:
            return
        if episode.kind in ('spike', 'burst'):
            group = [episode]
        else:
            yield episode


def _as_burst(group: list[Episode]) -> Iterator[Episode]:
    num_rows = sum(e.last - e.first + 1 for e in group if not e.is_plateau)
    num_rows += sum(e.is_plateau for e in group)
    is_burst = num_rows >= _BURST_EPISODES or any(e.kind == 'burst' for e in group)
    if len(group) < 2 or not is_burst:
        yield from group
        return
    first, last = group[0], group[-1]
    yield Episode(
        'burst',
        first.first,
        last.last,
        first.typical,
        last.recovered,
        goes_on=last.goes_on,
    )
