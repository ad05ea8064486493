"""Unusual rows that belong together."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Episode:
    """Unusual rows that belong together.

    `goes_on`: a worse one begins right after; `is_resumed`: a resume from an older
    checkpoint ended it.
    """

    kind: str
    first: int
    last: int
    typical: float | None
    recovered: bool
    is_plateau: bool = False
    goes_on: bool = False
    is_resumed: bool = False
