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
from mmgradguard.report.values import MAX_INT, format_count

GUARD_DIR = 'grad_guard'
INCIDENT_FILE = 'incident.json'
REPORT_FILE = 'report.html'
GUARD_FILES = ('steps.jsonl', 'journal.jsonl', 'incidents')
#: An incident is some kilobytes; a file beyond this is damage, not evidence.
MAX_INCIDENT_BYTES = 16 * 2**20
#: A step is some hundred bytes; a longer line is a file without line ends.
MAX_LINE_BYTES = 2**20

_TIMESTAMP = re.compile(r'\d{8}_\d{6}')


@dataclass
class RunRecord:
    """What a run left behind.

    `problems` names in words each thing that could not be read, `num_damaged` counts
    the lines and files. `other_runs` are older runs of the same work directory.
    """

    guard_dir: Path
    steps: list[StepSample] = field(default_factory=list)
    incidents: list[Incident] = field(default_factory=list)
    journal: list[dict[str, Any]] = field(default_factory=list)
    num_damaged: int = 0
    problems: list[str] = field(default_factory=list)
    other_runs: list[Path] = field(default_factory=list)


def find_guard_dir(path: str | Path) -> Path:
    """Return the folder with the guard's files; of several runs the newest.

    Args:
        path: A work directory, one run of it (``<work_dir>/<timestamp>``), the
            ``grad_guard`` folder itself, or a plain `out_dir`.

    Raises:
        RunFilesError: If there is none; names the path and what was looked for.
    """
    return find_guard_dirs(path)[0]


def find_guard_dirs(path: str | Path) -> list[Path]:
    """Return every folder with guard files at ``path``, the newest run first.

    Raises:
        RunFilesError: If there is none; names the path and what was looked for.
    """
    path = Path(path)
    try:
        if not path.exists():
            raise RunFilesError(f'{path}: no such file or directory')
        if not path.is_dir():
            raise RunFilesError(f'{path}: not a directory')
        for folder in (path, path / GUARD_DIR):
            if has_guard_files(folder):
                return [folder]
        runs = [run for run in path.iterdir() if has_guard_files(run / GUARD_DIR)]
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise RunFilesError(f'{path}: cannot be read ({_reason(error)})') from error
    if not runs:
        raise RunFilesError(
            f'{path}: no guard files; looked for {", ".join(GUARD_FILES)} in it, in '
            f'{GUARD_DIR}/ and in <timestamp>/{GUARD_DIR}/'
        )
    return [run / GUARD_DIR for run in sorted(runs, key=_age, reverse=True)]


def has_guard_files(folder: Path) -> bool:
    """Whether ``folder`` holds any file that a guard writes."""
    if any((folder / name).exists() for name in GUARD_FILES):
        return True
    # a run that ended before its first step; elsewhere such a page may be anybody's
    return folder.name == GUARD_DIR and (folder / REPORT_FILE).exists()


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
    _read_lines(record, 'steps.jsonl', lambda row: _keep_step(row, record.steps))
    _read_lines(record, 'journal.jsonl', lambda row: _keep_entry(row, record.journal))
    try:
        folders = _incident_folders(record.guard_dir / 'incidents')
    except OSError as error:
        raise RunFilesError(
            f'{record.guard_dir / "incidents"}: cannot be read ({_reason(error)})'
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
            name, f'{INCIDENT_FILE} cannot be read ({_reason(error)})'
        )
    if row is None:
        state = 'empty' if size == 0 else 'damaged (not a JSON object)'
        return damaged_incident(name, f'{INCIDENT_FILE} is {state}')
    return parse_incident(row, folder=name)


def _age(run: Path) -> tuple[bool, str, float]:
    # mmengine names a run by when it began; a copied folder has a new mtime
    dated = _TIMESTAMP.fullmatch(run.name) is not None
    return dated, run.name if dated else '', run.stat().st_mtime


def _reason(error: Exception) -> str:
    return getattr(error, 'strerror', None) or str(error)


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
        raise RunFilesError(f'{path}: cannot be read ({_reason(error)})') from error
    if num_damaged:
        record.num_damaged += num_damaged
        lines = format_count(num_damaged, 'damaged line')
        record.problems.append(f'{name}: {lines} left out')


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
