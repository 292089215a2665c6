"""Measure massart on tables whose right rows are noisy, beside the robust regressions of R.

``python benchmarks/noisy.py [--cells 'shift*'] [--tables N] [--seed S] [--processes K] [--journal FILE]``

Each table of `noisy_families` is fitted by massart, by least squares, by the oracle (least squares on the right rows)
and by four peers: lmrob (MM by default, and KS2014) and ltsReg of robustbase, rlm (MM) of MASS. The error of a fit is
the root mean square of its difference to the true plane, over fresh rows. A cell is LOST if massart's error is above
1.10 times that of the best peer (of least geometric mean over the cell's tables), by the lower limit of a 95 %
bootstrap interval over tables. A fit fails if its error is above ten times the oracle's.

Peers are fitted once and kept (``--peers FILE``); ``--peers-from FILE`` takes what is kept and calls no R, and
``--fill`` calls R alone. Seconds are those of the processor, so that a busy machine counts for nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

# Sets the number of BLAS threads, so it comes before anything that loads numpy.
import harness  # noqa: F401  # isort: skip

import numpy as np
from numpy.typing import NDArray

import noisy_families
from journal import Journal, watch
from noisy_families import Cell, FloatArray, with_ones
from rules import aligned

PEERS = ("lmrob MM", "KS2014", "ltsReg", "rlm MM")
"""In the order of noisy_peers.R."""

KEPT = Path.home() / ".cache" / "massart" / "noisy_peers.jsonl"
LOST = 1.10
FAILED = 10.0
CLEAN = 1.05
NEAR_ORACLE = 1.5
_LIMIT = 5.0  # seconds for one fit of a peer
_BATCH = 100_000  # numbers that one process of R is given at once
_BOOTSTRAPS = 2_000


@dataclass(frozen=True, slots=True)
class Fit:
    """What a method said of a table: the intercept comes first."""

    coef: FloatArray
    errors: FloatArray
    scale: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Task:
    """One table of the simulation."""

    cell: Cell
    seed: int
    trial: int

    @property
    def key(self) -> tuple[str, int, int]:
        """What makes it unique."""
        return self.cell.name, self.seed, self.trial


@dataclass(frozen=True, slots=True)
class Record:
    """One line of a journal: the error of a method on a table; NaN where it gave none."""

    cell: str
    seed: int
    trial: int
    method: str
    error: float
    seconds: float

    @property
    def key(self) -> tuple[str, int, int]:
        """The table it speaks of."""
        return self.cell, self.seed, self.trial


# Fit.


def ours(X: FloatArray, y: FloatArray, *, estimator: bool = False) -> Fit:
    """Fit by `robust_regression`, or by the estimator told that the rows are noisy."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if estimator:
            from massart import MassartRegressor

            found = MassartRegressor(inliers="noisy", random_state=0).fit(X, y)
            coef = np.concatenate([[float(found.intercept_)], np.asarray(found.coef_)])
            return Fit(coef, np.full(len(coef), np.nan), math.nan, time.process_time() - start)
        from massart.robust import robust_regression

        fit = robust_regression(with_ones(X), y, rng=np.random.default_rng(0))
        return Fit(fit.coef, fit.standard_errors, fit.scale, time.process_time() - start)


def by_peers(tables: Sequence[tuple[FloatArray, FloatArray]], limit: float = _LIMIT) -> list[dict[str, Fit]]:
    """Fit tables by R, all in one process of it."""
    with tempfile.TemporaryDirectory() as folder:
        given, taken = Path(folder, "tables"), Path(folder, "fits")
        with given.open("wb") as file:
            for X, y in tables:
                for part in (np.array(X.shape, dtype=np.float64), X.ravel(order="F"), y):
                    file.write(np.ascontiguousarray(part, dtype=np.float64).tobytes())
        r_program("fit", str(given), str(taken), str(limit))
        numbers = np.fromfile(taken)
    answers, place = [], 0
    for X, _ in tables:
        size = X.shape[1] + 1
        fits = {}
        for method in PEERS:
            seconds, scale, *rest = numbers[place : place + 2 + 2 * size]
            fits[method] = Fit(np.array(rest[:size]), np.array(rest[size:]), float(scale), float(seconds))
            place += 2 + 2 * size
        answers.append(fits)
    return answers


def r_program(*arguments: str) -> str:
    """Run noisy_peers.R and return what it printed."""
    program = Path(__file__).with_name("noisy_peers.R")
    try:
        done = subprocess.run(
            ["Rscript", "--vanilla", str(program), *arguments], check=True, capture_output=True, text=True
        )
    except FileNotFoundError:
        raise SystemExit("Rscript is not on the path; --peers-from FILE needs no R") from None
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"noisy_peers.R failed: {error.stderr.strip()[-500:]}") from None
    return done.stdout


def every_process(function: Callable[[Any], Any], tasks: Sequence[Any], processes: int) -> Iterator[Any]:
    """Map in this process, or in several that end with this one; in order."""
    if processes == 1:
        yield from map(function, tasks)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=watch) as pool:
        yield from pool.map(function, tasks)


# Simulate.


def simulate_ours(task: Task) -> list[Record]:
    """Fit a table by massart, least squares and the oracle."""
    return _simulated(task, ("massart", "least squares", "oracle"))


def simulate_estimator(task: Task) -> list[Record]:
    """Fit a table by the estimator, least squares and the oracle."""
    return _simulated(task, ("estimator", "least squares", "oracle"))


def _simulated(task: Task, methods: Iterable[str]) -> list[Record]:
    table = noisy_families.make(task.cell, task.seed, task.trial)
    answers: dict[str, Callable[[], Fit]] = {
        "massart": lambda: ours(table.X, table.y),
        "estimator": lambda: ours(table.X, table.y, estimator=True),
        "least squares": lambda: Fit(noisy_families.least_squares(table.X, table.y), np.empty(0), math.nan, 0.0),
        "oracle": lambda: Fit(table.oracle, np.empty(0), math.nan, 0.0),
    }
    records = []
    for method in methods:
        fit = answers[method]()
        records.append(Record(*task.key, method, table.error(fit.coef), round(fit.seconds, 5)))
    return records


def simulate_peers(tasks: Sequence[Task]) -> list[Record]:
    """Fit a batch of tables by the peers."""
    tables = [noisy_families.make(task.cell, task.seed, task.trial) for task in tasks]
    answers = by_peers([(table.X, table.y) for table in tables])
    return [
        Record(*task.key, method, table.error(fit.coef), round(fit.seconds, 5))
        for task, table, fits in zip(tasks, tables, answers, strict=True)
        for method, fit in fits.items()
    ]


def _batches(tasks: Iterable[Task]) -> list[list[Task]]:
    batches: list[list[Task]] = []
    room = 0
    for task in tasks:
        size = task.cell.n * (task.cell.d + 1)
        if room < size:
            batches.append([])
            room = _BATCH
        batches[-1].append(task)
        room -= size
    return batches


def read_journal(path: Path | None) -> dict[tuple[tuple[str, int, int], str], Record]:
    """Return what a journal holds; a torn line is left out."""
    records = {}
    if path is not None and path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                record = Record(**json.loads(line))
            except (ValueError, TypeError):
                continue
            records[record.key, record.method] = record
    return records


# Judge.


def judge(records: Sequence[Record], method: str) -> tuple[str, list[str]]:
    """Return the table of cells, and what sums it up."""
    head = ["cell", "tables", "best peer", "ratio", "95 % of it", "", "oracle's", *(f"{p}'s" for p in PEERS), "failed"]
    lines = [[*head, "theirs", "time/KS2014"]]
    lost, halves, far, unclean, n_cells = [], [], [], [], 0
    by_cell: dict[str, dict[str, dict[int, Record]]] = {}
    for record in records:
        by_cell.setdefault(record.cell, {}).setdefault(record.method, {})[record.trial] = record
    for cell in noisy_families.cells():
        found = by_cell.get(cell.name, {})
        trials = sorted(set(found.get(method, ())) & set(found.get("oracle", ())))
        peers = [peer for peer in PEERS if trials and all(trial in found.get(peer, ()) for trial in trials)]
        if not peers:  # the peers of some tables are not there yet: only those with peers count
            trials = [trial for trial in trials if all(trial in found.get(peer, ()) for peer in PEERS)]
            peers = list(PEERS) if trials else []
        if not trials:
            continue
        n_cells += 1
        errors = {name: _errors(found, name, trials) for name in (method, "oracle", "least squares", *peers)}
        logs = {name: np.log(values) for name, values in errors.items()}
        best = min(peers, key=lambda peer: float(logs[peer].mean()))
        ratio, low, high = interval(logs[method] - logs[best])
        to_oracle = float(np.median(errors[method] / errors["oracle"]))
        failures = {name: float((errors[name] > FAILED * errors["oracle"]).mean()) for name in (method, *peers)}
        least_theirs = min(failures[peer] for peer in peers)
        mark = ""
        if low > LOST:
            mark = "LOST"
            lost.append(cell.name)
        if failures[method] >= 0.5 and least_theirs < failures[method]:
            halves.append(cell.name)
        if (cell.kind, cell.percent) in _NEAR and 200 <= cell.n <= 1000 and to_oracle > NEAR_ORACLE:
            far.append(f"{cell.name} {to_oracle:.2f}")
        if cell.kind == "none":
            clean = math.exp(float((logs[method] - logs["least squares"]).mean()))
            mark += f" {clean:.3f} of LS"
            if clean > CLEAN:
                unclean.append(f"{cell.name} {clean:.3f}")
        times = [np.median([found[name][trial].seconds for trial in trials]) for name in (method, "KS2014")]
        medians = [float(np.median(errors[peer] / errors["oracle"])) for peer in PEERS]
        lines.append(
            [cell.name, str(len(trials)), best, f"{ratio:.2f}", f"{low:.2f}-{high:.2f}", mark.strip()]
            + [f"{value:.2f}" for value in (to_oracle, *medians)]
            + [f"{failures[method]:.0%}", f"{least_theirs:.0%}", f"{times[0] / times[1]:.2f}"]
        )
    notes = [
        f"{method}; 's: median error over the oracle's. {n_cells} cells.",
        f"Lost (lower limit of the ratio to the best peer above {LOST}): {_listed(lost)}",
        f"At least half failures where a peer has fewer: {_listed(halves)}",
        f"Above {NEAR_ORACLE} times the oracle's error where that is wanted: {_listed(far)}",
        f"Above {CLEAN} times least squares on clean rows: {_listed(unclean)}",
    ]
    return aligned(lines), notes


_NEAR = {("shift5", 25), ("shift5", 40), ("plane", 40), ("bad", 40)}


def _errors(found: dict[str, dict[int, Record]], name: str, trials: Sequence[int]) -> FloatArray:
    """Return errors; where a method gave no answer, a hundred times the error that counts as a failure."""
    values = np.array([found[name][trial].error for trial in trials])
    oracle = np.array([found["oracle"][trial].error for trial in trials])
    return np.where(np.isfinite(values), values, 100 * FAILED * oracle)


def interval(logs: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return the geometric mean and its 95 % interval, by drawing tables again."""
    rng = np.random.default_rng(0)
    means = logs[rng.integers(len(logs), size=(_BOOTSTRAPS, len(logs)))].mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return math.exp(float(logs.mean())), math.exp(float(low)), math.exp(float(high))


def _listed(names: Sequence[str]) -> str:
    return f"{len(names)}" + (f": {', '.join(names)}" if names else "")


def simulate(options: argparse.Namespace) -> None:
    """Run what is in no journal yet, and print the cells."""
    chosen = [cell for cell in noisy_families.cells() if fnmatchcase(cell.name, options.cells)]
    if options.small:
        chosen = [cell for cell in chosen if cell.n <= 200 and cell.d <= 3]
    if not chosen:
        raise SystemExit(f"no cell is called {options.cells}")
    n_tables = options.tables or (2 if options.small else 30)
    tasks = [
        Task(cell, options.seed, trial)
        for trial in range(n_tables)
        for cell in chosen
        if cell.n <= 1000 or trial < max(2, n_tables // 3)
    ]
    path = options.peers_from or options.peers
    theirs = read_journal(path)
    if options.peers_from is None:
        path.parent.mkdir(parents=True, exist_ok=True)
        left = [task for task in tasks if any((task.key, peer) not in theirs for peer in PEERS)]
        with Journal(path) as journal:
            for found in _shown(every_process(simulate_peers, _batches(left), options.processes), "peers"):
                journal.append(found)
                theirs |= {(record.key, record.method): record for record in found}
    if options.fill:
        return
    method = "estimator" if options.estimator else "massart"
    done = read_journal(options.journal)
    left = [task for task in tasks if (task.key, method) not in done]
    with Journal(options.journal) as journal:
        run = simulate_estimator if options.estimator else simulate_ours
        for found in _shown(every_process(run, left, options.processes), method, len(left)):
            journal.append(found)
            done |= {(record.key, record.method): record for record in found}
    keys = {task.key for task in tasks}
    cells, notes = judge([record for record in (*done.values(), *theirs.values()) if record.key in keys], method)
    print(cells, "", *notes, sep="\n")


def _shown(found: Iterable[Any], what: str, total: int | None = None) -> Iterator[Any]:
    """Count on the screen, if there is one."""
    for number, records in enumerate(found, start=1):
        if sys.stderr.isatty():
            of = "" if total is None else f"/{total}"
            print(f"\r{what} {number}{of}", end="", file=sys.stderr, flush=True)
        yield records


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the part that is asked for, the simulation by default."""
    parser = argparse.ArgumentParser(description="massart and the robust regressions of R on noisy rows.")
    parser.add_argument("--cells", metavar="GLOB", default="*", help="cells of the simulation, such as 'shift5*_d3'")
    parser.add_argument("--tables", metavar="N", type=int, help="of each cell; 30 by default, a third of 5,000 rows")
    parser.add_argument("--seed", metavar="S", type=int, default=1, help="1 is developed on; others are fresh tables")
    parser.add_argument("--small", action="store_true", help="what fits into a minute")
    parser.add_argument("--processes", metavar="K", type=int, default=1)
    parser.add_argument("--estimator", action="store_true", help="MassartRegressor(inliers='noisy')")
    parser.add_argument("--journal", metavar="FILE", type=Path, help="keep massart's fits, and go on from them")
    parser.add_argument("--peers", metavar="FILE", type=Path, default=KEPT, help="keep the peers' fits here")
    parser.add_argument("--peers-from", metavar="FILE", type=Path, help="take the peers' fits from here; no R")
    parser.add_argument("--fill", action="store_true", help="fit the peers only")
    options = parser.parse_args(arguments)
    simulate(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
