"""The history of a message hub as a table."""

from __future__ import annotations

import pytest

from mmgradguard.core.errors import LogParseError
from mmgradguard.logs.formats.checkpoint import table_from_history


def test_one_row_per_iteration():
    history = {'train/loss': [3.0, 2.0], 'train/lr': [0.1, 0.1], 'val/mAP': [0.5]}
    table = table_from_history('a.pth', history)
    assert table.format == 'checkpoint'
    assert list(table.iterations) == [1, 2]
    assert {n: list(v) for n, v in table.columns.items()} == {
        'loss': [3.0, 2.0],
        'lr': [0.1, 0.1],
    }
    assert not table.absent
    assert table.sections[0].reason == 'start'


@pytest.mark.parametrize(
    ('num', 'values', 'places'),
    [
        (8, [1.0, 2.0], [3, 7]),
        (9, [1.0, 2.0], [3, 7]),
        (8, [1.0] * 7, [1, 2, 3, 4, 5, 6, 7]),
        (3, [1.0], [2]),
    ],
)
def test_a_quantity_of_some_iterations(num, values, places):
    history = {'train/loss': [1.0] * num, 'train/grad_norm': values}
    table = table_from_history('a.pth', history)
    absent = list(table.absent['grad_norm'])
    assert [row for row in range(num) if row not in absent] == places
    assert [table.columns['grad_norm'][row] for row in places] == values


@pytest.mark.parametrize('history', [{}, {'val/mAP': [0.1]}, {'train/loss': []}])
def test_no_history_of_a_training(history):
    with pytest.raises(LogParseError, match=r'a\.pth: a checkpoint without a history'):
        table_from_history('a.pth', history)
