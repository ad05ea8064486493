"""What reading a log costs: speed, memory, start; files are generated, one core counts.

Speeds are processor time of one process, all its threads together, the best of
interleaved rounds: so a busy machine slows all of them alike, and a second core cannot
help. Only the start of a process is measured on the clock. "detr" rows hold 18 loss
terms, "fcos" rows 3.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable

ROOT = Path(__file__).parents[2]
# a script in tests/bench: the packages of the repository and of the tests
sys.path[:0] = [str(ROOT), str(ROOT / 'tests')]

from log_files import (  # noqa: E402
    mmcv_json_rows,
    scalars_rows,
    text_rows,
    write_rows,
)

from mmgradguard.logs.analysis.analyze import analyze_table  # noqa: E402
from mmgradguard.logs.read import read_log  # noqa: E402

MIN_MEGABYTES_A_SECOND = 25.0
MAX_PARSE_RATIO, MAX_ANALYSIS_RATIO = 1.5, 4.0
MAX_PEAK_MEGABYTES = 300.0
MAX_START_SECONDS = 0.5
HEAVY_MODULES = ('torch', 'mmengine', 'numpy', 'mmcv', 'mmdet')
#: Runs a command and prints the peak memory of it alone, in kilobytes.
PEAK_OF = (
    'import resource, subprocess, sys; subprocess.call(sys.argv[1:]); '
    'print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)'
)


class Report:
    """Prints figures beside their bars and remembers whether one was missed."""

    def __init__(self) -> None:
        self.num_missed = 0

    def line(self, name: str, value: str, bar: str = '', is_met: bool = True) -> None:
        """Print a figure; without a bar it is for information."""
        self.num_missed += not is_met
        word = '' if not bar else '  met' if is_met else '  MISSED'
        print(f'{name:58s} {value:>14s}  {bar:>12s}{word}', flush=True)


def best_of(
    rounds: int, path: Path, functions: dict[str, Callable[[Path], object]]
) -> dict[str, float]:
    """Return the least processor time of each function of `path`, interleaved."""
    best = dict.fromkeys(functions, float('inf'))
    for _ in range(rounds):
        for name, function in functions.items():
            start = time.process_time()
            function(path)
            best[name] = min(best[name], time.process_time() - start)
    return best


def read(path: Path) -> object:
    """Read a log."""
    return read_log([str(path)])


def analyse(path: Path) -> object:
    """Read and analyse a log."""
    return analyze_table(read_log([str(path)]))


def load_lines(path: Path) -> None:
    """Do what any reader of a JSON log has to do at least."""
    loads = json.loads
    with open(path, encoding='utf-8') as file:
        for line in file:
            loads(line)


def analyze_command(path: Path) -> list[str]:
    """Return the command line of a user."""
    return [sys.executable, '-m', 'mmgradguard', 'analyze', str(path)]


def run_quietly(command: list[str], **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command from the bare source tree.

    Raises:
        RuntimeError: If it could not read its log.
    """
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, 'PYTHONPATH': str(ROOT), **env},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1):
        raise RuntimeError(f'{command} failed: {done.stderr[-500:]}')
    return done


def bench_text(report: Report, folder: Path, megabytes: float, rounds: int) -> None:
    """Measure the whole analysis of a text log."""
    for layout in ('detr', 'fcos'):
        path = write_rows(folder / 'train.log', text_rows(layout), megabytes)
        times = best_of(rounds, path, {'read': read, 'all': analyse})
        speed = megabytes / times['all']
        report.line(
            f'text, {layout}, {megabytes:g} MB: reading alone',
            f'{megabytes / times["read"]:.1f} MB/s',
        )
        report.line(
            f'text, {layout}, {megabytes:g} MB: reading and analysis',
            f'{speed:.1f} MB/s',
            f'>= {MIN_MEGABYTES_A_SECOND:g}',
            speed >= MIN_MEGABYTES_A_SECOND,
        )


def bench_json(report: Report, folder: Path, megabytes: float, rounds: int) -> None:
    """Measure reading and analysis against `json.loads` of each line."""
    for name, rows in (
        ('scalars.json', scalars_rows),
        ('run.log.json', mmcv_json_rows),
    ):
        for layout in ('detr', 'fcos'):
            path = write_rows(folder / name, rows(layout), megabytes)
            functions = {'loads': load_lines, 'read': read, 'all': analyse}
            times = best_of(rounds, path, functions)
            title = f'{name}, {layout}, {megabytes:g} MB'
            report.line(f'{title}: json.loads', f'{times["loads"]:.2f} s')
            for part, bar in (('read', MAX_PARSE_RATIO), ('all', MAX_ANALYSIS_RATIO)):
                ratio = times[part] / times['loads']
                word = 'reading' if part == 'read' else 'reading and analysis'
                report.line(
                    f'{title}: {word}', f'{ratio:.2f} x', f'<= {bar:g}', ratio <= bar
                )


def bench_memory(report: Report, folder: Path, megabytes: float) -> None:
    """Measure the peak of a process that analyses a long log."""
    for layout in ('detr', 'fcos'):
        path = write_rows(folder / 'long.log', text_rows(layout), megabytes)
        command = [sys.executable, '-c', PEAK_OF, *analyze_command(path)]
        start = time.perf_counter()
        done = run_quietly(command)
        peak = int(done.stdout.split()[-1]) / 1024
        report.line(
            f'text, {layout}, {megabytes:g} MB: peak memory '
            f'({time.perf_counter() - start:.1f} s)',
            f'{peak:.0f} MB',
            f'<= {MAX_PEAK_MEGABYTES:g}',
            peak <= MAX_PEAK_MEGABYTES,
        )
        path.unlink()


def bench_start(report: Report, folder: Path) -> None:
    """Measure a short log from process start to exit, and what it imports."""
    rows = text_rows('detr')
    path = folder / 'short.log'
    path.write_text(''.join(next(rows) for _ in range(20)), encoding='ascii')
    times = []
    for _ in range(11):
        start = time.perf_counter()
        run_quietly(analyze_command(path))
        times.append(time.perf_counter() - start)
    median = statistics.median(times[1:])  # the first one compiles and fills caches
    report.line(
        '20 lines, process start to exit, median of 10',
        f'{median:.2f} s',
        f'<= {MAX_START_SECONDS:g}',
        median <= MAX_START_SECONDS,
    )
    command = analyze_command(path)
    traced = run_quietly([command[0], '-X', 'importtime', *command[1:]]).stderr
    names = {
        line.rpartition('|')[2].strip().partition('.')[0] for line in traced.split('\n')
    }
    loaded = [name for name in HEAVY_MODULES if name in names]
    is_seen = 'mmgradguard' in names
    report.line(
        f'20 lines: imported of {", ".join(HEAVY_MODULES)}',
        ', '.join(loaded) or 'none',
        'none',
        is_seen and not loaded,
    )


def bench_mmdet(report: Report, folder: Path, megabytes: float) -> None:
    """Run mmdet's own log tool on the same JSON, side by side with ours."""
    spec = importlib.util.find_spec('mmdet')
    if spec is None or spec.origin is None:
        report.line("mmdet's analyze_logs.py", 'no mmdet here')
        return
    tool = Path(spec.origin).parent / '.mim/tools/analysis_tools/analyze_logs.py'
    # it imports seaborn at once, though only its plots need it
    (folder / 'seaborn.py').touch()
    path = write_rows(folder / 'scalars.json', scalars_rows('detr'), megabytes)
    for name, command in (
        ("mmdet's analyze_logs.py cal_train_time", [str(tool), 'cal_train_time']),
        ('mmgradguard analyze', ['-m', 'mmgradguard', 'analyze']),
    ):
        whole = [sys.executable, '-c', PEAK_OF, sys.executable, *command, str(path)]
        start = time.perf_counter()
        done = run_quietly(whole, PYTHONPATH=f'{ROOT}{os.pathsep}{folder}')
        seconds = time.perf_counter() - start
        peak = int(done.stdout.split()[-1]) / 1024
        title = f'{name}, scalars.json, detr, {megabytes:g} MB'
        report.line(title, f'{seconds:.1f} s {peak:.0f} MB')


def main() -> int:
    """Print the figures; return 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--megabytes', type=float, default=100, help='of a file')
    parser.add_argument('--rounds', type=int, default=5)
    args = parser.parse_args()
    report = Report()
    print(f'{"figure":58s} {"measured":>14s}  {"bar":>12s}')
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # first: a child's peak counts what its parent held when it was started
        bench_memory(report, folder, 3 * args.megabytes)
        bench_start(report, folder)
        bench_text(report, folder, args.megabytes, args.rounds)
        bench_json(report, folder, args.megabytes, args.rounds)
        bench_mmdet(report, folder, args.megabytes)
    return 1 if report.num_missed else 0


if __name__ == '__main__':
    sys.exit(main())
