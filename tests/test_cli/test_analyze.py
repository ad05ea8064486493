from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_cli.failures import failure_of
from test_cli.log_lines import mmcv_json, mmengine_text
from test_report.html_page import Page
from test_report.run_builder import HOSTILE

from mmgradguard.cli.main import main

#: (arguments of `mmengine_text`, verdict, exit status)
RUNS = {
    'healthy': (dict(), 'healthy', 0),
    'spike': (dict(spikes=(30,)), 'benign', 0),
    'lost': (dict(nan_from=30), 'fatal', 1),
}


@pytest.fixture
def log(tmp_path):
    def write(**options):
        path = tmp_path / 'run.log'
        path.write_text(mmengine_text(**options))
        return str(path)

    return write


@pytest.mark.parametrize('name', RUNS)
@pytest.mark.parametrize('output', [[], ['--json'], ['--markdown'], ['--lang', 'zh']])
def test_the_exit_status_is_the_verdict(log, capsys, name, output):
    options, verdict, status = RUNS[name]
    assert main(['analyze', log(**options), *output]) == status
    streams = capsys.readouterr()
    assert streams.err == ''
    if '--lang' not in output:
        assert verdict in streams.out.lower()


def test_the_page_of_a_spike(log, capsys):
    path = log(spikes=(30,))
    main(['analyze', path])
    out = ' '.join(capsys.readouterr().out.split())
    assert f'{path} benign' in out
    assert 'line 31, epoch 2, iteration 550' in out
    assert 'grad_norm had one step of about 1.6e9 (printed as a mean of 3.11e7' in out
    assert 'training rows 60' in out
    assert 'span [1][50] - [3][1000]' in out


def test_json_is_the_contract(log, capsys):
    assert main(['analyze', log(nan_from=30), '--json']) == 1
    out = capsys.readouterr().out
    data = json.loads(out, parse_constant=pytest.fail)
    assert out.isascii()
    assert (data['verdict'], data['num_rows'], data['rows_lost']) == ('fatal', 60, 30)
    assert data['format'] == 'mmengine_text'
    first = data['first_anomaly']
    assert (first['kind'], first['line'], first['last_line']) == ('nan_sticks', 31, 60)
    assert (first['epoch'], first['iteration']) == (2, 550)
    assert first['recovered'] is False
    assert data['hours_lost'] == pytest.approx(30 * 50 * 0.5 / 3600, rel=0.1)
    assert all(advice['text'] for advice in data['advice'])


def test_markdown_names_nobody(tmp_path, capsys):
    folder = tmp_path / 'home' / 'alice' / 'detr'
    folder.mkdir(parents=True)
    (folder / 'run.log').write_text(mmengine_text(nan_from=30))
    main(['analyze', str(folder / 'run.log'), '--markdown'])
    out = capsys.readouterr().out
    assert out.startswith('### Training log: fatal\n')
    assert 'alice' not in out
    assert str(tmp_path) not in out


def test_the_html_page_goes_where_it_is_sent(log, tmp_path, capsys):
    out = tmp_path / 'new' / 'page.html'
    assert main(['analyze', log(spikes=(30,)), '--html', str(out)]) == 0
    assert f'Page: {out}' in capsys.readouterr().out.replace('\n', '')
    page = out.read_text(encoding='utf-8')
    assert 'one step of about 1.6e9' in page
    assert 'id="chart-norm"' in page
    main(['analyze', log(), '--html', str(tmp_path), '--json'])
    assert 'Page:' not in capsys.readouterr().out
    assert (tmp_path / 'log.html').exists()


def test_a_page_that_cannot_be_written_is_one_line(log, tmp_path, capsys):
    (tmp_path / 'file').write_text('')
    line = failure_of(capsys, 'analyze', log(), '--html', f'{tmp_path}/file/page.html')
    assert 'cannot be written' in line


@pytest.mark.parametrize('module', ['plotly.offline', 'jinja2'])
def test_a_missing_package_costs_only_the_page(log, capsys, monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    assert 'pip install' in failure_of(capsys, 'analyze', log(), '--html', 'x.html')
    assert main(['analyze', log()]) == 0


def test_stdin_is_read(capsys, monkeypatch):
    stdin = io.TextIOWrapper(io.BytesIO(mmengine_text().encode()))
    monkeypatch.setattr(sys, 'stdin', stdin)
    assert main(['-', '--json']) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data['source'], data['num_rows']) == ('-', 60)


def test_several_files_are_one_run(tmp_path, capsys):
    lines = mmengine_text(nan_from=45).splitlines(keepends=True)
    (tmp_path / 'one.log').write_text(''.join(lines[:30]))
    (tmp_path / 'two.log').write_text(''.join(lines[30:]))
    paths = [str(tmp_path / 'one.log'), str(tmp_path / 'two.log')]
    assert main(['analyze', *paths, '--json']) == 1
    data = json.loads(capsys.readouterr().out)
    assert data['num_rows'] == 60
    assert data['first_anomaly']['file'].endswith('two.log')
    assert data['first_anomaly']['line'] == 16
    main(['analyze', *paths])
    assert 'two.log, line 16' in capsys.readouterr().out


def test_a_work_directory_is_read(tmp_path, capsys):
    run = tmp_path / '20250409_130000'
    run.mkdir()
    (run / '20250409_130000.log').write_text(mmengine_text(nan_from=30))
    assert main([str(tmp_path)]) == 1
    assert '20250409_130000.log, line 31' in capsys.readouterr().out


@pytest.mark.parametrize('content', ['', 'hello\n', '\x00\x01\x02' * 100])
def test_what_is_no_log_is_one_line(tmp_path, capsys, content):
    path = tmp_path / 'x.log'
    path.write_text(content)
    assert 'x.log' in failure_of(capsys, 'analyze', str(path))
    assert 'x.log' in failure_of(capsys, str(path))


def test_bad_usage_is_one_line(tmp_path, capsys):
    assert 'required: LOG' in failure_of(capsys, 'analyze')
    gone = str(tmp_path / 'gone.log')
    assert 'gone.log' in failure_of(capsys, 'analyze', gone)
    assert 'neither a path that exists' in failure_of(capsys, gone)
    assert 'invalid choice' in failure_of(capsys, 'analyze', gone, '--lang', 'tlh')
    both = ('analyze', gone, '--json', '--markdown')
    assert 'not allowed with' in failure_of(capsys, *both)
    assert failure_of(capsys, str(tmp_path))


def test_a_config_is_named_as_what_it_is(tmp_path, capsys):
    path = tmp_path / 'detr.py'
    path.write_text("_base_ = './x.py'\nmodel = dict(type='DETR')\n")
    assert 'a config, which no verb reads' in failure_of(capsys, str(path))


def test_a_log_alone_is_recognised_by_content(tmp_path, capsys):
    for name, text in (('a.txt', mmengine_text()), ('b', mmcv_json())):
        (tmp_path / name).write_text(text)
        assert main([str(tmp_path / name)]) == 0
        assert 'training rows' in capsys.readouterr().out


def test_a_checkpoint_needs_torch_and_says_so(tmp_path, capsys, monkeypatch):
    import importlib.util

    path = tmp_path / 'iter_1.pth'
    path.write_bytes(b'PK\x03\x04' + b'\x00' * 200)
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        'find_spec',
        lambda name, *rest: None if name == 'torch' else find_spec(name, *rest),
    )
    line = failure_of(capsys, 'analyze', str(path))
    assert 'a checkpoint is read with torch, which is not installed' in line


@pytest.mark.parametrize('content', [b'PK\x03\x04', b'\x80\x02', b'PK' + b'\x03' * 999])
def test_a_damaged_checkpoint_is_one_line(tmp_path, capsys, content):
    path = tmp_path / 'iter_1.pth'
    path.write_bytes(content)
    assert 'iter_1.pth' in failure_of(capsys, 'analyze', str(path))


@pytest.mark.parametrize('output', [[], ['--json'], ['--markdown']])
@pytest.mark.parametrize('lang', ['en', 'zh'])
def test_any_page_is_printed_in_an_ascii_locale(log, monkeypatch, output, lang):
    stream = io.TextIOWrapper(io.BytesIO(), encoding='ascii')
    monkeypatch.setattr(sys, 'stdout', stream)
    assert main(['analyze', log(nan_from=30), '--lang', lang, *output]) == 1
    assert stream.buffer.getvalue().decode('ascii')


def test_it_runs_as_a_module(log):
    command = [sys.executable, '-m', 'mmgradguard', log(nan_from=30)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, '')
    assert 'Fatal: from line 31' in done.stdout


@settings(
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.binary(max_size=300),
    st.integers(0, 4000),
    st.sampled_from([[], ['--json'], ['--markdown'], ['--lang', 'zh']]),
)
def test_any_bytes_end_in_a_known_status(tmp_path, noise, place, output):
    text = mmengine_text(20, spikes=(12,)).encode()
    path = tmp_path / 'run.log'
    path.write_bytes(text[:place] + noise + text[place:])
    assert main(['analyze', str(path), *output]) in (0, 1, 2)
    assert main(['compare', str(path), str(path), *output]) in (0, 1, 2)
    path.write_bytes(noise)
    assert main([str(path), *output]) in (0, 1, 2)


@pytest.mark.parametrize('name', HOSTILE, ids=range(len(HOSTILE)))
def test_a_term_of_any_name_is_shown(tmp_path, capsys, name):
    rows = []
    for row in range(60):
        loss = 1e9 if row == 30 else 1.0
        values = {'epoch': 1, 'iter': 50 * (row + 1), 'lr': 1e-4, 'mode': 'train'}
        rows.append({**values, f'loss_{name}': loss, 'loss': loss + 1})
    path = tmp_path / 'run.log.json'
    path.write_text('\n'.join(map(json.dumps, rows)))
    page = tmp_path / 'page.html'
    for output in ([], ['--markdown'], ['--json'], ['--html', str(page)]):
        assert main(['analyze', str(path), *output]) in (0, 1)
        out = capsys.readouterr().out
        assert '\x1b' not in out
        assert '<script' not in out or output != ['--markdown']
    assert Page(page.read_text(encoding='utf-8')).tags.count('script') == 3


@pytest.mark.parametrize('verb', ['analyze', 'report', 'incident', 'compare'])
def test_an_empty_path_is_named_as_one(capsys, log, verb):
    more = [log()] if verb == 'compare' else []
    assert 'the path is empty' in failure_of(capsys, verb, '', *more)


@pytest.mark.parametrize('verb', ['analyze', 'compare'])
def test_a_page_never_overwrites_what_is_no_page(tmp_path, capsys, log, verb):
    path = log()
    before = Path(path).read_bytes()
    logs = [path] if verb == 'analyze' else [path, path]
    (tmp_path / 'link.html').symlink_to(path)
    for out in (path, str(tmp_path / 'link.html')):
        assert 'is no HTML page' in failure_of(capsys, verb, *logs, '--html', out)
        assert Path(path).read_bytes() == before
    for out in ('', '-'):
        assert '--html needs a file' in failure_of(capsys, verb, *logs, '--html', out)
    os.mkfifo(tmp_path / 'pipe')
    assert 'is no HTML page' in failure_of(
        capsys, verb, *logs, '--html', str(tmp_path / 'pipe')
    )


def test_a_page_replaces_a_page_behind_a_link(tmp_path, log):
    page, link = tmp_path / 'page.html', tmp_path / 'link.html'
    page.write_text('<!DOCTYPE html>old')
    link.symlink_to(page)
    assert main(['analyze', log(), '--html', str(link)]) == 0
    assert link.is_symlink()
    assert 'old' not in page.read_text()[:40]


def test_an_older_run_is_not_taken_for_the_newest(tmp_path, capsys):
    for name, text in (('20250101_000000', mmengine_text(30)), ('20250102_000000', '')):
        (tmp_path / name).mkdir()
        (tmp_path / name / f'{name}.log').write_text(text or 'only a header\n')
    assert main(['analyze', str(tmp_path)]) == 0
    shown = ' '.join(capsys.readouterr().out.split())
    assert '1 newer run in this folder could not be read' in shown
    assert '20250101_000000.log' in shown
