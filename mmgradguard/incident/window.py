"""What happened since the last log line, in numbers and in one sentence."""

from __future__ import annotations

import math
import statistics
from collections import Counter, deque
from typing import Counter as CounterType

from mmgradguard.core.types import StepSample

_REASONS = {
    'scaler': 'by the scaler',
    'nonfinite': 'for NaN or Inf in the gradients',
    'spike': 'as a spike',
    'exception': 'after an exception',
}


#: Steps remembered at most.
_LONGEST = 1000


class LogWindow:
    """Collects steps between two log lines; maxima and counts, not only means."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin a new window."""
        # a plain loop has no log lines that would clear it
        self.samples: deque[StepSample] = deque(maxlen=_LONGEST)
        self._healthy_norms: deque[float] = deque(maxlen=_LONGEST)
        self.num_incidents = 0

    def add(self, sample: StepSample, *, is_healthy: bool = True) -> None:
        """Count one step.

        Args:
            sample: The step.
            is_healthy: Whether it had no incident; it is then one of "the others".
        """
        self.samples.append(sample)
        if is_healthy and sample.skipped is None and math.isfinite(sample.total_norm):
            self._healthy_norms.append(sample.total_norm)

    def scalars(self) -> dict[str, float]:
        """Return at most 8 numbers for the log line; none of an empty window.

        Names avoid ``loss``, ``time`` and ``grad_norm``: mmengine averages keys that
        hold one of those.
        """
        if not self.samples:
            return {}
        norms = [s.total_norm for s in self.samples]
        last = self.samples[-1]
        scalars = {
            # the maximum says NaN if any was: a mean of the rest would hide it
            'norm_max': math.nan if any(map(math.isnan, norms)) else max(norms),
            'skipped': float(sum(s.skipped is not None for s in self.samples)),
            'bad_params': float(max(s.nonfinite_params for s in self.samples)),
            'incidents': float(self.num_incidents),
        }
        if last.max_norm is not None:
            coefs = [s.clip_coef for s in self.samples if s.skipped is None]
            scalars['max_norm'] = last.max_norm
            scalars['clip_coef'] = min(coefs) if coefs else 0.0
        if last.loss_scale is not None:
            scalars['amp_scale'] = last.loss_scale
        return scalars

    def sentence(self, weights_are_finite: bool) -> str | None:
        """Return what happened in plain words, None if nothing did."""
        total = len(self.samples)
        skipped = Counter(s.skipped for s in self.samples if s.skipped is not None)
        unskipped_bad = sum(
            s.skipped is None and s.nonfinite_params > 0 for s in self.samples
        )
        if not skipped and not unskipped_bad and not self.num_incidents:
            return None
        parts = _skip_phrases(skipped, total)
        if unskipped_bad:
            parts.append(
                f'{unskipped_bad} of {total} steps taken with NaN or Inf gradients'
            )
        if self.num_incidents and not skipped and not unskipped_bad:
            plural = '' if self.num_incidents == 1 else 's'
            parts.append(f'{self.num_incidents} incident{plural} in {total} steps')
        parts.append('weights finite' if weights_are_finite else 'WEIGHTS NOT FINITE')
        if self._healthy_norms:
            mean = statistics.mean(self._healthy_norms)
            parts.append(f'grad_norm over the others {mean:.4g}')
        return ', '.join(parts)


def _skip_phrases(skipped: CounterType[str | None], total: int) -> list[str]:
    phrases = []
    for reason, count in sorted(skipped.items(), key=lambda item: -item[1]):
        of_steps = f' of {total} steps' if not phrases else ''
        phrases.append(f'{count}{of_steps} skipped {_REASONS.get(str(reason), reason)}')
    return phrases
