"""Checks of what a user configures; each error names key, value and what is allowed."""

from __future__ import annotations

import inspect
import os
import re
from typing import Any, Iterable, Sequence


def check_choice(key: str, value: Any, allowed: Sequence[Any]) -> Any:
    """Return ``value``.

    Raises:
        ValueError: If it is not one of ``allowed``.
    """
    if not any(value == choice and type(value) is type(choice) for choice in allowed):
        choices = ', '.join(map(repr, allowed))
        raise ValueError(f'`{key}` must be one of {choices}, got {value!r}')
    return value


def refuse_unknown_keys(
    key: str, given: Iterable[str], known: Iterable[str], owner: str
) -> None:
    """Raise for keys of a config dict that ``owner`` does not take.

    Raises:
        ValueError: If there are any; the message lists the known ones.
    """
    names = sorted(str(name) for name in set(given) - set(known))
    if names:
        raise ValueError(
            f'`{key}` has unknown keys {", ".join(names)}; '
            f'{owner} takes {", ".join(sorted(known)) or "none"}'
        )


def refuse_unknown(
    owner: type, unknown: Iterable[str], also: Iterable[str] = ()
) -> None:
    """Raise for arguments that a class does not know.

    Args:
        owner: The class; its constructor's named arguments are the known ones.
        unknown: Names that were given besides.
        also: Names that it takes through ``**``.

    Raises:
        ValueError: If there are any; the message lists the known ones.
    """
    names = sorted(set(unknown) - set(also))
    if not names:
        return
    parameters = inspect.signature(owner).parameters.values()
    known = {p.name for p in parameters if p.kind is not p.VAR_KEYWORD} | set(also)
    raise ValueError(
        f'{owner.__name__} has no argument {", ".join(names)}; '
        f'it takes {", ".join(sorted(known))}'
    )


def check_folder(key: str, value: Any) -> Any:
    """Return ``value``.

    Raises:
        ValueError: If it is neither None nor the path of a folder.
    """
    if value is not None and (
        not isinstance(value, (str, os.PathLike)) or not str(value)
    ):
        raise ValueError(f'`{key}` must be a path or None, got {value!r}')
    return value


def check_flag(key: str, value: Any) -> bool:
    """Return ``value``.

    Raises:
        ValueError: If it is neither True nor False.
    """
    if not isinstance(value, bool):
        raise ValueError(f'`{key}` must be True or False, got {value!r}')
    return value


def check_count(key: str, value: Any, least: int) -> int:
    """Return ``value``.

    Raises:
        ValueError: If it is not an integer of at least ``least``.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f'`{key}` must be an integer >= {least}, got {value!r}')
    return value


def check_positive(key: str, value: Any) -> float:
    """Return ``value`` as float.

    Raises:
        ValueError: If it is not a positive number.
    """
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not value > 0:
        raise ValueError(f'`{key}` must be a positive number, got {value!r}')
    return float(value)


def check_patterns(key: str, value: Any) -> list[str] | None:
    """Return a list of regular expressions, or None.

    Raises:
        ValueError: If it is not a list of strings that are regular expressions.
    """
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, (list, tuple)):
        raise ValueError(
            f'`{key}` must be a list of regular expressions, got {value!r}'
        )
    patterns = [check_pattern(key, pattern) for pattern in value]
    refuse_duplicates(key, patterns)
    return patterns


def refuse_duplicates(key: str, patterns: Sequence[str]) -> None:
    """Raise if a pattern stands there twice: the second would never match.

    Raises:
        ValueError: Naming the first such pattern.
    """
    for i, pattern in enumerate(patterns):
        if pattern in patterns[:i]:
            raise ValueError(f'`{key}` holds the pattern {pattern!r} more than once')


def find_unmatched(patterns: Iterable[str], names: Sequence[str]) -> list[str]:
    """Return the patterns that match none of the parameter names.

    >>> find_unmatched(['head', 'neck'], ['head.weight'])
    ['neck']
    """
    return [p for p in patterns if not any(re.search(p, name) for name in names)]


def check_pattern(key: str, pattern: Any) -> str:
    """Return ``pattern``.

    Raises:
        ValueError: If it is not a regular expression.
    """
    try:
        re.compile(pattern)
    except (re.error, TypeError) as error:
        raise ValueError(
            f'`{key}` must hold regular expressions, got {pattern!r}: {error}'
        ) from error
    return pattern  # type: ignore[no-any-return]
