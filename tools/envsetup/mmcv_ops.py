"""mmcv with its compiled ops: reuse a wheel that works, compile otherwise."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import Callable

from envsetup.advice import SetupError

STEP = 'installing mmcv'
#: Without isolation, or its setup.py does not see torch and leaves the ops out.
INSTALL = ('install', '-v', '--no-build-isolation', '--no-deps')
FROM_SOURCE = ('--no-cache-dir', '--force-reinstall', '--no-binary', 'mmcv')
COMPILERS = ('g++', 'c++', 'clang++')


def build_env() -> dict[str, str]:
    """Return the variables mmcv's setup.py reads.

    Without debug symbols the build is faster and the wheel 2 MB in place of 32.
    """
    return {
        'CFLAGS': f'{os.environ.get("CFLAGS", "")} -g0'.strip(),
        'MMCV_WITH_OPS': '1',
        'FORCE_CUDA': os.environ.get('FORCE_CUDA', '0'),
        'MAX_JOBS': os.environ.get('MAX_JOBS', str(os.cpu_count() or 1)),
    }


def import_error(python: Path) -> str:
    """Return why ``import mmcv.ops`` fails in a fresh process; '' if it does not."""
    answer = subprocess.run(
        [str(python), '-c', 'import mmcv.ops'], capture_output=True, text=True
    )
    lines = answer.stderr.strip().splitlines() or [f'exit status {answer.returncode}']
    return lines[-1] if answer.returncode else ''


def missing_tool() -> str | None:
    """Return what to do before anything can be compiled, or None."""
    named = os.environ.get('CXX', '').split()
    if not any(shutil.which(name) for name in named[:1] or COMPILERS):
        return (
            'there is no C++ compiler: install one '
            '(Debian, Ubuntu: g++; Fedora: gcc-c++)'
        )
    if not Path(sysconfig.get_paths()['include'], 'Python.h').is_file():
        return (
            'Python.h is missing: install the dev package of this Python '
            '(Debian, Ubuntu: python3.11-dev; Fedora: python3.11-devel)'
        )
    return None


def has_wheel(python: Path, constraints: Path) -> bool:
    """Tell whether pip has a built mmcv, in its cache or where its user pointed it."""
    pip = [str(python), '-m', 'pip']
    cached = subprocess.run(
        [*pip, 'cache', 'list', 'mmcv'], capture_output=True, text=True
    )
    if 'mmcv' in cached.stdout:
        return True
    with tempfile.TemporaryDirectory() as folder:
        options = ['--no-deps', '--only-binary', ':all:', '-c', str(constraints)]
        fetched = subprocess.run(
            [*pip, 'download', *options, '-d', folder, 'mmcv'], capture_output=True
        )
    return fetched.returncode == 0


def check_tools(python: Path, constraints: Path) -> None:
    """Fail before the long downloads, not after them, if mmcv cannot be had.

    Raises:
        SetupError: If mmcv must be compiled and a tool for that is missing.
    """
    advice = missing_tool()
    if advice and import_error(python) and not has_wheel(python, constraints):
        raise SetupError(STEP, advice)


def install_mmcv(python: Path, arguments: list[str], pip: Callable[..., None]) -> None:
    """Install mmcv so that ``import mmcv.ops`` works.

    Args:
        python: The environment's interpreter.
        arguments: What to install, for pip.
        pip: Runs pip with a title and arguments, raises `SetupError` on failure.

    Raises:
        SetupError: If it cannot be built, or cannot be imported once built.
    """
    if not import_error(python):
        return
    print('  mmcv is compiled once, for 5 to 13 minutes on 2 cores,', end=' ')
    print('unless pip finds a wheel that was built before', flush=True)
    env = build_env()
    pip(STEP, *INSTALL, *arguments, env=env)
    error = import_error(python)
    if error:
        print(f'  the mmcv that pip found does not work here ({error}): compiling')
        pip(STEP, *INSTALL, *FROM_SOURCE, *arguments, env=env)
        error = import_error(python)
    if error:
        raise SetupError(STEP, f'it is built but cannot be imported: {error}')
