"""The words that every layer shares: a step, a finding, how bad it is."""

from __future__ import annotations

import enum
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Mapping

from mmgradguard.core.jsonio import as_float

#: Why an optimizer step was not taken.
SKIP_REASONS = ('nonfinite', 'spike', 'scaler', 'exception')


class Severity(enum.IntEnum):
    """How bad a finding is."""

    INFO = 0
    WARNING = 1
    ERROR = 2


class Verdict(str, enum.Enum):
    """What became of an anomaly, or of a whole run."""

    HEALTHY = 'healthy'
    BENIGN = 'benign'
    SUSPICIOUS = 'suspicious'
    FATAL = 'fatal'


@dataclass
class StepSample:
    """One optimizer step, as written to ``steps.jsonl``.

    `step` counts optimizer updates and goes on over a resume; `iteration` is
    mmengine's ``runner.iter``, `epoch` its ``runner.epoch``: all 0-based. `total_norm`
    is the norm of the unscaled gradients before clipping; `losses` are means over an
    accumulation; `module_norms` are L2 norms by module, None between intervals.
    """

    step: int
    iteration: int
    epoch: int
    total_norm: float
    lr: float | None = None
    losses: dict[str, float] = field(default_factory=dict)
    max_norm: float | None = None
    clip_coef: float = 1.0
    skipped: str | None = None
    loss_scale: float | None = None
    nonfinite_params: int = 0
    module_norms: dict[str, float] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the row to write; `module_norms` is left out between intervals."""
        row = asdict(self)
        if self.module_norms is None:
            del row['module_norms']
        return row

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> StepSample:
        """Rebuild a sample from a row; unknown keys are ignored.

        Raises:
            ValueError: If a field is missing or is not what it should be.
        """
        try:
            values = {f.name: row[f.name] for f in fields(cls) if f.name in row}
            for name in ('step', 'iteration', 'epoch', 'nonfinite_params'):
                if name in values:
                    values[name] = int(values[name])
            for name in ('lr', 'total_norm', 'max_norm', 'clip_coef', 'loss_scale'):
                if name in values:
                    values[name] = as_float(values[name])
            for name in ('losses', 'module_norms'):
                if values.get(name) is not None:
                    values[name] = {k: as_float(v) for k, v in values[name].items()}
            if values['total_norm'] is None:
                raise TypeError('`total_norm` is null')
            return cls(**values)
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f'not a step: {error}') from error


@dataclass
class Finding:
    """What a rule found: a code, where, and one sentence for a person."""

    code: str
    kind: str
    severity: Severity
    message: str
    step: int | None = None
    iteration: int | None = None
    where: str | None = None
    advice: list[dict[str, Any]] = field(default_factory=list)
