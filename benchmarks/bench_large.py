"""Files larger than memory: ``massart fit`` against one plain read of the same file, and how its time grows with rows.

    python benchmarks/run.py --only large [--small]
    python benchmarks/bench_large.py --plot docs/growth.svg     # the picture of the deployment page

The full size needs 12 GB of disk in the folder for temporary files (TMPDIR) and some minutes to write them; with less
it is skipped. Each measurement is a fresh interpreter with all cores, whose clock starts when everything is imported;
both sides take turns. ``--max-memory`` is smaller than the table, so that it is read as a stream.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import log
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness import Case, Incorrect, Row, at_most, count, require, skipped

_GROUP = 1_000_000  # rows of a row group, and of the blocks that files are made of
_DISK = 12e9
_MEGABYTE = 1e6
_SINGLE = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
# Linear growth has the exponent 1; the rest is for the clock.
_LINEAR = at_most(1.05, "")

_PROGRAM = """
import contextlib, io, json, sys, time
import pyarrow, pyarrow.csv, pyarrow.parquet
{imports}
path, *more = sys.argv[1:]
found, taken = {{}}, 0.0
start, before = time.perf_counter(), time.process_time()
{body}
seconds, processor = time.perf_counter() - start, time.process_time() - before
with open("/proc/self/status") as status:
    # Not ru_maxrss: a process starts with that of the one that started it.
    peak = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
print(json.dumps({{"seconds": taken or seconds, "processor": processor, "peak": peak, **found}}))
"""
_FIT = _PROGRAM.format(
    imports="import massart.audit, massart.report\nfrom massart.cli import run",
    body="""
printed = io.StringIO()
with contextlib.redirect_stdout(printed):
    status = run(["fit", path, "--target", "y", "--terms", "columns", "--json", *more])
found = {"status": status, "answer": json.loads(printed.getvalue())}
""",
)
_READ_PARQUET = _PROGRAM.format(
    imports="",
    body="""
with pyarrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20) as file:
    found = {"rows": sum(batch.num_rows for batch in file.iter_batches())}
""",
)
_READ_CSV = _PROGRAM.format(
    imports="",
    body="""
with pyarrow.csv.open_csv(path, pyarrow.csv.ReadOptions(block_size=1 << 22)) as file:
    found = {"rows": sum(batch.num_rows for batch in file)}
""",
)
# Only the writing counts: the rows are read from the audit that was written.
_WRITE = _PROGRAM.format(
    imports="",
    body="""
source = pyarrow.parquet.ParquetFile(path)
start = time.perf_counter()
writer = pyarrow.parquet.ParquetWriter(more[0], source.schema_arrow)
taken = time.perf_counter() - start
for group in range(source.num_row_groups):
    table = source.read_row_group(group)
    start = time.perf_counter()
    writer.write_table(table)
    taken += time.perf_counter() - start
start = time.perf_counter()
writer.close()
taken += time.perf_counter() - start
found = {"rows": source.metadata.num_rows}
""",
)


@dataclass(frozen=True, slots=True)
class Size:
    """Rows of the files, ``--max-memory``, and how often all is run; goals for times are those of the full size.

    A fit takes a second or two for the rows that it looks at closely, however many there are.
    """

    parquet: int
    csv: int
    growth: tuple[int, ...]
    max_memory: str
    rounds: int
    is_full: bool


_FULL = Size(50_000_000, 20_000_000, (100_000, 1_000_000, 10_000_000, 50_000_000), "500MB", 3, True)
_SMALL = Size(1_000_000, 400_000, (100_000, 1_000_000), "50MB", 1, False)


def cases(small: bool) -> Iterable[Case]:
    """Yield a Parquet file, a CSV file, growing files, and a small table beside them."""
    size = _SMALL if small else _FULL
    for name, measure in (
        (f"parquet, {size.parquet:,} x 20", partial(_parquet, size)),
        (f"csv, {size.csv:,} x 20", partial(_csv, size)),
        ("growth", partial(_growth_rows, size)),
    ):
        yield Case(name, partial(_with_room, name, small, measure))
    yield Case("1,000 x 10 in memory", _small_table)


def _with_room(name: str, small: bool, measure: Callable[[], Iterable[Row]]) -> Iterable[Row]:
    free = shutil.disk_usage(tempfile.gettempdir()).free
    if not small and free < _DISK:
        return [skipped(name, f"{_DISK / 1e9:.0f} GB of disk are needed in TMPDIR, and {free / 1e9:.1f} GB are free")]
    return measure()


def _parquet(size: Size) -> Iterator[Row]:
    n = size.parquet
    with tempfile.TemporaryDirectory() as folder, _file("parquet", n) as path:
        audit, copy = str(Path(folder) / "audit.parquet"), str(Path(folder) / "copy.parquet")
        limit = ("--max-memory", size.max_memory)
        programs = {
            "read": (_READ_PARQUET, str(path)),
            "fit": (_FIT, str(path), *limit),
            "audit": (_FIT, str(path), *limit, "--audit", audit),
            "write": (_WRITE, audit, copy),
        }
        found = _in_turn(programs, size.rounds)
    for name in ("fit", "audit"):
        _judge(found[name], n)
    wrong = found["fit"][0]["answer"]["rows_wrong"]
    if found["write"][0]["rows"] != wrong:
        raise Incorrect(f"the audit has {found['write'][0]['rows']:,} rows, and {wrong:,} are wrong")
    yield _race(size, f"fit parquet, {n:,} x 20", 3, found["fit"], found["read"], "pyarrow reads it once")
    yield _memory("fit parquet: peak memory", found["fit"], found["read"])
    # Both sides of a difference are of the same round: then a load that comes and goes disturbs it less.
    pairs = zip(found["audit"], found["fit"], strict=True)
    adds = statistics.median(one["seconds"] - other["seconds"] for one, other in pairs)
    case, peer = f"an audit of {wrong:,} wrong rows adds", "pyarrow writes the same rows"
    yield _row(size, case, 1.2, adds, _seconds(found["write"]), peer, _spread(found["audit"], found["fit"]))
    yield _memory("fit parquet with audit: peak memory", found["audit"], found["write"])


def _csv(size: Size) -> Iterator[Row]:
    n = size.csv
    with tempfile.TemporaryDirectory() as folder, _file("csv", n) as path:
        report = str(Path(folder) / "report.html")
        fit = (_FIT, str(path), "--max-memory", size.max_memory, "--report", report)
        found = _in_turn({"read": (_READ_CSV, str(path)), "fit": fit}, size.rounds)
    _judge(found["fit"], n)
    yield _race(size, f"fit csv with report, {n:,} x 20", 1, found["fit"], found["read"], "pyarrow.csv.open_csv")
    yield _memory("fit csv with report: peak memory", found["fit"], found["read"])


def _small_table() -> Row:
    from massart import MassartRegressor

    rng = np.random.default_rng(0)
    X = rng.standard_normal((1_000, 10))
    y = np.where(rng.random(1_000) < 0.3, rng.standard_normal(1_000), X @ np.arange(1, 11) / 4 + 7)
    times = []
    for _ in range(7):
        start = time.perf_counter()
        found = MassartRegressor(random_state=0).fit(X, y)
        times.append(time.perf_counter() - start)
    if found.coef_.tolist() != [(j + 1) / 4 for j in range(10)] or found.intercept_ != 7:
        raise Incorrect(f"{found.coef_}, {found.intercept_}")
    return Row("", "fit 1,000 x 10 in memory", statistics.median(times), None, "", None, "", None, "for information")


# --- growth ---


@dataclass(frozen=True, slots=True)
class Point:
    """Seconds and bytes of a fit, and seconds of one read, of so many rows.

    Seconds of the processor, of all cores together, tell more than the clock where others work, too.
    """

    n_rows: int
    fit: float
    read: float
    processor: float
    peak: float


def growth(size: Size) -> Iterator[Point]:
    """Measure the fit and one read of Parquet files of growing length."""
    for n in size.growth:
        with _file("parquet", n) as path:
            fit = (_FIT, str(path), "--max-memory", size.max_memory)
            found = _in_turn({"read": (_READ_PARQUET, str(path)), "fit": fit}, size.rounds)
        _judge(found["fit"], n)
        processor = statistics.median(run["processor"] for run in found["fit"])
        yield Point(n, _seconds(found["fit"]), _seconds(found["read"]), processor, _peak(found["fit"]))


def _growth_rows(size: Size) -> Iterator[Row]:
    points = [*growth(size)]
    for before, after in pairwise(points):
        exponent = log(after.fit / before.fit) / log(after.n_rows / before.n_rows)
        note = f"{before.fit:.2f} s to {after.fit:.2f} s"
        case = f"growth, {before.n_rows:,} to {after.n_rows:,} rows: exponent"
        yield count(case, exponent, wanted=_LINEAR, note=note)


def plot(points: list[Point], path: Path) -> None:
    """Draw seconds and memory over rows."""
    matplotlib = require("matplotlib")
    plt = require("matplotlib.pyplot")
    # A fixed salt and no date: the same numbers write the same bytes.
    matplotlib.rcParams.update({"svg.hashsalt": "massart", "font.size": 10})
    rows = [point.n_rows for point in points]
    figure, (times, memory) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    times.loglog(rows, [point.fit for point in points], "o-", color="#0969da", label="massart fit")
    times.loglog(rows, [point.read for point in points], "o--", color="#57606a", label="pyarrow reads the file once")
    last = points[-1]
    times.loglog(rows, [last.fit * n / last.n_rows for n in rows], ":", color="#cf5a00", label="in proportion to rows")
    times.set(xlabel="rows", ylabel="seconds")
    times.legend(frameon=False)
    memory.semilogx(rows, [point.peak / 1e9 for point in points], "o-", color="#0969da", label="massart fit")
    sizes = np.geomspace(rows[0], rows[-1], 100)
    memory.semilogx(sizes, sizes * 21 * 8 / 1e9, ":", color="#cf5a00", label="the numbers of the table")
    memory.set(xlabel="rows", ylabel="GB in memory at most", ylim=(0, 1))
    memory.legend(frameon=False)
    for axes in (times, memory):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


# --- files ---


@contextmanager
def _file(kind: str, n: int) -> Iterator[Path]:
    """Give a file of n rows: one that is there, or one that is made, and removed afterwards."""
    name = f"{kind}{n // 1_000_000}m.{kind}"
    there = os.environ.get("MASSART_LARGE_FILES")
    if n >= _GROUP and there and (Path(there) / name).exists():
        yield Path(there) / name
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"table.{kind}"
        _write(path, kind, n)
        yield path


def _write(path: Path, kind: str, n: int) -> None:
    pa = require("pyarrow")
    names = [*(f"x{j}" for j in range(20)), "y"]
    schema = pa.schema([(name, pa.float64()) for name in names])
    opened = require("pyarrow.csv").CSVWriter if kind == "csv" else require("pyarrow.parquet").ParquetWriter
    options = {} if kind == "csv" else {"use_dictionary": False}
    with opened(path, schema, **options) as writer:
        for start in range(0, n, _GROUP):
            columns = _columns(start, min(_GROUP, n - start), 4 if kind == "csv" else None)
            writer.write_table(pa.table(columns, schema=schema))


def _columns(seed: int, n: int, decimals: int | None) -> list[NDArray[np.float64]]:
    """Return columns and target; two of five labels are wrong."""
    rng = np.random.default_rng([7, seed])
    X = rng.standard_normal((n, 20))
    if decimals is not None:
        X = np.round(X, decimals)
    y = X @ (np.arange(1, 21) / 4) + 7
    wrong = rng.random(n) < 0.4
    y[wrong] = 10 * rng.standard_normal(np.count_nonzero(wrong))
    return [*X.T, y if decimals is None else np.round(y, decimals + 2)]


# --- runs ---


def _in_turn(programs: dict[str, tuple[str, ...]], rounds: int) -> dict[str, list[dict[str, Any]]]:
    """Run each program in a process of its own, some times, in turn."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in programs}
    environment = {name: value for name, value in os.environ.items() if name not in _SINGLE}
    for _ in range(rounds):
        for name, program in programs.items():
            done = subprocess.run(
                [sys.executable, "-c", *program], check=True, capture_output=True, text=True, env=environment
            )
            found[name].append(json.loads(done.stdout))
    return found


def _judge(runs: list[dict[str, Any]], n: int) -> None:
    for run in runs:
        answer = run["answer"]
        values = [term["value"] for term in answer["coefficients"]]
        if run["status"] != 0 or values != [(j + 1) / 4 for j in range(20)] + [7.0] or answer["rows"] != n:
            raise Incorrect(f"status {run['status']}, {answer['verdict']}, {answer['formula']}")


def _seconds(runs: list[dict[str, Any]]) -> float:
    return statistics.median(run["seconds"] for run in runs)


def _peak(runs: list[dict[str, Any]]) -> float:
    return max(run["peak"] for run in runs)


def _spread(*sides: list[dict[str, Any]]) -> str:
    return "; ".join(" ".join(f"{run['seconds']:.1f}" for run in runs) + " s" for runs in sides)


def _race(
    size: Size, case: str, bound: float, ours: list[dict[str, Any]], peer: list[dict[str, Any]], peer_name: str
) -> Row:
    return _row(size, case, bound, _seconds(ours), _seconds(peer), peer_name, _spread(ours, peer))


def _row(size: Size, case: str, bound: float, ours: float, peer: float, peer_name: str, note: str) -> Row:
    goal, ratio = at_most(bound), ours / peer
    passed = goal.met_by(ratio) if size.is_full else None
    return Row("", case, ours, peer, peer_name, ratio, str(goal) if size.is_full else "", passed, note)


def _memory(case: str, ours: list[dict[str, Any]], peer: list[dict[str, Any]]) -> Row:
    return count(
        case,
        _peak(ours) / _MEGABYTE,
        wanted=at_most(1000, " MB"),
        note=f"of the process; pyarrow's has {_peak(peer) / _MEGABYTE:.0f} MB",
    )


def main() -> None:
    """Measure the growth, print it, and draw it."""
    parser = argparse.ArgumentParser(description="How the time of a fit grows with the rows of a file.")
    parser.add_argument("--plot", metavar="FILE", type=Path, required=True, help="the picture, .svg or .png")
    parser.add_argument("--small", action="store_true")
    chosen = parser.parse_args()
    points = []
    for point in growth(_SMALL if chosen.small else _FULL):
        points.append(point)
        print(
            f"{point.n_rows:>11,} rows  {point.fit:6.2f} s  {point.processor:6.2f} s of the processor  "
            f"{point.read:6.2f} s one read  {point.peak / 1e6:5.0f} MB",
            flush=True,
        )
    plot(points, chosen.plot)


if __name__ == "__main__":
    main()
