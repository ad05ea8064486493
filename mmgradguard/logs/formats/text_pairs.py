"""The ``name: number`` pairs of a row of text, as they come or broken over lines."""

from __future__ import annotations

import math
import re
from itertools import islice
from typing import Iterator, NamedTuple, Sequence

from mmgradguard.logs.formats.base import MAX_PAIRS

_NUMBER = r'[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\.\d+(?:e[-+]?\d+)?|nan|inf(?:inity)?)'
#: Numbers as other printers write them: tensors, MSVC's NaN, decimal commas.
_ODD_NUMBER = (
    rf'tensor\(\[{{0,3}}{_NUMBER}[^()]{{0,80}}\)|[-+]?\d\.#[A-Z]{{2,5}}\d{{0,9}}'
    r'|[-+]?nan\([a-z]{1,8}\)|[-+]?\d{1,20},\d{1,20}(?:e[-+]?\d{1,4})?'
)
_DURATION = r'(?:-?\d{1,9} days?,?\s{0,9})?\d{1,9}:\d\d:\d\d(?:\.\d{1,9})?'
#: No repeat without a limit where a search may begin anywhere: a line may be long.
#: People write dots where they leave something out.
_PAIR = re.compile(
    r'(?:[\s,;]|\[?\.\.\.\]?|\u2026){0,64}([^\s:,;]{1,128}):\s{0,64}'
    rf'(?:({_DURATION})|({_ODD_NUMBER}|{_NUMBER})[MGKk]?)(?=[\s,;]|</?[a-z]|$)',
    re.IGNORECASE,
)
#: An item that is no number: ``tag: N/A``.
_OTHER_ITEM = re.compile(
    r'[\s,;]{0,64}[^\s:,;]{1,128}:\s{0,64}[^\s:,;]{1,128}(?=[\s,;])'
)
_PLAIN = re.compile(_NUMBER, re.IGNORECASE)
_LETTER = re.compile('[A-Za-z]')
#: So many of them in a row are text.
_MAX_OTHERS = 4
#: A line of fewer may be a message that has a number.
_MIN_PAIRS = 2
#: The end of a row that goes on in the next line, or never: half a name, half a number.
_DANGLING = re.compile(r'[\s,;]*(?:[^\s:,;]+(?::(?:\s*[^\s:,;]+)?)?)?[\s,;]*')
_DANGLING_DURATION = re.compile(r'[\s,;]*eta:\s*[\d:]*(?:\s+days?,?\s*[\d:]*)?\s*')
_CUT_NUMBER = re.compile(r'[\s,;]*([^\s:,;]+):\s*(-?)(n|na|i|in)')


class Pairs(NamedTuple):
    """Names with their numbers, and the rest that is no pair.

    `has_gaps` says that something between them was left out.
    """

    names: list[str]
    numbers: list[str]
    rest: str
    has_gaps: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left over."""
        return not self.rest.strip(' \t,;')

    @property
    def may_go_on(self) -> bool:
        """Whether what is left over can be the beginning of a pair."""
        return bool(
            _DANGLING.fullmatch(self.rest) or _DANGLING_DURATION.fullmatch(self.rest)
        )


def parse_pairs(text: str) -> Pairs:
    """Return the pairs that ``text`` begins with; durations are read and left out.

    So are items that are no numbers, if a pair follows.
    """
    names: list[str] = []
    numbers: list[str] = []
    place, has_gaps = 0, False
    while len(names) <= MAX_PAIRS:
        match = _PAIR.match(text, place)
        if match is None:
            match = _pair_behind_others(text, place)
            if match is None:
                break
            has_gaps = True
        place = match.end()
        if match.group(3) is not None:
            names.append(match.group(1))
            numbers.append(_plain(match.group(3)))
    return Pairs(names, numbers, text[place:], has_gaps)


def parse_all_pairs(text: str) -> Pairs:
    """Return all pairs of a row, also those behind something that is none.

    A name that comes again is of another row that was written into this one: the end.
    """
    pairs = parse_pairs(text)
    names, numbers = list(pairs.names), list(pairs.numbers)
    place = len(text) - len(pairs.rest)
    seen, has_gaps = set(names), pairs.has_gaps
    if pairs.may_go_on:
        return pairs
    for match in _PAIR.finditer(text, place):
        name = match.group(1)
        if name in seen or len(names) > MAX_PAIRS:
            break
        if not _LETTER.search(name):
            continue  # of a clock
        has_gaps, place = True, match.end()
        if match.group(3) is not None:
            seen.add(name)
            names.append(name)
            numbers.append(_plain(match.group(3)))
    return Pairs(names, numbers, text[place:], has_gaps)


def _pair_behind_others(text: str, place: int) -> re.Match[str] | None:
    for _ in range(_MAX_OTHERS):
        other = _OTHER_ITEM.match(text, place)
        if other is None:
            return None
        place = other.end()
        match = _PAIR.match(text, place)
        if match is not None:
            return match
    return None


def _plain(number: str) -> str:
    """Return a number as `float` reads it."""
    if number[-1] == ')':
        found = _PLAIN.search(number, number.find('(') + 1 if 't' in number[:2] else 0)
        return found.group() if found else 'nan'
    if '#' in number:
        sign = '-' if number[0] == '-' else ''
        return sign + ('inf' if 'INF' in number.upper() else 'nan')
    return number.replace(',', '.')


def find_pairs(text: str) -> Iterator[tuple[str, str]]:
    """Yield every pair in ``text``, whatever stands between them."""
    for match in _PAIR.finditer(text):
        if match.group(3) is not None:
            yield match.group(1), _plain(match.group(3))


def complete_cut(pairs: Pairs) -> Pairs:
    """Return the pairs with a last one that was cut in ``na`` or ``in``."""
    match = _CUT_NUMBER.fullmatch(pairs.rest)
    if match is None:
        return pairs
    name, sign, start = match.groups()
    number = sign + ('nan' if start.startswith('n') else 'inf')
    names, numbers = [*pairs.names, name], [*pairs.numbers, number]
    return Pairs(names, numbers, '', pairs.has_gaps)


def drop_cut_number(pairs: Pairs, usual: Sequence[str]) -> tuple[Pairs, bool]:
    """Return the pairs of a last line without an end, and whether it is cut.

    Half a number looks like a number: the last one is dropped if names are missing, or
    if it has fewer digits than the one before it.

    Args:
        pairs: Of that line.
        usual: Names of the row before it.
    """
    names, numbers, _, has_gaps = pairs
    if not names or not pairs.is_whole:
        return pairs, True
    is_short = len(names) < len(usual) and names == list(usual[: len(names)])
    ends = [number.partition('.')[2] for number in numbers[-2:]]
    is_half = not numbers[-1][-1:].isalnum() or (
        'e' not in ''.join(ends) and len(ends[-1]) < len(ends[0])
    )
    if not math.isfinite(float(numbers[-1])):
        return pairs, is_short
    if is_short or is_half:
        return Pairs(names[:-1], numbers[:-1], '', has_gaps), True
    return pairs, False


def join(text: str, more: str) -> str | None:
    """Return ``text`` with its continuation, None if ``more`` is none.

    A terminal breaks anywhere, a mail between words: whichever gives pairs.
    """
    # what is unreadable in the first part is no reason to refuse another
    start = _start_of_last_pair(text)
    candidates = (text + more, f'{text.rstrip()} {more.lstrip()}')
    for candidate in candidates:
        pairs = parse_pairs(candidate[start:])
        if pairs.is_whole or pairs.may_go_on:
            return candidate
    # a part with several pairs is one of a row, whatever else is in it
    if sum(1 for _ in islice(find_pairs(more), _MIN_PAIRS)) < _MIN_PAIRS:
        return None
    return max(candidates, key=lambda whole: len(list(find_pairs(whole[start:]))))


def _start_of_last_pair(text: str) -> int:
    pairs = parse_pairs(text)
    if pairs.is_whole or pairs.may_go_on:
        return 0
    start = 0
    for match in _PAIR.finditer(text, len(text) - len(pairs.rest)):
        start = match.start()
    return start
