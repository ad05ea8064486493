"""`GradGuard` in plain loops."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from mmgradguard import GradGuard
from mmgradguard.core.errors import GuardStop
from mmgradguard.report.model import build_report
from mmgradguard.report.run_files import read_run


def make_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))


def batches(count: int = 30, bad: tuple[int, ...] = ()) -> list[dict[str, Any]]:
    generator = torch.Generator().manual_seed(1)
    made = []
    for i in range(count):
        x = torch.randn(4, 4, generator=generator)
        if i in bad:
            x[1, 2] = float('nan')
        made.append(
            {'inputs': x, 'targets': [{'img_id': 10 * i + k} for k in range(4)]}
        )
    return made


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / 'steps.jsonl').open()]


def incidents(folder: Path) -> dict[int, dict[str, Any]]:
    found = (folder / 'incidents').glob('*/incident.json')
    loaded = [json.loads(path.read_text()) for path in found]
    return {incident['iteration']: incident for incident in loaded}


def losses_of(model: nn.Module, batch: Any) -> dict[str, torch.Tensor]:
    out = model(batch['inputs'])
    return {'loss_cls': out.square().mean(), 'loss_box': (out - 1).abs().mean()}


def train(guard: GradGuard, data: list[Any], raise_at: int = -1) -> None:
    for i, batch in enumerate(data):
        with guard.iteration(batch):
            losses = losses_of(guard.model, batch)
            if i == raise_at:
                raise ValueError('matcher')
            guard.optimizer.zero_grad()
            sum(losses.values()).backward()
            guard.step(losses=losses)
    guard.close()


def state_of(model: nn.Module) -> dict[str, torch.Tensor]:
    return {key: value.clone() for key, value in model.state_dict().items()}


def equal(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return all(torch.equal(a[key], b[key]) for key in a)


@pytest.mark.parametrize('max_norm', [None, 0.1, 100.0])
@pytest.mark.parametrize('fused', [False, True])
def test_a_healthy_run_is_the_run_without_guard(max_norm: Any, fused: bool) -> None:
    plain = make_model()
    optimizer = torch.optim.AdamW(plain.parameters(), fused=fused)
    for batch in batches():
        optimizer.zero_grad()
        sum(losses_of(plain, batch).values()).backward()
        if max_norm is not None:
            nn.utils.clip_grad_norm_(plain.parameters(), max_norm)
        optimizer.step()
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), fused=fused)
    train(GradGuard(model, optimizer, max_norm=max_norm), batches())
    assert equal(state_of(model), state_of(plain))


def test_bad_batches_are_as_if_they_had_not_been(tmp_path: Path) -> None:
    model = make_model()
    guard = GradGuard(
        model,
        torch.optim.AdamW(model.parameters()),
        max_norm=0.1,
        out_dir=tmp_path,
        on_exception='skip',
    )
    train(guard, batches(bad=(7, 20)), raise_at=12)
    clean = make_model()
    data = [batch for i, batch in enumerate(batches()) if i not in (7, 12, 20)]
    train(GradGuard(clean, torch.optim.AdamW(clean.parameters()), max_norm=0.1), data)
    assert equal(state_of(model), state_of(clean))
    skipped = {row['iteration']: row['skipped'] for row in rows(tmp_path)}
    assert {i: s for i, s in skipped.items() if s} == {
        7: 'nonfinite', 12: 'exception', 20: 'nonfinite',
    }  # fmt: skip
    found = incidents(tmp_path)
    assert set(found) == {7, 12, 20}
    assert found[7]['kind'] == 'nonfinite_input'
    assert [s['img_id'] for s in found[7]['samples'] if s['culprit']] == [71]
    assert found[12]['exception']['type'] == 'ValueError'
    assert (tmp_path / 'report.html').is_file()


def test_exceptions_are_raised_by_default(tmp_path: Path) -> None:
    model = make_model()
    guard = GradGuard(
        model, torch.optim.SGD(model.parameters(), lr=0.1), out_dir=tmp_path
    )
    with pytest.raises(ValueError, match='matcher'):
        train(guard, batches(), raise_at=3)
    assert incidents(tmp_path)[3]['action'] == 'raised'


def test_a_loop_without_the_iteration_block(tmp_path: Path) -> None:
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    guard = GradGuard(model, optimizer, out_dir=tmp_path, interval=10)
    for batch in batches(bad=(5,)):
        loss = sum(losses_of(model, batch).values())
        optimizer.zero_grad()
        loss.backward()
        outcome = guard.step(losses=loss, batch=batch)
    guard.close()
    assert outcome.skipped is None
    written = rows(tmp_path)
    assert [row['iteration'] for row in written] == list(range(30))
    assert [i for i, r in enumerate(written) if 'module_norms' in r] == [0, 5, 10, 20]
    assert written[5]['skipped'] == 'nonfinite'


def test_a_yolo_style_loop_with_a_scaler(tmp_path: Path) -> None:
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    scaler = torch.amp.GradScaler('cpu', init_scale=2.0**24)
    guard = GradGuard(model, optimizer, scaler=scaler, max_norm=10.0, out_dir=tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        for batch in batches():
            with torch.autocast('cpu', dtype=torch.float16):
                losses = losses_of(model, batch)
                loss = sum(losses.values())
            scaler.scale(loss).backward()
            guard.step(losses=losses, batch=batch)
            optimizer.zero_grad()
            scheduler.step()
    guard.close()
    written = rows(tmp_path)
    assert written[0]['skipped'] == 'scaler'
    assert written[-1]['skipped'] is None
    assert written[-1]['loss_scale'] < 2.0**24
    assert not incidents(tmp_path)
    assert all(torch.isfinite(p).all() for p in model.parameters())


def test_losses_computed_outside_of_the_model(tmp_path: Path) -> None:
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters())
    guard = GradGuard(model, optimizer, out_dir=tmp_path)
    for batch in batches(5):
        out = model(batch['inputs'])
        terms = {'a': out.square().mean(), 'b': out.abs().mean(), 'c': 0.5}
        optimizer.zero_grad()
        (terms['a'] + terms['b']).backward()
        guard.step(losses=terms)
    guard.close()
    row = rows(tmp_path)[0]
    assert set(row['losses']) == {'a', 'b', 'c', 'loss'}
    total = row['losses']['a'] + row['losses']['b'] + 0.5
    assert row['losses']['loss'] == pytest.approx(total)


def test_too_many_skips_stop() -> None:
    model = make_model()
    guard = GradGuard(
        model, torch.optim.SGD(model.parameters(), lr=0.1), max_consecutive_skips=3
    )
    with pytest.raises(GuardStop, match='3 steps in a row were skipped'):
        train(guard, batches(bad=tuple(range(5, 30))))


def test_state_goes_through_a_checkpoint(tmp_path: Path) -> None:
    policy = dict(type='PercentileClip', percentile=50, window=8, warmup=2)

    def build() -> GradGuard:
        model = make_model()
        return GradGuard(
            model, torch.optim.SGD(model.parameters(), lr=0.01), clip_policy=policy
        )

    whole = build()
    train(whole, batches(20))
    first = build()
    train(first, batches(20)[:10])
    torch.save(
        {'guard': first.state_dict(), 'model': first.model.state_dict()},
        tmp_path / 'c.pt',
    )
    saved = torch.load(tmp_path / 'c.pt', weights_only=True)
    second = build()
    second.load_state_dict(saved['guard'])
    second.model.load_state_dict(saved['model'])
    train(second, batches(20)[10:])
    assert equal(state_of(second.model), state_of(whole.model))
    assert second.state_dict()['monitor']['step'] == 20


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


def test_the_model_is_let_go() -> None:
    model = make_model()
    guard = GradGuard(model, torch.optim.SGD(model.parameters(), lr=0.1))
    guard.close()
    assert not model._forward_pre_hooks


@pytest.mark.parametrize(
    'losses',
    [None, 'text', {'a': None, 'b': 'x'}, (torch.tensor(1.0), None), {'a': True}],
)
def test_any_losses_are_recorded_as_far_as_they_are_numbers(losses: Any) -> None:
    model = make_model()
    guard = GradGuard(model, torch.optim.SGD(model.parameters(), lr=0.1))
    model(torch.ones(2, 4)).sum().backward()
    assert guard.step(losses=losses).skipped is None


@pytest.mark.parametrize(
    'target',
    [
        'mmgradguard.incident.monitor.capture_rng',
        'mmgradguard.incident.monitor.find_kind',
        'mmgradguard.incident.monitor.collect_evidence',
        'mmgradguard.clip.guarded_step.compute_grad_norms',
    ],
)
def test_a_failure_inside_the_guard_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, target: str, tmp_path: Path
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError('a bug of ours')

    plain = make_model()
    train(
        GradGuard(plain, torch.optim.AdamW(plain.parameters()), max_norm=0.1), batches()
    )
    monkeypatch.setattr(target, fail)
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters())
    train(GradGuard(model, optimizer, max_norm=0.1, out_dir=tmp_path), batches())
    assert equal(state_of(model), state_of(plain))


def test_an_optimizer_that_needs_a_closure_is_refused() -> None:
    model = make_model()
    with pytest.raises(ValueError, match='LBFGS needs a closure'):
        GradGuard(model, torch.optim.LBFGS(model.parameters()))


def test_a_child_named_module_is_no_wrapper(tmp_path: Path) -> None:
    model = nn.Sequential()
    model.add_module('module', nn.Linear(4, 1))
    model.add_module('head', nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    guard = GradGuard(model, optimizer, out_dir=tmp_path)
    model(torch.ones(2, 4)).sum().backward()
    guard.step()
    guard.close()
    assert set(rows(tmp_path)[0]['module_norms']) == {'module', 'head'}


def test_memory_of_a_long_loop_is_bounded() -> None:
    model = make_model()
    guard = GradGuard(model, torch.optim.SGD(model.parameters(), lr=0.0))
    model(torch.ones(2, 4)).sum().backward()
    for _ in range(1200):
        guard.step()
    assert len(guard._monitor.window.samples) == 1000


def step_once(guard: GradGuard, x: torch.Tensor) -> None:
    guard.optimizer.zero_grad()
    guard.model(x).square().mean().backward()
    guard.step(batch={'inputs': x})


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
