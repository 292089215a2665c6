"""Count false CONFIRMED where labels choose the terms: simulations that broke the first ideas, through the product.

    python benchmarks/grown_claims.py [--cases a,b] [--tables N] [--seed S] [--processes K] [--nominal P] [--careful]

The truth is y = 3 x. Every label is wrong with probability `ETA`, independently, which is also what is assumed
(`wrong_at_most`), and a wrong label follows the same wrong rule as the others: 3 x + 7, or a hinge. By chance most rows
are wrong somewhere, and there the search finds a part, or an end, of a rule that does not exist.

- ``interval``, ``hinge``, ``levels``: terms grown on search rows and judged by the others (recipe H), at a confidence
  of 1 - P, with settings so eager that junk is grown (``--careful``: with the settings of the product). Besides what is
  CONFIRMED, the rules are counted that have junk in them: without these the simulation says nothing.
- ``small``: so few rows that all are searched. Nothing that is grown may be confirmed.
- ``adversary``: all rows are searched by ``massart scan``, whose designs pay by a prefix code (recipe C). Somebody who
  sees which rows may be wrong writes the same wrong rule only where the flag holds that has most of these rows.

A rule is *false* if it is off the truth in a row. Exit status 1 if more are confirmed than P allows, with 99.9 % of
chance.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

# Sets the number of BLAS threads, so it comes before anything that loads numpy.
import harness  # noqa: F401  # isort: skip

import numpy as np
from scipy.stats import binom

from massart import scan_table
from massart.audit.finding import Request, options_of, prepare
from massart.certificate import Verdict
from massart.rules.find import Answer, Settings, find_rule
from massart.rules.grow import Settings as Growth
from massart.tables import table_of

ETA = 0.4
EAGER = Settings(growth=Growth(number_bits=2.0, clear=0.5), more=0.0, fewest=1.0, part=0.0)
"""Settings with which junk is grown."""

Columns = dict[str, Any]


def _table(rng: np.random.Generator, n: int, others: Columns, added: Callable[[Columns], np.ndarray]) -> Columns:
    x, wrong = np.round(rng.uniform(10, 500, n), 1), rng.random(n) < ETA
    return {"x": x, **others, "y": np.round(3 * x + wrong * added(others), 2)}


def interval(rng: np.random.Generator) -> Columns:
    """Wrong labels are 7 too large, beside six columns in which they may crowd somewhere."""
    n = int(rng.choice([300, 600, 2000]))
    others = {f"z{k}": np.round(rng.uniform(0, 100, n), 2) for k in range(6)}
    return _table(rng, n, others, lambda columns: np.full(n, 7.0))


def hinge(rng: np.random.Generator) -> Columns:
    """Wrong labels follow a hinge, of which the end may have most rows."""
    n = int(rng.choice([300, 600, 2000]))
    others = {f"z{k}": np.round(rng.uniform(0, 100, n), 2) for k in range(3)}
    return _table(rng, n, others, lambda columns: 2 * np.maximum(0, columns["z0"] - rng.choice([90, 95])))


def levels(rng: np.random.Generator) -> Columns:
    """Wrong labels are 7 too large, beside categories of which some levels may have most of them."""
    n = int(rng.choice([300, 600, 2000]))
    others = {f"c{k}": rng.choice([f"l{j:02d}" for j in range(30)], n) for k in range(3)}
    return _table(rng, n, others, lambda columns: np.full(n, 7.0))


def small(rng: np.random.Generator) -> Columns:
    """All rows are searched."""
    n = int(rng.integers(60, 150))
    others = {f"z{k}": np.round(rng.uniform(0, 100, n), 2) for k in range(6)}
    return _table(rng, n, others, lambda columns: np.full(n, 7.0))


def adversary(rng: np.random.Generator) -> Columns:
    """Labels are wrong in the rows of one flag only: of the one that has most rows which may be wrong."""
    n = 600
    flags = {f"f{k:02d}": (rng.random(n) < rng.uniform(0.01, 0.05)) * 1 for k in range(15)}
    may = rng.random(n) < ETA
    best = max(flags, key=lambda name: may[flags[name] == 1].mean() if flags[name].any() else 0.0)
    x = np.round(rng.uniform(10, 500, n), 1)
    return {"x": x, **flags, "y": np.round(3 * x + 7 * (may & (flags[best] == 1)), 2)}


CASES: dict[str, Callable[[np.random.Generator], Columns]] = {
    one.__name__: one for one in (interval, hinge, levels, small, adversary)
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was said of a table."""

    case: str
    false: bool  # the rule is off the truth in a row
    confirmed: bool
    grown: bool  # its terms were chosen by labels


def attempt(task: tuple[str, int], nominal: float, careful: bool) -> Outcome:
    """Draw a table, and ask what rule it has."""
    case, seed = task
    columns = CASES[case](np.random.default_rng([seed, *map(ord, case)]))
    truth = 3 * columns["x"]
    if case == "adversary":
        rules = [one for one in scan_table(columns, wrong_at_most=ETA).identities if one.formula.target == "y"]
        false = [one for one in rules if np.abs(one.implied - truth).max() > 0.02]
        return Outcome(case, bool(false), any(one.is_certain for one in false or rules), bool(rules))
    request = Request("y", wrong_at_most=ETA, budget=600.0)
    options = options_of(request)
    options = replace(options, assumption=replace(options.assumption, confidence=1 - nominal))
    answer = find_rule(
        prepare(table_of(columns), request).question, options if careful else replace(options, settings=EAGER)
    )
    return Outcome(case, _is_off(answer, truth), answer.verdict >= Verdict.CONFIRMED, _is_grown(answer))


def _is_off(answer: Answer, truth: np.ndarray) -> bool:
    coef = answer.recovery.coef[:, 0]
    values = answer.X[:] @ coef[: answer.X.shape[1]] + coef[answer.X.shape[1] :].sum()
    return bool(np.abs(answer.link(values) - truth).max() > 0.02)


def _is_grown(answer: Answer) -> bool:
    return answer.recovery.certificates[0].n_seen is not None


def run(tasks: Sequence[tuple[str, int]], processes: int, **given: Any) -> Iterator[Outcome]:
    """Yield what was said of each table."""
    if processes <= 1:
        yield from map(partial(attempt, **given), tasks)
        return
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(partial(attempt, **given), tasks)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases, print the counts, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--tables", type=int, default=100, help="of each case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--nominal", type=float, default=0.05, help="1 - confidence; scan has 0.001")
    parser.add_argument("--careful", action="store_true", help="the settings of the product")
    given = parser.parse_args(arguments)
    failed = False
    for case in given.cases.split(","):
        tasks = [(case, 100_000 * given.seed + k) for k in range(given.tables)]
        outcomes = list(run(tasks, given.processes, nominal=given.nominal, careful=given.careful))
        false = sum(one.false and one.confirmed for one in outcomes)
        nominal = {"small": 0.0, "adversary": 0.001}.get(case, given.nominal)
        most = int(binom.ppf(0.999, len(outcomes), nominal))
        failed |= false > most
        counts = [sum(getattr(one, what) for one in outcomes) for what in ("grown", "false", "confirmed")]
        print(
            f"{case:<10} {len(outcomes)} tables: {counts[0]} rules with grown terms, {counts[1]} false, "
            f"{counts[2]} CONFIRMED; {false} false and CONFIRMED: {false / len(outcomes):.4f} "
            f"(nominal {nominal:g}, at most {most})",
            flush=True,
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
