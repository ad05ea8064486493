from __future__ import annotations

import json

import pytest
from test_report.log_builder import make_analysis

from mmgradguard.core.jsonio import dumps
from mmgradguard.core.types import Verdict
from mmgradguard.report.log_json import analysis_json

#: The contract: these keys stay.
KEYS = {
    *('schema_version', 'source', 'format', 'num_rows', 'verdict', 'first_anomaly'),
    *('events', 'rows_lost', 'hours_lost', 'advice'),
}
EVENT_KEYS = {
    *('kind', 'file', 'line', 'last_line', 'epoch', 'iteration', 'term'),
    *('value_printed', 'value_single_step', 'recovered'),
}


def json_of(analysis, lang='en'):
    text = dumps(analysis_json(analysis, lang))
    return json.loads(text, parse_constant=pytest.fail)


def test_the_contract_is_kept():
    data = json_of(make_analysis())
    assert data.keys() >= KEYS
    assert data['first_anomaly'] == data['events'][0]
    for event in data['events']:
        assert event.keys() >= EVENT_KEYS
    assert (data['schema_version'], data['verdict']) == (1, 'fatal')
    assert data['events'][1]['value_printed'] == 'nan'
    assert data['events'][0]['value_single_step'] == 1.555e9
    assert data['advice'][0] == {
        'text': 'Lower the lr from 0.002 to 2.5e-4: the most frequent confirmed cure.',
        'config': {'optim_wrapper': {'optimizer': {'lr': 2.5e-4}}},
    }
    assert data['facts']['norm_quantiles'] == [3.0, 5.2, 8.0]


def test_a_clean_run_has_no_anomaly():
    data = json_of(make_analysis(verdict=Verdict.HEALTHY, events=[]))
    assert data['first_anomaly'] is None
    assert data['events'] == []


def test_texts_are_in_the_language_asked_for():
    assert 'Isolated spike' in json_of(make_analysis())['events'][0]['text']
    data = json_of(make_analysis(), 'zh')
    assert data['lang'] == 'zh'
    assert data['events'][0]['text'].startswith('\u5b64\u7acb\u5c16\u5cf0')
    assert data['advice'][0]['text'].startswith('\u628a\u5b66\u4e60\u7387')
