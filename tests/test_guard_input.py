"""What is handed to `GradGuard` wrongly, and folders that it cannot use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from mmgradguard import GradGuard
from mmgradguard.core.errors import GuardStop
from mmgradguard.report.model import build_report
from mmgradguard.report.run_files import read_run
from tests.plain_loop import (
    batches,
    incidents,
    make_model,
    step_once,
    train,
)


@pytest.mark.parametrize(
    ('options', 'words'),
    [
        (dict(max_norm=0), '`max_norm` must be a positive number, got 0'),
        (dict(on_exception='ignore'), '`on_exception` must be one of'),
        (dict(clip_policy=dict(type='AutoClip')), "'FixedClip', 'PercentileClip'"),
        (dict(max_consecutive_skips=-1), '`max_consecutive_skips` must be'),
        (dict(interval=0), '`interval` must be an integer >= 1, got 0'),
        (dict(module_groups=['(']), '`module_groups` must hold regular expressions'),
        (dict(module_groups=['a', 'b', 'a']), "holds the pattern 'a' more than once"),
        (
            dict(clip_groups=[('a', 1.0), ('a', 2.0)]),
            "`clip_groups` holds the pattern 'a' more than once",
        ),
    ],
    ids=str,
)
def test_wrong_arguments(options: dict[str, Any], words: str) -> None:
    model = make_model()
    with pytest.raises(ValueError, match=words):
        GradGuard(model, torch.optim.SGD(model.parameters(), lr=0.1), **options)


def test_an_optimizer_that_needs_a_closure_is_refused() -> None:
    model = make_model()
    with pytest.raises(ValueError, match='LBFGS needs a closure'):
        GradGuard(model, torch.optim.LBFGS(model.parameters()))


def test_swapped_arguments_are_named() -> None:
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(TypeError, match=r'`model` must be .*got SGD.*swapped'):
        GradGuard(optimizer, model)
    with pytest.raises(TypeError, match=r'`optimizer` must be .*got list$'):
        GradGuard(model, list(model.parameters()))
    with pytest.raises(TypeError, match=r'`model` must be .*got NoneType$'):
        GradGuard(None, optimizer)


def test_an_optimizer_of_another_model_is_refused() -> None:
    other = torch.optim.SGD(make_model().parameters(), lr=0.1)
    with pytest.raises(ValueError, match='`optimizer` holds none of the 6 parameters'):
        GradGuard(make_model(), other)


def test_an_optimizer_of_a_part_is_taken() -> None:
    model = make_model()
    guard = GradGuard(model, torch.optim.SGD(model[3].parameters(), lr=0.1))
    step_once(guard, torch.ones(2, 4))


@pytest.mark.parametrize(
    ('state', 'words'),
    [
        (None, 'got a NoneType'),
        ({}, 'missing: acting, monitor, iteration; it holds nothing'),
        ({'model': 1}, 'missing: acting, monitor, iteration; it holds model'),
        (
            {'acting': {}, 'monitor': {'step': 1}, 'iteration': 2},
            'missing: acting.groups, acting.spikes, monitor.loss_spikes',
        ),
        (
            {'acting': [], 'monitor': {'step': 1, 'loss_spikes': {}}, 'iteration': 2},
            'missing: acting.groups, acting.spikes;',
        ),
    ],
)
def test_a_state_that_is_none_is_refused_and_changes_nothing(
    state: Any, words: str
) -> None:
    model = make_model()
    guard = GradGuard(model, torch.optim.SGD(model.parameters(), lr=0.1))
    step_once(guard, torch.ones(2, 4))
    before = guard.state_dict()
    with pytest.raises(ValueError, match=words):
        guard.load_state_dict(state)
    assert guard.state_dict()['monitor'] == before['monitor']


def test_a_stop_names_its_incident(tmp_path: Path) -> None:
    model = make_model()
    guard = GradGuard(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        max_consecutive_skips=2,
        out_dir=tmp_path,
    )
    with pytest.raises(GuardStop, match='; see ') as stop:
        train(guard, batches(bad=(5, 6)))
    folder = Path(str(stop.value).rpartition('; see ')[2])
    assert (folder / 'incident.json').is_file()
    assert folder.name == '6'


@pytest.mark.parametrize('blocked', ['/proc/mmgradguard', 'a/file/in/the/way'])
def test_an_unwritable_folder_is_one_line_and_no_traceback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, blocked: str
) -> None:
    (tmp_path / 'a').write_text('')
    folder = tmp_path / blocked
    model = make_model()
    guard = GradGuard(
        model, torch.optim.SGD(model.parameters(), lr=0.01), out_dir=folder
    )
    train(guard, batches(bad=(7,)))
    (line,) = [r.getMessage() for r in caplog.records if str(folder) in r.getMessage()]
    assert line.startswith(f'cannot write into {folder}')
    assert 'Traceback' not in caplog.text
    # nor is there a word of an incident's folder: none was made
    assert ', see ' not in caplog.text


def test_a_report_that_cannot_be_written_is_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = make_model()
    guard = GradGuard(
        model, torch.optim.SGD(model.parameters(), lr=0.1), out_dir=tmp_path
    )
    (tmp_path / 'report.html').mkdir()  # the page cannot take its place
    train(guard, batches(3))
    (line,) = [
        r.getMessage() for r in caplog.records if 'report.html' in r.getMessage()
    ]
    assert line.startswith('no report.html: ')
    assert 'Traceback' not in caplog.text


def test_two_guards_of_one_folder_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    guards = []
    for _ in range(2):
        model = make_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        guards.append(GradGuard(model, optimizer, out_dir=tmp_path))
    for batch in batches(5):
        for guard in guards:
            step_once(guard, batch['inputs'])
    for guard in guards:
        guard.close()
    assert caplog.text.count('already holds steps of another run') == 1
    report = build_report(read_run(tmp_path))
    assert (report.summary.num_runs, report.summary.num_steps) == (2, 10)


def test_patterns_that_match_nothing_are_told(caplog: pytest.LogCaptureFixture) -> None:
    model = make_model()
    GradGuard(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        clip_groups=[('head', 1.0), (r'^3\.', 1.0)],
        module_groups=[r'^0\.', 'neck'],
    )
    told = [r.getMessage() for r in caplog.records]
    assert len(told) == 2
    assert "`clip_groups`: no parameter matches 'head', such as 0.weight" in told[0]
    assert "`module_groups`: no parameter matches 'neck'" in told[1]


def test_an_image_without_id_is_named_by_its_index(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = make_model()
    guard = GradGuard(
        model, torch.optim.SGD(model.parameters(), lr=0.01), out_dir=tmp_path
    )
    for batch in batches(8, bad=(5,)):
        step_once(guard, batch['inputs'])
    guard.close()
    assert 'the image at index 1 of the batch is to blame' in caplog.text
    assert 'None' not in caplog.text
    assert 'index 1' in incidents(tmp_path)[5]['cause']['evidence'][0]


def test_weights_that_are_lost_lead_the_report_of_a_plain_loop(tmp_path: Path) -> None:
    model = make_model()
    guard = GradGuard(
        model,
        torch.optim.SGD(model.parameters(), lr=0.01),
        out_dir=tmp_path,
        skip_nonfinite=False,
    )
    train(guard, batches(12, bad=(5,)))
    report = build_report(read_run(tmp_path))
    assert report.verdict == 'fatal'
    assert 'not finite since epoch 1, iteration 6' in report.sentences[0]
    assert 'check that the weights' not in ' '.join(report.sentences)


def test_weights_that_somebody_else_spoiled_stay_fatal(tmp_path: Path) -> None:
    # every step is skipped from there on, so nothing is ever back in its band
    model = make_model()
    guard = GradGuard(
        model, torch.optim.SGD(model.parameters(), lr=0.01), out_dir=tmp_path
    )
    for i, batch in enumerate(batches(20)):
        if i == 10:
            model[3].weight.data[0, 0] = float('nan')
        step_once(guard, batch['inputs'])
    guard.close()
    assert incidents(tmp_path)[10]['kind'] == 'nonfinite_weights'
    report = build_report(read_run(tmp_path))
    assert report.verdict == 'fatal'
    assert 'not finite since epoch 1, iteration 11' in report.sentences[0]
