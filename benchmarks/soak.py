"""``massart check`` at the end of a pipe: memory, as rows come and do not stop coming.

    python benchmarks/soak.py                          # 10^5, 10^6 and 10^7 rows
    python benchmarks/soak.py --rows 1000000 --source file

A writer makes the rows of a bill, as fast as they are read; a third of its totals are wrong, in six ways and in as many
amounts as there are rows. The check keeps what it shows and no more, so that its memory does not depend on the rows:
what a pipe brought goes to a file without a name, and is read from there in blocks.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import BinaryIO

import numpy as np

BLOCK = 50_000
RATES = {"north": 1.5, "south": 2.25, "east": 0.75}
HEADER = b"bill,region,hours,items,total\n"
MEASURED = """
import resource, sys
from massart.cli import run
status = run(sys.argv[2:])
sys.stdout.flush()
usage = resource.getrusage(resource.RUSAGE_SELF)
open(sys.argv[1], "w").write(f"{usage.ru_maxrss / 1024} {usage.ru_utime + usage.ru_stime}")
sys.exit(status)
"""


def write_rows(file: BinaryIO, n_rows: int, seed: int = 0) -> None:
    """Write the rows of a bill: 3 an hour, an amount an item that the region decides, and 1; every third is wrong."""
    file.write(HEADER)
    rng = np.random.default_rng(seed)
    names, amounts = [*RATES], np.array([*RATES.values()])
    for start in range(0, n_rows, BLOCK):
        n = min(BLOCK, n_rows - start)
        region, hours, items = rng.integers(3, size=n), rng.integers(1, 400, n) / 4, rng.integers(0, 30, n)
        total = 3 * hours + amounts[region] * items + 1
        wrong = np.array(
            [10 * total, -total, total + 1, total / 10, total - 3 * hours, rng.integers(1, 10**9, n) / 4]
        )  # a digit too many, a sign, one too many, a digit lost, hours forgotten, anything
        kind = rng.integers(18, size=n)
        total = np.where(kind < 6, wrong[kind % 6, np.arange(n)], total)
        cells = zip(
            range(start, start + n), region.tolist(), hours.tolist(), items.tolist(), total.tolist(), strict=True
        )
        file.write("".join(f"B{k},{names[r]},{h},{i},{y!r}\n" for k, r, h, i, y in cells).encode())


def checked(folder: Path, n_rows: int, source: str, options: tuple[str, ...] = ()) -> dict[str, float]:
    """Check so many rows, through a pipe or in a file, and return what it took."""
    model, usage = folder / "rule.json", folder / "usage"
    if not model.exists():
        with (folder / "some.csv").open("wb") as file:
            write_rows(file, 2_000, seed=1)
        fit = ["fit", str(folder / "some.csv"), "--target", "total", "--terms", "hours, items:region", "--quiet"]
        subprocess.run([sys.executable, "-m", "massart", *fit, "--save", str(model)], check=True, capture_output=True)
    command = [sys.executable, "-c", MEASURED, str(usage), "check", str(model), "--json", "--quiet", *options]
    if source == "file":
        with (folder / "rows.csv").open("wb") as file:
            write_rows(file, n_rows)
        done = subprocess.run([*command, str(folder / "rows.csv")], stdout=subprocess.PIPE, check=False).stdout
        (folder / "rows.csv").unlink()
    else:
        with tempfile.TemporaryFile() as answer:
            with subprocess.Popen([*command, "-"], stdin=subprocess.PIPE, stdout=answer) as process:
                assert process.stdin is not None
                write_rows(process.stdin, n_rows)
            answer.seek(0)
            done = answer.read()
    (table,) = json.loads(done)["tables"]
    memory, seconds = map(float, usage.read_text().split())
    found = {"rows": table["rows"], "wrong": table["rows_wrong"], "kinds": len(table["kinds"])}
    return found | {"MB": memory, "CPU s": seconds}


def main() -> None:
    """Check more and more rows, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="*", default=[10**5, 10**6, 10**7])
    parser.add_argument("--source", choices=("pipe", "file"), default="pipe")
    options = parser.parse_args()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as folder:
        for n_rows in options.rows:
            found = checked(Path(folder), n_rows, options.source)
            print("  ".join(f"{name} {value:,.0f}" for name, value in found.items()), flush=True)


if __name__ == "__main__":
    main()
