"""One ``incident.json`` as dataclasses, read with tolerance for damage.

Every field declares how it is read. What has the wrong type becomes None and is
counted; nothing here raises.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Mapping, TypeVar

from mmgradguard.core.types import Verdict
from mmgradguard.report.incident_parts import (
    INT,
    TEXT,
    Advice,
    Cause,
    FirstBad,
    Intervention,
    LossTerm,
    ParamRow,
    SampleRow,
    WeightsLost,
)
from mmgradguard.report.values import read_text

#: Newest layout of ``incident.json`` that is fully understood.
SCHEMA_VERSION = 1
#: Rows of one table that are kept; the worst come first in the file.
MAX_ROWS = 200

T = TypeVar('T')


@dataclass
class Incident:
    """One incident of a run; counters are 0-based, as in the file.

    `folder` is relative to the guard's folder. `verdict` is always one of
    :class:`Verdict`: a file that cannot be read counts as suspicious, as every incident
    does until the run has shown otherwise. `problems` says what could not be read.
    `total_norm` and `clip_coef` come from ``steps.jsonl``, None without such a step.
    """

    folder: str = ''
    verdict: str = Verdict.SUSPICIOUS.value
    schema_version: int | None = field(default=None, metadata=INT)
    kind: str | None = field(default=None, metadata=TEXT)
    iteration: int | None = field(default=None, metadata=INT)
    step: int | None = field(default=None, metadata=INT)
    epoch: int | None = field(default=None, metadata=INT)
    rank: int | None = field(default=None, metadata=INT)
    time: str | None = field(default=None, metadata=TEXT)
    action: str | None = field(default=None, metadata=TEXT)
    first_bad: FirstBad | None = None
    cause: Cause | None = None
    weights_lost: WeightsLost | None = None
    params: list[ParamRow] = field(default_factory=list)
    loss_terms: list[LossTerm] = field(default_factory=list)
    samples: list[SampleRow] = field(default_factory=list)
    interventions: list[Intervention] = field(default_factory=list)
    advice: list[Advice] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    total_norm: float | None = None
    clip_coef: float | None = None
    problems: list[str] = field(default_factory=list)


_PARTS: dict[str, type[Any]] = {
    'first_bad': FirstBad,
    'cause': Cause,
    'weights_lost': WeightsLost,
}
_TABLES: dict[str, type[Any]] = {
    'params': ParamRow,
    'loss_terms': LossTerm,
    'samples': SampleRow,
    'interventions': Intervention,
    'advice': Advice,
}
_REQUIRED = ('schema_version', 'kind', 'iteration', 'action', 'verdict')


def parse_incident(row: Mapping[str, Any], *, folder: str) -> Incident:
    """Return the incident in ``row``, with what could not be read in `problems`."""
    problems: list[str] = []
    incident = _build(Incident, row, problems)
    incident.folder, incident.problems = folder, problems
    for name, part in _PARTS.items():
        if isinstance(row.get(name), Mapping):
            setattr(incident, name, _build(part, row[name], problems, f'{name}.'))
        elif row.get(name) is not None:
            problems.append(f'`{name}` is not an object')
    for name, part in _TABLES.items():
        setattr(incident, name, _read_table(part, row.get(name), problems, name))
    _read_versions(incident, row.get('versions'))
    incident.verdict = _read_verdict(row, problems)
    if missing := [name for name in _REQUIRED if row.get(name) is None]:
        problems.append(f'without {", ".join(missing)}')
    version = incident.schema_version
    if version is not None and version > SCHEMA_VERSION:
        problems.append(
            f'schema_version {version} is newer than this mmgradguard '
            f'({SCHEMA_VERSION}): fields it does not know are left out'
        )
    return incident


def damaged_incident(folder: str, problem: str) -> Incident:
    """Return what is known of an incident whose file cannot be read: its folder."""
    number, _, rank = folder.rpartition('/')[2].partition('-rank')
    return Incident(
        folder=folder,
        iteration=int(number) if _is_counter(number) else None,
        rank=int(rank) if _is_counter(rank) else None,
        problems=[problem],
    )


def _is_counter(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 15


def _build(
    cls: type[T], row: Mapping[str, Any], problems: list[str], prefix: str = ''
) -> T:
    values: dict[str, Any] = {}
    for item in fields(cls):  # type: ignore[arg-type]
        reader = item.metadata.get('read')
        if reader is None or row.get(item.name) is None:
            continue
        values[item.name] = reader(row[item.name])
        if values[item.name] is None:
            problems.append(f'`{prefix}{item.name}` has the wrong type')
    return cls(**values)


def _read_table(cls: type[T], rows: Any, problems: list[str], name: str) -> list[T]:
    if rows is None:
        return []
    if not isinstance(rows, list):
        problems.append(f'`{name}` is not a list')
        return []
    damage: list[str] = []
    shown = rows[:MAX_ROWS]
    table = [_build(cls, row, damage) for row in shown if isinstance(row, Mapping)]
    num_bad = len(damage) + len(shown) - len(table)
    if num_bad:
        problems.append(f'`{name}`: {num_bad} value(s) have the wrong type')
    if len(rows) > MAX_ROWS:
        problems.append(f'`{name}`: the first {MAX_ROWS} of {len(rows)} rows are shown')
    return table


def _read_versions(incident: Incident, versions: Any) -> None:
    if not isinstance(versions, Mapping):
        if versions is not None:
            incident.problems.append('`versions` is not an object')
        return
    for key, value in list(versions.items())[:MAX_ROWS]:
        text = read_text(value)
        if text is not None:
            incident.versions[read_text(key) or ''] = text


def _read_verdict(row: Mapping[str, Any], problems: list[str]) -> str:
    value = row.get('verdict')
    allowed = [Verdict.BENIGN.value, Verdict.SUSPICIOUS.value, Verdict.FATAL.value]
    if value in allowed:
        return str(value)
    if value is not None:
        shown = read_text(value) or type(value).__name__
        problems.append(f'`verdict` must be one of {allowed}, got {shown!r}')
    return Verdict.SUSPICIOUS.value
