"""Linear recovery: the paper's Figure 1, the rows that Gaussian tables need, R and scikit-learn, and large tables."""

from __future__ import annotations

import time
import warnings
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from harness import Case, Goal, Incorrect, Row, alternate, at_least, at_most, count, race, require, skipped  # isort: skip

import numpy as np

from linear_cases import (
    R_METHODS,
    RECOVERED,
    Answer,
    Cell,
    Table,
    algorithm,
    answered,
    corrupted,
    default,
    median_seconds,
    naive_l1,
    normalized_l1,
    one_by_one,
    r_trials,
    ransac,
    reaches,
    relative_error,
    share,
    trials,
    verdicts,
)
from massart import MassartRegressor
from massart.paper import decoy, gaussian, linear_labels
from row_families import dummy_table, one_hot

ETAS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45)
SIZES = (60, 80, 100, 120, 160, 200)
FIGURE_1A = {eta: Cell(120, 30, eta) for eta in ETAS}
FIGURE_1B = {n: Cell(n, 30, 0.25) for n in SIZES}
FIGURES = {*FIGURE_1A.values(), *FIGURE_1B.values()}

TABLE_TRIALS = 40
MEASURED = {
    0.05: (0.55, 0.90, 1.00),
    0.15: (0.20, 0.65, 0.95),
    0.25: (0.00, 0.08, 0.65),
    0.35: (0.00, 0.02, 0.55),
    0.45: (0.00, 0.00, 0.23),
}
"""Figure 1(a) as measured before: naive L1, normalized L1 and Algorithm 1, each on about TABLE_TRIALS tables."""

EXACT = 1e-13
"""Relative error of coefficients that are recovered."""

ADVERSARIES = ("decoy", "constant", "flip", "1.1x")
RATIOS = (2, 2.5, 3, 4, 5, 6, 8, 10, 12, 16, 24)
SMALL_RATIOS = (3, 8, 24)
"""Rows for each column; a method that needs more than the last is taken to need the last."""

RECOVERED_SHARE = 0.95


def cases(small: bool) -> Iterator[Case]:
    """Yield what the issue asks for; small runs take few trials and small tables, and check answers, not clocks."""
    n_trials = 20 if small else 200
    for eta, cell in FIGURE_1A.items():
        name = f"Figure 1(a), eta {eta:.2f}"
        yield Case(name, partial(_figure, name, cell, 0.99, MEASURED.get(eta), n_trials))
    for n, cell in FIGURE_1B.items():
        name = f"Figure 1(b), {n} rows"
        yield Case(name, partial(_figure, name, cell, 0.99 if n >= 80 else 0.95, None, n_trials))

    gaussian_trials = {10: 20} if small else {10: 200, 30: 100, 100: 40}
    for d, number in gaussian_trials.items():
        for adversary in ADVERSARIES[:2] if small else ADVERSARIES:
            name = f"Gaussian, {d} columns, {adversary}: rows per column for 95 %"
            yield Case(name, partial(_rows_needed, name, d, adversary, SMALL_RATIOS if small else RATIOS, number))

    for name, cell in _peer_cells(small).items():
        yield Case(f"{name}: R", partial(_against_r, name, cell, 3 if small else 40, at_least(0 if small else 20)))
        number = 3 if small else 20 if cell in FIGURES else 5  # half a minute each where RANSAC has no chance
        yield Case(f"{name}: RANSAC", partial(_against_ransac, name, cell, number))

    n, d = (20_000, 10) if small else (1_000_000, 50)
    yield Case(f"{n} x {d}, 40 % wrong", partial(_many_rows, n, d, small))
    n, d = (5_000, 30) if small else (100_000, 300)
    yield Case(f"{n} x {d}, 45 % wrong", partial(_large, f"{n} x {d}, 45 % wrong", partial(_gaussian, n, d, 0.45)))
    n = 4_000 if small else 20_000
    for kind in ("dummy", "one-hot"):
        name = f"{n} x 50 {kind} columns, 40 % wrong"
        yield Case(name, partial(_large, name, partial(_categories, kind, n)))


def _figure(
    name: str, cell: Cell, wanted: float, measured: tuple[float, float, float] | None, n_trials: int
) -> Iterator[Row]:
    """Report the shares recovered by Algorithm 2 and by default, and the error of what is recovered."""
    naive, normalized, published = (
        share(trials(cell, method, n_trials)) for method in (naive_l1, normalized_l1, algorithm)
    )
    case = f"{name}: share, Algorithm 2 alone"
    if measured is None:
        note = f"naive L1 {naive:.3f}, normalized L1 {normalized:.3f}"
        yield Row("", case, published, None, "", None, "", None, note)
    else:
        before = measured[2]
        pooled = (published * n_trials + before * TABLE_TRIALS + 1) / (n_trials + TABLE_TRIALS + 2)  # never 0 or 1
        deviation = float(np.sqrt(pooled * (1 - pooled) * (1 / n_trials + 1 / TABLE_TRIALS)))
        goal, below = at_most(3, " standard errors below"), (before - published) / deviation
        note = f"naive L1 {naive:.3f} (table {measured[0]:.2f}), normalized L1 {normalized:.3f} ({measured[1]:.2f})"
        yield Row("", case, published, before, "table", below, str(goal), goal.met_by(below), note)
    answers = trials(cell, default, n_trials)
    note = f"{n_trials} trials, {median_seconds(answers):.3f} s: {verdicts(answers)}; no wrong claim"
    yield count(f"{name}: share, default", share(answers), wanted=at_least(wanted, ""), note=note)
    errors = [answer.error for answer in answers if answer.recovered]
    yield count(f"{name}: largest error if recovered", max(errors, default=0.0), wanted=at_most(EXACT, ""))


def _rows_needed(name: str, d: int, adversary: str, ratios: tuple[float, ...], n_trials: int) -> Row:
    """Compare the smallest m/d that is enough for us with the smallest that is enough for Algorithm 2.

    Who looks for the formula that fits the most rows needs as many as make that formula the truth; the note has these.
    """

    def smallest(enough: Callable[[Cell], bool]) -> float:
        """Return the smallest ratio that is enough, by bisection: more rows never hurt, but for chance."""
        cells = [Cell(round(ratio * d), d, 0.4, adversary) for ratio in ratios]
        return (*ratios, float("inf"))[bisect_left(cells, True, key=enough)]

    start = time.perf_counter()
    limit = smallest(lambda cell: _possible_share(cell, n_trials) >= RECOVERED_SHARE)
    ours, published = (
        smallest(lambda cell, method=method: reaches(cell, method, n_trials, RECOVERED_SHARE))
        for method in (default, algorithm)
    )
    note = f"{n_trials} trials, {time.perf_counter() - start:.0f} s; no formula beats the truth from {limit:g} on"
    ratio = ours / min(published, ratios[-1])
    goal = at_most(0.5)
    return Row("", name, ours, published, "Algorithm 2 alone", ratio, str(goal), goal.met_by(ratio), note)


def _possible_share(cell: Cell, n_trials: int) -> float:
    return sum(cell.possible(trial) for trial in range(n_trials)) / n_trials


def _peer_cells(small: bool) -> dict[str, Cell]:
    if small:
        return {"Figure 1(b), 60 rows": FIGURE_1B[60], "Gaussian 60 x 10, decoy": Cell(60, 10, 0.4, "decoy")}
    cells = {f"Figure 1(a), eta {eta:.2f}": cell for eta, cell in FIGURE_1A.items()}
    cells |= {f"Figure 1(b), {n} rows": cell for n, cell in FIGURE_1B.items() if n != 120}  # 120 is in both
    return cells | {f"Gaussian 360 x 30, {name}": Cell(360, 30, 0.4, name) for name in ("decoy", "constant")}


def _against_r(name: str, cell: Cell, n_trials: int, speed: Goal) -> Iterator[Row]:
    """Compare with R's methods on the same tables: shares, and the time of ltsReg."""
    theirs = r_trials(cell, n_trials)
    ours = one_by_one(cell, default, n_trials)
    for method, package in R_METHODS.items():
        if method not in theirs:
            yield skipped(f"{name}: {method}", f"R has no package {package}")
            continue
        yield _share_row(name, f"R {method}", ours, theirs[method])
        if method == "ltsReg" and answered(theirs[method]):
            our_time, their_time = median_seconds(ours), median_seconds(theirs[method])
            ratio = their_time / our_time
            row = (our_time, their_time, f"R {method}", ratio, str(speed), speed.met_by(ratio))
            yield Row("", f"{name}: time", *row, f"medians of {n_trials} tables")


def _against_ransac(name: str, cell: Cell, n_trials: int) -> Row:
    require("sklearn.linear_model")
    ours, theirs = trials(cell, default, n_trials), trials(cell, ransac, n_trials)
    return _share_row(name, "RANSAC", ours, theirs)


def _share_row(name: str, peer: str, ours: Sequence[Answer], theirs: Sequence[Answer]) -> Row:
    goal, more = at_least(0, " more"), share(ours) - share(theirs)
    note = f"{len(theirs)} tables, peer takes {median_seconds(theirs):.2g} s"
    if answered(theirs) < len(theirs):
        note += f" and gives no answer for {len(theirs) - answered(theirs)}"
    return Row("", f"{name}: share", share(ours), share(theirs), peer, more, str(goal), goal.met_by(more), note)


def _gaussian(n: int, d: int, eta: float) -> Table:
    rng = np.random.default_rng(0)
    X, truth, other = gaussian(n, d, rng), rng.standard_normal(d), rng.standard_normal(d)
    return corrupted(X, truth, eta, decoy(other, linear_labels), rng)


def _categories(kind: str, n: int) -> Table:
    """Return a table of 50 columns: six categories coded with and without their first levels."""
    rng = np.random.default_rng(0)
    X = dummy_table(n, (2, 3, 5, 10, 15, 20), rng) if kind == "dummy" else one_hot(n, (2, 3, 5, 8, 12, 20), rng)
    d = X.shape[1]
    return corrupted(X, rng.standard_normal(d), 0.4, decoy(rng.standard_normal(d), linear_labels), rng)


def _fit(table: Table) -> MassartRegressor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that one-hot columns do not determine their coefficients
        return MassartRegressor(fit_intercept=False, random_state=0).fit(table.X, table.y)


def _many_rows(n: int, d: int, small: bool) -> Iterator[Row]:
    """Race one product, least squares, and scikit-learn's robust models on parts of the rows."""
    table = _gaussian(n, d, 0.4)
    models = require("sklearn.linear_model")
    name = f"{n} x {d}, 40 % wrong"

    def judge(ours: MassartRegressor, theirs: object) -> str:
        error = relative_error(ours.coef_, table.truth)
        if not error < RECOVERED:
            raise Incorrect(f"coefficients are off by {error:.1e}, {ours.certificate_.verdict.name}")
        peer = f", peer's error {relative_error(theirs.coef_, table.truth):.0e}" if hasattr(theirs, "coef_") else ""
        return f"error {error:.0e}, {ours.certificate_.verdict.name}{peer}"

    def against(peer: Callable[[], object], peer_name: str, wanted: Goal, repeats: int) -> Row:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that of not converging
            return race(
                name,
                lambda: _fit(table),
                peer,
                peer_name=peer_name,
                wanted=wanted,
                judge=judge,
                repeats=repeats,
                seconds=60.0,
                warm_up=repeats > 1,
            )

    def part(model: object, rows: int) -> Callable[[], object]:
        X, y = table.X[:rows].copy(), table.y[:rows].copy()
        return lambda: model.fit(X, y)

    def at(factor: float) -> Goal:
        return at_least(0 if small else factor)

    product = at_most(1000 if small else 4)
    yield against(lambda: table.X @ table.truth, "one X @ w", product, 9)
    yield against(part(models.LinearRegression(fit_intercept=False), n), "LinearRegression", at(50), 3)
    huber = models.HuberRegressor(fit_intercept=False)
    yield against(part(huber, n // 10), "Huber, a tenth of the rows", at(1), 3)
    quantile = models.QuantileRegressor(alpha=0.0, fit_intercept=False, solver="highs")
    yield against(part(quantile, n // 100), "Quantile, a hundredth", at(1), 1)
    yield from _exactness(name, table, _fit(table))


def _large(name: str, make: Callable[[], Table]) -> Iterator[Row]:
    """Report the time, against one product, the error and the verdict."""
    table = make()
    times = alternate(lambda: _fit(table), lambda: table.X @ table.truth, repeats=3, seconds=60.0)
    verdict = times.our_answer.certificate_.verdict.name
    ratio = times.ours / times.peer
    yield Row("", name, times.ours, times.peer, "one X @ w", ratio, "", None, f"{verdict}, for comparison")
    yield from _exactness(name, table, times.our_answer)


def _exactness(name: str, table: Table, model: MassartRegressor) -> Iterator[Row]:
    """Compare what the model says of all rows with the truth, and its coefficients where the rows determine them."""
    certificate = model.certificate_
    determined = not certificate.undetermined_columns
    if determined:
        error = relative_error(model.coef_, table.truth)
    else:
        error = relative_error(model.predict(table.X), table.X @ table.truth)
    if not error < RECOVERED:
        raise Incorrect(f"off by {error:.1e}, {certificate.verdict.name}")
    case = f"{name}: error of the {'coefficients' if determined else 'predictions'}"
    yield count(case, error, wanted=at_most(EXACT, ""))
    note = f"{certificate.verdict.name}, {certificate.bound.name}"
    if not determined:
        note += f"; {table.X.shape[1] - certificate.rank} directions that no row determines"
    stands = certificate.verdict.stands
    yield count(f"{name}: PROVEN, CONFIRMED or MAJORITY", float(stands), wanted=at_least(1, ""), note=note)
