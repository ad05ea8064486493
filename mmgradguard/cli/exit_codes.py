"""Exit codes of every verb."""

from __future__ import annotations

CLEAN = 0
FINDINGS = 1
BAD_INPUT = 2
