"""The report of a run as data: what every renderer shows, decided once."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from mmgradguard.core.types import StepSample, Verdict
from mmgradguard.report.incident_record import Incident
from mmgradguard.report.run_files import RunRecord
from mmgradguard.report.run_folders import GUARD_DIR
from mmgradguard.report.run_sentences import describe
from mmgradguard.report.series import (
    HeatMap,
    LossCurve,
    StepSeries,
    build_heat_map,
    build_loss_curves,
    build_step_series,
)
from mmgradguard.report.summary import Summary, build_summary
from mmgradguard.report.values import (
    clean_text,
    format_count,
    read_int,
    read_plain,
    read_text,
)

#: Layout of ``mmgradguard report --json``.
SCHEMA_VERSION = 1
#: Journal lines and problems that are kept; the newest and the first.
MAX_JOURNAL = 500
MAX_PROBLEMS = 100

_RANK = [v.value for v in Verdict]
_SEVERITY = [v.value for v in (Verdict.BENIGN, Verdict.SUSPICIOUS, Verdict.FATAL)]


@dataclass
class JournalEntry:
    """One change of the run, as text; counters are 0-based, as in the file."""

    time: str = ''
    step: int | None = None
    iteration: int | None = None
    actor: str = ''
    knob: str = ''
    target: str = ''
    old: str = ''
    new: str = ''
    mode: str = ''
    status: str = ''
    evidence: str = ''


@dataclass
class RunReport:
    """A run at a glance. Every string is one clean line; renderers still escape it.

    `problems` names what could not be read, `num_damaged` counts it. `journal` holds
    the newest of `num_journal` lines. Incidents are in the order of the run.
    """

    schema_version: int
    title: str
    guard_dir: str
    verdict: str
    sentences: list[str]
    summary: Summary
    incidents: list[Incident]
    journal: list[JournalEntry]
    num_journal: int
    steps: StepSeries
    losses: list[LossCurve]
    modules: HeatMap
    num_damaged: int = 0
    problems: list[str] = field(default_factory=list)
    other_runs: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """Whether nothing needs a person: healthy, or benign incidents only."""
        return self.verdict in (Verdict.HEALTHY.value, Verdict.BENIGN.value)

    @property
    def worst_incident(self) -> Incident | None:
        """The first incident of the worst verdict; readable ones go first."""
        return max(
            self.incidents,
            key=lambda i: (_SEVERITY.index(i.verdict), i.kind is not None),
            default=None,
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain data; write it with ``jsonio`` for its infinities."""
        return asdict(self)


def build_report(record: RunRecord) -> RunReport:
    """Return the report of a run; the same files always give the same report."""
    incidents = _add_norms(record.incidents, record.steps)
    summary = replace(
        build_summary(record.steps, incidents),
        num_runs=record.num_runs,
        num_replayed=record.num_replayed,
        steps_file=record.steps_file,
        unrecorded=record.unrecorded,
    )
    sentences = describe(summary, incidents)
    if record.num_damaged:
        damage = format_count(record.num_damaged, 'line or file').replace(
            'line or files', 'lines or files'
        )
        sentences.append(f'{damage} could not be read in full; the rest is below.')
    if record.other_runs:
        runs = format_count(len(record.other_runs), 'older run')
        names = ', '.join(run.parent.name for run in record.other_runs[:5])
        sentences.append(f'This is the newest run here; {runs} not shown: {names}.')
    problems = record.problems[:MAX_PROBLEMS]
    if len(record.problems) > MAX_PROBLEMS:
        problems.append(f'and {len(record.problems) - MAX_PROBLEMS} more')
    return RunReport(
        schema_version=SCHEMA_VERSION,
        title=_title(record),
        guard_dir=str(record.guard_dir),
        verdict=_judge(record, incidents),
        sentences=[clean_text(sentence, 2000) for sentence in sentences],
        summary=summary,
        incidents=incidents,
        journal=[_journal_entry(row) for row in record.journal[-MAX_JOURNAL:]],
        num_journal=len(record.journal),
        steps=build_step_series(record.steps),
        losses=build_loss_curves(record.steps),
        modules=build_heat_map(record.steps),
        num_damaged=record.num_damaged,
        problems=[clean_text(problem) for problem in problems],
        other_runs=[str(run) for run in record.other_runs],
    )


def worst_verdict(incidents: list[Incident]) -> str:
    """Return the worst verdict; healthy without an incident."""
    verdicts = [incident.verdict for incident in incidents]
    return max(verdicts, key=_SEVERITY.index, default=Verdict.HEALTHY.value)


def _judge(record: RunRecord, incidents: list[Incident]) -> str:
    verdict = worst_verdict(incidents)
    is_unknown = record.steps_file in ('empty', 'damaged')
    # where no step can be read, nobody knows that all is well
    return max(
        verdict, Verdict.SUSPICIOUS.value if is_unknown else verdict, key=_RANK.index
    )


def _add_norms(incidents: list[Incident], steps: list[StepSample]) -> list[Incident]:
    # an incident of an exception may have no step of its own
    wanted = {incident.iteration for incident in incidents}
    found = {sample.iteration: sample for sample in steps if sample.iteration in wanted}
    return [
        replace(
            incident,
            total_norm=found[incident.iteration].total_norm,
            clip_coef=found[incident.iteration].clip_coef,
        )
        if incident.iteration in found
        else incident
        for incident in incidents
    ]


def _title(record: RunRecord) -> str:
    folder = record.guard_dir.resolve()
    if folder.name == GUARD_DIR:
        folder = folder.parent
    # work_dir/timestamp says more than either; a plain out_dir stands alone
    is_run = record.guard_dir.name == GUARD_DIR and folder.parent.name
    name = f'{folder.parent.name}/{folder.name}' if is_run else folder.name
    return clean_text(name or str(folder), 120)


def _journal_entry(row: dict[str, Any]) -> JournalEntry:
    texts = {
        name: _as_text(row.get(name))
        for name in ('time', 'actor', 'knob', 'target', 'old', 'new', 'mode', 'status')
    }
    return JournalEntry(
        step=read_int(row.get('step')),
        iteration=read_int(row.get('iteration')),
        evidence=_as_text(row.get('evidence')),
        **texts,
    )


def _as_text(value: Any) -> str:
    if value is None:
        return ''
    text = read_text(value)
    # a knob's old and new value may be a list or a dict
    return clean_text(str(read_plain(value))) if text is None else text
