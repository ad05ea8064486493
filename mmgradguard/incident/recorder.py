"""``steps.jsonl`` and ``journal.jsonl`` of a run, row by row."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any, Callable

from mmgradguard.core.journal import journal_entry
from mmgradguard.core.types import StepSample
from mmgradguard.incident.run_files import RunFiles

STEPS_FILE = 'steps.jsonl'


class StepRecorder:
    """Writes steps, and a journal line for each step that the guard left out.

    Args:
        files: Where to write; None writes nothing.
        log: Called with ``(level, sentence)``.
    """

    def __init__(self, files: RunFiles | None, log: Callable[[str, str], None]) -> None:
        self._files, self._log = files, log
        #: Whether skips are ours, or GradScaler's in a run that is only watched.
        self.is_acting = False
        #: Whether this run has a row already; the first one says that it is the first.
        self.has_begun = False

    def write(self, sample: StepSample) -> None:
        """Append a step."""
        if self._files is None:
            return
        row = sample.to_json()
        if not self.has_begun:
            self.has_begun = True
            row['started'] = datetime.now(timezone.utc).isoformat(timespec='seconds')
            self._tell_of_another_run(self._files)
        self._files.append(STEPS_FILE, row)
        if self.is_acting and sample.skipped not in (None, 'scaler'):
            why = f'{sample.skipped}, incident {sample.iteration}'
            self.journal(sample.step, sample.iteration, 'step', 'taken', 'skipped', why)

    def journal(
        self, step: int, iteration: int, knob: str, old: str, new: str, evidence: str
    ) -> None:
        """Append one change that was made to the run."""
        if self._files is None:
            return
        entry: dict[str, Any] = journal_entry(
            step=step, iteration=iteration, actor='grad_guard', knob=knob,
            old=old, new=new, evidence=evidence,
        )  # fmt: skip
        self._files.append('journal.jsonl', entry)

    def _tell_of_another_run(self, files: RunFiles) -> None:
        if files.holds(STEPS_FILE):
            self._log(
                'WARNING',
                f'{files.out_dir} already holds steps of another run, or of a second '
                'guard: these are appended, and the report shows all of them. Give '
                'each its own `out_dir` for a report of its own',
            )
