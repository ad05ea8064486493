from __future__ import annotations

import json
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_report.run_builder import (
    bad_run,
    incident_row,
    journal_row,
    step_row,
    write_incident,
    write_run,
)

from mmgradguard.core.errors import RunFilesError
from mmgradguard.report import run_files
from mmgradguard.report.model import build_report
from mmgradguard.report.run_files import read_guard_dir, read_run
from mmgradguard.report.run_folders import find_guard_dir

REUSE = settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.parametrize('part', ['', '20260102_030405', '20260102_030405/grad_guard'])
def test_a_run_is_found_from_each_of_its_folders(tmp_path, part):
    guard_dir = write_run(tmp_path)
    assert find_guard_dir(tmp_path / part) == guard_dir


def test_a_plain_out_dir_is_found(tmp_path):
    (tmp_path / 'steps.jsonl').write_text('')
    assert find_guard_dir(str(tmp_path)) == tmp_path


def test_the_newest_run_is_read_and_the_others_are_mentioned(tmp_path):
    old = write_run(tmp_path, timestamp='20250101_000000')
    new = write_run(tmp_path, timestamp='20260101_000000')
    (tmp_path / '20270101_000000').mkdir()  # a newer run without guard files
    os.utime(old.parent)  # a copied folder has a new mtime: the name decides
    record = read_run(tmp_path)
    assert record.guard_dir == new
    assert record.other_runs == [old]
    assert (
        '1 older run not shown: 20250101_000000' in build_report(record).sentences[-1]
    )


def test_a_dated_run_goes_before_a_folder_of_another_name(tmp_path):
    write_run(tmp_path, timestamp='zzz')
    dated = write_run(tmp_path, timestamp='20260101_000000')
    assert find_guard_dir(tmp_path) == dated


def test_a_folder_without_guard_files_is_named_with_what_was_looked_for(tmp_path):
    with pytest.raises(RunFilesError, match=r'steps\.jsonl.*<timestamp>') as error:
        find_guard_dir(tmp_path)
    assert str(tmp_path) in str(error.value)


def test_a_run_that_ended_before_its_first_step_is_found_by_its_page(tmp_path):
    (tmp_path / 'grad_guard').mkdir()
    for folder in (tmp_path, tmp_path / 'grad_guard'):
        (folder / 'report.html').write_text('')
    assert find_guard_dir(tmp_path) == tmp_path / 'grad_guard'
    (tmp_path / 'grad_guard/report.html').unlink()
    with pytest.raises(RunFilesError, match='no guard files'):  # anybody's page
        find_guard_dir(tmp_path)


def test_a_missing_path_a_file_and_a_nul_are_refused(tmp_path):
    with pytest.raises(RunFilesError, match='no such file'):
        find_guard_dir(tmp_path / 'gone')
    (tmp_path / 'file').write_text('')
    with pytest.raises(RunFilesError, match='not a directory'):
        find_guard_dir(tmp_path / 'file')
    with pytest.raises(RunFilesError, match=r'cannot be read|no such file'):
        find_guard_dir('a\0b')


def test_steps_that_cannot_be_opened_are_an_error(tmp_path):
    (tmp_path / 'steps.jsonl').mkdir()
    with pytest.raises(RunFilesError, match=r'steps\.jsonl: cannot be read'):
        read_guard_dir(tmp_path)


def test_everything_is_read(tmp_path):
    record = read_run(bad_run(tmp_path).parent)
    assert len(record.steps) == 119
    assert [incident.iteration for incident in record.incidents] == [50, 70, 90]
    assert [entry['knob'] for entry in record.journal] == ['max_norm']
    assert (record.num_damaged, record.problems) == (0, [])


def test_a_cut_last_line_is_counted_and_the_rest_is_kept(tmp_path):
    guard_dir = write_run(tmp_path)
    path = guard_dir / 'steps.jsonl'
    path.write_bytes(path.read_bytes()[:-30])
    record = read_run(tmp_path)
    assert len(record.steps) == 119
    assert record.num_damaged == 1
    assert record.problems == ['steps.jsonl: 1 damaged line left out']


@pytest.mark.parametrize(
    'line',
    [
        '[1]',
        '{}',
        '{"step": 1}',
        '[' * 100_000,
        '{"a":' * 100_000,
        '\xff\xfe',
        json.dumps(step_row(1, total_norm=None)),
        json.dumps(step_row(1, total_norm=-1.0)),
        json.dumps(step_row(1, total_norm='large')),
        json.dumps(step_row(1, total_norm=10**400)),
        json.dumps(step_row(1, step=float('inf'))),
        json.dumps(step_row(1, epoch=10**30)),
        json.dumps(step_row(1, iteration=-1)),
        json.dumps(step_row(1, skipped=['spike'])),
        json.dumps(step_row(1, skipped='other')),
        json.dumps(step_row(1, losses=[1, 2])),
        json.dumps(step_row(1, losses={'a': {}})),
        json.dumps(step_row(1, module_norms='x')),
        json.dumps(step_row(1, clip_coef=[])),
    ],
)
def test_a_line_that_is_no_step_is_counted(tmp_path, line):
    guard_dir = write_run(tmp_path, steps=[step_row(0)])
    with open(guard_dir / 'steps.jsonl', 'a', encoding='utf-8') as file:
        file.write(line + '\n' + json.dumps(step_row(2)) + '\n')
    record = read_run(tmp_path)
    assert [sample.step for sample in record.steps] == [0, 2]
    assert record.num_damaged == 1


def test_a_file_without_line_ends_is_not_read_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(run_files, 'MAX_LINE_BYTES', 1000)
    guard_dir = write_run(tmp_path, steps=[])
    row = json.dumps(step_row(2)).encode()
    (guard_dir / 'steps.jsonl').write_bytes(b'x' * 2500 + b'\n' + row)
    record = read_run(tmp_path)
    assert [sample.step for sample in record.steps] == [2]
    assert record.num_damaged == 3


def test_null_numbers_of_a_step_are_tolerated(tmp_path):
    row = step_row(0, clip_coef=None, max_norm=None, lr=None, losses={'loss': None})
    write_run(tmp_path, steps=[row])
    (sample,) = read_run(tmp_path).steps
    assert (sample.clip_coef, sample.losses) == (1.0, {})


def test_a_damaged_journal_line_is_counted(tmp_path):
    guard_dir = write_run(tmp_path, journal=[journal_row(1)])
    with open(guard_dir / 'journal.jsonl', 'a', encoding='utf-8') as file:
        file.write('{"cut": ')
    record = read_run(tmp_path)
    assert len(record.journal) == 1
    assert record.problems == ['journal.jsonl: 1 damaged line left out']


@pytest.mark.parametrize(
    ('content', 'problem'),
    [
        (b'', 'is empty'),
        (b'{"cut": ', 'is damaged'),
        (b'[1, 2]', 'is damaged'),
        (b'\xff\x00', 'is damaged'),
        (b'[' * 100_000, 'is damaged'),
        (b' ' * 5000, 'too large'),
    ],
)
def test_a_damaged_incident_is_suspicious_and_mentioned(
    tmp_path, monkeypatch, content, problem
):
    guard_dir = write_run(tmp_path)
    folder = write_incident(guard_dir, incident_row(7), name='7-rank2')
    (folder / 'incident.json').write_bytes(content)
    if problem == 'too large':
        monkeypatch.setattr(run_files, 'MAX_INCIDENT_BYTES', 4999)
    record = read_run(tmp_path)
    (incident,) = record.incidents
    assert (incident.iteration, incident.rank) == (7, 2)
    assert incident.verdict == 'suspicious'
    assert record.num_damaged == 1
    assert record.problems[0].startswith('incidents/7-rank2: incident.json')
    assert problem in record.problems[0]


def test_an_incident_without_its_file_is_mentioned(tmp_path):
    guard_dir = write_run(tmp_path)
    (guard_dir / 'incidents/12/bundle').mkdir(parents=True)
    (guard_dir / 'incidents/.13').mkdir()  # one that is being written
    record = read_run(tmp_path)
    assert record.problems == ['incidents/12: incident.json is missing']


def test_incidents_are_in_the_order_of_the_run(tmp_path):
    guard_dir = write_run(tmp_path)
    for name in ('100', '20', '20-rank1', 'strange'):
        write_incident(guard_dir, incident_row(1), name=name)
    names = [incident.folder for incident in read_run(tmp_path).incidents]
    expected = ['20', '20-rank1', '100', 'strange']
    assert names == [f'incidents/{name}' for name in expected]


@REUSE
@given(st.binary(max_size=300), st.integers(0, 400))
def test_any_bytes_in_steps_give_a_report(tmp_path, noise, at):
    good = ''.join(json.dumps(step_row(i)) + '\n' for i in range(3)).encode()
    (tmp_path / 'steps.jsonl').write_bytes(good[:at] + noise + good[at:])
    record = read_guard_dir(tmp_path)
    assert len(record.steps) <= 3
    assert build_report(record).verdict == 'healthy'
