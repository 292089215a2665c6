"""Noisy right labels behind a link: as good as least squares on the right rows far from the limits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

from massart.certificate import Verdict
from massart.paper import MassartNoise, far_constant, flip, gaussian, gross, relu_labels
from massart.recover import Recovery, recover
from massart.rows import RELU, ArrayRows, Link

SIGMA = 0.1
FAR = 2.5  # scales of the noise from the limits at which clipping does not matter


def fit(X, y, link=RELU, sample_weight=None, seed=0, **options) -> Recovery:
    return recover(ArrayRows(X, y, sample_weight), rng=np.random.default_rng(seed), link=link, **options)


def noisy_table(seed, kind, adversary="gross", link=RELU, n=500, d=3, eta=0.3):
    """Return rows, labels with noise before the link clips or after, the truth, and which labels are wrong."""
    rng = np.random.default_rng(seed)
    X = gaussian(n, d, rng)
    w = rng.standard_normal(d)
    noise = SIGMA * rng.standard_normal(n)
    clean = link(X @ w + noise) if kind == "before" else link(X @ w) + noise
    answer = {"gross": gross(), "flip": flip(w, relu_labels), "constant": far_constant}[adversary]
    corruption = MassartNoise(eta, answer).corrupt(X, clean, rng)
    return X, corruption.labels, w, corruption.changed


def reference(X, y, w, changed, link=RELU):
    """Return the least-squares fit of the right rows far from the limits: nobody knows them, and nobody does better."""
    z = X @ w
    rows = ~changed & (z > link.lower + FAR * SIGMA) & (z < link.upper - FAR * SIGMA)
    return np.linalg.lstsq(X[rows], y[rows], rcond=None)[0]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["before", "after"])
@pytest.mark.parametrize("adversary", ["gross", "flip"])
def test_noisy_inliers_are_estimated_as_well_as_by_least_squares_on_the_right_rows(kind, adversary):
    for seed in range(2):
        X, y, w, changed = noisy_table(seed, kind, adversary)
        found = fit(X, y)
        error, least = (np.linalg.norm(v - w) for v in (found.coef[:, 0], reference(X, y, w, changed)))
        assert error <= 1.3 * least
        assert found.certificates[0].verdict is Verdict.NOISY
        assert found.scale[0] == pytest.approx(SIGMA, rel=0.15)
        assert found.certificates[0].scale == found.scale[0]
        assert np.all(np.abs(found.coef[:, 0] - w) < 5 * found.standard_errors[:, 0])
        assert found.fractions[0] == (None,) * 3


@pytest.mark.slow
@pytest.mark.parametrize("link", [Link(-1, 1.5), Link(-np.inf, 1.0)], ids=["two-sided", "right-censored"])
@pytest.mark.parametrize("kind", ["before", "after"])
def test_other_limits_do_not_bias_the_estimate(kind, link):
    for seed in range(1):
        X, y, w, changed = noisy_table(seed, kind, link=link)
        found = fit(X, y, link, inliers="noisy")
        error, least = (np.linalg.norm(v - w) for v in (found.coef[:, 0], reference(X, y, w, changed, link)))
        assert error <= 1.3 * least + 0.1 * SIGMA
        assert found.certificates[0].verdict is Verdict.NOISY
        assert found.scale[0] == pytest.approx(SIGMA, rel=0.15)


def test_an_invertible_link_is_fitted_by_its_inverse():
    link = Link(slope=0.5)
    X, y, w, changed = noisy_table(0, "before", link=link)
    found = fit(X, y, link, inliers="noisy")
    best = np.linalg.lstsq(X[~changed], link.inverse(y[~changed]), rcond=None)[0]
    assert np.linalg.norm(found.coef[:, 0] - w) <= 1.3 * np.linalg.norm(best - w)
    assert found.certificates[0].verdict is Verdict.NOISY


@pytest.mark.slow
def test_wrong_rows_are_told_from_noisy_ones():
    X, y, _, changed = noisy_table(1, "before", "constant")
    found = fit(X, y, inliers="noisy")
    assert not found.agree[changed, 0].any()
    assert found.agree[~changed, 0].mean() > 0.97
    assert found.noise_rate[0] == pytest.approx(1 - found.agree.mean())
    residuals = np.abs(y - relu_labels(X, found.coef[:, 0]))
    np.testing.assert_array_equal(found.agree[:, 0], residuals <= found.certificates[0].agreement.label * (1 + 1e-9))


@pytest.mark.slow
def test_exact_was_asked_for_and_the_labels_are_noisy():
    for kind in ("before", "after"):
        X, y, _, _ = noisy_table(0, kind)
        found = fit(X, y, inliers="exact")
        assert found.certificates[0].verdict in (Verdict.PLURALITY, Verdict.NONE)
        assert found.scale[0] == 0


@pytest.mark.parametrize("eta", [0.0, pytest.param(0.3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("inliers", ["auto", "noisy"])
def test_exact_labels_are_never_called_noisy(eta, inliers):
    rng = np.random.default_rng(0)
    X = gaussian(600, 4, rng)
    w = rng.standard_normal(4)
    for adversary in (gross(), flip(w, relu_labels), far_constant):
        y = MassartNoise(eta, adversary).corrupt(X, relu_labels(X, w), rng).labels
        found = fit(X, y, inliers=inliers)
        np.testing.assert_allclose(found.coef[:, 0], w, rtol=1e-9)
        if inliers == "auto":
            assert found.certificates[0].verdict.stands
            assert found.scale[0] == 0


@pytest.mark.slow
def test_labels_without_a_rule_are_not_claimed():
    rng = np.random.default_rng(0)
    X = gaussian(300, 3, rng)
    found = fit(X, np.abs(rng.standard_normal(300)) * (rng.random(300) < 0.5))
    assert found.certificates[0].verdict is Verdict.NONE
    assert found.scale[0] == 0


@pytest.mark.slow
def test_weights_decide_which_noisy_formula_has_the_majority():
    rng = np.random.default_rng(0)
    X = gaussian(600, 3, rng)
    first = np.arange(600) < 400
    y = RELU(X @ [1.0, 2, 3] + SIGMA * rng.standard_normal(600))
    y[first] = RELU(X[first] @ [3.0, -1, 0.5] + SIGMA * rng.standard_normal(400))
    light, heavy = (fit(X, y, sample_weight=np.where(first, 1.0, c), inliers="noisy") for c in (1.0, 5.0))
    np.testing.assert_allclose(light.coef[:, 0], [3, -1, 0.5], atol=0.1)
    np.testing.assert_allclose(heavy.coef[:, 0], [1, 2, 3], atol=0.1)


def test_labels_that_hardly_decide_are_not_fitted():
    X = gaussian(100, 3, np.random.default_rng(0))
    y = np.zeros(100)
    y[:6] = 1.0
    found = fit(X, y, inliers="noisy")
    assert found.certificates[0].verdict in (Verdict.PLURALITY, Verdict.NONE)


# --- labels that a limit has cut off: without wrong rows the answer is Tobin's, and wrong ones hardly move it ---


def censored_rows(seed, n=600, link=RELU):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.standard_normal((n, 3)), np.ones(n)])
    w = np.array([1.0, -2.0, 0.5, 0.7])
    return X, link(X @ w + 0.4 * rng.standard_normal(n)), w


def estimate(X, y, link=RELU, sample_weight=None):
    found = fit(X, y, link, sample_weight, inliers="noisy")
    assert found.certificates[0].verdict is Verdict.NOISY
    return found.coef[:, 0], found.standard_errors[:, 0], found.scale[0]


def tobit(X, y, link):
    """Return the coefficients and the scale that maximize the likelihood."""
    low, high = y == link.lower, y == link.upper

    def loss(v):
        mean, scale = X @ v[:-1], np.exp(v[-1])
        below, above = norm.logcdf(link.lower, mean, scale), norm.logsf(link.upper, mean, scale)
        return -np.where(low, below, np.where(high, above, norm.logpdf(y, mean, scale))).sum()

    found = minimize(loss, np.append(np.linalg.lstsq(X, y, rcond=None)[0], 0.0), method="BFGS", options={"gtol": 1e-6})
    return found.x[:-1], np.exp(found.x[-1])


@pytest.mark.parametrize("link", [RELU, Link(-1.0, 2.0), Link(-np.inf, 1.0)], ids=str)
def test_without_wrong_rows_it_is_nearly_the_tobit_estimate(link):
    X, y, _ = censored_rows(1, link=link)
    found, errors, scale = estimate(X, y, link)
    coef, known = tobit(X, y, link)
    assert np.all(np.abs(found - coef) <= 0.25 * errors)
    assert scale == pytest.approx(known, rel=0.05)
    low, high = (link.lower - X @ coef) / known, (X @ coef - link.upper) / known
    beyond = np.where(y == link.lower, low, np.where(y == link.upper, high, 0.0))
    ratio = norm.pdf(beyond) / norm.cdf(beyond)
    told = np.where((y == link.lower) | (y == link.upper), ratio * (ratio + beyond), 1.0)  # of Fisher's information
    np.testing.assert_allclose(errors, np.sqrt(np.linalg.inv((X * told[:, None]).T @ X).diagonal()) * known, rtol=0.15)


@pytest.mark.parametrize("link", [RELU, Link(0.0, 3.0)], ids=str)
def test_wrong_rows_hardly_move_it(link):
    X, y, w = censored_rows(2, n=1000, link=link)
    rng = np.random.default_rng(0)
    bad = rng.random(len(y)) < 0.25
    y[bad] = rng.uniform(0, 3, bad.sum()) if link.upper == 3 else rng.uniform(20, 80, bad.sum())
    assert np.linalg.norm(estimate(X, y, link)[0] - w) <= 0.2  # 0.03 to 0.07 by the right rows alone


@pytest.mark.slow
def test_intervals_cover():
    covered = []
    for seed in range(60):
        X, y, w = censored_rows([5, seed], n=150)
        found, errors, _ = estimate(X, y)
        covered.append(np.abs(found - w) <= 1.96 * errors)
    assert 0.88 <= np.mean(covered) <= 0.99


def test_rows_count_as_often_as_they_say():
    X, y, _ = censored_rows(3, n=200)
    counts = np.random.default_rng(0).integers(1, 4, len(y))
    weighted = estimate(X, y, sample_weight=counts.astype(float))[0]
    repeated = estimate(np.repeat(X, counts, axis=0), np.repeat(y, counts))[0]
    np.testing.assert_allclose(weighted, repeated, atol=1e-6)
