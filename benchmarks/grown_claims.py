"""Count false CONFIRMED where labels choose the terms: simulations that broke the first ideas, through the product.

    python benchmarks/grown_claims.py [--cases a,b] [--tables N] [--seed S] [--processes K] [--nominal P,Q] [--careful]
                                      [--journal FILE]

The truth is y = 3 x, or 3 x + 2 w. Every label is wrong with probability `ETA`, independently, which is also what is
assumed (`wrong_at_most`), and a wrong label follows the same wrong rule as the others: 7 more, or a hinge. By chance
most rows are wrong somewhere, and there the search finds a part, or an end, of a rule that does not exist.

- ``interval``, ``hinge``, ``levels``: terms grown on search rows and judged by the others (recipe H), at a confidence
  of 1 - P, with settings so eager that junk is grown (``--careful``: with the settings of the product). Besides what is
  CONFIRMED, the rules are counted that have junk in them: without these the simulation says nothing.
- ``small``: so few rows that all are searched. Nothing that is grown may be confirmed.
- ``adversary``: all rows are searched by ``massart scan``, whose designs pay by a prefix code (recipe C). Somebody who
  sees which rows may be wrong writes the same wrong rule only where the flag holds that has most of these rows.

A rule is *false* if it is off the truth in a row. The search does not depend on the confidence: a table whose rule is
false and CONFIRMED at one P is judged again at the next smaller one. Exit status 1 if more are confirmed than some P
allows, with 99.9 % of chance. 2,000 tables of each case take some 60 minutes of the processor; with ``--journal`` the
same command goes on after a kill.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

# Sets the number of BLAS threads, so it comes before anything that loads numpy.
import harness  # noqa: F401  # isort: skip

import numpy as np
from scipy.stats import binom

from journal import Journal, read_records
from massart import scan_table
from massart.audit.question import ReadSample, Request, options_of, prepare
from massart.rules import FoundRule, find_rule
from massart.rules.find import Settings
from massart.rules.grow import Settings as Growth
from massart.tables import table_of

ETA = 0.4
EAGER = Settings(
    growth=Growth(
        number_bits=2.0, clear=0.5, beam=1, steps=2, tests=3, pairs=60, focus=3, windows=3, tries=2, branches=0
    ),
    more=0.0,
    fewest=1.0,
    part=0.0,
    whole=0,
)
"""Settings with which junk is grown, and little else is looked for: thousands of tables in some minutes."""

SIZES = (200, 400)
"""Rows of a table: the search reads the labels of 120 and of 240, and the others judge."""

Columns = dict[str, Any]


def _table(rng: np.random.Generator, n: int, others: Columns, added: Callable[[Columns], np.ndarray]) -> Columns:
    x, wrong = np.round(rng.uniform(10, 500, n), 1), rng.random(n) < ETA
    return {"x": x, **others, "y": np.round(3 * x + wrong * added(others), 2)}


def interval(rng: np.random.Generator) -> Columns:
    """Wrong labels are 7 too large, beside three columns in which they may crowd somewhere."""
    n = int(rng.choice(SIZES))
    others = {f"z{k}": np.round(rng.uniform(0, 100, n), 2) for k in range(3)}
    return _table(rng, n, others, lambda columns: np.full(n, 7.0))


def hinge(rng: np.random.Generator) -> Columns:
    """Wrong labels follow a hinge, of which the end may have most rows."""
    n = int(rng.choice(SIZES))
    others = {f"z{k}": np.round(rng.uniform(0, 100, n), 2) for k in range(2)}
    return _table(rng, n, others, lambda columns: 2 * np.maximum(0, columns["z0"] - rng.choice([80, 90])))


def levels(rng: np.random.Generator) -> Columns:
    """Wrong labels are 7 too large, beside categories of which some levels may have most of them."""
    n = int(rng.choice(SIZES))
    others = {f"c{k}": rng.choice([f"l{j:02d}" for j in range(12)], n) for k in range(2)}
    return _table(rng, n, others, lambda columns: np.full(n, 7.0))


def small(rng: np.random.Generator) -> Columns:
    """All rows are searched."""
    n = int(rng.integers(60, 150))
    others = {f"z{k}": np.round(rng.uniform(0, 100, n), 2) for k in range(6)}
    return _table(rng, n, others, lambda columns: np.full(n, 7.0))


def adversary(rng: np.random.Generator) -> Columns:
    """Labels are wrong in the rows of one flag only: of the one that has most rows which may be wrong."""
    n = 300
    flags = {f"f{k:02d}": rng.random(n) < rng.uniform(0.02, 0.06) for k in range(5)}
    may = rng.random(n) < ETA
    best = max(flags, key=lambda name: may[flags[name]].mean() if flags[name].any() else 0.0)
    x, w = np.round(rng.uniform(10, 500, n), 1), rng.integers(1, 60, n).astype(float)
    y = np.round(3 * x + 2 * w + 7 * (may & flags[best]), 2)  # a multiple of one column would be a copy of it
    return {"x": x, "w": w, **{name: flag * 1 for name, flag in flags.items()}, "y": y}


CASES: dict[str, Callable[[np.random.Generator], Columns]] = {
    one.__name__: one for one in (interval, hinge, levels, small, adversary)
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was said of a table: a line of the journal."""

    case: str
    seed: int
    false: bool  # the rule is off the truth in a row
    confirmed: bool  # at the largest P
    grown: bool  # its terms were chosen by labels
    false_at: Sequence[float]  # each P at which it is false and CONFIRMED


def attempt(task: tuple[str, int], nominal: Sequence[float], careful: bool) -> Outcome:
    """Draw a table, and ask what rule it has."""
    case, seed = task
    columns = CASES[case](np.random.default_rng([seed, *map(ord, case)]))
    truth = 3 * columns["x"] + 2 * columns.get("w", 0)
    if case == "adversary":
        rules = [one for one in scan_table(columns, wrong_at_most=ETA).identities if one.formula.target == "y"]
        false = [one for one in rules if np.abs(one.implied - truth).max() > 0.02]
        certain = any(one.is_certain for one in false or rules)
        return Outcome(case, seed, bool(false), certain, bool(rules), tuple(nominal) if false and certain else ())
    request = Request("y", wrong_at_most=ETA, budget=600.0)
    question, options = prepare(ReadSample(table_of(columns)), request).question, options_of(request)
    options = options if careful else replace(options, settings=EAGER)
    answers, false_at = [], []
    for p in nominal:
        assumption = replace(options.assumption, confidence=1 - p)
        answers.append(find_rule(question, replace(options, assumption=assumption)))
        if not (answers[-1].verdict.certain and _is_off(answers[-1], truth)):
            break
        false_at.append(p)
    first = answers[0]
    return Outcome(case, seed, _is_off(first, truth), first.verdict.certain, _is_grown(first), tuple(false_at))


def _is_off(answer: FoundRule, truth: np.ndarray) -> bool:
    coef = answer.recovery.coef[:, 0]
    values = answer.X[:] @ coef[: answer.X.shape[1]] + coef[answer.X.shape[1] :].sum()
    return bool(np.abs(answer.link(values) - truth).max() > 0.02)


def _is_grown(answer: FoundRule) -> bool:
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
    parser.add_argument("--nominal", default="0.2,0.05,0.01", help="1 - confidence, the largest first; scan has 0.001")
    parser.add_argument("--journal", metavar="FILE", type=Path, help="keep finished tables, and go on from them")
    parser.add_argument("--careful", action="store_true", help="the settings of the product")
    given = parser.parse_args(arguments)
    failed = False
    asked = sorted(map(float, given.nominal.split(",")), reverse=True)
    known = {(one.case, one.seed): one for one in read_records(given.journal, Outcome)}
    for case in given.cases.split(","):
        tasks = [(case, 100_000 * given.seed + k) for k in range(given.tables)]
        nominal = [0.001] if case == "adversary" else asked
        left = [task for task in tasks if task not in known]
        outcomes = [known[task] for task in tasks if task in known]
        with Journal(given.journal) as journal:
            for outcome in run(left, given.processes, nominal=nominal, careful=given.careful):
                journal.append([outcome])
                outcomes.append(outcome)
        counts = [sum(getattr(one, what) for one in outcomes) for what in ("grown", "false", "confirmed")]
        print(
            f"{case:<10} {len(outcomes)} tables: {counts[0]} rules with grown terms, {counts[1]} false, "
            f"{counts[2]} CONFIRMED"
        )
        for p in nominal:
            false = sum(p in one.false_at for one in outcomes)
            most = 0 if case == "small" else int(binom.ppf(0.999, len(outcomes), p))
            failed |= false > most
            print(f"  false and CONFIRMED at {p:g}: {false} ({false / len(outcomes):.4f}, at most {most})", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
