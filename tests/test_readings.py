"""The numbers of the page on readings: where the paper's text is open, or wrong for finite samples."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from massart.paper import (
    Answer,
    MassartNoise,
    ReLUStatus,
    Scale,
    Transformation,
    algorithm_1,
    algorithm_2,
    decompose,
    decoy,
    descend,
    gaussian,
    l1_gradient,
    linear_labels,
    massart_rate,
    negate,
    paper_adversary,
    paper_mixture,
    paper_weights,
    radial_isotropy,
    recover_relu,
    relu_labels,
    remove_outliers,
    separation_margin,
    separation_oracle,
    where,
    zero,
)

READINGS = ("printed", "sound")


def relative_error(found, w):
    return float(np.linalg.norm(found - w) / np.linalg.norm(w))


def test_the_page_has_all_eighteen():
    page = (Path(__file__).parents[1] / "docs" / "readings.rst").read_text(encoding="utf-8")
    headings = re.findall(r"^(\d+)\. .*\n~+$", page, re.MULTILINE)
    assert sorted(map(int, headings)) == list(range(1, 19))


def test_1_the_count_accepts_zero():
    clean, zeroed = dict.fromkeys(READINGS, 0), dict.fromkeys(READINGS, 0)
    for seed in range(100):
        rng = np.random.default_rng([61, seed])
        X, w = gaussian(150, 3, rng), rng.standard_normal(3)
        y = relu_labels(X, w)
        y_zeroed = MassartNoise(0.3, zero).corrupt(X, y, rng).labels
        for reading in READINGS:
            clean[reading] += separation_oracle(X, y, np.zeros(3), reading=reading).answer is Answer.YES
            zeroed[reading] += separation_oracle(X, y_zeroed, np.zeros(3), reading=reading).answer is Answer.YES
    assert 35 <= clean["printed"] <= 65
    assert zeroed["printed"] == 100
    assert clean["sound"] == zeroed["sound"] == 0


def test_2_zero_rows_accept_everything():
    rng = np.random.default_rng(62)
    X, w = gaussian(60, 3, rng), rng.standard_normal(3)
    rows, y = np.vstack([X, np.zeros_like(X)]), np.append(relu_labels(X, w), np.zeros(60))
    for _ in range(20):
        query = rng.standard_normal(3)
        printed, sound = (separation_oracle(rows, y, query, reading=reading) for reading in READINGS)
        assert (printed.answer, sound.answer) == (Answer.YES, Answer.CUT)
        alone = separation_oracle(X, y[:60], query)  # as if the zero rows were not there
        np.testing.assert_allclose(sound.normal, alone.normal)


@pytest.mark.parametrize(("d", "share"), [(3, 0.6), (4, 0.6), (6, 0.6)])
def test_3_no_count_is_sound(d, share):
    accepted = dict.fromkeys(READINGS, 0)
    for seed in range(10):
        rng = np.random.default_rng([63, d, seed])
        X, w = gaussian(80 * d, d, rng), rng.standard_normal(d)
        X[: int(share * len(X)), -1] = 0
        w0 = w + np.eye(d)[-1]
        cheat = where(lambda X: X[:, -1] != 0, decoy(w0, relu_labels))
        y = MassartNoise(0.3, cheat).corrupt(X, relu_labels(X, w), rng).labels
        for reading in READINGS:
            accepted[reading] += separation_oracle(X, y, w0, reading=reading).answer is Answer.YES
        assert separation_oracle(X, y, w).answer is Answer.YES
    assert accepted == {"printed": 10, "sound": 0}


def test_4_the_first_cut_at_zero():
    lost = dict.fromkeys(READINGS, 0)
    for seed in range(100):
        rng = np.random.default_rng([64, seed])
        X, w = gaussian(200, 3, rng), rng.standard_normal(3)
        y = MassartNoise(0.4, negate(w)).corrupt(X, relu_labels(X, w), rng).labels
        for reading in READINGS:
            lost[reading] += separation_oracle(X, y, np.zeros(3), reading=reading).normal @ w >= 0
    assert lost["printed"] > 90
    assert lost["sound"] <= 5


def test_4_the_first_step_of_a_descent():
    """Three of five labels are right, and the truth is 1."""
    X, y = np.array([[1.0], [2.0], [3.0], [-1.0], [-2.0]]), np.array([1.0, -2.0, -3.0, 0.0, 0.0])
    steps = [descend(X, y, Transformation.RADIAL_ISOTROPIC, steps=1, reading=reading).w[0] for reading in READINGS]
    assert steps[0] < 0 < steps[1]


def test_5_half_of_the_residuals_have_no_say():
    rng = np.random.default_rng(65)
    X = gaussian(300, 2, rng)
    X[:, 0] = np.abs(X[:, 0]) + 6  # every row is active
    X[:180, 1] = 0
    y = linear_labels(X, [1.0, 1.0])
    y[:72] = -5
    printed, sound = (separation_oracle(X, y, [1.0, 2.0], gamma=0.1, reading=reading) for reading in READINGS)
    np.testing.assert_array_equal(sound.weights > 0, X[:, 1] != 0)
    np.testing.assert_array_equal(printed.weights > 0, X[:, 1] > 0)


def test_6_the_last_line_needs_a_symmetric_map():
    rng = np.random.default_rng(66)
    X, w = gaussian(100, 4, rng) * [1, 10, 100, 1000], rng.standard_normal(4)
    A = radial_isotropy(X).matrix
    np.testing.assert_array_equal(A, A.T)
    assert relative_error(algorithm_1(X, X @ w).w, w) < 1e-9
    rotation = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    in_position = np.linalg.solve((rotation @ A).T, w)
    assert relative_error((rotation @ A) @ in_position, w) > 0.1
    assert relative_error((rotation @ A).T @ in_position, w) < 1e-9


def test_7_the_normal_lies_in_the_heavy_subspace():
    rng = np.random.default_rng(67)
    V = np.linalg.qr(gaussian(5, 2, rng))[0]
    X, w = gaussian(200, 5, rng), rng.standard_normal(5)
    X[:170] = X[:170] @ V @ V.T
    cut = separation_oracle(X, relu_labels(X, w), w + V[:, 0], gamma=0.1)
    assert cut.answer is Answer.CUT
    assert cut.subspace.shape == (5, 2)
    np.testing.assert_allclose(V @ V.T @ cut.normal, cut.normal, atol=1e-10)


def test_8_lying_in_a_subspace_is_a_rank_decision():
    rng = np.random.default_rng(68)
    V = np.linalg.qr(gaussian(6, 3, rng))[0]
    X = gaussian(300, 6, rng)
    X[:240] = X[:240] @ V @ V.T
    assert (X[:240] @ V @ V.T == X[:240]).all(axis=1).sum() < 24
    first, second = decompose(X)
    np.testing.assert_array_equal(np.flatnonzero(first.members), np.arange(240))
    assert second.members.sum() == 60


@pytest.mark.parametrize("gamma", [0.5, 0.2])
def test_9_a_heavy_subspace_is_seen_late(gamma):
    """It must be split off where less than (1 - gamma) (1 - k/d) of the rows is outside."""
    rng = np.random.default_rng(69)
    limit = (1 - gamma) / 2
    for outside, pieces in ((limit - 0.04, 2), (limit + 0.06, 1)):
        X = gaussian(400, 6, rng)
        X[: round(400 * (1 - outside)), 3:] = 0
        assert len(decompose(X, gamma)) == pieces
        y = MassartNoise(0.2, negate(np.ones(6))).corrupt(X, linear_labels(X, np.ones(6)), rng).labels
        assert relative_error(algorithm_2(X, y, gamma).w, np.ones(6)) < 1e-9


@pytest.mark.slow
def test_10_the_answer_depends_on_the_position():
    exact = np.zeros(3, dtype=int)
    for seed in range(20):
        rng = np.random.default_rng([70, seed])
        X, w = paper_mixture(120, 30, rng), paper_weights(30)
        y = MassartNoise(0.45, paper_adversary(w)).corrupt(X, linear_labels(X, w), rng).labels
        answers = (algorithm_1(X, y, 1e-3), algorithm_1(X, y), algorithm_1(X, y, position="most_effective"))
        exact += [relative_error(found.w, w) < 1e-9 for found in answers]
    assert exact[0] < exact[1] < exact[2]
    assert exact[2] >= 19


def relu_table(seed):
    rng = np.random.default_rng(seed)
    X, w = gaussian(300, 3, rng), rng.standard_normal(3)
    return X, MassartNoise(0.3, negate(w)).corrupt(X, relu_labels(X, w), rng).labels, w


def test_11_the_radius_of_the_first_ball():
    X, y, w = relu_table(71)
    size = np.linalg.norm(w)
    printed, sound = (recover_relu(X, y, radius=size / 2, reading=reading) for reading in READINGS)
    assert printed.status is ReLUStatus.EMPTY
    assert relative_error(printed.w, w) > 0.2
    assert sound.status is ReLUStatus.ROUNDED
    assert relative_error(sound.w, w) < 1e-9
    for radius in (2 * size, 1e6 * size, None):
        found = recover_relu(X, y, radius=radius)
        assert found.status is ReLUStatus.ACCEPTED
        assert relative_error(found.w, w) < 1e-9


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-8])
def test_12_the_tolerance_is_the_error_of_the_printed_reading_alone(tol):
    X, y, w = relu_table(72)
    radius = 4 * np.linalg.norm(w)
    printed, sound = (recover_relu(X, y, radius=radius, tol=tol, reading=reading) for reading in READINGS)
    assert printed.status is sound.status is ReLUStatus.ACCEPTED
    assert tol / 100 < relative_error(printed.w, w) < 100 * tol
    assert relative_error(sound.w, w) < 1e-12


def test_13_no_row_may_be_active_and_few_have_a_span():
    rng = np.random.default_rng(73)
    X, w, query = paper_mixture(240, 30, rng), paper_weights(30), -np.ones(30)
    y = relu_labels(X, w)
    assert not (X @ query >= 0).any()
    for reading in READINGS:
        cut = separation_oracle(X, y, query, reading=reading)
        assert cut.answer is Answer.CUT
        assert cut.normal @ w < cut.normal @ query
        direction = -(X / np.linalg.norm(X, axis=1)[:, None])[y > 0].sum(axis=0)
        np.testing.assert_allclose(cut.normal, direction / 240)
        assert separation_oracle(X, np.zeros(240), query, reading=reading).answer is not Answer.CUT
    few = separation_oracle([[1.0, 0, 0], [0, 1, 0], [-1, -1, 5]], [2.0, 0, 0], [1.0, 1, 0])  # two of three are active
    assert few.subspace.shape[1] < 3
    assert few.normal[2] == 0


def test_14_lemma_3_1_needs_short_rows():
    linear = {"f": lambda t: t, "derivative": np.ones_like}
    X, y, query, truth = np.array([[1.0, 100.0], [0.0, 0.001]]), np.zeros(2), np.array([1.0, 0.0]), np.zeros(2)
    assert separation_margin(X, y, query, truth, **linear) == 0.5
    normal = l1_gradient(X, y, query, **linear)
    assert normal @ [0, 0.2] > normal @ query  # inside of the ball of radius 1/4, and cut off


def test_15_the_scale_of_the_map_is_a_step_size():
    rng = np.random.default_rng(75)
    X, w = paper_mixture(240, 30, rng), paper_weights(30)
    y = MassartNoise(0.4, paper_adversary(w)).corrupt(X, relu_labels(X, w), rng).labels
    ends = {
        scale: descend(X, y, Transformation.RADIAL_ISOTROPIC, steps=200, scale=scale).distances(w)[-1]
        for scale in Scale
    }
    assert ends[Scale.DETERMINANT] > 4 * ends[Scale.TRACE]


def test_16_the_printed_beta_removes_nothing():
    rng = np.random.default_rng(76)
    X = gaussian(1000, 6, rng)
    X[0] *= 1e6
    printed = remove_outliers(X, alpha=0.025, beta=6 * 53 / 0.025)
    assert printed.inside.all()
    assert printed.ratio <= 1000 < 12_720 == round(6 * 53 / 0.025)
    ours = remove_outliers(X, alpha=0.025)
    assert not ours.inside[0]
    assert ours.share >= 0.975
    assert ours.ratio < 25


def test_17_simulation_needs_a_rate_below_one_half():
    assert massart_rate(0.45, 100, 0.05) > 0.5 > massart_rate(0.45, 1000, 0.05)
