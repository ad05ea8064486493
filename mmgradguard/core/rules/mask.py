"""GG105: a loss that prints one constant for good, which hides a NaN."""

from __future__ import annotations

import statistics
from typing import Sequence

#: mmcv's CUDA focal loss turns NaN logits into this for each positive: 0.25 times the
#: negative logarithm of the smallest normal float32, 87.3365.
FOCAL_MASK = 21.8341
#: Rows that must print a known mask, and any other constant.
_ROWS, _ROWS_OF_ANY = 3, 4
#: A term whose last values were smaller may just have reached zero.
_LEAST_BEFORE = 0.005
#: The way to the constant that is left, of the usual way, where the jump begins.
_ABRUPT = 0.3


def find_mask(values: Sequence[float], smear: int = 1) -> int | None:
    """Return the first row of a constant that lasts to the end, None if there is none.

    Args:
        values: A loss term, oldest first.
        smear: On so many rows one step shows; the constant is reached within as many.

    Loss code that calls ``nan_to_num``, ``where`` or a clamp prints exactly 0.0000, or
    21.8341, where the logits are NaN. Any other constant is a mask too if the term
    varied before it. A term that is constant from the beginning is switched off, and
    one that comes to its constant bit by bit was led there.

    >>> find_mask([0.7, 0.6, 0.65, 0.0, 0.0, 0.0])
    3
    """
    if len(values) < _ROWS + 2:
        return None
    constant = values[-1]
    first = len(values)
    while first > 0 and values[first - 1] == constant:
        first -= 1
    known = constant == 0 or is_focal_mask(constant)
    if len(values) - first < (_ROWS if known else _ROWS_OF_ANY):
        return None
    before = [v for v in values[max(first - 8, 0) : first] if v - v == 0]
    if len(set(before)) < 2 or statistics.median(map(abs, before)) < _LEAST_BEFORE:
        return None
    if not known and len(set(before)) < min(len(before), 4):
        return None
    return first if _is_abrupt(values, first, smear) else None


def _is_abrupt(values: Sequence[float], first: int, smear: int) -> bool:
    stop = max(first - smear + 1, 1)
    near = [abs(v - values[-1]) for v in values[max(stop - 2, 0) : stop]]
    past = [abs(v - values[-1]) for v in values[max(stop - 18, 0) : max(stop - 2, 1)]]
    near = [v for v in near if v - v == 0]
    past = [v for v in past if v - v == 0]
    return bool(near and past) and max(near) > _ABRUPT * statistics.median(past)


def is_focal_mask(value: float) -> bool:
    """Return whether ``value`` is a multiple of `FOCAL_MASK`, to its printed digits."""
    count = round(value / FOCAL_MASK) if 0 < value < 1e6 else 0
    return count > 0 and abs(value - count * FOCAL_MASK) < 1e-4 * count
