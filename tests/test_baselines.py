"""Baselines: each recovers where it should, fails by NaN, and says what it needs."""

from __future__ import annotations

import importlib.util
import pickle
import shutil

import numpy as np
import pytest
from numpy.typing import NDArray

from massart.experiments.baselines import LINEAR, RELU, Baseline, linear_given_rate, missing_line, tuned_ridge
from massart.experiments.baselines.linear import choose_penalty, torrent
from massart.experiments.baselines.relu import karmakar_sgd
from massart.paper import MassartNoise, far_constant, gaussian, linear_labels, relu_labels, scale

FloatArray = NDArray[np.float64]

ALL = {**LINEAR, **RELU}
IN_PROCESS = [key for key, method in ALL.items() if method.requires is None or not method.requires.startswith("R: ")]


def table(n: int, d: int, share: float, seed: int, size: float = 10.0) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Gaussian rows; a share of the labels is off by random amounts, whatever the row is."""
    rng = np.random.default_rng(seed)
    X, w = gaussian(n, d, rng), rng.standard_normal(d)
    y = linear_labels(X, w)
    wrong = rng.permutation(n)[: round(share * n)]
    y[wrong] += size * rng.standard_normal(len(wrong))
    return X, y, w


def relu_table(n: int, d: int, seed: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    X, w = gaussian(n, d, rng), rng.standard_normal(d)
    return X, relu_labels(X, w), w


def run(method: Baseline, X: FloatArray, y: FloatArray, seed: int = 0) -> FloatArray:
    if missing := method.missing("the method"):
        pytest.skip(missing)
    return method.fit(X, y, np.random.default_rng(seed))


def error(coef: FloatArray, truth: FloatArray) -> float:
    return float(np.linalg.norm(coef - truth) / np.linalg.norm(truth))


@pytest.mark.slow
@pytest.mark.parametrize("key", sorted(set(LINEAR) & set(IN_PROCESS)))
def test_every_linear_method_is_right_without_wrong_labels(key: str) -> None:
    X, y, w = table(80, 4, 0.0, 1)
    assert error(run(LINEAR[key], X, y), w) < 1e-5


# Where each method's paper or manual says that it works: (rows, columns, share of wrong labels, relative error).
REGIMES = {
    "naive_l1": (120, 10, 0.2, 1e-12),
    "normalized_l1": (120, 10, 0.2, 1e-12),
    "algorithm_1": (120, 10, 0.3, 1e-12),
    "algorithm_1_tight": (120, 10, 0.3, 1e-12),
    "algorithm_1_effective": (120, 10, 0.3, 1e-12),
    "massart": (120, 10, 0.4, 1e-12),
    "huber": (120, 10, 0.1, 1e-4),
    "ransac": (120, 10, 0.3, 1e-12),
    "torrent": (200, 10, 0.2, 1e-12),
    "ada_crr": (200, 10, 0.2, 1e-12),
    "lmrob": (120, 10, 0.2, 1e-8),
    "lts": (120, 10, 0.3, 1e-12),
}


@pytest.mark.slow
@pytest.mark.parametrize("key", sorted(REGIMES))
def test_method_recovers_in_its_regime(key: str) -> None:
    n, d, share, tolerance = REGIMES[key]
    X, y, w = table(n, d, share, 2)
    assert error(run(LINEAR[key], X, y), w) < tolerance


def test_squares_are_not_robust() -> None:
    X, y, w = table(120, 10, 0.2, 2)
    assert error(run(LINEAR["least_squares"], X, y), w) > 1e-2


def test_ada_crr_bears_more_oblivious_errors_than_torrent() -> None:
    X, y, w = table(1000, 5, 0.6, 3, size=100.0)
    assert error(run(LINEAR["ada_crr"], X, y), w) < 1e-12
    assert error(run(LINEAR["torrent"], X, y), w) > 1e-2


def test_torrent_keeps_the_share_it_is_told() -> None:
    X, y, w = table(300, 5, 0.3, 4)
    rng = np.random.default_rng(0)
    assert error(torrent(X, y, rng, beta=0.35), w) < 1e-12
    assert error(torrent(X, y, rng, beta=0.25), w) > 1e-4


def test_ridge_tuned_on_clean_data_keeps_its_penalty() -> None:
    rng = np.random.default_rng(9)
    X, w = gaussian(60, 20, rng), rng.standard_normal(20)
    y = linear_labels(X, w) + 3 * rng.standard_normal(60)
    method = tuned_ridge(X, y)
    penalty = choose_penalty(X, y)
    bad = y.copy()
    bad[:10] *= -100
    expected = np.linalg.solve(X.T @ X + penalty * np.eye(20), X.T @ bad)
    np.testing.assert_allclose(method.fit(X, bad, rng), expected, rtol=1e-8)
    assert penalty < choose_penalty(X, bad)
    assert error(method.fit(X, y, rng), w) < error(run(LINEAR["least_squares"], X, y), w)


@pytest.mark.slow
@pytest.mark.parametrize("key", sorted(RELU))
def test_every_relu_method_is_right_without_wrong_labels(key: str) -> None:
    X, y, w = relu_table(200, 4, 10)
    assert error(run(RELU[key], X, y), w) < 1e-9


@pytest.mark.slow
def test_karmakar_bears_small_bounded_errors_and_not_far_ones() -> None:
    X, y, w = relu_table(600, 5, 11)
    rng = np.random.default_rng(0)
    bound = 0.05
    attacked = rng.random(600) < 0.2
    small = karmakar_sgd(X, y + bound * attacked, rng, theta=bound)
    assert error(small, w) < 0.05
    far = MassartNoise(0.2, far_constant).corrupt(X, y, rng).labels
    assert error(karmakar_sgd(X, far, rng), w) > 0.1


def test_karmakar_takes_no_row_below_its_bound() -> None:
    X, y, _ = relu_table(50, 3, 12)
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(karmakar_sgd(X, y, rng, theta=float(y.max())), np.zeros(3))


@pytest.mark.parametrize("key", ["clad", "massart_relu", "published_relu"])
def test_relu_methods_bear_some_wrong_labels(key: str) -> None:
    X, y, w = relu_table(400, 4, 13)
    labels = MassartNoise(0.15, scale(1.5)).corrupt(X, y, np.random.default_rng(1)).labels
    assert error(run(RELU[key], X, labels), w) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("key", sorted(IN_PROCESS))
def test_equal_seeds_give_equal_answers(key: str) -> None:
    X, y, _ = table(60, 4, 0.2, 15)
    labels = np.maximum(y, 0) if key in RELU else y
    first, second = (run(ALL[key], X, labels, seed=3) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.slow
def test_equal_seeds_give_equal_answers_in_r() -> None:
    X, y, _ = table(60, 4, 0.45, 15)
    first, second = (run(LINEAR["lts"], X, y, seed=3) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.slow
@pytest.mark.parametrize("key", [*sorted(IN_PROCESS), "lmrob"])
def test_methods_answer_hopeless_tables_with_numbers_or_nan(key: str) -> None:
    # Fewer rows than columns, two equal columns, labels that are all the same.
    X = np.array([[1.0, 1.0, 0.0], [2.0, 2.0, 1.0]])
    coef = run(ALL[key], X, np.ones(2))
    assert coef.shape == (3,)
    assert np.isfinite(coef).all() or np.isnan(coef).all()


def test_a_library_that_raises_gives_nan() -> None:
    def fails(X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
        raise ValueError("no consensus")

    def overflows(X: FloatArray, y: FloatArray, rng: np.random.Generator) -> FloatArray:
        return np.append(np.zeros(X.shape[1] - 1), np.inf)

    for method in (fails, overflows):
        coef = Baseline(method).fit(np.eye(3), np.ones(3), np.random.default_rng(0))
        assert np.isnan(coef).all()
        assert coef.shape == (3,)


def test_scikit_learn_refuses_fewer_rows_than_columns_and_that_is_nan() -> None:
    rng = np.random.default_rng(17)
    assert np.isnan(run(LINEAR["ransac"], rng.standard_normal((3, 5)), rng.standard_normal(3))).all()


def test_misuse_still_raises() -> None:
    with pytest.raises(ValueError, match="y must have shape"):
        LINEAR["least_squares"].fit(np.eye(3), np.eye(3), np.random.default_rng(0))
    with pytest.raises(ValueError):
        LINEAR["least_squares"].fit(np.full((3, 3), np.nan), np.ones(3), np.random.default_rng(0))


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("Rscript") is not None:
        line = "none needs an R package: install.packages('surely.not.a.package')"
        assert Baseline(LINEAR["lts"].method, "R: surely.not.a.package").missing("none") == line
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert "Rscript" in LINEAR["lts"].missing("LTS")
    assert missing_line("QuantReg", "statsmodels") == "QuantReg needs statsmodels: pip install statsmodels"
    assert LINEAR["massart"].missing("massart") == ""


def test_methods_can_be_sent_to_other_processes() -> None:
    X, y, _ = table(60, 4, 0.2, 16)
    for key in ("torrent", "least_squares"):
        again = pickle.loads(pickle.dumps(LINEAR[key]))
        np.testing.assert_array_equal(run(again, X, y), run(LINEAR[key], X, y))
    pickle.dumps(linear_given_rate(0.2))
    pickle.dumps(ALL)
