"""Time the search for a rule: ``python benchmarks/rule_times.py [--tables N] [--seed S]``.

Six columns of numbers and two categories of five levels, 3,000 rows: a product of three with 40 % of its values wrong,
and a target that follows no rule.
"""

from __future__ import annotations

import argparse
import time

# Sets the number of BLAS threads, so it comes before anything that loads numpy.
import harness  # noqa: F401  isort: skip

import numpy as np

from massart import audit_table

ROWS, WRONG = 3_000, 0.4


def table(rng: np.random.Generator, *, rule: bool) -> dict[str, list[object]]:
    """Return a table, with a rule behind its amounts or without."""
    qty, price = rng.integers(1, 40, ROWS), np.round(rng.lognormal(3, 0.8, ROWS), 2)
    discount, weight = rng.choice([0, 0.05, 0.1, 0.2], ROWS), np.round(rng.uniform(0, 90, ROWS), 1)
    amount = np.round(qty * price * (1 - discount) + 0.35 * weight + 12, 2)
    if rule:
        wrong = [amount * 10, np.round(amount * 1.19, 2), rng.permutation(amount)]
        amount = np.where(rng.random(ROWS) < WRONG, np.choose(rng.integers(0, 3, ROWS), wrong), amount)
    else:
        amount = np.round(rng.lognormal(5, 1, ROWS), 2)
    others = {"age": np.round(rng.normal(50, 9, ROWS), 1), "code": rng.integers(0, 1_000, ROWS)}
    levels = {"region": rng.choice(list("NSEWM"), ROWS), "class": rng.choice(list("vwxyz"), ROWS)}
    columns = {"qty": qty, "price": price, "discount": discount, "weight": weight, **others, **levels, "amount": amount}
    return {name: values.tolist() for name, values in columns.items()}


def main() -> None:
    """Print a line for each table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    for rule, goal in ((True, 3), (False, 20)):
        for k in range(asked.tables):
            columns = table(np.random.default_rng([asked.seed, k]), rule=rule)
            start = time.perf_counter()
            found = audit_table(columns, "amount")
            seconds = time.perf_counter() - start
            print(
                f"{seconds:5.2f} s (wanted < {goal} s)  {found.certificate.verdict.name:9}  {str(found.formula)[:80]}"
            )


if __name__ == "__main__":
    main()
