"""Trials in parallel processes, with a journal: one line of JSON for each finished trial.

A trial counts as done once its line is on the disk, so that a run that is killed goes on where it was. A line that was
torn by a kill is not JSON and is skipped, and its trial runs again; as every trial has its own random numbers, it gives
the same values. Lines of other runs (another seed, another config, other versions) stay and are skipped as well.

Trials always run in worker processes of one BLAS thread each, even if there is only one of them, so that a trial sees
the same libraries with the same number of threads, and gives the same numbers, however many others run.
"""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from functools import partial
from pathlib import Path

from massart.experiments.experiment import Experiment, Task, TaskOutcome
from massart.rows import Callback, Progress

_FLUSH_SECONDS = 0.5


def with_journal(
    name: str,
    tasks: Sequence[Task],
    path: Path,
    run: str,
    attempts: Callable[[Sequence[Task]], Iterable[tuple[Task, TaskOutcome]]],
    callback: Callback,
) -> dict[Task, TaskOutcome]:
    """Return the outcome of every task: those of the journal, and the others after they were attempted."""
    outcomes = read_journal(path, run)
    todo = [task for task in tasks if task not in outcomes]
    left = len(todo)
    callback(Progress(name, len(tasks) - left, left, 0.0))
    if not todo:
        return outcomes
    with path.open("ab+") as journal:
        if journal.tell():
            journal.seek(-1, os.SEEK_END)
            if journal.read(1) != b"\n":
                journal.write(b"\n")  # ends a torn line
        written = time.monotonic()
        for task, outcome in attempts(todo):
            journal.write(json.dumps({"run": run, **asdict(task), **asdict(outcome)}).encode() + b"\n")
            outcomes[task] = outcome
            left -= 1
            if left == 0 or time.monotonic() - written >= _FLUSH_SECONDS:
                journal.flush()
                os.fsync(journal.fileno())
                written = time.monotonic()
                callback(Progress(name, len(tasks) - left, left, 0.0))
    return outcomes


def read_journal(path: Path, run: str) -> dict[Task, TaskOutcome]:
    """Return the finished trials of the run with this name; none if there is no journal."""
    outcomes: dict[Task, TaskOutcome] = {}
    if not path.exists():
        return outcomes
    with path.open("rb") as lines:
        for line in lines:
            try:
                record = json.loads(line)
                if record["run"] == run:
                    task = Task(record["figure"], tuple(record["cell"]), record["method"], record["trial"])
                    outcomes[task] = TaskOutcome(tuple(record["values"]), float(record["seconds"]))
            except (ValueError, KeyError, TypeError):
                continue
    return outcomes


def run_tasks(
    experiment: Experiment, seed: int, tasks: Sequence[Task], *, jobs: int
) -> Iterator[tuple[Task, TaskOutcome]]:
    """Yield trials as they finish; ValueError if a process dies, which no trial survives to report."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=prepare) as pool:
        try:
            running = {pool.submit(partial(experiment.attempt, seed), task): task for task in tasks}
            for future in as_completed(running):
                yield running[future], future.result()
        except BrokenProcessPool as error:
            raise ValueError(
                "a worker process died, perhaps for want of memory; the same command goes on from the last trial, "
                "and --jobs 1 takes less memory"
            ) from error
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def prepare() -> None:
    """Set up a worker: one thread, no warnings of peers, no complaint at Ctrl-C, and no life after its parent's."""
    from threadpoolctl import threadpool_limits

    # For libraries that are loaded from now on, and for those that are loaded already.
    os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    threadpool_limits(1)
    logging.captureWarnings(True)
    logging.getLogger("py.warnings").addHandler(logging.NullHandler())
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
