"""Packages that only one renderer needs, imported when it runs."""

from __future__ import annotations

import importlib
from typing import Any

from mmgradguard.core.errors import GradGuardError


class MissingPackageError(GradGuardError):
    """A package that only this renderer needs is not installed."""


def require(module: str, package: str, purpose: str) -> Any:
    """Import ``module`` or say in one line which package to install.

    Raises:
        MissingPackageError: If it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingPackageError(
            f'{purpose} needs {package}: pip install {package}'
        ) from error
