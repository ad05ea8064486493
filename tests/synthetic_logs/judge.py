"""Compares what an analyser says with the truth: kind, onset, first term, verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Sequence

from synthetic_logs.truth import Truth


@dataclass(frozen=True)
class Score:
    """Which of the four answers are right, and what was said."""

    kind: bool
    onset: bool
    first_term: bool
    verdict: bool
    said: str

    @property
    def is_right(self) -> bool:
        """Return whether all four are."""
        return self.kind and self.onset and self.first_term and self.verdict


def judge(truth: Truth, analysis: Any) -> Score:
    """Score an analysis that has `verdict` and `events`, in the order of their rows.

    The first event is judged, except that a nonfinite failure may be announced by
    events of its early signs. An event outside of what was planted makes the kind
    wrong, whatever else was found: it is a false alarm.
    """
    events = list(analysis.events)
    verdict = getattr(analysis.verdict, 'value', analysis.verdict) in truth.verdicts
    said = _describe(analysis.verdict, events)
    if truth.kind == 'healthy':
        is_silent = not events
        return Score(is_silent, is_silent, is_silent, verdict, said)
    event = _judged_event(truth, events)
    if event is None:
        return Score(False, False, False, verdict, said)
    earliest, latest = truth.earliest_row, truth.latest_row
    assert earliest is not None
    assert latest is not None
    return Score(
        event.kind == truth.kind and not _has_false_alarm(truth, events),
        earliest <= event.first_row <= latest,
        event.term in truth.first_terms,
        verdict,
        said,
    )


def _judged_event(truth: Truth, events: Sequence[Any]) -> Any:
    warning = truth.warning_row
    for event in events:
        is_sign = (
            warning is not None
            and warning <= event.first_row < (truth.onset_row or 0)
            and event.kind != truth.kind
        )
        if not is_sign:
            return event
    return None


def _has_false_alarm(truth: Truth, events: Sequence[Any]) -> bool:
    begins = truth.earliest_row if truth.warning_row is None else truth.warning_row
    for event in events:
        if event.first_row < (begins or 0):
            return True
        if truth.end_row is None:  # for good: nothing after it is a false alarm
            continue
        if event.first_row > truth.end_row or event.kind != truth.kind:
            return True
    return False


def _describe(verdict: Any, events: Sequence[Any]) -> str:
    parts = [f'{e.kind}@{e.first_row}({e.term})' for e in events[:4]]
    more = f' +{len(events) - 4}' if len(events) > 4 else ''
    return f'{getattr(verdict, "value", verdict)}: {" ".join(parts) or "-"}{more}'
