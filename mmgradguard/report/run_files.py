"""A run's files on disk: finding them, and reading them however damaged they are."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

from mmgradguard.core.errors import RunFilesError
from mmgradguard.core.types import SKIP_REASONS, StepSample
from mmgradguard.report.incident_record import (
    Incident,
    damaged_incident,
    parse_incident,
)
from mmgradguard.report.run_folders import find_guard_dirs, reason_of
from mmgradguard.report.run_starts import drop_replayed, find_starts
from mmgradguard.report.values import MAX_INT, format_count, read_text

INCIDENT_FILE = 'incident.json'
STEPS_FILE = 'steps.jsonl'
#: An incident is some kilobytes; a file beyond this is damage, not evidence.
MAX_INCIDENT_BYTES = 16 * 2**20
#: A step is some hundred bytes; a longer line is a file without line ends.
MAX_LINE_BYTES = 2**20


@dataclass
class RunRecord:
    """What a run left behind.

    `problems` names in words each thing that could not be read, `num_damaged` counts
    the lines and files. `other_runs` are older runs of the same work directory.
    `num_runs` runs wrote into the folder; `num_replayed` steps that a resumed one took
    again are left out of `steps`. `steps_file` is what ``steps.jsonl`` is: ``'read'``,
    ``'absent'``, ``'empty'`` or ``'damaged'``, which is without one readable line.
    `unrecorded` counts, by kind, the incidents beyond ``max_incidents``.
    """

    guard_dir: Path
    steps: list[StepSample] = field(default_factory=list)
    incidents: list[Incident] = field(default_factory=list)
    journal: list[dict[str, Any]] = field(default_factory=list)
    num_damaged: int = 0
    problems: list[str] = field(default_factory=list)
    other_runs: list[Path] = field(default_factory=list)
    num_runs: int = 1
    num_replayed: int = 0
    steps_file: str = 'read'
    unrecorded: dict[str, int] = field(default_factory=dict)


def read_run(path: str | Path) -> RunRecord:
    """Read the newest run at ``path`` (as for :func:`find_guard_dir`).

    Raises:
        RunFilesError: If there is no run, or its steps cannot be opened.
    """
    guard_dir, *others = find_guard_dirs(path)
    record = read_guard_dir(guard_dir)
    record.other_runs = others
    return record


def read_guard_dir(guard_dir: str | Path) -> RunRecord:
    """Read the guard's files in ``guard_dir``; absent ones are empty.

    Raises:
        RunFilesError: If a file exists and cannot be opened.
    """
    record = RunRecord(guard_dir=Path(guard_dir))
    _read_steps(record)
    _read_lines(record, 'journal.jsonl', lambda row: _keep_entry(row, record.journal))
    _read_lines(record, 'unrecorded.jsonl', lambda row: _count_kind(row, record))
    try:
        folders = _incident_folders(record.guard_dir / 'incidents')
    except OSError as error:
        raise RunFilesError(
            f'{record.guard_dir / "incidents"}: cannot be read ({reason_of(error)})'
        ) from error
    for folder in folders:
        incident = read_incident(folder, name=f'incidents/{folder.name}')
        record.incidents.append(incident)
        record.num_damaged += bool(incident.problems)
        record.problems += [f'{incident.folder}: {text}' for text in incident.problems]
    return record


def read_incident(folder: str | Path, *, name: str | None = None) -> Incident:
    """Read the incident in ``folder``; what cannot be read is in its `problems`."""
    path = Path(folder) / INCIDENT_FILE
    name = Path(folder).name if name is None else name
    try:
        if not path.exists():
            return damaged_incident(name, f'{INCIDENT_FILE} is missing')
        size = path.stat().st_size
        if size > MAX_INCIDENT_BYTES:
            return damaged_incident(
                name, f'{INCIDENT_FILE} has {size} bytes: too large to be an incident'
            )
        row = _load_object(path.read_bytes())
    except OSError as error:
        return damaged_incident(
            name, f'{INCIDENT_FILE} cannot be read ({reason_of(error)})'
        )
    if row is None:
        state = 'empty' if size == 0 else 'damaged (not a JSON object)'
        return damaged_incident(name, f'{INCIDENT_FILE} is {state}')
    return parse_incident(row, folder=name)


def _load_object(text: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(text.decode('utf-8', errors='replace'))
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _read_lines(
    record: RunRecord, name: str, keep: Callable[[dict[str, Any]], bool]
) -> None:
    # not jsonio.read_jsonl: a line of a gigabyte, or nested a thousand deep, is
    # counted here too, and a row that is no step counts with the damaged lines
    num_damaged = 0
    path = record.guard_dir / name
    try:
        with open(path, 'rb') as file:
            while True:
                line = file.readline(MAX_LINE_BYTES)
                if not line:
                    break
                if not line.strip():
                    continue
                row = _load_object(line)
                if row is None or not keep(row):
                    num_damaged += 1
    except FileNotFoundError:
        return
    except OSError as error:
        raise RunFilesError(f'{path}: cannot be read ({reason_of(error)})') from error
    if num_damaged:
        record.num_damaged += num_damaged
        lines = format_count(num_damaged, 'damaged line')
        record.problems.append(f'{name}: {lines} left out')


def _read_steps(record: RunRecord) -> None:
    marked: list[int] = []

    def keep(row: dict[str, Any]) -> bool:
        is_kept = _keep_step(row, record.steps)
        if is_kept and row.get('started') is not None:
            marked.append(len(record.steps) - 1)
        return is_kept

    _read_lines(record, STEPS_FILE, keep)
    if not record.steps:
        is_there = (record.guard_dir / STEPS_FILE).is_file()
        state = 'damaged' if record.num_damaged else 'empty'
        record.steps_file = state if is_there else 'absent'
    starts = find_starts(record.steps, marked)
    record.num_runs = max(1, len(starts))
    record.steps, record.num_replayed = drop_replayed(record.steps, starts)


def _count_kind(row: dict[str, Any], record: RunRecord) -> bool:
    kind = read_text(row.get('kind'))
    if kind is None:
        return False
    record.unrecorded[kind] = record.unrecorded.get(kind, 0) + 1
    return True


def _keep_entry(row: dict[str, Any], journal: list[dict[str, Any]]) -> bool:
    journal.append(row)
    return True


def _keep_step(row: dict[str, Any], steps: list[StepSample]) -> bool:
    try:
        steps.append(_read_step(row))
    except (ValueError, OverflowError, TypeError):
        return False
    return True


def _read_step(row: dict[str, Any]) -> StepSample:
    """Return the step in ``row``; raises on what would mislead a statistic."""
    sample = StepSample.from_json(row)
    if sample.total_norm is None or sample.total_norm < 0:
        raise ValueError('`total_norm` is not a norm')
    counters = (sample.step, sample.iteration, sample.epoch)
    if any(not 0 <= counter <= MAX_INT for counter in counters):
        raise ValueError('a counter is out of range')
    if sample.skipped is not None and sample.skipped not in SKIP_REASONS:
        raise ValueError(f'`skipped` must be one of {SKIP_REASONS}')
    if sample.clip_coef is None:
        sample.clip_coef = 1.0
    sample.losses = _numbers(sample.losses) or {}
    sample.module_norms = _numbers(sample.module_norms)
    return sample


def _numbers(values: dict[str, float] | None) -> dict[str, float] | None:
    if not values:
        return None
    return {key: value for key, value in values.items() if value is not None}


def _incident_folders(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    # a hidden folder is one that is being written
    folders = [
        item
        for item in folder.iterdir()
        if item.is_dir() and not item.name.startswith('.')
    ]
    return sorted(folders, key=lambda item: (_leading_number(item.name), item.name))


def _leading_number(name: str) -> int:
    digits = re.match(r'[0-9]{1,15}', name)
    return int(digits.group()) if digits else MAX_INT
