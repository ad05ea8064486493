"""What the name of a printed quantity says: a loss term, the total, a decoder layer."""

from __future__ import annotations

import re
from typing import Collection, Iterable

#: Names of the total, the surest first.
_TOTALS = ('loss', 'total_loss', 'loss_total', 'train_loss', 'total', 'L_total')
#: Losses of codebases that do not say so.
_SHORT_LOSSES = frozenset(
    ('cls', 'reg', 'obj', 'box', 'bbox', 'dfl', 'giou', 'total', 'ce', 'l1')
)
#: Contain the word and are none: the scale of AMP, copies before weighting, our own.
_NO_LOSS = re.compile(
    r'loss_?(?:scale|weight)|_unscaled(?:_\d+)?$|grad_guard|(?:^|[/_.])time$'
    r'|^(?:val|test)[/_]|loss_?less',
    re.IGNORECASE,
)
_LAYER = re.compile(
    r'(?:^|[/.])(?:train_)?('
    r'(?:frame_\d+_)?(?:dn_)?d\d+(?=[._])'
    r'|frame_\d+(?=[._])'
    r'|layer_-?\d+(?=[._])'
    r'|(?:dn_)?s\d+(?=\.)'
    r'|stage_?\d+(?=[._])'
    r'|(?:enc|dn|interm)(?=[._]))'
)
_NUMBERED = re.compile(r'loss_[a-z]\w*_(\d+)$')
_NUMBER = re.compile(r'(-?\d+)')


def is_loss_term(name: str) -> bool:
    """Return whether a quantity is a loss, or a term of one.

    >>> [is_loss_term(n) for n in ('d0.loss_bbox', 'L_det', 's0.acc', 'loss_scale')]
    [True, True, False, False]
    """
    if _NO_LOSS.search(name):
        return False
    if 'loss' in name.lower():
        return True
    last = re.split(r'[./]', name)[-1]
    return last in _SHORT_LOSSES or last.startswith('L_')


def tells_health(columns: Collection[str]) -> bool:
    """Return whether a row with these columns says how a training goes.

    >>> tells_health(['lr', 'time']), tells_health(['lr', 'loss_cls'])
    (False, True)
    """
    known = 'grad_norm' in columns or 'loss' in columns
    return known or any(map(is_loss_term, columns))


def total_of(columns: Iterable[str]) -> str | None:
    """Return the name of the total loss among ``columns``, None if none is printed.

    >>> total_of(['lr', 'loss_cls', 'loss'])
    'loss'
    """
    names = set(columns)
    return next((name for name in _TOTALS if name in names), None)


def layer_of(name: str) -> str | None:
    """Return the decoder layer, stage or frame that a term belongs to.

    None if the name tells none, which for the DETR family means the last layer.

    >>> layer_of('frame_0_d0.dn_loss_cls'), layer_of('layer_-1_loss_cls')
    ('frame_0_d0', 'layer_-1')
    """
    found = _LAYER.search(name) or _NUMBERED.search(name)
    return found.group(1) if found else None


def order_key(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return a key that sorts names as a person does: ``d2`` before ``d10``.

    >>> sorted(['d10.loss', 'd2.loss', 'loss'], key=order_key)
    ['d2.loss', 'd10.loss', 'loss']
    """
    parts = _NUMBER.split(name)
    return tuple(
        (1, int(part), '') if place % 2 else (0, 0, part)
        for place, part in enumerate(parts)
    )
