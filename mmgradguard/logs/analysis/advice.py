"""What to change, most likely first: one function for each piece of advice.

The order follows how often a cause was behind public reports of exploding detectors,
and what those confirmed: a learning rate that does not fit the batch first, data next,
precision next. Clipping alone cured none of them, so it is never sold as the cure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Iterator, Mapping, Sequence

from mmgradguard.core.log_analysis import Advice, LogEvent, Note, RunFacts
from mmgradguard.core.types import Verdict
from mmgradguard.logs.analysis.config_facts import find, is_mmengine
from mmgradguard.logs.analysis.families import Family

#: The official recipes of 2D detectors are for 8 GPUs.
_RECIPE_GPUS = 8
#: Coincidences that point at the learning rate.
_LR_PLACES = {'warmup', 'warmup_end', 'lr_peak', 'lr_step'}
_HARMFUL = ('nan_sticks', 'masked_nan', 'norm_overflow', 'finite_divergence')


@dataclass
class Case:
    """What a piece of advice may look at."""

    verdict: Verdict
    events: Sequence[LogEvent]
    facts: RunFacts
    family: Family | None
    config: Mapping[str, Any]
    format: str
    has_norm: bool
    harmful: list[LogEvent] = field(init=False)

    def __post_init__(self) -> None:
        self.harmful = [
            e for e in self.events if e.kind in _HARMFUL and not e.recovered
        ]

    @property
    def main(self) -> LogEvent | None:
        """Return the event that did the damage, else the first one."""
        return next(iter([*self.harmful, *self.events]), None)

    @property
    def is_mmcv1(self) -> bool:
        """Return whether the run is of the generation without mmengine."""
        if self.config:
            return not is_mmengine(self.config)
        return self.format.startswith('mmcv')

    def merge(self, mmengine: dict[str, Any], mmcv: dict[str, Any]) -> dict[str, Any]:
        """Return the change in the words of the run's generation."""
        return mmcv if self.is_mmcv1 else mmengine


def _auto_scale_lr(case: Case) -> Iterator[Advice]:
    setting = find(case.config, 'auto_scale_lr')
    if not case.harmful or not isinstance(setting, Mapping):
        return
    num_gpus = case.facts.num_gpus
    if not setting.get('enable') and (num_gpus is None or num_gpus < _RECIPE_GPUS):
        values = {'base': setting.get('base_batch_size'), 'num_gpus': num_gpus}
        yield Advice(
            Note('advice.auto_scale_lr', values), {'auto_scale_lr': {'enable': True}}
        )


def _lower_lr(case: Case) -> Iterator[Advice]:
    lr, event = case.facts.lr, case.main
    if not case.harmful or lr is None or event is None or lr <= 0:
        return
    new, code = lr / 4, 'advice.lower_lr'
    num_gpus = case.facts.num_gpus
    if num_gpus and num_gpus < _RECIPE_GPUS:
        new, code = lr * num_gpus / _RECIPE_GPUS, 'advice.scale_lr'
    if case.family is not None and lr > 2 * max(case.family.lr):
        new, code = max(case.family.lr), 'advice.family_lr'
    places = sorted(_LR_PLACES & set(event.coincides_with))
    values = {
        'lr': lr,
        'new': float(f'{new:.2g}'),
        'num_gpus': num_gpus,
        'family': case.family.name if case.family else None,
        'place': [Note(f'coincidence.{place}') for place in places],
    }
    if places and code == 'advice.lower_lr':
        code = 'advice.lower_lr_here'
    optimizer = {'optimizer': {'lr': values['new']}}
    yield Advice(
        Note(code, values), case.merge({'optim_wrapper': optimizer}, optimizer)
    )


def _longer_warmup(case: Case) -> Iterator[Advice]:
    event = case.main
    if case.harmful and event and {'warmup', 'warmup_end'} & set(event.coincides_with):
        config = {'lr_config': {'warmup': 'linear', 'warmup_iters': 2000}}
        yield Advice(Note('advice.longer_warmup'), config if case.is_mmcv1 else None)


def _resume(case: Case) -> Iterator[Advice]:
    event = case.main
    if event is not None and 'resume' in event.coincides_with and not event.recovered:
        yield Advice(Note('advice.resume', {'line': event.line}))


def _mask(case: Case) -> Iterator[Advice]:
    for event in case.harmful:
        if event.kind == 'masked_nan':
            values = {'term': event.term, 'value': event.value_printed}
            yield Advice(Note('advice.mask', values))
            return


def _targets(case: Case) -> Iterator[Advice]:
    event = case.main
    if event is None or event.term is None or event.kind in ('amp_skip',):
        return
    if case.verdict is not Verdict.HEALTHY:
        name = event.term.lower()
        is_box = any(word in name for word in ('bbox', 'box', 'iou', 'reg', 'l1'))
        code = 'advice.box_targets' if is_box else 'advice.class_targets'
        yield Advice(Note(code, {'term': event.term}))


def _static_scale(case: Case) -> Iterator[Advice]:
    scale = case.facts.loss_scale
    if not case.harmful or not case.facts.is_amp or scale in (None, 'dynamic'):
        return
    config = case.merge(
        {'optim_wrapper': {'loss_scale': 'dynamic'}},
        {'fp16': {'loss_scale': 'dynamic'}},
    )
    yield Advice(Note('advice.dynamic_scale', {'scale': scale}), config)


def _try_fp32(case: Case) -> Iterator[Advice]:
    if not case.harmful or case.facts.is_amp is False:
        return
    if case.facts.is_amp:
        config = case.merge({'optim_wrapper': {'type': 'OptimWrapper'}}, {'fp16': None})
        yield Advice(Note('advice.try_fp32'), config)
        yield Advice(Note('advice.dropout_fp16'))
    else:
        yield Advice(Note('advice.try_fp32_if'))


def _guard(case: Case) -> Iterator[Advice]:
    if case.verdict is Verdict.HEALTHY or not case.events:
        return
    if all(event.kind == 'amp_skip' for event in case.events):
        return
    if case.is_mmcv1:
        yield Advice(Note('advice.guard_mmcv1'))
        return
    hook = {'type': 'mmgradguard.GradAnomalyHook'}
    config: dict[str, Any] = {'default_hooks': {'grad_guard': hook}}
    code = 'advice.watch'
    if case.harmful and case.facts.is_amp is not True:
        config['optim_wrapper'] = {'type': 'mmgradguard.AdaptiveClipOptimWrapper'}
        code = 'advice.guard'
    elif case.harmful:
        config['optim_wrapper'] = {'type': 'mmgradguard.AdaptiveClipAmpOptimWrapper'}
        code = 'advice.guard'
    yield Advice(Note(code), config)


def _restart(case: Case) -> Iterator[Advice]:
    for event in case.harmful:
        if event.kind in ('nan_sticks', 'masked_nan'):
            values = {'epoch': event.epoch, 'iteration': event.iteration}
            yield Advice(Note('advice.restart', values))
            return


def _log_norm(case: Case) -> Iterator[Advice]:
    if case.has_norm or case.verdict is Verdict.HEALTHY:
        return
    limit = case.family.max_norm if case.family else 35.0
    clip = {'max_norm': limit, 'norm_type': 2}
    config = case.merge(
        {'optim_wrapper': {'clip_grad': clip}},
        {'optimizer_config': {'grad_clip': clip}},
    )
    yield Advice(Note('advice.log_norm', {'max_norm': limit}), config)


def _not_learning(case: Case) -> Iterator[Advice]:
    if any(event.kind == 'not_learning' for event in case.events):
        yield Advice(Note('advice.not_learning', {'lr': case.facts.lr}))


def _harmless_skips(case: Case) -> Iterator[Advice]:
    kinds = {event.kind for event in case.events}
    if kinds == {'amp_skip'} and case.verdict is Verdict.BENIGN:
        is_loss = any(event.value_of != 'grad_norm' for event in case.events)
        is_odd = is_loss and not case.facts.is_amp
        yield Advice(Note('advice.nan_losses' if is_odd else 'advice.nothing_amp'))
    elif case.events and case.verdict is Verdict.BENIGN:
        yield Advice(Note('advice.nothing'))


def _clip_is_no_cure(case: Case) -> Iterator[Advice]:
    if case.harmful:
        yield Advice(Note('advice.clip_no_cure'))


#: In the order in which they are given.
ADVICE: tuple[Callable[[Case], Iterator[Advice]], ...] = (
    _harmless_skips,
    _resume,
    _auto_scale_lr,
    _lower_lr,
    _longer_warmup,
    _mask,
    _static_scale,
    _targets,
    _try_fp32,
    _not_learning,
    _guard,
    _log_norm,
    _restart,
    _clip_is_no_cure,
)


def give_advice(case: Case) -> list[Advice]:
    """Return what to change, most likely first."""
    return [advice for give in ADVICE for advice in give(case)]
