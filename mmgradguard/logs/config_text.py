"""The config in the header of a log as data: it is read, never run."""

from __future__ import annotations

import ast
import json
import math
import re
import warnings
from typing import Any

#: Beyond this a number is damage, and arithmetic on it a way to stop us.
_MAX_NUMBER = 1e30
#: No config is so long; to parse text takes a hundred times its size.
_MAX_CHARS = 2**20
_NAMES = {'inf': math.inf, 'nan': math.nan}
_STATEMENT = re.compile(r'^[A-Za-z_]\w*\s*=', re.MULTILINE)


class _UnreadableError(Exception):
    """A value is not plain data."""


def parse_config(text: str) -> dict[str, Any] | None:
    r"""Return the config of mmcv or mmengine in ``text``, None if there is none.

    Python text is evaluated over literals, ``dict(...)``, ``range(...)``, sums of
    these and names that it defines itself; whatever else stands there leaves its key
    out, as does a statement that is damaged.

    >>> parse_config("lr = 2e-4\noptimizer = dict(type='SGD', lr=lr)\nf = open('x')")
    {'lr': 0.0002, 'optimizer': {'type': 'SGD', 'lr': 0.0002}}
    """
    if len(text) > _MAX_CHARS:
        return None
    if text.lstrip().startswith('{'):
        try:
            loaded = json.loads(text)
        except (ValueError, RecursionError):
            return None
        return loaded if isinstance(loaded, dict) and loaded else None
    config: dict[str, Any] = {}
    for statement in _statements(text):
        try:
            _assign(statement, config)
        except (_UnreadableError, RecursionError):
            continue
    return config or None


def _statements(text: str) -> list[ast.stmt]:
    whole = _parse(text)
    if whole is not None:
        return whole
    starts = [match.start() for match in _STATEMENT.finditer(text)]
    found: list[ast.stmt] = []
    for start, end in zip(starts, [*starts[1:], len(text)]):
        found += _parse(text[start:end]) or []
    return found


def _parse(text: str) -> list[ast.stmt] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')  # of '\\d' in somebody's string
            return ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _assign(statement: ast.stmt, config: dict[str, Any]) -> None:
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return
    target = statement.targets[0]
    if isinstance(target, ast.Name):
        config[target.id] = _evaluate(statement.value, config)


def _evaluate(node: ast.expr, names: dict[str, Any]) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        items = [_evaluate(item, names) for item in node.elts]
        return tuple(items) if isinstance(node, ast.Tuple) else items
    if isinstance(node, ast.Dict):
        return _mapping(zip(node.keys, node.values), names)
    if isinstance(node, ast.Call):
        return _call(node, names)
    if isinstance(node, ast.UnaryOp):
        return _signed(node, names)
    if isinstance(node, ast.BinOp):
        return _combine(node, names)
    if isinstance(node, ast.Name) and node.id in {**_NAMES, **names}:
        return names.get(node.id, _NAMES.get(node.id))
    raise _UnreadableError


def _mapping(pairs: Any, names: dict[str, Any]) -> dict[Any, Any]:
    """Return the entries that can be read; a bad value leaves out its key only."""
    result: dict[Any, Any] = {}
    for key, value in pairs:
        try:
            read = _evaluate(value, names)
            if key is not None:
                name = key if isinstance(key, str) else _evaluate(key, names)
                result[name] = read
            elif isinstance(read, dict):  # `**other`
                result.update(read)
        except (_UnreadableError, TypeError):  # TypeError: a list as a key
            continue
    return result


def _call(node: ast.Call, names: dict[str, Any]) -> Any:
    function = node.func.id if isinstance(node.func, ast.Name) else None
    arguments = [_evaluate(argument, names) for argument in node.args]
    if function in ('dict', 'ConfigDict') and not any(
        not isinstance(argument, dict) for argument in arguments
    ):
        keywords = _mapping(((k.arg, k.value) for k in node.keywords), names)
        merged: dict[Any, Any] = {}
        for part in (*arguments, keywords):
            merged.update(part)
        return merged
    if function == 'range' and not node.keywords:
        return _range(arguments)
    raise _UnreadableError


def _range(arguments: list[Any]) -> list[int]:
    try:
        numbers = range(*arguments)
        return list(numbers[:1024])
    except (TypeError, ValueError, OverflowError) as error:
        raise _UnreadableError from error


def _signed(node: ast.UnaryOp, names: dict[str, Any]) -> Any:
    value = _evaluate(node.operand, names)
    if isinstance(value, (int, float)):
        if isinstance(node.op, ast.USub):
            return -value
        if isinstance(node.op, ast.UAdd):
            return value
        if isinstance(node.op, ast.Not):
            return not value
    raise _UnreadableError


def _combine(node: ast.BinOp, names: dict[str, Any]) -> Any:
    left, right = _evaluate(node.left, names), _evaluate(node.right, names)
    both = (left, right)
    if isinstance(node.op, ast.Add) and any(
        all(isinstance(side, kind) for side in both) for kind in (str, list, tuple)
    ):
        return left + right
    if not all(isinstance(n, (int, float)) and abs(n) < _MAX_NUMBER for n in both):
        raise _UnreadableError
    try:
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, ast.Div):
            return left / right
        if isinstance(node.op, ast.FloorDiv):
            return left // right
    except ZeroDivisionError as error:
        raise _UnreadableError from error
    raise _UnreadableError
