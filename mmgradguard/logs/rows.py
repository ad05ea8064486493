"""What a parser hands to the builder of a table."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Mapping, Sequence


@dataclass
class Rows:
    """Consecutive rows that print the same terms.

    `epochs`, `iterations` and `epoch_lengths` are as in the table, `stamps` and `skips`
    are what is printed; either may be empty, for none at all.
    """

    lines: list[int] = field(default_factory=list)
    epochs: list[int] = field(default_factory=list)
    iterations: list[int] = field(default_factory=list)
    epoch_lengths: list[int] = field(default_factory=list)
    stamps: list[str] = field(default_factory=list)
    skips: list[str | None] = field(default_factory=list)
    columns: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def without(self, places: Sequence[int]) -> Rows:
        """Return the rows but for those at ``places``."""
        kept = sorted(set(range(len(self.lines))) - set(places))

        def pick(values: Sequence[Any]) -> list[Any]:
            return [values[i] for i in kept] if len(values) else []

        lists = {f.name: getattr(self, f.name) for f in fields(self)}
        columns = lists.pop('columns')
        chosen = {name: pick(values) for name, values in lists.items()}
        return Rows(**chosen, columns={n: pick(v) for n, v in columns.items()})
