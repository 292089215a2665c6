"""A saved rule on new rows: ``massart check`` on Parquet against reading the same columns with pyarrow.

    python benchmarks/check.py                  # 1,000,000 x 20, all of whose columns the rule uses
    python benchmarks/check.py --rows 100000 --wrong 0.2

Both take turns in one process, so that a busy machine slows both, and the median of the rounds counts; processor time
is told, too. The start of the interpreter, with all imports, is measured by itself, in processes of their own.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from massart.audit import SavedModel, audit_table, check_table

_START = "import massart.cli, massart.cli.check, massart.audit, pyarrow.parquet"


def main() -> None:
    """Write a table, check it, and print the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--wrong", type=float, default=0.002)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path, saved = Path(folder) / "table.parquet", Path(folder) / "model.json"
        model, n_wrong = _write(path, options)
        model.save(saved)

        def check() -> None:
            found = check_table(model, path)
            assert found.audit.n_wrong == n_wrong, "other rows are called wrong than were planted"

        tasks: dict[str, Callable[[], object]] = {
            "pyarrow ParquetFile.read": lambda: pq.ParquetFile(path).read(),
            "pyarrow read_table": lambda: pq.read_table(path),
            "massart check_table": check,
        }
        found = {name: [] for name in tasks}
        for _ in range(options.rounds):
            for name, task in tasks.items():
                found[name].append(_timed(task))
        middle = {name: [statistics.median(kind) for kind in zip(*runs, strict=True)] for name, runs in found.items()}
        peer = middle["pyarrow ParquetFile.read"]
        print(f"{options.rows:,} x {options.columns}, {n_wrong:,} wrong rows, {options.rounds} rounds")
        for name, (wall, cpu) in middle.items():
            ratios = f"{wall / peer[0]:.2f}x, processor {cpu / peer[1]:.2f}x"
            print(f"{name:<26} {wall:.3f} s, processor {cpu:.3f} s: {ratios}")
        command = [sys.executable, "-m", "massart", "check", str(saved), str(path), "--quiet"]
        start = statistics.median(_process([sys.executable, "-c", _START]) for _ in range(5))
        whole = statistics.median(_process(command) for _ in range(5))
        print(f"the command {whole:.3f} s, of which the interpreter and its imports {start:.3f} s")


def _write(path: Path, options: argparse.Namespace) -> tuple[SavedModel, int]:
    """Write a table in hundredths, with its sum in one column; return its rule, and how many rows are wrong."""
    rng = np.random.default_rng(options.seed)
    n, d = options.rows, options.columns - 1
    X = np.round(rng.uniform(0, 1000, (n, d)), 2)
    y = np.round(X @ np.round(rng.uniform(1, 9, d), 1) + 12, 3)
    columns = {f"x{j}": X[:, j] for j in range(d)}
    model = audit_table({**{name: x[:3000] for name, x in columns.items()}, "y": y[:3000]}, "y", terms="columns")
    wrong = rng.random(n) < options.wrong
    y[wrong] *= 10
    pq.write_table(pa.table({**columns, "y": y}), path)
    return model.model(), int(wrong.sum())


def _timed(task: Callable[[], object]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    task()
    return time.perf_counter() - wall, time.process_time() - cpu


def _process(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
