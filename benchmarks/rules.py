"""Count how often massart finds the rule of a table, and all of its wrong rows.

``python benchmarks/rules.py [--small] [--families a,brackets*] [--rates 0,0.4] [--tables N] [--seed S]``

Each table of `rule_families` goes through `massart.audit_table` as it is, a data frame, and what comes back is scored:

- *rule*: what the audit implies is the right target, to half a unit of its last place, on every judged row, right rows
  and wrong ones alike. A value in the middle of two roundings may go either way. Hardly any row may be left unjudged.
- *rows*: the rows called wrong, or off by a last place, are those whose target is not the right one.
- *false*: PROVEN or CONFIRMED, while more than one row in 200 is implied wrongly. Without a rule, any of the two.

With ``--journal`` every finished table is one line of JSON, and the same command goes on after a kill; begin a new one
when massart changes. ``--show FAMILY SEED`` prints one table and what is said of it. ``--no-rule`` takes the tables
without a rule, and ``--big`` times a million rows. ``compare.py`` compares with other libraries.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import math
import multiprocessing
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

# Sets the number of BLAS threads, so it comes before anything that loads numpy.
import harness  # isort: skip

import numpy as np

import rule_families
from journal import Journal, read_records, watch
from rule_families import NO_RULES, RATES, RULES, FloatArray, Table

CERTAIN = ("PROVEN", "CONFIRMED")

GOALS = {0.0: 0.95, 0.1: 0.95, 0.25: 0.95, 0.4: 0.85}
"""Share of tables whose rule and whose wrong rows are found, by the share of wrong values."""

MOST_FALSE = 0.001
MOST_CLAIMED = 0.01
"""Share of tables with a false certain verdict; share of tables without a rule with another verdict than NONE."""

_MOST_OFF = 0.005
_MOST_UNJUDGED = 0.01
_TABLES = 14  # every way of going wrong twice
_SEEDS = 10_000
_BIG = 1_000_000
_SMALL_SECONDS, _SMALL_LIMIT = 60.0, 30.0


@dataclass(frozen=True, slots=True)
class Record:
    """One line of the journal: a table, and how an answer to it scored.

    `off` is the share of the judged rows with a wrong implied value; `missed` and `accused` count wrong rows that were
    not called so, and the contrary.
    """

    family: str
    rate: float
    seed: int
    n: int
    way: str
    verdict: str
    rule: bool
    rows: bool
    off: float
    missed: int
    accused: int
    seconds: float
    formula: str = ""
    error: str = ""

    @property
    def both(self) -> bool:
        """Whether rule and wrong rows were found."""
        return self.rule and self.rows

    @property
    def certain(self) -> bool:
        """Whether the answer was called certain."""
        return self.verdict in CERTAIN

    @property
    def false(self) -> bool:
        """Whether it was called certain and is wrong."""
        return self.certain and (self.family in NO_RULES or self.off > _MOST_OFF)


@dataclass(frozen=True, slots=True)
class Task:
    """A table, and the seconds that massart may take."""

    family: str
    rate: float
    seed: int
    rows: int | None = None
    limit: float = math.inf


# Score.


def right_values(table: Table, implied: FloatArray, kept: Any = slice(None)) -> FloatArray:
    """Mark the judged rows whose implied value is the right target, to half a unit of its last place."""
    ledger = table.ledger
    clean, exact, tied = ledger.clean[kept], ledger.exact[kept], ledger.is_tied[kept]
    half = 0.5 * 10.0**-ledger.places + rule_families.TIE * np.maximum(1, np.abs(exact))
    return (np.abs(implied - clean) <= half) | (tied & (np.abs(implied - exact) <= half))


def score(task: Task, table: Table, audit: Any, seconds: float) -> Record:
    """Compare an audit with the truth."""
    n = len(table.labels)
    kept = np.asarray(audit.design.kept)
    right = right_values(table, _numbers(audit.implied), kept)
    called = np.zeros(n, dtype=np.bool_)
    called[kept] = np.asarray(audit.wrong) | np.asarray(audit.last_place)
    # At a tie the other rounding is no less right, so that it may be called wrong or not.
    either = table.ledger.is_tied & right_values(table, table.labels)
    missed, accused = table.wrong & ~called & ~either, called & ~table.wrong & ~either
    return Record(
        task.family,
        task.rate,
        task.seed,
        n,
        table.way,
        audit.certificate.verdict.name,
        bool(right.all()) and len(kept) >= (1 - _MOST_UNJUDGED) * n,
        not (missed | accused).any(),
        round(float(1 - right.mean()), 5),
        int(missed.sum()),
        int(accused.sum()),
        round(seconds, 4),
        str(audit.formula)[:500],
    )


def _numbers(implied: Any) -> FloatArray:
    """Return implied values as numbers: dates as days since 1970."""
    values = np.asarray(implied)
    if values.dtype.kind in "MOU":
        values = values.astype("datetime64[D]").astype(np.int64)
    return values.astype(np.float64)


def failed(task: Task, table: Table, error: Exception, seconds: float) -> Record:
    """Return the score of a table without an answer."""
    refused = "REFUSED" if isinstance(error, ValueError) else "CRASHED"
    verdict = "TIMEOUT" if isinstance(error, TimeoutError) else refused
    n_wrong = int(table.wrong.sum())
    facts = (task.family, task.rate, task.seed, len(table.labels), table.way, verdict)
    message = f"{type(error).__name__}: {error}"[:300]
    return Record(*facts, False, False, 1.0, n_wrong, 0, round(seconds, 4), "", message)


# Run.


def attempt(task: Task) -> Record:
    """Make a table, hand it to massart, and score the answer."""
    table = rule_families.table(task.family, task.rate, task.seed, task.rows)
    start = time.perf_counter()
    try:
        audit = audited(table, task.limit)
        return score(task, table, audit, time.perf_counter() - start)
    except Exception as error:  # a crash on one table is a finding, not the end of the run
        return failed(task, table, error, time.perf_counter() - start)


def audited(table: Table, limit: float = math.inf) -> Any:
    """Return what massart says of a table, asked for nothing in particular; TimeoutError after so many seconds."""
    import pandas as pd

    import massart

    end = time.monotonic() + limit

    def watch(progress: object) -> None:
        if time.monotonic() > end:
            raise TimeoutError(f"more than {limit:g} s")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        audit = massart.audit_table(pd.DataFrame(table.frame), table.ledger.target, seed=0, callback=watch)
        _ = audit.implied  # some of it is made when it is first asked for
    return audit


def run(tasks: Sequence[Task], processes: int = 1, seconds: float = math.inf) -> Iterator[Record]:
    """Yield records as tables finish; none is begun after so many seconds."""
    end = time.monotonic() + seconds
    waiting = itertools.takewhile(lambda _: time.monotonic() < end, tasks)
    if processes <= 1:
        yield from map(attempt, waiting)
        return
    context = multiprocessing.get_context("spawn")  # fresh interpreters read the number of BLAS threads
    with ProcessPoolExecutor(processes, mp_context=context, initializer=watch) as pool:
        running: set[Future[Record]] = set()
        while True:
            running |= {pool.submit(attempt, task) for task in itertools.islice(waiting, processes - len(running))}
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)


# Report.


def wilson(k: int, n: int, z: float = 1.96) -> tuple[float, float]:
    """Return limits of a share of which k of n were seen, with 95 % confidence (Wilson 1927)."""
    if n == 0:
        return 0.0, 1.0
    share, extra = k / n, z * z / n
    half = z * np.sqrt(share * (1 - share) / n + extra / (4 * n))
    low, high = (share + extra / 2 - half) / (1 + extra), (share + extra / 2 + half) / (1 + extra)
    return max(float(low), 0.0), min(float(high), 1.0)


def _share(k: int, n: int) -> str:
    low, high = wilson(k, n)
    return f"{k} of {n}, {k / max(n, 1):.1%} ({low:.1%} to {high:.1%})"


def _count(records: Iterable[Record], name: str) -> int:
    return sum(bool(getattr(record, name)) for record in records)


def report(records: Sequence[Record]) -> str:
    """Return one line for each family, then shares with limits at each rate, and what is wanted of them."""
    ruled = [record for record in records if record.family in RULES]
    ruleless = [record for record in records if record.family in NO_RULES]
    parts = [part for part in (_ruled(ruled), _ruleless(ruleless)) if part]
    certain = [record for record in records if record.certain]
    false = [record for record in certain if record.false]
    parts.append(
        f"false PROVEN or CONFIRMED: {_share(len(false), len(records))} of the tables, "
        f"{len(false)} of {len(certain)} certain; wanted <= {MOST_FALSE:.1%}"
    )
    parts += [f"FALSE {r.verdict}: --show {r.family} {r.seed} --rates {r.rate:g}  {r.formula}" for r in false]
    return "\n\n".join(parts)


def _ruled(records: Sequence[Record]) -> str:
    if not records:
        return ""
    rates = sorted({record.rate for record in records})
    counted = ("rule", "rows", "certain", "false", "error")
    lines = [["family", *(f"{rate:.0%} wrong" for rate in rates), "tables", *counted, "median s", "longest s"]]
    for family in [*(name for name in RULES if any(record.family == name for record in records)), "all"]:
        theirs = [record for record in records if family in (record.family, "all")]
        cells = []
        for rate in rates:
            chosen = [record for record in theirs if record.rate == rate]
            cells.append(f"{_count(chosen, 'both')}/{len(chosen)}")
        cells += [str(len(theirs)), *(str(_count(theirs, name)) for name in counted)]
        seconds = [record.seconds for record in theirs]
        lines.append([family, *cells, f"{statistics.median(seconds):.2f}", f"{max(seconds):.2f}"])
    totals = ["Columns by rate: tables whose rule and whose wrong rows were found."]
    for rate in rates:
        chosen = [record for record in records if record.rate == rate]
        both, goal = _count(chosen, "both"), GOALS.get(rate)
        wanted = "" if goal is None else f"; wanted >= {goal:.0%}: {'pass' if both >= goal * len(chosen) else 'MISS'}"
        totals.append(f"{rate:.0%} wrong: rule and rows {_share(both, len(chosen))}{wanted}")
        rule, rows = (_share(_count(chosen, name), len(chosen)) for name in ("rule", "rows"))
        totals.append(f"    rule {rule}, rows {rows}")
    return "\n".join([aligned(lines), "", *totals])


def _ruleless(records: Sequence[Record]) -> str:
    if not records:
        return ""
    lines = [["no rule", "tables", "NONE", "certain", "errors", "median s", "longest s"]]
    for family in [*(name for name in NO_RULES if any(record.family == name for record in records)), "all"]:
        theirs = [record for record in records if family in (record.family, "all")]
        none, seconds = sum(record.verdict == "NONE" for record in theirs), [record.seconds for record in theirs]
        cells = [len(theirs), none, _count(theirs, "certain"), _count(theirs, "error")]
        lines.append([family, *map(str, cells), f"{statistics.median(seconds):.2f}", f"{max(seconds):.2f}"])
    met = "pass" if none >= (1 - MOST_CLAIMED) * len(records) else "MISS"
    return f"{aligned(lines)}\n\nNONE: {_share(none, len(records))}; wanted >= {1 - MOST_CLAIMED:.0%}: {met}"


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Return lines of cells as a table, the first column to the left."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def show(task: Task, most: int = 8) -> str:
    """Return one table, its truth, what massart says of it, and the first rows of which it says something false."""
    import pandas as pd

    table = rule_families.table(task.family, task.rate, task.seed, task.rows)
    frame = pd.DataFrame(table.frame)
    parts = [
        f"{task.family}, seed {task.seed}: {len(frame)} rows, {int(table.wrong.sum())} wrong ({table.way})",
        f"truth:   {table.ledger.target} = {table.ledger.truth or 'nothing'}, to {table.ledger.places} places",
    ]
    start = time.perf_counter()
    try:
        audit = audited(table)
    except Exception as error:
        return "\n".join([*parts, f"massart: {type(error).__name__}: {error}", frame.head(most).to_string()])
    found = score(task, table, audit, time.perf_counter() - start)
    parts.append(f"massart: {audit.formula}")
    parts.append(audit.explanation)
    parts.append("  ".join(f"{name}={value}" for name, value in asdict(found).items() if name not in ("formula",)))
    kept = np.asarray(audit.design.kept)
    frame = frame.iloc[kept].assign(
        right=table.ledger.clean[kept],
        implied=np.asarray(audit.implied),
        is_wrong=table.wrong[kept],
        called=np.where(audit.wrong, "wrong", np.where(audit.last_place, "last place", "")),
    )
    off = (
        ~right_values(table, _numbers(audit.implied), kept) | (frame["is_wrong"] != (frame["called"] != "")).to_numpy()
    )
    if not off.any():
        return "\n".join([*parts, "no row is off", frame.head(most).to_string()])
    return "\n".join([*parts, f"{int(off.sum())} rows are off:", frame[off].head(most).to_string()])


def big(n: int, seed: int, repeats: int = 3) -> str:
    """Time ``massart fit`` on a file of n x 10 with a product rule and 30 % wrong, against reading it."""
    import pyarrow as pa
    import pyarrow.csv

    from massart.cli import run as command
    from massart.tables import read_table

    ledger = rule_families.product(np.random.default_rng(seed), n, n_others=5)
    labels = rule_families.spoiled(np.random.default_rng(seed + 1), ledger, 0.3, "mixture")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "orders.csv")
        pyarrow.csv.write_csv(pa.table(Table(ledger, labels, "mixture").frame), path)
        printed = io.StringIO()

        def fit() -> int:
            printed.seek(0)
            printed.truncate()
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
                return command(["fit", str(path), "--target", ledger.target])

        times = harness.alternate(fit, lambda: read_table(path).n_rows, repeats=repeats, seconds=120, warm_up=False)
    ratio = times.ours / times.peer
    return "\n".join(
        [
            printed.getvalue(),
            f"truth: {ledger.target} = {ledger.truth}",
            f"{n:,} x {len(ledger.columns) + 1}: massart fit {times.ours:.2f} s, reading the file {times.peer:.2f} s, "
            f"{ratio:.1f}x; wanted <= 4x: {'pass' if ratio <= 4 else 'MISS'}",
        ]
    )


def choose(pattern: str | None, names: Iterable[str]) -> list[str]:
    """Return the names that a list of names and patterns such as ``brackets*`` means; all by default."""
    every = list(names)
    if pattern is None:
        return every
    wanted = [part.strip() for part in pattern.split(",") if part.strip()]
    unknown = [part for part in wanted if not any(fnmatchcase(name, part) for name in every)]
    if unknown:
        raise SystemExit(f"no family is called {', '.join(unknown)}; there are {', '.join(every)}")
    return [name for name in every if any(fnmatchcase(name, part) for part in wanted)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is not in the journal yet, print the table, and return the exit status."""
    parser = argparse.ArgumentParser(description="How often massart finds the rule of a table and all its wrong rows.")
    parser.add_argument("--small", action="store_true", help="one small table of each family, as CI runs it")
    parser.add_argument("--families", metavar="a,b*", help="names or patterns of names")
    parser.add_argument("--rates", metavar="0,0.4", help="shares of wrong values; 0, 0.1, 0.25, 0.4 by default")
    parser.add_argument("--tables", metavar="N", type=int, help=f"tables of each family and rate; {_TABLES} by default")
    parser.add_argument("--rows", metavar="N", type=int, help="rows of each table; 300 to 3,000 by default")
    parser.add_argument("--seed", metavar="S", type=int, default=0, help="0 is developed on; others are fresh tables")
    parser.add_argument("--processes", metavar="K", type=int, default=1)
    parser.add_argument("--seconds", metavar="S", type=float, help="begin no table after so long; 60 with --small")
    parser.add_argument("--limit", metavar="S", type=float, help="seconds for one table; 30 with --small")
    parser.add_argument("--journal", metavar="FILE", type=Path, help="keep finished tables, and go on from them")
    parser.add_argument("--no-rule", action="store_true", help="tables without a rule")
    parser.add_argument("--big", action="store_true", help="a million rows: the time of massart fit and of reading")
    parser.add_argument("--show", nargs=2, metavar=("FAMILY", "SEED"), help="print one table, at each of the rates")
    options = parser.parse_args(arguments)
    rates = RATES if options.rates is None else tuple(float(rate) for rate in options.rates.split(","))
    if options.big:
        print(big(options.rows or _BIG, options.seed))
        return 0
    if options.show is not None:
        family, seed = options.show
        for rate in rates if family in RULES else (0.0,):
            print(show(Task(family, rate, int(seed), options.rows)), end="\n\n")
        return 0
    tasks = _tasks(options, rates)
    seconds = options.seconds or (_SMALL_SECONDS if options.small else math.inf)
    records = _recorded(tasks, options.processes, options.journal, seconds)
    print(report(records))
    if len(records) < len(tasks):
        print(f"\n{len(tasks) - len(records)} of {len(tasks)} tables were not begun within {seconds:g} s.")
    return 0


def _tasks(options: argparse.Namespace, rates: Sequence[float]) -> list[Task]:
    """Return the tables that are asked for, those of different families by turns."""
    n_tables, rows = (
        options.tables or (1 if options.small else _TABLES),
        options.rows or (400 if options.small else None),
    )
    if options.small and options.rates is None:
        rates = (0.25,)
    every = {**RULES, **NO_RULES} if options.small else NO_RULES if options.no_rule else RULES
    names = choose(options.families, every)
    limit = options.limit or (_SMALL_LIMIT if options.small else math.inf)
    return [
        Task(name, rate, _SEEDS * options.seed + trial, rows, limit)
        for trial in range(n_tables)
        for name in names
        for rate in (rates if name in RULES else (0.0,))
    ]


def _recorded(tasks: Sequence[Task], processes: int, path: Path | None, seconds: float) -> list[Record]:
    """Return the records of the tasks, from the journal where it has them."""
    done = {(record.family, record.rate, record.seed): record for record in read_records(path, Record)}
    records: list[Record] = []
    left: list[Task] = []
    for task in tasks:
        record = done.get((task.family, task.rate, task.seed))
        if record is not None and task.rows in (None, record.n):
            records.append(record)
        else:
            left.append(task)
    with Journal(path) as journal:
        for number, found in enumerate(run(left, processes, seconds), start=len(tasks) - len(left) + 1):
            journal.append([found])
            records.append(found)
            if sys.stderr.isatty():
                print(f"\r{number}/{len(tasks)} {found.family:<30}", end="", file=sys.stderr, flush=True)
    return records


if __name__ == "__main__":
    sys.exit(main())
