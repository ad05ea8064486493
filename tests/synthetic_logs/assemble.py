"""From a seed to a log with its truth."""

from __future__ import annotations

import random
from dataclasses import replace

from synthetic_logs.averaging import Row, print_values, rows_of
from synthetic_logs.fail_divergence import plant_divergence
from synthetic_logs.fail_nonfinite import plant_mask, plant_nan, plant_overflow
from synthetic_logs.fail_spikes import plant_amp_skips, plant_burst, plant_spike
from synthetic_logs.options import MAX_VALUES, draw_kind, draw_options
from synthetic_logs.outliers import add_outliers
from synthetic_logs.planting import Planted, Site, UndecidableError
from synthetic_logs.printing_json import JsonPrinter
from synthetic_logs.printing_text import TextPrinter
from synthetic_logs.reading import read_truth, skips_truth
from synthetic_logs.series import Steps, simulate
from synthetic_logs.truth import Options, SyntheticLog, Truth
from synthetic_logs.validation import validations

FAILURES = {
    'spike': plant_spike,
    'burst': plant_burst,
    'nan_sticks': plant_nan,
    'masked_nan': plant_mask,
    'norm_overflow': plant_overflow,
    'finite_divergence': plant_divergence,
    'amp_skip': plant_amp_skips,
}
#: Draws before a seed is given up; a handful is usual.
MAX_DRAWS = 200


def generate(
    seed: int, kind: str | None = None, max_values: int = MAX_VALUES
) -> SyntheticLog:
    """Return the log of a seed; the same bytes every time.

    `kind` asks for a failure; by default the seed decides. `max_values` (terms x
    iterations) bounds the length, for tests that have little time.

    Raises:
        RuntimeError: If no draw can be decided from its print.
    """
    kind = kind or draw_kind(seed)
    for draw in range(MAX_DRAWS):
        rng = random.Random(f'run {seed} {kind} {draw}')
        options = draw_options(seed, kind, rng, max_values)
        try:
            return _generate(options, rng)
        except UndecidableError:
            continue
    raise RuntimeError(f'no decidable log of kind {kind!r} for seed {seed!r}')


def _generate(options: Options, rng: random.Random) -> SyntheticLog:
    rows = rows_of(options)
    steps = simulate(options, rng)
    printed = print_values(options, steps, rows)
    truth = Truth('healthy', ('healthy',))
    if options.kind == 'not_learning':
        truth = _not_learning(options, rows)
    elif options.kind == 'healthy':
        site = Site(options, rows, printed, steps, rng)
        add_outliers(site)
        printed = print_values(options, steps, rows)
    else:
        site = Site(options, rows, printed, steps.copy(), rng)
        planted = FAILURES[options.kind](site)
        steps = site.steps
        printed = print_values(options, steps, rows)
        truth = _truth(site, printed, planted)
    return write_log(options, rows, steps, printed, truth, rng)


def _truth(site: Site, printed: list[dict[str, float]], planted: Planted) -> Truth:
    if site.options.kind == 'amp_skip':
        return skips_truth(site, planted)
    return read_truth(site, printed, planted)


def _not_learning(options: Options, rows: list[Row]) -> Truth:
    """Return the truth of a run that stays where it began, from its first row on.

    Before the end of warmup nobody expects it to move: a reader may count from there.
    """
    warm = sum(row.iteration < options.warmup for row in rows)
    return Truth(
        kind='not_learning',
        verdicts=('suspicious',),
        onset_row=0,
        earliest_row=0,
        latest_row=warm + 4,
        recovered=False,
    )


def write_log(
    options: Options,
    rows: list[Row],
    steps: Steps,
    printed: list[dict[str, float]],
    truth: Truth,
    rng: random.Random,
) -> SyntheticLog:
    """Return the log as bytes, with the physical line of each row."""
    is_text = options.format.endswith('text')
    printer = (
        TextPrinter(options, steps.lrs, rng) if is_text else JsonPrinter(options, steps)
    )
    metrics = validations(options, rows, truth)
    lines = printer.header()
    places = []
    for number, (row, values) in enumerate(zip(rows, printed)):
        lines.append(printer.row(row, values))
        places.append(len(lines))
        lines.extend(printer.other())
        if number in metrics:
            lines.append(printer.validation(row, metrics[number]))
    if truth.onset_row is not None:
        truth = replace(truth, onset_line=places[truth.onset_row])
    content = ('\n'.join(lines) + '\n').encode()
    return SyntheticLog(content, options, truth, tuple(places))
