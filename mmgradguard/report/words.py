"""The words in which kinds, actions and incidents are told to a person."""

from __future__ import annotations

import keyword
from typing import TYPE_CHECKING, Any

from mmgradguard.report.values import format_number, format_place

if TYPE_CHECKING:
    from mmgradguard.report.incident_parts import Intervention
    from mmgradguard.report.incident_record import Incident

KIND_WORDS = {
    'exception': 'Training raised an exception',
    'nonfinite_weights': 'Non-finite weights',
    'nonfinite_input': 'Non-finite input',
    'nonfinite_target': 'Non-finite target',
    'masked_nonfinite': 'Non-finite value hidden by a mask',
    'nonfinite_forward': 'Non-finite activation',
    'nonfinite_loss': 'Non-finite loss',
    'nonfinite_gradient': 'Non-finite gradient',
    'norm_overflow': 'Norm overflow, every gradient finite',
    'scale_collapse': 'Loss scale collapsed',
    'grad_spike': 'Gradient spike',
    'loss_spike': 'Loss spike',
}
ACTION_WORDS = {
    'none': 'only watched',
    'clipped': 'clipped',
    'skipped': 'step skipped',
    'rolled_back': 'rolled back',
    'stopped': 'training stopped',
    'raised': 'training ended with the exception',
}
#: Confidence from which a cause is stated without a caveat.
HIGH_CONFIDENCE = 0.8


def describe_kind(incident: Incident) -> str:
    """Return what happened, in words; an unknown kind as it is written."""
    if incident.kind is None:
        return 'Unreadable incident'
    return KIND_WORDS.get(incident.kind, incident.kind)


def describe_action(incident: Incident) -> str:
    """Return what the guard did."""
    if incident.action is None:
        return 'action unknown'
    return ACTION_WORDS.get(incident.action, incident.action)


def describe_when(incident: Incident) -> str:
    """Return where in the run, 1-based; other ranks than 0 are named."""
    place = format_place(incident.epoch, incident.iteration)
    return f'{place}, rank {incident.rank}' if incident.rank else place


def describe_where(incident: Incident) -> str:
    """Return the module, parameter or image to look at first; ``-`` if unknown."""
    first = incident.first_bad
    if first is not None and first.module:
        return first.module
    culprits = [sample for sample in incident.samples if sample.culprit]
    if culprits:
        return f'image {culprits[0].img_id or culprits[0].index}'
    if first is not None and (first.source or first.op):
        return first.source or first.op or '-'
    names = [row.name for row in incident.params if row.name]
    return names[0] if names else '-'


def describe_cause(incident: Incident) -> str | None:
    """Return the cause with its confidence; None without one."""
    cause = incident.cause
    if cause is None or not (cause.title or cause.code):
        return None
    text = cause.title or cause.code or ''
    if cause.title and cause.code:
        text += f' ({cause.code})'
    if cause.confidence is None:
        return text
    word = 'high' if cause.confidence >= HIGH_CONFIDENCE else 'a guess'
    return f'{text}, confidence {format_number(cause.confidence)}, {word}'


def describe_intervention(tried: Intervention) -> str:
    """Return what was tried on the same batch, and what came of it."""
    outcomes = {True: 'the anomaly stayed', False: 'the anomaly was gone'}
    outcome = 'not known' if tried.anomaly is None else outcomes[tried.anomaly]
    return f'{tried.name or "-"}: {outcome}'


def format_config(config: Any) -> str:
    """Return ``config`` as lines to paste into a Python config.

    >>> format_config({'optim_wrapper': {'clip_grad': {'max_norm': 0.1}}})
    'optim_wrapper = dict(clip_grad=dict(max_norm=0.1))'
    """
    if not isinstance(config, dict) or not config or not _are_names(config):
        return _literal(config, 0)
    return '\n'.join(f'{key} = {_literal(config[key], 0)}' for key in config)


def _literal(value: Any, indent: int) -> str:
    if isinstance(value, dict):
        is_call = _are_names(value)
        items = [
            f'{key}={_literal(item, indent + 4)}'
            if is_call
            else f'{key!r}: {_literal(item, indent + 4)}'
            for key, item in value.items()
        ]
        left, right = ('dict(', ')') if is_call else ('{', '}')
        return _wrap(left, items, right, indent)
    if isinstance(value, list):
        return _wrap('[', [_literal(item, indent + 4) for item in value], ']', indent)
    # repr(inf) is no Python; a config takes the same text through float()
    if isinstance(value, float) and value - value != 0:
        return f'float({str(value)!r})'
    return repr(value)


def _wrap(left: str, items: list[str], right: str, indent: int) -> str:
    line = f'{left}{", ".join(items)}{right}'
    if len(line) + indent <= 72 and '\n' not in line:
        return line
    pad = ' ' * (indent + 4)
    body = ''.join(f'{pad}{item},\n' for item in items)
    return f'{left}\n{body}{" " * indent}{right}'


def _are_names(config: dict[Any, Any]) -> bool:
    # ASCII: Python normalises other identifiers, so that the key would be another one
    return all(
        isinstance(key, str)
        and key.isascii()
        and key.isidentifier()
        and not keyword.iskeyword(key)
        and key != '__debug__'
        for key in config
    )
