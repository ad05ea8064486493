"""Text, JSON and Markdown need nothing but Python and the source tree."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from test_cli.log_lines import mmengine_text

ROOT = Path(__file__).parents[2]
#: No site-packages, no environment, no user's packages.
BARE = [sys.executable, '-S', '-E', '-s']


def run(*arguments, cwd=ROOT):
    return subprocess.run(
        [*BARE, *arguments], cwd=cwd, capture_output=True, text=True, check=False
    )


@pytest.fixture
def log(tmp_path):
    path = tmp_path / 'run.log'
    path.write_text(mmengine_text(nan_from=30))
    return str(path)


def test_nothing_is_installed_there():
    for name in ('rich', 'jinja2', 'plotly', 'torch', 'numpy', 'pytest'):
        assert 'ModuleNotFoundError' in run('-c', f'import {name}').stderr


@pytest.mark.parametrize(
    ('output', 'words'),
    [
        ([], 'Fatal: from line 31'),
        (['--json'], '"verdict": "fatal"'),
        (['--markdown'], '### Training log: fatal'),
        (['--lang', 'zh'], ''),
    ],
)
def test_a_log_is_analysed(log, output, words):
    done = run('-m', 'mmgradguard', 'analyze', log, *output)
    assert (done.returncode, done.stderr) == (1, '')
    assert words in done.stdout


def test_the_tool_works_from_anywhere(log, tmp_path):
    done = run(str(ROOT / 'tools' / 'analyze_log.py'), log, '--json', cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, '')
    assert json.loads(done.stdout)['first_anomaly']['line'] == 31


def test_runs_are_compared(log):
    done = run('-m', 'mmgradguard', 'compare', log, log)
    assert (done.returncode, done.stderr) == (1, '')
    assert 'The verdict is the same.' in done.stdout


def test_a_page_names_the_package_that_it_needs(log, tmp_path):
    out = str(tmp_path / 'page.html')
    done = run('-m', 'mmgradguard', 'analyze', log, '--html', out)
    assert done.returncode == 2
    assert done.stderr == 'mmgradguard: an HTML page needs Jinja2: pip install Jinja2\n'


def test_a_guarded_run_is_reported(tmp_path):
    row = {'step': 0, 'iteration': 0, 'epoch': 0, 'total_norm': 1.0}
    (tmp_path / 'steps.jsonl').write_text(json.dumps(row))
    done = run('-m', 'mmgradguard', 'report', str(tmp_path), '--no-html')
    assert (done.returncode, done.stderr) == (0, '')
    assert 'healthy' in done.stdout
