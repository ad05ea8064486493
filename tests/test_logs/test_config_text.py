"""A config is data: read as far as it is, never run."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmgradguard.logs.config_text import parse_config

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.from_regex(r'\Aa[a-z]{0,6}_\Z'), PLAIN, min_size=1))
def test_plain_data_comes_back(config):
    text = '\n'.join(f'{name} = {value!r}' for name, value in config.items())
    assert parse_config(text) == config
    assert parse_config(json.dumps(config)) == config


@given(st.text(max_size=200))
def test_any_text_gives_a_dict_or_none(text):
    found = parse_config(text)
    assert found is None or (isinstance(found, dict) and found)


@pytest.mark.parametrize(
    ('text', 'config'),
    [
        (
            "model = dict(\n    type='DETR',\n    bbox=dict(w=-1.5, s=(1, 2)),\n)",
            {'model': {'type': 'DETR', 'bbox': {'w': -1.5, 's': (1, 2)}}},
        ),
        (
            "a = 'x' 'y'\nb = 'p' + 'q'\nc = [1] + [2]",
            {'a': 'xy', 'b': 'pq', 'c': [1, 2]},
        ),
        (
            'lr = 2e-4\nopt = dict(lr=lr, n=2 * 3)',
            {'lr': 2e-4, 'opt': {'lr': 2e-4, 'n': 6}},
        ),
        ('gpu_ids = range(0, 2)', {'gpu_ids': [0, 1]}),
        ('a = dict(b, c=1)\n', None),
        ('b = dict(x=1)\na = dict(**b, c=1)', {'b': {'x': 1}, 'a': {'x': 1, 'c': 1}}),
        ("a = {'k': 1, 'f': len('x')}", {'a': {'k': 1}}),
        ('a = dict(x=1, f=open("f"))', {'a': {'x': 1}}),
        ('import os\na = 1\nb = os.getcwd()', {'a': 1}),
        ('a = 1 / 0\nb = 1', {'b': 1}),
        ('a = 10 ** 10 ** 10\nb = 1', {'b': 1}),
        ("a = 'x' * 10 ** 9\nb = 1", {'b': 1}),
        ('a = 1\nb = dict(\nc = 3', {'a': 1, 'c': 3}),
        ('a = not True\nb = +1', {'a': False, 'b': 1}),
        ('{"model": {"type": "X"}}', {'model': {'type': 'X'}}),
        ('', None),
        ('{broken', None),
        ('[1]', None),
        ('x' * 2**21, None),
    ],
)
def test_what_is_read_and_what_is_left_out(text, config):
    assert parse_config(text) == config


def test_a_deep_nest_is_no_crash():
    assert parse_config('a = ' + '[' * 5000 + ']' * 5000 + '\nb = 1') in (
        {'b': 1},
        None,
    )
    assert parse_config('a = ' + '-' * 5000 + '1\n') is None


def test_references_are_not_multiplied():
    lines = ['x0 = [1, 1]'] + [f'x{i} = [x{i - 1}, x{i - 1}]' for i in range(1, 200)]
    assert len(parse_config('\n'.join(lines))) == 200
