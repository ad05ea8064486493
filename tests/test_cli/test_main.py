from __future__ import annotations

import io
import json
import os
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_cli.failures import failure_of
from test_cli.log_lines import mmengine_text
from test_report.run_builder import (
    HOSTILE,
    bad_run,
    hostile_run,
    incident_row,
    step_row,
    write_incident,
    write_run,
)

from mmgradguard import __version__
from mmgradguard.cli.main import main


@pytest.mark.parametrize(
    ('verdict', 'status'),
    [(None, 0), ('benign', 0), ('suspicious', 1), ('fatal', 1)],
)
def test_the_exit_status_is_the_verdict(tmp_path, capsys, verdict, status):
    rows = [] if verdict is None else [incident_row(3, verdict=verdict)]
    write_run(tmp_path, incidents=rows)
    assert main(['report', str(tmp_path)]) == status
    assert (verdict or 'healthy') in capsys.readouterr().out


def test_report_rebuilds_the_page_and_prints_the_same(tmp_path, capsys):
    guard_dir = bad_run(tmp_path)
    (guard_dir / 'report.html').write_text('old')
    assert main(['report', str(tmp_path)]) == 1
    streams = capsys.readouterr()
    page = guard_dir / 'report.html'
    assert 'bbox_head.reg_ffn' in page.read_text(encoding='utf-8')
    assert 'bbox_head.reg_ffn' in streams.out
    assert f'Page: {page}' in streams.out
    assert streams.err == ''


def test_no_html_writes_nothing(tmp_path, capsys):
    guard_dir = bad_run(tmp_path)
    before = sorted(guard_dir.rglob('*'))
    assert main(['report', str(tmp_path), '--no-html']) == 1
    assert sorted(guard_dir.rglob('*')) == before
    assert 'Page:' not in capsys.readouterr().out


def test_the_page_goes_where_it_is_sent(tmp_path, capsys):
    guard_dir = bad_run(tmp_path / 'run')
    out = tmp_path / 'new' / 'page.html'
    main(['report', str(tmp_path / 'run'), '--html', str(out)])
    main(['report', str(tmp_path / 'run'), '--html', str(tmp_path)])
    assert out.exists()
    assert (tmp_path / 'report.html').exists()
    assert not (guard_dir / 'report.html').exists()
    assert str(out) in capsys.readouterr().out


def test_a_page_that_cannot_be_written_still_prints_the_report(tmp_path, capsys):
    guard_dir = bad_run(tmp_path)
    (guard_dir / 'report.html/report.html').mkdir(parents=True)
    assert main(['report', str(tmp_path)]) == 1
    streams = capsys.readouterr()
    assert '3 incidents' in streams.out
    assert streams.err.startswith('mmgradguard: no page: ')
    assert streams.err.count('\n') == 1


def test_a_page_that_was_asked_for_and_cannot_be_written_is_an_error(tmp_path, capsys):
    bad_run(tmp_path)
    (tmp_path / 'file').write_text('')
    line = failure_of(
        capsys, 'report', str(tmp_path), '--html', str(tmp_path / 'file/page.html')
    )
    assert 'cannot be written' in line


def test_a_missing_plotly_costs_only_the_page(tmp_path, capsys, monkeypatch):
    bad_run(tmp_path)
    monkeypatch.setitem(sys.modules, 'plotly.offline', None)
    assert main(['report', str(tmp_path)]) == 1
    streams = capsys.readouterr()
    assert '3 incidents' in streams.out
    assert 'pip install plotly' in streams.err


def test_a_missing_rich_costs_only_the_colours(tmp_path, capsys, monkeypatch):
    bad_run(tmp_path)
    monkeypatch.setitem(sys.modules, 'rich.console', None)
    assert main(['report', str(tmp_path), '--no-html']) == 1
    streams = capsys.readouterr()
    assert '3 incidents' in streams.out
    assert streams.err == ''


def test_json_is_strict(tmp_path, capsys):
    bad_run(tmp_path)
    assert main(['report', str(tmp_path), '--json', '--no-html']) == 1
    out = capsys.readouterr().out
    data = json.loads(out, parse_constant=pytest.fail)
    assert (data['schema_version'], data['verdict']) == (1, 'suspicious')
    assert data['summary']['largest_norm'] == 1e8
    assert out.isascii()


def test_markdown_is_printed(tmp_path, capsys):
    bad_run(tmp_path)
    assert main(['report', str(tmp_path), '--markdown', '--no-html']) == 1
    assert capsys.readouterr().out.startswith('### Gradient report: suspicious')


def test_a_folder_is_recognised_by_content(tmp_path, capsys):
    guard_dir = bad_run(tmp_path)
    for folder in (tmp_path, guard_dir.parent, guard_dir):
        assert main([str(folder), '--no-html']) == 1
        assert '3 incidents' in capsys.readouterr().out


@pytest.mark.parametrize('name', ['', 'incident.json'])
def test_an_incident_is_recognised_by_content(tmp_path, capsys, name):
    folder = bad_run(tmp_path) / 'incidents/70'
    assert main([str(folder / name)]) == 1
    out = capsys.readouterr().out
    assert 'Non-finite gradient, epoch 2, iteration 71' in out
    assert '3 incidents' not in out
    assert main(['incident', str(folder / name), '--json']) == 1
    assert json.loads(capsys.readouterr().out)['kind'] == 'nonfinite_gradient'


def test_a_benign_incident_is_clean(tmp_path, capsys):
    folder = bad_run(tmp_path) / 'incidents/50'
    assert main([str(folder)]) == 0
    assert 'benign' in capsys.readouterr().out


@pytest.mark.parametrize('content', ['', '{', '[]', '{}', '{"a": 1}'])
def test_a_damaged_incident_alone_is_unreadable_input(tmp_path, capsys, content):
    folder = write_incident(tmp_path, incident_row(1))
    (folder / 'incident.json').write_text(content)
    assert 'not an incident' in failure_of(capsys, str(folder))


def test_bad_usage_is_one_line(tmp_path, capsys):
    assert 'a verb or a PATH is needed' in failure_of(capsys)
    assert 'nor a verb; verbs: analyze' in failure_of(capsys, 'reprot')
    assert 'required: WORK_DIR' in failure_of(capsys, 'report')
    assert 'no such file' in failure_of(capsys, 'report', str(tmp_path / 'gone'))
    assert 'a directory without runs' in failure_of(capsys, str(tmp_path))
    assert 'no guard files' in failure_of(capsys, 'report', str(tmp_path))
    assert '--nope' in failure_of(capsys, 'report', str(tmp_path), '--nope')
    both = ('report', str(tmp_path), '--json', '--markdown')
    assert 'not allowed with' in failure_of(capsys, *both)
    assert 'neither a path that exists' in failure_of(capsys, 'a\0b\n\x1b[31m')
    assert 'incident.json is missing' in failure_of(capsys, 'incident', str(tmp_path))


def test_steps_that_cannot_be_opened_are_one_line(tmp_path, capsys):
    (tmp_path / 'steps.jsonl').mkdir()
    assert 'steps.jsonl: cannot be read' in failure_of(capsys, str(tmp_path))


def test_version_and_help(capsys):
    assert main(['--version']) == 0
    assert capsys.readouterr().out == f'{__version__}\n'
    for argv in (['--help'], ['report', '--help']):
        assert main(argv) == 0
        assert 'usage: mmgradguard' in capsys.readouterr().out


def test_it_runs_as_a_module(tmp_path):
    bad_run(tmp_path)
    command = [sys.executable, '-m', 'mmgradguard', str(tmp_path), '--no-html']
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, '')
    assert '3 incidents' in done.stdout


@pytest.mark.parametrize('text', HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize('output', [[], ['--json'], ['--markdown']])
def test_any_text_is_printed_in_an_ascii_locale(tmp_path, monkeypatch, text, output):
    hostile_run(tmp_path, text)
    stream = io.TextIOWrapper(io.BytesIO(), encoding='ascii')
    monkeypatch.setattr(sys, 'stdout', stream)
    assert main(['report', str(tmp_path), '--no-html', *output]) == 1
    shown = stream.buffer.getvalue().decode('ascii')
    assert '\x1b' not in shown
    if output == ['--json']:
        assert json.loads(shown)['verdict'] == 'fatal'


def test_a_reader_that_goes_away_is_no_error(tmp_path):
    bad_run(tmp_path)
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, '-m', 'mmgradguard', 'report', str(tmp_path), '--json']
    done = subprocess.run(
        command, stdout=write, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (1, '')


VERBS = ('analyze', 'compare', 'report', 'incident')


@pytest.fixture
def words_of(tmp_path):
    """Return the words of a command that prints, by its verb."""
    folder = bad_run(tmp_path)
    log = tmp_path / 'a.log'
    log.write_text(mmengine_text(30))
    return {
        'analyze': ['analyze', str(log)],
        'compare': ['compare', str(log), str(log)],
        'report': ['report', str(tmp_path), '--no-html'],
        'incident': ['incident', str(folder / 'incidents/70')],
    }


@pytest.mark.parametrize('verb', VERBS)
@pytest.mark.parametrize('output', [[], ['--json']])
def test_a_closed_stdout_is_one_line(words_of, monkeypatch, capsys, verb, output):
    monkeypatch.setattr(sys, 'stdout', None)
    assert main([*words_of[verb], *output]) == 2
    line = capsys.readouterr().err
    assert line == 'mmgradguard: stdout: cannot be written (it is closed)\n'


@pytest.mark.parametrize('verb', [*VERBS, 'help'])
def test_a_stdout_that_takes_nothing_is_one_line(words_of, tmp_path, verb):
    command = [sys.executable, '-m', 'mmgradguard', *words_of.get(verb, ['--help'])]
    (tmp_path / 'full').write_text('')
    with open(tmp_path / 'full', 'rb') as full:  # opened to be read: no write succeeds
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert done.stderr.startswith('mmgradguard: stdout: cannot be written (')
    assert done.stderr.count('\n') == 1


def test_a_full_disk_is_one_line_and_not_written_again(words_of, monkeypatch, capsys):
    class Full(io.StringIO):
        def flush(self):
            raise OSError(28, 'No space left on device')

    monkeypatch.setattr(sys, 'stdout', Full())
    assert main(words_of['analyze']) == 2
    line = capsys.readouterr().err
    assert line == (
        'mmgradguard: stdout: cannot be written (No space left on device)\n'
    )
    monkeypatch.setattr(sys, 'stderr', Full())
    assert main(words_of['analyze']) == 2
    monkeypatch.setattr(sys, 'stderr', None)
    assert main(words_of['analyze']) == 2


@settings(
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.binary(max_size=200), st.binary(max_size=200), st.booleans())
def test_any_bytes_in_the_files_end_in_a_known_status(tmp_path, steps, incident, cut):
    guard_dir = tmp_path / 'grad_guard'
    folder = guard_dir / 'incidents/3'
    folder.mkdir(parents=True, exist_ok=True)
    row = json.dumps(step_row(0)).encode()
    (guard_dir / 'steps.jsonl').write_bytes(row + b'\n' * cut + steps)
    whole = json.dumps(incident_row(3)).encode()
    (folder / 'incident.json').write_bytes(whole[: len(incident) * 5] + incident)
    assert main(['report', str(tmp_path), '--no-html']) in (0, 1)
    assert main([str(folder)]) in (0, 1, 2)


@pytest.mark.parametrize('words', [[''], ['report', ''], ['incident', '']])
def test_an_empty_path_is_refused(capsys, monkeypatch, tmp_path, words):
    # pathlib takes it for the current folder, which may hold a run by chance
    write_incident(write_run(tmp_path), incident_row(1))
    monkeypatch.chdir(tmp_path / '20260102_030405' / 'grad_guard' / 'incidents' / '1')
    assert 'the path is empty' in failure_of(capsys, *words)
    monkeypatch.chdir(tmp_path)
    assert 'the path is empty' in failure_of(capsys, *words)


def test_a_folder_above_the_run_is_told_where_it_is(tmp_path, capsys):
    write_run(tmp_path / 'work_dirs' / 'dino')
    write_run(tmp_path / 'work_dirs' / 'detr')
    (tmp_path / 'work_dirs' / 'empty').mkdir()
    text = failure_of(capsys, 'report', str(tmp_path / 'work_dirs'))
    folder = tmp_path / 'work_dirs'
    assert text.endswith(
        f'There are some below: {folder / "detr"}, {folder / "dino"}\n'
    )
    assert 'There are some below' not in failure_of(
        capsys, 'report', str(folder / 'empty')
    )


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        ('', 'steps.jsonl is empty'),
        ('{"step": 0, "ite\n\x00\x00\n[]\n', 'every line of steps.jsonl is damaged'),
    ],
)
def test_steps_that_cannot_be_read_are_no_healthy_run(tmp_path, capsys, text, words):
    (tmp_path / 'steps.jsonl').write_text(text)
    assert main(['report', str(tmp_path), '--no-html']) == 1
    out = ' '.join(capsys.readouterr().out.split())
    assert words in out
    assert 'before the first' not in out
    assert 'healthy' not in out
