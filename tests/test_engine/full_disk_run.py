"""A guarded run in a process whose files may not grow beyond a limit."""

from __future__ import annotations

import builtins
import errno
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from toy import make_runner

work_dir, limit = Path(sys.argv[1]), int(sys.argv[2])
real_open = builtins.open


class Limited:
    """A file of the guard that is full after ``limit`` bytes, as a full disk is."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, text: str) -> int:
        room = limit - self._file.tell()
        if len(text) > room:
            self._file.write(text[:room])
            self._file.flush()
            raise OSError(errno.ENOSPC, 'No space left on device')
        return self._file.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def limited_open(path: Any, mode: str = 'r', *args: Any, **kwargs: Any) -> Any:
    file = real_open(path, mode, *args, **kwargs)
    return Limited(file) if str(path).endswith('steps.jsonl') and 'a' in mode else file


builtins.open = limited_open
runner = make_runner(work_dir, [dict(type='GradAnomalyHook')])
runner.train()
print(f'finished {runner.iter} iterations')
