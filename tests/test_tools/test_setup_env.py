"""Making the environment: what is reused, what is made anew, what is said."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import venv as standard_venv
from pathlib import Path

import pytest

from envsetup import venv
from envsetup.advice import SetupError

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / 'project'
    (root / 'requirements').mkdir(parents=True)
    (root / 'requirements' / 'constraints.txt').write_text('torch==2.13.0\n')
    (root / 'setup.py').write_text('setup()\n')
    return root


def make_venv(folder: Path) -> Path:
    """Make an environment whose pip is a stub: the real one takes seconds."""
    standard_venv.create(folder, with_pip=False)
    packages = next(folder.glob('lib/python*/site-packages'))
    (packages / 'pip.py').touch()
    (folder / 'bin' / 'pip').write_text(f'#!{folder}/bin/python\n')
    return folder


# -------------------------------------------------------------------------------- stamp


def test_a_stamp_fits_only_what_it_was_made_for(project):
    folder = make_venv(project / '.venv')
    key = venv.compute_key(project, folder)
    assert not venv.is_current(folder, key)
    venv.write_stamp(folder, key)
    assert venv.is_current(folder, key)
    assert not venv.is_current(folder, 'other')


@pytest.mark.parametrize('name', ['requirements/constraints.txt', 'setup.py'])
def test_a_changed_requirement_changes_the_key(project, name):
    before = venv.compute_key(project, project / '.venv')
    (project / name).write_text('changed')
    assert venv.compute_key(project, project / '.venv') != before


def test_a_moved_project_changes_the_key(project):
    before = venv.compute_key(project, project / '.venv')
    moved = project.rename(project.with_name('moved'))
    assert venv.compute_key(moved, moved / '.venv') != before


@pytest.mark.parametrize('text', ['', '{"key": ', '[]', '{"key": null}'])
def test_a_damaged_or_unfinished_stamp_is_not_current(project, text):
    folder = make_venv(project / '.venv')
    (folder / venv.STAMP).write_text(text)
    assert not venv.is_current(folder, venv.compute_key(project, folder))


def test_an_environment_whose_python_is_gone_is_not_current(project):
    folder = make_venv(project / '.venv')
    key = venv.compute_key(project, folder)
    venv.write_stamp(folder, key)
    for python in folder.glob('bin/python*'):
        python.unlink()
    assert not venv.is_current(folder, key)
    assert venv.find_problem(folder) == 'its Python is gone'


# ------------------------------------------------------------------------------- folder


def test_a_good_environment_has_no_problem(tmp_path):
    assert venv.find_problem(make_venv(tmp_path / 'env')) is None


def test_a_moved_environment_is_recognised(tmp_path):
    make_venv(tmp_path / 'old').rename(tmp_path / 'new')
    problem = venv.find_problem(tmp_path / 'new')
    assert problem == 'it was moved here from another folder'


def test_an_environment_without_pip_is_recognised(tmp_path):
    folder = tmp_path / 'env'
    standard_venv.create(folder, with_pip=False)
    assert venv.find_problem(folder) == 'its pip does not start'


def test_an_environment_of_another_python_is_recognised(tmp_path):
    folder = make_venv(tmp_path / 'env')
    python = folder / 'bin' / 'python'
    python.unlink()
    python.write_text('#!/bin/sh\necho 3.8\n')
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    assert 'it has Python 3.8, not' in (venv.find_problem(folder) or '')


def test_an_empty_folder_may_be_used(tmp_path):
    venv.clear(tmp_path, 'x', named_by_user=True)
    assert tmp_path.exists()


def test_a_folder_that_is_no_environment_is_never_removed(tmp_path):
    (tmp_path / 'thesis.tex').touch()
    with pytest.raises(SetupError, match=r'is in the way \(it holds no environment\)'):
        venv.clear(tmp_path, 'it holds no environment', named_by_user=False)
    assert (tmp_path / 'thesis.tex').exists()


def test_an_environment_of_somebody_else_is_removed_only_at_our_own_place(tmp_path):
    folder = make_venv(tmp_path / 'env')
    with pytest.raises(SetupError, match='name another folder in MMGRADGUARD_VENV'):
        venv.clear(folder, 'it is old', named_by_user=True)
    assert folder.exists()
    venv.clear(folder, 'it is old', named_by_user=False)
    assert not folder.exists()


# ------------------------------------------------------------------------- requirements


def test_every_requirement_is_pinned():
    def names(path: Path) -> set[str]:
        lines = path.read_text().splitlines()
        return {line.split('#')[0].split('==')[0].strip().lower() for line in lines}

    folder = ROOT / 'requirements'
    pinned = names(folder / 'constraints.txt')
    lists = [path for path in folder.glob('*.txt') if path.name != 'constraints.txt']
    assert len(lists) == 5
    for path in lists:
        assert names(path) - {''} <= pinned, path.name


def test_pins_are_exact_and_name_no_local_build():
    lines = (ROOT / 'requirements' / 'constraints.txt').read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith('#')]
    assert all(line.count('==') == 1 and '+' not in line for line in pins)
    for pin in ('torch==2.13.0', 'mmengine==0.10.7', 'mmcv==2.1.0', 'mmdet==3.3.0'):
        assert pin in pins


def test_ci_runs_the_test_command_and_nothing_else(tmp_path):
    project = tmp_path / 'project'
    (project / '.ci').mkdir(parents=True)
    shutil.copy(ROOT / '.ci' / 'run', project / '.ci' / 'run')
    bin_dir = tmp_path / 'bin'
    bin_dir.mkdir()
    make = bin_dir / 'make'
    make.write_text(f'#!/bin/sh\necho "$@" in "$PWD" >> {tmp_path}/calls\n')
    make.chmod(0o755)
    path = f'{bin_dir}{os.pathsep}{os.environ["PATH"]}'
    subprocess.run(
        [str(project / '.ci' / 'run')], check=True, env={**os.environ, 'PATH': path}
    )
    assert (tmp_path / 'calls').read_text() == f'test in {project}\n'


def test_stamp_says_who_made_it(tmp_path):
    venv.write_stamp(tmp_path, None)
    stamp = json.loads((tmp_path / venv.STAMP).read_text())
    assert stamp == dict(made_by='mmgradguard', key=None)
