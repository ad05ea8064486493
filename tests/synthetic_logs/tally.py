"""Runs the analyser over many synthetic logs and counts what it gets right, by kind."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from mmgradguard.logs.analysis.analyze import analyze_table
from mmgradguard.logs.read import read_log
from synthetic_logs.assemble import generate
from synthetic_logs.judge import Score, judge
from synthetic_logs.options import MAX_VALUES
from synthetic_logs.truth import KINDS, SyntheticLog

#: The four questions of a log, as attributes of a score, and all of them at once.
QUESTIONS = ('kind', 'onset', 'first_term', 'verdict')
ALL = 'is_right'


@dataclass
class Tally:
    """Right answers by kind and question, and a line for each run with a wrong one."""

    num_runs: Counter[str] = field(default_factory=Counter)
    num_right: Counter[tuple[str, str]] = field(default_factory=Counter)
    misses: dict[str, list[str]] = field(default_factory=dict)

    def add(self, log: SyntheticLog, score: Score) -> None:
        """Count a run."""
        kind = log.options.kind
        self.num_runs[kind] += 1
        for question in (*QUESTIONS, ALL):
            self.num_right[kind, question] += getattr(score, question)
        if not score.is_right:
            self.misses.setdefault(kind, []).append(describe(log, score))

    def share(self, question: str, kind: str | None = None) -> float:
        """Return the share of right answers, of one kind or of all runs."""
        kinds = list(self.num_runs) if kind is None else [kind]
        right = sum(self.num_right[k, question] for k in kinds)
        return right / max(1, sum(self.num_runs[k] for k in kinds))

    def table(self) -> str:
        """Return the shares as text, a kind a line."""
        lines = [
            f'{"kind":18s}{"runs":>6s}{"kind":>9s}{"onset":>9s}'
            f'{"term":>9s}{"verdict":>9s}{"all four":>10s}'
        ]
        for kind in [*(k for k in KINDS if self.num_runs[k]), None]:
            count = sum(self.num_runs.values()) if kind is None else self.num_runs[kind]
            shares = [self.share(q, kind) for q in (*QUESTIONS, ALL)]
            cells = ''.join(f'{100 * share:8.1f}%' for share in shares)
            lines.append(f'{kind or "all":18s}{count:6d}{cells}')
        return '\n'.join(lines)

    def miss_table(self, most: int = 10) -> str:
        """Return the runs with a wrong answer, at most `most` of a kind."""
        lines = []
        for kind, misses in self.misses.items():
            lines.append(
                f'{kind}: {len(misses)} of {self.num_runs[kind]} not all right'
            )
            lines += [f'  {miss}' for miss in misses[:most]]
        return '\n'.join(lines)


def describe(log: SyntheticLog, score: Score) -> str:
    """Return what is needed to look at a wrong answer again."""
    options, truth = log.options, log.truth
    wrong = ' '.join(q for q in QUESTIONS if not getattr(score, q))
    terms = ','.join(str(term) for term in truth.first_terms[:3])
    rows = f'{truth.earliest_row}..{truth.latest_row}'
    return (
        f'seed {options.seed} ({options.format} {options.layout} '
        f'every {options.interval} window {options.window} x{options.accumulation} '
        f'rows {options.num_rows}): wrong {wrong}; '
        f'truth {truth.kind}@{rows}({terms}) {truth.verdict}, said {score.said}'
    )


def score_log(log: SyntheticLog, folder: Path) -> Score:
    """Write a log, analyse the file, and judge the answer."""
    path = folder / log.file_name
    path.write_bytes(log.content)
    return judge(log.truth, analyze_table(read_log([str(path)])))


def tally_runs(
    seeds: range,
    folder: Path,
    max_values: int = MAX_VALUES,
    kind: str | None = None,
) -> Tally:
    """Return the tally over seeds."""
    tally = Tally()
    for seed in seeds:
        log = generate(seed, kind, max_values=max_values)
        tally.add(log, score_log(log, folder))
    return tally
