"""Tables with wrong labels, who recovers them, and loops over many of them.

A trial is known by its cell, its method and its number, and nothing else enters it: any number of processes gives the
same answers in the same order. MASSART_BENCH_PROCESSES sets how many there are (2 where there are two processors).
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import shutil
import statistics
import subprocess
import tempfile
import time
import warnings
import zlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from harness import Incorrect, MissingPeer, require  # isort: skip

import numpy as np
from numpy.typing import NDArray

from arrays import recovered
from massart.certificate import Verdict
from massart.l1 import l1_regression
from massart.paper import (
    Adversary,
    MassartNoise,
    algorithm_2,
    decoy,
    far_constant,
    gaussian,
    linear_labels,
    paper_adversary,
    paper_mixture,
    paper_weights,
    scale,
)

RECOVERED = 1e-5
"""Relative error below which a table counts as recovered."""

ALGORITHM_GAMMA = 1e-3
"""How closely Algorithm 2 is put in radial-isotropic position: that of the measured table, and close to two-sided."""

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows, labels, the truth, and how many labels are wrong."""

    X: FloatArray
    y: FloatArray
    truth: FloatArray
    n_wrong: int


@dataclass(frozen=True, slots=True)
class Cell:
    """One point of a grid: a distribution of tables.

    `adversary` is "paper" (then the rows are the paper's mixture) or one of "decoy", "constant", "flip" and "1.1x"
    (then they are Gaussian, and so are the truth and the decoy).
    """

    n: int
    d: int
    eta: float
    adversary: str = "paper"

    def __str__(self) -> str:
        rows = "mixture" if self.adversary == "paper" else f"Gaussian, {self.adversary}"
        return f"{rows}, {self.n} x {self.d}, eta {self.eta:g}"

    def table(self, trial: int) -> Table:
        """Return table number `trial`."""
        rng = np.random.default_rng([zlib.crc32(str(self).encode()), trial])
        if self.adversary == "paper":
            truth = paper_weights(self.d)
            return corrupted(paper_mixture(self.n, self.d, rng), truth, self.eta, paper_adversary(truth), rng)
        truth = rng.standard_normal(self.d)
        answer = {
            "decoy": decoy(rng.standard_normal(self.d), linear_labels),
            "constant": far_constant,
            "flip": scale(-1.0),
            "1.1x": scale(1.1),
        }[self.adversary]
        return corrupted(gaussian(self.n, self.d, rng), truth, self.eta, answer, rng)

    def possible(self, trial: int) -> bool:
        """Whether no formula fits more rows of table `trial` than the truth; at a tie, luck decides who finds it."""
        table = self.table(trial)
        n_right = self.n - table.n_wrong
        rival = 0 if self.adversary == "constant" else table.n_wrong  # rows that follow one other formula
        return n_right > self.d and n_right >= rival


def corrupted(X: FloatArray, truth: FloatArray, eta: float, adversary: Adversary, rng: np.random.Generator) -> Table:
    """Return the rows with labels of which the adversary had a share `eta`."""
    corruption = MassartNoise(eta, adversary).corrupt(X, linear_labels(X, truth), rng)
    return Table(X, corruption.labels, truth, int(corruption.changed.sum()))


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one trial.

    Attributes
    ----------
    error : float
        Relative error of the coefficients; infinite where there are none.
    seconds : float
    verdict : Verdict or None
        None for methods that claim nothing.
    outvoted : bool
        Whether the noise left the truth without a majority: a majority for something else is no false claim then.
    """

    error: float
    seconds: float
    verdict: Verdict | None = None
    outvoted: bool = False

    @property
    def recovered(self) -> bool:
        """Whether the coefficients are the truth."""
        return self.error < RECOVERED

    @property
    def claimed(self) -> bool:
        """Whether the answer says of itself that it is right."""
        return self.verdict is not None and self.verdict.stands


def default(X: FloatArray, y: FloatArray, trial: int) -> tuple[FloatArray, Verdict]:
    """Recover as users do."""
    found = recovered(X, y, rng=np.random.default_rng(trial))
    return found.coef, found.certificate.verdict


def algorithm(X: FloatArray, y: FloatArray, trial: int) -> tuple[FloatArray, None]:
    """Recover by Algorithm 2 alone, to the letter."""
    return algorithm_2(X, y, ALGORITHM_GAMMA).w, None


def naive_l1(X: FloatArray, y: FloatArray, trial: int) -> tuple[FloatArray, None]:
    """Minimise the absolute residuals of the rows as they are."""
    return l1_regression(X, y).coef, None


def normalized_l1(X: FloatArray, y: FloatArray, trial: int) -> tuple[FloatArray, None]:
    """Minimise the absolute residuals of the rows scaled to length 1."""
    lengths = np.linalg.norm(X, axis=1)
    return l1_regression(X / lengths[:, None], y / lengths).coef, None


def ransac(X: FloatArray, y: FloatArray, trial: int) -> tuple[FloatArray, None]:
    """Recover by scikit-learn's RANSAC with an exact threshold; no consensus gives no coefficients."""
    models = require("sklearn.linear_model")
    model = models.RANSACRegressor(
        models.LinearRegression(fit_intercept=False),
        min_samples=X.shape[1],
        residual_threshold=1e-6,
        max_trials=20_000,
        random_state=trial,
    )
    try:
        return model.fit(X, y).estimator_.coef_, None
    except ValueError:
        return np.full(X.shape[1], np.nan), None


Method = Callable[[FloatArray, FloatArray, int], tuple[FloatArray, Verdict | None]]


def relative_error(coef: FloatArray, truth: FloatArray) -> float:
    """Return ``|coef - truth| / |truth|``; infinite for coefficients that are not numbers."""
    error = float(np.linalg.norm(coef - truth) / np.linalg.norm(truth))
    return error if np.isfinite(error) else np.inf


def attempt(cell: Cell, method: Method, trial: int) -> Answer:
    """Run one trial."""
    table = cell.table(trial)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        coef, verdict = method(table.X, table.y, trial)
        seconds = time.perf_counter() - start
    return Answer(relative_error(coef, table.truth), seconds, verdict, 2 * table.n_wrong >= cell.n)


@cache
def trials(cell: Cell, method: Method, n_trials: int) -> tuple[Answer, ...]:
    """Return the answers of trials 0, 1, ..."""
    return tuple(_checked(cell, method, range(n_trials), mapped))


def one_by_one(cell: Cell, method: Method, n_trials: int) -> tuple[Answer, ...]:
    """Return the same answers from this process alone, for times that are compared."""
    attempt(cell, method, 0)  # loads what is loaded once
    return tuple(_checked(cell, method, range(n_trials), map))


def reaches(cell: Cell, method: Method, n_trials: int, share: float) -> bool:
    """Whether `share` of the trials is recovered; ends as soon as that is out of reach."""
    allowed = n_trials - int(np.ceil(share * n_trials - 1e-9))
    failures = done = 0
    while done < n_trials:
        numbers = range(done, min(done + max(allowed + 1 - failures, processes()), n_trials))
        done = numbers.stop
        failures += sum(not answer.recovered for answer in _checked(cell, method, numbers, mapped))
        if failures > allowed:
            return False
    return True


def _checked(cell: Cell, method: Method, numbers: range, mapped: Callable[..., Iterable[Answer]]) -> list[Answer]:
    """Return the answers of the trials; one that claims to be right and is not ends the benchmark."""
    answers = list(mapped(partial(attempt, cell, method), numbers))
    for trial, answer in zip(numbers, answers, strict=True):
        if answer.claimed and not answer.recovered and not answer.outvoted:
            verdict = "" if answer.verdict is None else answer.verdict.name
            raise Incorrect(f"{cell}, {method.__name__}, trial {trial}: {verdict}, error {answer.error:.1e}")
    return answers


def share(answers: Sequence[Answer]) -> float:
    """Return the share of recovered tables."""
    return sum(answer.recovered for answer in answers) / len(answers)


def answered(answers: Sequence[Answer]) -> int:
    """Count the trials that have coefficients."""
    return sum(bool(np.isfinite(answer.error)) for answer in answers)


def median_seconds(answers: Sequence[Answer]) -> float:
    """Return the median time of a trial."""
    return statistics.median(answer.seconds for answer in answers)


def verdicts(answers: Sequence[Answer]) -> str:
    """Count the verdicts, as text."""
    names = [answer.verdict.name for answer in answers if answer.verdict is not None]
    return ", ".join(f"{names.count(verdict.name)} {verdict.name}" for verdict in Verdict if verdict.name in names)


def processes() -> int:
    """Return how many processes share the trials."""
    return int(os.environ.get("MASSART_BENCH_PROCESSES", min(2, os.cpu_count() or 1)))


def mapped(function: Callable[[int], Answer], numbers: range) -> list[Answer]:
    """Return the function's values in order."""
    if processes() <= 1 or len(numbers) <= 1:
        return [function(number) for number in numbers]
    return list(_pool().map(function, numbers))


@cache
def _pool() -> ProcessPoolExecutor:
    # Fresh interpreters, which read the number of BLAS threads from the environment as this one did.
    pool = ProcessPoolExecutor(processes(), mp_context=multiprocessing.get_context("spawn"))
    atexit.register(pool.shutdown, cancel_futures=True)
    return pool


R_METHODS = {"ltsReg": "robustbase", "lmrob": "robustbase", "rlm": "MASS"}
"""The methods of peers.R and the packages they come from."""


def r_trials(cell: Cell, n_trials: int, program: str = "peers.R") -> dict[str, tuple[Answer, ...]]:
    """Return what R's methods make of the first trials, timed inside one R process; those not installed are missing."""
    if shutil.which("Rscript") is None:
        raise MissingPeer("Rscript is not installed")
    tables = [cell.table(trial) for trial in range(n_trials)]
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "tables"), Path(folder, "answers")
        with source.open("wb") as file:
            for table in tables:
                file.write(table.X.tobytes(order="F") + table.y.tobytes())
        script = Path(__file__).with_name(program)
        command = ["Rscript", str(script), str(source), str(target), str(n_trials), str(cell.n), str(cell.d)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise MissingPeer(f"R failed: {done.stderr[-200:]}")
        names = done.stdout.split()
        values = np.fromfile(target).reshape(len(names), n_trials, 1 + 2 * cell.d)
    return {
        name: tuple(
            Answer(min(relative_error(coef, table.truth) for coef in row[1:].reshape(2, cell.d)), float(row[0]))
            for row, table in zip(rows, tables, strict=True)
        )
        for name, rows in zip(names, values, strict=True)
    }
