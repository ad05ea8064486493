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

    try:
        if os.path.isdir(out):
            out = os.path.join(out, name)
        write_text_atomic(out, page)
    except (OSError, ValueError) as error:
        raise RunFilesError(f'{out}: cannot be written ({error})') from error
    return out
