from __future__ import annotations

import math

import pytest
from test_report.log_builder import make_page


def page_of(epochs, iterations, lengths=()):
    return make_page(
        len(epochs), epochs=epochs, iterations=iterations, epoch_lengths=lengths
    )


@pytest.mark.parametrize(
    ('epochs', 'iterations', 'lengths', 'positions'),
    [
        ([1, 1, 2, 2], [50, 100, 50, 100], (130,) * 4, [50, 100, 180, 230]),
        ([1, 1, 2, 2], [50, 100, 50, 100], (), [50, 100, 150, 200]),
        ([1, 1, 2, 2], [50, 100, 150, 200], (), [50, 100, 150, 200]),
        ([-1, -1, -1], [50, 100, 150], (), [50, 100, 150]),
        ([-1, -1, -1], [50, 100, 150], (0, 0, 0), [50, 100, 150]),
        ([1, 2, 3], [-1, -1, -1], (), [1, 2, 3]),
        ([1, 1, 1], [50, 100, 80], (), [50, 100, 80]),
        ([], [], (), []),
    ],
    ids=['length', 'no length', 'global', 'by iteration', '0', 'epochs', 'back', '-'],
)
def test_positions_count_through_the_epochs(epochs, iterations, lengths, positions):
    assert page_of(epochs, iterations, lengths).positions() == positions


def test_the_span_is_as_printed():
    assert page_of([1, 2], [50, 100]).span() == '[1][50] - [2][100]'
    assert page_of([-1, -1], [50, 100]).span() == '[50] - [100]'
    assert page_of([-1, -1], [-1, -1]).span() == ''
    assert page_of([], []).span() == ''


def test_losses_are_the_total_and_its_terms():
    page = make_page()
    assert [s.name for s in page.losses()] == ['loss', 'loss_cls', 'd0.loss_bbox']
    assert page.total_values() is page.column('loss')
    page = make_page(total=None, terms=['loss_cls', 'gone'])
    assert [s.name for s in page.losses()] == ['loss_cls']
    assert page.total_values() is None


def test_a_column_is_found_by_its_name():
    page = make_page()
    assert math.isnan(page.column('d0.loss_bbox')[11])
    assert page.column('nothing') is None
