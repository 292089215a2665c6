"""Laws of oblivious noise and of the simulation lemma (Appendix C)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from massart.paper import ErrorVector, MassartNoise, ObliviousNoise, Simulation, massart_rate, simulate_oblivious

CHANCE = 1e-5
"""Level of the statistical tests. Seeds are fixed, and with about fifty tests none fails by bad luck at this level."""


def rng_of(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def uniform_errors(spread: float) -> ErrorVector:
    def errors(m: int, budget: int, rng: np.random.Generator) -> np.ndarray:
        b = np.zeros(m)
        b[rng.permutation(m)[:budget]] = rng.uniform(-spread, spread, budget)
        return b

    return errors


def constant_errors(value: float) -> ErrorVector:
    return lambda m, budget, rng: np.where(rng.permutation(m) < budget, value, 0.0)


def fixed(*values: float) -> ObliviousNoise:
    """Oblivious noise that always chooses `values` on the first rows: the order b comes in must not matter."""

    def errors(m: int, budget: int, rng: np.random.Generator) -> np.ndarray:
        return np.array([*values, *[0.0] * (m - len(values))])

    return ObliviousNoise(0.2, errors)


@settings(max_examples=80, deadline=None)
@given(
    eta=st.floats(0.0, 1.0, exclude_max=True),
    m=st.integers(1, 80),
    errors=st.sampled_from([uniform_errors(5.0), constant_errors(-2.0)]),
    seed=st.integers(0, 2**32 - 1),
)
def test_labels_are_the_clean_ones_plus_a_sparse_vector(eta, m, errors, seed) -> None:  # type: ignore[no-untyped-def]
    noise, clean = ObliviousNoise(eta, errors), np.arange(m) - 3.0
    clean[0] = -0.0  # adding 0.0 would flip its sign bit
    b = noise.draw(m, rng_of(seed))
    assert np.count_nonzero(b) <= eta * m + 1e-9
    assert np.count_nonzero(b) == noise.budget(m)
    first, again = (noise.corrupt(np.ones((m, 2)), clean, rng_of(seed)) for _ in range(2))
    np.testing.assert_array_equal(first.labels, clean + b)
    assert first.labels[~first.allowed].tobytes() == clean[~first.allowed].tobytes()
    assert first.labels.tobytes() == again.labels.tobytes()
    np.testing.assert_array_equal(first.allowed, b != 0.0)
    np.testing.assert_array_equal(first.changed, first.labels != clean)


def test_the_errors_do_not_depend_on_rows_or_labels() -> None:
    noise = ObliviousNoise(0.6, uniform_errors(1.0))
    one = noise.corrupt(np.ones((30, 2)), np.zeros(30), rng_of(1))
    other = noise.corrupt(rng_of(2).standard_normal((30, 5)), rng_of(3).standard_normal(30), rng_of(1))
    np.testing.assert_array_equal(one.allowed, other.allowed)


def test_budget_is_the_share_the_caller_means() -> None:
    assert ObliviousNoise(0.29, uniform_errors(1.0)).budget(100) == 29  # although 0.29 * 100 < 29 in floating point
    assert ObliviousNoise(0.25, uniform_errors(1.0)).budget(7) == 1
    assert ObliviousNoise(0.999, uniform_errors(1.0)).budget(10) == 9


@pytest.mark.parametrize(("eta", "m", "delta"), [(0.2, 100, 0.05), (0.0, 7, 0.5), (0.9, 10_000, 1e-6)])
def test_massart_rate_is_the_lemmas_formula_and_meets_hoeffding(eta: float, m: int, delta: float) -> None:
    rate = massart_rate(eta, m, delta)
    assert rate == pytest.approx(eta + math.sqrt(math.log(1 / delta) / (2 * m)), rel=1e-15)
    # Hoeffding: P(Bin(m, rate) < eta m) <= exp(-2 m (rate - eta)^2) = delta.
    assert math.exp(-2 * m * (rate - eta) ** 2) == pytest.approx(delta)
    if rate < 1:
        assert stats.binom.cdf(math.ceil(eta * m) - 1, m, rate) <= delta


@pytest.mark.parametrize(("eta", "m", "delta"), [(0.2, 60, 0.3), (0.1, 40, 0.1), (0.3, 200, 0.05)])
def test_the_simulation_succeeds_with_probability_at_least_one_minus_delta(eta: float, m: int, delta: float) -> None:
    noise, X, clean, rng = ObliviousNoise(eta, uniform_errors(1.0)), np.ones((m, 1)), np.zeros(m), rng_of(0)
    runs = [simulate_oblivious(noise, X, clean, delta, rng) for _ in range(1500)]
    successes = sum(run.succeeded for run in runs)
    assert successes >= (1 - delta) * len(runs)
    exact = stats.binom.sf(noise.budget(m) - 1, m, massart_rate(eta, m, delta))
    assert stats.binomtest(successes, len(runs), exact).pvalue > CHANCE


def test_every_outcome_says_what_happened() -> None:
    noise, X, rng = ObliviousNoise(0.2, uniform_errors(1.0)), np.ones((30, 1)), rng_of(5)
    clean = rng.standard_normal(30)
    outcomes = set()
    for _ in range(400):
        run = simulate_oblivious(noise, X, clean, 0.5, rng)
        room, wanted = int(run.corruption.allowed.sum()), np.sort(run.errors[run.errors != 0.0])
        placed = run.corruption.changed
        assert run.rate == massart_rate(0.2, 30, 0.5)
        assert run.succeeded == (room >= wanted.size)
        assert placed.sum() == min(room, wanted.size)
        assert not (placed & ~run.corruption.allowed).any()
        if run.succeeded:
            np.testing.assert_allclose(np.sort((run.corruption.labels - clean)[placed]), wanted, atol=1e-15)
        outcomes.add(run.succeeded)
    assert outcomes == {True, False}


# Lemma C.2 in distribution: given success, a simulated table has the law of one under oblivious noise. Rows carry one
# bit, drawn independently; the errors are (2, 1, 1, 0, ..., 0), always on the first rows, so that a table as a set of
# rows is told by the bit under the 2 and by the number of set bits under the ones.
ERRORS = ObliviousNoise(0.3, fixed(2.0, 1.0, 1.0).errors)
Noise = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def oblivious(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return ERRORS.corrupt(X, np.zeros(len(X)), rng).labels


def simulated(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    while True:
        run = simulate_oblivious(ERRORS, X, np.zeros(len(X)), 0.6, rng)
        if run.succeeded:
            return run.corruption.labels


def looking_at_rows(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Massart noise that puts the same errors on allowed rows with a set bit first: what Definition C.1 forbids."""

    def adversary(X: np.ndarray, clean: np.ndarray, allowed: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        places = np.flatnonzero(allowed)
        labels = clean.copy()
        labels[places[np.argsort(-X[places, 0], kind="stable")][:3]] = [2.0, 1.0, 1.0][: places.size]
        return labels

    while True:
        labels = MassartNoise(massart_rate(0.3, len(X), 0.6), adversary).corrupt(X, np.zeros(len(X)), rng).labels
        if np.count_nonzero(labels) == 3:
            return labels


def tables(noise: Noise, seed: int, repeats: int = 2500) -> np.ndarray:
    rng, counts = rng_of(seed), np.zeros(6)
    for _ in range(repeats):
        bits = rng.integers(0, 2, 10)
        labels = noise(bits[:, None].astype(float), rng)
        counts[3 * bits[labels == 2.0].sum() + bits[labels == 1.0].sum()] += 1
    return counts


@pytest.mark.slow
def test_the_simulated_table_has_the_law_of_oblivious_noise() -> None:
    law = 2500 * np.array([1, 2, 1, 1, 2, 1]) / 8
    assert stats.chisquare(tables(oblivious, 1), law).pvalue > CHANCE
    assert stats.chisquare(tables(simulated, 2), law).pvalue > CHANCE
    assert stats.chi2_contingency([tables(oblivious, 1), tables(simulated, 2)]).pvalue > CHANCE
    # The test would notice an adversary that looks at the rows.
    assert stats.chisquare(tables(looking_at_rows, 3), law).pvalue < 1e-20


def arrangements(noise: Noise, seed: int) -> list[int]:
    """Return how often each of the C(10, 2) * 8 arrangements of (2, 1, 1) on 10 rows occurred among 7,200."""
    rng = rng_of(seed)
    X = rng.standard_normal((10, 1))
    seen = Counter(tuple(noise(X, rng)) for _ in range(7200))
    return [*seen.values(), *[0] * (math.comb(10, 2) * 8 - len(seen))]


@pytest.mark.slow
def test_simulated_errors_are_permuted_uniformly() -> None:
    assert stats.chisquare(arrangements(simulated, 9)).pvalue > CHANCE
    assert stats.chisquare(arrangements(looking_at_rows, 9)).pvalue < 1e-20


@pytest.mark.slow
def test_each_error_lands_uniformly_on_rows_whatever_the_order_of_b() -> None:
    m, noise, rng = 40, fixed(3.0, -5.0), rng_of(10)
    X, clean = rng.standard_normal((m, 2)), rng.standard_normal(m)
    landed = {3.0: np.zeros(m), -5.0: np.zeros(m)}
    for _ in range(4000):
        run = simulate_oblivious(noise, X, clean, 0.1, rng)
        if run.succeeded:
            for value, count in landed.items():
                count[np.isclose(run.corruption.labels - clean, value)] += 1
    for count in landed.values():
        assert count.sum() > 3600
        assert stats.chisquare(count).pvalue > CHANCE


def test_the_simulation_is_massart_noise_of_its_rate() -> None:
    noise, X, clean = ObliviousNoise(0.1, uniform_errors(1.0)), np.ones((500, 1)), np.ones(500)

    def run() -> Simulation:
        return simulate_oblivious(noise, X, clean, 0.1, rng_of(4))

    assert run().corruption.labels.tobytes() == run().corruption.labels.tobytes()
    assert run().rate < 0.5
    assert stats.binomtest(int(run().corruption.allowed.sum()), 500, run().rate).pvalue > CHANCE


def test_a_rate_of_one_half_or_more_is_refused_with_the_rows_it_would_take() -> None:
    noise = ObliviousNoise(0.4, uniform_errors(1.0))
    with pytest.raises(ValueError, match="must be below 1/2: use at least 231 rows or a larger delta"):
        simulate_oblivious(noise, np.ones((230, 1)), np.ones(230), 0.01, rng_of(0))
    assert massart_rate(0.4, 230, 0.01) >= 0.5 > massart_rate(0.4, 231, 0.01)
    simulate_oblivious(noise, np.ones((231, 1)), np.ones(231), 0.01, rng_of(0))
    with pytest.raises(ValueError, match=r"eta = 0\.5 .* no number of rows is enough"):
        simulate_oblivious(ObliviousNoise(0.5, uniform_errors(1.0)), np.ones((10, 1)), np.ones(10), 0.5, rng_of(0))
    with pytest.raises(ValueError, match="below 1/2"):
        MassartNoise(massart_rate(0.4, 230, 0.01), lambda X, clean, allowed, rng: clean)


@pytest.mark.parametrize("eta", [1.0, -0.1, float("nan"), "0.2"])
def test_oblivious_rates_outside_the_definition_are_refused(eta: float) -> None:
    with pytest.raises(ValueError, match="eta must be"):
        ObliviousNoise(eta, uniform_errors(1.0))
    with pytest.raises(ValueError, match="eta must be"):
        massart_rate(eta, 10, 0.1)


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="errors must be a function"):
        ObliviousNoise(0.1, 3.0)  # type: ignore[arg-type]
    for delta in (0.0, 1.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="delta must"):
            massart_rate(0.1, 10, delta)
    with pytest.raises(ValueError, match="m must be an integer of at least 1, got 0"):
        massart_rate(0.1, 0, 0.1)
    noise = ObliviousNoise(0.1, uniform_errors(1.0))
    with pytest.raises(ValueError, match="rng must be"):
        noise.corrupt(np.ones((3, 1)), np.ones(3), 1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="clean must have shape \\(3,\\)"):
        noise.corrupt(np.ones((3, 1)), np.ones(4), rng_of(0))
    with pytest.raises(ValueError, match=r"clean must have shape \(3,\)"):
        noise.corrupt(np.ones((3, 1)), np.ones((3, 1)), rng_of(0))


@pytest.mark.parametrize(
    ("errors", "message"),
    [
        (lambda m, budget, rng: np.ones(m), "errors returned 10 non-zero entries, but eta = 0.3 of 10 allows 3"),
        (lambda m, budget, rng: np.zeros(m - 1), "errors must have shape"),
        (lambda m, budget, rng: np.zeros((m, 1)), "errors must have shape"),
        (lambda m, budget, rng: np.full(m, np.nan), "errors must be finite"),
    ],
)
def test_an_error_vector_that_breaks_the_definition_is_refused(errors, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=message):
        ObliviousNoise(0.3, errors).draw(10, rng_of(0))


def test_a_sum_that_overflows_is_refused() -> None:
    with pytest.raises(ValueError, match=r"clean \+ errors must be finite"):
        ObliviousNoise(0.9, constant_errors(1.7e308)).corrupt(np.ones((10, 1)), np.full(10, 1.7e308), rng_of(0))
