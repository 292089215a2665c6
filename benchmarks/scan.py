"""How many known identities of real tables ``massart scan`` finds.

    python benchmarks/scan.py [--json FILE] [TABLE ...]

An identity is *shown* if a rule of the scan is the identity itself, whatever column it is solved for, and *implied* if
it follows from those that are shown. Both compare vectors over the columns and their logarithms: ``y = a / b`` is
``log y - log a + log b``. What is neither a sum nor a product is told by its target and its columns.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from massart.audit import Audit, scan_table
from massart.audit.scan import columns_of
from scan_identities import TABLES, Identity, RealTable

_SAME = 5e-3


def expected_vector(table: pd.DataFrame, identity: Identity) -> np.ndarray | None:
    """Return an identity over columns and logarithms of columns; None where it is neither a sum nor a product."""
    columns = list(table.columns)
    p, left = len(columns), columns.index(identity.left)
    vector = np.zeros(2 * p)
    if identity.kind in ("sum", "copy"):
        units = pd.DataFrame(np.vstack([np.zeros(p), np.eye(p)]), columns=columns)
        values = np.broadcast_to(np.asarray(units.eval(identity.right, engine="python"), dtype=float), p + 1)
        vector[:p] = values[1:] - values[0]
        vector[left] -= 1.0
        return vector
    if identity.kind == "log":
        vector[left], vector[p + columns.index(identity.right[4:-1])] = -1.0, 1.0
        return vector
    ones = pd.DataFrame(np.vstack([np.ones(p), 1 + np.eye(p)]), columns=columns)  # a product is known by its doubles
    values = np.asarray(ones.eval(identity.right, engine="python"), dtype=float)
    exponents = np.log2(values[1:] / values[0])
    if np.abs(exponents - np.round(exponents)).max() > 1e-9:
        return None
    vector[p:] = exponents
    vector[p + left] -= 1.0
    return vector


def found_vector(columns: list[str], audit: Audit) -> np.ndarray:
    """Return a rule that was found in the same way."""
    p = len(columns)
    place = {name: j for j, name in enumerate(columns)}
    vector = np.zeros(2 * p)
    used = [term for term in audit.formula.terms if term.coef and term.term is not None]
    target = place[audit.formula.target]
    if all(term.term.op in ("column", "log") for term in used):
        vector[target] = -1.0
        for term in used:
            inner = term.term if term.term.op == "column" else term.term.parts[0]
            vector[place[inner.parts[0]] + (p if term.term.op == "log" else 0)] = term.coef
        return vector
    vector[p + target] = -1.0
    if len(used) != 1 or used[0].term.op not in ("*", "/", "^"):  # no product: it is none of the identities
        return vector
    ones = dict.fromkeys(columns, 1.0)
    for term in used:
        for name in term.term.columns():
            vector[p + place[name]] = np.log2(_value(term.term, ones | {name: 2.0}) / _value(term.term, ones))
    return vector


def _value(term: object, values: dict[str, float]) -> float:
    from massart.rules.columns import Columns

    return float(term.evaluate(Columns({name: np.array([value]) for name, value in values.items()}))[0])


def _direction(vector: np.ndarray, scale: np.ndarray) -> np.ndarray:
    scaled = vector * scale
    return scaled / max(np.linalg.norm(scaled), 1e-300)


def compare(table: pd.DataFrame, real: RealTable, audits: tuple[Audit, ...]) -> list[str]:
    """Return "shown", "implied" or "missing" for each identity of a table."""
    columns = list(table.columns)
    values = table[columns].apply(pd.to_numeric, errors="coerce").to_numpy(dtype=float)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logs = np.nanstd(np.log(np.where(values > 0, values, np.nan)), axis=0)
        scale = np.concatenate([np.nanstd(values, axis=0), logs])
        scale = np.where(scale > 0, scale, 1.0)
    found = [_direction(found_vector(columns, audit), scale) for audit in audits]
    basis = np.linalg.qr(np.column_stack(found))[0] if found else np.zeros((len(scale), 0))
    varies = np.tile((values != values[0]).any(axis=0), 2)  # a column that is the same in every row is a constant
    answers = []
    for identity in real.identities:
        vector = expected_vector(table, identity)
        if vector is None:  # told by its columns
            read = {name for name in columns if re.search(rf"\b{re.escape(name)}\b", identity.right)}
            same = any(columns_of(audit)[0] == identity.left and set(columns_of(audit)[1:]) == read for audit in audits)
            answers.append("shown" if same else "missing")
            continue
        wanted = _direction(vector * varies, scale)
        if any(min(np.linalg.norm(wanted - own), np.linalg.norm(wanted + own)) <= _SAME for own in found):
            answers.append("shown")
        elif np.linalg.norm(wanted - basis @ (basis.T @ wanted)) <= _SAME:
            answers.append("implied")
        else:
            answers.append("missing")
    return answers


def main() -> None:
    """Scan the tables, and count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", help="items such as sleep75; all by default")
    parser.add_argument("--json", type=Path, help="write the counts")
    given = parser.parse_args()
    results = []
    for real in TABLES:
        if given.tables and real.item not in given.tables:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            table = real.load()
        start = time.perf_counter()
        scan = scan_table(table)
        seconds = time.perf_counter() - start
        audits = (*scan.identities, *scan.copies)
        answers = compare(table, real, audits)
        print(f"{real.name}: {len(table):,} x {table.shape[1]}, {seconds:.1f} s, {len(audits)} rules", flush=True)
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
