"""Fixture runs: a guard's files written by hand, as the contract has them."""

from __future__ import annotations

import json
import math
from pathlib import Path

HOSTILE = [
    '<script>alert(1)</script>',
    '</script><!-- -->',
    '"quoted" \'single\' `tick` | pipe \\ & <b>',
    'two\nlines\r\n| --- |\x1b[31m\u202e',
    'caf\xe9 \u4e2d\u6587 \U0001f600 \ud800',
    '%{x} {{ 7 * 7 }} {% raw %} [bold]red[/bold] ${a} @someone #1',
    'm' * 10_000,
    '',
]
VERSIONS = {'python': '3.11.9', 'torch': '2.13.0', 'device': 'cpu'}


def step_row(step: int, /, **fields: object) -> dict:
    """Return a row of ``steps.jsonl``: a DETR under a ceiling of 0.1."""
    row = {
        'step': step,
        'iteration': step,
        'epoch': step // 60,
        'lr': 1e-4,
        'losses': {'loss_cls': 2.0 / (1 + step), 'loss_bbox': 1.0},
        'total_norm': 60.0 + step % 7,
        'max_norm': 0.1,
        'clip_coef': 0.1 / (60.0 + step % 7),
        'skipped': None,
        'loss_scale': None,
        'nonfinite_params': 0,
    }
    if step % 50 == 0:
        row['module_norms'] = {'backbone': 20.0, 'bbox_head': 40.0}
    return {**row, **fields}


def incident_row(iteration: int, /, **fields: object) -> dict:
    """Return an ``incident.json`` in which every field is filled."""
    row = {
        'schema_version': 1,
        'iteration': iteration,
        'step': iteration,
        'epoch': 1,
        'rank': 0,
        'time': '2026-01-02T03:04:05+00:00',
        'kind': 'nonfinite_gradient',
        'verdict': 'suspicious',
        'action': 'skipped',
        'first_bad': {
            'phase': 'forward',
            'module': 'bbox_head.reg_ffn',
            'call': 2,
            'op': 'aten::addmm',
            'source': 'mmdet/models/x.py:123',
            'stats': {'num_inf': 1},
        },
        'params': [
            {
                'name': 'bbox_head.fc_reg.weight',
                'shape': [4, 256],
                'numel': 1024,
                'num_nan': 256,
                'num_inf': 0,
                'mean': 0.1,
                'std': 0.2,
                'min': '-inf',
                'max': 3.0,
                'norm': 'nan',
            }
        ],
        'loss_terms': [
            {
                'name': 'loss_bbox',
                'value': 0.4,
                'grad_norm': 'nan',
                'finite': True,
                'culprit': True,
            }
        ],
        'samples': [
            {
                'index': 0,
                'img_id': 17,
                'img_path': '/home/alice/data/coco/train2017/000017.jpg',
                'culprit': True,
                'notes': ['box 3: width inf'],
            },
            {
                'index': 1,
                'img_id': 18,
                'img_path': '/home/alice/data/coco/train2017/000018.jpg',
                'culprit': False,
                'notes': [],
            },
        ],
        'interventions': [{'name': 'without sample 0', 'anomaly': False}],
        'cause': {
            'code': 'overflow',
            'title': 'One Inf in the output of reg_ffn',
            'confidence': 0.85,
            'evidence': ['1 of 20480 values is inf'],
        },
        'advice': [
            {
                'text': 'Remove the annotation.',
                'config': {'optim_wrapper': {'clip_grad': {'max_norm': 0.1}}},
            }
        ],
        'versions': dict(VERSIONS),
    }
    return {**row, **fields}


def journal_row(step: int, /, **fields: object) -> dict:
    """Return a row of ``journal.jsonl``."""
    row = {
        'schema_version': 1,
        'time': '2026-01-02T03:04:05+00:00',
        'step': step,
        'iteration': step,
        'actor': 'AdaptiveClipHook',
        'knob': 'max_norm',
        'target': 'all',
        'old': 0.1,
        'new': 0.2,
        'evidence': 'incidents/100',
        'mode': 'act',
        'status': 'applied',
        'reverts': None,
    }
    return {**row, **fields}


def write_jsonl(path: Path, rows: list) -> None:
    """Write one JSON object a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(''.join(json.dumps(row) + '\n' for row in rows), encoding='utf-8')


def write_incident(guard_dir: Path, row: dict, name: str | None = None) -> Path:
    """Write an incident and return its folder."""
    folder = guard_dir / 'incidents' / (name or str(row['iteration']))
    folder.mkdir(parents=True)
    (folder / 'incident.json').write_text(json.dumps(row), encoding='utf-8')
    return folder


def write_run(
    work_dir: Path,
    *,
    steps: list | None = None,
    incidents: list | None = None,
    journal: list | None = None,
    timestamp: str = '20260102_030405',
) -> Path:
    """Write a run under ``work_dir`` and return its guard folder."""
    guard_dir = work_dir / timestamp / 'grad_guard'
    rows = [step_row(i) for i in range(120)] if steps is None else steps
    write_jsonl(guard_dir / 'steps.jsonl', rows)
    if journal is not None:
        write_jsonl(guard_dir / 'journal.jsonl', journal)
    for row in incidents or []:
        write_incident(guard_dir, row)
    return guard_dir


def bad_run(work_dir: Path) -> Path:
    """Write a run with a spike, a non-finite step, an exception and a journal."""
    steps = [step_row(i) for i in range(120) if i != 90]
    steps[50].update(total_norm=1e8, clip_coef=1e-9)
    steps[70].update(total_norm='nan', clip_coef='nan', skipped='nonfinite')
    incidents = [
        incident_row(50, kind='grad_spike', verdict='benign', action='clipped'),
        incident_row(70),
        incident_row(90, kind='exception'),
    ]
    return write_run(
        work_dir, steps=steps, incidents=incidents, journal=[journal_row(70)]
    )


def fill_strings(value: object, text: str) -> object:
    """Return ``value`` with every string and every key of a free mapping hostile."""
    if isinstance(value, dict):
        return {key: fill_strings(item, text) for key, item in value.items()}
    if isinstance(value, list):
        return [fill_strings(item, text) for item in value]
    return text if isinstance(value, str) else value


def hostile_run(work_dir: Path, text: str) -> Path:
    """Write a run in which every string is ``text``, the words of the contract too."""
    steps = [
        step_row(i, losses={text: 1.0, f'{text}2': 2.0}, module_norms={text: 1.0 + i})
        for i in range(5)
    ]
    steps[3]['total_norm'] = 'nan'
    row = fill_strings(incident_row(3), text)
    row['versions'] = {text: text}
    row['advice'] = [{'text': text, 'config': {text: {'a': text}}}]
    guard_dir = write_run(
        work_dir, steps=steps, journal=[fill_strings(journal_row(1), text)]
    )
    write_incident(guard_dir, row, name='3')
    known = {**row, 'verdict': 'fatal', 'action': 'skipped', 'iteration': 4}
    write_incident(guard_dir, known, name='4')
    return guard_dir


def is_nan(value: object) -> bool:
    """Whether ``value`` is a float NaN."""
    return isinstance(value, float) and math.isnan(value)
