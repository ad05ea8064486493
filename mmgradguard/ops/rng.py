"""State of every random generator that a training step draws from."""

from __future__ import annotations

import random
import sys
from typing import Any

import torch


def capture_rng() -> dict[str, Any]:
    """Return the state of Python's, NumPy's and torch's generators, as plain data.

    Reading them draws nothing. NumPy is asked only where it is loaded already.
    """
    state: dict[str, Any] = {
        'python': random.getstate(),
        'torch': torch.get_rng_state(),
    }
    numpy = sys.modules.get('numpy')
    if numpy is not None:
        name, keys, pos, has_gauss, cached = numpy.random.get_state()
        state['numpy'] = (name, keys, pos, has_gauss, cached)
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        state['cuda'] = torch.cuda.get_rng_state_all()
    return state
