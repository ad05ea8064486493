"""Synthetic training logs with a known truth: an opponent for the log analyser."""

from __future__ import annotations

from synthetic_logs.assemble import generate
from synthetic_logs.stream import healthy_steps
from synthetic_logs.truth import FORMATS, KINDS, Options, SyntheticLog, Truth

__all__ = [
    'FORMATS',
    'KINDS',
    'Options',
    'SyntheticLog',
    'Truth',
    'generate',
    'healthy_steps',
]
