"""``mmgradguard report WORK_DIR``."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from mmgradguard.cli.exit_codes import CLEAN, FINDINGS
from mmgradguard.cli.pages import add_format_arguments, check_path, write_page
from mmgradguard.core.errors import RunFilesError

if TYPE_CHECKING:
    from mmgradguard.report.model import RunReport

NAME = 'report'
HELP = "Rebuild a run's report.html and print the same here."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this verb."""
    parser.add_argument(
        'work_dir',
        metavar='WORK_DIR',
        help='a work directory (its newest run), one run of it, or the guard folder',
    )
    add_format_arguments(parser)
    pages = parser.add_mutually_exclusive_group()
    pages.add_argument(
        '--html',
        metavar='OUT',
        help='write the page to OUT (default: report.html beside the files)',
    )
    pages.add_argument('--no-html', action='store_true', help='write no page')


def run(args: argparse.Namespace) -> int:
    """Print the report, write the page; 1 if the run is suspicious or fatal."""
    from mmgradguard.cli.output import print_json, print_text
    from mmgradguard.report.model import build_report
    from mmgradguard.report.run_files import read_run

    report = build_report(read_run(check_path(args.work_dir)))
    page = None if args.no_html else _write_page(report, args.html)
    if args.json:
        print_json(report.to_json())
    elif args.markdown:
        from mmgradguard.report.markdown import render_markdown

        print_text(render_markdown(report))
    else:
        from mmgradguard.report.terminal import render_terminal

        text = render_terminal(report)
        print_text(f'{text}\nPage: {page}\n' if page else text)
    return CLEAN if report.is_clean else FINDINGS


def _write_page(report: RunReport, out: str | None) -> str | None:
    from mmgradguard.cli.output import print_error
    from mmgradguard.report.html import render_html
    from mmgradguard.report.packages import MissingPackageError
    from mmgradguard.report.run_folders import REPORT_FILE

    try:
        target = report.guard_dir if out is None else out
        return write_page(target, render_html(report), REPORT_FILE)
    except (RunFilesError, MissingPackageError) as error:
        if out is not None:
            raise
        # a shared run may be read-only, a cluster without plotly: still worth printing
        print_error(f'no page: {error}; use --html OUT or --no-html')
        return None
