"""ReLU recovery: families of tables, the rows that Gaussian ones need, R's crq and CLAD, and a large table."""

from __future__ import annotations

import time
import warnings
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from harness import Case, Goal, Incorrect, MissingPeer, Row, at_least, at_most, count, race, skipped  # isort: skip


import numpy as np

import massart
from linear_cases import RECOVERED, Answer, answered, median_seconds, relative_error, share, verdicts
from massart.cutting_plane import Method
from massart.paper import ReLUStatus, Transformation, analytic_center, descend, ellipsoid, recover_relu
from relu_cases import (
    ADVERSARIES,
    FAMILIES,
    R_METHODS,
    RATIOS,
    ReluCell,
    clad,
    clad_on_our_l1,
    crq_trials,
    default,
    one_by_one,
    oracle_l1,
    possible_answers,
    reaches,
    trials,
    wrong_claims,
)

EXACT = 1e-12
"""Relative error of coefficients that are recovered."""

NEAR = 1e-6
"""Relative error at which cutting planes are compared."""

PORTFOLIO = {
    (5, 0.4): {"flip": 16, "const": 12, "decoy": 24},
    (10, 0.25): {"flip": 6, "const": 6, "decoy": 6},
    (10, 0.4): {"flip": 6, "const": 6, "decoy": 16},
    (20, 0.25): {"flip": 4, "const": 4, "decoy": 8},
    (20, 0.4): {"flip": 12, "const": 8, "decoy": 12},
}
"""Rows for each column of Gaussian tables with which 95 % were recovered before: by columns, noise and adversary."""

GAUSSIAN_ADVERSARIES = tuple(name for name in ADVERSARIES if name != "neg")
"""Of "neg" the L1 fit that knows the active rows sees no wrong label: there they are all negative."""

WHERE_PEERS_FAIL = (
    ReluCell(240, 30, 0.4, "const", "mixture"),
    ReluCell(240, 30, 0.4, "decoy", "mixture"),
    ReluCell(480, 10, 0.4, "flip", "intercept"),
    ReluCell(720, 30, 0.4, "decoy", "Cauchy"),
    ReluCell(160, 10, 0.4, "decoy"),
)

FIGURE_STEPS = 1000
FAR_AHEAD = 10
"""How many times closer to the truth radial-isotropic descent ends than the best of the other three."""

SMALL_RATIOS = (24, 128)
SMALL_FAMILIES = ("mixture", "labels to zero", "integers on a subspace", "48 rows a column")
RECOVERED_SHARE = 0.95


def cases(small: bool) -> Iterator[Case]:
    """Yield what the issue asks for; small runs take few trials and small tables, and check answers, not clocks."""
    for family in SMALL_FAMILIES if small else FAMILIES:
        cells = FAMILIES[family][: 2 if small else None]
        number, wanted = (200, 0.99) if family == "mixture" else (100, 0.98)
        yield Case(family, partial(_family, family, cells, 3 if small else number, wanted))

    for d in (5,) if small else (5, 10, 20):
        for eta in (0.4,) if small else (0.25, 0.4):
            for adversary in ("const",) if small else GAUSSIAN_ADVERSARIES:
                name = f"Gaussian, {d} columns, eta {eta:g}, {adversary}: rows per column for 95 %"
                ratios, number = (SMALL_RATIOS, 3) if small else (RATIOS, 40)
                yield Case(name, partial(_rows_needed, name, d, eta, adversary, ratios, number))

    for eta in (0.25,) if small else (0.1, 0.25, 0.4):
        for adversary in ("const",) if small else ("const", "flip", "decoy"):
            cell = ReluCell(*((200, 5) if small else (1000, 10)), eta, adversary)
            number = 2 if small else 20
            yield Case(f"{cell}: R", partial(_against_crq, cell, number, at_least(0 if small else 1)))
            yield Case(f"{cell}: CLAD", partial(_against_clad, cell, number, at_least(0 if small else 1)))
    for cell in () if small else WHERE_PEERS_FAIL:
        yield Case(f"{cell}: peers", partial(_where_peers_fail, cell, 20))

    n, d = (20_000, 10) if small else (1_000_000, 50)
    yield Case(f"{n} x {d}, 40 % wrong", partial(_many_rows, n, d, small))
    d = 5 if small else 20
    name = f"cutting planes, {d} columns"
    yield Case(name, partial(_queries, name, d, at_least(2 if small else 15)))
    yield Case("Figure 2(a)", partial(_descents, small))


def _family(name: str, cells: Sequence[ReluCell], n_trials: int, wanted: float) -> Iterator[Row]:
    """Report the shares recovered, of the tables where that is possible, and what is claimed of the others."""
    everything: list[Answer] = []
    for cell in cells:
        answers = trials(cell, default, n_trials)
        everything += answers
        possible = possible_answers(cell, answers)
        note = f"{len(possible)} of {n_trials} tables, {share(answers):.3f} of all"
        note += f", {median_seconds(answers):.3f} s: {verdicts(answers)}"
        yield count(f"{cell}: share where possible", share(possible), wanted=at_least(wanted, ""), note=note)
    errors = [answer.error for answer in everything if answer.recovered]
    yield count(f"{name}: largest error if recovered", max(errors, default=0.0), wanted=at_most(EXACT, ""))
    note = f"{sum(answer.claimed for answer in everything)} claims in {len(everything)} trials"
    yield count(f"{name}: wrong claims", wrong_claims(everything), wanted=at_most(0, ""), note=note)


def _rows_needed(name: str, d: int, eta: float, adversary: str, ratios: Sequence[int], n_trials: int) -> Iterator[Row]:
    """Compare the smallest m/d that is enough for us with the smallest that is enough for an L1 fit that knows S.

    Who looks for the ReLU that fits the most rows needs as many as make that ReLU the truth; the note has these.
    """

    def smallest(enough: Callable[[ReluCell], bool]) -> float:
        """Return the smallest ratio that is enough, by bisection: more rows never hurt, but for chance."""
        cells = [ReluCell(ratio * d, d, eta, adversary) for ratio in ratios]
        return (*ratios, float("inf"))[bisect_left(cells, True, key=enough)]

    start = time.perf_counter()
    limit = smallest(lambda cell: _possible_share(cell, n_trials) >= RECOVERED_SHARE)
    ours, oracle = (
        smallest(lambda cell, method=method: reaches(cell, method, n_trials, RECOVERED_SHARE))
        for method in (default, oracle_l1)
    )
    note = f"{n_trials} trials, {time.perf_counter() - start:.0f} s; possible from {limit:g} on"
    half = at_most(1 if ratios == SMALL_RATIOS else 0.5)
    yield _ratio_row(name, ours, min(oracle, ratios[-1]), "L1 that knows the active rows", half, note)
    before = PORTFOLIO.get((d, eta), {}).get(adversary)
    if before is not None and ratios == RATIOS:
        yield _ratio_row(name, ours, before, "table", at_most(1), note)


def _possible_share(cell: ReluCell, n_trials: int) -> float:
    return sum(cell.possible(trial) for trial in range(n_trials)) / n_trials


def _against_crq(cell: ReluCell, n_trials: int, speed: Goal) -> Iterator[Row]:
    """Compare with R's censored median regression on the same tables: shares and times."""
    theirs = crq_trials(cell, n_trials)
    ours = one_by_one(cell, default, n_trials)
    for method in R_METHODS:
        if method not in theirs:
            yield skipped(f"{cell}: {method}", "R has no package quantreg")
            continue
        yield _share_row(cell, f"R {method}", ours, theirs[method])
        yield _time_row(cell, f"R {method}", ours, theirs[method], speed)


def _against_clad(cell: ReluCell, n_trials: int, speed: Goal) -> Iterator[Row]:
    """Compare with iterated linear programs, which claim nothing, on the same tables."""
    ours, theirs, faster = (one_by_one(cell, method, n_trials) for method in (default, clad, clad_on_our_l1))
    yield _share_row(cell, "CLAD (HiGHS)", ours, theirs)
    yield _time_row(cell, "CLAD (HiGHS)", ours, theirs, speed)
    yield _time_row(cell, "CLAD on our L1", ours, faster, None)


def _where_peers_fail(cell: ReluCell, n_trials: int) -> Iterator[Row]:
    ours = trials(cell, default, n_trials)
    yield _share_row(cell, "CLAD (HiGHS)", ours, trials(cell, clad, n_trials))
    try:
        theirs = crq_trials(cell, n_trials)
    except MissingPeer as missing:
        yield skipped(f"{cell}: R crq", missing)
        return
    for method, answers in theirs.items():
        yield _share_row(cell, f"R {method}", ours, answers)


def _share_row(cell: ReluCell, peer: str, ours: Sequence[Answer], theirs: Sequence[Answer]) -> Row:
    goal, more = at_least(0, " more"), share(ours) - share(theirs)
    note = f"{len(theirs)} tables"
    if answered(theirs) < len(theirs):
        note += f", peer gives no answer for {len(theirs) - answered(theirs)}"
    return Row("", f"{cell}: share", share(ours), share(theirs), peer, more, str(goal), goal.met_by(more), note)


def _time_row(cell: ReluCell, peer: str, ours: Sequence[Answer], theirs: Sequence[Answer], goal: Goal | None) -> Row:
    """Return how many times faster we are; without a goal, for comparison."""
    our_time, their_time = median_seconds(ours), median_seconds(theirs)
    wanted, passed = ("", None) if goal is None else (str(goal), goal.met_by(their_time / our_time))
    note = f"medians of {len(ours)} tables" + ("" if goal else ", for comparison")
    return Row("", f"{cell}: time", our_time, their_time, peer, their_time / our_time, wanted, passed, note)


def _ratio_row(name: str, ours: float, peer: float, peer_name: str, goal: Goal, note: str) -> Row:
    return Row("", name, ours, peer, peer_name, ours / peer, str(goal), goal.met_by(ours / peer), note)


def _many_rows(n: int, d: int, small: bool) -> Iterator[Row]:
    """Race one product."""
    table = ReluCell(n, d, 0.4, "decoy").table(0)
    name = f"{n} x {d}, 40 % wrong"
    errors: list[float] = []

    def fit() -> massart.MassartReLURegressor:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return massart.MassartReLURegressor(fit_intercept=False, random_state=0).fit(table.X, table.y)

    def judge(ours: massart.MassartReLURegressor, product: object) -> str:
        errors.append(relative_error(ours.coef_, table.truth))
        if not errors[-1] < RECOVERED:
            raise Incorrect(f"coefficients are off by {errors[-1]:.1e}, {ours.certificate_.verdict.name}")
        return f"error {errors[-1]:.0e}, {ours.certificate_.verdict.name}"

    goal = at_most(1000 if small else 6)
    yield race(
        name,
        fit,
        lambda: table.X @ table.truth,
        peer_name="one X @ w",
        wanted=goal,
        judge=judge,
        repeats=3 if small else 9,
        seconds=60.0,
    )
    yield count(f"{name}: error of the coefficients", errors[-1], wanted=at_most(EXACT, ""))


def _queries(name: str, d: int, wanted: Goal) -> Row:
    """Compare the queries of analytic centres with those of ellipsoids, from the same ball to the same accuracy."""
    table = ReluCell(96 * d, d, 0.25, "const").table(0)
    radius = 10 * float(np.linalg.norm(table.truth))

    def n_queries(method: Method) -> int:
        found = recover_relu(table.X, table.y, radius=radius, method=method, tol=NEAR / 10)
        error = relative_error(found.w, table.truth)
        if found.status is not ReLUStatus.ACCEPTED or error > RECOVERED:
            raise Incorrect(f"{method.__name__} ends {error:.1e} from the truth: {found.status.value}")
        return found.n_queries

    ours, theirs = n_queries(analytic_center), n_queries(ellipsoid)
    ratio = theirs / ours
    note = f"queries to a relative error of {NEAR:g}"
    return Row("", name, ours, theirs, "ellipsoids", ratio, str(wanted), wanted.met_by(ratio), note)


def _descents(small: bool) -> Iterator[Row]:
    """Compare where the paper's four gradient descents end, Figure 2(a): medians over tables."""
    cell = ReluCell(240, 30, 0.4, "neg", "mixture")

    def distance(transformation: Transformation, trial: int) -> float:
        table = cell.table(trial)
        return float(descend(table.X, table.y, transformation, steps=FIGURE_STEPS).distances(table.truth)[-1])

    ends = {
        transformation: float(np.median([distance(transformation, trial) for trial in range(1 if small else 5)]))
        for transformation in Transformation
    }
    ours = ends.pop(Transformation.RADIAL_ISOTROPIC)
    for transformation, theirs in ends.items():
        name = f"Figure 2(a), distance after {FIGURE_STEPS} steps: radial-isotropic"
        goal = at_least(FAR_AHEAD)
        peer = transformation.name.lower()
        yield Row("", name, ours, theirs, peer, theirs / ours, str(goal), goal.met_by(theirs / ours), "distances")
