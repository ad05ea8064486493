from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_report.run_builder import (
    HOSTILE,
    bad_run,
    hostile_run,
    incident_row,
    write_run,
)

from mmgradguard.report import build_report, read_run
from mmgradguard.report.markdown import render_markdown
from mmgradguard.report.markdown_parts import (
    MAX_LENGTH,
    shorten_path,
    shorten_paths,
)


def markdown_of(work_dir):
    return render_markdown(build_report(read_run(work_dir)))


def test_summary_incidents_and_the_worst_in_detail(tmp_path):
    bad_run(tmp_path)
    text = markdown_of(tmp_path)
    assert text.startswith('### Gradient report: suspicious\n')
    assert '| median grad_norm | 63 |' in text
    assert '| epoch 2, iteration 51 | Gradient spike |' in text
    assert '#### Non-finite gradient, epoch 2, iteration 71' in text
    assert '- module: `bbox_head.reg_ffn`' in text
    assert '| `bbox_head.fc_reg.weight` | 4x256 | 256 | 0 | nan |' in text
    assert '```python\noptim_wrapper = dict(clip_grad=dict(max_norm=0.1))\n```' in text


def test_no_user_name_leaks(tmp_path):
    row = incident_row(1, verdict='fatal')
    row['cause']['evidence'] = ['cannot open /home/alice/data/coco/1.jpg: gone']
    row['first_bad']['source'] = '/mnt/alice/code/project/models/x.py:12'
    row['advice'][0]['config'] = {'load_from': '/data/alice/runs/a/b/last.pth'}
    row['versions']['python'] = '3.11 (/home/alice/bin/python)'
    write_run(tmp_path, incidents=[row])
    text = markdown_of(tmp_path)
    assert 'alice' not in text
    assert '.../coco/train2017/000017.jpg' in text
    assert '.../project/models/x.py:12' in text
    assert str(tmp_path) not in text


@pytest.mark.parametrize(
    ('path', 'short'),
    [
        ('/home/alice/data/coco/train/1.jpg', '.../coco/train/1.jpg'),
        ('/home/alice/1.jpg', '.../1.jpg'),
        ('/home/alice', '...'),
        ('/Users/alice/x/1.jpg', '.../x/1.jpg'),
        ('/gpfs/users/alice/1.jpg', '.../1.jpg'),
        ('/scratch/alice/1.jpg', '.../1.jpg'),
        ('C:\\Users\\alice\\coco\\1.jpg', '.../coco/1.jpg'),
        ('file:///home/alice/coco/1.jpg', '.../coco/1.jpg'),
        ('data/coco/1.jpg', 'data/coco/1.jpg'),
        ('a/b/c/d/1.jpg', '.../c/d/1.jpg'),
        ('1.jpg', '1.jpg'),
    ],
)
def test_paths_keep_their_last_parts(path, short):
    assert shorten_path(path) == short


@pytest.mark.parametrize(
    'text', ['lr x 1/2', 'mmdet/models/x.py:12', 'https://example.org/a/b/c', 'and/or']
)
def test_what_is_no_absolute_path_stays(text):
    assert shorten_paths(text) == text


@given(st.text(alphabet='ab/\\:. ~@`|"\n', max_size=60))
def test_a_home_in_any_text_is_shortened(noise):
    assert 'secretuser' not in shorten_paths(
        f'{noise} /home/secretuser/x/y.jpg {noise}'
    )


@pytest.mark.parametrize('text', HOSTILE, ids=range(len(HOSTILE)))
def test_no_string_breaks_a_table_or_becomes_markup(tmp_path, text):
    hostile_run(tmp_path, text)
    shown = markdown_of(tmp_path)
    assert len(shown) < MAX_LENGTH + 1
    outside = re.sub(r'(?ms)^(`{3,})python$.*?^\1$', '', shown)
    assert '<script' not in outside
    assert '</script' not in outside
    assert not re.search(r'@\w', re.sub('<code>.*?</code>', '', outside))
    width = 0
    for line in outside.splitlines():
        if not line.startswith('|'):
            width = 0
            continue
        assert line.endswith('|')
        width = width or line.count('|')
        assert line.count('|') == width  # a pipe in a string is an entity
        assert re.sub('`[^`|]+`', '', line).count('`') == 0


def test_a_fence_is_longer_than_any_in_its_code(tmp_path):
    row = incident_row(1)
    row['advice'][0]['config'] = {'a': '```', 'b': '````\n```'}
    write_run(tmp_path, incidents=[row])
    assert '\n`````python\n' in markdown_of(tmp_path)


def test_a_long_report_is_cut_at_a_line(tmp_path):
    rows = [incident_row(i) for i in range(40)]
    text = '<|>' * 200
    for row in rows:
        row['kind'] = row['action'] = row['first_bad']['module'] = text
        row['cause']['evidence'] = [text] * 20
        row['advice'] = [{'text': text, 'config': {'a': text}}] * 20
    write_run(tmp_path, incidents=rows)
    shown = markdown_of(tmp_path)
    assert 0.8 * MAX_LENGTH < len(shown) < MAX_LENGTH
    assert shown.endswith('... cut here; the rest is in report.html\n')
    assert len(re.findall('(?m)^```', shown)) % 2 == 0


def test_an_empty_run_says_so(tmp_path):
    write_run(tmp_path, steps=[])
    assert 'No optimizer step is recorded' in markdown_of(tmp_path)
