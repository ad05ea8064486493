#!/usr/bin/env python3
"""Make or complete the environment `.venv`; `make setup` runs this.

Any Python 3 may run this file: it looks for the Python that the pins are made for and
hands over to it. That is why nothing here is newer than Python 3.4; the work itself is
in `tools/envsetup/`.
"""

import os
import subprocess
import sys

# torch 2.13.0 begins at 3.10, the pinned NumPy and SciPy at 3.11; mmcv 2.1.0 is tried
# on 3.8 to 3.11. The package itself runs on 3.8 and later.
WANTED = (3, 11)


def is_wanted(executable):
    """Tell whether ``executable`` runs and is the wanted Python."""
    # run it: a shim of that name may stand for no Python at all
    code = 'import sys; print("%d.%d" % sys.version_info[:2])'
    try:
        output = subprocess.check_output(
            [executable, '-c', code], stderr=subprocess.DEVNULL
        )
    except (OSError, subprocess.CalledProcessError):
        return False
    return output.decode().strip() == '%d.%d' % WANTED


def find_python():
    """Return the wanted Python's executable, or None."""
    if sys.version_info[:2] == WANTED:
        return sys.executable
    for name in ('python%d.%d' % WANTED, 'python3', 'python'):
        if is_wanted(name):
            return name
    return None


def main():
    """Hand over to the wanted Python; returns the exit status."""
    python = find_python()
    if python is None:
        sys.stderr.write(
            'setup failed at: finding Python %d.%d. This is %d.%d; mmcv 2.1.0 is tried '
            'on 3.8 to 3.11 only and the pins in requirements/ are made for %d.%d: '
            'install it (with its venv and dev packages) so that `python%d.%d` is '
            'found, or run `make setup PYTHON=/path/to/python%d.%d`\n'
            % (WANTED + sys.version_info[:2] + WANTED + WANTED + WANTED)
        )
        return 1
    if python != sys.executable:
        os.execvp(python, [python, os.path.abspath(__file__), *sys.argv[1:]])
    from envsetup.main import main as make_environment

    return make_environment(sys.argv[1:])


if __name__ == '__main__':
    sys.exit(main())
