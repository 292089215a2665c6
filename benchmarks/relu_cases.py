"""Tables whose labels are ReLUs of the rows, many of them wrong: who recovers the truth, and loops over the tables.

A trial is known by its cell, its method and its number, as in `linear_cases`; MASSART_BENCH_PROCESSES sets how many
processes share them.
"""

from __future__ import annotations

import time
import warnings
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial

from linear_cases import Answer, FloatArray, Table, mapped, r_trials, relative_error  # isort: skip
from harness import Incorrect  # isort: skip

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from arrays import recovered
from massart.certificate import Verdict
from massart.isotropy import radial_isotropy
from massart.l1 import l1_regression
from massart.paper import (
    Adversary,
    MassartNoise,
    decoy,
    far_constant,
    flip,
    gaussian,
    high_leverage,
    negate,
    paper_mixture,
    paper_weights,
    relu_labels,
    scale,
    where,
    zero,
)
from massart.rows import RELU
from row_families import (
    cauchy,
    column_scales,
    displaced_weights,
    gaussian_with_intercept,
    integer_weights,
    integers_on_subspace,
    intercept_weights,
    permuted_weights,
    rescaled_weights,
    scaled_columns,
)

ROUNDING = 1e-10
"""A row is fitted if its residual is at most this share of ``sum |w_j x_j|``: far above what adding them up costs."""

INTEGER_SUBSPACE = 3
"""The dimension of the subspace that holds most rows of the integer tables."""

CLAD_ROUNDS = 100


@dataclass(frozen=True, slots=True)
class ReluTable(Table):
    """A table, and the parameter with which the adversary answers where there is one."""

    rival: FloatArray | None


@dataclass(frozen=True, slots=True)
class ReluCell:
    """One point of a grid: a distribution of tables.

    Attributes
    ----------
    n, d : int
    eta : float
    adversary : str
        "neg", "flip", "const", "zero" and "decoy": `negate`, `flip`, `far_constant`, `zero` and `decoy` of
        `massart.paper`; "oppose" as in `row_families`; "1.1x"; "near", which is a decoy 5 % away.
    rows : str
        "Gaussian"; "mixture" (the paper's, where only rows of high leverage can be wrong) and "mixture, any row";
        "intercept" (active on a fifth of the rows); "integers, 70 %" and "integers, 90 %" (on a subspace of three
        dimensions); "Cauchy"; "scales" (of columns, from 1 to 1e8).
    """

    n: int
    d: int
    eta: float
    adversary: str
    rows: str = "Gaussian"

    def __str__(self) -> str:
        return f"{self.rows}, {self.adversary}, {self.n} x {self.d}, eta {self.eta:g}"

    def table(self, trial: int) -> ReluTable:
        """Return table number `trial`."""
        rng = np.random.default_rng([zlib.crc32(str(self).encode()), trial])
        X, truth, other = _problem(self, rng)
        answer, rival = _adversary(self.adversary, truth, other, rng)
        if self.rows == "mixture":
            answer = where(high_leverage, answer)
        corruption = MassartNoise(self.eta, answer).corrupt(X, relu_labels(X, truth), rng)
        return ReluTable(X, corruption.labels, truth, int(corruption.changed.sum()), rival)

    def possible(self, trial: int) -> bool:
        """Whether the truth of table `trial` fits no fewer rows than the adversary's parameter, and enough to be found.

        Enough are more than d rows of a positive label: a label of 0 tells a side only.
        """
        table = self.table(trial)
        right = fitted(table.X, table.y, table.truth)
        rival = 0 if table.rival is None else fitted(table.X, table.y, table.rival).sum()
        return bool(right.sum() >= rival and (right & (table.y > 0)).sum() > self.d)


def fitted(X: FloatArray, y: FloatArray, w: FloatArray) -> NDArray[np.bool_]:
    """Return the rows whose label is ``max(0, w.x)`` up to rounding."""
    return np.abs(np.maximum(X @ w, 0.0) - y) <= ROUNDING * (np.abs(X) @ np.abs(w))


def _problem(cell: ReluCell, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the rows, the truth and another parameter to be taken for it."""
    n, d = cell.n, cell.d
    if cell.rows.startswith("mixture"):
        truth = paper_weights(d)
        return paper_mixture(n, d, rng), truth, permuted_weights(truth, rng)
    if cell.rows == "intercept":
        truth = intercept_weights(d, rng)
        other = np.append(rng.standard_normal(d - 1) / np.sqrt(d - 1), truth[-1])
        return gaussian_with_intercept(n, d, rng), truth, other
    if cell.rows.startswith("integers"):
        inside = {"integers, 70 %": 0.7, "integers, 90 %": 0.9}[cell.rows]
        planted = integers_on_subspace(n, d, INTEGER_SUBSPACE, round(inside * n), rng)
        truth, other = (_seen_by(planted.basis, rng) for _ in range(2))
        return planted.X, truth, other
    if cell.rows == "scales":
        truth = rng.standard_normal(d) / column_scales(d)
        return scaled_columns(n, d, rng), truth, rescaled_weights(truth, rng)
    sampler = {"Gaussian": gaussian, "Cauchy": cauchy}[cell.rows]
    truth = rng.standard_normal(d)
    return sampler(n, d, rng), truth, rng.standard_normal(d) * permuted_weights(truth, rng)


def _seen_by(basis: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return integer weights that do not vanish on the subspace."""
    while True:
        w = integer_weights(len(basis), rng)
        if (basis.T @ w).any():
            return w


def _adversary(
    name: str, truth: FloatArray, other: FloatArray, rng: np.random.Generator
) -> tuple[Adversary, FloatArray | None]:
    """Return the adversary of that name and the parameter that fits its labels: none for a constant."""
    if name == "const":
        return far_constant, None
    if name in ("neg", "flip"):
        return negate(truth) if name == "neg" else flip(truth, relu_labels), -truth
    if name == "zero":
        return zero, np.zeros_like(truth)
    if name == "1.1x":
        return scale(1.1), 1.1 * truth
    if name == "oppose":
        other = displaced_weights(truth, 3.0, rng)
    elif name == "near":
        other = displaced_weights(truth, 0.05, rng)
    elif name != "decoy":
        raise ValueError(f"adversary must be one of those that ReluCell names, got {name!r}")
    return decoy(other, relu_labels), other


ADVERSARIES = ("flip", "const", "decoy", "neg", "zero", "oppose")
ETAS = (0.1, 0.25, 0.4, 0.45)
COLUMNS = (5, 10, 20, 50)
RATIOS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
"""The grid of Gaussian tables: adversaries, noise rates, columns, and rows for each column."""

MIXTURE = tuple(
    ReluCell(240, 30, 0.4, adversary, rows)
    for rows in ("mixture", "mixture, any row")
    for adversary in ("neg", "const", "decoy")
)

FAMILIES = {
    "mixture": MIXTURE,
    "labels to zero": tuple(ReluCell(n, 10, 0.4, "zero") for n in (240, 480)),
    "intercept": tuple(
        ReluCell(n, 10, 0.4, adversary, "intercept") for n in (480, 2000) for adversary in ("const", "flip", "decoy")
    ),
    "integers on a subspace": tuple(
        ReluCell(n, 9, eta, adversary, f"integers, {inside} %")
        for inside, n, eta in ((70, 360, 0.25), (70, 360, 0.4), (90, 720, 0.25), (90, 1440, 0.4))
        for adversary in ("const", "decoy")
    ),
    "Cauchy and scales": (
        ReluCell(720, 30, 0.4, "decoy", "Cauchy"),
        ReluCell(480, 20, 0.4, "flip", "scales"),
    ),
    "near the truth": tuple(ReluCell(240, 10, 0.4, adversary) for adversary in ("decoy", "1.1x", "near")),
    "oppose": (ReluCell(480, 10, 0.45, "oppose"),),
    "48 rows a column": tuple(ReluCell(48 * d, d, 0.4, "const") for d in (5, 10, 20)),
    "50 columns": (ReluCell(600, 50, 0.4, "const"),),
}
"""The instances worth keeping of the measurements before this code; that of the oracle at 0 is a test, no table."""


def default(table: Table, trial: int) -> tuple[FloatArray, Verdict]:
    """Recover as users do."""
    found = recovered(table.X, table.y, link=RELU, rng=np.random.default_rng(trial))
    return found.coef, found.certificate.verdict


def oracle_l1(table: Table, trial: int) -> tuple[FloatArray, None]:
    """Minimise the absolute residuals, scaled radially, of the rows on which the truth is active.

    What the paper's oracle would find if it knew these rows. Rows outside a heavy subspace are left out.
    """
    active = (table.X @ table.truth > 0) & (table.y >= 0)
    X, y = table.X[active], table.y[active]
    position = radial_isotropy(X)
    X, y = X[position.members], y[position.members]
    lengths = np.linalg.norm(X @ position.subspace @ position.matrix.T, axis=1)
    return polished(X, y, l1_regression(X / lengths[:, None], y / lengths).coef), None


def clad(table: Table, trial: int) -> tuple[FloatArray, None]:
    """Minimise the absolute residuals of the rows with ``w.x > 0`` until these rows repeat (Buchinsky 1994).

    Powell's censored least absolute deviations by iterated linear programs (HiGHS). They start with the rows of a
    positive label: from all rows, half of whose labels are zero, the first fit is often w = 0, and that is the end.
    """
    return _clad(table, highs_l1), None


def clad_on_our_l1(table: Table, trial: int) -> tuple[FloatArray, None]:
    """Do the same with our own L1 regression instead of a linear program."""
    return _clad(table, lambda X, y: l1_regression(X, y).coef), None


def _clad(table: Table, solve: Callable[[FloatArray, FloatArray], FloatArray]) -> FloatArray:
    X, y = table.X, table.y
    coef = np.zeros(X.shape[1])
    rows = y > 0
    seen: set[bytes] = set()
    while rows.sum() >= X.shape[1] and rows.tobytes() not in seen and len(seen) < CLAD_ROUNDS:
        seen.add(rows.tobytes())
        coef = solve(X[rows], y[rows])
        rows = X @ coef > 0
    return coef


def highs_l1(X: FloatArray, y: FloatArray) -> FloatArray:
    """Minimise the absolute residuals by HiGHS, through the dual, which has few constraints."""
    unit = float(np.abs(y).max()) or 1.0
    program = linprog(-y / unit, A_eq=X.T, b_eq=np.zeros(X.shape[1]), bounds=(-1, 1), method="highs")
    return -program.eqlin.marginals * unit


def polished(X: FloatArray, y: FloatArray, coef: FloatArray) -> FloatArray:
    """Return the least-squares solution of the rows that `coef` fits, or `coef` where they do not determine it."""
    rows = np.abs(X @ coef - y) <= 1e-8 * (np.abs(X) @ np.abs(coef))
    solution, _, rank, _ = np.linalg.lstsq(X[rows], y[rows], rcond=None)
    return solution if rank == X.shape[1] else coef


Method = Callable[[Table, int], tuple[FloatArray, Verdict | None]]


def attempt(cell: ReluCell, method: Method, trial: int) -> Answer:
    """Run one trial. The truth is outvoted where the answer fits more rows: to claim that is no error."""
    table = cell.table(trial)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        coef, verdict = method(table, trial)
        seconds = time.perf_counter() - start
    ours, true = (int(fitted(table.X, table.y, w).sum()) for w in (coef, table.truth))
    return Answer(relative_error(coef, table.truth), seconds, verdict, ours > true)


@cache
def trials(cell: ReluCell, method: Method, n_trials: int) -> tuple[Answer, ...]:
    """Return the answers of trials 0, 1, ..."""
    return tuple(mapped(partial(attempt, cell, method), range(n_trials)))


def one_by_one(cell: ReluCell, method: Method, n_trials: int) -> tuple[Answer, ...]:
    """Return the same answers from this process alone, for times that are compared."""
    attempt(cell, method, 0)  # loads what is loaded once
    return tuple(attempt(cell, method, trial) for trial in range(n_trials))


@cache
def reaches(cell: ReluCell, method: Method, n_trials: int, share: float) -> bool:
    """Whether `share` of the trials is recovered; ends as soon as that is out of reach, or with a wrong claim."""
    allowed = n_trials - int(np.ceil(share * n_trials - 1e-9))
    failures = done = 0
    while done < n_trials and failures <= allowed:
        numbers = range(done, min(done + max(allowed + 1 - failures, 2), n_trials))
        done = numbers.stop
        answers = mapped(partial(attempt, cell, method), numbers)
        if wrong_claims(answers):
            raise Incorrect(f"{cell}, {method.__name__}: a wrong claim in trials {numbers.start} to {numbers.stop - 1}")
        failures += sum(not answer.recovered for answer in answers)
    return failures <= allowed


def wrong_claims(answers: Iterable[Answer]) -> int:
    """Count the answers that claim to be right while they are not, and the truth fits as many rows."""
    return sum(answer.claimed and not answer.recovered and not answer.outvoted for answer in answers)


def possible_answers(cell: ReluCell, answers: Sequence[Answer]) -> list[Answer]:
    """Return the answers of the tables where recovery is possible."""
    return [answer for trial, answer in enumerate(answers) if cell.possible(trial)]


R_METHODS = ("crq", "crq-positive")
"""The methods of relu_peers.R: quantreg's, from its own start and from the rows of a positive label."""


def crq_trials(cell: ReluCell, n_trials: int) -> dict[str, tuple[Answer, ...]]:
    """Return what R's censored median regression makes of the first trials."""
    return r_trials(cell, n_trials, "relu_peers.R")
