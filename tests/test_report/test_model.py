from __future__ import annotations

import json

import pytest
from test_report.run_builder import (
    bad_run,
    incident_row,
    journal_row,
    step_row,
    write_run,
)

from mmgradguard.core.jsonio import dumps
from mmgradguard.report import build_report, read_run
from mmgradguard.report.model import MAX_JOURNAL


def report_of(work_dir, **run):
    write_run(work_dir, **run)
    return build_report(read_run(work_dir))


def test_a_run_without_incident_is_healthy(tmp_path):
    report = report_of(tmp_path)
    assert (report.verdict, report.is_clean) == ('healthy', True)
    assert report.worst_incident is None
    assert report.sentences[0] == 'No incident in 120 steps.'
    assert report.title == f'{tmp_path.name}/20260102_030405'


@pytest.mark.parametrize(
    ('verdicts', 'worst', 'is_clean'),
    [
        (['benign'], 'benign', True),
        (['benign', 'suspicious'], 'suspicious', False),
        (['suspicious', 'fatal', 'benign'], 'fatal', False),
    ],
)
def test_the_verdict_is_the_worst(tmp_path, verdicts, worst, is_clean):
    rows = [incident_row(i, verdict=verdict) for i, verdict in enumerate(verdicts)]
    report = report_of(tmp_path, incidents=rows)
    assert (report.verdict, report.is_clean) == (worst, is_clean)
    assert report.worst_incident.verdict == worst


def test_a_readable_incident_is_told_before_an_unreadable_one(tmp_path):
    guard_dir = write_run(tmp_path, incidents=[incident_row(9)])
    (guard_dir / 'incidents/3').mkdir()
    report = build_report(read_run(tmp_path))
    assert report.worst_incident.folder == 'incidents/9'


def test_incidents_carry_the_norm_of_their_step(tmp_path):
    bad_run(tmp_path)
    spike, nonfinite, exception = build_report(read_run(tmp_path)).incidents
    assert (spike.total_norm, spike.clip_coef) == (1e8, 1e-9)
    assert str(nonfinite.total_norm) == 'nan'
    assert exception.total_norm is None  # it has no step


def test_the_json_is_strict_and_whole(tmp_path):
    bad_run(tmp_path)
    report = build_report(read_run(tmp_path))
    data = json.loads(dumps(report.to_json()), parse_constant=pytest.fail)
    assert data['schema_version'] == 1
    assert data['verdict'] == 'suspicious'
    assert 'nan' in data['steps']['total_norm']
    assert [incident['kind'] for incident in data['incidents']] == [
        'grad_spike',
        'nonfinite_gradient',
        'exception',
    ]


def test_the_same_files_give_the_same_report(tmp_path):
    bad_run(tmp_path)
    first, second = (dumps(build_report(read_run(tmp_path)).to_json()) for _ in 'ab')
    assert first == second


def test_the_newest_journal_lines_are_kept(tmp_path):
    rows = [
        journal_row(i, old=[1, 2], evidence={'a': 1}) for i in range(MAX_JOURNAL + 3)
    ]
    report = report_of(tmp_path, journal=rows)
    assert report.num_journal == MAX_JOURNAL + 3
    assert len(report.journal) == MAX_JOURNAL
    assert report.journal[-1].step == MAX_JOURNAL + 2
    assert (report.journal[0].old, report.journal[0].evidence) == ('[1, 2]', "{'a': 1}")


def test_damage_is_a_sentence(tmp_path):
    guard_dir = write_run(tmp_path, steps=[step_row(0)])
    with open(guard_dir / 'steps.jsonl', 'a', encoding='utf-8') as file:
        file.write('x\ny\n')
    report = build_report(read_run(tmp_path))
    assert '2 lines or files could not be read in full' in report.sentences[-1]


def test_a_plain_out_dir_has_its_own_name(tmp_path):
    (tmp_path / 'steps.jsonl').write_text('')
    assert build_report(read_run(tmp_path)).title == tmp_path.name
