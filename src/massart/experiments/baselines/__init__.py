"""Methods to compare with: those of the paper, of this package, of other papers and of libraries.

>>> import numpy as np
>>> from massart.experiments.baselines import LINEAR
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((60, 4))
>>> y = X @ [3, 0, -1, 0.5]
>>> y[:6] += 100
>>> np.round(LINEAR["torrent"].fit(X, y, rng), 9) + 0.0
array([ 3. ,  0. , -1. ,  0.5])
"""

from __future__ import annotations

from functools import partial

from massart.experiments.baselines import libraries, ours, r, relu, thresholding
from massart.experiments.baselines.baseline import Baseline, baseline
from massart.experiments.baselines.libraries import tuned_ridge

__all__ = ["LINEAR", "RELU", "Baseline", "baseline", "given_rate", "tuned_ridge"]

_PAPER = "Diakonikolas, Park and Tzamos 2021"

LINEAR: dict[str, Baseline] = {
    "naive_l1": baseline("L1", f"{_PAPER}, Section 4: naive L1 regression", ours.naive_l1),
    "normalized_l1": baseline("Normalized L1", f"{_PAPER}, Section 4: rows scaled to length 1", ours.normalized_l1),
    "algorithm_1": baseline("Algorithm 1", f"{_PAPER}, Algorithms 1 and 2", ours.algorithm_1),
    "algorithm_1_tight": baseline("Algorithm 1, tight", "the same with gamma = 1e-3", ours.algorithm_1_tight),
    "algorithm_1_effective": baseline(
        "Algorithm 1, most effective position", "the same in a position of this package", ours.algorithm_1_effective
    ),
    "massart": baseline("massart", "this package: Algorithm 2 and a certified search", ours.massart),
    "least_squares": baseline("Least squares", "NumPy", libraries.least_squares),
    "ridge": baseline("Ridge", "scikit-learn RidgeCV and Ridge", libraries.ridge),
    "huber": baseline("Huber", "scikit-learn HuberRegressor", libraries.huber),
    "ransac": baseline("RANSAC", "scikit-learn RANSACRegressor, exact threshold", libraries.ransac),
    "torrent": baseline("TORRENT", "Bhatia, Jain and Kar 2015, TORRENT-FC", thresholding.torrent),
    "ada_crr": baseline("AdaCRR", "Suggala, Bhatia, Ravikumar and Jain 2019, AdaCRR-FC", thresholding.ada_crr),
    "lmrob": baseline("MM (lmrob)", "R robustbase::lmrob", partial(r.coefficients, "lmrob"), "R: robustbase"),
    "lts": baseline("LTS (ltsReg)", "R robustbase::ltsReg", partial(r.coefficients, "ltsReg"), "R: robustbase"),
}
"""Linear regression: key to method."""

RELU: dict[str, Baseline] = {
    "massart_relu": baseline("massart (ReLU)", "this package: search, then a certificate", ours.massart_relu),
    "published_relu": baseline("Cutting planes", f"{_PAPER}, Section 3, analytic centres", ours.published_relu),
    "karmakar_sgd": baseline("Karmakar et al.", "Karmakar, Mukherjee and Muthukumar 2020", relu.karmakar_sgd),
    "clad": baseline("CLAD", "Powell 1984, iterated linear programs of Buchinsky 1994", relu.clad),
}
"""ReLU regression: key to method."""


def given_rate(eta: float) -> dict[str, Baseline]:
    """Return the methods whose papers take the share of wrong labels as known, told that it is `eta`.

    TORRENT, by its key in `LINEAR`, where it assumes a fixed share.
    """
    if not 0 <= eta < 1:
        raise ValueError(f"eta must be in [0, 1), got {eta}")
    told = partial(thresholding.torrent_at_rate, eta=eta)
    return {"torrent": baseline(LINEAR["torrent"].name, LINEAR["torrent"].reference, told)}
