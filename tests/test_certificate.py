"""Certificates: verdicts in their order, numbers that follow from numbers, what rows leave open, and estimates."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from arrays import recovered
from massart.certificate import Assumption, Bound, Certificate, Verdict, certify_counts, span_of
from massart.rows import Agreement, Level


def certificate_of(X, y, **options) -> Certificate:
    return recovered(X, y, **options).certificate


# --- verdicts ---


def test_certain_is_proven_or_confirmed_and_a_majority_stands():
    assert [verdict.name for verdict in Verdict if verdict.certain] == ["PROVEN", "CONFIRMED"]
    assert [verdict.name for verdict in Verdict if verdict.stands] == ["PROVEN", "CONFIRMED", "MAJORITY"]


def test_verdicts_are_ordered_by_what_is_known():
    names = ["NONE", "NOISY", "PLURALITY", "MAJORITY", "CONFIRMED", "PROVEN"]
    assert [verdict.name for verdict in sorted(Verdict)] == names
    assert Verdict.MAJORITY >= Verdict.MAJORITY > Verdict.PLURALITY
    assert max(Verdict.NONE, Verdict.NOISY) is Verdict.NOISY


@pytest.mark.slow
def test_certificates_are_frozen_and_reproducible():
    X = np.random.default_rng(16).standard_normal((300, 6))
    y = X @ np.arange(1.0, 7)
    y[:100] = 5.0
    one, other = (certificate_of(X, y, rng=np.random.default_rng(1)) for _ in range(2))
    assert one.explain() == other.explain()
    assert one.eta_max == other.eta_max
    with pytest.raises(FrozenInstanceError):
        one.verdict = Verdict.PROVEN  # type: ignore[misc]
    assert one == one != other, "a certificate holds arrays: it is the same as itself only"
    assert {one, other, one.support, other.support} == {other.support, one.support, other, one}


def test_the_numbers_of_a_certificate_follow_from_each_other():
    X = np.random.default_rng(0).standard_normal((200, 3))
    y = X @ [1.0, 2, 3]
    y[:50] += 1 + np.arange(50)
    certificate = certificate_of(X, y)
    assert (certificate.n_rows, certificate.n_agree, certificate.n_decisive) == (200, 150, 150)
    assert certificate.noise_rate == 0.25
    assert certificate.tolerance == certificate.agreement.label == 0
    assert replace(certificate, n_rows=0, n_agree=0).noise_rate == 0
    assert "150 of 200 rows agree exactly" in repr(certificate)


# --- what the agreeing rows leave open ---


def test_undetermined_directions_are_exact_and_numbered():
    rng = np.random.default_rng(7)
    price, size, unused = rng.uniform(1, 1e6, 300), rng.standard_normal(300), np.zeros(300)
    X = np.column_stack([price, price * 0.5, size, unused])
    y = 3 * price + size
    y[:20] = rng.uniform(0, 1e6, 20)
    certificate = certificate_of(X, y)
    assert certificate.verdict.certain, "the determined part is"
    assert certificate.rank == 2
    assert certificate.undetermined_columns == ((0, 1), (3,))
    N = certificate.undetermined
    np.testing.assert_allclose(N.T @ N, np.eye(2), atol=1e-14)
    np.testing.assert_allclose(X @ N, 0, atol=1e-9)
    expected = np.array([[1, -2, 0, 0], [0, 0, 0, np.sqrt(5)]]).T / np.sqrt(5)
    np.testing.assert_allclose(N @ N.T, expected @ expected.T, atol=1e-13)
    assert not set(certificate.unconfirmed_columns) & {0, 1, 3}, "what is open is not unconfirmed"


def test_a_dummy_trap_is_one_group():
    rng = np.random.default_rng(8)
    X = np.zeros((400, 7))
    X[np.arange(400), rng.integers(0, 4, 400)] = 1
    X[:, 4] = 1  # the intercept is the sum of the dummies
    X[:, 5:] = rng.standard_normal((400, 2))
    span = span_of(X)
    assert (span.rank, span.groups) == (6, ((0, 1, 2, 3, 4),))
    certificate = certificate_of(X, X @ [3.0, 1, 4, 1, 5, 9, 2])
    assert certificate.undetermined_columns == ((0, 1, 2, 3, 4),)
    assert certificate.verdict is Verdict.PROVEN


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_units_do_not_decide_ranks(scale):
    X = np.random.default_rng(9).standard_normal((100, 3)) * [1, 1e-9, scale]
    span = span_of(X)
    assert (span.rank, span.columns.tolist(), span.undetermined.shape, span.groups) == (3, [0, 1, 2], (3, 0), ())
    assert span_of(np.column_stack([X, X[:, 0] + 1e9 * X[:, 1]])).groups == ((0, 1, 3),)


def test_nearly_dependent_columns_are_open():
    """Formulas that differ visibly would fit these rows up to rounding."""
    rng = np.random.default_rng(10)
    X = rng.standard_normal((200, 2))
    X = np.column_stack([X, X[:, 0] + 1e-14 * rng.standard_normal(200)])
    certificate = certificate_of(X, X @ [1.0, 2, 3])
    assert (certificate.rank, certificate.undetermined_columns) == (2, ((0, 2),))


@pytest.mark.parametrize("rows", [0, 4])
def test_no_rows_span_nothing(rows):
    span = span_of(np.zeros((rows, 3)))
    assert (span.rank, span.columns.size, span.groups) == (0, 0, ((0,), (1,), (2,)))
    np.testing.assert_array_equal(span.undetermined, np.eye(3))


# --- estimates ---


def test_noisy_certificates_prove_nothing():
    span = span_of(np.column_stack([np.arange(1.0, 6), 2 * np.arange(1.0, 6)]))
    noise = Agreement(Level.NOISE, label=0.8)
    certificate = certify_counts(
        Verdict.NOISY, noise, Assumption(0.3, 0.99), n_rows=1000, n_agree=640, span=span, scale=0.25
    )
    assert (certificate.verdict, certificate.bound) == (Verdict.NOISY, Bound.NONE)
    assert (certificate.scale, certificate.hyperplane_rows, certificate.eta_max) == (0.25, None, 0)
    assert (certificate.confidence, certificate.wrong_at_most, certificate.resolution) == (0.99, 0.3, 0)
    assert (certificate.agreement.level, certificate.agreement.label) == (Level.NOISE, 0.8)
    assert "up to noise of scale 0.25" in certificate.explain()
    assert "nothing is proven" in certificate.explain()
    assert certificate.undetermined_columns == ((0, 1),)
    assert "column 0 and column 1 always move together" in certificate.explain()
    assert not certificate.verdict.stands
