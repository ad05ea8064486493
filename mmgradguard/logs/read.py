"""From paths to a table of training rows: the one entrance to this layer."""

from __future__ import annotations

import hashlib
import os
from typing import Callable, Mapping, Sequence

from mmgradguard.core.errors import LogParseError
from mmgradguard.logs.builder import TableBuilder
from mmgradguard.logs.complaint import Complaint
from mmgradguard.logs.failures import FailureFinder
from mmgradguard.logs.folders import Run, find_runs
from mmgradguard.logs.formats import FORMATS
from mmgradguard.logs.formats.base import LogParser
from mmgradguard.logs.formats.checkpoint import table_from_history
from mmgradguard.logs.formats.text_clean import clean
from mmgradguard.logs.recognise import format_of
from mmgradguard.logs.sources import (
    is_checkpoint,
    is_regular,
    open_text,
    read_blocks,
)
from mmgradguard.logs.table import LogTable

#: Lines at the end of a text in which a training says how it died.
_LAST_WORDS = 200

ReadHistory = Callable[[str], Mapping[str, Sequence[float]]]


def read_log(
    paths: Sequence[str | os.PathLike[str]], read_checkpoint: ReadHistory | None = None
) -> LogTable:
    """Return the training rows of one run, in whatever format they are logged.

    Args:
        paths: Files, or a work directory of which the newest run with rows is read;
            ``-`` is stdin. Several are read in order as parts of one log; identical
            copies count once.
        read_checkpoint: Reads the per-iteration history that mmengine keeps in a
            checkpoint; it needs torch, and this layer has none.

    Raises:
        LogParseError: If a path cannot be read, or there is no training row.
    """
    if isinstance(paths, (str, bytes, os.PathLike)) or not paths:
        raise ValueError(f'`paths` must be a list of paths, got {paths!r}')
    names = [os.fsdecode(path) for path in paths]
    if len(names) == 1 and names[0] != '-':
        if os.path.isdir(names[0]):
            return _read_folder(names[0], read_checkpoint)
        if is_checkpoint(names[0]):
            return _read_history(names[0], read_checkpoint)
    builder, complaint = TableBuilder(', '.join(names)), Complaint()
    seen: set[bytes] = set()
    for name in names:
        for path, header in _parts_of(name, names):
            digest = _digest(path) if len(names) > 1 else None
            if digest in seen:
                continue
            if digest is not None:
                seen.add(digest)
            _read_part(builder, path, header, complaint)
    return _finished(builder, complaint)


def _parts_of(name: str, names: Sequence[str]) -> list[tuple[str, str | None]]:
    """Return the files to read for a path, each with the text that has its header."""
    if name != '-' and os.path.isdir(name):
        runs = [run for run in find_runs(name) if run.logs]
        if not runs:
            raise LogParseError(f'{name}: a directory without runs')
        return [(runs[0].logs[0], runs[0].text)]
    if f'{name}.json' in names:
        return []  # the same rows, rounded; its header is read with them
    text = name[: -len('.json')]
    return [(name, text if name.endswith('.json') and text in names else None)]


def _read_folder(folder: str, read_checkpoint: ReadHistory | None) -> LogTable:
    """Read the newest run that has training rows, from the best of its files."""
    complaint = Complaint()
    runs = find_runs(folder)
    for run in runs:
        table = _read_run(run, complaint, read_checkpoint)
        if table is not None:
            table.source = folder
            table.num_newer_runs = runs.index(run)
            return table
    if not runs:
        raise LogParseError(
            f'{folder}: a directory without runs; looked for *.log, *.log.json, '
            'vis_data/scalars.json, grad_guard/steps.jsonl, results.csv, metrics.json, '
            'log.txt and *.pth in it and in its folders'
        )
    raise LogParseError(f'{folder}: no training rows in its {complaint}')


def _read_run(
    run: Run, complaint: Complaint, read_checkpoint: ReadHistory | None
) -> LogTable | None:
    for path in run.logs:
        builder = TableBuilder(path)
        try:
            _read_part(builder, path, run.text, complaint)
        except LogParseError as error:
            complaint.add_reason(str(error))
        complaint.num_bare_rows += builder.num_bare_rows
        if len(builder.table):
            return builder.finish()
    if run.checkpoint and read_checkpoint:
        return _read_history(run.checkpoint, read_checkpoint)
    return None


def _read_history(path: str, read_checkpoint: ReadHistory | None) -> LogTable:
    if read_checkpoint is None:
        raise LogParseError(f'{path}: a checkpoint or an archive, not a log')
    return table_from_history(path, read_checkpoint(path))


def _read_part(
    builder: TableBuilder, path: str, text: str | None, complaint: Complaint
) -> None:
    builder.begin_file(path)
    if text is not None and text != path:
        _read_header(builder, text)
    _read_file(builder, path, complaint)
    if text is not None and text != path:
        _read_last_words(builder, text)


def _read_last_words(builder: TableBuilder, path: str) -> None:
    """Find in the end of a text how a training died whose rows are from elsewhere."""
    finder = FailureFinder(builder.table)
    last: list[tuple[int, str]] = []
    try:
        with open_text(path) as stream:
            for block in read_blocks(stream):
                lines = enumerate(block.texts, block.first)
                last = [*last, *lines][-_LAST_WORDS:]
    except LogParseError:
        return  # an extra, as the header is
    for number, line in last:
        failure = finder.find(number, clean(line))
        if failure is not None:
            finder.add(failure)


def _read_header(builder: TableBuilder, path: str) -> None:
    """Read what stands before the first row of a text, for rows from elsewhere."""
    preamble = FORMATS[0](builder)
    skipped = builder.table.num_skipped_lines
    failures = list(builder.table.failures)
    try:
        with open_text(path) as stream:
            for block in read_blocks(stream):
                place = _first_row(block.texts)[0]
                preamble.feed(block.first, block.texts[:place])
                if place < len(block.texts):
                    break
    except LogParseError:
        return  # the header is an extra
    preamble.finish()
    builder.table.num_skipped_lines = skipped
    builder.table.validations.clear()
    builder.table.failures = failures  # their lines are of another file


def _read_file(builder: TableBuilder, path: str, complaint: Complaint) -> None:
    # until a row says what this is, its lines are taken for the header of a text
    parser: LogParser = FORMATS[0](builder)
    is_known = False
    num_lines = 0
    with open_text(path) as stream:
        for block in read_blocks(stream):
            texts, first = block.texts, block.first
            if not is_known:
                place, found = _first_row(texts)
                parser.feed(first, texts[:place])
                texts, first = texts[place:], first + place
                if found is not None:
                    parser.finish()
                    parser, is_known = found(builder), True
            if texts:
                parser.feed(first, texts, is_open=block.is_open)
            num_lines = block.first + len(block.texts) - 1
    parser.finish()
    if len(builder.table) and not builder.table.format:
        builder.table.format = parser.NAME
    complaint.add_file(path, num_lines, parser.NAME if is_known else None)


def _first_row(texts: Sequence[str]) -> tuple[int, type[LogParser] | None]:
    for place, text in enumerate(texts):
        found = format_of(text)
        if found is not None:
            return place, found
    return len(texts), None


def _finished(builder: TableBuilder, complaint: Complaint) -> LogTable:
    num_rows = len(builder.table)
    table = builder.finish()
    if not num_rows:
        raise LogParseError(complaint.about(table, builder.num_bare_rows))
    return table


def _digest(path: str) -> bytes | None:
    """Return what identical files share, None if it cannot be told."""
    if not is_regular(path):
        return None
    digest = hashlib.sha1()
    try:
        with open(path, 'rb') as file:
            for block in iter(lambda: file.read(2**20), b''):
                digest.update(block)
    except (OSError, ValueError):
        return None  # to be said when it is read
    return digest.digest()
