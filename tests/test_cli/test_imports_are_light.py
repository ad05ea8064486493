"""Reading a log must not load torch; a renderer's packages wait for the renderer."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ('torch', 'mmengine', 'mmcv', 'plotly', 'jinja2', 'rich', 'numpy')


def loaded_by(code):
    """Return which heavy packages a fresh interpreter holds after ``code``."""
    check = f'{code}\nimport sys\nprint(*[m for m in {HEAVY} if m in sys.modules])'
    done = subprocess.run(
        [sys.executable, '-c', check], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


@pytest.mark.parametrize(
    'module', ['mmgradguard.cli.main', 'mmgradguard.report', 'mmgradguard.report.html']
)
def test_importing_it_loads_nothing_heavy(module):
    assert loaded_by(f'import {module}') == set()


def test_printing_a_report_loads_only_rich(tmp_path):
    (tmp_path / 'steps.jsonl').write_text('')
    code = (
        'from mmgradguard.cli.main import main\n'
        f'main([{str(tmp_path)!r}, "--no-html"])\nprint()'
    )
    assert loaded_by(code) & set(HEAVY) == {'rich'}


@pytest.mark.parametrize('module', ['jinja2', 'rich'])
def test_the_check_can_fail(module):
    assert loaded_by(f'import mmgradguard.cli.main, {module}') == {module}
