"""The paper's algorithms by themselves: how often they are exact, on tables that no tuning saw.

    python benchmarks/paper.py                       # all parts, in full: about an hour on two cores
    python benchmarks/paper.py general abstain       # some parts
    python benchmarks/paper.py --small               # a few tables of each

Parts: `general` and `heavy` are Theorem 1.3 by both cutting-plane methods, in general position and with 60 to 80 % of
the rows in a subspace; `abstain` asks the separation oracle at a wrong parameter that fits most rows, and at the right
one; `positions` is Algorithm 1 in three positions; `descent` is Figure 2(a)'s radial-isotropic descent; `time` is
Algorithm 2 on the drug-discovery set (MASSART_DRUG_DATA) beside its two kernels alone. Exit status 1 if a share is
below that of `PROMISES` (not judged with --small), a wrong query gets a Yes, or a descent ends far off.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

import numpy as np
from numpy.typing import NDArray

from massart.isotropy import decompose
from massart.l1 import l1_regression
from massart.paper import (
    Answer,
    MassartNoise,
    Transformation,
    algorithm_1,
    algorithm_2,
    analytic_center,
    decoy,
    descend,
    ellipsoid,
    far_constant,
    gaussian,
    linear_labels,
    negate,
    paper_adversary,
    paper_mixture,
    paper_weights,
    recover_relu,
    relu_labels,
    separation_oracle,
    zero,
)

Array = NDArray[np.float64]
METHODS = {"ellipsoid": ellipsoid, "analytic_center": analytic_center}
ADVERSARIES = ("negate", "zero", "decoy", "far")

PROMISES = {
    "general": 1.0,
    "heavy": 0.98,
    "mixture m 120 eta .45": 0.98,
    "mixture m 120 eta .49": 0.98,
    "mixture m 60 eta .3": 0.75,
}
"""Least shares of exact answers."""


def exact(w: Array, truth: Array) -> bool:
    """Return whether a parameter is the true one, but for rounding."""
    return bool(np.linalg.norm(w - truth) <= 1e-6 * np.linalg.norm(truth))


def corrupt(X: Array, w: Array, eta: float, name: str, concept: Callable, rng: np.random.Generator) -> Array:
    """Return labels after Massart noise with an adversary of this name."""
    adversary = {
        "negate": negate(w),
        "zero": zero,
        "decoy": decoy(np.linalg.norm(w) * rng.standard_normal(len(w)) / np.sqrt(len(w)), concept),
        "far": far_constant,
    }[name]
    return MassartNoise(eta, adversary).corrupt(X, concept(X, w), rng).labels


# --- Theorem 1.3 ---


def relu_table(kind: str, trial: int, seed: int) -> tuple[Array, Array, Array]:
    """Return rows, labels and truth: m = 80 d, eta .3; adversaries take turns, dimensions every fourth trial."""
    rng = np.random.default_rng([seed, kind == "heavy", trial])
    d = 4 + trial // 4 % 5 if kind == "heavy" else 3 + trial // 4 % 8
    X = gaussian(80 * d, d, rng)
    if kind == "heavy":
        basis = np.linalg.qr(rng.standard_normal((d, d)))[0][:, : rng.integers(1, d // 2 + 1)]
        inside = rng.random(len(X)) < rng.uniform(0.6, 0.8)
        X[inside] = X[inside] @ basis @ basis.T
    w = 3 * rng.standard_normal(d)
    return X, corrupt(X, w, 0.3, ADVERSARIES[trial % 4], relu_labels, rng), w


def relu_trial(job: tuple[str, str, int, int]) -> tuple[str, bool, str, int]:
    """Recover one table; return the method, whether it is exact, the status and the queries."""
    kind, method, trial, seed = job
    X, y, w = relu_table(kind, trial, seed)
    found = recover_relu(X, y, method=METHODS[method])
    return method, bool(np.isfinite(found.w).all() and exact(found.w, w)), found.status.name, found.n_queries


def theorem_1_3(kind: str, tables: int, seed: int, pool: ProcessPoolExecutor) -> Iterator[tuple[str, float, str]]:
    """Both methods on the same tables."""
    jobs = [(kind, method, trial, seed) for trial in range(tables) for method in METHODS]
    outcomes = list(pool.map(relu_trial, jobs))
    for method in METHODS:
        own = [outcome for outcome in outcomes if outcome[0] == method]
        statuses = Counter(f"{status}{'' if right else ' and wrong'}" for _, right, status, _ in own)
        queries = np.median([count for *_, count in own])
        yield f"{kind}, {method}", np.mean([right for _, right, *_ in own]), f"{dict(statuses)}, {queries:g} queries"


# --- the oracle's Yes ---


def abstain(tables: int, seed: int) -> Iterator[tuple[str, float, str]]:
    """Most rows lie in a hyperplane; the adversary abstains there and answers by a wrong w0 elsewhere."""
    wrong, right, spans = 0, 0, 0
    for trial in range(tables):
        d, share = ((3, 0.6), (5, 0.7), (6, 0.55))[trial % 3]
        rng = np.random.default_rng([seed, 8, trial])
        normal = np.linalg.qr(rng.standard_normal((d, 1)))[0][:, 0]
        X = gaussian(80 * d, d, rng)
        inside = rng.random(len(X)) < share
        X[inside] -= np.outer(X[inside] @ normal, normal)
        w = 3 * rng.standard_normal(d)
        w0 = w + normal
        chosen = (rng.random(len(X)) < 0.3) & ~inside
        y = np.where(chosen, relu_labels(X, w0), relu_labels(X, w))
        active = X @ w0 > 0
        fits = active & (np.abs(relu_labels(X, w0) - y) <= 1e-9)
        spans += 2 * fits.sum() > active.sum() and np.linalg.matrix_rank(X[fits]) == d
        wrong += separation_oracle(X, y, w0).answer is Answer.YES
        right += separation_oracle(X, y, w).answer is Answer.YES
    yield "abstain: Yes at w0", wrong / tables, f"{wrong} of {tables}; it fits most active rows of full rank on {spans}"
    yield "abstain: Yes at w*", right / tables, f"{right} of {tables}"


# --- Algorithm 1 ---


def linear_table(kind: str, d: int, m: int, eta: float, trial: int, seed: int) -> tuple[Array, Array, Array]:
    """Return rows in general position, labels and truth."""
    rng = np.random.default_rng([seed, m, round(100 * eta), trial])
    if kind == "mixture":
        X, w = paper_mixture(m, d, rng), paper_weights(d)
        return X, MassartNoise(eta, paper_adversary(w)).corrupt(X, linear_labels(X, w), rng).labels, w
    X, w = gaussian(m, d, rng), rng.standard_normal(d)
    if kind == "near":  # a third of the rows within a thousandth of a subspace of dimension d/5
        near = rng.random(m) < 0.35
        X[np.ix_(near, np.arange(d // 5, d))] *= 1e-3
        X = X @ np.linalg.qr(rng.standard_normal((d, d)))[0]
    elif kind == "spikes":  # few columns a row, of very different sizes, on a small background
        X *= 1e-2
        at = rng.random((m, d)) < 2 / d
        X[at] += np.exp(2 * rng.standard_normal(at.sum()))
    elif kind == "corruptible":  # the paper's mixture, where every row may be corrupted
        X = paper_mixture(m, d, rng)
    return X, corrupt(X, w, eta, "negate" if kind == "corruptible" else "decoy", linear_labels, rng), w


CELLS = (
    ("mixture", 30, 120, 0.45),
    ("mixture", 30, 120, 0.49),
    ("mixture", 30, 60, 0.3),
    ("corruptible", 30, 150, 0.3),
    ("near", 20, 120, 0.38),
    ("spikes", 20, 160, 0.35),
)
"""Families of rows, columns, rows and noise rate of `positions`."""


def position_trial(job: tuple[tuple[str, int, int, float], int, int]) -> tuple[list[bool], list[float]]:
    """Fit one table in the three positions; return which are exact, and processor seconds."""
    cell, trial, seed = job
    X, y, w = linear_table(*cell, trial, seed)
    hits, seconds = [], []
    for options in ({}, {"gamma": 1e-3}, {"position": "most_effective"}):
        start = time.process_time()
        hits.append(exact(algorithm_1(X, y, **options).w, w))
        seconds.append(time.process_time() - start)
    return hits, seconds


def positions(tables: int, seed: int, pool: ProcessPoolExecutor) -> Iterator[tuple[str, float, str]]:
    """One L1 regression in the paper's loose position, a nearly exact one, and the most effective one."""
    for cell in CELLS:
        outcomes = list(pool.map(position_trial, [(cell, trial, seed) for trial in range(tables)], chunksize=4))
        loose, tight, ours = np.mean([hits for hits, _ in outcomes], axis=0)
        milliseconds = " / ".join(f"{1000 * value:.0f}" for value in np.mean([spent for _, spent in outcomes], axis=0))
        name = f"{cell[0]} m {cell[2]} eta {f'{cell[3]:g}'.lstrip('0')}"
        words = f"most effective; loose {loose:.3f}, gamma 1e-3 {tight:.3f}; {milliseconds} ms (loose, 1e-3, ours)"
        yield name, ours, words
        if ours < loose:
            yield f"{name}: behind the loose position by", loose - ours, ""


# --- Figure 2(a) ---


def descent_end(job: tuple[int, int]) -> float:
    """Return the distance to the truth after 1,000 steps."""
    trial, seed = job
    rng = np.random.default_rng([seed, 2, trial])
    X, w = paper_mixture(240, 30, rng), paper_weights(30)
    y = MassartNoise(0.4, paper_adversary(w)).corrupt(X, relu_labels(X, w), rng).labels
    return float(descend(X, y, Transformation.RADIAL_ISOTROPIC, steps=1000).distances(w)[-1])


def descent(tables: int, seed: int, pool: ProcessPoolExecutor) -> Iterator[tuple[str, float, str]]:
    """Return how far radial-isotropic descent ends from the truth."""
    ends = np.array(list(pool.map(descent_end, [(trial, seed) for trial in range(tables)])))
    yield (
        "descent: runs above distance 1",
        float((ends > 1).mean()),
        f"mean {ends.mean():.3f}, largest {ends.max():.3f}",
    )


# --- time ---


def drug_time(repeats: int) -> Iterator[tuple[str, float, str]]:
    """Algorithm 2 on 3,085 x 410 rows, beside isotropy and L1 alone, in turns."""
    path = os.environ.get("MASSART_DRUG_DATA")
    if not path:
        yield "time of Algorithm 2 / kernels", float("nan"), "skipped: MASSART_DRUG_DATA names no file"
        return
    from scipy.io import loadmat

    data = loadmat(path)
    X, y = data["X_train"].astype(float), data["y_train"].astype(float).ravel()
    whole, kernels = [], []
    for _ in range(repeats):
        start = time.process_time()
        answer = algorithm_2(X, y).w
        whole.append(time.process_time() - start)
        start = time.process_time()
        pieces, left, alone = decompose(X), y.copy(), np.zeros(X.shape[1])
        for piece in pieces:
            Z = X[piece.members] @ piece.subspace @ piece.matrix
            lengths = np.linalg.norm(Z, axis=1)
            alone += piece.subspace @ (
                piece.matrix @ l1_regression(Z / lengths[:, None], left[piece.members] / lengths).coef
            )
            left = y - X @ alone
        kernels.append(time.process_time() - start)
        assert np.allclose(answer, alone, atol=1e-7 * np.abs(alone).max())
    yield "time of Algorithm 2 / kernels", float(np.median(whole) / np.median(kernels)), f"{np.median(whole):.2f} s"


def main() -> int:
    """Run the parts; print a line for each number."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = ("general", "heavy", "abstain", "positions", "descent", "time")
    parser.add_argument("parts", nargs="*", help=", ".join(parts))
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--seed", type=int, default=90210)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    small, seed, broken = options.small, options.seed, []
    with ProcessPoolExecutor(options.jobs) as pool:
        runs = {
            "general": lambda: theorem_1_3("general", 8 if small else 100, seed, pool),
            "heavy": lambda: theorem_1_3("heavy", 8 if small else 200, seed, pool),
            "abstain": lambda: abstain(9 if small else 90, seed),
            "positions": lambda: positions(10 if small else 200, seed, pool),
            "descent": lambda: descent(4 if small else 100, seed, pool),
            "time": lambda: drug_time(1 if small else 5),
        }
        for part in options.parts or parts:
            for name, value, words in runs[part]():
                print(f"{name:32s} {value:.3f}  {words}", flush=True)
                least = 0.0 if small else PROMISES.get(name, PROMISES.get(name.split(",")[0], 0.0))
                never = name.startswith(("abstain: Yes at w0", "descent")) or (": behind" in name and not small)
                if value < least or (never and value > 0) or (name == "abstain: Yes at w*" and value < 1):
                    broken.append(name)
    print("all promises are kept" if not broken else f"not kept: {', '.join(broken)}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
