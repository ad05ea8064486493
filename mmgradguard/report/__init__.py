"""A run's files -> a report: HTML page, terminal, Markdown, JSON.

Rich, Jinja2 and Plotly are imported by the renderer that needs them, when it runs.
"""

from __future__ import annotations

from mmgradguard.report.model import RunReport, build_report
from mmgradguard.report.run_files import RunRecord, find_guard_dir, read_run
from mmgradguard.report.write import write_report

__all__ = [
    'RunRecord',
    'RunReport',
    'build_report',
    'find_guard_dir',
    'read_run',
    'write_report',
]
