"""How often the log analyser is right, on synthetic runs whose truth is known.

Each run is asked four questions: the kind of the first anomaly, the row where it
began, the loss term that moved first, the verdict. Onset: exactly the row for spikes,
bursts, NaN, overflow and scaler skips; for a mask any row from the one with the first
masked step to the first that prints nothing but the mask; for a divergence, which
leaves its band by and by, four rows after the one that prints a doubled value; for a
run that does not learn, the warmup and four rows.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

# a script in tests/bench: the packages of the repository and of the tests
sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]

from synthetic_logs import healthy_steps  # noqa: E402
from synthetic_logs.tally import ALL, QUESTIONS, tally_runs  # noqa: E402

from mmgradguard.logs.analysis.analyze import analyze_table  # noqa: E402
from mmgradguard.logs.read import read_log  # noqa: E402

BAR = 0.95
MAX_FALSE_ALARMS = 1.0  # per 100,000 healthy steps
STEPS_PER_FILE = 100_000


def count_false_alarms(num_steps: int, folder: Path) -> tuple[int, list[str]]:
    """Return the number of events in healthy steps, and where they are."""
    events = []
    for seed in range(-(-num_steps // STEPS_PER_FILE)):
        path = folder / 'steps.jsonl'
        with open(path, 'w', encoding='utf-8') as file:
            file.writelines(f'{row}\n' for row in healthy_steps(STEPS_PER_FILE, seed))
        analysis = analyze_table(read_log([str(path)]))
        events += [
            f'seed {seed}: {event.kind} at row {event.first_row}, '
            f'{event.value_of} {event.value_printed}, usually {event.typical}'
            for event in analysis.events
        ]
    return len(events), events


def main() -> int:
    """Print the tables; return 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--runs', type=int, default=2000)
    parser.add_argument('--first-seed', type=int, default=0)
    parser.add_argument('--steps', type=int, default=1_000_000)
    parser.add_argument('--misses', type=int, default=10, help='shown of each kind')
    parser.add_argument('--kind', help='only runs of this kind')
    args = parser.parse_args()
    is_good = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start = time.perf_counter()
        seeds = range(args.first_seed, args.first_seed + args.runs)
        tally = tally_runs(seeds, folder, kind=args.kind)
        print(f'{args.runs} runs in {time.perf_counter() - start:.0f} s')
        print(tally.table())
        print(tally.miss_table(args.misses))
        for question in QUESTIONS:
            share = tally.share(question)
            is_met = share >= BAR
            is_good &= is_met
            print(f'{question:12s}{100 * share:6.2f} %  bar 95 %  {_word(is_met)}')
        print(f'{"all four":12s}{100 * tally.share(ALL):6.2f} %')
        if args.steps:
            num_events, events = count_false_alarms(args.steps, folder)
            rate = num_events / args.steps * 100_000
            is_met = rate <= MAX_FALSE_ALARMS
            is_good &= is_met
            print(*events[:20], sep='\n')
            print(
                f'{num_events} events in {args.steps} healthy steps: {rate:.2f} per '
                f'100,000, bar {MAX_FALSE_ALARMS:g}  {_word(is_met)}'
            )
    return 0 if is_good else 1


def _word(is_met: bool) -> str:
    return 'met' if is_met else 'MISSED'


if __name__ == '__main__':
    sys.exit(main())
