"""Gradient descent in four positions (Section 4)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from massart.isotropy import decompose, radial_isotropy
from massart.paper import (
    DescentStatus,
    MassartNoise,
    Scale,
    Transformation,
    descend,
    gaussian,
    paper_adversary,
    paper_mixture,
    paper_weights,
    relu_labels,
)
from massart.rows import Progress
from row_families import integers_on_subspace

EVERY_TRANSFORMATION = pytest.mark.parametrize("transformation", Transformation, ids=lambda choice: choice.name)


def noisy_gaussian(seed, n=120, d=4, eta=0.3):
    rng = np.random.default_rng(seed)
    X, w = gaussian(n, d, rng) * np.geomspace(1, 10, d), rng.standard_normal(d)
    return X, np.where(rng.random(n) < eta, 10 * rng.standard_normal(n), relu_labels(X, w)), w, rng


def table_of_figure_2a(seed):
    """Return the rows, labels and truth of Section 4."""
    rng, w = np.random.default_rng(seed), paper_weights(30)
    X = paper_mixture(240, 30, rng)
    return X, MassartNoise(0.4, paper_adversary(w)).corrupt(X, relu_labels(X, w), rng).labels, w


def radial_isotropic_steps(X, y, w, steps):
    """Section 4 as printed: each w after a step of size 1, every transform from the active rows alone."""
    points = [w]
    for _ in range(steps):
        S = X @ w >= 0
        sgn = np.where((X[S] @ w == 0) & (y[S] == 0), 1, np.sign(X[S] @ w - y[S]))
        move = np.zeros_like(w)
        for piece in decompose(X[S], 0.5):
            _, sizes, axes = np.linalg.svd(piece.matrix)
            A = (axes.T * sizes) @ axes  # the symmetric one of Lemma 2.2
            x = X[S][piece.members] @ piece.subspace @ A
            move += piece.subspace @ A @ (sgn[piece.members] @ (x / np.linalg.norm(x, axis=1)[:, None])) / S.sum()
        w = w - move
        points.append(w)
    return np.array(points)


def symmetric_map(X, S, transformation, scale):
    """Return the symmetric A of a position and the divisors c of its rows, from the definitions."""
    n, d = X.shape
    if transformation is Transformation.ORIGINAL:
        return np.eye(d), np.ones(n)
    if transformation is Transformation.NORMALIZED:
        return np.eye(d), np.linalg.norm(X, axis=1)
    if transformation is Transformation.ISOTROPIC:
        sigma = X[S].T @ X[S] / S.sum()
    else:
        A = radial_isotropy(X[S]).matrix
        sigma = np.linalg.inv(A.T @ A)
        if scale is Scale.TRACE:
            sigma *= d / np.trace(sigma)
        else:
            sigma /= np.linalg.det(sigma) ** (1 / d)
    eigenvalues, axes = np.linalg.eigh(sigma)
    A = (axes / np.sqrt(eigenvalues)) @ axes.T
    return A, np.ones(n) if transformation is Transformation.ISOTROPIC else np.linalg.norm(X @ A, axis=1)


@pytest.mark.parametrize("seed", [0, 1])
def test_radial_isotropic_descent_is_the_formula_of_section_4(seed):
    X, y, w = table_of_figure_2a(seed)
    found = descend(X, y, Transformation.RADIAL_ISOTROPIC, steps=50)
    np.testing.assert_allclose(found.trajectory, radial_isotropic_steps(X, y, np.zeros(30), 50), rtol=0, atol=1e-9)
    assert found.distances(w)[-1] < found.distances(w)[0]


@EVERY_TRANSFORMATION
@pytest.mark.parametrize("scale", Scale, ids=lambda choice: choice.name)
def test_a_step_follows_the_finite_differences_of_the_loss(transformation, scale):
    X, y, _, rng = noisy_gaussian(0)
    start = 0.1 * rng.standard_normal(4)
    S = X @ start > 0
    A, c = symmetric_map(X, S, transformation, scale)
    over_all = transformation in (Transformation.ORIGINAL, Transformation.NORMALIZED)

    def loss(w_transformed):
        rows = np.abs(y - np.maximum(X @ (A @ w_transformed), 0)) / c
        return rows[S].sum() / (len(X) if over_all else S.sum())

    w_transformed = np.linalg.solve(A, start)
    h = 1e-7
    gradient = np.array([(loss(w_transformed + h * e) - loss(w_transformed - h * e)) / (2 * h) for e in np.eye(4)])
    found = descend(X, y, transformation, steps=1, step_size=0.01, start=start, scale=scale)
    np.testing.assert_allclose(start - found.trajectory[1], 0.01 * A @ gradient, rtol=1e-4, atol=1e-8)


@EVERY_TRANSFORMATION
def test_losses_and_distances_are_those_of_the_trajectory(transformation):
    X, y, w, _ = noisy_gaussian(1)
    found = descend(X, y, transformation, steps=20, step_size=0.01)
    assert found.trajectory.shape == (21, 4)
    np.testing.assert_array_equal(found.trajectory[0], 0)
    np.testing.assert_allclose(found.losses, [np.abs(y - relu_labels(X, v)).mean() for v in found.trajectory])
    np.testing.assert_allclose(found.distances(w), [np.linalg.norm(v - w) for v in found.trajectory])
    np.testing.assert_array_equal(found.w, found.trajectory[-1])
    assert found.status is DescentStatus.COMPLETED
    assert found.losses[-1] < found.losses[0]


@pytest.mark.slow
@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_radial_isotropic_descent_is_equivariant(seed):
    """With det Sigma = 1, rows M x give the trajectory M^(-T) w for any M of determinant one."""
    X, y, _, rng = noisy_gaussian(seed, n=60, d=3)
    M = rng.standard_normal((3, 3)) + 2 * np.eye(3)
    M /= np.cbrt(np.linalg.det(M))
    ours = descend(X, y, Transformation.RADIAL_ISOTROPIC, steps=5, step_size=0.1, gamma=1e-10)
    theirs = descend(X @ M.T, y, Transformation.RADIAL_ISOTROPIC, steps=5, step_size=0.1, gamma=1e-10)
    size = np.abs(ours.trajectory).max() * np.linalg.cond(M)
    np.testing.assert_allclose(theirs.trajectory @ M, ours.trajectory, atol=1e-6 * size)


def test_isotropic_descent_is_equivariant():
    X, y, _, rng = noisy_gaussian(0)
    M = rng.standard_normal((4, 4))
    ours = descend(X, y, Transformation.ISOTROPIC, steps=5, step_size=0.1)
    theirs = descend(X @ M.T, y, Transformation.ISOTROPIC, steps=5, step_size=0.1)
    np.testing.assert_allclose(theirs.trajectory @ M, ours.trajectory, rtol=1e-6, atol=1e-8)


def test_normalized_descent_does_not_see_the_lengths_of_rows():
    X, y, _, rng = noisy_gaussian(0)
    c = rng.exponential(size=len(X))
    ours = descend(X, y, Transformation.NORMALIZED, steps=5)
    theirs = descend(X * c[:, None], y * c, Transformation.NORMALIZED, steps=5)
    np.testing.assert_allclose(theirs.trajectory, ours.trajectory, rtol=1e-6, atol=1e-9)


@pytest.mark.slow
def test_figure_2a_no_radial_isotropic_descent_diverges():
    """All tables, not their median: with transforms that started from earlier ones, 4 of 60 descents diverged."""
    ends = []
    for seed in range(20):
        X, y, w = table_of_figure_2a(seed)
        found = descend(X, y, Transformation.RADIAL_ISOTROPIC)
        assert found.status is DescentStatus.COMPLETED
        ends.append(found.distances(w)[-1])
    assert max(ends) < 1
    assert np.mean(ends) < 0.1


@pytest.mark.slow
def test_figure_2a_has_the_order_of_the_paper():
    """Research, 1000 steps: radial-isotropic 0.08, normalized 4.0, isotropic 8.3, original 10.5; the start is 11.4."""
    ends = {choice: [] for choice in Transformation}
    for seed in range(5):
        X, y, w = table_of_figure_2a(seed)
        for choice in Transformation:
            ends[choice].append(descend(X, y, choice).distances(w)[-1])
    original, normalized, isotropic, radial_isotropic = (np.mean(ends[choice]) for choice in Transformation)
    assert radial_isotropic < 0.1
    assert 1 < normalized < 7
    assert normalized < isotropic
    assert 10 < original < 11.4


@pytest.mark.slow
def test_the_factor_of_the_map_is_a_step_size():
    """Research: tr A^(-2) = d is near after 200 steps and stays at 0.3; det A = 1 takes longer and ends closer."""
    X, y, w = table_of_figure_2a(0)
    quick, close = (
        descend(X, y, Transformation.RADIAL_ISOTROPIC, scale=scale).distances(w)[[200, 1000]]
        for scale in (Scale.TRACE, Scale.DETERMINANT)
    )
    assert quick[0] < 1 < close[0]
    assert close[1] < quick[1] < 1


@EVERY_TRANSFORMATION
def test_the_transform_depends_on_the_active_set_alone(transformation):
    """A descent that starts at a point of another one, or anew with the same active rows, goes on as that did."""
    X, y, _, _ = noisy_gaussian(0)
    whole = descend(X, y, transformation, steps=40, step_size=0.05)
    later = descend(X, y, transformation, steps=10, step_size=0.05, start=whole.trajectory[30])
    np.testing.assert_array_equal(later.trajectory, whole.trajectory[30:])


def test_sgn_of_zero_is_one_where_the_label_is_zero_too():
    """Lemma 3.1 needs it (reading 4): at w0 = 0 a row with y = 0 but w*.x < 0 must push w away from x."""
    X, y = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1.0, 0.0])
    step = {
        reading: descend(X, y, Transformation.NORMALIZED, steps=1, reading=reading).w
        for reading in ("sound", "printed")
    }
    np.testing.assert_array_equal(step["sound"], [0.5, -0.5])
    np.testing.assert_array_equal(step["printed"], [0.5, 0.0])


def test_a_map_short_of_gamma_is_a_status():
    """No map in float64 comes within 1e-20; the steps are those of the best one."""
    X, y, _, _ = noisy_gaussian(0)
    found = descend(X, y, Transformation.RADIAL_ISOTROPIC, steps=10, gamma=1e-20)
    assert found.status is DescentStatus.STALLED
    within = descend(X, y, Transformation.RADIAL_ISOTROPIC, steps=10, gamma=1e-12)
    np.testing.assert_allclose(found.trajectory, within.trajectory, rtol=1e-9, atol=1e-9)


@EVERY_TRANSFORMATION
@pytest.mark.parametrize("size", [1e-200, 1e-150, 1e150, 1e200])
def test_sizes_of_rows_raise_nothing_and_give_no_nan(transformation, size):
    X, y, _, _ = noisy_gaussian(0)
    found = descend(size * X, y, transformation, steps=20)
    assert np.isfinite(found.trajectory).all()
    assert not np.isnan(found.losses).any()


def test_a_step_out_of_range_is_a_status():
    X, y, _, _ = noisy_gaussian(0)
    found = descend(X, y, Transformation.ORIGINAL, steps=5, step_size=1e308)
    assert found.status is DescentStatus.DIVERGED
    assert np.isfinite(found.trajectory).all()
    np.testing.assert_array_equal(found.trajectory[-1], found.trajectory[0])


def test_the_original_position_has_the_step_of_the_paper():
    X, y, _, _ = noisy_gaussian(0)
    ours = descend(X, y, Transformation.ORIGINAL, steps=1)
    theirs = descend(X, y, Transformation.ORIGINAL, steps=1, step_size=1.0)
    np.testing.assert_allclose(ours.w, theirs.w / 465)


@EVERY_TRANSFORMATION
def test_without_an_active_row_the_descent_stays(transformation):
    X = np.random.default_rng(0).random((30, 2)) + 0.1
    found = descend(X, relu_labels(X, [1.0, 2.0]), transformation, steps=4, start=[-1.0, -1.0])
    assert found.status is DescentStatus.INACTIVE
    np.testing.assert_array_equal(found.trajectory, np.full((5, 2), -1.0))
    assert (found.losses == found.losses[0]).all()


@EVERY_TRANSFORMATION
def test_zero_rows_and_one_column_do_no_harm(transformation):
    X = np.array([[0.0], [1.0], [2.0], [-3.0], [0.0]])
    found = descend(X, relu_labels(X, [2.0]), transformation, steps=300, step_size=0.05)
    assert found.w[0] == pytest.approx(2, abs=0.2)


@EVERY_TRANSFORMATION
def test_heavy_subspaces_and_missing_directions_do_no_harm(transformation):
    rng = np.random.default_rng(0)
    X = np.column_stack([integers_on_subspace(300, 6, 2, 250, rng).X, np.zeros(300)])
    w = rng.standard_normal(7)
    found = descend(X, relu_labels(X, w), transformation, steps=300, step_size=0.02)
    assert np.isfinite(found.trajectory).all()
    assert not found.trajectory[:, 6].any()
    assert found.losses[-1] < 0.8 * found.losses[0]


def test_the_callback_hears_every_step():
    heard: list[Progress] = []
    X, y, _, _ = noisy_gaussian(0)
    found = descend(X, y, Transformation.NORMALIZED, steps=3, callback=heard.append)
    assert [progress.step for progress in heard] == [0, 1, 2, 3]
    assert [progress.residual for progress in heard] == list(found.losses)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": -1}, "steps must not be negative"),
        ({"step_size": 0.0}, "step_size must be positive"),
        ({"start": [1.0]}, "start must have shape \\(2,\\)"),
        ({"y": [1.0]}, "y must have shape \\(3,\\)"),
        ({"reading": "literal"}, 'reading must be "sound" or "printed"'),
    ],
)
def test_misuse_is_named(changes, message):
    arguments = {"X": np.ones((3, 2)), "y": np.ones(3)} | changes
    with pytest.raises(ValueError, match=message):
        descend(arguments.pop("X"), arguments.pop("y"), Transformation.ORIGINAL, **arguments)
