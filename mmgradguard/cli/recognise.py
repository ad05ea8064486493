"""Which verb a bare PATH asks for, by what it holds."""

from __future__ import annotations

from pathlib import Path
from typing import Sequence

from mmgradguard.core.errors import RunFilesError
from mmgradguard.report.run_files import INCIDENT_FILE, find_guard_dirs


def recognise(path: str, *, verbs: Sequence[str]) -> str:
    """Return the verb for ``path``.

    Raises:
        RunFilesError: If it is neither a verb nor a path that any verb reads.
    """
    try:
        folder = Path(path)
        if folder.name == INCIDENT_FILE or (folder / INCIDENT_FILE).is_file():
            return 'incident'
        if folder.exists():
            find_guard_dirs(folder)
            return 'report'
    except (OSError, ValueError) as error:
        raise RunFilesError(f'{path}: cannot be read ({error})') from error
    raise RunFilesError(
        f'{path!r} is neither a path that exists nor a verb; verbs: {", ".join(verbs)}'
    )
