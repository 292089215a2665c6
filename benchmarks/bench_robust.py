"""Robust regression with noisy inliers: the drug-discovery set, Gaussian noise with gross errors, coverage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from harness import Case, Incorrect, MissingPeer, Row, at_least, at_most, count, race, require  # isort: skip

import numpy as np
from numpy.typing import NDArray

from drug_discovery import drug_discovery
from massart.noise import Adversary, MassartNoise, decoy, far_constant, gaussian, gross, linear, scale
from massart.robust import RobustFit, robust_regression
from row_families import permuted_weights

FloatArray = NDArray[np.float64]

MARGIN = 2.0
SIGMA = 0.1  # of the noise on right labels; coefficients are of size 1
ADVERSARIES: dict[str, Callable[[FloatArray, np.random.Generator], Adversary]] = {
    "decoy": lambda w, rng: decoy(permuted_weights(w, rng), linear),
    "far constant": lambda w, rng: far_constant,
    "gross": lambda w, rng: gross(),
    "-100 y": lambda w, rng: scale(-100.0),
}


def cases(small: bool) -> Iterator[Case]:
    """Yield the two goals of the issue, the coverage of intervals, and times beside scikit-learn and statsmodels."""
    draws = 1 if small else 5
    for eta in (0.0, 0.4) if small else (0.0, 0.1, 0.2, 0.3, 0.4, 0.45):
        yield Case(f"drug discovery, eta {eta:g}", partial(_drug, eta, draws if eta > 0 else 1))
    for n, d in ((500, 5),) if small else ((2000, 10), (1000, 30)):
        for name in ADVERSARIES:
            yield Case(f"{n} x {d}, 40 % {name}", partial(_error, n, d, name, 3 if small else 20))
    for eta in (0.0, 0.4):
        yield Case(f"coverage, eta {eta:g}", partial(_coverage, eta, 20 if small else 200))
    yield Case("time", partial(_time, *((500, 5) if small else (2000, 10))))


def _drug(eta: float, draws: int) -> Row:
    """Report the mean share of test rows within the margin, over draws of the rows that become -100 y."""
    data = drug_discovery()
    X, y, X_test, y_test = data.X, data.y, data.X_test, data.y_test
    shares, scales = [], []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        labels = MassartNoise(eta, scale(-100.0)).corrupt(X, y, rng).labels
        fit = robust_regression(X, labels, rng=rng)
        shares.append(float((np.abs(X_test @ fit.coef - y_test) <= MARGIN).mean()))
        scales.append(fit.scale)
    note = f"{draws} draws, {min(shares):.3f} to {max(shares):.3f}; scale {np.mean(scales):.2f}"
    return count(
        f"drug discovery, eta {eta:g}: test rows within 2", float(np.mean(shares)), wanted=at_least(0.9, ""), note=note
    )


def planted(
    n: int, d: int, eta: float, name: str, seed: int
) -> tuple[FloatArray, FloatArray, FloatArray, NDArray[np.bool_]]:
    """Return rows, labels, the truth, and which labels the adversary chose."""
    rng = np.random.default_rng(seed)
    X, w = gaussian(n, d, rng), rng.standard_normal(d)
    noisy = X @ w + SIGMA * rng.standard_normal(n)
    corruption = MassartNoise(eta, ADVERSARIES[name](w, rng)).corrupt(X, noisy, rng)
    return X, corruption.labels, w, corruption.allowed


def _error(n: int, d: int, name: str, seeds: int) -> Iterator[Row]:
    """Report the median error over that of least squares on the rows the adversary left alone."""
    answers: dict[str, list[float]] = {"ours": []}
    peers = {"HuberRegressor": _huber, "RLM biweight": _rlm}
    for seed in range(seeds):
        X, y, w, wrong = planted(n, d, 0.4, name, seed)
        known = np.linalg.norm(np.linalg.lstsq(X[~wrong], y[~wrong], rcond=None)[0] - w)
        fit = robust_regression(X, y, rng=np.random.default_rng(seed))
        answers["ours"].append(float(np.linalg.norm(fit.coef - w) / known))
        for peer_name, peer in peers.items():
            try:
                answers.setdefault(peer_name, []).append(float(np.linalg.norm(peer(X, y) - w) / known))
            except MissingPeer:
                continue
    ours = float(np.median(answers.pop("ours")))
    note = ", ".join(f"{peer_name} {np.median(errors):.3g}" for peer_name, errors in answers.items())
    yield count(f"{n} x {d}, 40 % {name}: error / oracle's", ours, wanted=at_most(1.2, ""), note=note)


def _coverage(eta: float, sets: int) -> Row:
    n, d = 300, 5
    covered = []
    for seed in range(sets):
        X, y, w, _ = planted(n, d, eta, "gross", seed)
        fit = robust_regression(X, y, rng=np.random.default_rng(seed))
        covered.append(np.abs(fit.coef - w) <= 1.96 * fit.standard_errors)
    share = 100 * float(np.mean(covered))
    if not 90 <= share <= 99:
        raise Incorrect(f"95 % intervals cover {share:.1f} %")
    return count(f"coverage of 95 % intervals, eta {eta:g}", share, wanted=at_least(90, " %"), note="and at most 99 %")


def _time(n: int, d: int) -> Iterator[Row]:
    X, y, w, _ = planted(n, d, 0.4, "gross", 0)

    def ours() -> RobustFit:
        return robust_regression(X, y, rng=np.random.default_rng(0))

    def judge(fit: RobustFit, other: FloatArray) -> str:
        return f"errors {np.abs(fit.coef - w).max():.1e} and {np.abs(other - w).max():.1e}"

    for name, peer in (("HuberRegressor", _huber), ("RLM biweight", _rlm)):
        yield race(
            f"{n} x {d}, 40 % gross: time",
            ours,
            partial(peer, X, y),
            peer_name=name,
            wanted=at_least(0),
            judge=judge,
        )


def _huber(X: FloatArray, y: FloatArray) -> FloatArray:
    model = require("sklearn.linear_model").HuberRegressor(fit_intercept=False, alpha=0.0, max_iter=1000)
    return np.asarray(model.fit(X, y).coef_)


def _rlm(X: FloatArray, y: FloatArray) -> FloatArray:
    module = require("statsmodels.api")
    return np.asarray(module.RLM(y, X, M=module.robust.norms.TukeyBiweight()).fit(maxiter=200).params)
