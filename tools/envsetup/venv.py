"""The environment's folder: is it there, whole, ours, and up to date."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

from envsetup.advice import SetupError

STAMP = 'mmgradguard-setup.json'


def python_of(venv: Path) -> Path:
    """Return the environment's interpreter."""
    return venv / 'bin' / 'python'


def compute_key(root: Path, venv: Path) -> str:
    """Hash everything that decides what the environment holds, and where it lies.

    The editable install and the scripts hold absolute paths, so a moved folder must
    give another key.
    """
    digest = hashlib.sha256()
    digest.update(repr((sys.version_info[:2], str(root), str(venv))).encode())
    for path in [*sorted((root / 'requirements').glob('*.txt')), root / 'setup.py']:
        digest.update(path.name.encode() + b'\0' + path.read_bytes() + b'\0')
    return digest.hexdigest()


def is_current(venv: Path, key: str) -> bool:
    """Tell whether a finished setup left ``key`` in ``venv``."""
    try:
        stamp = json.loads((venv / STAMP).read_text(encoding='utf-8'))
    except (OSError, ValueError):
        return False
    return (
        isinstance(stamp, dict)
        and stamp.get('key') == key
        and python_of(venv).exists()  # its Python may have been removed since
    )


def write_stamp(venv: Path, key: str | None) -> None:
    """Mark ``venv`` as made here, and as complete if ``key`` is given."""
    text = json.dumps({'made_by': 'mmgradguard', 'key': key})
    (venv / STAMP).write_text(text + '\n', encoding='utf-8')


def find_problem(venv: Path) -> str | None:
    """Return why ``venv`` cannot be completed and must be made anew, or None."""
    if not (venv / 'pyvenv.cfg').is_file():
        return 'it holds no environment'
    code = 'import pip, sys; print("%d.%d" % sys.version_info[:2])'
    try:
        answer = subprocess.run(
            [str(python_of(venv)), '-c', code],
            capture_output=True,
            text=True,
            timeout=120,
        )
    except OSError:
        return 'its Python is gone'
    if answer.returncode:
        return 'its pip does not start'
    wanted = f'{sys.version_info[0]}.{sys.version_info[1]}'
    if answer.stdout.strip() != wanted:
        return f'it has Python {answer.stdout.strip()}, not {wanted}'
    script = venv / 'bin' / 'pip'
    if script.is_file() and str(venv).encode() not in script.read_bytes()[:1024]:
        return 'it was moved here from another folder'
    return None


def clear(venv: Path, problem: str, *, named_by_user: bool) -> None:
    """Remove what lies at ``venv``, unless somebody else may want it.

    Raises:
        SetupError: If the folder is not an environment, or was named through
            MMGRADGUARD_VENV and not made here.
    """
    if not venv.exists() and not venv.is_symlink():
        return
    if venv.is_dir() and not any(venv.iterdir()):
        return
    is_environment = (venv / 'pyvenv.cfg').is_file()
    is_ours = (venv / STAMP).is_file()
    if not is_ours and (named_by_user or not is_environment):
        advice = f'{venv} is in the way ({problem}): remove it, or name another folder'
        raise SetupError('making the environment', f'{advice} in MMGRADGUARD_VENV')
    if venv.is_symlink():
        venv.unlink()
    else:
        shutil.rmtree(venv)
