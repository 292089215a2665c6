"""Measure lists of rules: whether all rules of a table are found, and no others.

``python benchmarks/rule_lists.py [--part list|one|none|plain|errors] [--door arrays|command] [--tables N] [--seed S]``

Parts: ``list``: 2 to 4 rules, each with at least 20 % of the rows, and 10 % labels of no rule (several laws); 1,000 to
3,000 rows, 2 to 4 columns and a constant (Gaussian, in cents, or flags and quantities), labels exact or in cents. A
table counts if its rules are found, no others, and every row is given to the rules that it fits. ``one``: one rule and
20 to 60 % labels of no rule. ``none``: no rule at all. ``errors``: one rule and 12 % each of rows off by an amount,
times a factor, and without a term: these are error types, not rules. ``plain``: a plain fit of one rule, with 10 to
30 % of the rows under a second one: is it named, with its rows?

Each through ``recover_list`` (``--door arrays``), or as a CSV file through ``massart fit --rules auto --audit``
(``--door command``). Fails (exit status 1) below 95 % in the parts ``list``, ``errors`` and ``plain``, and at a rule
that was not planted in ``one`` and ``none``.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# Sets the number of BLAS threads, so it comes before anything that loads numpy.
import harness  # isort: skip # noqa: F401

import numpy as np

from massart import recover_list

WANTED, SMALLEST_SHARE, JUNK = 0.95, 0.2, 0.1
PARTS = {"list": 100, "one": 48, "none": 24, "errors": 24, "plain": 24}
LAWS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "uniform": lambda rng, n: rng.uniform(-2, 2, n),
    "cauchy": lambda rng, n: rng.standard_cauchy(n),
    "skewed": lambda rng, n: rng.exponential(1, n) - 0.5,
}


@dataclass(frozen=True)
class Planted:
    """A table whose rules are known; `values` has what each of them gives, in the precision of the labels."""

    X: np.ndarray
    y: np.ndarray
    values: np.ndarray
    what: str

    @property
    def expected(self) -> np.ndarray:
        """For each row the rules that it fits: their numbers, sorted, as text."""
        fits = np.abs(self.values - self.y[:, None]) <= 1e-9 * (1 + np.abs(self.y[:, None]))
        return np.array([" or ".join(str(j) for j in np.flatnonzero(row)) for row in fits])


def columns(rng: np.random.Generator) -> tuple[np.ndarray, str]:
    """Return the columns of a table."""
    n, d = int(rng.integers(1000, 3001)), int(rng.integers(2, 5))
    kind = ("Gaussian", "cents", "flags and quantities")[rng.integers(3)]
    if kind == "Gaussian":
        return rng.standard_normal((n, d)), kind
    X = rng.uniform(0, 100, (n, d)).round(2)
    if kind != "cents":
        X[:, 0] = rng.random(n) < 0.4
        X[:, 1] = rng.integers(1, 21, n)
    return X, kind


def rules(rng: np.random.Generator, d: int, most: int) -> np.ndarray:
    """Return rules, one a row, the constant last: no coefficient is shared by two of them."""
    found = [rng.choice(np.arange(1, 81), most, replace=False) / 4 * rng.choice([-1, 1], most) for _ in range(d)]
    constants = rng.choice(np.arange(-20, 21), most, replace=False).astype(float)
    return np.column_stack([*found, constants])


def planted(rng: np.random.Generator, part: str) -> Planted:
    """Return a table of one of the parts."""
    X, kind = columns(rng)
    n, d = X.shape
    n_rules = {"list": int(rng.integers(2, 5)), "plain": 2, "none": 0}.get(part, 1)
    junk = {"one": rng.uniform(0.2, 0.6), "none": 1.0}.get(part, JUNK)
    if part == "plain":
        second = rng.uniform(0.1, 0.3)
        shares = np.array([1 - junk - second, second])
    else:
        shares = np.full(n_rules, SMALLEST_SHARE)
        shares += rng.dirichlet(np.ones(n_rules)) * (1 - junk - shares.sum()) if n_rules else 0
    known = np.column_stack([X, np.ones(n)]) @ rules(rng, d, max(n_rules, 1)).T
    in_cents = bool(rng.random() < 0.5)
    law = list(LAWS)[rng.integers(len(LAWS))]
    spread = known[:, 0].std() * rng.choice([0.1, 1.0])
    related = part != "none" or bool(rng.random() < 0.5)
    wrong = known[:, 0] * related + spread * LAWS[law](rng, n)
    if part == "errors":
        off, factor = float(rng.integers(20, 60)), float(rng.choice([10.0, 1.19, -1.0]))
        w = known[:, 0]
        last = np.linalg.lstsq(np.column_stack([X, np.ones(n)]), w, rcond=None)[0][d - 1]
        made = np.choose(rng.choice(4, n), [w + off, w * factor, w - last * X[:, d - 1], wrong])
        wrong, shares = made, np.array([0.52])
    which = rng.choice(len(shares) + 1, n, p=[*shares, 1 - shares.sum()])
    y = np.column_stack([known[:, : len(shares)], wrong])[np.arange(n), which]
    known = known[:, :n_rules]
    if in_cents:
        y, known = y.round(2), known.round(2)
    percent = ", ".join(f"{s:.0%}" for s in shares)
    return Planted(X, y, known, f"{n} x {d}, {kind}, {percent}, {law}{', cents' if in_cents else ''}")


def by_arrays(table: Planted) -> tuple[int, np.ndarray]:
    """Return the number of rules that recover_list finds, and the planted rules that each row is given to."""
    found = recover_list(table.X, table.y)
    fits = np.column_stack([rule.fits for rule in found.rules]) if found.rules else np.zeros((len(table.y), 0), bool)
    return fits.shape[1], _renamed(fits, table)


def by_command(table: Planted) -> tuple[int, np.ndarray]:
    """Return the same of the audit that ``massart fit --rules auto`` writes of a CSV file."""
    with tempfile.TemporaryDirectory() as folder:
        rows, printed = commanded(Path(folder), table, "--rules", "auto")
    if rows and "rule" not in rows[0]:  # the fit of one rule
        fits = np.array([row["wrong"].lower() != "true" for row in sorted(rows, key=lambda row: int(row["row"]))])
        n_found = int(bool(rows[0]["implied"]) and "NOISY:" not in printed)  # an estimate is no rule
        return n_found, _renamed(fits[:, None][:, :n_found], table)
    names = sorted({name for row in rows for name in row["rule"].split(" or ") if name != "none"}, key=int)
    fits = np.zeros((len(rows), len(names)), dtype=bool)
    for row in rows:
        for name in row["rule"].split(" or "):
            if name != "none":
                fits[int(row["row"]) - 1, names.index(name)] = True
    return len(names), _renamed(fits, table)


def commanded(folder: Path, table: Planted, *options: str) -> tuple[list[dict[str, str]], str]:
    """Run ``massart fit`` on a table as a file, and return the rows of its audit and what it printed."""
    from massart.cli import run

    source, target = folder / "table.csv", folder / "audit.csv"
    names = [f"c{j}" for j in range(table.X.shape[1])]
    with source.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*names, "y"])
        writer.writerows(np.column_stack([table.X, table.y]).tolist())
    printed, told = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(told):
        run(["fit", str(source), "--target", "y", "--audit", str(target), *options])
    if not target.is_file():
        raise RuntimeError(told.getvalue())
    with target.open(newline="") as file:
        return list(csv.DictReader(file)), printed.getvalue()


def _renamed(fits: np.ndarray, table: Planted) -> np.ndarray:
    """Return the planted rules that each row is given to: a found rule is the planted one with the most common rows."""
    shared = (np.abs(table.values - table.y[:, None]) <= 1e-9 * (1 + np.abs(table.y[:, None]))).T.astype(int) @ fits
    place = shared.argmax(axis=0) if table.values.shape[1] else np.arange(100, 100 + fits.shape[1])
    return np.array([" or ".join(str(j) for j in sorted(place[row])) for row in fits])


def plain(table: Planted) -> tuple[bool, str]:
    """Return whether a plain fit names the second rule, with its rows."""
    with tempfile.TemporaryDirectory() as folder:
        rows, _ = commanded(Path(folder), table)
    first, second = (table.expected == "0"), (table.expected == "1")
    named = np.zeros(len(rows), dtype=bool)
    wrong = np.zeros(len(rows), dtype=bool)
    for row in rows:
        place = int(row["row"]) - 1
        named[place] = row["kind"].startswith("another rule")
        wrong[place] = row["wrong"].lower() == "true"
    good = bool(named.any() and (named == second).mean() > 0.999 and not (wrong & first).any())
    return good, f"{int(named.sum())} of {int(second.sum())} rows named, {int((wrong & first).sum())} right ones wrong"


def main(arguments: list[str] | None = None) -> int:
    """Print what was found; return 1 if that is too little, or too much."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--part", choices=tuple(PARTS), action="append")
    parser.add_argument("--door", choices=("arrays", "command"), action="append")
    parser.add_argument("--tables", type=int, help=f"of each part; by default {PARTS}")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    failed = False
    for part in given.part or PARTS:
        for door in ["command"] if part == "plain" else given.door or ["arrays", "command"]:
            tables, good, start, rows_off, rows = given.tables or PARTS[part], 0, time.process_time(), 0, 0
            for i in range(given.first, given.first + tables):
                table = planted(np.random.default_rng([given.seed, i, *part.encode()]), part)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    if part == "plain":
                        fine, words = plain(table)
                    else:
                        n_found, assigned = (by_arrays if door == "arrays" else by_command)(table)
                        off = int(np.count_nonzero(assigned != table.expected))
                        rows_off, rows = rows_off + off, rows + len(assigned)
                        fine = n_found == table.values.shape[1] and not off
                        words = f"{n_found} rules, {off} rows not as planted"
                        if part in ("one", "none"):
                            fine = n_found <= table.values.shape[1]
                good += fine
                if not fine:
                    print(f"{part} {i} ({door}): {table.what}: {words}", flush=True)
            seconds = (time.process_time() - start) / tables
            of_rows = f", {rows_off:,} of {rows:,} rows not as planted" if rows else ""
            print(f"{part} ({door}): {good} of {tables} tables{of_rows}, {seconds:.1f} s a table", flush=True)
            failed |= good < tables if part in ("one", "none") else good < WANTED * tables
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
