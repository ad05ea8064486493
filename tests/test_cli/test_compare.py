from __future__ import annotations

import json

import pytest
from test_cli.log_lines import mmcv_json, mmengine_text
from test_cli.test_analyze import failure_of

from mmgradguard.cli.main import main


@pytest.fixture
def logs(tmp_path):
    texts = {
        'healthy.log': mmengine_text(60),
        'lost.log': mmengine_text(40, nan_from=30),
        'better.json': mmcv_json(60, scale=0.5),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return {name.split('.')[0]: str(tmp_path / name) for name in texts}


def test_before_and_after(logs, capsys):
    assert main(['compare', logs['lost'], logs['healthy']]) == 1
    out = ' '.join(capsys.readouterr().out.split())
    assert '- healthy.log is better in verdict (healthy against fatal).' in out
    assert 'Compared over iterations 50 to 2000, which all have (40 rows).' in out
    assert 'verdict fatal healthy' in out


def test_formats_may_differ(logs, capsys):
    assert main(['compare', logs['healthy'], logs['better'], '--json']) == 0
    data = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert [run['name'] for run in data['runs']] == ['healthy.log', 'better.json']
    assert data['common'] == {
        'first': 50,
        'last': 3000,
        'num_rows': 60,
        'unit': 'iteration',
    }
    first, second = (run['loss_tail'] for run in data['runs'])
    assert second == pytest.approx(first / 2, rel=1e-3)
    assert data['sentences'][0].startswith('better.json is better in loss at the end')


def test_markdown_and_three_runs(logs, capsys):
    assert main(['compare', *logs.values(), '--markdown', '--lang', 'zh']) == 1
    out = capsys.readouterr().out
    assert out.startswith('### \u8bad\u7ec3\u65e5\u5fd7\u5bf9\u6bd4')
    assert '|  | `healthy.log` | `lost.log` | `better.json` |' in out


def test_the_page_is_written(logs, tmp_path, capsys):
    out = tmp_path / 'compare.html'
    assert main(['compare', logs['healthy'], logs['better'], '--html', str(out)]) == 0
    assert 'Page: ' in capsys.readouterr().out
    assert 'id="chart-curve-1"' in out.read_text(encoding='utf-8')


def test_bad_usage_is_one_line(logs, tmp_path, capsys):
    assert 'required: LOG' in failure_of(capsys, 'compare', logs['healthy'])
    gone = str(tmp_path / 'gone.log')
    assert 'gone.log' in failure_of(capsys, 'compare', logs['healthy'], gone)
