"""A fit on a Dask cluster against the same fit in memory: two workers against one process, on the same two cores.

Each side is a process of its own that makes the same rows from the same seeds: in one array, or on the workers, who
hold them. Then they fit in turn. BLAS has one thread in each process. The goal is that of 20,000,000 rows: a fit has
some rounds of messages, which smaller tables notice more.
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
n_chunks, chunk = int(sys.argv[1]), int(sys.argv[2])
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
w = np.arange(1, 31) / 4

def columns(seed):
    return np.random.default_rng(seed).standard_normal((chunk, 30))

def labels(X, seed):
    rng = np.random.default_rng([seed, 1])
    y = X @ w + 7
    wrong = rng.random(chunk) < 0.4
    y[wrong] += rng.standard_normal(wrong.sum())
    return y

def serve(fit, to_numpy):
    from massart import MassartRegressor
    print("ready", flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        found = fit(MassartRegressor(random_state=0))
        seconds = time.perf_counter() - start
        marks = hashlib.sha256(np.packbits(to_numpy(found.inlier_mask_))).hexdigest()
        certificate = found.certificate_
        print(json.dumps({
            "seconds": seconds, "coef": [*found.coef_, found.intercept_], "marks": marks,
            "certificate": repr(certificate), "verdict": certificate.verdict.name,
        }), flush=True)
"""

_MEMORY = (
    _ROWS
    + """
X, y = np.empty((n_chunks * chunk, 30)), np.empty(n_chunks * chunk)
for i in range(n_chunks):
    rows = slice(i * chunk, (i + 1) * chunk)
    X[rows] = columns(i)
    y[rows] = labels(X[rows], i)
serve(lambda reg: reg.fit(X, y), np.asarray)
"""
)

_DASK = (
    _ROWS
    + """
if __name__ == "__main__":
    import dask.array as da
    import distributed
    from dask import delayed
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        parts = [delayed(columns)(i) for i in range(n_chunks)]
        X = da.concatenate([da.from_delayed(part, (chunk, 30), float) for part in parts])
        parts = [delayed(labels)(part, i) for i, part in enumerate(parts)]
        y = da.concatenate([da.from_delayed(part, (chunk,), float) for part in parts])
        X, y = client.persist([X, y])
        distributed.wait([X, y])
        serve(lambda reg: reg.fit(X, y), lambda mask: mask.compute())
"""
)


def cases(small: bool) -> Iterable[Case]:
    """Yield the cases: a fit, and what a kernel weighs on its way to the workers."""
    sizes = (4, 100_000) if small else (20, 1_000_000)
    yield Case("a fit on a local cluster", lambda: _fit(*sizes, repeats=3 if small else 7))
    yield Case("a kernel on its way", _kernel)


def _fit(n_chunks: int, chunk: int, repeats: int) -> Row:
    require("distributed")
    ours, peers = [], []
    with _child(_MEMORY, n_chunks, chunk) as memory, _child(_DASK, n_chunks, chunk) as cluster:
        for child in (memory, cluster):
            _line(child)
        for _ in range(repeats + 1):
            peers.append(_fitted(memory))
            ours.append(_fitted(cluster))
        for child in (memory, cluster):
            child.communicate()
    _judge(ours[0], peers[0])
    seconds, other = (statistics.median(run["seconds"] for run in side[1:]) for side in (ours, peers))
    wanted, ratio = at_most(1.5), seconds / other
    note = f"40 % wrong, {ours[0]['verdict']}; coefficients, marks and certificate identical"
    case = f"fit, {n_chunks * chunk:,} x 30"
    return Row("", case, seconds, other, "in memory", ratio, str(wanted), wanted.met_by(ratio), note)


def _judge(ours: dict[str, Any], peer: dict[str, Any]) -> None:
    for name in ("coef", "marks", "certificate"):
        if ours[name] != peer[name]:
            raise Incorrect(f"{name}: {ours[name]} on the cluster, {peer[name]} in memory")
    if ours["coef"] != [*(j / 4 for j in range(1, 31)), 7.0]:
        raise Incorrect(f"{ours['verdict']}, {ours['coef']}")


def _child(program: str, *arguments: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _fitted(child: subprocess.Popen[str]) -> dict[str, Any]:
    """Let a child fit once."""
    assert child.stdin is not None
    child.stdin.write("fit\n")
    child.stdin.flush()
    found: dict[str, Any] = json.loads(_line(child))
    return found


def _line(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    line = child.stdout.readline()
    if not line:
        raise RuntimeError("a process ended before it answered")
    return line


def _kernel() -> Row:
    import pickle

    import numpy as np

    from massart.rows import IDENTITY, Agreement, Level, Mark

    kernel = Mark(np.arange(31.0), Agreement(Level.EXACT, relative=1e-14), IDENTITY)
    return count("a pickled kernel, 30 columns", len(pickle.dumps(kernel)) / 1000, wanted=at_most(100, " kB"))
