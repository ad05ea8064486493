"""What a wheel holds, whether it is built from a checkout or from an sdist."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = ('setup.py', 'pyproject.toml', 'MANIFEST.in', 'LICENSE')


def run(folder: Path, *command: str) -> str:
    answer = subprocess.run(
        [sys.executable, *command], cwd=folder, capture_output=True, text=True
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


def build_wheel(source: Path, out: Path) -> Path:
    options = ['--quiet', '--no-build-isolation', '--no-deps', '--no-index']
    run(out, '-m', 'pip', 'wheel', *options, '-w', str(out), str(source))
    (wheel,) = out.glob('*.whl')
    return wheel


@pytest.fixture(scope='module')
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('checkout')
    for name in FILES:
        shutil.copy(ROOT / name, folder / name)
    ignore = shutil.ignore_patterns('__pycache__')
    for name in ('mmgradguard', 'configs'):
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=ignore)
    return folder


@pytest.fixture(scope='module')
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(checkout, tmp_path_factory.mktemp('wheel'))


def contents(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as file:
        return sorted(file.namelist())


def test_the_link_to_the_configs_is_relative():
    link = ROOT / 'mmgradguard' / 'configs'
    assert link.is_symlink()
    assert link.readlink() == Path('../configs')


def test_the_wheel_holds_every_source_file(wheel):
    sources = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / 'mmgradguard').rglob('*.*')
        if path.suffix in ('.py', '.j2', '.css', '.js', '.json')
    ]
    assert 'mmgradguard/version.py' in sources
    assert 'mmgradguard/core/data/phrases_zh.json' in sources
    assert set(sources) <= set(contents(wheel))
    assert [name for name in contents(wheel) if '__pycache__' in name] == []


def test_the_wheel_holds_the_configs(wheel):
    configs = [path.relative_to(ROOT) for path in (ROOT / 'configs').rglob('*.py')]
    assert len(configs) >= 2
    assert {f'mmgradguard/{path.as_posix()}' for path in configs} <= set(
        contents(wheel)
    )


def test_an_sdist_gives_the_same_wheel(checkout, wheel, tmp_path):
    run(checkout, 'setup.py', '--quiet', 'sdist', '--dist-dir', str(tmp_path))
    (sdist,) = tmp_path.glob('*.tar.gz')
    out = tmp_path / 'wheel'
    out.mkdir()
    assert contents(build_wheel(sdist, out)) == contents(wheel)


def test_the_wheel_asks_for_three_packages_and_never_for_torch(wheel):
    with zipfile.ZipFile(wheel) as file:
        (name,) = [n for n in file.namelist() if n.endswith('/METADATA')]
        lines = file.read(name).decode().splitlines()
    requires = [line.split(': ')[1] for line in lines if line.startswith('Requires-D')]
    always = [line.split('>')[0] for line in requires if 'extra' not in line]
    extra = [line.split('>')[0] for line in requires if 'extra == "mmengine"' in line]
    assert always == ['rich', 'Jinja2', 'plotly']
    assert extra == ['torch', 'mmengine']


def test_presets_are_found_from_an_installed_wheel(wheel, tmp_path):
    options = ['--quiet', '--no-deps', '--no-index', '--target', str(tmp_path / 'site')]
    run(tmp_path, '-m', 'pip', 'install', *options, str(wheel))
    code = (
        f'import sys; sys.path.insert(0, {str(tmp_path / "site")!r}); '
        'import mmgradguard; print(mmgradguard.config_path("detr"))'
    )
    path = Path(run(tmp_path, '-c', code).strip())
    assert path.is_file()
    assert path.is_relative_to(tmp_path / 'site')
