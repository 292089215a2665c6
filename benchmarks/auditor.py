"""How massart does on whole files as people have them, asked for nothing in particular.

    python benchmarks/auditor.py [--set auditor|everyday|blind|trades|office] [--seed S] [--only 03,cap] [--jobs J]
                                 [--engine FOLDER]

Each table of a set is written to a file, read and fitted with the options that are the
default, as ``massart fit FILE --target T [--id I]``, and scored by rows that are wrong and known:

- *found*: a rule is accepted, at least 99 % of the rows that it calls wrong are wrong, and at least 90 % of those that
  are wrong are called so. A row that is off by a last place counts as called, but accuses nobody.
- *harmful*: the exit status is 0, and less than 97 % of the rows that it calls wrong are wrong.
- *false*: PROVEN or CONFIRMED, while the rule is off by more than a last place in more than one row in 200. (Rows off
  by a last place are counted apart, and a claim is up to what rounding leaves: 0.4392525 for 0.47 / 1.07.)
- *form*: of a rule that is found, whether it is the form of its author; see `forms`.

``--engine`` is the folder of another source tree (a git worktree of an older commit), so that both are run on the same
tables. ``--json`` keeps the results. Seconds are of the processor, from the open file to the judged rows.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

# Sets the number of BLAS threads, so it comes before anything that loads numpy.
import harness  # noqa: F401  # isort: skip

import numpy as np

import forms
import planted
from journal import watch

SETS = {
    "auditor": "auditor_tables",
    "everyday": "everyday_tables",
    "blind": "blind_tables",
    "trades": "trade_tables",
    "office": "office_tables",
    "street": "street_tables",
}
"""The sets of tables, and the modules that make them."""
PRECISION, RECALL, HARMFUL = 0.99, 0.9, 0.97
MOST_OFF = 0.005
EXIT_0 = ("PROVEN", "CONFIRMED", "MAJORITY")
CERTAIN = ("PROVEN", "CONFIRMED")


@dataclass(frozen=True, slots=True)
class Record:
    """How one table went."""

    name: str
    seed: int
    n: int
    wrong: int
    verdict: str
    status: int
    precision: float
    recall: float
    accused: int
    missed: int
    found: bool
    harmful: bool
    form: bool
    false: bool
    numbers: int
    terms: int
    seconds: float
    formula: str
    error: str = ""


def tables_of(name: str) -> Mapping[str, planted.Make]:
    """Return a set of tables."""
    import importlib

    tables: Mapping[str, planted.Make] = importlib.import_module(SETS[name]).TABLES
    return tables


def attempt(task: tuple[str, str, int]) -> Record:
    """Make a table, fit its file, and score the answer."""
    which, name, seed = task
    table = planted.plant(name, tables_of(which)[name], seed)
    facts = name, seed, len(table.labels), int(table.wrong.sum())
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = table.write(Path(folder))
        import massart.audit
        import massart.tables

        massart.tables.read_table(path)  # what is imported late does not count
        start = time.process_time()
        try:
            audit = massart.audit.audit_table(path, table.made.target, id=table.made.id)
            _ = audit.wrong, audit.implied
        except Exception as error:
            seconds = time.process_time() - start
            text = f"{type(error).__name__}: {error}"[:300]
            n_wrong = facts[3]
            return Record(*facts, "ERROR", 2, 1.0, 0.0, 0, n_wrong, False, False, False, False, 0, 0, seconds, "", text)
        return score(table, facts, audit, time.process_time() - start)


def score(table: planted.Planted, facts: tuple[str, int, int, int], audit: Any, seconds: float) -> Record:
    """Compare an audit with what is known."""
    verdict, n = audit.certificate.verdict.name, len(table.labels)
    kept = np.asarray(audit.design.kept)
    own = kept < n  # a line of totals is no row of the table
    accused, called = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    accused[kept[own]] = np.asarray(audit.wrong)[own]
    called[kept[own]] = (np.asarray(audit.wrong) | np.asarray(audit.last_place))[own]
    wrong = table.wrong
    precision = float((accused & wrong).sum() / accused.sum()) if accused.any() else 1.0
    recall = float((called & wrong).sum() / wrong.sum()) if wrong.any() else 1.0
    is_rule = bool(audit.is_rule) and verdict not in ("NOISY", "NONE")
    found = is_rule and precision >= PRECISION and recall >= RECALL
    status = 0 if verdict in EXIT_0 else 1
    text = str(audit.formula)
    read = read_columns(audit)
    is_authors = found and forms.is_authors(table.made.form, text, read)
    off = _is_off(table, np.asarray(audit.implied, dtype=float)[own], kept[own])
    return Record(
        *facts,
        verdict,
        status,
        round(precision, 4),
        round(recall, 4),
        int((accused & ~wrong).sum()),
        int((wrong & ~called).sum()),
        found,
        status == 0 and precision < HARMFUL,
        is_authors,
        verdict in CERTAIN and bool(off.mean() > MOST_OFF),
        len(forms.numbers_of(text, list(table.frame))),
        sum(bool(term.coef) for term in audit.formula.all_terms),
        round(seconds, 3),
        text[:2000],
    )


def _is_off(table: planted.Planted, implied: planted.FloatArray, rows: Any) -> planted.BoolArray:
    """Mark the rows whose implied value is not the right one, nor off by one unit of the last place."""
    made, unit = table.made, 10.0**-table.made.places
    off = np.abs(implied - table.clean[rows]) > (0.1 if made.rounding == "none" else 1.1) * unit
    if made.given is not None:  # rows that follow another rule throughout may be read in two ways
        off &= ~np.isfinite(made.given[rows])
    return np.asarray(off, dtype=np.bool_)


def read_columns(audit: Any) -> list[str]:
    """Return the columns that a rule reads."""
    names = [name for term in audit.formula.terms if term.coef and term.term for name in term.term.columns()]
    return list(dict.fromkeys(names))


def run(tasks: Sequence[tuple[str, str, int]], jobs: int) -> Iterable[Record]:
    """Yield records in the order of the tasks."""
    if jobs <= 1:
        yield from map(attempt, tasks)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=watch) as pool:
        yield from pool.map(attempt, tasks)


def line(record: Record) -> str:
    """Return one line on a table."""
    marks = "found" if record.found else "HARMFUL" if record.harmful else "missed"
    form = "form" if record.form else "-"
    head = f"{record.name:<34}{record.n:>6} {record.wrong / record.n:4.0%} {record.verdict:<10}{record.status} "
    mark_false = "FALSE " if record.false else ""
    tail = f"{mark_false}{record.precision:6.3f} {record.recall:6.3f} {record.seconds:6.2f} s {record.numbers:>3} "
    return f"{head}{tail}{marks:<8}{form:<5}{record.error or record.formula[:150]}"


def summary(records: Sequence[Record]) -> str:
    """Return what all of them come to."""
    n, found = len(records), [record for record in records if record.found]
    seconds = [record.seconds for record in records]
    lines = [
        f"found {len(found)} of {n}, with exit status 0 {sum(r.found and r.status == 0 for r in records)}",
        f"harmful {sum(r.harmful for r in records)}; false PROVEN or CONFIRMED {sum(r.false for r in records)}",
        f"form of the author {sum(r.form for r in found)} of {len(found)} found",
        f"seconds of the processor: median {statistics.median(seconds):.2f}, worst {max(seconds):.2f}",
    ]
    return "\n".join(lines)


def main() -> None:
    """Run the tables, print a line for each and a summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", default="auditor", choices=SETS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="parts of names, with commas between them")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--engine", type=Path, help="folder of another source tree")
    parser.add_argument("--json", type=Path, help="write the records")
    parser.add_argument("--write", type=Path, help="write the files there instead, and what is wrong in them")
    given = parser.parse_args()
    if given.engine is not None:
        sys.path.insert(0, str((given.engine / "src").resolve()))
    parts = given.only.split(",") if given.only else [""]
    names = [name for name in tables_of(given.set) if any(part in name for part in parts)]
    if given.write:
        _write_all(given.set, names, given.seed, given.write)
        return
    records = []
    for record in run([(given.set, name, given.seed) for name in names], given.jobs):
        records.append(record)
        print(line(record), flush=True)
    print(summary(records))
    if given.json:
        given.json.write_text(json.dumps([asdict(record) for record in records], indent=1) + "\n")


def _write_all(which: str, names: Sequence[str], seed: int, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        table = planted.plant(name, tables_of(which)[name], seed)
        path = table.write(folder)
        truth = [f"# {table.made.target} = {table.made.form.terms}", "right,error"]
        truth += [f"{right:.10g},{kind}" for right, kind in zip(table.clean, table.kinds, strict=True)]
        path.with_suffix(".truth").write_text("\n".join(truth) + "\n")


if __name__ == "__main__":
    main()
