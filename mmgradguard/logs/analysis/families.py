"""What is usual for a family of detectors, from a data file that anybody can extend."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Mapping, Sequence

from mmgradguard.logs.analysis.config_facts import find, model_type

_FILE = Path(__file__).parents[1] / 'data' / 'bands.json'
#: Where the configs of 2D and 3D detectors name their head.
_HEADS = ('model.bbox_head.type', 'model.pts_bbox_head.type', 'model.head.type')


@dataclass(frozen=True)
class Family:
    """One object of ``bands.json``; `norm` are quantiles of healthy rows."""

    name: str
    source: str
    max_norm: float
    lr: Sequence[float]
    precision: str
    schedule: str
    models: Sequence[str] = ()
    heads: Sequence[str] = ()
    terms: Sequence[str] = ()
    norm: Mapping[str, float] | None = field(default=None)


@lru_cache(maxsize=1)
def families() -> tuple[Family, ...]:
    """Return the known families, in the order of the file."""
    data = json.loads(_FILE.read_text(encoding='utf-8'))
    return tuple(Family(**family) for family in data['families'])


def find_family(config: Mapping[str, Any], terms: Sequence[str]) -> Family | None:
    """Return the family of a run: by head, by model, else by the names of its losses.

    A config that names another model decides: its terms are not looked at.
    """
    model, head = model_type(config), find(config, *_HEADS)
    for family in families():
        if head in family.heads:
            return family
    for family in families():
        if model in family.models:
            return family
    if model is not None:
        return None
    for family in families():
        for pattern in family.terms:
            if any(re.search(pattern, term) for term in terms):
                return family
    return None
