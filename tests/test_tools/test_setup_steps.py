"""The steps of making the environment: what runs, what is shown, what is said."""

from __future__ import annotations

import errno
import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import setup_env
from envsetup import main as envmain
from envsetup import mmcv_ops, progress
from envsetup.advice import SetupError, advise

ROOT = Path(__file__).resolve().parents[2]


# ------------------------------------------------------------------------------- advice


@pytest.mark.parametrize(
    ('log', 'words'),
    [
        ('OSError: [Errno 28] No space left on device', 'disk is full'),
        ('x.cpp:1: fatal error: Python.h: No such file or directory', 'python3.11-dev'),
        ("error: command 'g++' failed: No such file or directory", 'no C++ compiler'),
        ('/bin/sh: 1: c++: not found', 'no C++ compiler'),
        ('c++: fatal error: Killed signal terminated program cc1plus', 'MAX_JOBS=1'),
        ("ModuleNotFoundError: No module named 'pkg_resources'", 'setuptools<81'),
        ('The virtual environment: ensurepip is not available.', 'python3.11-venv'),
        ('SSLError(SSLCertVerificationError: CERTIFICATE_VERIFY_FAILED', 'PIP_CERT'),
        (
            'Retrying after connection broken by NewConnectionError\n'
            'ERROR: No matching distribution found for torch==2.13.0',
            'cannot be reached',
        ),
        ('ERROR: No matching distribution found for rich==15.0.0', 'no rich==15.0.0'),
        ('ERROR: ResolutionImpossible: for help visit x', 'pip config list'),
        ("PermissionError: [Errno 13] Permission denied: '/x'", 'check the owner'),
        ('something nobody has seen', 'read the end of the log'),
    ],
)
def test_advice_fits_the_log(log, words):
    assert words in advise(log)
    assert '\n' not in advise(log)


def test_the_message_names_the_step_and_what_to_do():
    error = SetupError('compiling mmcv', 'install g++')
    assert str(error) == 'setup failed at: compiling mmcv. Install g++'


def test_a_full_disk_is_said_in_one_line():
    message = envmain.explain(OSError(errno.ENOSPC, 'No space left on device'))
    assert message.startswith('setup failed at: writing files. The disk is full')


def test_a_failing_command_raises_with_its_advice_and_fills_the_log(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(envmain, 'LOG', tmp_path / 'setup.log')
    setup = envmain.Setup(tmp_path / 'env', named_by_user=False)
    code = 'import sys; print("No space left on device"); sys.exit(1)'
    with pytest.raises(SetupError, match=r'trying\. The disk is full'):
        setup.call('trying', [sys.executable, '-c', code])
    assert 'No space left on device' in (tmp_path / 'setup.log').read_text()
    assert 'trying: failed' in capsys.readouterr().out


def test_a_full_disk_is_seen_though_the_command_hides_it(tmp_path, monkeypatch):
    monkeypatch.setattr(envmain, 'LOG', tmp_path / 'setup.log')
    usage = SimpleNamespace(free=0)
    monkeypatch.setattr(envmain.shutil, 'disk_usage', lambda path: usage)
    setup = envmain.Setup(tmp_path / 'not' / 'yet' / 'there', named_by_user=False)
    with pytest.raises(SetupError, match=r'trying\. The disk is full'):
        setup.call('trying', [sys.executable, '-c', 'raise SystemExit(2)'])


def test_a_failing_step_ends_in_one_line_with_the_log(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv('MMGRADGUARD_VENV', str(tmp_path))
    (tmp_path / 'thesis.tex').touch()
    monkeypatch.setattr(envmain, 'LOG', tmp_path / 'setup.log')
    assert envmain.main([]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith('setup failed at: making the environment. ')
    assert lines[0].endswith(f'Full log: {tmp_path / "setup.log"}')


def test_an_interrupt_says_how_to_go_on(monkeypatch, capsys):
    def interrupt(*_args, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(envmain, 'set_up', interrupt)
    assert envmain.main([]) == 1
    assert 'run `make setup` again' in capsys.readouterr().err


# ----------------------------------------------------------------------------- progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ('line', 'state'),
    [
        ('  [34/187] c++ -MMD -MF x.o.d', 'compiled 34 of 187'),
        ('Collecting mmdet==3.3.0 (from -r x)', 'collecting mmdet==3.3.0'),
        ('  x = a[1/2]' + ' ' * 40, 'compiled 1 of 2'),
        ('warning: unused [1/2]'.rjust(80), 'before'),
        ('anything else', 'before'),
    ],
)
def test_a_line_of_output_says_where_it_is(line, state):
    assert progress.describe(line, 'before') == state


def test_a_terminal_shows_one_line_that_is_rewritten():
    stream = Terminal()
    meter = progress.Meter('compiling mmcv', stream)
    meter.show('compiled 1 of 77')
    meter.show('compiled 2 of 77')
    meter.close('done')
    assert stream.getvalue().count('\n') == 1
    assert stream.getvalue().count('\r') == 3


def test_a_file_gets_a_line_every_30_seconds(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress.time, 'monotonic', lambda: now[0])
    stream = io.StringIO()
    meter = progress.Meter('compiling mmcv', stream)
    for second in range(65):
        now[0] = 100.0 + second
        meter.show(f'compiled {second} of 77')
    assert stream.getvalue().splitlines() == [
        '  compiling mmcv: compiled 30 of 77, 0:30',
        '  compiling mmcv: compiled 60 of 77, 1:00',
    ]


# --------------------------------------------------------------------------------- mmcv


def pip_that_changes(errors: list[str], calls: list[tuple[str, ...]]):
    def pip(_title: str, *arguments: str, env: dict) -> None:
        assert env['MMCV_WITH_OPS'] == '1'
        assert '-g0' in env['CFLAGS']
        calls.append(arguments)
        errors.pop(0)

    return pip


@pytest.mark.parametrize(
    ('errors', 'num_calls'),
    [
        ([''], 0),
        (["No module named 'mmcv'", ''], 1),
        (["No module named 'mmcv'", 'undefined symbol: _ZN3c10', ''], 2),
    ],
    ids=['there', 'installed', 'wheel of another torch'],
)
def test_mmcv_is_built_only_if_nothing_else_works(monkeypatch, errors, num_calls):
    errors, calls = list(errors), []
    monkeypatch.setattr(mmcv_ops, 'import_error', lambda python: errors[0])
    pip = pip_that_changes(errors, calls)
    mmcv_ops.install_mmcv(Path('python'), ['-r', 'ops.txt'], pip)
    from_source = ['--no-binary' in arguments for arguments in calls]
    assert from_source == [False, True][:num_calls]
    assert all('--no-build-isolation' in arguments for arguments in calls)


def test_mmcv_that_never_works_is_an_error(monkeypatch):
    monkeypatch.setattr(mmcv_ops, 'import_error', lambda python: 'undefined symbol: x')
    pip = pip_that_changes(['', ''], [])
    with pytest.raises(SetupError, match='cannot be imported: undefined symbol: x'):
        mmcv_ops.install_mmcv(Path('python'), [], pip)


def test_what_the_user_set_for_the_compiler_stays(monkeypatch):
    monkeypatch.setenv('CFLAGS', '-O1')
    monkeypatch.setenv('MAX_JOBS', '1')
    env = mmcv_ops.build_env()
    assert (env['CFLAGS'], env['MAX_JOBS']) == ('-O1 -g0', '1')


def test_a_missing_compiler_is_seen_before_the_build(monkeypatch):
    monkeypatch.setattr(mmcv_ops.shutil, 'which', lambda name: None)
    assert 'no C++ compiler' in (mmcv_ops.missing_tool() or '')


def test_missing_headers_are_seen_before_the_build(monkeypatch, tmp_path):
    monkeypatch.setattr(mmcv_ops.shutil, 'which', lambda name: name)
    paths = dict(include=str(tmp_path))
    monkeypatch.setattr(mmcv_ops.sysconfig, 'get_paths', lambda: paths)
    assert 'Python.h is missing' in (mmcv_ops.missing_tool() or '')
    (tmp_path / 'Python.h').touch()
    assert mmcv_ops.missing_tool() is None


@pytest.mark.parametrize(
    ('error', 'wheel', 'fails'),
    [('no mmcv', False, True), ('no mmcv', True, False), ('', False, False)],
)
def test_without_compiler_a_wheel_is_enough(monkeypatch, error, wheel, fails):
    monkeypatch.setattr(mmcv_ops, 'missing_tool', lambda: 'install g++')
    monkeypatch.setattr(mmcv_ops, 'import_error', lambda python: error)
    monkeypatch.setattr(mmcv_ops, 'has_wheel', lambda python, constraints: wheel)
    if fails:
        with pytest.raises(SetupError, match=r'installing mmcv\. Install g\+\+'):
            mmcv_ops.check_tools(Path('python'), Path('constraints'))
    else:
        mmcv_ops.check_tools(Path('python'), Path('constraints'))


# ----------------------------------------------------------------------- OpenCV, Python


@pytest.mark.parametrize(
    ('error', 'calls'),
    [
        ('', []),
        (
            'ImportError: libGL.so.1: cannot open shared object file',
            [
                ('uninstall', '--yes', 'opencv-python'),
                ('install', '--no-deps', 'opencv-python-headless=={release}'),
            ],
        ),
    ],
)
def test_opencv_is_replaced_where_libgl_is_missing(monkeypatch, error, calls):
    from importlib.metadata import version

    setup = envmain.Setup(Path('env'), named_by_user=False)
    setup.python = Path(sys.executable)
    seen = []
    monkeypatch.setattr(setup, 'import_error', lambda code: error)
    monkeypatch.setattr(setup, 'pip', lambda title, *args: seen.append(args))
    setup.replace_opencv()
    release = version('opencv-python')
    expected = [tuple(a.format(release=release) for a in call) for call in calls]
    assert seen == expected


def test_another_python_is_refused_in_one_line(monkeypatch, capsys):
    monkeypatch.setattr(setup_env, 'find_python', lambda: None)
    assert setup_env.main() == 1
    line = capsys.readouterr().err
    assert line.count('\n') == 1
    assert line.startswith('setup failed at: finding Python 3.11. This is ')
    assert 'mmcv 2.1.0 is tried on 3.8 to 3.11' in line


def test_a_name_that_stands_for_no_python_is_passed_over(tmp_path):
    shim = tmp_path / 'python3.11'
    shim.write_text('#!/bin/sh\necho "not installed" >&2\nexit 127\n')
    shim.chmod(0o755)
    assert not setup_env.is_wanted(str(shim))
    assert not setup_env.is_wanted(str(tmp_path / 'absent'))
    shim.write_text('#!/bin/sh\necho 3.11\n')
    assert setup_env.is_wanted(str(shim))
