"""`make setup` from beginning to end."""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Mapping, Sequence

from envsetup import mmcv_ops, venv
from envsetup.advice import SetupError, advise
from envsetup.progress import format_elapsed, run_logged

ROOT = Path(__file__).resolve().parents[2]
LOG = ROOT / 'setup.log'
CONSTRAINTS = ROOT / 'requirements' / 'constraints.txt'


class Setup:
    """One environment on its way to completion."""

    def __init__(self, folder: Path, *, named_by_user: bool) -> None:
        self.folder, self.named_by_user = folder, named_by_user
        self.python = venv.python_of(folder)

    def run(self) -> None:
        """Take every step that is still to do.

        Raises:
            SetupError: If one fails.
        """
        self.make_venv()
        self.pip('installing the build tools and torch', 'install', *listed('build'))
        mmcv_ops.check_tools(self.python, CONSTRAINTS)
        names = listed('runtime') + listed('host') + listed('dev')
        self.pip('installing mmengine, mmdet and the tools', 'install', *names)
        self.replace_opencv()
        mmcv_ops.install_mmcv(self.python, listed('ops'), self.pip)
        # without isolation and dependencies: everything is here, and nothing may move
        options = ['--no-build-isolation', '--no-deps', '--editable', str(ROOT)]
        self.pip('installing mmgradguard', 'install', *options)
        imports = 'import torch, mmengine, mmcv.ops, mmdet'
        error = self.import_error(imports)
        if error:
            raise SetupError('trying the environment', f'`{imports}` says: {error}')

    def make_venv(self) -> None:
        """Keep the environment if it can be completed, make it otherwise."""
        problem = venv.find_problem(self.folder)
        if problem is None:
            venv.write_stamp(self.folder, None)
            return
        if self.folder.exists():
            print(f'  {self.folder} is made anew: {problem}', flush=True)
        venv.clear(self.folder, problem, named_by_user=self.named_by_user)
        command = [sys.executable, '-m', 'venv', str(self.folder)]
        self.call('making the environment', command)
        venv.write_stamp(self.folder, None)

    def replace_opencv(self) -> None:
        """Take the build of OpenCV without windows where libGL is missing."""
        error = self.import_error('import cv2')
        if not error:
            return
        if 'lib' not in error:
            raise SetupError('installing OpenCV', f'`import cv2` says: {error}')
        show = 'from importlib.metadata import version as v; print(v("opencv-python"))'
        found = subprocess.run(
            [str(self.python), '-c', show], capture_output=True, text=True, check=True
        )
        title = 'replacing OpenCV (a library of the desktop is missing)'
        self.pip(title, 'uninstall', '--yes', 'opencv-python')
        release = f'opencv-python-headless=={found.stdout.strip()}'
        self.pip(title, 'install', '--no-deps', release)

    def import_error(self, code: str) -> str:
        """Return the last line that ``code`` dies with; '' if it runs."""
        answer = subprocess.run(
            [str(self.python), '-c', code], capture_output=True, text=True
        )
        lines = answer.stderr.strip().splitlines() or ['unknown error']
        return lines[-1] if answer.returncode else ''

    def pip(
        self, title: str, *arguments: str, env: Mapping[str, str] | None = None
    ) -> None:
        """Run pip in the environment; raises SetupError."""
        self.call(title, [str(self.python), '-m', 'pip', *arguments], env=env)

    def call(
        self, title: str, command: list[str], env: Mapping[str, str] | None = None
    ) -> None:
        """Run a command; raises SetupError."""
        quiet = {'PIP_DISABLE_PIP_VERSION_CHECK': '1', 'PIP_NO_INPUT': '1'}
        status, output = run_logged(
            command, title=title, log=LOG, env={**quiet, **(env or {})}
        )
        if status:
            # `venv` hides the reason that its pip died of
            hint = '\nNo space left on device' if is_full(self.folder) else ''
            raise SetupError(title, advise(output + hint))


def is_full(folder: Path) -> bool:
    """Tell whether next to nothing can be written where ``folder`` lies or will lie."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    return shutil.disk_usage(there).free < 20 * 2**20


def listed(name: str) -> list[str]:
    """Return pip's arguments that install a requirement file as pinned."""
    path = ROOT / 'requirements' / f'{name}.txt'
    return ['-r', str(path), '-c', str(CONSTRAINTS)]


def set_up(folder: Path, *, named_by_user: bool, force: bool) -> None:
    """Complete ``folder`` unless a stamp says that it is complete.

    Raises:
        SetupError: If a step fails.
    """
    key = venv.compute_key(ROOT, folder)
    if venv.is_current(folder, key) and not force:
        print(f'The environment {folder} is complete')
        return
    start = time.monotonic()
    print(f'Setting up {folder} (log: {LOG})', flush=True)
    LOG.write_text('', encoding='utf-8')
    Setup(folder, named_by_user=named_by_user).run()
    venv.write_stamp(folder, key)
    print(f'The environment is ready, {format_elapsed(time.monotonic() - start)}')


def explain(error: OSError) -> str:
    """Return the one line for a failure of the machine."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return str(SetupError('writing files', advise('No space left on device')))
    return str(SetupError('reading or writing files', str(error)))


def main(argv: Sequence[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(description='Make or complete the environment.')
    parser.add_argument(
        '--force', action='store_true', help='go through every step again'
    )
    args = parser.parse_args(argv)
    named = os.environ.get('MMGRADGUARD_VENV')
    folder = Path(
        os.path.abspath(Path(named).expanduser() if named else ROOT / '.venv')
    )
    try:
        set_up(folder, named_by_user=bool(named), force=args.force)
    except SetupError as error:
        message = f'{error}. Full log: {LOG}'
    except OSError as error:
        message = f'{explain(error)}. Full log: {LOG}'
    except KeyboardInterrupt:
        message = 'setup was interrupted: run `make setup` again to go on from here'
    else:
        return 0
    with contextlib.suppress(OSError):
        print(message, file=sys.stderr)
    return 1
