"""Count the rules that massart claims in tables that have none.

    python benchmarks/no_rule.py [--families a,b*] [--tables N] [--seed S] [--journal FILE] [--engine FOLDER] [--small]

Each table of `ruleless_tables` goes through `massart.audit_table` with the options that are the default. A rule is
*accepted* if it is the answer: PROVEN, CONFIRMED, MAJORITY, or PLURALITY, which calls the rows that do not follow it
wrong. NONE and NOISY are right. Fails (exit status 1) if more than one table in 500 is accepted, or any is PROVEN or
CONFIRMED.

Families come by turns, so that a run that `--seconds` or a kill ends has seen all of them; with `--journal` the same
command goes on. ``--engine`` is the folder of another source tree. ``--show FAMILY SEED`` prints one table.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import statistics
import sys
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Sets the number of BLAS threads, so it comes before anything that loads numpy.
import harness  # noqa: F401  # isort: skip

import numpy as np

from journal import Journal, read_records, watch
from ruleless_tables import FAMILIES, Ruleless
from rules import aligned, choose, wilson

CERTAIN = ("PROVEN", "CONFIRMED")
ACCEPTED = (*CERTAIN, "MAJORITY", "PLURALITY")
EXIT_0 = (*CERTAIN, "MAJORITY")
MOST_ACCEPTED = 1 / 500
TABLES = 22  # of each of 23 families: 506
_SEEDS = 10_000


@dataclass(frozen=True, slots=True)
class Record:
    """One line of the journal: a table, and what was said of it."""

    family: str
    seed: int
    n: int
    columns: int
    verdict: str
    agree: int
    wrong: int
    seconds: float
    formula: str = ""
    error: str = ""

    @property
    def accepted(self) -> bool:
        """Whether a rule is the answer."""
        return self.verdict in ACCEPTED


def draw(family: str, seed: int) -> Ruleless:
    """Return a table; the same family and seed give the same one."""
    return FAMILIES[family](np.random.default_rng([seed, zlib.crc32(family.encode())]))


def attempt(task: tuple[str, int]) -> Record:
    """Draw a table, and ask what rule it has; seconds are of the processor."""
    family, seed = task
    table = draw(family, seed)
    facts = family, seed, len(table.columns[table.target]), len(table.columns)
    start = time.process_time()
    try:
        audit = audited(table)
    except Exception as error:  # a crash on one table is a finding, not the end of the run
        seconds = round(time.process_time() - start, 3)
        verdict = "REFUSED" if isinstance(error, ValueError) else "CRASHED"
        return Record(*facts, verdict, 0, 0, seconds, "", f"{type(error).__name__}: {error}"[:300])
    certificate, n_wrong = audit.certificate, int(np.sum(audit.wrong))
    seconds = round(time.process_time() - start, 3)
    n_agree = int(certificate.n_agree)
    return Record(*facts, certificate.verdict.name, n_agree, n_wrong, seconds, str(audit.formula)[:1000])


def audited(table: Ruleless) -> Any:
    """Return what massart says of a table, asked for nothing in particular."""
    import pandas as pd

    import massart

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        audit = massart.audit_table(pd.DataFrame(table.columns), table.target)
        _ = audit.wrong, audit.implied
    return audit


def run(tasks: Iterable[tuple[str, int]], processes: int) -> Iterator[Record]:
    """Yield records in the order of the tasks."""
    if processes <= 1:
        yield from map(attempt, tasks)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=watch) as pool:
        yield from pool.map(attempt, tasks)


def report(records: Sequence[Record]) -> str:
    """Return one line for each family, every rule that was accepted, and what is wanted."""
    lines = [["family", "tables", "accepted", "exit 0", "certain", "verdicts", "median s", "longest s"]]
    for family in [*(name for name in FAMILIES if any(r.family == name for r in records)), "all"]:
        own = [r for r in records if family in (r.family, "all")]
        seconds = [r.seconds for r in own]
        counts = [sum(r.verdict in some for r in own) for some in (ACCEPTED, EXIT_0, CERTAIN)]
        verdicts = ", ".join(f"{count} {name}" for name, count in Counter(r.verdict for r in own).most_common())
        times = f"{statistics.median(seconds):.2f}", f"{max(seconds):.2f}"
        lines.append([family, str(len(own)), *map(str, counts), verdicts, *times])
    accepted = [r for r in records if r.accepted]
    low, high = wilson(len(accepted), len(records))
    lines_of_accepted = [
        f"{r.verdict}: --show {r.family} {r.seed}  {r.agree} of {r.n} rows: {r.formula[:160]}" for r in accepted
    ]
    errors = [f"{r.verdict}: --show {r.family} {r.seed}  {r.error}" for r in records if r.error]
    total = f"accepted {len(accepted)} of {len(records)} ({low:.1%} to {high:.1%}); wanted at most 1 in 500"
    return "\n".join([aligned(lines), "", *lines_of_accepted, *errors, total])


def has_failed(records: Sequence[Record]) -> bool:
    """Return whether too many rules were accepted, or one was called certain."""
    most = max(1, math.floor(MOST_ACCEPTED * len(records)))
    return sum(r.accepted for r in records) > most or any(r.verdict in CERTAIN for r in records)


def show(family: str, seed: int) -> str:
    """Return a table's first rows, and what is said of it."""
    import pandas as pd

    table = draw(family, seed)
    audit = audited(table)
    return f"{pd.DataFrame(table.columns).head(8).to_string()}\n\n{audit.formula}\n{audit.explanation}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is not in the journal yet, print the table, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", metavar="a,b*", help="names or patterns of names")
    parser.add_argument("--tables", metavar="N", type=int, default=TABLES, help="of each family")
    parser.add_argument("--seed", metavar="S", type=int, default=1)
    parser.add_argument("--processes", metavar="K", type=int, default=1)
    parser.add_argument("--seconds", metavar="S", type=float, default=math.inf, help="begin no table after so long")
    parser.add_argument("--journal", metavar="FILE", type=Path, help="keep finished tables, and go on from them")
    parser.add_argument("--engine", metavar="FOLDER", type=Path, help="another source tree")
    parser.add_argument("--small", action="store_true", help="one table of each family, none of them wide")
    parser.add_argument("--show", nargs=2, metavar=("FAMILY", "SEED"), help="print one table")
    given = parser.parse_args(arguments)
    if given.engine is not None:
        sys.path.insert(0, str((given.engine / "src").resolve()))
    if given.show is not None:
        print(show(given.show[0], int(given.show[1])))
        return 0
    names = [name for name in choose(given.families, FAMILIES) if not (given.small and name == "wide")]
    tables = 1 if given.small else given.tables
    tasks = [(name, _SEEDS * given.seed + trial) for trial in range(tables) for name in names]
    done = {(record.family, record.seed): record for record in read_records(given.journal, Record)}
    records = [done[task] for task in tasks if task in done]
    end = time.monotonic() + given.seconds
    left = (task for task in tasks if task not in done and time.monotonic() < end)
    with Journal(given.journal) as journal:
        for record in run(left, given.processes):
            journal.append([record])
            records.append(record)
            if record.accepted or record.error:
                print(
                    f"{record.verdict} {record.family} {record.seed} {record.formula[:120]}{record.error}", flush=True
                )
    print(report(records))
    return int(has_failed(records))


if __name__ == "__main__":
    sys.exit(main())
