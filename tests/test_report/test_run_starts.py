"""Several runs in one folder are told apart, and replayed steps are found."""

from __future__ import annotations

import pytest

from mmgradguard.core.types import StepSample
from mmgradguard.report.run_starts import drop_replayed, find_starts


def rows(*numbers: int) -> list[StepSample]:
    return [
        StepSample(step=n, iteration=n, epoch=0, total_norm=float(i))
        for i, n in enumerate(numbers)
    ]


@pytest.mark.parametrize(
    ('numbers', 'marked', 'starts'),
    [
        ((), [], []),
        ((0, 1, 2), [], [0]),
        ((0, 1, 2), [0], [0]),
        ((5, 6, 7), [0], [0]),
        ((0, 1, 0, 1), [], [0, 2]),
        # two guards side by side: the count of steps goes back at each row
        ((0, 0, 1, 1, 2, 2), [0, 1], [0, 1]),
        # a resume that takes nothing again
        ((0, 1, 2, 3), [0, 2], [0, 2]),
        # the first rows are of a release that marked none
        ((0, 1, 0, 1), [2], [0, 2]),
    ],
)
def test_starts(numbers, marked, starts):
    assert find_starts(rows(*numbers), marked) == starts


@pytest.mark.parametrize(
    ('numbers', 'starts', 'kept'),
    [
        ((), [], ()),
        ((0, 1, 2), [0], (0, 1, 2)),
        # a resume from step 2: of 2 and 3 the later ones count
        ((0, 1, 2, 3, 2, 3, 4), [0, 4], (0, 1, 4, 5, 6)),
        # another run: both count
        ((0, 1, 2, 0, 1), [0, 3], (0, 1, 2, 3, 4)),
        # resumed twice, the second time from further back
        ((0, 1, 2, 2, 3, 1, 2), [0, 3, 5], (0, 5, 6)),
        # a resume of the second run leaves the first as it is
        ((0, 1, 2, 0, 1, 2, 1, 2), [0, 3, 6], (0, 1, 2, 3, 6, 7)),
        # a folder that begins with a resumed run
        ((7, 8, 9, 8), [0, 3], (0, 3)),
    ],
)
def test_replayed_steps(numbers, starts, kept):
    steps, num_dropped = drop_replayed(rows(*numbers), starts)
    assert tuple(int(sample.total_norm) for sample in steps) == kept
    assert num_dropped == len(numbers) - len(kept)
