"""A small sample of the accuracy benchmark (`make accuracy` runs 2,000)."""

from __future__ import annotations

from pathlib import Path

import pytest
from synthetic_logs import FORMATS, generate, healthy_steps
from synthetic_logs.layouts import LAYOUTS
from synthetic_logs.tally import QUESTIONS, Tally, tally_runs

from mmgradguard.logs.analysis.analyze import analyze_table
from mmgradguard.logs.read import read_log

#: Not the seeds of the benchmark: what is tuned there is tried here on runs unseen.
SEEDS = range(100_000, 100_150)
BAR = 0.95
SMALL = 20_000  # values in a run


@pytest.fixture(scope='module')
def tally(tmp_path_factory: pytest.TempPathFactory) -> Tally:
    return tally_runs(SEEDS, tmp_path_factory.mktemp('accuracy'), max_values=SMALL)


@pytest.mark.parametrize('question', QUESTIONS)
def test_the_answer_is_right(tally: Tally, question: str) -> None:
    assert tally.share(question) >= BAR, f'\n{tally.table()}\n{tally.miss_table()}'


def test_healthy_steps_raise_no_alarm(tmp_path: Path) -> None:
    path = tmp_path / 'steps.jsonl'
    path.write_text('\n'.join(healthy_steps(20_000, seed=77)), encoding='utf-8')
    analysis = analyze_table(read_log([str(path)]))
    assert analysis.num_rows == 20_000
    assert analysis.events == []


def test_every_row_is_read_at_its_line(tmp_path: Path) -> None:
    seen = set()
    for seed in range(40):
        log = generate(seed, max_values=SMALL)
        path = tmp_path / log.file_name
        path.write_bytes(log.content)
        table = read_log([str(path)])
        assert tuple(table.lines) == log.lines
        names = {'loss', 'lr', *LAYOUTS[log.options.layout].terms}
        assert names <= set(table.columns)
        assert ('grad_norm' in table.columns) == log.options.has_norm
        seen.add(log.options.format)
    assert seen == set(FORMATS)
