"""Tables as streams: time and memory of one reading, of readers that could parse the text, and of reading again.

Each reader runs in a process of its own, with all cores, and sums the last column. Readers take turns, so that a busy
machine slows all of them.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from harness import Case, Incorrect, MissingPeer, Row, at_most, count, require

_N_COLUMNS = 21
_ROUNDS = 3
_SINGLE = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
# Not getrusage: a process starts with the peak of the one that started it.
_START = """
import json, sys, time
import pyarrow, pyarrow.compute, pyarrow.csv, pyarrow.parquet
path, total = sys.argv[1], 0.0
types = {f"x{j}": pyarrow.float64() for j in range(21)}
def last(batch):
    return pyarrow.compute.sum(batch.column("x20")).as_py()
"""
_END = """
with open("/proc/self/status") as status:
    peak = next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))
print(json.dumps([time.perf_counter() - start, time.process_time() - cpu, peak, total]))
"""
_CLOCK = "start, cpu = time.perf_counter(), time.process_time()\n"
_OPEN_CSV = """
options = pyarrow.csv.ReadOptions(block_size=1 << 22)
for batch in pyarrow.csv.open_csv(path, options, convert_options=pyarrow.csv.ConvertOptions(column_types=types)):
    total += last(batch)
"""
_POLARS = """
for batch in polars.scan_csv(path, schema=dict.fromkeys(types, polars.Float64)).collect_batches(chunk_size=100_000):
    total += batch["x20"].sum()
"""
_DUCKDB = """
columns = ", ".join(f"'{name}': 'DOUBLE'" for name in types)
connection = duckdb.connect()
connection.execute("set memory_limit = '500MB'")
query = f"select * from read_csv('{path}', header = true, delim = ',', auto_detect = false, columns = {{{columns}}})"
for batch in connection.sql(query).to_arrow_reader(100_000):
    total += last(batch)
"""
_OURS = """
with stream_table(path) as stream:
    stream.schema
    for _ in range({readings}):
        total = sum(last(block) for block in stream.blocks())
"""
_ITER_BATCHES = """
with pyarrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20) as file:
    for batch in file.iter_batches():
        total += last(batch)
"""
_IMPORT_OURS = "from massart.tables import stream_table\n"


def cases(small: bool) -> Iterable[Case]:
    """Yield readings of a CSV file and of a Parquet file."""
    n = 200_000 if small else 2_000_000
    yield Case(f"csv, n = {n:,}", lambda: _csv(n))
    yield Case(f"parquet, n = {n:,}", lambda: _parquet(n))


def _csv(n: int) -> list[Row]:
    readers = {
        "pyarrow.csv.open_csv": _CLOCK + _OPEN_CSV,
        "stream, once": _IMPORT_OURS + _CLOCK + _OURS.format(readings=1),
        "stream, three times": _IMPORT_OURS + _CLOCK + _OURS.format(readings=3),
    }
    for library, body in (("polars", _POLARS), ("duckdb", _DUCKDB)):
        try:
            require(library)
            readers[library] = f"import {library}\n" + _CLOCK + body
        except MissingPeer:
            continue
    wanted = {"stream, once": 0.5, "stream, three times": 1.0, "polars": 1.0, "duckdb": 1.0}
    return _measured("csv", n, readers, wanted)


def _parquet(n: int) -> list[Row]:
    readers = {
        "pyarrow iter_batches": _CLOCK + _ITER_BATCHES,
        "stream, once": _IMPORT_OURS + _CLOCK + _OURS.format(readings=1),
    }
    return _measured("parquet", n, readers, {"stream, once": 1.3})


def _measured(suffix: str, n: int, readers: dict[str, str], wanted: dict[str, float]) -> list[Row]:
    """Return for each reader its time against that of the first one, and its memory."""
    require("pyarrow")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"table.{suffix}"
        right = _write(path, n)
        found: dict[str, list[list[float]]] = {name: [] for name in readers}
        for _ in range(_ROUNDS):
            for name, body in readers.items():
                found[name].append(_run(body, path))
                if abs(found[name][-1][3] - right) > 1e-9 * n:
                    raise Incorrect(f"{name}: the numbers read are not those written")
    middle = {name: [statistics.median(run[k] for run in runs) for k in range(3)] for name, runs in found.items()}
    peer, *others = readers
    rows = []
    for name in others:
        goal, ratio = at_most(wanted[name]), middle[name][0] / middle[peer][0]
        note = f"processor time {middle[name][1] / middle[peer][1]:.2f}x"
        case = f"{suffix}, {name}, n = {n:,}"
        rows.append(Row("", case, middle[name][0], middle[peer][0], peer, ratio, str(goal), goal.met_by(ratio), note))
    return rows + [
        count(f"{suffix}, {name}, memory", found[2], wanted=at_most(400, " MB"), note="peak of the process")
        for name, found in middle.items()
    ]


def _write(path: Path, n: int) -> float:
    from massart.tables import write_columns

    X = np.rint(1e4 * np.random.default_rng(0).normal(size=(n, _N_COLUMNS))) / 1e4
    write_columns(path, {f"x{j}": X[:, j] for j in range(_N_COLUMNS)})
    return float(X[:, -1].sum())


def _run(body: str, path: Path) -> list[float]:
    environment = {name: value for name, value in os.environ.items() if name not in _SINGLE}
    answer = subprocess.run(
        [sys.executable, "-c", _START + body + _END, str(path)],
        check=True,
        capture_output=True,
        text=True,
        env=environment,
    )
    return [float(number) for number in json.loads(answer.stdout.splitlines()[-1])]  # DuckDB draws a bar
