"""From paths on the command line to what was found in the log."""

from __future__ import annotations

import argparse
import importlib.util
from typing import TYPE_CHECKING, Sequence

from mmgradguard.cli.pages import add_format_arguments, check_path
from mmgradguard.core.errors import RunFilesError
from mmgradguard.core.phrases import LANGUAGES

if TYPE_CHECKING:
    from mmgradguard.core.log_analysis import LogAnalysis
    from mmgradguard.logs.table import LogTable
    from mmgradguard.report.log_page import LogPage


def add_output_arguments(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the arguments that say how ``what`` is shown."""
    add_format_arguments(parser)
    parser.add_argument('--html', metavar='OUT', help=f'also write {what} to OUT')
    parser.add_argument(
        '--lang',
        choices=LANGUAGES,
        default=LANGUAGES[0],
        help='language of the words (default: en)',
    )


def read_page(paths: Sequence[str], *, with_curves: bool = True) -> LogPage:
    """Read and analyse the parts of one run.

    Args:
        paths: As for `read_log`.
        with_curves: Whether the page holds the columns; of a long log they are large.

    Raises:
        LogParseError: If there are no training rows to be read.
        RunFilesError: If a checkpoint is given and torch is not installed.
    """
    from mmgradguard.logs.analysis.analyze import analyze_table
    from mmgradguard.logs.read import read_log

    for path in paths:
        check_path(path)
    table = read_log(paths, read_checkpoint=_read_checkpoint)
    return as_page(table, analyze_table(table), with_curves=with_curves)


def as_page(
    table: LogTable, analysis: LogAnalysis, *, with_curves: bool = True
) -> LogPage:
    """Return what a page shows of the table: its columns as plain series."""
    from mmgradguard.core.log_analysis import Series
    from mmgradguard.logs.terms import is_loss_term, total_of
    from mmgradguard.report.log_page import LogPage

    total = total_of(table.columns)
    names = [name for name in table.columns if is_loss_term(name)]
    return LogPage(
        analysis=analysis,
        series=[
            Series(name, _with_gaps(values, table.absent.get(name, ())))
            for name, values in table.columns.items()
            if with_curves
        ],
        lines=table.lines,
        epochs=table.epochs,
        iterations=table.iterations,
        total=total,
        terms=[name for name in names if name != total],
        epoch_lengths=table.epoch_lengths,
        files=[(section.first_row, section.file) for section in table.sections],
    )


def _with_gaps(
    values: Sequence[float], absent: Sequence[int]
) -> Sequence[float | None]:
    if not len(absent):
        return values
    gaps: list[float | None] = list(values)
    for row in absent:
        gaps[row] = None
    return gaps


def _read_checkpoint(path: str) -> dict[str, list[float]]:
    if importlib.util.find_spec('torch') is None:
        raise RunFilesError(
            f'{path}: a checkpoint is read with torch, which is not installed'
        )
    from mmgradguard.ops.checkpoint_history import read_history

    return read_history(path)
