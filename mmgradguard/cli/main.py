"""``mmgradguard VERB ...`` or ``mmgradguard PATH``.

A verb is one module of this package with `NAME`, `HELP`, `add_arguments(parser)` and
`run(args) -> int`; the tuple `VERBS` is the only place that knows them. A verb imports
what it works with in `run`: no other verb waits for it. The exit status is 0 for
clean, 1 for findings, 2 for bad usage or unreadable input, said in one line on stderr.
"""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn, Sequence

from mmgradguard.cli import analyze, compare, incident, report
from mmgradguard.cli.exit_codes import BAD_INPUT
from mmgradguard.cli.output import OutputError, print_error, print_text
from mmgradguard.cli.recognise import is_path, recognise
from mmgradguard.core.errors import GradGuardError
from mmgradguard.version import __version__

VERBS = (analyze, compare, report, incident)


class UsageError(GradGuardError):
    """The command line makes no sense."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f'{message} (see {self.prog} --help)')


def build_parser() -> argparse.ArgumentParser:
    """Return the parser with one sub-parser for each verb."""
    parser = _Parser(
        prog='mmgradguard',
        description='Find, survive and explain exploding gradients.',
        epilog='Without a verb a PATH is recognised by what it holds. Exit status: '
        '0 clean, 1 findings, 2 bad usage or unreadable input.',
    )
    parser.add_argument('--version', action='version', version=__version__)
    verbs = parser.add_subparsers(dest='verb', metavar='VERB')
    for verb in VERBS:
        child = verbs.add_parser(verb.NAME, help=verb.HELP, description=verb.HELP)
        verb.add_arguments(child)
        child.set_defaults(run=verb.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        names = [verb.NAME for verb in VERBS]
        if words and is_path(words[0]) and words[0] not in names:
            words.insert(0, recognise(words[0], verbs=names))
        args = build_parser().parse_args(words)
        if args.verb is None:
            raise UsageError('a verb or a PATH is needed (see mmgradguard --help)')
        return int(args.run(args))
    except GradGuardError as error:
        print_error(str(error))
        return BAD_INPUT
    except SystemExit as stop:  # --help and --version
        return _end_of_help(stop.code if isinstance(stop.code, int) else 0)
    except KeyboardInterrupt:
        print_error('interrupted')
        return BAD_INPUT


def _end_of_help(status: int) -> int:
    # argparse has written: whether that arrived shows when it is flushed
    try:
        print_text('')
    except OutputError as error:
        print_error(str(error))
        return BAD_INPUT
    return status
