"""Run a command into a log file, and show that it moves."""

from __future__ import annotations

import os
import queue
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO, Mapping, Sequence

#: Seconds between two lines where the terminal cannot rewrite one.
QUIET = 30.0

_NINJA = re.compile(r'\[(\d+)/(\d+)\]')
_PIP = re.compile(r'^\s*(Collecting|Downloading|Installing|Building)\b')


def format_elapsed(seconds: float) -> str:
    """Return minutes and seconds.

    >>> format_elapsed(75.4)
    '1:15'
    """
    return f'{int(seconds) // 60}:{int(seconds) % 60:02d}'


def describe(line: str, before: str = '') -> str:
    """Say where a command is, from one line of its output, or repeat ``before``.

    >>> describe('[34/187] c++ -MMD -MF nms.o.d')
    'compiled 34 of 187'
    >>> describe('  Downloading mmengine-0.10.7-py3-none-any.whl (452 kB)')
    'downloading mmengine-0.10.7-py3-none-any.whl'
    """
    counter = _NINJA.search(line[:40])
    if counter:
        return f'compiled {counter[1]} of {counter[2]}'
    if _PIP.match(line):
        words = line.split()[:2]
        return f'{words[0].lower()} {words[1].rstrip(",:") if words[1:] else ""}'[:60]
    return before


class Meter:
    """One line that is rewritten on a terminal, or a line every 30 s elsewhere."""

    def __init__(self, title: str, stream: IO[str]) -> None:
        self._title, self._stream = title, stream
        self._start = self._last = time.monotonic()
        self._terminal = stream.isatty()

    def show(self, state: str) -> None:
        """Show ``state``, if it is time to."""
        now = time.monotonic()
        if not self._terminal and now - self._last < QUIET:
            return
        self._last = now
        text = f'  {self._title}: {state or "working"}, {self._elapsed()}'
        self._write(f'\r{text[:100]}\x1b[K' if self._terminal else f'{text}\n')

    def close(self, result: str) -> None:
        """Write the last line."""
        start, end = ('\r', '\x1b[K\n') if self._terminal else ('', '\n')
        self._write(f'{start}  {self._title}: {result}, {self._elapsed()}{end}')

    def _elapsed(self) -> str:
        return format_elapsed(time.monotonic() - self._start)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def run_logged(
    command: Sequence[str],
    *,
    title: str,
    log: Path,
    env: Mapping[str, str] | None = None,
) -> tuple[int, str]:
    """Run ``command`` and return its exit status and output, which ``log`` gets too.

    Raises:
        OSError: If the command cannot be started or the log cannot be written.
    """
    meter = Meter(title, sys.stdout)
    with log.open('a', encoding='utf-8') as file:
        file.write(f'\n$ {" ".join(command)}\n')
        file.flush()
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,  # nobody answers a question from in here
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})},
            encoding='utf-8',
            errors='replace',
        )
        try:
            output = _follow(process, meter, file)
        except BaseException:
            process.terminate()
            process.wait()
            meter.close('interrupted')
            raise
    status = process.wait()
    meter.close('done' if status == 0 else 'failed')
    return status, output


def _follow(process: subprocess.Popen[str], meter: Meter, file: IO[str]) -> str:
    lines: queue.Queue[str | None] = queue.Queue()

    def read() -> None:
        for line in process.stdout or ():
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    state = ''
    kept: list[str] = []
    while True:
        try:
            line = lines.get(timeout=1)
        except queue.Empty:  # the clock goes on while the compiler is silent
            meter.show(state)
            continue
        if line is None:
            return ''.join(kept)
        file.write(line)
        kept.append(line)
        state = describe(line, state)
        if lines.empty():
            meter.show(state)
