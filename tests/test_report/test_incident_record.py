from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_report.run_builder import incident_row, is_nan

from mmgradguard.report.html import render_html
from mmgradguard.report.incident_record import MAX_ROWS, parse_incident
from mmgradguard.report.markdown import render_markdown
from mmgradguard.report.model import build_report
from mmgradguard.report.run_files import RunRecord
from mmgradguard.report.terminal import render_terminal

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(['nan', 'inf', '-inf', 10**400]),
    lambda item: (
        st.lists(item, max_size=4)
        | st.dictionaries(
            st.sampled_from(['name', 'text', 'module', 'config']) | st.text(),
            item,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def test_a_whole_incident_is_read_without_a_problem():
    incident = parse_incident(incident_row(70), folder='incidents/70')
    assert incident.problems == []
    assert (incident.kind, incident.verdict) == ('nonfinite_gradient', 'suspicious')
    assert incident.first_bad.module == 'bbox_head.reg_ffn'
    assert incident.first_bad.call == '2'
    assert incident.params[0].shape == [4, 256]
    assert is_nan(incident.params[0].norm)
    assert incident.params[0].min == float('-inf')
    assert incident.samples[0].img_id == '17'
    assert incident.samples[1].notes == []
    assert incident.cause.confidence == 0.85
    assert incident.advice[0].config == {
        'optim_wrapper': {'clip_grad': {'max_norm': 0.1}}
    }
    assert incident.versions['torch'] == '2.13.0'


def test_null_parts_are_no_problem():
    row = incident_row(1, first_bad=None, cause=None, params=[], samples=[])
    incident = parse_incident(row, folder='x')
    assert incident.problems == []
    assert (incident.first_bad, incident.cause) == (None, None)


@pytest.mark.parametrize(
    ('field', 'value', 'problem'),
    [
        ('iteration', 'seven', '`iteration` has the wrong type'),
        ('first_bad', [1], '`first_bad` is not an object'),
        ('params', {'a': 1}, '`params` is not a list'),
        ('params', [1, {'shape': 'wide'}], '`params`: 2 value'),
        ('samples', [{'culprit': 'yes'}], '`samples`: 1 value'),
        ('cause', {'confidence': 'very'}, '`cause.confidence` has the wrong type'),
        ('versions', 'new', '`versions` is not an object'),
        (
            'verdict',
            'odd',
            "must be one of ['benign', 'suspicious', 'fatal'], got 'odd'",
        ),
        ('verdict', 'healthy', "got 'healthy'"),
        ('kind', None, 'without kind'),
        ('schema_version', 2, 'schema_version 2 is newer'),
    ],
)
def test_a_wrong_value_is_named(field, value, problem):
    incident = parse_incident(incident_row(1, **{field: value}), folder='x')
    assert problem in '; '.join(incident.problems)
    assert incident.verdict == 'suspicious'


def test_long_tables_are_cut_and_said_so():
    rows = [{'name': f'p{i}'} for i in range(MAX_ROWS + 5)]
    incident = parse_incident(incident_row(1, params=rows), folder='x')
    assert len(incident.params) == MAX_ROWS
    assert f'the first {MAX_ROWS} of {MAX_ROWS + 5}' in incident.problems[0]


@settings(deadline=None, max_examples=80)
@given(st.sampled_from(sorted(incident_row(1))), JSON)
def test_any_value_in_any_field_can_be_shown(field, value):
    incident = parse_incident(incident_row(1, **{field: value}), folder='incidents/1')
    assert incident.verdict in ('benign', 'suspicious', 'fatal')
    _show(incident)


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(['params', 'samples', 'loss_terms', 'interventions', 'advice']),
    st.data(),
)
def test_any_value_in_any_row_can_be_shown(table, data):
    row = dict(incident_row(1)[table][0])
    row[data.draw(st.sampled_from(sorted(row)))] = data.draw(JSON)
    _show(parse_incident(incident_row(1, **{table: [row]}), folder='incidents/1'))


def _show(incident):
    record = RunRecord(guard_dir=Path('x/grad_guard'), incidents=[incident])
    report = build_report(record)
    json.dumps(asdict(report))
    for text in (render_html(report), render_terminal(report), render_markdown(report)):
        assert incident.verdict in text
