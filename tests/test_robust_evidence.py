"""Exact, noisy or no rule: the decision, with exact data never called noisy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from massart.l1 import l1_regression
from massart.robust import Inliers, judge_inliers

SEEDS = st.integers(0, 2**32 - 1)
laws = settings(max_examples=5, deadline=None, derandomize=True)


def judge(X, y, *candidates, **options):
    return judge_inliers(X, y, candidates, rng=np.random.default_rng(0), **options)


def data(seed, n=200, d=3):
    rng = np.random.default_rng(seed)
    X, w = rng.standard_normal((n, d)), rng.standard_normal(d)
    return rng, X, w


@given(SEEDS, st.sampled_from([0.0, 0.3, 0.45]))
@laws
def test_exact_data_are_never_called_noisy(seed, eta) -> None:
    rng, X, w = data(seed)
    wrong = rng.permutation(200) < 200 * eta
    evidence = judge(X, np.where(wrong, rng.standard_normal(200), X @ w))
    assert evidence.inliers is Inliers.EXACT
    assert evidence.n_agree == 200 - wrong.sum()


@given(SEEDS, st.sampled_from([0.01, 0.5]), st.sampled_from([0.0, 0.35]))
@laws
def test_a_noisy_rule_is_found(seed, sigma, eta) -> None:
    rng, X, w = data(seed)
    w /= np.linalg.norm(w)
    y = np.where(rng.random(200) < eta, 30.0, X @ w + sigma * rng.standard_normal(200))
    evidence = judge(X, y)
    assert evidence.inliers is Inliers.NOISY
    assert evidence.explained > 0.3
    assert evidence.deviations > 8


@given(SEEDS, st.sampled_from(["standard_normal", "standard_cauchy", "exponential"]))
@laws
def test_labels_that_ignore_the_columns_have_no_rule(seed, law) -> None:
    rng, X, _ = data(seed)
    assert judge(X, getattr(rng, law)(size=200)).inliers is Inliers.NO_RULE


def test_an_exact_rule_of_a_third_is_not_noise() -> None:
    rng, X, w = data(0)
    wrong = rng.permutation(200) < 130
    evidence = judge(X, np.where(wrong, 10 * rng.standard_normal(200), X @ w), w)
    assert evidence.inliers is Inliers.EXACT
    assert evidence.share_agree == pytest.approx(0.35)


def test_labels_of_few_values_agree_by_chance() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(400), rng.integers(0, 2, (400, 3))])
    y = rng.integers(1, 6, 400).astype(float)
    evidence = judge(X, y, l1_regression(X, y).coef)
    assert evidence.inliers is Inliers.NO_RULE
    assert evidence.chance_agree > 40


def test_rounded_labels_are_exact_at_their_tolerance() -> None:
    _, X, w = data(1)
    y = np.round(X @ w, 2)
    assert judge(X, y, w, tolerance=0.005001).inliers is Inliers.EXACT
    assert judge(X, y, w).inliers is Inliers.NOISY


def test_too_few_rows_have_no_rule() -> None:
    rng, X, _ = data(2, n=3, d=4)
    assert judge(X, rng.standard_normal(3)).inliers is Inliers.NO_RULE


def test_a_sample_stands_for_many_rows() -> None:
    rng, X, w = data(3, n=5000)
    y = X @ w + rng.standard_normal(5000)
    assert judge(X, y, n_permutations=3).inliers is Inliers.NOISY


@pytest.mark.parametrize(
    ("options", "message"),
    [({"n_permutations": 1}, "n_permutations must"), ({"tolerance": -1.0}, "tolerance must"), ({"y": [[1.0]]}, "y ")],
)
def test_bad_input_is_named(options, message) -> None:
    arguments = {"X": [[1.0]], "y": [1.0], "rng": np.random.default_rng(0)} | options
    with pytest.raises(ValueError, match=message):
        judge_inliers(**arguments)
