"""Values from files that may be damaged, and how values are written for people.

A reader returns None for what it cannot use, never raises: a report of a run that
went wrong must survive files that went wrong with it.
"""

from __future__ import annotations

import math
import unicodedata
from typing import Any

#: Longest text that a report shows; the middle of longer ones is left out.
MAX_TEXT = 600
#: Largest integer that is believed; beyond it a counter is damage.
MAX_INT = 2**53
_MAX_DEPTH = 8
_MAX_ITEMS = 200


def clean_text(text: str, limit: int = MAX_TEXT) -> str:
    r"""Return ``text`` on one line, without control characters, at most ``limit`` long.

    Escape sequences, lone surrogates and bidirectional overrides would let a file
    name act on the reader's terminal or hide itself.

    >>> clean_text('a\n b\x1b[31m')
    'a b?[31m'
    """
    if len(text) > 4 * limit:  # cleaning a megabyte to show 600 characters is slow
        text = text[: 2 * limit] + text[-2 * limit :]
    spaced = ' '.join(text.split())
    plain = ''.join(
        '?' if unicodedata.category(char) in ('Cc', 'Cf', 'Cs', 'Zl', 'Zp') else char
        for char in spaced
    )
    return shorten(plain, limit)


def shorten(text: str, limit: int) -> str:
    """Return ``text``, its middle replaced by ``...`` if longer than ``limit``.

    >>> shorten('bbox_head.reg_ffn.layers.0', 15)
    'bbox_h...yers.0'
    """
    if len(text) <= limit:
        return text
    head = (limit - 3 + 1) // 2
    return f'{text[:head]}...{text[len(text) - (limit - 3 - head) :]}'


def read_text(value: Any) -> str | None:
    """Return a string or a number as clean text."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    number = read_int(value) if isinstance(value, int) else read_float(value)
    return None if number is None else str(number)


def read_int(value: Any) -> int | None:
    """Return an integer of a believable size."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if isinstance(value, float) and not value.is_integer():  # NaN and inf are not
        return None
    return int(value) if abs(value) <= MAX_INT else None


def read_float(value: Any) -> float | None:
    """Return a number, or one of the names "nan", "inf", "-inf", as a float."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def read_bool(value: Any) -> bool | None:
    """Return a truth value."""
    return value if isinstance(value, bool) else None


def read_texts(value: Any) -> list[str] | None:
    """Return a list of clean texts; a single text is a list of one."""
    items = value if isinstance(value, list) else [value]
    texts = [read_text(item) for item in items[:_MAX_ITEMS]]
    good = [text for text in texts if text is not None]
    return None if items and not good else good


def read_shape(value: Any) -> list[int] | None:
    """Return the sizes of a tensor."""
    if not isinstance(value, list) or len(value) > 16:
        return None
    sizes = [read_int(item) for item in value]
    return None if None in sizes else [size for size in sizes if size is not None]


def read_plain(value: Any, depth: int = 0) -> Any:
    """Return plain data of bounded depth and size, every string clean."""
    if isinstance(value, dict) and depth < _MAX_DEPTH:
        return {
            clean_text(str(key)): read_plain(item, depth + 1)
            for key, item in list(value.items())[:_MAX_ITEMS]
        }
    if isinstance(value, (list, tuple)) and depth < _MAX_DEPTH:
        return [read_plain(item, depth + 1) for item in value[:_MAX_ITEMS]]
    if isinstance(value, str):
        return clean_text(value)
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int) and abs(value) <= MAX_INT:
        return value
    return '...'


def format_number(value: float | None) -> str:
    """Return a number as a person writes it; ``-`` for None.

    >>> [format_number(x) for x in (41.234567, 1e8, 52428, float('inf'), None)]
    ['41.23', '1e+08', '52428', 'inf', '-']
    """
    if value is None:
        return '-'
    if isinstance(value, int):  # a count stays exact
        return str(value)
    return f'{value:.4g}' if math.isfinite(value) else str(float(value))


def format_count(num: int, noun: str) -> str:
    """Return a counted noun.

    >>> format_count(1, 'step'), format_count(3, 'step')
    ('1 step', '3 steps')
    """
    return f'{num} {noun}' if num == 1 else f'{num} {noun}s'


def format_share(num: int, total: int) -> str:
    """Return ``num`` of ``total`` as a percentage that never rounds up to all.

    >>> format_share(2399, 2400), format_share(240, 240), format_share(1, 2400)
    ('99.9 %', '100 %', '0.04 %')
    """
    share = 100 * num / total if total else 0.0
    if share in (0, 100) or 1 <= share <= 99:
        return f'{share:.0f} %'
    return f'{math.floor(share * 10) / 10:.1f} %' if share > 99 else f'{share:.1g} %'


def format_place(epoch: int | None, iteration: int | None) -> str:
    """Return where in the run, 1-based as the host prints it, from 0-based counters.

    >>> format_place(1, 100)
    'epoch 2, iteration 101'
    """
    parts = []
    if epoch is not None:
        parts.append(f'epoch {epoch + 1}')
    if iteration is not None:
        parts.append(f'iteration {iteration + 1}')
    return ', '.join(parts) or 'place unknown'
