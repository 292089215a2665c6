"""``massart fit`` on a file, against pyarrow's plain reading of the same file; and what start-up and pages cost.

Each measurement is a fresh interpreter. Its clock starts when everything is imported: what is compared is the work, not
the start (which has rows of its own).
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from harness import Case, Incorrect, Row, at_most, count, require

# A child's ru_maxrss begins with what its parent had, so the kernel's own mark for this program is read instead.
_PEAK = """
def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
"""

_READ = (
    _PEAK
    + """
import json, sys, time
import pyarrow.csv, pyarrow.parquet
path = sys.argv[1]
start = time.perf_counter()
table = pyarrow.csv.read_csv(path) if path.endswith(".csv") else pyarrow.parquet.read_table(path)
print(json.dumps({"seconds": time.perf_counter() - start, "peak": peak()}))
"""
)

_FIT = (
    _PEAK
    + """
import contextlib, io, json, sys, time
import pyarrow.csv, pyarrow.parquet
import massart.audit
from massart.cli import run
before = peak()
printed = io.StringIO()
start = time.perf_counter()
with contextlib.redirect_stdout(printed):
    status = run(["fit", sys.argv[1], "--target", "y", "--terms", "columns", "--json", *sys.argv[2:]])
seconds = time.perf_counter() - start
found = json.loads(printed.getvalue())
print(json.dumps({"seconds": seconds, "peak": peak(), "before": before, "status": status, "found": found}))
"""
)

_REPORT_LIMIT = 8.0
_LARGE = 1_000_000


def cases(small: bool) -> Iterable[Case]:
    """Yield the cases: files, their outputs, the demo, and help."""
    n_rows = 100_000 if small else 1_000_000
    repeats = 3 if small else 5
    for kind in ("csv", "parquet"):
        yield Case(f"{n_rows:,} x 20 {kind}", lambda kind=kind: _file(kind, n_rows, repeats))
    yield Case(f"{n_rows:,} x 20 with report, audit and fixed table", lambda: _outputs(n_rows))
    yield Case("massart --help", lambda: _help(repeats))
    yield Case("massart demo", _demo)


def make_columns(n_rows: int) -> tuple[dict[str, Any], Any]:
    """Return 20 columns and a target, 30 % of it wrong, and the coefficients behind it."""
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, 20)) * np.exp(rng.standard_normal((n_rows, 1)))
    w = np.arange(1, 21) / 4
    wrong = rng.random(n_rows) < 0.3
    y = np.where(wrong, X @ rng.standard_normal(20), X @ w + 7)
    return {f"x{j}": X[:, j] for j in range(20)} | {"y": y}, w


def _write(folder: Path, kind: str, n_rows: int) -> tuple[Path, Any]:
    pa = require("pyarrow")
    columns, w = make_columns(n_rows)
    table = pa.table(columns)
    path = folder / f"table.{kind}"
    if kind == "csv":
        require("pyarrow.csv").write_csv(table, path)
    else:
        require("pyarrow.parquet").write_table(table, path)
    return path, w


def _child(program: str, *arguments: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, "-c", program, *arguments], check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _file(kind: str, n_rows: int, repeats: int) -> Iterable[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path, w = _write(Path(folder), kind, n_rows)
        _child(_READ, str(path))  # the file is in the system's cache for both sides
        peers, ours = [], []
        for _ in range(repeats):
            peers.append(_child(_READ, str(path)))
            ours.append(_child(_FIT, str(path)))
    _judge(ours[0], w, n_rows)
    seconds, peer = (statistics.median(run["seconds"] for run in side) for side in (ours, peers))
    numeric = n_rows * 21 * 8 / 1024
    peak, before = ours[0]["peak"], ours[0]["before"]
    wanted, ratio, note = at_most(3), seconds / peer, f"{n_rows:,} x 20, 30 % wrong, recovered exactly"
    yield Row("", f"fit {kind}", seconds, peer, "pyarrow reads it", ratio, str(wanted), wanted.met_by(ratio), note)
    yield count(
        f"fit {kind}: peak memory / numeric data",
        peak / numeric,
        wanted=at_most(3 if n_rows >= _LARGE else 20),  # in a small table the libraries weigh more
        note=f"{peak / 1024:.0f} MB in all, {before / 1024:.0f} MB before the file is opened; "
        f"pyarrow's reading peaks at {peers[0]['peak'] / 1024:.0f} MB",
    )


def _judge(run: dict[str, Any], w: Any, n_rows: int) -> None:
    found = run["found"]
    values = [term["value"] for term in found["coefficients"]]
    if run["status"] != 0 or values != [*w.tolist(), 7.0] or found["rows"] != n_rows:
        raise Incorrect(f"status {run['status']}, {found['verdict']}, {found['formula']}")


def _outputs(n_rows: int) -> Iterable[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path, w = _write(Path(folder), "parquet", n_rows)
        report, audit, fixed = (str(Path(folder) / name) for name in ("r.html", "a.csv", "f.parquet"))
        run = _child(_FIT, str(path), "--report", report, "--audit", audit, "--fixed", fixed)
        _judge(run, w, n_rows)
        sizes = [Path(name).stat().st_size / 1e6 for name in (report, audit, fixed)]
    yield count(
        "size of the report", sizes[0], wanted=at_most(_REPORT_LIMIT, " MB"),
        note=f"{n_rows:,} rows; audit {sizes[1]:.0f} MB, fixed table {sizes[2]:.0f} MB, {run['seconds']:.1f} s in all",
    )  # fmt: skip


def _help(repeats: int) -> Row:
    seconds = [_seconds([sys.executable, "-m", "massart", "--help"]) for _ in range(max(repeats, 5))]
    return count("--help", statistics.median(seconds), wanted=at_most(0.5, " s"), note="a fresh interpreter")


def _demo() -> Row:
    with tempfile.TemporaryDirectory() as folder:
        _seconds([sys.executable, "-m", "massart", "demo", "--out", folder])
        # The ledger's rule has a product and a tier: it is found by the default of ``massart fit``.
        fit = _FIT.replace('"y"', '"total"').replace('"columns"', '"auto"')
        run = _child(fit, str(Path(folder) / "massart-ledger.csv"))
    if run["found"]["verdict"] not in ("PROVEN", "CONFIRMED", "MAJORITY"):
        raise Incorrect(run["found"]["formula"])
    return count("fit of the demo's ledger", run["seconds"], wanted=at_most(3, " s"), note=run["found"]["formula"])


def _seconds(command: Sequence[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=os.environ)
    return time.perf_counter() - start
