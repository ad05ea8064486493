"""The runs in a work directory, the newest first, and which file tells most of each."""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass, field

from mmgradguard.core.errors import LogParseError
from mmgradguard.logs.sources import reason_of

_TIMESTAMP = re.compile(r'\d{8}_\d{6}')
#: Of other frameworks, and of people who redirect what is printed.
_OTHER_LOGS = re.compile(
    r'(?:results.*\.csv|metrics\.json|log\.txt|.*\.(?:log|out)(?:\.gz)?'
    r'|.*\.log\.json(?:\.gz)?|steps\.jsonl|scalars\.json|\d{8}_\d{6}\.json)'
)
#: Folders of a run that hold a part of it.
_PARTS = ('grad_guard', 'vis_data')
#: A work directory of more runs than this is searched in its newest ones only.
_MAX_FOLDERS = 500


@dataclass
class Run:
    """One run: `logs` are the same rows, the file that tells most first.

    `text` is the log that has the header, `checkpoint` the last one.
    """

    started: str
    logs: list[str] = field(default_factory=list)
    text: str | None = None
    checkpoint: str | None = None


def find_runs(folder: str) -> list[Run]:
    """Return the runs in ``folder``, the newest first.

    Args:
        folder: A work directory, one run of it, or a part of such a run.

    Raises:
        LogParseError: If it cannot be listed.
    """
    names = _list(folder)
    parents = [folder]
    inner = [name for name in names if os.path.isdir(os.path.join(folder, name))]
    inner = [name for name in inner if name not in _PARTS and name[0] != '.']
    newest = sorted(inner, reverse=True)[:_MAX_FOLDERS]
    parents.extend(os.path.join(folder, name) for name in newest)
    found: dict[str, Run] = {}
    for parent in parents:
        _collect(parent, found)
    runs = sorted(found.values(), key=lambda run: run.started, reverse=True)
    last = _last_checkpoint(folder, names)
    if last and runs:
        runs[0].checkpoint = last
    elif last:
        runs.append(Run('', checkpoint=last))
    return runs


def _collect(parent: str, found: dict[str, Run]) -> None:
    for part in (*_PARTS, ''):
        folder = os.path.join(parent, part)
        try:
            names = _list(folder) if os.path.isdir(folder) else []
        except LogParseError:
            continue  # one folder without permission hides no other run
        for name in sorted(names, key=_rank):
            path = os.path.join(folder, name)
            if _OTHER_LOGS.fullmatch(name) and os.path.isfile(path):
                _add(path, os.path.abspath(parent), found)


def _add(path: str, parent: str, found: dict[str, Run]) -> None:
    """Add a file to the run it is of: same time stamp, or same folder."""
    stamp = _TIMESTAMP.search(os.path.basename(path))
    stamp = _TIMESTAMP.search(os.path.basename(parent)) or stamp
    try:
        started = time.strftime('%Y%m%d_%H%M%S', time.gmtime(os.path.getmtime(path)))
    except (OSError, ValueError, OverflowError):
        started = ''
    stem = stamp.group() if stamp else re.sub(r'\.log.*|\.out.*', '', path)
    if os.path.basename(path) in ('steps.jsonl', 'scalars.json') and not stamp:
        stem = parent
    run = found.setdefault(stem, Run(stamp.group() if stamp else started))
    run.logs.append(path)
    if re.search(r'\.(?:log|out|txt)(?:\.gz)?$', path):
        run.text = run.text or path


def _rank(name: str) -> tuple[int, str]:
    """Return where a file stands among those of its run: full precision first."""
    if name in ('steps.jsonl', 'scalars.json', 'metrics.json'):
        return 0, name
    return (1 if 'json' in name or 'csv' in name else 2), name


def _last_checkpoint(folder: str, names: list[str]) -> str | None:
    """Return what ``last_checkpoint`` names, else the newest checkpoint."""
    paths = [os.path.join(folder, name) for name in names if name.endswith('.pth')]
    try:
        with open(
            os.path.join(folder, 'last_checkpoint'), encoding='utf-8', errors='replace'
        ) as file:
            name = os.path.basename(file.read(4096).strip())
        if os.path.join(folder, name) in paths:
            return os.path.join(folder, name)
    except (OSError, ValueError):
        pass  # it is there only if mmengine wrote it
    return max(paths, key=os.path.getmtime, default=None)


def _list(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except (OSError, ValueError) as error:
        raise LogParseError(f'{folder}: {reason_of(error)}') from error
