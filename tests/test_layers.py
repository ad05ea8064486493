"""Imports point downwards only."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / 'mmgradguard'

#: What each layer may import of our own, and of others besides the standard library.
ALLOWED = {
    'core': (set(), set()),
    'logs': ({'core'}, set()),
    'report': ({'core'}, {'rich', 'jinja2', 'plotly', 'markupsafe'}),
    'ops': ({'core', 'compat'}, {'torch'}),
    'clip': ({'core', 'ops', 'compat'}, {'torch'}),
    'trace': ({'core', 'ops', 'compat'}, {'torch'}),
    'incident': ({'core', 'ops', 'clip', 'trace', 'compat'}, {'torch'}),
    'guard': ({'core', 'ops', 'clip', 'trace', 'incident', 'report'}, {'torch'}),
    'engine': (
        {'core', 'ops', 'clip', 'trace', 'incident', 'report', 'compat'},
        {'torch', 'mmengine'},
    ),
    'testing': ({'core', 'compat'}, {'torch', 'mmengine'}),
    'compat': (set(), {'torch', 'mmengine', 'numpy'}),
    'cli': ({'core', 'report', 'logs', 'ops'}, {'rich'}),
    'presets': (set(), set()),
    'registration': (set(), set()),
    '__init__': ({'presets', 'registration'}, set()),
    '__main__': ({'cli'}, set()),
    'version': (set(), set()),
}
#: Small files that every layer may use.
COMMON = {'version'}
#: Imported nowhere: the guard works without them.
FORBIDDEN = {'mmcv', 'mmdet', 'mmdet3d'}


def imported_names(tree: ast.AST) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or '')
            if node.module == 'mmgradguard':
                names |= {f'mmgradguard.{alias.name}' for alias in node.names}
    return names


def violations(layer: str, source: str, stdlib: set[str]) -> set[str]:
    own, others = ALLOWED[layer]
    bad = set()
    for name in imported_names(ast.parse(source)):
        parts = name.split('.')
        if parts[0] == 'mmgradguard':
            below = parts[1] if len(parts) > 1 else '__init__'
            if below not in own | COMMON | {layer, '__version__'}:
                bad.add(name)
        elif parts[0] not in stdlib | others:
            bad.add(name)
    return bad


@pytest.fixture(scope='module')
def stdlib() -> set[str]:
    import sys

    return set(sys.stdlib_module_names)


FILES = sorted(path for path in PACKAGE.rglob('*.py') if 'configs' not in path.parts)


@pytest.mark.parametrize('path', FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_downwards(path: Path, stdlib: set[str]) -> None:
    layer = path.relative_to(PACKAGE).parts[0].partition('.')[0]
    assert violations(layer, path.read_text(), stdlib) == set()


def test_every_layer_is_listed() -> None:
    layers = {path.relative_to(PACKAGE).parts[0].partition('.')[0] for path in FILES}
    assert layers == set(ALLOWED)


@pytest.mark.parametrize('name', sorted(FORBIDDEN))
def test_a_forbidden_import_would_be_seen(name: str, stdlib: set[str]) -> None:
    assert violations('engine', f'import {name}.ops', stdlib) == {f'{name}.ops'}
    assert violations('core', 'import torch', stdlib) == {'torch'}


@pytest.mark.parametrize('path', FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_modules_stay_short(path: Path) -> None:
    # past 250 lines a file asks to be two; at 400 it must be
    assert len(path.read_text().splitlines()) <= 400
