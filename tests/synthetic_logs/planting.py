"""What all failures need: places in a run, and values that show in the print."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from statistics import median
from typing import Sequence

from synthetic_logs.averaging import Row
from synthetic_logs.layouts import LAYOUTS, Layout
from synthetic_logs.series import Steps
from synthetic_logs.truth import Options

#: A spike prints at least this many times what is usual.
VISIBLE_FACTOR = 6.5
#: A term that moved stands out of its own spread by this many robust deviations.
VISIBLE_SIGMAS = 8.0


class UndecidableError(Exception):
    """The print cannot show what was planted: draw again."""


@dataclass
class Planted:
    """What a failure did, in iterations; the truth about the print follows from it.

    `bad_rows` are the rows in which a bad step is seen first; `masked` are the terms
    that a mask holds for good.
    """

    verdicts: tuple[str, ...]
    first_terms: tuple[str | None, ...]
    bad_rows: list[int] = field(default_factory=list)
    recovered: bool = True
    has_warning: bool = False
    masked: dict[str, float] = field(default_factory=dict)


@dataclass
class Site:
    """A run to plant in: `steps` is a copy of `clean`, to be changed in place."""

    options: Options
    rows: list[Row]
    clean: list[dict[str, float]]
    steps: Steps
    rng: random.Random

    @property
    def layout(self) -> Layout:
        """Return the printed quantities of the model."""
        return LAYOUTS[self.options.layout]

    @property
    def smear(self) -> int:
        """Return how many rows after its own a bad step can reach."""
        reach = self.options.window * self.options.accumulation
        return -(-reach // self.options.interval)

    def new_iterations(self, row: int) -> range:
        """Return the iterations that `row` is the first to print."""
        begin = self.rows[row - 1].iteration + 1 if row else 0
        first, stop = self.rows[row].span
        return range(max(first, begin), stop)

    def steps_since(self, row: int) -> range:
        """Return the optimizer steps from the first iteration after the row before."""
        begin = self.rows[row - 1].iteration + 1 if row else 0
        return range(begin // self.options.accumulation, len(self.steps.norms))

    def row_of_step(self, step: int) -> int:
        """Return the first row that averages the norm of an optimizer step.

        Raises:
            UndecidableError: If no row prints it.
        """
        for number, row in enumerate(self.rows):
            if row.norm_span[0] <= step < row.norm_span[1]:
                return number
        raise UndecidableError('this step is never printed')

    def draw_row(self, room_after: int, is_early: bool = False) -> int:
        """Return a row with a past to compare with, and `room_after` rows behind it.

        An early one has hardly a past: for what shows without.

        Raises:
            UndecidableError: If the log is too short for that.
        """
        num = len(self.rows)
        least = 1 if is_early else max(8, num // 10)
        most = min(8, num - room_after) if is_early else num - room_after
        if least >= most:
            raise UndecidableError('no room')
        return self.rng.randrange(least, most)

    def draw_term(self) -> str:
        """Return a term that can fail."""
        return self.rng.choice(sorted(self.layout.terms))

    def typical(self, name: str, row: int, reach: int = 20) -> float:
        """Return the usual printed value of the rows before `row`."""
        values = [
            self.clean[r][name]
            for r in range(max(0, row - reach), max(row, 3))
            if name in self.clean[r]
        ]
        return median(values) if values else math.nan

    def spread(self, name: str) -> float:
        """Return the robust standard deviation of the logarithm of printed values."""
        logs = [math.log(row[name]) for row in self.clean if row.get(name, 0) > 0]
        if len(logs) < 3:
            return 0.5
        jumps = sorted(abs(b - a) for a, b in zip(logs, logs[1:]))
        return 1.4826 * jumps[len(jumps) // 2] / math.sqrt(2)

    def visible_factor(self, name: str, least: float) -> float:
        """Return the factor from which on `name` stands out, at least `least`."""
        return max(least, math.exp(VISIBLE_SIGMAS * self.spread(name)))

    def raise_norm(self, step: int, factor: float) -> int:
        """Let one optimizer step make its first row print `factor` times as much."""
        row = self.row_of_step(step)
        first, stop = self.rows[row].norm_span
        usual = self.typical('grad_norm', row)
        self.steps.norms[step] += (factor - 1) * usual * (stop - first)
        return row

    def raise_term(self, name: str, iteration: int, row: int, factor: float) -> None:
        """Let one iteration make `row` print `factor` times as much for a term."""
        first, stop = self.rows[row].span
        usual = self.typical(name, row)
        self.steps.terms[name][iteration] += (factor - 1) * usual * (stop - first)

    def multiply_norms(self, row: int, factors: Sequence[float]) -> None:
        """Multiply the norms from `row` on, a factor a row; the last one for good."""
        self._multiply(self.steps.norms, self.options.accumulation, row, factors)

    def multiply_term(self, name: str, row: int, factors: Sequence[float]) -> None:
        """Multiply a term from `row` on, a factor a row; the last one for good."""
        self._multiply(self.steps.terms[name], 1, row, factors)

    def _multiply(
        self, values: list[float], stride: int, row: int, factors: Sequence[float]
    ) -> None:
        begin = self.rows[row - 1].iteration + 1 if row else 0
        for number in range(row, len(self.rows)):
            stop = self.rows[number].iteration + 1
            factor = factors[min(number - row, len(factors) - 1)]
            for i in range(begin // stride, stop // stride):
                values[i] *= factor
            begin = stop


def log_uniform(rng: random.Random, low: float, high: float) -> float:
    """Draw a number whose logarithm is uniform."""
    return low * (high / low) ** rng.random()
