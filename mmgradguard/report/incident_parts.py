"""The rows and parts of an incident; every field declares how it is read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mmgradguard.report.values import (
    read_bool,
    read_float,
    read_int,
    read_plain,
    read_shape,
    read_text,
    read_texts,
)

TEXT = {'read': read_text}
TEXTS = {'read': read_texts}
INT = {'read': read_int}
FLOAT = {'read': read_float}
BOOL = {'read': read_bool}
SHAPE = {'read': read_shape}
PLAIN = {'read': read_plain}


@dataclass
class FirstBad:
    """Where the first bad value was born."""

    phase: str | None = field(default=None, metadata=TEXT)
    module: str | None = field(default=None, metadata=TEXT)
    call: str | None = field(default=None, metadata=TEXT)
    op: str | None = field(default=None, metadata=TEXT)
    source: str | None = field(default=None, metadata=TEXT)
    stats: Any = field(default=None, metadata=PLAIN)


@dataclass
class ParamRow:
    """Gradient statistics of one parameter; of the finite part only."""

    name: str | None = field(default=None, metadata=TEXT)
    shape: list[int] | None = field(default=None, metadata=SHAPE)
    numel: int | None = field(default=None, metadata=INT)
    num_nan: int | None = field(default=None, metadata=INT)
    num_inf: int | None = field(default=None, metadata=INT)
    mean: float | None = field(default=None, metadata=FLOAT)
    std: float | None = field(default=None, metadata=FLOAT)
    min: float | None = field(default=None, metadata=FLOAT)
    max: float | None = field(default=None, metadata=FLOAT)
    norm: float | None = field(default=None, metadata=FLOAT)


@dataclass
class LossTerm:
    """One loss term of the bad step."""

    name: str | None = field(default=None, metadata=TEXT)
    value: float | None = field(default=None, metadata=FLOAT)
    grad_norm: float | None = field(default=None, metadata=FLOAT)
    finite: bool | None = field(default=None, metadata=BOOL)
    culprit: bool | None = field(default=None, metadata=BOOL)


@dataclass
class SampleRow:
    """One image of the batch."""

    index: int | None = field(default=None, metadata=INT)
    img_id: str | None = field(default=None, metadata=TEXT)
    img_path: str | None = field(default=None, metadata=TEXT)
    culprit: bool | None = field(default=None, metadata=BOOL)
    notes: list[str] | None = field(default=None, metadata=TEXTS)


@dataclass
class Intervention:
    """What was tried on the same batch, and whether the anomaly stayed."""

    name: str | None = field(default=None, metadata=TEXT)
    anomaly: bool | None = field(default=None, metadata=BOOL)


@dataclass
class Cause:
    """The most likely cause."""

    code: str | None = field(default=None, metadata=TEXT)
    title: str | None = field(default=None, metadata=TEXT)
    confidence: float | None = field(default=None, metadata=FLOAT)
    evidence: list[str] | None = field(default=None, metadata=TEXTS)


@dataclass
class Advice:
    """What to do; `config` can be merged into the user's config."""

    text: str | None = field(default=None, metadata=TEXT)
    config: Any = field(default=None, metadata=PLAIN)


@dataclass
class WeightsLost:
    """Where weights were first seen not to be finite, and what to resume from."""

    iteration: int | None = field(default=None, metadata=INT)
    epoch: int | None = field(default=None, metadata=INT)
    name: str | None = field(default=None, metadata=TEXT)
    num_tensors: int | None = field(default=None, metadata=INT)
    checkpoint: str | None = field(default=None, metadata=TEXT)
