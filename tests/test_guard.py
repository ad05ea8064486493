"""`GradGuard` in plain loops."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from mmgradguard import GradGuard
from mmgradguard.core.errors import GuardStop
from tests.plain_loop import (
    batches,
    equal,
    incidents,
    losses_of,
    make_model,
    rows,
    state_of,
    train,
)


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
