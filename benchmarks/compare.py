"""massart beside other libraries, over a grid of tables whose truth is known: ``compare.py --seed 7``.

A run that was stopped goes on where it was. Peers that are not installed are named and skipped: those of Python come
with ``pip install -e '.[bench]'``, those of R (robustbase, quantreg, MASS) with R.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from comparison import running
from massart.rows import Progress


def main() -> None:
    """Run the comparison that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("comparison-results"), help="folder for numbers and page")
    parser.add_argument("--seed", type=int, default=0, help="seed of all random numbers")
    parser.add_argument("--small", action="store_true", help="a few cells and methods, which take seconds")
    parser.add_argument("--only", action="append", metavar="CELL", default=[], help="cells whose names begin so")
    parser.add_argument("--tables", type=int, help="largest number of tables of a cell")
    options = parser.parse_args()
    for line in running.left_out():
        print(f"skipped: {line}", file=sys.stderr)
    options.out.mkdir(parents=True, exist_ok=True)
    running.bench(
        running.choose(options.only, options.small),
        options.out,
        seed=options.seed,
        small=options.small,
        most_tables=options.tables,
        command=" ".join(["python benchmarks/compare.py", *sys.argv[1:]]),
        callback=show,
    )
    print(options.out / "bench.html")


def show(progress: Progress) -> None:
    """Print how far the run is."""
    print(f"\r{progress.task}: {progress.step} done", end="", file=sys.stderr)


if __name__ == "__main__":
    main()
