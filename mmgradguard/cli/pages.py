"""What verbs that show something have in common: the form, the page, an empty path."""

from __future__ import annotations

import argparse
import os

from mmgradguard.core.errors import RunFilesError


def add_format_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the forms in which a verb prints, of which one is chosen."""
    formats = parser.add_mutually_exclusive_group()
    formats.add_argument('--json', action='store_true', help='print JSON')
    formats.add_argument(
        '--markdown',
        action='store_true',
        help='print Markdown to paste into an issue, paths shortened',
    )


def check_path(path: str) -> str:
    """Return ``path``.

    Raises:
        RunFilesError: If it is empty, as an unset variable of a shell is.
    """
    if not path:
        raise RunFilesError("the path is empty; '.' is the current folder")
    return path


def write_page(out: str, page: str, name: str = 'log.html') -> str:
    """Write an HTML page and return its path.

    Args:
        out: Where; a folder gets it as ``name``.
        page: The page.
        name: Of the file in a folder.

    Raises:
        RunFilesError: If it cannot be written.
    """
    from mmgradguard.core.jsonio import write_text_atomic

    if out in ('', '-'):
        raise RunFilesError(f'--html needs a file or a folder to write to, got {out!r}')
    try:
        is_ours = os.path.isdir(out)  # by its name: an old, or a damaged one
        if is_ours:
            out = os.path.join(out, name)
        target = os.path.realpath(out)
        if not is_ours and os.path.lexists(target) and not _is_page(target):
            raise RunFilesError(
                f'{out}: is there and is no HTML page; it is not overwritten'
            )
        write_text_atomic(target, page)
    except (OSError, ValueError) as error:
        raise RunFilesError(f'{out}: cannot be written ({error})') from error
    return out


def _is_page(path: str) -> bool:
    # what somebody names by mistake is a log, an incident, a device
    if not os.path.isfile(path):
        return False
    with open(path, 'rb') as file:
        head = file.read(256).lstrip().lower()
    return not head or head.startswith((b'<!doctype html', b'<html'))
