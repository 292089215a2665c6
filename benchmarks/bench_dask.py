"""A fit on a Dask cluster against the same fit in memory: two workers against one process, on the same two cores.

Each side is a process of its own that makes the same rows from the same seeds: in one array, or on the workers, who
hold them. The clocks start when the rows are there. BLAS has one thread in each process: with two, a fit in memory took
longer. The goal is that of 20,000,000 rows: a fit has some ten rounds of messages, which smaller tables notice more.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

from harness import Case, Incorrect, Row, at_most, count, require

_ROWS = """
import hashlib, json, os, sys, time
import numpy as np
n_chunks, chunk = int(sys.argv[1]), 1_000_000 if int(sys.argv[1]) > 4 else 100_000
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
w = np.arange(1, 31) / 4

def make(seed):
    rng = np.random.default_rng(seed)
    rows = np.empty((chunk, 31))
    rng.standard_normal(out=rows)
    wrong = rng.random(chunk) < 0.4
    rows[:, 30] = rows[:, :30] @ w + 7
    rows[wrong, 30] += rng.standard_normal(wrong.sum())
    return rows

def answer(fit, mask_of):
    from massart import MassartRegressor
    seconds = []
    for _ in range(int(sys.argv[2])):
        start = time.perf_counter()
        found = fit(MassartRegressor(random_state=0))
        seconds.append(time.perf_counter() - start)
    mask = np.packbits(mask_of(found.inlier_mask_))
    certificate = found.certificate_
    print(json.dumps({
        "seconds": seconds, "coef": [*found.coef_, found.intercept_], "marks": hashlib.sha256(mask).hexdigest(),
        "certificate": repr(certificate), "verdict": certificate.verdict.name, "noise_rate": found.noise_rate_,
    }))
"""

_MEMORY = (
    _ROWS
    + """
X, y = np.empty((n_chunks * chunk, 30)), np.empty(n_chunks * chunk)
for i in range(n_chunks):
    rows = make(i)
    X[i * chunk : (i + 1) * chunk], y[i * chunk : (i + 1) * chunk] = rows[:, :30], rows[:, 30]
answer(lambda reg: reg.fit(X, y), np.asarray)
"""
)

_DASK = (
    _ROWS
    + """
import dask, dask.array as da, distributed

def columns(rows):
    return np.ascontiguousarray(rows[:, :30])

def labels(rows):
    return np.ascontiguousarray(rows[:, 30])

if __name__ == "__main__":
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        with distributed.Client(cluster) as client:
            made = [dask.delayed(make)(i) for i in range(n_chunks)]
            X = da.concatenate([da.from_delayed(dask.delayed(columns)(rows), (chunk, 30), float) for rows in made])
            y = da.concatenate([da.from_delayed(dask.delayed(labels)(rows), (chunk,), float) for rows in made])
            X, y = client.persist([X, y])
            distributed.wait([X, y])
            answer(lambda reg: reg.fit(X, y), lambda mask: mask.compute())
"""
)


def cases(small: bool) -> Iterable[Case]:
    """Yield the cases: a fit, and what a kernel weighs on its way to the workers."""
    n_chunks = 4 if small else 20
    yield Case("a fit on a local cluster", lambda: _fit(n_chunks, repeats=3))
    yield Case("a kernel on its way", _kernel)


def _fit(n_chunks: int, repeats: int) -> Row:
    require("distributed")
    peer, ours = _child(_MEMORY, n_chunks, repeats), _child(_DASK, n_chunks, repeats)
    for name in ("coef", "marks", "certificate"):
        if ours[name] != peer[name]:
            raise Incorrect(f"{name}: {ours[name]} on the cluster, {peer[name]} in memory")
    if ours["coef"] != [*(j / 4 for j in range(1, 31)), 7.0]:
        raise Incorrect(f"{ours['verdict']}, {ours['coef']}")
    seconds, other = (statistics.median(side["seconds"]) for side in (ours, peer))
    wanted, ratio = at_most(1.5), seconds / other
    n_rows = n_chunks * (1_000_000 if n_chunks > 4 else 100_000)
    note = f"{n_rows:,} x 30, 40 % wrong, {ours['verdict']}; coefficients, marks and certificate identical"
    return Row("", f"fit, {n_rows:,} x 30", seconds, other, "in memory", ratio, str(wanted), wanted.met_by(ratio), note)


def _child(program: str, n_chunks: int, repeats: int) -> dict[str, Any]:
    command = [sys.executable, "-c", program, str(n_chunks), str(repeats)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _kernel() -> Row:
    import pickle

    import numpy as np

    from massart.agreement import Agreement, Level, Mark
    from massart.link import IDENTITY

    kernel = Mark(np.arange(31.0), Agreement(Level.EXACT, relative=1e-14), IDENTITY)
    return count("a pickled kernel, 30 columns", len(pickle.dumps(kernel)) / 1000, wanted=at_most(100, " kB"))
