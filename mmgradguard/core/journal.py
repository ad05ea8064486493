"""``journal.jsonl``: one line for each thing that the guard did to a run."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

SCHEMA_VERSION = 1


def journal_entry(
    *,
    step: int,
    iteration: int,
    actor: str,
    knob: str,
    old: Any,
    new: Any,
    evidence: str,
    target: str | None = None,
    mode: str = 'act',
    status: str = 'applied',
    reverts: int | None = None,
) -> dict[str, Any]:
    """Return a line of the journal; ordinary clipping and scale searches are none.

    Args:
        step: Optimizer step that it concerns.
        iteration: Of the run, 0-based.
        actor: Who did it.
        knob: What was changed: ``step``, ``run``, or a setting.
        old: Its value before.
        new: Its value after.
        evidence: Why, in words.
        target: Which part of the model or setting, if not all.
        mode: ``advise`` or ``act``.
        status: ``advised``, ``applied``, ``kept`` or ``undone``.
        reverts: The line that this one takes back.
    """
    return {
        'schema_version': SCHEMA_VERSION,
        'time': datetime.now(timezone.utc).isoformat(timespec='seconds'),
        'step': step,
        'iteration': iteration,
        'actor': actor,
        'knob': knob,
        'target': target,
        'old': old,
        'new': new,
        'evidence': evidence,
        'mode': mode,
        'status': status,
        'reverts': reverts,
    }
