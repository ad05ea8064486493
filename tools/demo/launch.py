"""Run mmdet's own `tools/train.py`, unchanged, several at a time, with progress."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Sequence

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
)

from demo.plan import Run

ROOT = Path(__file__).resolve().parents[2]
POLL = 0.5
#: Seconds between two lines where no bar can be drawn.
QUIET = 20.0


def train_script() -> Path:
    """Return mmdet's `tools/train.py` as its wheel ships it.

    Raises:
        FileNotFoundError: If mmdet is not installed, or without its tools.
    """
    spec = importlib.util.find_spec('mmdet')
    origin = spec.origin if spec else None
    script = Path(origin or '').parent / '.mim' / 'tools' / 'train.py'
    if origin is None or not script.is_file():
        raise FileNotFoundError('mmdet with its tools is not installed: `make setup`')
    return script


def num_jobs(cores: int) -> int:
    """Return how many runs share the machine: two small runs beat one on two cores."""
    return max(1, min(cores, 5))


class Job:
    """One run in a process of its own."""

    def __init__(self, run: Run, out: Path, threads: int) -> None:
        self.run, self.work_dir = run, out / run.name
        self.log = out / f'{run.name}.log'
        config = out / 'configs' / f'{run.name}.py'
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(run.config, encoding='utf-8')
        command = [sys.executable, str(train_script()), str(config)]
        command += ['--work-dir', str(self.work_dir)]
        path = os.pathsep.join([str(ROOT), os.environ.get('PYTHONPATH', '')])
        env = {**os.environ, 'OMP_NUM_THREADS': str(threads), 'PYTHONPATH': path}
        with self.log.open('w', encoding='utf-8') as file:
            self.process = subprocess.Popen(
                command, stdout=file, stderr=subprocess.STDOUT, env=env
            )

    def iteration(self) -> int:
        """Return how many iterations the run has logged."""
        return last_iteration(self.work_dir)


def scalars_file(work_dir: Path) -> Path | None:
    """Return the newest file of logged scalars, or None before the first."""
    files = sorted(work_dir.glob('*/vis_data/scalars.json'))
    return files[-1] if files else None


def last_iteration(work_dir: Path) -> int:
    """Return the last `iter` that was logged, 0 before the first."""
    path = scalars_file(work_dir)
    if path is None:
        return 0
    for line in reversed(path.read_text(encoding='utf-8').splitlines()):
        try:
            row = json.loads(line)
        except ValueError:  # the line is being written
            continue
        if isinstance(row, dict) and 'iter' in row:
            return int(row['iter'])
    return 0


def launch(runs: Sequence[Run], out: Path, console: Console) -> dict[str, int]:
    """Run all and return their exit statuses by name."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, 'sched_getaffinity') else 1
    jobs = num_jobs(cores)
    waiting = list(runs)
    active: list[Job] = []
    status: dict[str, int] = {}
    board = Board(runs, console)
    try:
        with board.progress:
            while waiting or active:
                while waiting and len(active) < jobs:
                    active.append(Job(waiting.pop(0), out, max(1, cores // jobs)))
                time.sleep(POLL)
                for job in list(active):
                    board.update(job.run, job.iteration(), job.process.poll())
                    if job.process.poll() is not None:
                        status[job.run.name] = job.process.returncode
                        active.remove(job)
    finally:
        for job in active:  # interrupted: leave nothing running
            job.process.terminate()
            job.process.wait()
    return status


class Board:
    """One progress bar per run; plain lines where the output is no terminal."""

    def __init__(self, runs: Sequence[Run], console: Console) -> None:
        self.console, self._last = console, time.monotonic()
        columns = (
            TextColumn('{task.description:<24}'),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn('{task.fields[state]}'),
        )
        bars = console.is_terminal
        self.progress = Progress(*columns, console=console, disable=not bars)
        self._tasks = {
            run.name: self.progress.add_task(
                run.name, total=run.iterations, start=False, state='waiting'
            )
            for run in runs
        }
        self._started: set[str] = set()
        self._now: dict[str, str] = {}  # what each active run does

    def update(self, run: Run, iteration: int, status: int | None) -> None:
        """Show where ``run`` is."""
        task = self._tasks[run.name]
        if run.name not in self._started:
            self._started.add(run.name)
            self.progress.start_task(task)
        state = describe(run, iteration, status)
        self.progress.update(task, completed=iteration, state=state)
        self._now[run.name] = f'{run.name} {iteration}/{run.iterations} {state}'
        if status is not None:
            self.progress.stop_task(task)
        if self.console.is_terminal:
            return
        now = time.monotonic()
        if status is not None or now - self._last > QUIET:
            self._last = now
            self.console.print(f'  {", ".join(self._now.values())}', soft_wrap=True)
        if status is not None:
            del self._now[run.name]


def describe(run: Run, iteration: int, status: int | None) -> str:
    """Say in a word or two what a run does."""
    if status is not None:
        return 'done' if status == 0 else 'died'
    if iteration == 0:
        return 'starting'
    return 'finishing' if iteration >= run.iterations else 'training'
