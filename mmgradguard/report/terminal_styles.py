"""Colours of the verdicts on a terminal."""

from __future__ import annotations

STYLES = {
    'healthy': 'bold green',
    'benign': 'bold cyan',
    'suspicious': 'bold yellow',
    'fatal': 'bold red',
}
