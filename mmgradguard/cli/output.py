"""Writing to the two streams of a command, whatever they are connected to."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from mmgradguard.core.jsonio import encode_nonfinite
from mmgradguard.report.values import clean_text


def print_text(text: str) -> None:
    """Write ``text`` to stdout; a reader that went away (``| head``) is no error."""
    # a terminal in the C locale shows a replacement rather than a traceback
    encoding = sys.stdout.encoding or 'utf-8'
    text = text.encode(encoding, errors='replace').decode(encoding)
    try:
        sys.stdout.write(text if text.endswith('\n') else f'{text}\n')
        sys.stdout.flush()
    except BrokenPipeError:
        # python flushes stdout once more at exit: let that go nowhere
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def print_json(value: Any) -> None:
    """Write strict JSON to stdout, in ASCII: valid in every locale."""
    print_text(json.dumps(encode_nonfinite(value), allow_nan=False))


def print_error(message: str) -> None:
    """Write one line to stderr."""
    line = f'mmgradguard: {clean_text(message, 2000)}'
    encoding = sys.stderr.encoding or 'utf-8'
    line = line.encode(encoding, errors='replace').decode(encoding)
    print(line, file=sys.stderr)
