"""The examples in docstrings are run."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / 'mmgradguard'
MODULES = sorted(
    '.'.join(path.relative_to(PACKAGE.parent).with_suffix('').parts)
    for path in PACKAGE.rglob('*.py')
    if '>>> ' in path.read_text() and 'configs' not in path.parts
)


@pytest.mark.parametrize('name', MODULES)
def test_examples(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name.replace('.__init__', '')))
    assert result.attempted > 0
    assert result.failed == 0


def test_there_are_examples() -> None:
    assert len(MODULES) >= 10
