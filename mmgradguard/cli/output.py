"""Writing to the two streams of a command, whatever they are connected to."""

from __future__ import annotations

import json
import os
import sys
from typing import IO, Any

from mmgradguard.core.errors import GradGuardError
from mmgradguard.core.jsonio import encode_nonfinite
from mmgradguard.report.values import clean_text


class OutputError(GradGuardError):
    """What was found cannot be written to stdout."""


def print_text(text: str) -> None:
    """Write ``text`` to stdout; a reader that went away (``| head``) is no error.

    Raises:
        OutputError: If stdout is closed, or what it goes to takes no more.
    """
    if sys.stdout is None:  # closed before we began: ``>&-``
        raise OutputError('stdout: cannot be written (it is closed)')
    # a terminal in the C locale shows a replacement rather than a traceback
    encoding = sys.stdout.encoding or 'utf-8'
    text = text.encode(encoding, errors='replace').decode(encoding)
    try:
        sys.stdout.write(text if not text or text.endswith('\n') else f'{text}\n')
        sys.stdout.flush()
    except BrokenPipeError:
        _give_up(sys.stdout)
    except OSError as error:
        _give_up(sys.stdout)
        reason = error.strerror or str(error)
        raise OutputError(f'stdout: cannot be written ({reason})') from error


def print_json(value: Any) -> None:
    """Write strict JSON to stdout, in ASCII: valid in every locale."""
    print_text(json.dumps(encode_nonfinite(value), allow_nan=False))


def print_error(message: str) -> None:
    """Write one line to stderr; there is nowhere to say that it cannot be written."""
    if sys.stderr is None:
        return
    line = f'mmgradguard: {clean_text(message, 2000)}'
    encoding = sys.stderr.encoding or 'utf-8'
    line = line.encode(encoding, errors='replace').decode(encoding)
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        _give_up(sys.stderr)


def _give_up(stream: IO[str]) -> None:
    # python flushes both streams once more at exit: let that go nowhere
    try:
        number = stream.fileno()
    except (OSError, ValueError):  # a stream in memory
        return
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, number)
    os.close(null)
