"""Strict JSON with named infinities, and files that are whole or absent.

Python's `json` writes bare ``NaN``, which no other parser accepts. Here NaN and the
infinities are the strings ``"nan"``, ``"inf"`` and ``"-inf"``.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from pathlib import Path
from typing import Any, Mapping


def encode_nonfinite(value: Any) -> Any:
    """Return ``value`` with every non-finite float replaced by its name.

    >>> encode_nonfinite({'a': [1.0, float('nan'), float('-inf')]})
    {'a': [1.0, 'nan', '-inf']}
    """
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return 'nan' if math.isnan(value) else 'inf' if value > 0 else '-inf'
    if isinstance(value, Mapping):
        return {str(key): encode_nonfinite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode_nonfinite(item) for item in value]
    return value


def as_float(value: Any) -> float | None:
    """Read a number as written by :func:`encode_nonfinite`; None stays None.

    Raises:
        ValueError: If ``value`` is neither a number nor one of the three names.

    >>> as_float('-inf'), as_float(2), as_float(None)
    (-inf, 2.0, None)
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError(f'not a number: {value!r}')
    return float(value)


def dumps(value: Any, *, indent: int | None = None) -> str:
    """Serialise to JSON that every parser accepts; unknown objects as their str."""
    return json.dumps(
        encode_nonfinite(value),
        indent=indent,
        allow_nan=False,
        default=str,
        ensure_ascii=False,
    )


def write_text_atomic(path: str | os.PathLike[str], text: str) -> None:
    """Write ``text`` so that ``path`` is either the old or the new file, whole.

    Raises:
        OSError: If the disk is full or the folder cannot be written; ``path`` is
            then as it was and nothing is left beside it.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f'.{path.name}.')
    try:
        with os.fdopen(
            handle, 'w', encoding='utf-8', errors='backslashreplace'
        ) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes files private; a run's files are as readable as its logs
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def read_jsonl(path: str | os.PathLike[str]) -> tuple[list[dict[str, Any]], int]:
    """Read the objects of a JSON Lines file and count the lines that are damaged.

    A run that is killed leaves its last line cut; that line is counted, not fatal.

    Raises:
        OSError: If the file cannot be opened.
    """
    rows: list[dict[str, Any]] = []
    num_damaged = 0
    with open(path, encoding='utf-8', errors='replace') as file:
        for line in file:
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                row = None
            if isinstance(row, dict):
                rows.append(row)
            else:
                num_damaged += 1
    return rows, num_damaged
