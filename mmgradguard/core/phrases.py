"""Sentences of a `Note`, in English and in Simplified Chinese.

The templates are data, ``data/phrases_<lang>.json``: code -> text for `str.format`.
What is missing is never an error: a page with one odd line is worth more than none.
"""

from __future__ import annotations

import json
import math
import string
from functools import lru_cache
from pathlib import Path
from typing import Any

from mmgradguard.core.log_analysis import Note

#: Languages that a page can be written in; the first is the one to fall back on.
LANGUAGES = ('en', 'zh')

_DATA = Path(__file__).parent / 'data'
#: Beyond these a number is written with an exponent.
_SMALLEST, _LARGEST = 1e-3, 1e5


def format_value(value: Any, digits: int = 3) -> str:
    """Return a number with ``digits`` significant digits, as a person writes it.

    Integers stay exact; what is no number is returned as text.

    >>> [format_value(x) for x in (3.11e7, 0.88, 1234.5, 86.0, 2e-4, 40)]
    ['3.11e7', '0.88', '1234', '86', '2e-4', '40']
    >>> format_value(1.556e9, 2), format_value(float('nan')), format_value(None)
    ('1.6e9', 'nan', '-')
    """
    if value is None:
        return '-'
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int) or not math.isfinite(value):
        return str(value)
    if value == 0:
        return '0'
    if not _SMALLEST <= abs(value) < _LARGEST:
        mantissa, _, exponent = f'{value:.{digits - 1}e}'.partition('e')
        return f'{_trim(mantissa)}e{int(exponent)}'
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return _trim(f'{value:.{places}f}')


def format_share(share: float) -> str:
    """Return a share of 1 in percent; only all of it is 100, only nothing is 0.

    >>> [format_share(x) for x in (0.42, 0.9996, 1.0, 0.0004)]
    ['42 %', '99.9 %', '100 %', '0.04 %']
    """
    percent = 100 * share
    if not math.isfinite(percent):
        return str(percent)
    if percent in (0, 100) or 1 <= percent <= 99:
        return f'{percent:.0f} %'
    if percent > 99:
        return f'{math.floor(percent * 10) / 10:.1f} %'
    return f'{percent:.1g} %'


def say(note: Note, lang: str = 'en') -> str:
    """Return the sentence of ``note``; never raises.

    In a template ``{x}`` is a number with three digits, a text, another `Note`, or a
    list of these; ``{x:2}`` has two digits, ``{x:%}`` is a share of 1 in percent, and
    ``{x:row|rows}`` is a counted noun, ``{x:2 hour|hours}`` one of two digits, and
    ``{x:~is|are}`` its verb alone. A code or a value that is missing falls back
    to English, and then to the code and the values.
    """
    for name in dict.fromkeys((lang, LANGUAGES[0])):
        template = load_phrases(name).get(note.code)
        if template is None:
            continue
        shown = {key: _Shown(value, name) for key, value in note.values.items()}
        try:
            return string.Formatter().vformat(template, (), shown)
        except Exception:  # a damaged table must not cost the page
            continue
    values = ', '.join(f'{k} {_plain(v, lang)}' for k, v in note.values.items())
    return f'{note.code}: {values}' if values else note.code


def label(code: str, lang: str = 'en', **values: Any) -> str:
    """Return the words of ``label.<code>``."""
    return say(Note(f'label.{code}', values), lang)


@lru_cache(maxsize=None)
def load_phrases(lang: str) -> dict[str, str]:
    """Return the templates of a language; none of a language that there is not."""
    if lang not in LANGUAGES:
        return {}
    text = (_DATA / f'phrases_{lang}.json').read_text(encoding='utf-8')
    table: dict[str, str] = json.loads(text)
    return table


class _Shown:
    """A value in a template: formatted by the rules of this module."""

    def __init__(self, value: Any, lang: str) -> None:
        self._value, self._lang = value, lang

    def __format__(self, spec: str) -> str:
        value = self._value
        if '|' in spec:
            one, _, many = spec.partition('|')
            if one.startswith('~'):
                return one[1:] if value == 1 else many
            digits, gap, noun = one.partition(' ')
            if gap and digits.isdigit():
                shown, one = format_value(value, int(digits)), noun
            else:
                shown = format_value(value)
            # what is read decides: 1.004 hours print as 1
            return f'{shown} {one if shown == "1" else many}'
        if spec == '%':
            return format_share(value)
        if spec.isdigit():
            return format_value(value, int(spec))
        return format(value, spec) if spec else _plain(value, self._lang)


def _plain(value: Any, lang: str) -> str:
    if isinstance(value, Note):
        return say(value, lang)
    if isinstance(value, (list, tuple)):
        comma = load_phrases(lang).get('label.comma', ', ')
        return comma.join(_plain(item, lang) for item in value)
    if isinstance(value, bool):
        return load_phrases(lang).get(f'label.{"yes" if value else "no"}', str(value))
    return format_value(value)


def _trim(number: str) -> str:
    return number.rstrip('0').rstrip('.') if '.' in number else number
