"""What became of an anomaly, judged by the steps after it."""

from __future__ import annotations

import statistics
from typing import Sequence

from mmgradguard.core.types import StepSample, Verdict

#: Steps after which an incident is judged.
FOLLOW_UP_STEPS = 50
#: The last steps of those decide, and fewer than this decide nothing.
_LAST, _FEWEST = 10, 3
#: A value is back if it is at most this many times the largest before.
_NORM_MARGIN, _LOSS_MARGIN = 2.0, 1.25


def judge_recovery(
    before: Sequence[StepSample], after: Sequence[StepSample]
) -> Verdict:
    """Return BENIGN if norm and loss are back in their band, else SUSPICIOUS.

    Steps that the loss scaler skipped say nothing and are passed over. Whether weights
    are finite is not seen here.

    Args:
        before: Healthy steps before the anomaly, oldest first.
        after: Steps after it, oldest first.
    """
    last = [s for s in after if s.skipped != 'scaler'][-_LAST:]
    taken = [s for s in last if s.skipped is None]
    norms = [s.total_norm for s in taken if s.total_norm - s.total_norm == 0]
    if len(norms) < _FEWEST or len(norms) < 0.8 * len(last):
        return Verdict.SUSPICIOUS
    past_norms = [s.total_norm for s in before]
    if past_norms and statistics.median(norms) > _NORM_MARGIN * max(past_norms):
        return Verdict.SUSPICIOUS
    losses, past_losses = _losses(taken), _losses(before)
    if not past_losses or not losses:
        return Verdict.BENIGN
    is_back = statistics.median(losses) <= _LOSS_MARGIN * max(past_losses)
    return Verdict.BENIGN if is_back else Verdict.SUSPICIOUS


def _losses(samples: Sequence[StepSample]) -> list[float]:
    return [s.losses['loss'] for s in samples if s.losses.get('loss') is not None]
