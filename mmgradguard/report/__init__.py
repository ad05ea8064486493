"""A run's files, or a log -> a report: HTML page, terminal, Markdown, JSON.

Names are resolved when they are asked for: a command that prints five lines must not
wait for what draws a page. Rich, Jinja2 and Plotly are imported by the renderer that
needs them, when it runs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mmgradguard.report.model import RunReport, build_report
    from mmgradguard.report.run_files import RunRecord, read_run
    from mmgradguard.report.run_folders import find_guard_dir
    from mmgradguard.report.write import write_report

__all__ = [
    'RunRecord',
    'RunReport',
    'build_report',
    'find_guard_dir',
    'read_run',
    'write_report',
]

_HOMES = {
    'RunRecord': 'run_files',
    'RunReport': 'model',
    'build_report': 'model',
    'find_guard_dir': 'run_folders',
    'read_run': 'run_files',
    'write_report': 'write',
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    home = importlib.import_module(f'{__name__}.{_HOMES[name]}')
    return getattr(home, name)
