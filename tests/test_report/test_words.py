from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from test_report.run_builder import incident_row

from mmgradguard.report.incident_record import parse_incident
from mmgradguard.report.words import (
    KIND_WORDS,
    describe_cause,
    describe_kind,
    describe_where,
    format_config,
)

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda item: (
        st.lists(item, max_size=3)
        | st.dictionaries(
            st.sampled_from(['type', 'lr', 'class', 'a.b', 'None', '__debug__'])
            | st.text(),
            item,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(['model', 'hooks']), PLAIN, min_size=1))
def test_a_config_pasted_into_python_is_the_config(config):
    scope: dict = {}
    exec(format_config(config), scope)
    assert {key: scope[key] for key in config} == config


ODD_KEYS = st.sampled_from(['a.b', 'class', '', '__debug__', '\xba'])


@given(st.dictionaries(ODD_KEYS, PLAIN, min_size=1) | st.lists(PLAIN))
def test_what_is_no_assignment_is_a_literal(config):
    text = format_config(config)
    scope: dict = {}
    exec(f'value = {text}', scope)
    assert scope['value'] == config


def test_a_long_config_is_wrapped():
    config = {'train': {f'key_{i}': ['value'] * 4 for i in range(4)}}
    text = format_config(config)
    assert max(map(len, text.splitlines())) <= 80
    assert re.match(r'train = dict\(\n    key_0=', text)


def test_every_kind_of_the_contract_has_words():
    kinds = (
        'exception nonfinite_weights nonfinite_input nonfinite_target '
        'masked_nonfinite nonfinite_forward nonfinite_loss nonfinite_gradient '
        'norm_overflow scale_collapse grad_spike loss_spike'
    )
    assert sorted(KIND_WORDS) == sorted(kinds.split())
    assert describe_kind(parse_incident({'kind': 'new_kind'}, folder='x')) == 'new_kind'
    assert describe_kind(parse_incident({}, folder='x')) == 'Unreadable incident'


def test_where_falls_back_from_module_to_image_to_parameter():
    row = incident_row(1)
    assert describe_where(parse_incident(row, folder='x')) == 'bbox_head.reg_ffn'
    row['first_bad'] = None
    assert describe_where(parse_incident(row, folder='x')) == 'image 17'
    row['samples'] = []
    where = describe_where(parse_incident(row, folder='x'))
    assert where == 'bbox_head.fc_reg.weight'
    row['params'] = []
    assert describe_where(parse_incident(row, folder='x')) == '-'


def test_a_low_confidence_is_called_a_guess():
    row = incident_row(1, cause={'code': 'transient', 'confidence': 0.3})
    cause = describe_cause(parse_incident(row, folder='x'))
    assert cause == 'transient, confidence 0.3, a guess'
