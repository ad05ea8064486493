"""What a terminal, a mail, a web page or a cluster adds to a line of text."""

from __future__ import annotations

import html
import re

_ANSI = re.compile(r'\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07?|\x1b')
_MARKDOWN = re.compile(r'\\(?=[\W_])|[*`]')
_STAMP = re.compile(
    r'(?:\d{4}[-/.]\d\d[-/.]\d\d|\d\d/\d\d)[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?'
)
#: What runners of jobs and containers put before each line.
_PREFIX = re.compile(
    r'^(?:\s*(?:>+|rank\s?\d+:|\[\d+,\d+\]<std(?:out|err)>:|\[?rank\d+\]?:?'
    r'|\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:?\d\d)?|std(?:out|err) [FP]|\d{1,3}:(?=\s)'
    r'|[\w.-]+\s+\|)\s)+',
    re.IGNORECASE,
)


def clean(text: str) -> str:
    """Return a line without colours, HTML escapes and Markdown."""
    if '\x1b' in text:
        text = _ANSI.sub('', text)
    if '&' in text:
        text = html.unescape(text)
    if not text.isascii():
        text = text.replace('\uff1a', ':').replace('\u200b', '').replace('\ufeff', '')
        text = text.replace('\u00a0', ' ')
    if '\\' in text or '*' in text or '`' in text:
        text = _MARKDOWN.sub('', text)
    return text


def find_stamp(before: str) -> str:
    """Return the last time stamp in what stands before a row, '' if there is none."""
    found = _STAMP.findall(before[-200:])
    return found[-1] if found else ''


def has_stamp(text: str) -> bool:
    """Return whether a line has a time stamp, as those of loggers do."""
    return _STAMP.search(text) is not None


def strip_prefix(text: str) -> str:
    """Return a continuation line without what a cluster or a mail puts before it."""
    return _PREFIX.sub('', text, count=1)
