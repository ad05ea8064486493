#!/usr/bin/env python3
"""Train a small DETR under guard with three planted faults, and show what was found.

Five runs of mmdet's own `tools/train.py`: clean, guarded with all three faults, and
one short run per fault without guard. Every figure of the closing table is read from
the files of these runs. The exit status is 0 if the guard found all three, in the
right place, and the training went on nearly as well as the clean one.

    python tools/run_demo.py --out work_dirs/demo
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path
from typing import Sequence

from rich.console import Console

import make_demo_dataset
from demo import outcome, plan, table, verdict
from demo.launch import launch

MARKER = '.mmgradguard-demo'


def prepare(out: Path) -> None:
    """Empty the folder of an earlier demo; leave a folder of anything else alone.

    Raises:
        ValueError: If the folder holds something that no demo wrote.
    """
    if out.exists() and any(out.iterdir()):
        if not (out / MARKER).is_file():
            raise ValueError(f'`--out` holds files that no demo wrote: {out}')
        shutil.rmtree(out)
    out.mkdir(parents=True, exist_ok=True)
    (out / MARKER).touch()


def summarise(
    out: Path, scale: plan.Scale, faults: Sequence[plan.Fault]
) -> verdict.Summary:
    """Read the clean and the guarded run."""
    folder = outcome.guard_dir(out / 'guarded')
    return verdict.judge(
        faults,
        outcome.read_incidents(folder),
        clean=outcome.read_curve(out / 'clean'),
        guarded=outcome.read_curve(out / 'guarded'),
        weights_finite=outcome.has_finite_weights(out / 'guarded'),
        judges_loss=scale.judges_loss,
        skips=outcome.count_skips(folder),
    )


def describe_unguarded(
    out: Path, scale: plan.Scale, fault: plan.Fault, status: int
) -> str:
    """Read the run of one fault without guard."""
    name = f'unguarded_{fault.name}'
    return table.describe_unguarded(
        status,
        outcome.last_words(out / f'{name}.log'),
        outcome.read_curve(out / name),
        outcome.has_finite_weights(out / name),
        None if fault.iteration is None else scale.unguarded_at,
    )


def validations(out: Path) -> list[str]:
    """Return the measured mAP of the two long runs, in words."""
    values = [(name, outcome.read_validation(out / name)) for name in LONG]
    return [f'{name} {"-" if x is None else format(x, ".4f")}' for name, x in values]


LONG = ('clean', 'guarded')


def run(out: Path, scale: plan.Scale, console: Console) -> list[str]:
    """Run the demo in ``out`` and return what failed, in words.

    Raises:
        OutcomeError: If a file that a figure is read from is missing.
    """
    make_demo_dataset.make_dataset(out / 'data')
    faults = plan.plan_faults(scale, plan.find_infinite_box(out / 'data'))
    console.print(f'Data, configs and logs are in {out}')
    status = launch(plan.plan_runs(scale, out / 'data'), out, console)
    for name in LONG:
        if status[name]:
            words = outcome.last_words(out / f'{name}.log')
            raise outcome.OutcomeError(f'{out / name}.log: the run died: {words}')
    summary = summarise(out, scale, faults)
    unguarded = {
        fault.name: describe_unguarded(
            out, scale, fault, status[f'unguarded_{fault.name}']
        )
        for fault in faults
    }
    report = outcome.guard_dir(out / 'guarded') / 'report.html'
    console.print(table.build_table(summary, unguarded))
    where = str(report) if report.is_file() else f'{report} is missing'
    for line in table.describe_summary(summary, where, validations(out)):
        console.print(line, soft_wrap=True, highlight=False)
    return summary.failures()


def main(argv: Sequence[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--out', type=Path, default=Path('work_dirs/demo'))
    parser.add_argument(
        '--short', action='store_true', help='fewer images and iterations, as in tests'
    )
    args = parser.parse_args(argv)
    out = Path(os.path.abspath(args.out))
    width = None if sys.stdout.isatty() else 110
    console = Console(width=width)
    try:
        prepare(out)
        failures = run(out, plan.SHORT if args.short else plan.FULL, console)
    except (ValueError, OSError) as error:
        print(f'run_demo: {error}', file=sys.stderr)
        return 2
    except outcome.OutcomeError as error:
        failures = [str(error)]
    except KeyboardInterrupt:
        failures = ['interrupted']
    for failure in failures:
        print(f'run_demo: {failure}', file=sys.stderr)
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
