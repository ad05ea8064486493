"""``report.html`` of a run, from its files."""

from __future__ import annotations

from pathlib import Path

from mmgradguard.core.jsonio import write_text_atomic
from mmgradguard.report.html import render_html
from mmgradguard.report.model import build_report
from mmgradguard.report.run_files import REPORT_FILE, read_guard_dir


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
