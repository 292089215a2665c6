"""From a file to numbers: time against Arrow's own reader, and memory against the numbers themselves."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from harness import Case, Incorrect, Row, at_most, count, race, require, skipped

_N_COLUMNS = 20
_LARGE = 1_000_000
# Not getrusage: a process starts with the peak of the one that started it.
_MEMORY = """
import sys
import numpy, pyarrow.csv, pyarrow.parquet, pyarrow.compute
from massart.tables import encode, make_plan, read_table

def peak():
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM"))

before = peak()
table = read_table(sys.argv[1])
design = encode(table, make_plan(table, "total").encoding)
print((peak() - before) / (design.X.nbytes + design.y.nbytes))
"""


def cases(small: bool) -> Iterable[Case]:
    """Yield time and memory of reading a table of floats, as CSV and as Parquet."""
    n = _LARGE // 10 if small else _LARGE
    for suffix in ("csv", "parquet"):
        yield Case(f"{suffix}, n = {n:,}", lambda suffix=suffix: _measure(suffix, n))


def _measure(suffix: str, n: int) -> list[Row]:
    require("pyarrow")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"table.{suffix}"
        X, y = _write(path, n)
        return [_race(path, X, y), _memory(path, n)]


def _write(path: Path, n: int) -> tuple[np.ndarray, np.ndarray]:
    from massart.tables import write_columns

    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, _N_COLUMNS))
    y = X @ np.arange(1.0, _N_COLUMNS + 1)
    write_columns(path, {f"x{j}": X[:, j] for j in range(_N_COLUMNS)} | {"total": y})
    return X, y


def _race(path: Path, X: np.ndarray, y: np.ndarray) -> Row:
    from massart.tables import encode, make_plan, read_table

    def ours():
        table = read_table(path)
        return encode(table, make_plan(table, "total").encoding)

    def judge(design, peer):
        if not (np.array_equal(design.X, X) and np.array_equal(design.y, y)):
            raise Incorrect("the numbers read are not those written")
        return "read, plan and encode against read alone"

    if path.suffix == ".csv":
        peer, name = require("pyarrow.csv").read_csv, "pyarrow.csv"
    else:
        peer, name = require("pyarrow.parquet").read_table, "pyarrow.parquet"
    return race(
        f"{path.suffix[1:]}, time, n = {len(y):,}",
        ours,
        lambda: peer(str(path)),
        peer_name=name,
        wanted=at_most(1.8),
        judge=judge,
        seconds=30.0,
    )


def _memory(path: Path, n: int) -> Row:
    if not Path("/proc/self/status").exists():
        return skipped(f"{path.suffix[1:]}, memory", "only Linux tells the peak of a process")
    answer = subprocess.run(
        [sys.executable, "-c", _MEMORY, str(path)], check=True, capture_output=True, text=True
    ).stdout
    return count(
        f"{path.suffix[1:]}, memory",
        float(answer),
        # At small sizes the blocks that are read at a time weigh more than the numbers.
        wanted=at_most(2.5 if n >= _LARGE else 6, " x the numbers"),
        note="peak of a fresh process above its imports",
    )
