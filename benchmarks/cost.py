"""Whether a fit does more work than it did: calls of ten fixed fits beside the recorded ones.

    python benchmarks/cost.py           # exit status 1 if one does 20 % more than benchmarks/cost.json says
    python benchmarks/cost.py --write   # record what they do now

Counted are the functions of massart that are called, and what they call. Unlike a time, this is the same on every
machine, however busy it is; what a library does inside a call does not count. A fit that does much less is named, too,
so that the record is lowered.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd

import massart
from massart import MassartRegressor, MassartReLURegressor, audit_table
from speed import exact_table, gaussian, mixed, rare

RECORD = Path(__file__).with_suffix(".json")
MORE = 1.2
"""Times the recorded calls that a fit may have: a new version of a library changes a few."""

_HOME = str(Path(massart.__file__).parent)


def calls_of(run: Callable[[], Any]) -> int:
    """Return how many functions massart enters or calls while something runs."""
    count = 0

    def watch(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        if event in ("call", "c_call") and frame.f_code.co_filename.startswith(_HOME):
            count += 1

    sys.setprofile(watch)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


def _array(make: Callable[..., Any], n: int, d: int, share: float, **given: Any) -> Callable[[], Any]:
    rng = np.random.default_rng((7, n, d))
    X = make(rng, n, d)
    y, _, _ = exact_table(rng, X, share)

    def run() -> Any:
        fit = MassartRegressor(random_state=0, **given).fit(X, y)
        return fit.certificate_.verdict

    return run


def _relu() -> Any:
    rng = np.random.default_rng(8)
    X = rng.standard_normal((800, 5))
    y = np.maximum(X @ [1.5, -2.0, 0.5, 1.0, 0.25], 0)
    y[rng.permutation(800)[:200]] += 3
    return MassartReLURegressor(random_state=0).fit(X, y).certificate_.verdict


def _noisy() -> Any:
    rng = np.random.default_rng(9)
    X = rng.standard_normal((1000, 6))
    y = X @ np.arange(1.0, 7) + 0.1 * rng.standard_normal(1000)
    y[:250] += 20 * rng.standard_normal(250)
    return MassartRegressor(random_state=0).fit(X, y).certificate_.verdict


def _no_rule() -> Any:
    rng = np.random.default_rng(10)
    return MassartRegressor(random_state=0).fit(mixed(rng, 400, 6), rng.integers(0, 500, 400)).certificate_.verdict


def _ledger(terms: str) -> Callable[[], Any]:
    rng = np.random.default_rng(11)
    n = 1500
    frame = pd.DataFrame(
        {
            "job": np.arange(n),
            "hours": rng.integers(1, 40, n) / 4,
            "items": rng.integers(0, 30, n),
            "km": rng.integers(0, 200, n),
            "service": rng.choice(["repair", "installation", "inspection"], n),
        }
    )
    charge = frame["service"].map({"repair": 35.0, "installation": 95.0, "inspection": 20.0})
    total = 54 * frame["hours"] + 7.9 * frame["items"] + 0.42 * frame["km"] + charge
    if terms == "auto":
        total = frame["hours"] * frame["items"] + 12 * np.maximum(frame["km"] - 50, 0)
    frame["total"] = np.where(rng.random(n) < 0.2, total * 10, total).round(2)
    return lambda: audit_table(frame, target="total", id="job", terms=terms).certificate.verdict


FITS: dict[str, Callable[[], Any]] = {
    "60 x 4, 10 % wrong": _array(gaussian, 60, 4, 0.1),
    "60 x 4, 40 % wrong": _array(gaussian, 60, 4, 0.4),
    "250 x 9, 40 % wrong": _array(mixed, 250, 9, 0.4),
    "600 x 8, a rare column, 30 % wrong": _array(rare, 600, 8, 0.3),
    "4,000 x 15, 25 % wrong": _array(mixed, 4000, 15, 0.25),
    "ReLU, 800 x 5": _relu,
    "noisy, 1,000 x 6": _noisy,
    "no rule, 400 x 6": _no_rule,
    "a ledger of plain columns": _ledger("columns"),
    "a ledger whose rule is grown": _ledger("auto"),
}


def main() -> int:
    """Count the calls of all fits and compare them with the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="record what they do now")
    write = parser.parse_args().write
    known = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    counts, dearer = {}, []
    warnings.simplefilter("ignore")  # a fit that is not certain warns
    for name, run in FITS.items():
        verdict = run()  # modules are loaded, and what is computed once is there
        counts[name] = calls_of(run)
        before = known.get(name, counts[name])
        ratio = counts[name] / before
        print(f"{name:36} {verdict.name:10} {counts[name]:9,} calls, {ratio:5.2f} times the record")
        if ratio > MORE:
            dearer.append(name)
        elif ratio < 1 / MORE:
            print(f"    far fewer than {before:,}: lower the record with --write")
    if write:
        RECORD.write_text(json.dumps(counts, indent=1) + "\n", encoding="utf-8")
        return 0
    if dearer:
        print(f"more work than recorded: {'; '.join(dearer)}. Find out why, or record it with --write and say why.")
    return int(bool(dearer))


if __name__ == "__main__":
    sys.exit(main())
