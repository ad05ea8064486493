"""The demo in a shortened form: three faults planted in a real DETR, three found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.mmdet, pytest.mark.slow]
ROOT = Path(__file__).parents[2]


def test_three_of_three(tmp_path: Path) -> None:
    result = subprocess.run(
        [
            sys.executable, str(ROOT / 'tools' / 'run_demo.py'),
            '--short', '--out', str(tmp_path),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, 'OMP_NUM_THREADS': '1'},
        timeout=500,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-3000:]
    assert '3 of 3 with the right module or sample' in result.stdout
    (guarded,) = tmp_path.glob('guarded/*/grad_guard')
    found = {}
    for path in guarded.glob('incidents/*/incident.json'):
        incident = json.loads(path.read_text())
        found.setdefault(incident['kind'], []).append(incident)
    (spike,) = found['grad_spike']
    assert spike['first_bad']['module'].startswith('decoder.layers.1')
    (nonfinite,) = found['nonfinite_gradient']
    assert nonfinite['first_bad']['module'].startswith('bbox_head')
    assert nonfinite['action'] == 'skipped'
    for incident in found['exception']:
        assert incident['action'] == 'skipped'
        assert incident['cause']['code'] == 'bad-target'
        (culprit,) = [s for s in incident['samples'] if s['culprit']]
        assert 'is not finite' in culprit['notes'][0]
    assert 'plotly' in (guarded / 'report.html').read_text()
