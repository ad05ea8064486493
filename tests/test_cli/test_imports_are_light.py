"""Reading a log must not load torch; a renderer's packages wait for the renderer."""

from __future__ import annotations

import subprocess
import sys

import pytest
from test_cli.log_lines import mmengine_text

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


def test_printing_a_report_into_a_pipe_loads_nothing_heavy(tmp_path):
    (tmp_path / 'steps.jsonl').write_text('')
    code = (
        'from mmgradguard.cli.main import main\n'
        f'main([{str(tmp_path)!r}, "--no-html"])\nprint()'
    )
    assert loaded_by(code) & set(HEAVY) == set()


def test_analysing_a_log_into_a_pipe_loads_nothing_heavy(tmp_path):
    (tmp_path / 'run.log').write_text(mmengine_text(nan_from=30))
    for output in ([], ['--json'], ['--markdown']):
        argv = ['analyze', str(tmp_path / 'run.log'), *output]
        code = f'from mmgradguard.cli.main import main\nmain({argv!r})\nprint()'
        assert loaded_by(code) & set(HEAVY) == set()


def test_an_analysis_does_not_wait_for_what_other_verbs_need(tmp_path):
    (tmp_path / 'run.log').write_text(mmengine_text())
    argv = ['analyze', str(tmp_path / 'run.log'), '--json']
    code = f'from mmgradguard.cli.main import main\nmain({argv!r})\nprint()'
    check = (
        'import sys\nprint(*[m for m in sys.modules if m.startswith("mmgradguard")])'
    )
    done = subprocess.run(
        [sys.executable, '-c', f'{code}\n{check}'],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stdout.splitlines()[-1].split())
    assert 'mmgradguard.report.log_story' in loaded
    for name in ('html', 'figures', 'model', 'terminal', 'markdown'):
        assert f'mmgradguard.report.{name}' not in loaded


@pytest.mark.parametrize('module', ['jinja2', 'rich'])
def test_the_check_can_fail(module):
    assert loaded_by(f'import mmgradguard.cli.main, {module}') == {module}
