"""Measure what massart says where more than half of the labels are wrong and the errors do not depend on the columns.

``python benchmarks/independent.py [--part rule|none|noise] [--tables N] [--seed S] [--small]``

Parts: ``rule``: 55 to 80 % of the labels have an additive error (normal, uniform, Cauchy, Student t3, skewed), 1,000 to
5,000 rows and 3 to 12 columns, numbers as floats or in cents: is the rule found, and is the verdict that of an exact
rule? ``none``: all labels have one, or nothing to do with the columns. ``noise``: noise about as wide as rounding,
curves, counts and grades: no exact rule of a minority of these.

Fails (exit status 1) if the rule is found in less than 95 % of the tables with at least ten exact rows a column, or one
is claimed in the part ``none``.
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
from massart.certificate import Verdict

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


def main(arguments: list[str] | None = None) -> int:
    """Print what was found; return 1 if that is too little, or too much."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--part", choices=("rule", "none", "noise"), action="append")
    parser.add_argument("--tables", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--small", action="store_true", help="six tables of each part")
    given = parser.parse_args(arguments)
    tables, failed = 6 if given.small else given.tables, 0
    for part in given.part or ("rule", "none", "noise"):
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
