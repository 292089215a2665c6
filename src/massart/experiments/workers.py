"""Trials in parallel processes, one BLAS thread each.

Trials always run in worker processes, even if there is only one of them, so that a trial sees the same libraries with
the same number of threads, and gives the same numbers, however many run beside it.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from itertools import islice

from massart.experiments.experiment import Experiment, Task, TaskOutcome
from massart.experiments.journal import Finished

_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_IN_FLIGHT = 4
"""Trials that are given to each worker ahead of time: none waits, and few are lost to a kill."""


def run_tasks(experiment: Experiment, seed: int, tasks: Sequence[Task], *, jobs: int) -> Iterator[Finished]:
    """Yield trials as they finish, a few at a time; ValueError if a process dies, which no trial survives to report."""
    attempt = partial(experiment.attempt, seed)
    waiting = iter(tasks)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=prepare) as pool:
        try:
            running: dict[Future[TaskOutcome], Task] = {}
            while True:
                for task in islice(waiting, _IN_FLIGHT * jobs - len(running)):
                    running[pool.submit(attempt, task)] = task
                if not running:
                    return
                done = wait(running, return_when=FIRST_COMPLETED).done
                yield [(running.pop(future), future.result()) for future in done]
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

    os.environ.update(dict.fromkeys(_THREADS, "1"))  # for libraries that are loaded from now on
    threadpool_limits(1)  # for those that are loaded already
    logging.captureWarnings(True)
    logging.getLogger("py.warnings").addHandler(logging.NullHandler())
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
