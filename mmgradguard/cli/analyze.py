"""``mmgradguard analyze LOG``: what happened in a training, from its log alone."""

from __future__ import annotations

import argparse

from mmgradguard.cli.exit_codes import CLEAN, FINDINGS
from mmgradguard.cli.log_input import add_output_arguments

NAME = 'analyze'
HELP = 'Read a training log: what happened, is it fatal, what to change.'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this verb."""
    parser.add_argument(
        'log',
        metavar='LOG',
        nargs='+',
        help='a log, a work directory (its newest run), a checkpoint, or - for stdin; '
        'several are one run in parts',
    )
    add_output_arguments(parser, 'a page with the curves')


def run(args: argparse.Namespace) -> int:
    """Print what the log holds; 1 if the run is suspicious or fatal.

    Raises:
        LogParseError: If there are no training rows to be read.
        RunFilesError: If the page cannot be written.
    """
    from mmgradguard.cli.log_input import read_page
    from mmgradguard.cli.output import print_json, print_text
    from mmgradguard.cli.pages import write_page
    from mmgradguard.report.log_story import build_story

    page = read_page(args.log, with_curves=args.html is not None)
    analysis = page.analysis
    story = build_story(analysis, args.lang, page.span(), page.paths())
    written = None
    if args.html is not None:
        from mmgradguard.report.log_html import render_log_html

        written = write_page(args.html, render_log_html(page, story))
    if args.json:
        from mmgradguard.report.log_json import analysis_json

        print_json(analysis_json(analysis, args.lang))
    elif args.markdown:
        from mmgradguard.report.log_markdown import render_log_markdown

        print_text(render_log_markdown(story))
    else:
        from mmgradguard.report.log_text import render_log_text

        text = render_log_text(story)
        print_text(f'{text}{story.label("page", path=written)}\n' if written else text)
    return CLEAN if analysis.is_clean else FINDINGS
