"""Which verb a bare PATH asks for, by what it holds."""

from __future__ import annotations

from pathlib import Path
from typing import Sequence

from mmgradguard.cli.pages import check_path
from mmgradguard.core.errors import RunFilesError

#: What a path may be that no verb reads, in words.
_NOT_READ = {
    'config': 'a config, which no verb reads',
}


def is_path(word: str) -> bool:
    """Return whether ``word`` is no option; ``-`` stands for stdin."""
    return word == '-' or not word.startswith('-')


def recognise(path: str, *, verbs: Sequence[str]) -> str:
    """Return the verb for ``path``.

    Raises:
        RunFilesError: If it is neither a verb nor a path that any verb reads.
    """
    if path == '-':
        return 'analyze'
    try:
        verb = _of_path(Path(check_path(path)))
    except (OSError, ValueError) as error:
        raise RunFilesError(f'{path}: cannot be read ({error})') from error
    if verb is None:
        raise RunFilesError(
            f'{path!r} is neither a path that exists nor a verb; '
            f'verbs: {", ".join(verbs)}'
        )
    return verb


def _of_path(path: Path) -> str | None:
    from mmgradguard.report.run_files import INCIDENT_FILE
    from mmgradguard.report.run_folders import find_guard_dirs

    if path.name == INCIDENT_FILE or (path / INCIDENT_FILE).is_file():
        return 'incident'
    if path.is_dir():
        try:
            find_guard_dirs(path)
        except RunFilesError:
            return 'analyze'  # a work directory without us; it says what is missing
        return 'report'
    if not path.exists():
        return None
    from mmgradguard.logs.recognise import sniff

    found = sniff(path)
    if found in _NOT_READ:
        raise RunFilesError(f'{path}: this is {_NOT_READ[found]}')
    return 'analyze'  # what is no log is refused there, with the reason
