"""Several runs in one folder: where each begins, and steps that were taken again."""

from __future__ import annotations

from typing import Sequence

from mmgradguard.core.types import StepSample


def find_starts(steps: Sequence[StepSample], marked: Sequence[int]) -> list[int]:
    """Return the indices at which a run begins, the first row always among them.

    Args:
        steps: In the order of the file.
        marked: Indices of rows that say they are the first of a run. Without any, a
            run begins where the count of steps goes back.
    """
    if not steps:
        return []
    found = marked or [
        i for i, (a, b) in enumerate(zip(steps, steps[1:]), 1) if b.step <= a.step
    ]
    return sorted({0, *found})


def drop_replayed(
    steps: Sequence[StepSample], starts: Sequence[int]
) -> tuple[list[StepSample], int]:
    """Return the steps without those that a resumed run took again, and how many.

    A run that begins at step 0 is another run and replaces nothing.

    Args:
        steps: In the order of the file.
        starts: As `find_starts` returns them.
    """
    runs: list[list[StepSample]] = []
    for start, end in zip(starts, [*starts[1:], len(steps)]):
        first = steps[start].step
        replaced = first > 0
        while replaced and runs:
            is_resumed = runs[-1][0].step > 0
            runs[-1] = [sample for sample in runs[-1] if sample.step < first]
            replaced = is_resumed and not runs[-1]
            if not runs[-1]:
                runs.pop()
        runs.append(list(steps[start:end]))
    kept = [sample for run in runs for sample in run]
    return kept, len(steps) - len(kept)
