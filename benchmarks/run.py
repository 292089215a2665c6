"""Run the benchmarks and print a table of ratios.

``python benchmarks/run.py [--small] [--only NAME] [--csv FILE]``. A missed goal is printed, not punished: clocks vary.
The exit status is 1 when an answer was wrong, and 0 otherwise.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import sys
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import astuple, fields, replace
from pathlib import Path

import harness  # sets the number of BLAS threads, so it comes before anything that loads numpy

_HERE = Path(__file__).resolve().parent
_HEADER = ("benchmark", "case", "ours", "peer", "", "ratio", "wanted", "", "note")


def main(arguments: list[str] | None = None) -> int:
    """Run the chosen benchmarks; return the exit status."""
    names = sorted(path.stem.removeprefix("bench_") for path in _HERE.glob("bench_*.py"))
    parser = argparse.ArgumentParser(description="Benchmarks of massart against its peers, as ratios in one run.")
    parser.add_argument("--small", action="store_true", help="small sizes: minutes become seconds")
    parser.add_argument("--only", metavar="NAME", choices=names, action="append", help=f"one of: {', '.join(names)}")
    parser.add_argument("--csv", metavar="FILE", type=Path, help="also write the rows to FILE")
    chosen = parser.parse_args(arguments)

    rows: list[harness.Row] = []
    wrong = False
    for name in chosen.only or names:
        for row, right in _measure(name, chosen.small):
            wrong = wrong or not right
            rows.append(row)
            print(f"{row.benchmark}: {row.case}: {_verdict(row)}", file=sys.stderr, flush=True)
    print(_table(rows))
    if chosen.csv is not None:
        _write_csv(chosen.csv, rows)
    return 1 if wrong else 0


def _measure(name: str, small: bool) -> Iterator[tuple[harness.Row, bool]]:
    """Yield each row of one benchmark, and whether the answer behind it was right."""
    for case in importlib.import_module(f"bench_{name}").cases(small):
        try:
            measured = case.measure()
            rows = (measured,) if isinstance(measured, harness.Row) else tuple(measured)
            yield from ((replace(row, benchmark=row.benchmark or name), True) for row in rows)
        except harness.MissingPeer as reason:
            yield replace(harness.skipped(case.name, reason), benchmark=name), True
        except harness.Incorrect as reason:
            yield replace(harness.skipped(case.name, ""), benchmark=name, passed=False, note=f"WRONG: {reason}"), False
        except Exception as error:  # one broken case must not hide the others
            traceback.print_exc()
            yield replace(harness.skipped(case.name, ""), benchmark=name, passed=False, note=f"CRASHED: {error}"), False


def _verdict(row: harness.Row) -> str:
    return "-" if row.passed is None else "pass" if row.passed else "MISS"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _table(rows: Iterable[harness.Row]) -> str:
    """Align the rows in columns; numbers to the right."""
    lines = [_HEADER] + [
        (
            row.benchmark,
            row.case,
            _number(row.ours),
            _number(row.peer),
            row.peer_name,
            _number(row.ratio),
            row.wanted,
            _verdict(row),
            row.note,
        )
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    to_the_right = {2, 3, 5}
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column in to_the_right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _write_csv(path: Path, rows: Iterable[harness.Row]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([field.name for field in fields(harness.Row)])
        writer.writerows(astuple(row) for row in rows)


if __name__ == "__main__":
    sys.exit(main())
