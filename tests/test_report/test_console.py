from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmgradguard.report.console import RichConsole, open_console
from mmgradguard.report.plain_console import PlainConsole
from mmgradguard.report.wrap import MIN_WIDTH, cell_width, pad, wrap


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(console):
    console.line('a line of ', ('some', 'bold'), ' words')
    console.heading('Heading')
    console.item('an item that is longer than the width of it')
    console.table(('Name', 'Value'), [['loss_cls', '3.1e7'], ['x', '']])
    console.table(None, [['a', 'b'], ['ccc', 'd']])
    console.note('note')
    console.code('a = dict(\n    b=1)')
    return console.text()


def test_the_plain_console_prints_what_rich_prints():
    texts = [shown(kind(io.StringIO(), 40)) for kind in (PlainConsole, RichConsole)]
    assert texts[0] == texts[1]
    assert '- an item that is longer than the width\n  of it\n' in texts[0]
    assert '\nloss_cls  3.1e7\n' in texts[0]


@pytest.mark.parametrize('kind', [PlainConsole, RichConsole])
def test_a_path_is_never_folded_in_mid_word(kind):
    path = '/data/work_dirs/dino-4scale_r50/last_finite_epoch_11.pth'
    console = kind(io.StringIO(), 40)
    console.line('Resume from ', (path, 'bold'), ' (the newest)')
    console.item(f'Resume from {path} (the newest)')
    console.table(None, [['file', path]])
    lines = console.text().splitlines()
    assert lines == [
        'Resume from',
        path,
        '(the newest)',
        '- Resume from',
        f'  {path}',
        '  (the newest)',
        'file  /data/work_dirs/dino-4scale_r50/',
        '      last_finite_epoch_11.pth',
    ]


@pytest.mark.parametrize('kind', [PlainConsole, RichConsole])
def test_a_narrow_console_makes_cards_of_a_table(kind):
    console = kind(io.StringIO(), 40)
    console.table(('A', 'B', 'C'), [['1', '', '3'], ['x', 'y', 'z']])
    assert console.text() == '- A: 1\n  C: 3\n- A: x\n  B: y\n  C: z\n'


def test_a_wide_cell_gives_way_to_the_narrow_ones():
    console = PlainConsole(io.StringIO(), 30)
    console.table(None, [['name', 'word ' * 12]])
    lines = console.text().splitlines()
    assert lines[0] == 'name  word word word word word'
    assert all(line.startswith('      word') for line in lines[1:])


def test_colours_are_for_terminals(monkeypatch):
    monkeypatch.delenv('FORCE_COLOR', raising=False)
    assert isinstance(open_console(io.StringIO(), 80), PlainConsole)
    assert isinstance(open_console(Terminal(), 80), RichConsole)
    monkeypatch.setenv('FORCE_COLOR', '1')
    assert isinstance(open_console(io.StringIO(), 80), RichConsole)


def test_the_width_is_the_terminal_s(monkeypatch):
    monkeypatch.setenv('COLUMNS', '57')
    assert PlainConsole(io.StringIO(), None).width == 57


def test_an_ascii_stream_is_known():
    stream = io.TextIOWrapper(io.BytesIO(), encoding='ascii')
    assert not PlainConsole(stream, 80).is_unicode
    assert PlainConsole(io.StringIO(), 80).is_unicode


def test_chinese_breaks_between_characters_and_keeps_brackets_together():
    text = '\u635f\u5931\uff08\u6253\u5370\uff09\u4e0d\u518d\u662f\u3002'
    lines = wrap(text, 12)
    assert lines == [
        '\u635f\u5931\uff08\u6253\u5370\uff09',
        '\u4e0d\u518d\u662f\u3002',
    ]
    assert cell_width(pad('\u635f', 5)) == 5


TEXTS = st.text(st.characters(blacklist_categories=('Cs', 'Cc')), max_size=200)


@given(TEXTS, st.integers(1, 60))
def test_wrapping_loses_nothing_but_spaces_and_keeps_the_width(text, width):
    lines = wrap(text, width)
    assert ''.join(''.join(lines).split()) == ''.join(text.split())
    # a closing mark may hang over by its own width
    assert max(map(cell_width, lines)) <= max(width, MIN_WIDTH) + 2


@given(
    st.lists(st.lists(TEXTS, min_size=3, max_size=3), max_size=4), st.integers(45, 90)
)
def test_any_table_fits(rows, width):
    console = PlainConsole(io.StringIO(), width)
    console.table(('A', 'B', 'C'), rows)
    assert all(cell_width(line) <= width + 6 for line in console.text().splitlines())
