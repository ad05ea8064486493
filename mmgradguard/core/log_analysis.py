"""What reading a log gives: events, a verdict and facts, with no words in them yet.

Nothing here is a sentence: a `Note` is a code with its numbers, and `core.phrases` says
it in a language. So text, Markdown, page and JSON cannot tell different stories.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from typing import Any, Sequence

from mmgradguard.core.types import Finding, Severity, Verdict

#: Kinds of an event, in the order in which a reader should fear them.
EVENT_KINDS = (
    'nan_sticks',
    'masked_nan',
    'norm_overflow',
    'finite_divergence',
    'not_learning',
    'burst',
    'spike',
    'amp_skip',
)
#: Code of a kind: GG1xx are rules of steps, live and in logs, GG3xx need the whole run.
EVENT_CODES = {
    'nan_sticks': 'GG101',
    'spike': 'GG102',
    'burst': 'GG102',
    'finite_divergence': 'GG104',
    'masked_nan': 'GG105',
    'norm_overflow': 'GG106',
    'amp_skip': 'GG107',
    'not_learning': 'GG301',
}
#: A spike of a loss has a code of its own.
LOSS_SPIKE = 'GG103'
#: Places of a schedule that an event may coincide with.
COINCIDENCES = (
    'warmup',
    'warmup_end',
    'lr_step',
    'lr_peak',
    'epoch_border',
    'resume',
)


#: Words in the name of a metric of which less is better.
_LESS_IS_BETTER = re.compile(
    r'loss|error|\b(?:nme|rmse|mae|epe|fid|mase|mate|maoe|mave|maae)\b', re.IGNORECASE
)


def is_less_better(metric: str) -> bool:
    """Return whether less of a validation metric is better, by its name.

    >>> is_less_better('NME'), is_less_better('coco/bbox_mAP')
    (True, False)
    """
    return _LESS_IS_BETTER.search(metric) is not None


@dataclass
class Note:
    """A sentence to be: the code of a phrase and the values it names."""

    code: str
    values: dict[str, Any] = field(default_factory=dict)


@dataclass
class Advice:
    """A change to make: why (a note) and a dict that merges into the user's config."""

    note: Note
    config: dict[str, Any] | None = None


@dataclass
class LogEvent:
    """One thing that happened, over one or several printed rows.

    `line` and `last_line` count the physical lines of `file` from 1; `epoch` and
    `iteration` are as printed. `value_printed` is what the row prints for `value_of`
    (``grad_norm`` where it is logged, else `term`), `value_single_step` what one step
    must have had for the printed mean, None where that cannot be said. `leads_into` is
    the line of a worse event that begins on the next row: a spike or a burst is over by
    then (`recovered`), for its rows print steps of their own; a divergence is not.
    `ended_by_resume` says that the next row is one of an older checkpoint. `typical` is
    the usual value of `value_of`, `loss_moved` whether a loss left its band too.
    `first_row` and `last_row` are 0-based rows of the table, for a chart.
    """

    kind: str
    file: str
    line: int
    last_line: int
    epoch: int | None
    iteration: int | None
    term: str | None
    value_printed: float | None
    value_single_step: float | None
    recovered: bool
    value_of: str | None = None
    typical: float | None = None
    time: str | None = None
    lr: float | None = None
    layer: str | None = None
    num_rows: int = 1
    recovered_line: int | None = None
    leads_into: int | None = None
    ended_by_resume: bool = False
    loss_moved: bool = False
    norm_led_rows: int | None = None
    coincides_with: list[str] = field(default_factory=list)
    first_row: int = 0
    last_row: int = 0

    @property
    def severity(self) -> Severity:
        """Return INFO if it cost nothing, ERROR if the run did not come back."""
        if self.kind == 'amp_skip':
            return Severity.INFO
        return Severity.WARNING if self.recovered else Severity.ERROR

    def to_finding(self, message: str) -> Finding:
        """Return the event as what every rule gives; ``message`` is its sentence."""
        code = EVENT_CODES[self.kind]
        if code == 'GG102' and self.value_of != 'grad_norm':
            code = LOSS_SPIKE
        return Finding(
            code=code,
            kind=self.kind,
            severity=self.severity,
            message=message,
            iteration=self.iteration,
            where=f'{self.file}:{self.line}',
        )


@dataclass
class RunFacts:
    """What the log says, or lets one conclude, about the run.

    `window` (entries averaged in a printed value), `interval` (iterations between rows)
    and `accumulation` (iterations per optimizer step) come from the config in the
    header where there is one; `inferred` names those that were concluded from the rows.
    Bands and typical values are of the healthy rows.
    """

    interval: int | None = None
    window: int | None = None
    accumulation: int | None = None
    inferred: list[str] = field(default_factory=list)
    num_gpus: int | None = None
    is_amp: bool | None = None
    loss_scale: str | None = None
    model: str | None = None
    family: str | None = None
    max_norm: float | None = None
    lr: float | None = None
    num_experiments: int = 1
    num_resumes: int = 0
    num_skipped_lines: int = 0
    num_newer_runs: int = 0
    num_validations: int = 0
    best_metric: float | None = None
    last_metric: float | None = None
    metric: str | None = None
    norm_quantiles: list[float] | None = None  # 5 %, 50 %, 95 %
    first_loss: float | None = None
    last_loss: float | None = None
    hours: float | None = None
    is_cut: bool = False


@dataclass
class Series:
    """One printed quantity by row, for a chart: None where the row lacks it."""

    name: str
    values: Sequence[float | None]


@dataclass
class LogAnalysis:
    """What `analyze` found in one log."""

    source: str
    format: str
    num_rows: int
    verdict: Verdict
    events: list[LogEvent] = field(default_factory=list)
    rows_lost: int = 0
    hours_lost: float | None = None
    advice: list[Advice] = field(default_factory=list)
    reasons: list[Note] = field(default_factory=list)
    normality: list[Note] = field(default_factory=list)
    would_decide: list[Note] = field(default_factory=list)
    unknowns: list[Note] = field(default_factory=list)
    facts: RunFacts = field(default_factory=RunFacts)

    @property
    def first_anomaly(self) -> LogEvent | None:
        """Return the first event, None if nothing happened."""
        return self.events[0] if self.events else None

    @property
    def is_clean(self) -> bool:
        """Return whether the verdict asks for nothing."""
        return self.verdict in (Verdict.HEALTHY, Verdict.BENIGN)

    def facts_json(self) -> dict[str, Any]:
        """Return the facts as plain data."""
        return asdict(self.facts)
