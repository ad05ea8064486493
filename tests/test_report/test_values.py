from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmgradguard.report.values import (
    MAX_TEXT,
    clean_text,
    format_place,
    format_share,
    read_float,
    read_int,
    read_plain,
    read_text,
    shorten,
)


@given(st.text(max_size=3000))
def test_clean_text_is_short_printable_and_on_one_line(text):
    clean = clean_text(text)
    assert len(clean) <= MAX_TEXT
    assert not {unicodedata.category(c) for c in clean} & {'Cc', 'Cf', 'Cs', 'Zl', 'Zp'}
    assert clean_text(clean) == clean


@given(st.text(), st.integers(3, 50))
def test_shorten_keeps_both_ends(text, limit):
    short = shorten(text, limit)
    assert len(short) <= limit or len(text) <= limit
    assert short == text or '...' in short


@pytest.mark.parametrize('value', [True, None, [], {}, 'x', 10**400, 1.5, 2**60])
def test_read_int_refuses(value):
    assert read_int(value) is None


@pytest.mark.parametrize('value', [True, None, [], {}, 'x', 10**400])
def test_read_float_refuses(value):
    assert read_float(value) is None


def test_numbers_are_read_as_written():
    assert (read_int(3), read_int(3.0), read_float('-inf')) == (3, 3, float('-inf'))
    assert (read_text(17), read_text(0.5), read_text(True)) == ('17', '0.5', None)


def test_plain_data_is_bounded():
    deep: list = []
    for _ in range(500):
        deep = [deep]
    assert '...' in str(read_plain(deep))
    assert len(read_plain(list(range(10_000)))) == 200
    assert read_plain({'a': [1, None, 10**400]}) == {'a': [1, None, '...']}


@given(st.integers(0, 10**6), st.integers(1, 10**6))
def test_a_share_is_all_or_nothing_only_when_it_is(num, total):
    num = min(num, total)
    text = format_share(num, total)
    assert (text == '100 %') == (num == total)
    assert (text == '0 %') == (num == 0)


def test_places_are_counted_from_one():
    assert format_place(0, 0) == 'epoch 1, iteration 1'
    assert format_place(None, 5) == 'iteration 6'
    assert format_place(None, None) == 'place unknown'
