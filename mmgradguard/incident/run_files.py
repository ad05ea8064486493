"""The files of one run. A full disk costs the rest of a file, never the training."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Any, Callable

from mmgradguard.core.jsonio import dumps, write_text_atomic


class RunFiles:
    """Writes ``steps.jsonl``, ``journal.jsonl`` and incidents under one folder.

    Each kind of file fails on its own and the first error is told once. A JSON Lines
    file is then given up, so that it ends with its last whole line; an incident is
    tried anew each time. What was written stays. Files appear with their first line.

    Args:
        out_dir: Folder; made when needed.
        warn: Called with one sentence when a file cannot be written.
    """

    def __init__(self, out_dir: Path, warn: Callable[[str], None]) -> None:
        self.out_dir = Path(out_dir)
        self._warn = warn
        self._open: dict[str, IO[str]] = {}
        self._failed: set[str] = set()
        #: Whether the folder itself cannot be written, which was told then.
        self.is_unusable = False

    def append(self, name: str, row: dict[str, Any]) -> None:
        """Append one line to a JSON Lines file; it is on disk when this returns."""
        self._guarded(name, lambda: self._append(name, row))

    def holds(self, name: str) -> bool:
        """Whether a file is there with something in it."""
        try:
            return (self.out_dir / name).stat().st_size > 0
        except OSError:
            return False

    def write_incident(self, folder: str, incident: dict[str, Any]) -> bool:
        """Write or replace ``incidents/<folder>/incident.json`` as a whole.

        Returns:
            Whether it is on disk.
        """
        path = self.incident_dir(folder) / 'incident.json'
        return self._guarded(
            'incidents',
            lambda: write_text_atomic(path, dumps(incident, indent=1) + '\n'),
        )

    def write_bundle(self, write: Callable[[], None]) -> None:
        """Call what writes the bundle of an incident; failing costs the bundle only."""
        self._guarded('bundles', write)

    def incident_dir(self, folder: str) -> Path:
        """Return the folder of one incident."""
        return self.out_dir / 'incidents' / folder

    def close(self) -> None:
        """Close all files; they open again when written to."""
        for file in self._open.values():
            try:
                file.close()
            except OSError as error:
                self._warn(f'cannot close {file.name}: {error}')
        self._open.clear()

    def _append(self, name: str, row: dict[str, Any]) -> None:
        file = self._open.get(name)
        if file is None:
            path = self.out_dir / name
            path.parent.mkdir(parents=True, exist_ok=True)
            cut = _ends_in_the_middle(path)
            file = self._open[name] = open(  # noqa: SIM115  kept open
                path, 'a', encoding='utf-8', errors='backslashreplace'
            )
            if cut:
                file.write('\n')
        file.write(dumps(row) + '\n')
        file.flush()

    def _guarded(self, name: str, write: Callable[[], None]) -> bool:
        if name in self._failed and name.endswith('.jsonl'):
            return False
        try:
            write()
        except Exception as error:
            self._tell(name, error)
            self._failed.add(name)
            return False
        return True

    def _tell(self, name: str, error: Exception) -> None:
        if self.is_unusable or name in self._failed:
            return
        self.is_unusable = not _is_usable(self.out_dir)
        if self.is_unusable:
            self._warn(
                f'cannot write into {self.out_dir}: {error}. The training goes on '
                'without records, incidents and report.'
            )
        else:
            self._warn(
                f'cannot write {name} under {self.out_dir}: {error}. '
                'The training goes on without it.'
            )


def _is_usable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


def _ends_in_the_middle(path: Path) -> bool:
    """Whether the last line was cut, as a killed run leaves it."""
    if not path.exists() or path.stat().st_size == 0:
        return False
    with open(path, 'rb') as file:
        file.seek(-1, 2)
        return file.read(1) != b'\n'
