"""The incidents of a run: written once, followed up, and never more than agreed."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

from mmgradguard.core.causes import advise_lost_weights
from mmgradguard.core.incident import collect_versions, new_incident
from mmgradguard.core.types import StepSample, Verdict
from mmgradguard.core.verdicts import FOLLOW_UP_STEPS, judge_recovery
from mmgradguard.incident.bundle import write_bundle
from mmgradguard.incident.phrases import incident_line
from mmgradguard.incident.run_files import RunFiles

#: What a rank above 0 reports: the rest looks the same on every rank after the
#: all-reduce, and rank 0 has it.
_OF_ONE_RANK = (
    'exception',
    'nonfinite_input',
    'nonfinite_target',
    'nonfinite_loss',
)

#: One line per incident that was one too many to be written.
UNRECORDED_FILE = 'unrecorded.jsonl'
#: Of those that end a run this many are written, however often a loop goes on.
_MOST_GRAVE = 100


@dataclass
class _Open:
    """An incident whose outcome is not known yet."""

    incident: dict[str, Any]
    folder: str
    before: list[StepSample]
    after: list[StepSample] = field(default_factory=list)


class IncidentBook:
    """Writes incidents and rewrites their verdict once it is known.

    Args:
        files: Where to write; None only logs.
        log: Called with ``(level, sentence)``.
        max_incidents: Written per run, besides those that end it; further ones are
            only logged and counted.
        rank: Of this process.
        device: For the versions in an incident.
        bundle: Whether the batch is kept beside an incident.
    """

    def __init__(
        self,
        files: RunFiles | None,
        log: Callable[[str, str], None],
        *,
        max_incidents: int,
        rank: int,
        device: str,
        bundle: bool,
    ) -> None:
        self.files, self.log = files, log
        self.max_incidents, self.rank, self.bundle = max_incidents, rank, bundle
        #: Folder of the newest incident that is on disk.
        self.last_written: Path | None = None
        self._num_ordinary = self._num_grave = 0
        self._versions = collect_versions(device)
        self._open: list[_Open] = []
        self._told_cap = False

    def new(self, **fields: Any) -> dict[str, Any]:
        """Return an incident without evidence; arguments as of `new_incident`."""
        incident = new_incident(rank=self.rank, **fields)
        incident['versions'] = self._versions
        return incident

    def publish(
        self,
        incident: dict[str, Any],
        *,
        place: str,
        total_norm: float | None,
        before: Sequence[StepSample],
        batch: Any,
        rng: Mapping[str, Any] | None,
    ) -> None:
        """Write an incident, say it in the log, and follow what becomes of it."""
        if self.rank and incident['kind'] not in _OF_ONE_RANK:
            return
        where: Path | None = None
        is_due = self._is_due(incident)
        if self.files is not None and is_due:
            folder = self._free_folder(self.files, incident['iteration'])
            where = self.files.incident_dir(folder)
            if not self.files.write_incident(folder, incident):
                where = None
            elif self.bundle:
                self.files.write_bundle(lambda: write_bundle(where, batch, rng))
            self.last_written = where or self.last_written
            if incident.get('weights_lost') is None:
                self._open.append(_Open(incident, folder, list(before)))
        self.log('WARNING', incident_line(incident, place, total_norm, where))
        if not is_due:
            self._leave_out(incident)

    def _is_due(self, incident: Mapping[str, Any]) -> bool:
        """Count an incident; False if it is one too many to be written.

        What ends a run is always written: without it a crash after many harmless
        incidents would look harmless.
        """
        is_grave = (
            incident['action'] == 'raised'
            or incident['kind'] == 'nonfinite_weights'
            or incident['verdict'] == Verdict.FATAL.value
        )
        if is_grave:
            self._num_grave += 1
            return self._num_grave <= _MOST_GRAVE
        self._num_ordinary += 1
        return self._num_ordinary <= self.max_incidents

    def _leave_out(self, incident: Mapping[str, Any]) -> None:
        if self.files is not None:
            keys = ('step', 'iteration', 'epoch', 'rank', 'kind', 'action', 'verdict')
            row = {key: incident[key] for key in keys}
            self.files.append(UNRECORDED_FILE, row)
        if self._num_ordinary == self.max_incidents + 1 and not self._told_cap:
            self._told_cap = True
            self.log(
                'WARNING',
                f'`max_incidents` is {self.max_incidents}: more are only logged and '
                'counted, but for those that end the run',
            )

    def follow(self, sample: StepSample) -> None:
        """See one more step; judges the incidents whose time has come."""
        for entry in self._open:
            entry.after.append(sample)
        for entry in [e for e in self._open if len(e.after) >= FOLLOW_UP_STEPS]:
            self._close(entry, judge_recovery(entry.before, entry.after))

    def close_as_fatal(
        self, weights_lost: Mapping[str, Any], *, is_stopping: bool
    ) -> bool:
        """Weights are lost: so are all open incidents. False if there was none."""
        found = bool(self._open)
        for entry in list(self._open):
            entry.incident['weights_lost'] = dict(weights_lost)
            advise_lost_weights(entry.incident)
            if is_stopping and entry.incident['action'] == 'none':
                entry.incident['action'] = 'stopped'
            self._close(entry, Verdict.FATAL)
        return found

    def close(self) -> None:
        """The run is over: judge what is open by what there is."""
        for entry in list(self._open):
            self._close(entry, judge_recovery(entry.before, entry.after))

    def _close(self, entry: _Open, verdict: Verdict) -> None:
        self._open.remove(entry)
        old = entry.incident['verdict']
        if old != Verdict.FATAL.value:  # which no later step can mend
            entry.incident['verdict'] = verdict.value
        is_changed = entry.incident['verdict'] != old
        if self.files is not None and (is_changed or 'weights_lost' in entry.incident):
            self.files.write_incident(entry.folder, entry.incident)

    def _free_folder(self, files: RunFiles, iteration: int) -> str:
        """Return a folder name; what an earlier run left in the same place stays."""
        name = f'{iteration}-rank{self.rank}' if self.rank else str(iteration)
        folder, number = name, 1
        while os.path.exists(files.incident_dir(folder)):
            number += 1
            folder = f'{name}-{number}'
        return folder
