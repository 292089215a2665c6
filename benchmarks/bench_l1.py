"""L1 regression against HiGHS, scikit-learn and R: time, objective, exactness and memory."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from drug_discovery import drug_discovery
from harness import Case, Goal, Incorrect, MissingPeer, Row, alternate, at_least, at_most, count, race, require
from massart.l1 import L1Solution, Status, l1_regression

SAME_OBJECTIVE = 1e-10
SAME_COEFFICIENTS = 1e-12

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Data:
    """Rows, labels, and the exact truth where there is one."""

    X: FloatArray
    y: FloatArray
    truth: FloatArray | None = None


def cases(small: bool) -> Iterable[Case]:
    """Yield Gaussian rows against every peer, the drug-discovery set against HiGHS, and memory at a million rows.

    Small runs check the answers; the goals speak of full sizes, where the interpreter's own time does not count.
    """
    shapes = ((500, 5), (4000, 6)) if small else ((5_000, 20), (100_000, 30))

    def goal(factor: float) -> Goal:
        return at_least(0 if small else factor)

    for n, d in shapes:
        for wrong in ("above", "flipped"):
            for noise in (0.0, 1.0):
                name = f"{n} x {d}, 40 % {wrong}, {'noisy' if noise else 'exact'}"
                data = partial(_gaussian, n, d, wrong, noise)
                yield Case(f"{name}: HiGHS", partial(_race, name, data, _highs, "HiGHS", goal(10)))
                yield Case(f"{name}: HiGHS ipm", partial(_race, name, data, _highs_ipm, "HiGHS ipm", goal(10)))
                if n <= 5_000:  # minutes at 100,000 rows
                    yield Case(f"{name}: sklearn", partial(_race, name, data, _sklearn, "QuantileRegressor", goal(30)))
                yield Case(f"{name}: R", partial(_race_r, name, data, goal(1)))
    for labels in ("clean", "corrupted"):
        yield Case(f"drug set, labels {labels}", partial(_drug, labels, small, goal(10)))
    rows, columns = (50_000, 20) if small else (1_000_000, 50)
    limit = at_most(2.0 if small else 0.5, " sizes of X")
    for noise in (0.0, 1.0):
        name = f"{rows} x {columns}, {'noisy' if noise else 'exact'}: peak memory beyond X"
        yield Case(name, partial(_memory, name, rows, columns, noise, limit))


def _gaussian(n: int, d: int, wrong: str, noise: float) -> Data:
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((n, d)), rng.standard_normal(d)
    y = X @ w + noise * rng.standard_normal(n)
    bad = rng.random(n) < 0.4
    y[bad] = -y[bad] if wrong == "flipped" else y[bad] + rng.exponential(10.0, int(bad.sum()))
    return Data(X, y, None if noise else w)


def _race(name: str, make: Callable[[], Data], solve: Callable[[Data], FloatArray], peer: str, wanted: Goal) -> Row:
    data = make()
    slow = data.y.size > 5_000 or data.X.shape[1] > 100
    return race(
        name,
        lambda: l1_regression(data.X, data.y),
        lambda: solve(data),
        peer_name=peer,
        wanted=wanted,
        judge=lambda ours, theirs: _judge(data, ours, theirs),
        repeats=1 if slow else 5,
        warm_up=not slow,
    )


def _judge(data: Data, ours: L1Solution, theirs: FloatArray) -> str:
    """Compare with the peer's coefficients and with the truth."""
    best = float(np.abs(data.y - data.X @ theirs).sum())
    difference = ours.objective / best - 1.0
    if ours.status is Status.INEXACT or difference > SAME_OBJECTIVE:
        raise Incorrect(f"objective {ours.objective!r} ({ours.status.name}), peer {best!r}")
    note = f"objective {difference:+.0e}, gap {ours.gap / max(ours.objective, 1e-300):.0e}, {ours.n_iter} iterations"
    if data.truth is None:
        return note
    error, peer_error = (float(np.abs(w - data.truth).max()) for w in (ours.coef, theirs))
    if error > SAME_COEFFICIENTS:
        raise Incorrect(f"coefficients are off by {error:.1e}")
    return f"{note}, error {error:.0e} (peer {peer_error:.0e})"


def _highs(data: Data, method: str = "highs") -> FloatArray:
    """Solve the dual program, the form that suits HiGHS best."""
    answer = linprog(-data.y, A_eq=data.X.T, b_eq=np.zeros(data.X.shape[1]), bounds=(-1, 1), method=method)
    marginals: FloatArray = answer.eqlin.marginals
    return -marginals


def _highs_ipm(data: Data) -> FloatArray:
    return _highs(data, "highs-ipm")


def _sklearn(data: Data) -> FloatArray:
    model = require("sklearn.linear_model").QuantileRegressor(alpha=0.0, fit_intercept=False, solver="highs")
    coef: FloatArray = model.fit(data.X, data.y).coef_
    return coef


R_PROGRAM = """
suppressMessages(ok <- requireNamespace("quantreg", quietly = TRUE))
if (!ok) quit(status = 3)
options <- commandArgs(trailingOnly = TRUE)
n <- as.integer(options[2]); d <- as.integer(options[3]); repeats <- as.integer(options[4])
file <- file(options[1], "rb")
X <- matrix(readBin(file, "double", n * d), n, d)
y <- readBin(file, "double", n)
close(file)
seconds <- sapply(seq_len(repeats), function(i) system.time(fit <<- quantreg::rq.fit.fnb(X, y))[["elapsed"]])
cat(sprintf("%.17g\\n", c(mean(seconds), fit$coefficients)))
"""


def _race_r(name: str, make: Callable[[], Data], wanted: Goal) -> Row:
    """Race R's Frisch-Newton code, which is timed inside R."""
    data = make()
    n, d = data.X.shape
    if shutil.which("Rscript") is None:
        raise MissingPeer("Rscript is not installed")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "data.bin")
        path.write_bytes(data.X.tobytes(order="F") + data.y.tobytes())
        command = ["Rscript", "-e", R_PROGRAM, str(path), str(n), str(d), str(5 if n > 5_000 else 20)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MissingPeer("R has no package quantreg" if done.returncode == 3 else f"R failed: {done.stderr[-200:]}")
    seconds, *theirs = (float(line) for line in done.stdout.split())
    times = alternate(lambda: l1_regression(data.X, data.y), lambda: None, repeats=7)
    note = _judge(data, times.our_answer, np.array(theirs))
    ratio = seconds / times.ours
    return Row("", name, times.ours, seconds, "R rq.fit.fnb", ratio, str(wanted), wanted.met_by(ratio), note)


def _drug(labels: str, small: bool, wanted: Goal) -> Iterator[Row]:
    """Race HiGHS on the drug-discovery set: its table of zeros and ones, and the rows in a basis of their row space.

    HiGHS makes the most of the zeros. The second form is like what the learners solve, since a radial-isotropic
    transform leaves none.
    """
    data = drug_discovery()
    X, y = data.X, data.y
    if labels == "corrupted":
        y = np.where(np.random.default_rng(0).random(y.size) < 0.4, -100.0 * y, y)
    if small:
        X, y = X[:600, :60], y[:600]
    singular, basis = np.linalg.svd(X, full_matrices=False)[1:]
    table, rotated = Data(X, y), Data(X @ basis[singular > 1e-10 * singular[0]].T, y)
    for form, data in (("0/1 table", table), ("rotated", rotated)):
        name = f"drug set {data.X.shape[0]} x {data.X.shape[1]}, {form}, labels {labels}"
        yield _race(name, lambda data=data: data, _highs_ipm, "HiGHS ipm", wanted)
        if form == "0/1 table" or small:  # the simplex method takes minutes on the other
            yield _race(name, lambda data=data: data, _highs, "HiGHS", wanted)


MEMORY_PROGRAM = """
import json, sys, tracemalloc
from pathlib import Path
import numpy as np
from massart.l1 import l1_regression

def resident(field):
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(field)), float("nan"))

n, d, noise = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
rng = np.random.default_rng(0)
X, w = np.empty((n, d)), rng.standard_normal(d)
for start in range(0, n, 10000):
    X[start:start + 10000] = rng.standard_normal(X[start:start + 10000].shape)
y = X @ w
y += noise * rng.standard_normal(n)
y += np.where(rng.random(n) < 0.4, rng.exponential(10.0, n), 0.0)
l1_regression(X[:1000], y[:1000])  # loads what is loaded once
peak = Path("/proc/self/clear_refs")
if peak.exists():
    peak.write_text("5")  # forget the peak so far (Linux)
before = resident("VmRSS")
solution = l1_regression(X, y)
grown = (resident("VmHWM") - before) / X.nbytes
tracemalloc.start()
l1_regression(X, y)
traced = tracemalloc.get_traced_memory()[1] / X.nbytes
print(json.dumps([grown, traced, solution.status.name, float(np.abs(solution.coef - w).max())]))
"""


def _memory(name: str, n: int, d: int, noise: float, wanted: Goal) -> Row:
    """Report the peak of all allocations during a call, in sizes of X."""
    command = [sys.executable, "-c", MEMORY_PROGRAM, str(n), str(d), str(noise)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    grown, traced, status, error = json.loads(done.stdout)
    if status == "INEXACT" or (not noise and error > SAME_COEFFICIENTS):
        raise Incorrect(f"{status}, coefficients off by {error:.1e}")
    note = f"allocated {traced:.2f}, resident +{grown:.2f}"
    return count(name, max(traced, grown) if grown == grown else traced, wanted=wanted, note=note)
