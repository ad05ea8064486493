"""``report.html`` of a run, from its files."""

from __future__ import annotations

from pathlib import Path
from typing import Callable

from mmgradguard.core.errors import GradGuardError
from mmgradguard.core.jsonio import write_text_atomic
from mmgradguard.report.html import render_html
from mmgradguard.report.model import build_report
from mmgradguard.report.run_files import read_guard_dir
from mmgradguard.report.run_folders import REPORT_FILE


def write_report(guard_dir: str | Path) -> Path:
    """Write ``report.html`` into ``guard_dir`` and return its path.

    The page is whole or, on any error, as it was before.

    Raises:
        RunFilesError: If a file of the run exists and cannot be opened.
        MissingPackageError: If Jinja2 or Plotly is not installed.
        OSError: If the page cannot be written.
    """
    path = Path(guard_dir) / REPORT_FILE
    write_text_atomic(path, render_html(build_report(read_guard_dir(guard_dir))))
    return path


def try_report(guard_dir: str | Path, tell: Callable[[str], None]) -> Path | None:
    """Write the report at the end of a run; None if it cannot be written.

    Args:
        guard_dir: As for `write_report`.
        tell: Called with one line then: what is missing must not look like a crash.
    """
    try:
        return write_report(guard_dir)
    except (OSError, GradGuardError) as error:
        tell(f'no {REPORT_FILE}: {error}')
        return None
