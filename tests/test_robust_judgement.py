"""Exact, noisy or no rule: the decision, with exact data never called noisy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from massart.l1 import l1_regression
from massart.robust import Inliers, judge_inliers, robust_regression

SEEDS = st.integers(0, 2**32 - 1)
laws = settings(max_examples=5, deadline=None, derandomize=True)


def judge(X, y, *candidates):
    candidates = candidates or (robust_regression(X, y, rng=np.random.default_rng(0)).coef,)
    return judge_inliers(X, y, candidates, rng=np.random.default_rng(0))


def data(seed, n=200, d=3):
    rng = np.random.default_rng(seed)
    X, w = rng.standard_normal((n, d)), rng.standard_normal(d)
    return rng, X, w


@given(SEEDS, st.sampled_from([0.0, 0.3, 0.45]))
@laws
def test_exact_data_are_never_called_noisy(seed, eta) -> None:
    rng, X, w = data(seed)
    wrong = rng.permutation(200) < 200 * eta
    assert judge(X, np.where(wrong, rng.standard_normal(200), X @ w)).inliers is Inliers.EXACT


@pytest.mark.slow
@given(SEEDS, st.sampled_from([0.01, 0.5]), st.sampled_from([0.0, 0.35]))
@laws
def test_a_noisy_rule_is_found(seed, sigma, eta) -> None:
    rng, X, w = data(seed)
    w /= np.linalg.norm(w)
    y = np.where(rng.random(200) < eta, 30.0, X @ w + sigma * rng.standard_normal(200))
    judgement = judge(X, y)
    assert judgement.inliers is Inliers.NOISY
    assert judgement.p_value < 0.01


@given(SEEDS)
@laws
def test_labels_far_off_to_both_sides_hide_no_noisy_rule(seed) -> None:
    # Scores of ranks see little of it: a fit of one half, judged by the other, does.
    rng, X, w = data(seed, n=100, d=5)
    w *= 3 / np.linalg.norm(w)
    off = rng.uniform(20, 100, 100) * rng.choice((-1, 1), 100)
    y = X @ w + rng.standard_normal(100) + np.where(rng.permutation(100) < 42, off, 0)
    assert judge(X, y).inliers is Inliers.NOISY


@pytest.mark.slow
@given(SEEDS, st.sampled_from(["standard_normal", "standard_cauchy", "exponential"]))
@laws
def test_labels_that_ignore_the_columns_have_no_rule(seed, law) -> None:
    rng, X, _ = data(seed)
    assert judge(X, getattr(rng, law)(size=200)).inliers is Inliers.NO_RULE


@pytest.mark.full(first=1)
@pytest.mark.slow
@pytest.mark.parametrize("law", ["normal", "cauchy", "grades"])
def test_p_values_of_labels_without_a_rule_are_no_smaller_than_they_say(law) -> None:
    """Also with candidates that have seen all labels, and columns of flags."""
    p_values = []
    for seed in range(40):
        rng = np.random.default_rng([1, seed])
        X = np.column_stack([np.ones(60), rng.integers(0, 2, (60, 4)), rng.standard_normal((60, 2))])
        y = {
            "normal": rng.standard_normal(60),
            "cauchy": rng.standard_cauchy(60),
            "grades": rng.integers(1, 6, 60).astype(float),
        }[law]
        p_values.append(judge(X, y, np.linalg.lstsq(X, y, rcond=None)[0]).p_value)
    assert np.mean(np.array(p_values) <= 0.2) < 0.2 + 3 * np.sqrt(0.16 / 40)
    assert np.mean(np.array(p_values) <= 0.005) < 0.1


def test_an_exact_rule_of_a_third_is_not_noise() -> None:
    rng, X, w = data(0)
    wrong = rng.permutation(200) < 130
    assert judge(X, np.where(wrong, 10 * rng.standard_normal(200), X @ w), w).inliers is Inliers.EXACT


def test_labels_of_few_values_agree_by_chance() -> None:
    rng = np.random.default_rng(1)
    X = np.column_stack([np.ones(400), rng.integers(0, 2, (400, 3))])
    y = rng.integers(1, 6, 400).astype(float)
    coef = l1_regression(X, y).coef
    assert judge(X, y, coef).inliers is Inliers.NO_RULE
    assert (np.abs(y - X @ coef) < 1e-9).sum() > 40


def test_too_few_rows_have_no_rule() -> None:
    rng, X, _ = data(2, n=3, d=4)
    assert judge(X, rng.standard_normal(3)).inliers is Inliers.NO_RULE
