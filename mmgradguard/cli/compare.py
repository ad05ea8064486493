"""``mmgradguard compare LOG LOG ...``: runs side by side."""

from __future__ import annotations

import argparse

from mmgradguard.cli.exit_codes import CLEAN, FINDINGS
from mmgradguard.cli.log_input import add_output_arguments

NAME = 'compare'
HELP = 'Compare the logs of runs: before and after a change, mine and a reference.'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this verb."""
    parser.add_argument(
        'log', metavar='LOG', help='a log, a work directory, or - for stdin'
    )
    parser.add_argument(
        'others', metavar='LOG', nargs='+', help='one more for each run to compare'
    )
    add_output_arguments(parser, 'a page with overlaid curves')


def run(args: argparse.Namespace) -> int:
    """Print the comparison; 1 if any run is suspicious or fatal.

    Raises:
        LogParseError: If a log has no training rows to be read.
        RunFilesError: If the page cannot be written.
    """
    from mmgradguard.cli.log_input import read_page
    from mmgradguard.cli.output import print_json, print_text
    from mmgradguard.cli.pages import write_page
    from mmgradguard.report import compare_pages
    from mmgradguard.report.compare_story import build_compare_story
    from mmgradguard.report.comparison import compare_runs

    comparison = compare_runs([read_page([path]) for path in (args.log, *args.others)])
    story = build_compare_story(comparison, args.lang)
    written = None
    if args.html is not None:
        from mmgradguard.report.compare_html import render_compare_html

        written = write_page(args.html, render_compare_html(comparison, story))
    if args.json:
        print_json(compare_pages.comparison_json(comparison, story, args.lang))
    elif args.markdown:
        print_text(compare_pages.render_compare_markdown(story))
    else:
        text = compare_pages.render_compare_text(story)
        print_text(f'{text}{story.label("page", path=written)}\n' if written else text)
    return CLEAN if comparison.is_clean else FINDINGS
