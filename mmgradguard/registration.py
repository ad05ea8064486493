"""Puts our classes into mmengine's registries, without importing mmengine ourselves.

A config imports this package after mmengine; a script may import it before. Both
orders must end with the classes registered, and a laptop without torch or mmengine
must still be able to read logs.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import sys
from types import ModuleType
from typing import Any


def register() -> None:
    """Register hooks and optimizer wrappers with mmengine; calling it twice is fine.

    Raises:
        ImportError: If torch or mmengine is missing, naming what to install.
    """
    import_or_explain('mmgradguard.engine')
    importlib.import_module('mmgradguard.testing')
    importlib.import_module('mmgradguard.compat').allow_mmengine_checkpoints()
    # a config was imported, or is about to be: the next training is checked for a guard
    importlib.import_module('mmgradguard.engine.seams').arm_train()


def import_or_explain(name: str) -> ModuleType:
    """Import a module of ours that needs torch, or torch and mmengine.

    Raises:
        ImportError: In one line what to install, if one of them is missing.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        missing = (error.name or '').partition('.')[0]
        if missing not in ('torch', 'mmengine'):
            raise
        raise ImportError(
            f'{name} needs {missing}, which is not installed: install it as your '
            "detector's instructions say, or run pip install '.[mmengine]' in the "
            'folder that holds the setup.py of mmgradguard',
            name=missing,
        ) from error


def register_when_imported() -> None:
    """Register now if mmengine is loaded, else when it is first imported."""
    if 'mmengine' in sys.modules:
        _register_quietly()
    elif not any(isinstance(finder, _MMEngineWatcher) for finder in sys.meta_path):
        sys.meta_path.insert(0, _MMEngineWatcher())


def _register_quietly() -> None:
    # `import mmengine` must not fail because of us: mmengine itself can be imported
    # where torch is missing, to read a config
    try:
        register()
    except ImportError as error:
        if getattr(error, 'name', None) not in ('torch', 'mmengine'):
            raise


class _MMEngineWatcher(importlib.abc.MetaPathFinder):
    """Runs `register` right after the first import of mmengine, then is gone."""

    def find_spec(
        self, fullname: str, path: Any, target: ModuleType | None = None
    ) -> Any:
        if fullname != 'mmengine':
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return spec
        loader = spec.loader
        execute = loader.exec_module

        def exec_and_register(module: ModuleType) -> None:
            execute(module)
            del loader.exec_module  # type: ignore[method-assign]
            _register_quietly()

        loader.exec_module = exec_and_register  # type: ignore[method-assign]
        return spec
