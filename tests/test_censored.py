"""Labels that a limit has cut off: without wrong rows the answer is Tobin's, and wrong ones hardly move it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import norm, truncnorm

from massart.recover import Options
from massart.recover.censored import _told, refine_censored
from massart.recover.noisy import find_noisy
from massart.rows import RELU, Agreement, Level, Link, Sample

ONES = np.ones(4)


def censored_rows(seed, n=600, link=RELU):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.standard_normal((n, 3)), np.ones(n)])
    w = np.array([1.0, -2.0, 0.5, 0.7])
    return X, link(X @ w + rng.standard_normal(n)), w


@pytest.mark.parametrize("link", [RELU, Link(-1.0, 2.0), Link(-np.inf, 1.0)], ids=str)
def test_behind_a_label_at_a_limit_is_a_normal_number_beyond_it(link):
    rng = np.random.default_rng(0)
    mean, scale = rng.uniform(-3, 4, 60), 0.7
    y = link(mean + 0.7 * rng.standard_normal(60))
    low, high = y == link.lower, y == link.upper
    log_right, expected, spare = _told(mean, y, scale, link, low, high)
    assert low.sum() + high.sum() > 9
    np.testing.assert_allclose(log_right[~low & ~high], norm.logpdf(y, mean, scale)[~low & ~high])
    np.testing.assert_array_equal(expected[~low & ~high], y[~low & ~high])
    np.testing.assert_array_equal(spare[~low & ~high], 0.0)
    for rows, ends in ((low, (-np.inf, (link.lower - mean) / scale)), (high, ((link.upper - mean) / scale, np.inf))):
        tail = truncnorm(*(np.broadcast_to(end, 60)[rows] for end in ends), mean[rows], scale)
        chance = norm.logcdf(ends[1]) + norm.logsf(ends[0])
        np.testing.assert_allclose(log_right[rows], chance[rows])
        np.testing.assert_allclose(expected[rows], tail.mean())
        np.testing.assert_allclose(spare[rows], tail.var(), atol=1e-9)
        far = np.where(rows, np.where(low, 1e9, -1e9) + rng.uniform(0, 9, 60), mean)
        lost = _told(far, y, scale, link, low, high)[2]
        assert ((lost >= 0) & (lost <= scale**2)).all()


def test_labels_inside_that_are_all_alike_have_some_width():
    X, y, w = censored_rows(1)
    found = refine_censored(X, np.where(y > 0, 3.0, 0.0), np.ones(len(y)), w, 99 * ONES, 1.0, RELU)
    assert found is None or np.isfinite(found.coef).all()


def tobit(X, y, link):
    """Return the coefficients and the scale that maximize the likelihood."""

    def loss(v):
        mean, scale = X @ v[:-1], np.exp(v[-1])
        inside = norm.logpdf(y, mean, scale)
        below, above = norm.logcdf(link.lower, mean, scale), norm.logsf(link.upper, mean, scale)
        return -np.where(y == link.lower, below, np.where(y == link.upper, above, inside)).sum()

    found = minimize(loss, np.append(np.linalg.lstsq(X, y, rcond=None)[0], 0.0), method="BFGS", options={"gtol": 1e-8})
    return found.x[:-1], float(np.exp(found.x[-1]))


@pytest.mark.parametrize("link", [RELU, Link(-1.0, 2.0), Link(-np.inf, 1.0)], ids=str)
def test_without_wrong_rows_it_is_nearly_the_tobit_estimate(link):
    X, y, w = censored_rows(1, link=link)
    found = refine_censored(X, y, np.ones(len(y)), w, ONES, 1.0, link)
    coef, scale = tobit(X, y, link)
    errors = np.sqrt(found.covariance.diagonal())
    assert np.all(np.abs(found.coef - coef) <= 0.25 * errors)
    assert found.scale == pytest.approx(scale, rel=0.03)
    low, high = (link.lower - X @ coef) / scale, (X @ coef - link.upper) / scale
    beyond = np.where(y == link.lower, low, np.where(y == link.upper, high, 0.0))
    ratio = norm.pdf(beyond) / norm.cdf(beyond)
    told = np.where((y == link.lower) | (y == link.upper), ratio * (ratio + beyond), 1.0)  # of Fisher's information
    known = np.sqrt(np.linalg.inv((X * told[:, None]).T @ X).diagonal()) * scale
    np.testing.assert_allclose(errors, known, rtol=0.15)
    other = refine_censored(X, 8 * y, np.ones(len(y)), 8 * w, 8 * ONES, 8.0, Link(8 * link.lower, 8 * link.upper))
    np.testing.assert_allclose(other.coef, 8 * found.coef, rtol=1e-6)
    np.testing.assert_allclose(other.covariance, 64 * found.covariance, rtol=1e-6)
    assert other.scale == pytest.approx(8 * found.scale)


def test_wrong_rows_hardly_move_it():
    X, y, w = censored_rows(2, n=1000)
    rng = np.random.default_rng(0)
    bad = rng.random(len(y)) < 0.3
    known = refine_censored(X[~bad], y[~bad], np.ones((~bad).sum()), w, ONES, 1.0, RELU)
    y[bad] = rng.uniform(20, 80, bad.sum())
    found = refine_censored(X, y, np.ones(len(y)), w, ONES, 1.0, RELU)
    assert np.linalg.norm(found.coef - w) <= 1.5 * np.linalg.norm(known.coef - w)


def test_with_wrong_rows_it_is_where_the_likelihood_of_both_kinds_is_largest():
    """Right rows are Tobin's; wrong ones are inside with one probability, and at either limit with the rest."""
    link = Link(0.0, 3.0)
    X, y, w = censored_rows(4, n=1500, link=link)
    rng = np.random.default_rng(1)
    bad = rng.random(len(y)) < 0.3
    y[bad] = np.where(rng.random(bad.sum()) < 0.7, rng.choice([0.0, 3.0], bad.sum()), rng.uniform(0, 3, bad.sum()))
    low, high = y == 0.0, y == 3.0
    inside = ~(low | high)
    width = np.ptp(y[inside])

    def loss(v):
        mean, scale, right, between = X @ v[:4], np.exp(v[4]), expit(v[5]), expit(v[6])
        told = np.where(low, norm.cdf(0, mean, scale), norm.sf(3, mean, scale))
        told = np.where(inside, norm.pdf(y, mean, scale), told)
        return -np.log(right * told + (1 - right) * np.where(inside, between / width, (1 - between) / 2)).sum()

    known = minimize(loss, [*w, 0.0, 1.0, 0.0], method="BFGS", options={"gtol": 1e-3}).x
    found = refine_censored(X, y, np.ones(len(y)), w, ONES, 1.0, link)
    assert expit(known[6]) < 0.5
    assert np.all(np.abs(found.coef - known[:4]) <= 0.2 * np.sqrt(found.covariance.diagonal()))
    assert found.scale == pytest.approx(np.exp(known[4]), rel=0.02)


def test_the_estimate_of_noisy_rows_counts_those_at_the_limit():
    """Rows clear of the limit give an estimate, too, but a less precise one than Tobin's."""
    X, y, w = censored_rows(7)
    sample = Sample(X, y, None, np.arange(len(y)))
    options = Options(np.random.default_rng(0))
    found = find_noisy(sample, w, Agreement(Level.EXACT), RELU, options, forced=True)
    coef, scale = tobit(X, y, RELU)
    assert np.all(np.abs(found.coef - coef) <= 0.25 * found.standard_errors)
    assert found.scale == pytest.approx(scale, rel=0.05)
    assert found.reach == 3 * found.scale
    np.testing.assert_allclose(found.standard_errors, np.sqrt(found.covariance.diagonal()))


@pytest.mark.slow
def test_intervals_cover():
    covered = []
    for seed in range(60):
        X, y, w = censored_rows([5, seed], n=150)
        found = refine_censored(X, y, np.ones(len(y)), w, ONES, 1.0, RELU)
        covered.append(np.abs(found.coef - w) <= 1.96 * np.sqrt(found.covariance.diagonal()))
    assert 0.88 <= np.mean(covered) <= 0.99


def test_rows_count_as_often_as_they_say():
    X, y, w = censored_rows(3, n=200)
    counts = np.random.default_rng(0).integers(1, 4, len(y))
    weighted = refine_censored(X, y, counts.astype(float), w, ONES, 1.0, RELU)
    many, labels = np.repeat(X, counts, axis=0), np.repeat(y, counts)
    repeated = refine_censored(many, labels, np.ones(len(labels)), w, ONES, 1.0, RELU)
    np.testing.assert_allclose(weighted.coef, repeated.coef, atol=1e-6)


def test_it_declines_where_labels_are_not_cut_off():
    X, y, w = censored_rows(4)
    ones = np.ones(len(y))
    inside = y + 0.1 * np.random.default_rng(0).standard_normal(len(y))  # noise after the limit
    assert refine_censored(X, inside, ones, w, ONES, 1.0, RELU) is None
    assert refine_censored(X, y, ones, w, ONES, 1.0, Link(slope=0.5)) is None
    assert refine_censored(X, np.abs(X @ w) + 1, ones, w, ONES, 1.0, RELU) is None
    assert refine_censored(X, y, ones, w + 9, 0.01 * ONES, 1.0, RELU) is None
