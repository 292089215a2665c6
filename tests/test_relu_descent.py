"""Gradient descent in four positions (Section 4)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from massart.isotropy import radial_isotropy
from massart.noise import MassartNoise, gaussian, paper_adversary, paper_mixture, paper_weights, relu
from massart.progress import Progress
from massart.relu import RELU, Link
from massart.relu.descent import ORIGINAL_STEP_SIZE, Scale, Status, Transformation, descend
from row_families import integers_on_subspace

EVERY_TRANSFORMATION = pytest.mark.parametrize("transformation", Transformation, ids=lambda choice: choice.name)


def noisy_gaussian(seed, n=120, d=4, eta=0.3, link=RELU):
    rng = np.random.default_rng(seed)
    X, w = gaussian(n, d, rng) * np.geomspace(1, 10, d), rng.standard_normal(d)
    y = link(X @ w)
    return X, np.where(rng.random(n) < eta, 10 * rng.standard_normal(n), y), w, rng


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
        elif scale is Scale.LARGEST:
            sigma /= np.linalg.eigvalsh(sigma)[-1]
        else:
            sigma /= np.linalg.det(sigma) ** (1 / d)
    eigenvalues, axes = np.linalg.eigh(sigma)
    A = (axes / np.sqrt(eigenvalues)) @ axes.T
    return A, np.ones(n) if transformation is Transformation.ISOTROPIC else np.linalg.norm(X @ A, axis=1)


@EVERY_TRANSFORMATION
@pytest.mark.parametrize("scale", Scale, ids=lambda choice: choice.name)
@pytest.mark.parametrize("link", [RELU, Link(slope=0.1), Link(lower=-2, upper=3)], ids=["ReLU", "leaky", "clip"])
def test_a_step_follows_the_finite_differences_of_the_loss(transformation, scale, link):
    X, y, _, rng = noisy_gaussian(0, link=link)
    start = 0.1 * rng.standard_normal(4)
    S = link.derivative(X @ start) > 0
    A, c = symmetric_map(X, S, transformation, scale)
    over_all = transformation in (Transformation.ORIGINAL, Transformation.NORMALIZED)

    def loss(w_transformed):
        rows = np.abs(y - link(X @ (A @ w_transformed))) / c
        return rows[S].sum() / (len(X) if over_all else S.sum())

    w_transformed = np.linalg.solve(A, start)
    h = 1e-7
    gradient = np.array([(loss(w_transformed + h * e) - loss(w_transformed - h * e)) / (2 * h) for e in np.eye(4)])
    found = descend(X, y, transformation, steps=1, step_size=0.01, start=start, scale=scale, link=link)
    np.testing.assert_allclose(start - found.trajectory[1], 0.01 * A @ gradient, rtol=1e-4, atol=1e-8)


@EVERY_TRANSFORMATION
def test_losses_and_distances_are_those_of_the_trajectory(transformation):
    X, y, w, _ = noisy_gaussian(1)
    found = descend(X, y, transformation, steps=20, step_size=0.01)
    assert found.trajectory.shape == (21, 4)
    np.testing.assert_array_equal(found.trajectory[0], 0)
    np.testing.assert_allclose(found.losses, [np.abs(y - relu(X, v)).mean() for v in found.trajectory])
    np.testing.assert_allclose(found.distances(w), [np.linalg.norm(v - w) for v in found.trajectory])
    np.testing.assert_array_equal(found.coef, found.trajectory[-1])
    assert found.status is Status.COMPLETED
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
def test_figure_2a_has_the_order_of_the_paper():
    """Research, 1000 steps: radial-isotropic 0.14, normalized 3.4, isotropic 8.0, original 10.6; the start is 11.4."""
    w = paper_weights(30)
    distance = {choice: [] for choice in Transformation}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = paper_mixture(240, 30, rng)
        y = MassartNoise(0.4, paper_adversary(w)).corrupt(X, relu(X, w), rng).labels
        for choice in Transformation:
            distance[choice].append(descend(X, y, choice, steps=1000).distances(w)[-1])
    median = {choice: float(np.median(values)) for choice, values in distance.items()}
    assert median[Transformation.RADIAL_ISOTROPIC] < 0.5
    assert 1 < median[Transformation.NORMALIZED] < 5
    assert 5 < median[Transformation.ISOTROPIC]
    assert 10 < median[Transformation.ORIGINAL] < 11.4


@pytest.mark.slow
def test_the_scale_of_the_map_sets_speed_and_floor():
    """Research: tr Sigma = d is there after 200 steps and stays at 0.4; det Sigma = 1 takes longer and ends closer."""
    w = paper_weights(30)
    rng = np.random.default_rng(0)
    X = paper_mixture(240, 30, rng)
    y = MassartNoise(0.4, paper_adversary(w)).corrupt(X, relu(X, w), rng).labels
    at = {
        scale: descend(X, y, Transformation.RADIAL_ISOTROPIC, scale=scale).distances(w)[[200, 1000]] for scale in Scale
    }
    assert at[Scale.TRACE][0] < 1 < at[Scale.DETERMINANT][0]
    assert at[Scale.DETERMINANT][1] < at[Scale.TRACE][1] < at[Scale.LARGEST][1]


def test_the_original_position_has_the_step_of_the_paper():
    X, y, _, _ = noisy_gaussian(0)
    ours = descend(X, y, Transformation.ORIGINAL, steps=1)
    theirs = descend(X, y, Transformation.ORIGINAL, steps=1, step_size=1.0)
    np.testing.assert_allclose(ours.coef, ORIGINAL_STEP_SIZE * theirs.coef)


@EVERY_TRANSFORMATION
def test_without_an_active_row_the_descent_stays(transformation):
    X = np.random.default_rng(0).random((30, 2)) + 0.1
    found = descend(X, relu(X, [1.0, 2.0]), transformation, steps=4, start=[-1.0, -1.0])
    assert found.status is Status.INACTIVE
    np.testing.assert_array_equal(found.trajectory, np.full((5, 2), -1.0))
    assert (found.losses == found.losses[0]).all()


@EVERY_TRANSFORMATION
def test_zero_rows_and_one_column_do_no_harm(transformation):
    X = np.array([[0.0], [1.0], [2.0], [-3.0], [0.0]])
    found = descend(X, relu(X, [2.0]), transformation, steps=300, step_size=0.05)
    assert found.coef[0] == pytest.approx(2, abs=0.2)


@EVERY_TRANSFORMATION
def test_heavy_subspaces_and_missing_directions_do_no_harm(transformation):
    rng = np.random.default_rng(0)
    X = np.column_stack([integers_on_subspace(300, 6, 2, 250, rng).X, np.zeros(300)])
    w = rng.standard_normal(7)
    found = descend(X, relu(X, w), transformation, steps=300, step_size=0.02)
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
    ],
)
def test_misuse_is_named(changes, message):
    arguments = {"X": np.ones((3, 2)), "y": np.ones(3)} | changes
    with pytest.raises(ValueError, match=message):
        descend(arguments.pop("X"), arguments.pop("y"), Transformation.ORIGINAL, **arguments)
