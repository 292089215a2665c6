"""Count the false claims of massart on tables whose rule is known.

``python benchmarks/claims.py [--small] [--families a,twins*] [--tables N] [--seed S] [--journal FILE] [--processes K]``

Each table of `claim_families` is fitted through massart's public door, and its verdict is judged:

- PROVEN is false if another known formula (the truth, a planted rival or, on small tables, any formula at all) fits as
  many rows and is not the same where either agrees.
- CONFIRMED and MAJORITY are false if the formula differs from the truth on some row by more than a right label may, or
  by more than the certificate's own resolution. Where numbers were rounded, the truth must also fit as many rows.
- Any of them is false where there is no rule.

Rows that the certificate itself leaves undetermined are not held against it. The exit status is 1 if a PROVEN or a
CONFIRMED was false.

With ``--journal`` every finished table is one line of JSON, and the same command goes on after a kill. A journal
belongs to one state of the code: begin a new one when massart changes. ``--report`` prints what a journal holds and
runs nothing.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from itertools import combinations, groupby, islice
from pathlib import Path
from typing import Any

# Sets the number of BLAS threads, so it comes before anything that loads numpy.
import harness  # noqa: F401  # isort: skip

import numpy as np
from numpy.typing import NDArray

import claim_families
from claim_families import EXACT, BoolArray, Family, FloatArray, Table
from journal import Journal, read_records, watch

CLAIMS = ("PROVEN", "CONFIRMED", "MAJORITY")

_BATCH = 20
"""Tables that a worker takes at once where a family has thousands: they last milliseconds."""

_MANY = 1_000

_SHOWN = 3
"""False claims of each family that are printed one by one."""

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What massart said of a table.

    Attributes
    ----------
    verdict : str
        Name of the verdict; REFUSED for a ValueError, CRASHED for any other error.
    values : (n,) array
        What the formula gives.
    agree : (n,) boolean array
        The rows that it calls right.
    coef : (d,) array or None
        Coefficients, where they belong to the columns of the table.
    is_open : (n,) boolean array
        Rows whose value the certificate calls undetermined.
    resolution : (n,) array
        Formulas that differ by at most this on a row count as one, says the certificate.
    left_out : tuple of int
        Columns that the claim leaves out, since they rest on too few rows.
    seconds : float
    error : str
    """

    verdict: str
    values: FloatArray
    agree: BoolArray
    coef: FloatArray | None
    is_open: BoolArray
    resolution: FloatArray | float = 0.0
    left_out: tuple[int, ...] = ()
    seconds: float = 0.0
    error: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """One line of the journal: a table, the verdict on it, and the verdict on that.

    `false` says why the claim is false, and is empty if it is not. `truth_rows` and `claim_rows` are the rows (by
    weight) that each fits; `right_lost` counts right rows that were called wrong and `wrong_missed` the contrary.
    """

    family: str
    seed: int
    trial: int
    n: int
    d: int
    eta: float
    alpha: float | None
    verdict: str
    recovered: bool
    false: str
    truth_rows: float
    claim_rows: float
    right_lost: int
    wrong_missed: int
    seconds: float
    error: str = ""

    @property
    def key(self) -> tuple[str, int, int]:
        """What makes it unique."""
        return self.family, self.seed, self.trial

    @property
    def claimed(self) -> bool:
        """Whether something was claimed."""
        return self.verdict in CLAIMS

    @property
    def misjudged(self) -> bool:
        """Whether a claim came with a right row called wrong or a wrong one called right."""
        return self.claimed and (self.right_lost > 0 or self.wrong_missed > 0)


# Fit.


def fit(table: Table) -> Answer:
    """Hand the table to massart, and take what it says; errors are answers, too."""
    start = time.perf_counter()
    nothing = np.zeros(len(table.y), dtype=np.bool_)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = _audited(table) if table.kind == "table" else _estimated(table)
    except Exception as error:  # a crash on one table is a finding, not the end of the run
        verdict = "REFUSED" if isinstance(error, ValueError) else "CRASHED"
        message = f"{type(error).__name__}: {error}"[:300]
        seconds = time.perf_counter() - start
        return Answer(verdict, np.full(len(table.y), np.nan), nothing, None, nothing, 0.0, (), seconds, message)
    return answer


def _estimated(table: Table) -> Answer:
    from massart import MassartRegressor, MassartReLURegressor

    estimator = MassartReLURegressor if table.kind == "relu" else MassartRegressor
    X = table.X if table.given is None else table.given
    y = table.y if table.labels is None else table.labels
    start = time.perf_counter()
    found = estimator(random_state=0, **table.options).fit(X, y, sample_weight=table.weights)
    seconds = time.perf_counter() - start
    coef = np.asarray(found.coef_, dtype=np.float64)
    wide = (X if isinstance(X, np.ndarray) else table.X).astype(np.longdouble)  # holds integers above 2**53
    values = (wide @ coef.astype(np.longdouble) + float(found.intercept_)).astype(np.float64)
    if table.kind == "relu":
        values = np.maximum(values, 0)
    rows = np.column_stack([table.X, np.ones(len(values))]) if table.options.get("fit_intercept", True) else table.X
    agree = np.asarray(found.inlier_mask_, dtype=np.bool_)
    return _answer(table, found.certificate_, values, agree, coef, rows, seconds)


def _audited(table: Table) -> Answer:
    import pandas as pd

    import massart

    frame = pd.DataFrame(table.given)
    start = time.perf_counter()
    audit = massart.audit_table(frame, **table.options)
    seconds = time.perf_counter() - start
    rows = np.asarray(audit.X[:], dtype=np.float64)  # of the terms of the rule, which may be products
    values = np.asarray(audit.formula.predict(rows), dtype=np.float64)
    if audit.formula.intercept is not None:
        rows = np.column_stack([rows, np.ones(len(rows))])
    return _answer(table, audit.certificate, values, ~np.asarray(audit.wrong, dtype=np.bool_), None, rows, seconds)


def _answer(
    table: Table,
    certificate: Any,
    values: FloatArray,
    agree: BoolArray,
    coef: FloatArray | None,
    rows: FloatArray,
    seconds: float,
) -> Answer:
    """Read the certificate; `rows` are those that its undetermined directions speak of."""
    directions = getattr(certificate, "undetermined", None)
    is_open = np.zeros(len(values), dtype=np.bool_)
    if isinstance(directions, np.ndarray) and directions.ndim == 2 and len(directions) == rows.shape[1]:
        is_open = (np.abs(rows @ directions) > EXACT * np.linalg.norm(rows, axis=1, keepdims=True)).any(axis=1)
    stated = getattr(certificate, "resolution", None)
    resolution = float(stated) if isinstance(stated, int | float) else 2 * _given_tolerance(table)
    agreement = getattr(certificate, "agreement", None)
    if agreement is not None:  # then it is counted in half-widths of agreement
        w = np.linalg.lstsq(rows, values, rcond=None)[0]
        sizes = np.abs(rows) @ np.abs(w) + np.abs(np.asarray(table.y, dtype=np.float64))
        resolution = resolution * agreement.half_widths(sizes, w)
    left_out = tuple(column for column, _ in getattr(certificate, "thin", ()))
    return Answer(certificate.verdict.name, values, agree, coef, is_open, resolution, left_out, seconds)


# Judge.


def judge(table: Table, answer: Answer, *, family: str = "", seed: int = 0, trial: int = 0) -> Record:
    """Say whether the truth was found and whether the claim, if there is one, is false."""
    right, fits = table.right, table.fits(answer.values)
    recovered = table.clean is not None and bool(
        np.all(np.abs(answer.values - table.clean) <= table.half) or (fits >= right).all()
    )
    failed = bool(answer.error)
    return Record(
        family,
        seed,
        trial,
        *table.X.shape,
        table.eta,
        table.alpha,
        answer.verdict,
        recovered and not failed,
        falsity(table, answer),
        _count(table, right),
        _count(table, fits),
        0 if failed else int((right & ~answer.agree).sum()),
        0 if failed or table.clean is None else int((~right & answer.agree).sum()),
        round(answer.seconds, 5),
        answer.error,
    )


def falsity(table: Table, answer: Answer) -> str:
    """Say why the claim is false; an empty text if it is not, or if nothing was claimed."""
    if answer.verdict not in CLAIMS:
        return ""
    if table.clean is None:
        return "there is no rule"
    if answer.verdict == "PROVEN":
        return _refuted(table, answer)
    differs = np.abs(answer.values - table.clean) > np.maximum(table.half, answer.resolution)
    if not (differs & ~answer.is_open).any():
        return ""
    truth, claim = _count(table, table.right), _count(table, table.fits(answer.values))
    if table.rounded and truth < claim:
        return ""
    return f"the truth fits {truth:g} rows, the formula {claim:g}"


def _refuted(table: Table, answer: Answer) -> str:
    """Say which known formula refutes "no other formula fits as many rows"."""
    assert table.clean is not None
    if answer.left_out:  # the claim is about formulas without these columns
        X = table.X.copy()
        X[:, [column for column in answer.left_out if column < X.shape[1]]] = 0
        rivals = tuple(values for values in table.rivals if claim_families.is_formula(X, values))
        clean = table.clean if claim_families.is_formula(X, table.clean) else answer.values
        table = replace(table, X=X, rivals=rivals, clean=clean)
    proven = f"at least as many as the {_count(table, table.fits(answer.values)):g} rows of what was proven"
    for name, values in (("the truth", table.clean), *(("the rival", rival) for rival in table.rivals)):
        if _rivals(table, answer, values[None]).any():
            return f"{name} fits {_count(table, table.fits(values)):g} rows, {proven}"
    if table.exhaustive and _rivals(table, answer, *every_rival(table, answer)).any():
        return f"some formula fits {proven}"
    return ""


def _rivals(table: Table, answer: Answer, values: FloatArray, fits: BoolArray | None = None) -> BoolArray:
    """Mark the formulas, one in each row of `values`, that fit as many rows and are not the same.

    Exact formulas are the same if they agree with the same rows and differ on open rows only; with a tolerance, if they
    differ by at most the resolution on the rows that agree.
    """
    fits = np.abs(table.y - values) <= table.half if fits is None else fits
    weights = np.ones(len(table.y)) if table.weights is None else table.weights
    ours = table.fits(answer.values)
    compared = ours if table.rounded else ours | fits | ~answer.is_open
    apart = np.abs(values - answer.values) > np.maximum(table.half - _given_tolerance(table), answer.resolution)
    other = (apart & compared & (weights > 0)).any(axis=1)
    return np.asarray(other & (fits @ weights >= ours @ weights), dtype=np.bool_)


def _given_tolerance(table: Table) -> float:
    return float(table.options.get("tolerance", 0.0))


def _count(table: Table, rows: BoolArray) -> float:
    return float(rows.sum() if table.weights is None else table.weights[rows].sum())


# Every rival. All numbers are small integers, so that w = numerator / denominator is known exactly.


def every_rival(table: Table, answer: Answer) -> tuple[FloatArray, BoolArray]:
    r"""Return values and agreement, one formula in each row, of formulas among which any rival has its like.

    Each row of the table cuts the space of w by the hyperplanes w.x = y (w.x = y - h and y + h with a tolerance). Rows
    agree on closed sets, so that a formula that fits some rows has a vertex of this arrangement beside it that fits
    them, too; and where the fitting set of a vertex is more than a point, it goes on along an edge.
    """
    X, y = table.X.astype(np.int64), table.y.astype(np.int64)
    h = int(_given_tolerance(table))
    planes = y if h == 0 else np.concatenate([y - h, y + h])
    numerators, denominators = _vertices(np.tile(X, (len(planes) // len(y), 1)), planes)
    if table.kind == "relu" and h == 0 and answer.coef is not None:
        edges = _edges(X, y, numerators, denominators, answer.coef)
        numerators = np.concatenate([numerators, edges[0]])
        denominators = np.concatenate([denominators, edges[1]])
    z = numerators @ X.T
    scale = denominators[:, None]
    if table.kind == "relu":
        z = np.maximum(z, 0)
    values = z / scale
    return values, np.asarray(np.abs(z - scale * y) <= h * scale, dtype=np.bool_)


@cache
def _subsets(n: int, size: int) -> NDArray[np.intp]:
    return np.array(list(combinations(range(n), size)), dtype=np.intp).reshape(-1, size)


def _vertices(X: Integers, y: Integers) -> tuple[Integers, Integers]:
    """Return the solutions of all d equations w.x = y that are independent, by Cramer's rule."""
    d = X.shape[1]
    subsets = _subsets(len(X), d)
    A, b = X[subsets], y[subsets]
    if d == 1:
        adjugate = np.ones((len(A), 1, 1), dtype=np.int64)
    elif d == 2:
        adjugate = np.stack([A[:, 1, ::-1] * [1, -1], A[:, 0, ::-1] * [-1, 1]], axis=1)
    else:
        adjugate = np.stack([np.cross(A[:, (k + 1) % 3], A[:, (k + 2) % 3]) for k in range(3)], axis=1)
    determinant = (A[:, 0] * adjugate[:, 0]).sum(axis=1)
    numerator = (b[:, :, None] * adjugate).sum(axis=1) * np.sign(determinant)[:, None]
    solved = determinant != 0
    return numerator[solved], np.abs(determinant[solved])


def _edges(
    X: Integers, y: Integers, numerators: Integers, denominators: Integers, coef: FloatArray
) -> tuple[Integers, Integers]:
    """Return points between the vertex that was claimed and the next one, on each of its edges, both ways."""
    here = (np.abs(numerators / denominators[:, None] - coef) <= 1e-9 * (1 + np.abs(coef))).all(axis=1)
    if not here.any():
        return numerators[:0], denominators[:0]
    w, q = numerators[here][0], denominators[here][0]
    slack = np.abs(X @ w - q * y)
    v = _normals(X[slack == 0])
    v = np.concatenate([v, -v])
    speed = np.abs(v @ X.T)
    with np.errstate(divide="ignore", invalid="ignore"):
        next_row = np.where((slack > 0) & (speed > 0), slack / speed, np.inf).argmin(axis=1)
    ahead, pace = slack[next_row], speed[np.arange(len(v)), next_row]
    stops = (ahead > 0) & (pace > 0)
    ahead, pace = np.where(stops, ahead, 2 * q), np.where(stops, pace, 1)
    return 2 * pace[:, None] * w + ahead[:, None] * v, 2 * pace * q


def _normals(rows: Integers) -> Integers:
    """Return what is orthogonal to each choice of d - 1 of the rows, where that is one line."""
    d = rows.shape[1]
    if d == 1:
        return np.ones((1, 1), dtype=np.int64)
    chosen = rows[_subsets(len(rows), d - 1)]
    found = chosen[:, 0, ::-1] * [1, -1] if d == 2 else np.cross(chosen[:, 0], chosen[:, 1])
    return found[found.any(axis=1)]


# Run.

Task = tuple[str, int, int]


@cache
def _registry() -> Mapping[str, Family]:
    return {family.name: family for family in claim_families.families()}


def attempt(task: Task) -> Record:
    """Make a table, fit it and judge the answer."""
    name, seed, trial = task
    table = _registry()[name].table(seed, trial)
    return judge(table, fit(table), family=name, seed=seed, trial=trial)


def run(tasks: Sequence[Task], processes: int = 1) -> Iterator[list[Record]]:
    """Yield records as tables finish, a few at a time."""
    if processes <= 1:
        yield from ([attempt(task)] for task in tasks)
        return
    waiting = iter(list(_batches(tasks)))
    context = multiprocessing.get_context("spawn")  # fresh interpreters read the number of BLAS threads
    with ProcessPoolExecutor(processes, mp_context=context, initializer=watch) as pool:
        running: set[Future[list[Record]]] = set()
        while True:
            running |= {pool.submit(_attempts, batch) for batch in islice(waiting, 2 * processes - len(running))}
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)


def _batches(tasks: Iterable[Task]) -> Iterator[list[Task]]:
    batch: list[Task] = []
    for task in tasks:
        batch.append(task)
        if len(batch) >= (_BATCH if _registry()[task[0]].tables >= _MANY else 1):
            yield batch
            batch = []
    if batch:
        yield batch


def _attempts(batch: Sequence[Task]) -> list[Record]:
    return [attempt(task) for task in batch]


# Keep.


def read_journal(path: Path) -> dict[Task, Record]:
    """Return the records of a journal by their tasks."""
    return {record.key: record for record in read_records(path, Record)}


# Report.


def _number_of(test: Callable[[Record], bool]) -> Callable[[Sequence[Record]], str]:
    return lambda records: str(sum(map(test, records)))


def _claims(verdict: str, *, false: bool = False, strong: bool = False) -> Callable[[Sequence[Record]], str]:
    """Count one kind of claim: all, only false ones, only where the truth has more than half of the evidence."""
    return _number_of(
        lambda record: (
            record.verdict == verdict and (not false or record.false != "") and (not strong or is_strong(record))
        )
    )


def is_strong(record: Record) -> bool:
    """Whether more than half of the evidence agrees with the truth in every direction."""
    return record.alpha is not None and record.alpha > 0.5


def _span(name: str) -> Callable[[Sequence[Record]], str]:
    def text(records: Sequence[Record]) -> str:
        values = [getattr(record, name) for record in records]
        low, high = min(values), max(values)
        return f"{low:g}" if low == high else f"{low:.3g}-{high:.3g}"

    return text


def _sum(name: str) -> Callable[[Sequence[Record]], str]:
    """Add up over tables with a claim: without one, no row is called wrong."""
    return lambda records: str(sum(getattr(record, name) for record in records if record.claimed))


COLUMNS: Mapping[str, Callable[[Sequence[Record]], str]] = {
    "n": _span("n"),
    "d": _span("d"),
    "eta": _span("eta"),
    "tables": lambda records: str(len(records)),
    "alpha>1/2": lambda records: f"{sum(map(is_strong, records)) / len(records):.2f}",
    "found": _number_of(lambda record: record.recovered),
    "PROVEN": _claims("PROVEN"),
    "CONFIRMED": _claims("CONFIRMED"),
    "MAJORITY": _claims("MAJORITY"),
    "false P": _claims("PROVEN", false=True),
    "false C": _claims("CONFIRMED", false=True),
    "false M": _claims("MAJORITY", false=True),
    "false M, alpha>1/2": _claims("MAJORITY", false=True, strong=True),
    "misjudged": _number_of(lambda record: record.misjudged),
    "right lost": _sum("right_lost"),
    "wrong missed": _sum("wrong_missed"),
    "errors": _number_of(lambda record: record.error != ""),
    "median s": lambda records: f"{statistics.median(record.seconds for record in records):.3f}",
}
"""What is printed of the records of a family. "misjudged" counts tables: a claim, and some row judged wrongly."""


def report(records: Iterable[Record], chosen: Sequence[Family]) -> str:
    """Return one line for each family, and one for each group."""
    by_family: dict[str, list[Record]] = {}
    for record in records:
        by_family.setdefault(record.family, []).append(record)
    lines = [("", "family", *COLUMNS, "3e6e445", "listed")]
    for family in chosen:
        if family.name in by_family:
            cells = [column(by_family[family.name]) for column in COLUMNS.values()]
            lines.append((family.group, family.name, *cells, family.base, family.listed))
    for group in dict.fromkeys(family.group for family in chosen):
        pooled = [record for f in chosen if f.group == group for record in by_family.get(f.name, ())]
        if pooled:
            lines.append((group, "all", *(column(pooled) for column in COLUMNS.values()), "", ""))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if place < 2 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def choose(pattern: str | None) -> tuple[Family, ...]:
    """Return the families that a list of groups, names and patterns such as ``flags*`` means; all by default."""
    every = tuple(_registry().values())
    if pattern is None:
        return every
    wanted = [part.strip() for part in pattern.split(",") if part.strip()]
    chosen = tuple(
        family for family in every if any(part == family.group or fnmatchcase(family.name, part) for part in wanted)
    )
    unknown = [part for part in wanted if not any(part == f.group or fnmatchcase(f.name, part) for f in every)]
    if unknown:
        raise SystemExit(f"no family is called {', '.join(unknown)}; --list names them all")
    return chosen


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is not in the journal yet, print the table, and return the exit status."""
    parser = argparse.ArgumentParser(description="False claims of massart on tables whose rule is known.")
    parser.add_argument("--small", action="store_true", help="a few small tables: half a minute, as CI runs it")
    parser.add_argument("--families", metavar="a,b,flags*", help="groups, names or patterns of names")
    parser.add_argument("--tables", metavar="N", type=int, help="tables of each family, in place of its own number")
    parser.add_argument("--seed", metavar="S", type=int, default=0, help="0 was developed on; others are fresh tables")
    parser.add_argument("--journal", metavar="FILE", type=Path, help="keep finished tables, and go on from them")
    parser.add_argument("--processes", metavar="K", type=int, default=1)
    parser.add_argument("--list", action="store_true", help="name the families and end")
    parser.add_argument("--report", action="store_true", help="print what the journal holds and run nothing")
    options = parser.parse_args(arguments)
    chosen = choose(options.families)
    if options.list:
        print("\n".join(f"{family.group}  {family.name}  {family.tables} tables" for family in chosen))
        return 0
    if options.report and options.journal is None:
        parser.error("--report needs --journal")
    done = {} if options.journal is None else read_journal(options.journal)
    names = {family.name for family in chosen}
    if options.report:
        records = [record for record in done.values() if record.family in names and record.seed == options.seed]
    else:
        tasks = [
            (family.name, options.seed, trial)
            for family in chosen
            for trial in range(options.tables or (family.small if options.small else family.tables))
            if options.tables is None or not options.small or family.small
        ]
        records = [done[task] for task in tasks if task in done]
        with Journal(options.journal) as journal:
            for finished in run([task for task in tasks if task not in done], options.processes):
                journal.append(finished)
                records += finished
                _show(finished, len(records), len(tasks))
    print(report(records, chosen))
    false = [record for record in records if record.false and record.verdict != "MAJORITY"]
    for name, theirs in groupby(sorted(false, key=lambda record: record.key), key=lambda record: record.family):
        for record in islice(theirs, _SHOWN):
            print(f"FALSE {record.verdict}: {name}, seed {record.seed}, table {record.trial}: {record.false}")
    return int(bool(false))


def _show(finished: Sequence[Record], n_done: int, n_tasks: int) -> None:
    """Say on a terminal how far it is."""
    if sys.stderr.isatty():
        print(f"\r{n_done}/{n_tasks} {finished[-1].family:<50}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
