from __future__ import annotations

import math
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmgradguard.core import phrases
from mmgradguard.core.log_analysis import COINCIDENCES, EVENT_KINDS, Note
from mmgradguard.core.phrases import (
    LANGUAGES,
    format_share,
    format_value,
    label,
    load_phrases,
    say,
)
from mmgradguard.core.types import Verdict

ENGLISH, CHINESE = load_phrases('en'), load_phrases('zh')


def placeholders(template):
    return {name for _, name, _, _ in string.Formatter().parse(template) if name}


def test_both_languages_have_the_same_codes():
    assert set(ENGLISH) == set(CHINESE)
    assert len(ENGLISH) > 150


@pytest.mark.parametrize('code', sorted(ENGLISH))
def test_both_languages_name_the_same_values(code):
    assert placeholders(ENGLISH[code]) == placeholders(CHINESE[code])
    assert ENGLISH[code].isascii()


def test_chinese_is_chinese():
    same = [code for code in ENGLISH if ENGLISH[code] == CHINESE[code]]
    # names that are the same in both, and bare values
    assert {code.split('.')[0] for code in same} <= {'fact', 'place', 'value'}
    assert len(same) < 8


@pytest.mark.parametrize('code', sorted(CHINESE))
def test_chinese_sentences_use_wide_punctuation(code):
    text = CHINESE[code]
    is_sentence = any('\u4e00' <= char <= '\u9fff' for char in text)
    outside = ''.join(text.split('`')[::2])
    for _, name, spec, _ in string.Formatter().parse(outside):
        outside = outside.replace(f'{{{name}:{spec}}}', '')
    assert not is_sentence or not set(outside) & set(',:;?()!')


def test_every_kind_verdict_and_coincidence_has_words():
    for kind in EVENT_KINDS:
        assert {f'event.{kind}', f'kind.{kind}'} <= set(ENGLISH)
    for name in COINCIDENCES:
        assert f'coincidence.{name}' in ENGLISH
    for verdict in Verdict:
        assert {f'verdict.{verdict.value}', f'label.{verdict.value}'} <= set(ENGLISH)


@pytest.mark.parametrize(
    ('value', 'shown'),
    [
        (3.11e7, '3.11e7'),
        (1.6e9, '1.6e9'),
        (0.88, '0.88'),
        (99_999.9, '100000'),
        (1e5, '1e5'),
        (0.001, '0.001'),
        (9.99e-4, '9.99e-4'),
        (-2.5, '-2.5'),
        (0.0, '0'),
        (5e-324, '4.94e-324'),
        (math.inf, 'inf'),
        (-math.inf, '-inf'),
        (12345678, '12345678'),
        ('text', 'text'),
    ],
)
def test_numbers_are_written_as_people_write_them(value, shown):
    assert format_value(value) == shown


@given(st.floats(-1e300, 1e300), st.integers(1, 6))
def test_a_written_number_is_that_number(value, digits):
    read = float(format_value(value, digits))
    assert math.isclose(read, value, rel_tol=0.6 * 10.0 ** (1 - digits), abs_tol=1e-320)


@given(st.floats(0, 1))
def test_a_share_is_all_or_nothing_only_if_it_is(share):
    assert (format_share(share) == '100 %') == (100 * share == 100)
    assert (format_share(share) == '0 %') == (share == 0)


def test_a_sentence_is_filled():
    values = {'rows': 1, 'last_line': 7, 'of': 'loss', 'printed': math.nan}
    note = Note('event.nan_sticks', values)
    assert say(note) == 'loss is not finite (it prints nan) in 1 row, to line 7.'
    values['rows'] = 2
    assert 'in 2 rows, to' in say(note)
    assert say(note, 'zh').startswith('loss \u4e0d\u518d\u662f')


@pytest.mark.parametrize(
    ('hours', 'shown'), [(1.0, '1 hour'), (1.004, '1 hour'), (1.54, '1.5 hours')]
)
def test_a_counted_noun_agrees_with_what_is_read(hours, shown):
    assert say(Note('value.hours', {'hours': hours})) == shown
    assert say(Note('value.minutes', {'minutes': hours})).startswith(shown.split()[0])


def test_a_verb_agrees_with_its_number():
    values = {'lost': 1, 'rows': 9, 'share': 0.11}
    assert say(Note('verdict.lost_rows', values)) == '1 row of 9 (11 %) is lost.'
    values['lost'] = 2
    assert say(Note('verdict.bad_rows', values)).startswith('2 rows of 9 (11 %) have')


def test_values_may_be_notes_lists_and_truths(monkeypatch):
    table = {'a': 'x {v}', 'b': 'y {v:2}', 'label.comma': '; ', 'label.yes': 'oui'}
    monkeypatch.setattr(phrases, 'load_phrases', lambda lang: table)
    inner = Note('b', {'v': 1.2345})
    assert say(Note('a', {'v': [inner, 'z', 3]})) == 'x y 1.2; z; 3'
    assert say(Note('a', {'v': True})) == 'x oui'
    assert say(Note('a', {'v': None})) == 'x -'


def test_what_is_missing_falls_back_and_never_raises(monkeypatch):
    tables = {'en': {'a': 'A {v}', 'bad': '{v', 'spec': '{v:zz}'}, 'zh': {'a': 'Z {w}'}}
    monkeypatch.setattr(phrases, 'load_phrases', lambda lang: tables.get(lang, {}))
    assert say(Note('a', {'v': 1}), 'zh') == 'A 1'
    assert say(Note('a', {'v': 1}), 'tlh') == 'A 1'
    assert say(Note('a', {'w': 1})) == 'a: w 1'
    assert say(Note('bad', {'v': 1e9})) == 'bad: v 1e9'
    assert say(Note('spec', {'v': 1.0})) == 'spec: v 1'
    assert say(Note('nothing')) == 'nothing'


@given(
    st.sampled_from([*sorted(ENGLISH), 'no.such.code']),
    st.dictionaries(
        st.sampled_from(['line', 'rows', 'of', 'size', 'share', 'num', 'single']),
        st.one_of(
            st.none(), st.text(), st.floats(), st.booleans(), st.lists(st.none())
        ),
    ),
    st.sampled_from([*LANGUAGES, 'xx']),
)
def test_any_note_is_said(code, values, lang):
    assert isinstance(say(Note(code, values), lang), str)


def test_labels_are_phrases():
    assert label('facts') == 'Facts'
    assert label('page', path='x.html') == 'Page: x.html'
