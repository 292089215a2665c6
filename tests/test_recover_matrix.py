"""Recovery of rows in memory by a linear formula: exact for any adversary, and honest where it cannot be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arrays import recovered
from massart.certificate import Verdict
from massart.isotropy import decompose
from massart.paper import (
    MassartNoise,
    algorithm_2,
    decoy,
    far_constant,
    flip,
    gaussian,
    gross,
    linear_labels,
    negate,
    paper_adversary,
    paper_mixture,
    paper_weights,
    scale,
    zero,
)
from row_families import cauchy, integers_on_subspace, oppose, scaled_columns

ADVERSARIES = {
    "negate": lambda w, rng: negate(w),
    "flip": lambda w, rng: flip(w, linear_labels),
    "constant": lambda w, rng: far_constant,
    "zero": lambda w, rng: zero,
    "gross": lambda w, rng: gross(),
    "decoy": lambda w, rng: decoy(rng.standard_normal(w.size), linear_labels),
    "oppose": lambda w, rng: oppose(w, linear_labels),
    "1.1": lambda w, rng: scale(1.1),
    "-100": lambda w, rng: scale(-100.0),
}


@pytest.mark.parametrize("eta", [0.15, 0.35])
def test_without_search_it_is_algorithm_2(eta):
    rng = np.random.default_rng(0)
    X, w = paper_mixture(120, 30, rng), paper_weights(30)
    y = MassartNoise(eta, paper_adversary(w)).corrupt(X, X @ w, rng).labels
    np.testing.assert_allclose(recovered(X, y, search=False).coef, algorithm_2(X, y).w, rtol=1e-8, atol=1e-8)


@pytest.mark.slow
@settings(max_examples=25)
@given(st.sampled_from(sorted(ADVERSARIES)), st.floats(0, 0.3), st.integers(0, 2**32 - 1))
def test_recovery_is_exact_for_any_adversary(name, eta, seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 6))
    X = [gaussian, cauchy, scaled_columns][int(rng.integers(3))](40 * d + 40, d, rng)
    w = rng.standard_normal(d)
    y = MassartNoise(eta, ADVERSARIES[name](w, rng)).corrupt(X, X @ w, rng).labels
    found = recovered(X, y, rng=rng)
    # A column 1e8 times smaller than another has its coefficient from the last digits of the labels.
    assert np.abs(X @ (found.coef - w)).max() <= 1e-13 * (np.abs(X) @ np.abs(w)).max()
    assert found.certificate.verdict.stands
    np.testing.assert_array_equal(found.agree, np.abs(y - X @ w) <= 1e-12 * (np.abs(X) @ np.abs(w) + np.abs(y)))


@pytest.mark.slow
def test_heavy_subspaces_are_solved_level_by_level():
    for seed in range(5):
        planted = integers_on_subspace(500, 9, 3, 400, np.random.default_rng(seed))
        rng = np.random.default_rng(seed)
        w = rng.integers(-5, 6, 9).astype(float)
        y = MassartNoise(0.25, scale(-1.0)).corrupt(planted.X, planted.X @ w, rng).labels
        found = recovered(planted.X, y)
        assert len(decompose(planted.X)) > 1
        np.testing.assert_allclose(found.coef, w, atol=1e-10)
        assert found.certificate.verdict.stands


def test_a_false_majority_on_a_subspace_is_not_claimed():
    """90 % of the rows in a plane: a formula right there and wrong beyond fits a majority of all rows."""
    planted = integers_on_subspace(400, 6, 3, 360, np.random.default_rng(0))
    X = planted.X
    w = np.array([1.0, -2, 3, 4, -5, 6])
    rng = np.random.default_rng(1)
    y = X @ w
    outside = ~planted.inside
    y[outside] = rng.integers(-40, 40, outside.sum())
    found = recovered(X, y)
    assert 2 * found.agree.sum() > len(y)
    assert found.certificate.thin or not found.certificate.verdict.stands
    assert found.certificate.rank == 3  # what is claimed is the plane's, and the terms left out are named


def test_undetermined_columns_are_named():
    rng = np.random.default_rng(0)
    X = gaussian(60, 3, rng)
    X = np.column_stack([X, 2 * X[:, 0]])
    found = recovered(X, X[:, :3] @ [1.0, 2.0, 3.0])
    assert found.certificate.verdict is Verdict.PROVEN
    assert (found.certificate.undetermined_columns, found.certificate.rank) == (((0, 3),), 3)
    np.testing.assert_allclose(X @ found.certificate.undetermined, 0, atol=1e-12)
    assert found.agree.all()


@pytest.mark.parametrize("seed", range(5))
def test_rows_of_columns_without_effect_agree_with_a_label_of_zero(seed):
    """Least squares leaves 1e-18 for a coefficient of 0, and a row of that column alone has a size as small."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 3))
    X[:100, [0, 2]] = 0
    y = X @ [1.0, 0, -2]
    y[::5] = 7.3
    found = recovered(X, y)
    assert found.coef[1] == 0
    np.testing.assert_array_equal(found.agree, y != 7.3)
