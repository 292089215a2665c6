"""How many known identities of real tables ``massart scan`` finds.

    python benchmarks/scan.py [--json FILE] [TABLE ...]

An identity is *shown* if a rule of the scan is the identity itself, whatever column it is solved for, and *implied* if
it follows from those that are shown. Both compare gradients at the rows of the table, as the scan itself does.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

import scan_identities
from massart.audit import Audit, scan_table
from massart.audit.scan.identities import Identity, Known, Numbers
from scan_identities import TABLES, RealTable


@dataclass(frozen=True)
class Expected:
    """An identity of the list as the scan sees those that it finds."""

    identity: scan_identities.Identity
    known: list[np.ndarray] = field(default_factory=list)

    def gradients(self, numbers: Numbers) -> np.ndarray:
        """Return the gradient of left - right at each row, in units of how much the columns vary; it is made once."""
        if not self.known:
            scale = np.nanstd(numbers.values, axis=0)
            steps = 1e-6 * scale  # a column that is the same in every row is a constant
            found = np.zeros(numbers.values.shape)
            for j, step in enumerate(np.diag(steps)):
                found[:, j] = self._value(numbers, numbers.values + step) - self._value(numbers, numbers.values - step)
            self.known.append(found)
        return self.known[0]

    def _value(self, numbers: Numbers, values: np.ndarray) -> np.ndarray:
        table = pd.DataFrame(values, columns=list(numbers.names))
        with np.errstate(all="ignore"):
            right = np.asarray(table.eval(self.identity.right, engine="python"), dtype=float)
        return table[self.identity.left].to_numpy() - right


def compare(table: pd.DataFrame, real: RealTable, audits: tuple[Audit, ...]) -> list[str]:
    """Return "shown", "implied" or "missing" for each identity of a table."""
    columns = table.apply(pd.to_numeric, errors="coerce").dropna(axis=1, how="all")
    numbers = Numbers(tuple(columns), columns.to_numpy(dtype=float))
    found = [one for one in map(Identity.of, audits) if set(one.columns) <= set(columns)]  # flags may be texts
    every = Known(numbers)
    for one in found:
        every.add(one)
    answers = []
    for identity in real.identities:
        wanted = Expected(identity)
        shown = False
        for one in found:
            alone = Known(numbers)
            alone.add(one)
            shown = shown or alone.implies(wanted)
        answers.append("shown" if shown else "implied" if every.implies(wanted) else "missing")
    return answers


def main() -> None:
    """Scan the tables, and count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", help="items such as sleep75; all by default")
    parser.add_argument("--json", type=Path, help="write the counts")
    parser.add_argument("--rules", action="store_true", help="print the rules that were found")
    given = parser.parse_args()
    results = []
    for real in TABLES:
        if given.tables and real.item not in given.tables:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            table = real.load()
        start = time.process_time()
        scan = scan_table(table)
        seconds = time.process_time() - start
        audits = (*scan.identities, *scan.copies)
        answers = compare(table, real, audits)
        print(f"{real.name}: {len(table):,} x {table.shape[1]}, {seconds:.1f} s, {len(audits)} rules", flush=True)
        for audit in audits if given.rules else ():
            print(f"    {audit.certificate.verdict.name} {audit.n_wrong} wrong: {audit.formula}"[:200])
        for identity, answer in zip(real.identities, answers, strict=True):
            results.append({"table": real.name, "identity": identity.text, "kind": identity.kind, "answer": answer})
            if answer != "shown":
                print(f"  {answer}: {identity.text}")
    total = pd.DataFrame(results)
    counts = total.groupby(["kind", "answer"]).size().unstack(fill_value=0)
    print(counts.to_string(), f"\nof {len(total)}: {(total.answer != 'missing').sum()} found", file=sys.stdout)
    if given.json:
        given.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
