"""How many steps stand behind a printed value, in every format."""

from __future__ import annotations

import pytest

from mmgradguard.logs.analysis.stretch import Stretch
from mmgradguard.logs.analysis.timing import find_timing
from mmgradguard.logs.formats import FORMATS, values_of
from mmgradguard.logs.formats.base import INTERVAL_MEAN, OTHER, STEP, WINDOW_MEAN
from tests.log_tables import healthy, make_table

NAMES = [*(parser.NAME for parser in FORMATS), 'checkpoint']


@pytest.mark.parametrize('name', NAMES)
def test_only_a_known_mean_gives_a_single_step(name: str) -> None:
    timing = find_timing(Stretch(make_table(healthy(40), kind=name), 0, 40))
    window = {WINDOW_MEAN: 50, INTERVAL_MEAN: 50, STEP: 1, OTHER: None}
    assert timing.window == window[values_of(name)]
    assert ('window' in timing.inferred) == (values_of(name) == WINDOW_MEAN)


def test_medians_and_epochs_say_nothing_of_a_step() -> None:
    kinds = {name: values_of(name) for name in NAMES}
    foreign = ('detr', 'detectron2', 'ultralytics')
    assert {kinds[n] for n in NAMES if n.startswith(foreign)} == {OTHER}
    assert kinds['checkpoint'] == kinds['steps_jsonl'] == STEP
