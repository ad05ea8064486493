"""Finding the folders in which a guard has written."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path
from typing import Iterator

from mmgradguard.core.errors import RunFilesError

GUARD_DIR = 'grad_guard'
REPORT_FILE = 'report.html'
GUARD_FILES = ('steps.jsonl', 'journal.jsonl', 'incidents')

_TIMESTAMP = re.compile(r'\d{8}_\d{6}')
#: Folders that are looked into for a hint; a data set has too many.
_MOST_FOLDERS = 200


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
    text, path = str(path), Path(path)
    try:
        if not text:
            raise RunFilesError("the path is empty; '.' is the current folder")
        if not path.exists():
            raise RunFilesError(f'{path}: no such file or directory')
        if not path.is_dir():
            raise RunFilesError(f'{path}: not a directory')
        for folder in (path, path / GUARD_DIR):
            if has_guard_files(folder):
                return [folder]
        runs = [run for run in path.iterdir() if has_guard_files(run / GUARD_DIR)]
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise RunFilesError(f'{path}: cannot be read ({reason_of(error)})') from error
    if not runs:
        raise RunFilesError(
            f'{path}: no guard files; looked for {", ".join(GUARD_FILES)} in it, in '
            f'{GUARD_DIR}/ and in <timestamp>/{GUARD_DIR}/{_hint(path)}'
        )
    return [run / GUARD_DIR for run in sorted(runs, key=_age, reverse=True)]


def has_guard_files(folder: Path) -> bool:
    """Whether ``folder`` holds any file that a guard writes."""
    if any((folder / name).exists() for name in GUARD_FILES):
        return True
    # a run that ended before its first step; elsewhere such a page may be anybody's
    return folder.name == GUARD_DIR and (folder / REPORT_FILE).exists()


def _age(run: Path) -> tuple[bool, str, float]:
    # mmengine names a run by when it began; a copied folder has a new mtime
    dated = _TIMESTAMP.fullmatch(run.name) is not None
    return dated, run.name if dated else '', run.stat().st_mtime


def reason_of(error: Exception) -> str:
    """Return an error in the words of the system, without the path."""
    return getattr(error, 'strerror', None) or str(error)


def _hint(path: Path) -> str:
    """Return where one level below the guard's files are."""
    try:
        found = [str(child) for child in _folders(path) if _is_work_dir(child)]
    except OSError:
        return ''
    if not found:
        return ''
    more = f' and {len(found) - 3} more' if len(found) > 3 else ''
    return f'. There are some below: {", ".join(sorted(found)[:3])}{more}'


def _is_work_dir(folder: Path) -> bool:
    places = [folder, folder / GUARD_DIR]
    places += [run / GUARD_DIR for run in _folders(folder)]
    return any(map(has_guard_files, places))


def _folders(path: Path) -> Iterator[Path]:
    return (item for item in islice(path.iterdir(), _MOST_FOLDERS) if item.is_dir())
