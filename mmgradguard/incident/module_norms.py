"""Norms by group of modules, from the norms of the parameters."""

from __future__ import annotations

import math
from typing import Callable, Sequence

from mmgradguard.clip.guarded_step import StepOutcome
from mmgradguard.clip.param_table import ParamTable
from mmgradguard.core.checks import find_unmatched
from mmgradguard.core.module_groups import group_parameters


class ModuleNorms:
    """Adds up parameter norms; the groups of a table are found once.

    Args:
        patterns: Regular expressions that group parameters; None goes by the tree.
    """

    def __init__(self, patterns: Sequence[str] | None) -> None:
        self._patterns = patterns
        self._names: list[str] | None = None
        self._groups: list[str] = []
        self._last: tuple[StepOutcome, ParamTable] | None = None

    def note(self, outcome: StepOutcome, table: ParamTable) -> None:
        """Remember a step, for `latest`."""
        self._last = (outcome, table)

    def latest(self) -> dict[str, float]:
        """Return the norms of the last step, nothing before the first."""
        return self.of(*self._last) if self._last else {}

    def of(self, outcome: StepOutcome, table: ParamTable) -> dict[str, float]:
        """Return the norm of each group at one step."""
        if self._names is not table.names:
            self._names = table.names
            self._groups = group_parameters(table.names, self._patterns)
        squares: dict[str, float] = {}
        for group, norm in zip(self._groups, outcome.param_norms):
            squares[group] = squares.get(group, 0.0) + norm * norm
        return {group: math.sqrt(square) for group, square in squares.items()}

    def warn_of_unmatched(
        self, names: Sequence[str], log: Callable[[str, str], None]
    ) -> None:
        """Say which patterns match no parameter of the model.

        Args:
            names: Of all its parameters.
            log: Called with ``(level, sentence)``.
        """
        for pattern in find_unmatched(self._patterns or (), names):
            log(
                'WARNING',
                f'`module_groups`: no parameter matches {pattern!r}, such as '
                f'{names[0] if names else "none"}; this entry shows nothing',
            )
