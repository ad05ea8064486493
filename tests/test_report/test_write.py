from __future__ import annotations

import pytest
from test_report.run_builder import bad_run, write_run

from mmgradguard.core.errors import RunFilesError
from mmgradguard.report import html, write_report


def test_the_page_lies_beside_the_files(tmp_path):
    guard_dir = bad_run(tmp_path)
    path = write_report(guard_dir)
    assert path == guard_dir / 'report.html'
    assert path.read_text(encoding='utf-8').startswith('<!DOCTYPE html>')


def test_a_folder_without_files_gives_a_page_that_says_so(tmp_path):
    text = write_report(tmp_path / 'new').read_text(encoding='utf-8')
    assert 'No optimizer step is recorded' in text


def test_a_failed_page_leaves_the_old_one(tmp_path, monkeypatch):
    guard_dir = write_run(tmp_path)
    path = write_report(guard_dir)
    before = path.read_bytes()
    monkeypatch.setattr(html, 'summary_tiles', lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError, match='division by zero'):
        write_report(guard_dir)
    assert path.read_bytes() == before
    assert sorted(p.name for p in guard_dir.iterdir()) == ['report.html', 'steps.jsonl']


def test_steps_that_cannot_be_opened_are_an_error(tmp_path):
    (tmp_path / 'steps.jsonl').mkdir()
    with pytest.raises(RunFilesError, match='cannot be read'):
        write_report(tmp_path)
