"""Two real gloo processes: one decision, and the rank in trouble is named."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parent / 'two_processes.py'


def free_port() -> int:
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return int(s.getsockname()[1])


def run(tmp_path: Path, scenario: str) -> list[dict[str, Any]]:
    port = str(free_port())
    processes = []
    for rank in range(2):
        env = {
            **os.environ,
            'RANK': str(rank), 'LOCAL_RANK': str(rank), 'WORLD_SIZE': '2',
            'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': port,
            'PYTHONPATH': os.pathsep.join(sys.path), 'OMP_NUM_THREADS': '1',
        }  # fmt: skip
        processes.append(
            subprocess.Popen(
                [sys.executable, str(SCRIPT), str(tmp_path), scenario],
                env=env,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    outputs = []
    try:
        outputs += [process.communicate(timeout=100)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    found = [tmp_path / f'rank{rank}.json' for rank in range(2)]
    assert all(path.exists() for path in found), [text[-3000:] for text in outputs]
    return [json.loads(path.read_text()) for path in found]


def incidents(result: dict[str, Any]) -> dict[str, Any]:
    folder = Path(result['log_dir']) / 'grad_guard' / 'incidents'
    files = folder.glob('*/incident.json')
    return {path.parent.name: json.loads(path.read_text()) for path in files}


def test_both_ranks_skip_the_step_that_one_of_them_spoiled(tmp_path: Path) -> None:
    first, second = run(tmp_path, 'nan')
    assert first['error'] == second['error'] == ''
    assert first['finite']
    assert second['finite']
    parameters = [k for k in first['sum'] if 'running' not in k]
    assert all(first['sum'][k] == second['sum'][k] for k in parameters)
    found = incidents(first)
    # rank 0 sees it after the all-reduce; rank 1 knows that its own loss was NaN
    assert set(found) == {'2', '2-rank1'}
    assert found['2-rank1']['rank'] == 1
    assert found['2-rank1']['kind'] == 'nonfinite_loss'
    assert found['2']['kind'] == 'nonfinite_gradient'
    (steps,) = Path(tmp_path).glob('*/grad_guard/steps.jsonl')
    rows = [json.loads(line) for line in steps.open()]
    assert [row['step'] for row in rows] == list(range(8))
    assert [i for i, row in enumerate(rows) if row['skipped']] == [2]


def test_under_amp_both_ranks_call_a_skip_the_same(tmp_path: Path) -> None:
    # only rank 1 knows that its loss was NaN, and that this is no search of the scale
    first, second = run(tmp_path, 'amp')
    assert first['error'] == second['error'] == ''
    assert first['iter'] == second['iter'] == 4  # stopped after three skips in a row
    (steps,) = Path(tmp_path).glob('*/grad_guard/steps.jsonl')
    reasons = [json.loads(line)['skipped'] for line in steps.open()]
    assert reasons == [None, None, 'nonfinite', 'nonfinite', 'nonfinite']


def test_watching_names_the_rank_too(tmp_path: Path) -> None:
    first, second = run(tmp_path, 'watch')
    assert not first['finite']
    assert incidents(first)['2-rank1']['rank'] == 1
    assert second['error'] == ''


def test_an_exception_on_one_rank_leaves_an_incident_of_that_rank(
    tmp_path: Path,
) -> None:
    _, second = run_until_rank_1_ends(tmp_path)
    assert second['error'] == 'RuntimeError: planted by FaultInjectionHook'
    assert incidents(second)['2-rank1']['kind'] == 'exception'


def run_until_rank_1_ends(tmp_path: Path) -> tuple[Any, dict[str, Any]]:
    # rank 0 gets an error from gloo once rank 1 is gone
    return tuple(run(tmp_path, 'raise'))  # type: ignore[return-value]


def test_skipping_exceptions_is_refused_where_ranks_would_wait(tmp_path: Path) -> None:
    for result in run(tmp_path, 'refused'):
        assert result['error'].startswith(
            'ValueError: AdaptiveClipHook: `on_exception='
        )
        assert 'this run has 2' in result['error']
        assert result['iter'] == 0


pytestmark = pytest.mark.slow
