"""Whether the numbers of a rule come out as their author wrote them: 4.95, and not 4.9499 or 99/20.001.

    python benchmarks/exact_numbers.py [--seed 1] [--tables 20] [--only cents] [--engine FOLDER] [--show]

Each family makes tables of a rule whose coefficients are known as exact numbers, with a third of the labels wrong.
A table counts if every coefficient, the constant included, has the exact number of its author: zero where a column has
no effect. In the family *arbitrary* the coefficients are arbitrary floats: a table counts if none of them is given a
short number. ``--engine`` is the folder of another source tree, to compare two states of the code on the same tables.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

# Sets the number of BLAS threads, so it comes before anything that loads numpy.
import harness  # noqa: F401  # isort: skip

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Truth = list[Fraction | None]
Table = tuple[Floats, Floats, Truth]
WRONG = 0.35


def labels(rng: np.random.Generator, X: Floats, numbers: Truth, places: int | None, share: float = WRONG) -> Table:
    """Return the table of a rule, the last number being the constant, with a share of its labels wrong."""
    w = np.array([float(value) for value in numbers if value is not None])
    y = X @ w[:-1] + w[-1]
    wrong = rng.random(len(y)) < share
    y = np.where(wrong, y * rng.choice([1.19, 0.5, 10, -1], len(y)) + rng.uniform(-20, 20, len(y)), y)
    return X, y if places is None else np.round(y, places) + 0.0, numbers


def fractions(rng: np.random.Generator) -> Table:
    """Return whole numbers with coefficients that are fractions with denominators up to 60, as floats or in cents."""
    d = int(rng.integers(2, 7))
    numbers: Truth = [Fraction(int(rng.integers(1, 100)), int(rng.integers(3, 61))) for _ in range(d + 1)]
    X = rng.integers(1, 300, (int(rng.integers(100, 600)), d)).astype(float)
    return labels(rng, X, numbers, None if rng.random() < 0.5 else 2)


def quarters(rng: np.random.Generator) -> Table:
    """Return quarters of an hour at a rate that ends in .50: every second label ends in half a cent, and is rounded."""
    n = int(rng.integers(150, 1000))
    X = np.column_stack([rng.integers(1, 160, n) / 4, rng.integers(0, 30, n), rng.random(n) < 0.4]).astype(float)
    numbers: Truth = [
        Fraction(int(rng.integers(30, 90))) + Fraction(1, 2),
        Fraction(int(rng.integers(11, 200)), 10),
        Fraction(int(rng.integers(1, 80))),
        Fraction(int(rng.integers(0, 60))),
    ]
    return labels(rng, X, numbers, 2)


def one_decimal(rng: np.random.Generator) -> Table:
    """Return labels of one decimal, with prices of three."""
    n, d = int(rng.integers(150, 1500)), int(rng.integers(2, 5))
    X = rng.integers(0, 200, (n, d)).astype(float)
    numbers: Truth = [*(Fraction(int(rng.integers(50, 4000)), 1000) for _ in range(d)), Fraction(0)]
    return labels(rng, X, numbers, 1)


def whole_labels(rng: np.random.Generator) -> Table:
    """Return whole labels of eight columns with prices of two decimals."""
    n = int(rng.integers(400, 2000))
    X = rng.integers(0, 60, (n, 8)).astype(float)
    numbers: Truth = [
        *(Fraction(int(rng.integers(20, 3000)), 100) for _ in range(8)),
        Fraction(int(rng.integers(0, 90))),
    ]
    return labels(rng, X, numbers, 0)


def long_floats(rng: np.random.Generator) -> Table:
    """Return floats with coefficients of up to seven digits, and columns without effect."""
    d = int(rng.integers(4, 10))
    numbers: Truth = [
        Fraction(0) if rng.random() < 0.4 else Fraction(int(rng.integers(10**6, 10**7)), 10 ** int(rng.integers(3, 8)))
        for _ in range(d + 1)
    ]
    return labels(rng, rng.uniform(0, 50, (int(rng.integers(100, 500)), d)), numbers, None)


def levels(rng: np.random.Generator) -> Table:
    """Return surcharges for some levels of a category, all levels beside a constant: rows leave a choice of forms."""
    n, k = int(rng.integers(200, 1000)), int(rng.integers(4, 9))
    code = rng.integers(0, k, n)
    km = rng.integers(1, 400, n).astype(float)
    X = np.column_stack([km, code[:, None] == np.arange(k)]).astype(float)
    extra = [Fraction(0) if j < k // 2 + 1 else Fraction(int(rng.integers(4, 200)), 4) for j in range(k)]
    numbers: Truth = [Fraction(int(rng.integers(5, 90)), 100), *extra, Fraction(int(rng.integers(20, 300)), 4)]
    return labels(rng, X, numbers, 2)


def cents(rng: np.random.Generator) -> Table:
    """Return a tariff in cents with rates of four digits, and a column without effect."""
    n = int(rng.integers(200, 1500))
    X = np.column_stack([rng.integers(80, 900, n), rng.integers(20, 400, n), rng.random(n) < 0.5, rng.random(n) < 0.3])
    numbers: Truth = [
        Fraction(int(rng.integers(1000, 5000)), 10_000),
        Fraction(int(rng.integers(1000, 5000)), 10_000),
        Fraction(int(rng.integers(10, 300)), 10),
        Fraction(0),
        Fraction(int(rng.integers(10, 500)), 10),
    ]
    return labels(rng, X.astype(float), numbers, 2)


def per_year(rng: np.random.Generator) -> Table:
    """Return interest: a rate over 1200 or 36500, in cents."""
    n, parts = int(rng.integers(500, 3000)), int(rng.choice([1200, 36500, 360, 12]))
    X = (rng.integers(1000, 400_000, n) * rng.integers(1, 80, n) / 10)[:, None] * (parts / 1200)
    return labels(rng, np.round(X, 1), [Fraction(1, parts), Fraction(0)], 2)


def tenths(rng: np.random.Generator) -> Table:
    """Return columns of one decimal and prices of two, in cents: all labels are short of what they would be."""
    n, d = int(rng.integers(100, 800)), int(rng.integers(2, 7))
    X = rng.integers(0, 900, (n, d)) / 10
    numbers: Truth = [
        *(Fraction(int(rng.integers(10, 9000)), 100) for _ in range(d)),
        Fraction(int(rng.integers(0, 99))),
    ]
    return labels(rng, X, numbers, 2)


def arbitrary(rng: np.random.Generator) -> Table:
    """Return arbitrary coefficients, of which none has a short number; labels are floats or cents."""
    n, d = int(rng.integers(300, 2000)), int(rng.integers(2, 6))
    X = rng.uniform(0, 100, (n, d))
    w = rng.uniform(0.1, 5, d + 1)
    X, y, _ = labels(rng, X, [Fraction(value) for value in w], 2 if rng.random() < 0.5 else None)
    return X, y, [None] * (d + 1)


FAMILIES: dict[str, Callable[[np.random.Generator], Table]] = {
    family.__name__: family
    for family in (
        fractions,
        quarters,
        one_decimal,
        whole_labels,
        long_floats,
        levels,
        cents,
        per_year,
        tenths,
        arbitrary,
    )
}


def main() -> int:
    """Fit the tables of all families, and print how many come out as their author wrote them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--only", default="")
    parser.add_argument("--engine", type=Path)
    parser.add_argument("--show", action="store_true", help="print the tables that do not")
    options = parser.parse_args()
    if options.engine is not None:
        sys.path.insert(0, str(options.engine / "src"))
    from massart.recover import recover
    from massart.rows import ArrayRows

    total = right = 0
    for name, family in FAMILIES.items():
        if options.only not in name:
            continue
        found, seconds = 0, []
        for k in range(options.tables):
            X, y, numbers = family(np.random.default_rng([options.seed, k, len(name)]))
            start = time.process_time()
            recovery = recover(ArrayRows(X, y, intercept=True), rng=np.random.default_rng(0))
            seconds.append(time.process_time() - start)
            if list(recovery.fractions[0]) == numbers:
                found += 1
            elif options.show:
                print(f"  {name} {k}: {' '.join(map(_short, numbers))} | {recovery.certificates[0].verdict.name}")
                values = zip(recovery.fractions[0], recovery.coef[:, 0], strict=True)
                print("     ", " ".join(f"~{w:.10g}" if value is None else _short(value) for value, w in values))
        total, right = total + options.tables, right + found
        print(f"{name:14} {found:4} of {options.tables}   {np.median(seconds):.3f} s, largest {max(seconds):.2f} s")
    print(f"{'all':14} {right:4} of {total}")
    return 0


def _short(value: Fraction | None) -> str:
    if value is None:
        return "arbitrary"
    decimal = f"{float(value):.10g}"
    return decimal if Fraction(decimal) == value else str(value)


if __name__ == "__main__":
    sys.exit(main())
