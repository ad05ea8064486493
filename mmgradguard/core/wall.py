"""The wall between the guard and the training: nothing of ours gets through it."""

from __future__ import annotations

import traceback
from typing import Any, Callable

from mmgradguard.core.errors import GuardStop


class Wall:
    """Calls parts of the guard; one that fails is told once and switched off.

    `GuardStop` passes: it is meant to.

    Args:
        tell: Called with a sentence and a traceback, once per part.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._broken: set[str] = set()

    def __call__(self, part: str, function: Callable[..., Any], *args: Any) -> Any:
        """Return what ``function`` returns; None once its part is switched off."""
        if part in self._broken:
            return None
        try:
            return function(*args)
        except GuardStop:
            raise
        except Exception:
            self._broken.add(part)
            self._tell(
                f'{part} failed and is switched off, the training goes on:\n'
                + traceback.format_exc()
            )
            return None
