"""Both import orders register; importing the package alone stays light."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import mmgradguard

NAMES = [
    'GradAnomalyHook',
    'AdaptiveClipHook',
    'FaultInjectionHook',
    'AdaptiveClipOptimWrapper',
    'AdaptiveClipAmpOptimWrapper',
]
HINT = "pip install '.[mmengine]'"
CHECK = f"""
from mmengine.registry import HOOKS, OPTIM_WRAPPERS
found = [(HOOKS.get(n) or OPTIM_WRAPPERS.get(n)).__module__ for n in {NAMES!r}]
assert all(name.startswith('mmgradguard.') for name in found), found
"""


def run(code: str) -> str:
    result = subprocess.run(
        [sys.executable, '-c', code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return result.stdout


@pytest.mark.parametrize(
    'imports',
    [
        'import mmgradguard, mmengine',
        'import mmengine, mmgradguard',
        'import mmgradguard\nfrom mmengine.config import Config',
        'import mmgradguard\nfrom mmengine.optim import OptimWrapper',
        'import mmgradguard\nfrom mmengine.runner import Runner',
        'import mmengine.hooks, mmgradguard',
        'import mmgradguard\nmmgradguard.register()\nmmgradguard.register()',
        'from mmgradguard import GradAnomalyHook',
    ],
)
def test_registered_whatever_came_first(imports: str) -> None:
    run(imports + CHECK)


def test_a_config_registers_by_custom_imports(tmp_path) -> None:
    config = tmp_path / 'config.py'
    config.write_text(
        "custom_imports = dict(imports=['mmgradguard'], allow_failed_imports=False)\n"
    )
    run(
        'from mmengine.config import Config\n'
        f'Config.fromfile({str(config)!r})\n' + CHECK
    )


def test_a_dotted_type_needs_no_import() -> None:
    run(
        'from mmengine.registry import HOOKS\n'
        "hook = HOOKS.build(dict(type='mmgradguard.GradAnomalyHook'))\n"
        "assert type(hook).__name__ == 'GradAnomalyHook'\n"
    )


@pytest.mark.parametrize('module', ['torch', 'mmengine', 'numpy', 'plotly', 'rich'])
def test_importing_the_package_is_light(module: str) -> None:
    code = f'import sys, mmgradguard; print({module!r} in sys.modules)'
    assert run(code).strip() == 'False'


def test_the_check_of_light_imports_can_fail() -> None:
    code = "import sys, mmgradguard, json; print('json' in sys.modules)"
    assert run(code).strip() == 'True'


def test_mmengine_without_torch_can_still_be_imported_after_us() -> None:
    run(
        'import sys\n'
        'class NoTorch:\n'
        '    def find_spec(self, name, path=None, target=None):\n'
        "        if name == 'torch' or name.startswith('torch.'):\n"
        "            raise ModuleNotFoundError('no torch', name='torch')\n"
        'sys.meta_path.insert(0, NoTorch())\n'
        'import mmgradguard\n'
        'import types\n'
        # mmengine itself needs torch here; what counts is that we do not add an error
        'try:\n'
        '    import mmengine\n'
        'except ModuleNotFoundError as error:\n'
        "    assert error.name == 'torch'\n"
    )


@pytest.mark.parametrize('missing', ['torch', 'mmengine'])
def test_what_is_missing_is_said_in_one_line(missing: str) -> None:
    run(
        'import sys\n'
        f'sys.modules[{missing!r}] = None\n'
        'import mmgradguard\n'
        'try:\n'
        '    mmgradguard.GradAnomalyHook\n'
        'except ImportError as error:\n'
        f"    assert 'needs {missing}, which is not installed' in str(error), error\n"
        f'    assert {HINT!r} in str(error), error\n'
        'else:\n'
        '    raise SystemExit(1)\n'
    )


def test_the_hint_is_a_documented_command() -> None:
    root = Path(__file__).parents[1]
    assert HINT in (root / 'README.md').read_text()
    assert HINT in (root / 'docs' / 'getting_started.md').read_text()
    assert "'mmengine'" in (root / 'setup.py').read_text()


def test_public_names() -> None:
    assert set(mmgradguard.__all__) == {
        '__version__', 'config_path', 'register', 'GradGuard', *NAMES,
    }  # fmt: skip
    assert set(mmgradguard.__all__) <= set(dir(mmgradguard))


def test_unknown_names_raise() -> None:
    with pytest.raises(AttributeError, match="no attribute 'GradHook'"):
        _ = mmgradguard.GradHook


def test_presets_are_found_and_listed() -> None:
    assert mmgradguard.config_path('detr').endswith('_base_/detr.py')
    with pytest.raises(ValueError, match=r"no preset 'vit'; there are: detr, watch"):
        mmgradguard.config_path('vit')
    with pytest.raises(ValueError, match='no preset'):
        mmgradguard.config_path('../examples/detr_r18_demo')
