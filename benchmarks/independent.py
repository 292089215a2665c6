"""Measure what massart says where more than half of the labels are wrong and the errors do not depend on the columns.

``python benchmarks/independent.py [--part rule|none|noise|certificate|power] [--tables N] [--seed S] [--small]``

Parts: ``rule``: 55 to 80 % of the labels have an additive error (normal, uniform, Cauchy, Student t3, skewed), 1,000 to
5,000 rows and 3 to 12 columns, numbers as floats or in cents: is the rule found, and is the verdict that of an exact
rule? ``none``: all labels have one, or nothing to do with the columns. ``noise``: noise about as wide as rounding,
curves, counts and grades: no exact rule of a minority of these. ``certificate``: tables within the conditions that
``errors="independent"`` declares (Gaussian, cents, dummies and quantities, labels in cents, lattices, hinges; 55 to
85 % wrong): how many claims are false? In every second one 70 % or more are wrong, or all, and the formula is the best
of many through random rows. ``power``: the share of tables that are confirmed, by size and share of wrong labels.

Fails (exit status 1) if the rule is found in less than 95 % of the tables with at least ten exact rows a column, one is
claimed in the part ``none``, or more than .1 % of the tables of the part ``certificate`` have a false claim.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from typing import Any

# Sets the number of BLAS threads, so it comes before anything that loads numpy.
import harness  # isort: skip # noqa: F401

import numpy as np

from massart import MassartRegressor
from massart.certificate import IndependentErrors, Verdict, certify_independent
from massart.rows import Agreement, levels

LAWS = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "uniform": lambda rng, n: rng.uniform(-2, 2, n),
    "cauchy": lambda rng, n: rng.standard_cauchy(n),
    "t3": lambda rng, n: rng.standard_t(3, n),
    "skewed": lambda rng, n: rng.exponential(1, n) - 0.5,
}
WANTED, ROWS_PER_COLUMN = 0.95, 10
EXACT = (Verdict.PROVEN, Verdict.CONFIRMED, Verdict.MAJORITY, Verdict.PLURALITY)


def columns(rng: np.random.Generator, cents: bool) -> tuple[np.ndarray, np.ndarray, float]:
    """Return rows, the coefficients of a rule and its constant."""
    n, d = int(rng.integers(1000, 5001)), int(rng.integers(3, 13))
    X = np.round(rng.uniform(0, 100, (n, d)), 2) if cents else rng.standard_normal((n, d))
    return X, rng.integers(1, 40, d) / 4 * rng.choice([-1, 1], d), float(rng.integers(-9, 10))


def with_rule(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, str]:
    """Return a table most of whose labels have an error, its coefficients, its right rows and a description."""
    cents = bool(rng.random() < 0.5)
    X, w, constant = columns(rng, cents)
    eta, law = rng.uniform(0.55, 0.8), list(LAWS)[rng.integers(len(LAWS))]
    wrong = rng.random(len(X)) < eta
    y = X @ w + constant + wrong * LAWS[law](rng, len(X)) * rng.choice([3.0, 30.0])
    if cents:
        y = np.round(y, 2)
    return X, y, w, ~wrong, f"{len(X)} x {X.shape[1]}, {law}{', cents' if cents else ''}, {eta:.2f}"


def without_rule(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, str]:
    """Return a table in which every label has an error, or has nothing to do with the columns."""
    cents = bool(rng.random() < 0.5)
    X, w, constant = columns(rng, cents)
    law, related = list(LAWS)[rng.integers(len(LAWS))], bool(rng.random() < 0.5)
    y = related * (X @ w) + constant + LAWS[law](rng, len(X)) * rng.choice([3.0, 30.0])
    if cents:
        y = np.round(y, 2)
    return X, y, f"{len(X)} x {X.shape[1]}, {law}{', cents' if cents else ''}, {'noisy' if related else 'unrelated'}"


def noise(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, str]:
    """Return a table without an exact rule in which many rows agree with a formula all the same."""
    n, d = int(rng.integers(30, 2000)), int(rng.integers(1, 6))
    X = np.round(rng.uniform(0, 100, (n, d)), int(rng.integers(0, 3)))
    product = X @ (rng.integers(1, 40, d) / 4)
    kind = ("last place", "cents", "curve", "counts", "grades", "heavy")[rng.integers(6)]
    size = float(np.exp(rng.uniform(np.log(1.5), np.log(30))))
    match kind:
        case "last place":
            y = np.round(product + size * rng.standard_normal(n))
        case "cents":
            y = np.round(product + size / 100 * rng.laplace(size=n), 2)
        case "curve":
            y = np.round(20 * np.sqrt(product))
        case "counts":
            y = rng.poisson(product / 20).astype(float)
        case "grades":
            X = rng.integers(0, 3, (n, d)).astype(float)
            y = np.clip(np.round(3 + 0.3 * X.sum(axis=1) + rng.standard_normal(n)), 1, 6)
        case _:
            y = np.round(product + size * rng.standard_cauchy(n))
    return X, y, f"{n} x {d}, {kind} {size:.1f}"


def fitted(X: np.ndarray, y: np.ndarray, **options: Any) -> MassartRegressor:
    """Return the default fit, without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MassartRegressor(random_state=0, **options).fit(X, y)


def is_right(fit: MassartRegressor, X: np.ndarray, w: np.ndarray) -> bool:
    """Whether an exact rule is claimed, and has these coefficients up to rounding."""
    return fit.certificate_.verdict in EXACT and bool(np.allclose(fit.coef_, w, atol=1e-2 / np.abs(X).mean()))


KINDS = ("gaussian", "cents", "dummy and quantity", "labels in cents", "lattice", "hinge")
HUNTED = 1500  # formulas through random rows, of which the best is judged


def declared(rng: np.random.Generator, hunted: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray, str]:
    """Return a table within the conditions of independent errors, its coefficients (the constant last) and its kind."""
    kind, n, d = (
        KINDS[rng.integers(len(KINDS))],
        int(np.exp(rng.uniform(np.log(200), np.log(2500)))),
        rng.integers(1, 5),
    )
    X = rng.standard_normal((n, d)) if kind == "gaussian" else rng.uniform(0, 100, (n, d)).round(2)
    match kind:
        case "dummy and quantity":
            X = np.column_stack([X[:, :3], rng.integers(0, 2, n), rng.integers(1, 11, n)])
        case "lattice":
            X = rng.integers(0, rng.choice([3, 8, 40]), (n, d)).astype(float)
        case "hinge":
            X = np.column_stack([X, np.maximum(X[:, 0] - rng.uniform(40, 95), 0)])
    w = np.append(rng.integers(1, 40, X.shape[1]) / 4 * rng.choice([-1, 1], X.shape[1]), float(rng.integers(-9, 10)))
    eta = rng.uniform(0.7, 0.95) if hunted else rng.uniform(0.55, 0.85)
    nowhere = hunted and rng.random() < 0.3  # no label is right
    law, size = list(LAWS)[rng.integers(len(LAWS))], 30.0 if hunted else rng.choice([3.0, 30.0])
    e = LAWS[law](rng, n) * size
    if rng.random() < 0.4 and not nowhere:  # repeated amounts, at most half as frequent as right labels
        e = 10.0 * rng.integers(1, int(np.ceil(2 * eta / (1 - eta))) + 2, n)
    y = X @ w[:-1] + w[-1] + (rng.random(n) < (1.0 if nowhere else eta)) * e
    unit = 0.01 * (kind == "labels in cents")
    if hunted and kind != "gaussian":
        unit = rng.choice([0.01, 1.0, 10.0] if nowhere else [0.01, 1.0])
    what = f"{n} x {X.shape[1]}, {kind}, {law}, unit {unit:g}, {'all' if nowhere else f'{eta:.2f}'} wrong"
    return X, np.round(y / unit) * unit if unit else y, w, what


def best_of_many(rng: np.random.Generator, X: np.ndarray, y: np.ndarray, level: Agreement) -> np.ndarray:
    """Return the formula, of many through random rows, with which most rows agree."""
    Z = np.column_stack([X, np.ones(len(X))])
    found, most = np.zeros(Z.shape[1]), -1
    for _ in range(HUNTED):
        some = rng.choice(len(Z), Z.shape[1], replace=False)
        try:
            w = np.linalg.solve(Z[some], y[some])
        except np.linalg.LinAlgError:
            continue
        count = int(np.count_nonzero(np.abs(y - Z @ w) <= max(level.label, 1e-9)))
        if count > most:
            found, most = w, count
    return found


def is_false(known: IndependentErrors, X: np.ndarray, u: np.ndarray, slack: float, slopes_only: bool) -> bool:
    """Whether what is claimed of a formula that is off by u does not hold; the constant needs right labels."""
    Z = np.column_stack([X, np.ones(len(X))])
    if known.confirmed and not slopes_only and np.abs(Z @ u).max() > known.within + slack:
        return True
    if not known.slopes:
        return False
    slopes, few = [*known.slopes], [j for j in range(X.shape[1]) if len(np.unique(X[:, j])) <= 12]
    off = X[:, slopes] @ u[slopes]
    if not few:
        return bool(off.std() > known.deviation + slack)
    _, cell = np.unique(X[:, few], axis=0, return_inverse=True)
    squares = sum(
        2 * off[cell == c].var(ddof=1) * (cell == c).sum() for c in range(cell.max() + 1) if (cell == c).sum() > 1
    )
    return bool(np.sqrt(squares / len(X)) > 1.1 * known.deviation + slack)


def certificate_part(given: argparse.Namespace, tables: int) -> bool:
    """Print how many claims are false; return whether these are too many."""
    start, kinds, false = time.process_time(), Counter[str](), 0
    for i in range(given.first, given.first + tables):
        rng, hunted = np.random.default_rng([given.seed, i, 11]), bool(i % 2)
        X, y, v, what = declared(rng, hunted)
        Z = np.column_stack([X, np.ones(len(X))])
        if hunted:
            level = levels("auto", Z, y)[-1 if what.split("unit ")[1][0] != "0" else 0]
            level = next((one for one in levels("auto", Z, y) if one.rounded and not one.inputs), level)
            w = best_of_many(rng, X, y, level)
            residuals, half = y - Z @ w, max(level.label * (1 + 1e-6), 1e-9)
            agree = np.abs(residuals) <= half
            known = certify_independent(Z, residuals, agree, half, rounded=level.rounded, rng=rng, failure=1e-3)
        else:
            fit = fitted(X, y, errors="independent")
            w, verdict = np.append(fit.coef_, fit.intercept_), fit.certificate_.verdict
            found = fit.certificate_.independent
            if verdict.certain and not fit.certificate_.declared:
                kinds["other verdict"] += 1
                continue
            known = IndependentErrors(0, 0) if found is None else found
            if known.confirmed and not fit.certificate_.declared:
                known = IndependentErrors(0, 0)  # refuted, or too coarse
        claim = "all" if known.confirmed else "slopes" if known.slopes else "nothing"
        kinds[f"{'hunted, ' if hunted else ''}{claim}"] += 1
        if is_false(known, X, w - v, 1e-9 * float(np.abs(y).max()), "all wrong" in what):
            false += 1
            print(f"certificate {i}: {what}: false: {known}", flush=True)
        if i % 100 == 99:
            print(f"... {i + 1}: {dict(kinds)}, {false} false, {time.process_time() - start:.0f} s", flush=True)
    print(f"certificate: {dict(kinds)}, {false} false claims in {tables} tables, ", end="")
    print(f"{(time.process_time() - start) / tables:.1f} s a table")
    return false > 0.001 * tables


POWER = {
    "Gaussian, d = 3": ((300, 1_000, 10_000), (0.55, 0.65, 0.75, 0.85)),
    "cents, d = 4": ((300, 1_000, 3_000), (0.55, 0.65, 0.75, 0.85)),
    "Gaussian, d = 6": ((300, 1_000, 10_000), (0.55, 0.65, 0.75, 0.85)),
    "3 numbers in cents, dummy, quantity": ((1_000, 5_000), (0.55, 0.7, 0.8)),
    "labels in cents, d = 4": ((1_000, 5_000), (0.55, 0.7, 0.8)),
}


def power_part(given: argparse.Namespace, tables: int) -> None:
    """Print the share of tables whose slopes are confirmed, and whose whole formula is, at the true formula."""
    for name, (sizes, rates) in POWER.items():
        d = 3 if name.startswith("3") else int(name[-1])
        for n in sizes:
            shown, start = [], time.process_time()
            for eta in rates:
                slopes = whole = 0
                for i in range(tables):
                    rng = np.random.default_rng([given.seed, i, n, int(100 * eta), d])
                    X = rng.standard_normal((n, d)) if name.startswith("G") else rng.uniform(0, 100, (n, d)).round(2)
                    if name.startswith("3"):
                        X = np.column_stack([X, rng.integers(0, 2, n), rng.integers(1, 11, n)])
                    w = rng.integers(1, 40, X.shape[1]) / 4
                    y = X @ w + 12 + (rng.random(n) < eta) * 30 * rng.standard_normal(n)
                    rounded = name.startswith("labels")
                    Z, y = np.column_stack([X, np.ones(n)]), np.round(y, 2) if rounded else y
                    residuals = y - Z @ np.append(w, 12.0)
                    half = 0.005000005 if rounded else 1e-14 * float(np.abs(Z @ np.append(w, 12.0)).max())
                    agree = np.abs(residuals) <= half
                    known = certify_independent(Z, residuals, agree, half, rounded=rounded, rng=rng, failure=1e-3)
                    slopes += bool(known.slopes)
                    whole += known.confirmed and known.within < 2e3 * max(half, 1e-10)
                shown.append(f"{eta:.0%}: {slopes / tables:.2g} / {whole / tables:.2g}")
            seconds = (time.process_time() - start) / (tables * len(rates))
            print(f"{name}, n = {n}: slopes / all at {', '.join(shown)} ({seconds:.1f} s)", flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Print what was found; return 1 if that is too little, or too much."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--part", choices=("rule", "none", "noise", "certificate", "power"), action="append")
    parser.add_argument("--tables", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--small", action="store_true", help="six tables of each part")
    given = parser.parse_args(arguments)
    tables, failed = 6 if given.small else given.tables, 0
    for part in given.part or ("rule", "none", "noise", "certificate"):
        if part == "certificate":
            failed |= certificate_part(given, 6 if given.small else given.tables)
            continue
        if part == "power":
            power_part(given, 1 if given.small else min(given.tables, 6))
            continue
        verdicts: Counter[str] = Counter()
        start, enough, found, claimed = time.process_time(), 0, 0, 0
        for i in range(given.first, given.first + tables):
            rng = np.random.default_rng([given.seed, i, len(part)])
            if part == "rule":
                X, y, w, right, what = with_rule(rng)
                fit = fitted(X, y)
                good = is_right(fit, X, w)
                if right.sum() >= ROWS_PER_COLUMN * (X.shape[1] + 1):
                    enough, found = enough + 1, found + good
            else:
                X, y, what = without_rule(rng) if part == "none" else noise(rng)
                fit = fitted(X, y)
                # Columns that were rounded more than their noise is wide may well agree in most rows.
                most = part == "noise" and 2 * fit.certificate_.n_agree > len(y)
                good = most or fit.certificate_.verdict not in EXACT
                claimed += not good
            verdicts[fit.certificate_.verdict.name] += 1
            if not good:
                print(f"{part} {i}: {what}: {fit.certificate_!r}", flush=True)
        seconds = time.process_time() - start
        print(f"{part}: {dict(verdicts)}, {seconds / tables:.1f} s a table", end="")
        if part == "rule":
            print(f", rule found in {found} of {enough}")
            failed |= found < WANTED * enough
        else:
            print(f", {claimed} claimed where there is none")
            failed |= bool(claimed) and part == "none"
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
