"""Certificates against brute force: what is called proven is proven, and the words say no more than that."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from massart.certificate import Bound, Certificate, Verdict, certify, certify_relu, noisy_certificate


def candidates(X, y):
    """Yield every w that some d independent rows determine, as exact fractions scaled to integers: (w * q, q)."""
    d = X.shape[1]
    for subset in combinations(range(len(X)), d):
        B, b = X[list(subset)].astype(float), y[list(subset)].astype(float)
        q = round(np.linalg.det(B))
        if q:
            yield np.array([round(value) for value in np.linalg.solve(B, b) * q]), q


def fitted(X, y, w, q, relu=False):
    """Tell exactly which rows w / q fits, for integer data."""
    values = X @ w if q > 0 else -(X @ w)
    return (np.maximum(values, 0) if relu else values) == y * abs(q)


def l0_maxima(X, y, weights, relu=False):
    """Return the largest fitted weight and every vertex w, as a tuple of floats, that reaches it."""
    counts = {}
    for w, q in candidates(X, y):
        counts[tuple((w / q).tolist())] = float(weights[fitted(X, y, w, q, relu)].sum())
    best = max(counts.values())
    return best, {w for w, count in counts.items() if count == best}


def planted(rng, n, d, kind):
    """Return small integer data with one formula, or two that compete."""
    X = rng.integers(-2, 3, (n, d))
    if kind == "few hyperplanes":
        X[: (2 * n) // 3, int(rng.integers(d))] = 0
    elif kind == "duplicates":
        X = X[rng.integers(0, min(d + 2, n), n)]
    w, other = rng.integers(-3, 4, d), rng.integers(-3, 4, d)
    y = X @ w
    if kind == "two formulas":
        y[: n // 2] = X[: n // 2] @ other
    else:
        wrong = rng.random(n) < rng.choice([0.05, 0.2, 0.4])
        y[wrong] = (X[wrong] @ other) if rng.random() < 0.5 else rng.integers(-9, 10, wrong.sum())
    return X, y


KINDS = ["plain", "few hyperplanes", "duplicates", "two formulas"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_proven_is_the_unique_l0_minimizer(kind, d):
    rng = np.random.default_rng([d, KINDS.index(kind)])
    seen = set()
    for trial in range(60):
        X, y = planted(rng, int(rng.integers(d + 1, 13)), d, kind)
        weights = rng.integers(1, 4, len(X)).astype(float) if trial % 2 else np.ones(len(X))
        present = X.any(axis=1)
        if np.linalg.matrix_rank(X) < d:
            continue
        best, maxima = l0_maxima(X, y, weights)
        for w, q in list(candidates(X, y))[:15]:  # any candidate, not only a good one
            agree = fitted(X, y, w, q)
            certificate = certify(
                X[agree],
                n_rows=weights.sum(),
                n_agree=weights[agree].sum(),
                sample_weight=weights[agree] if trial % 2 else None,
                rng=rng,
                confidence=1 - 1e-9,
            )
            seen.add(certificate.verdict)
            assert certificate.n_agree == weights[agree & present].sum()
            # Wrong zero rows fit nothing; certify cannot see them, and they only weaken the claim.
            assert certificate.n_rows == weights.sum() - weights[agree & ~present].sum()
            if certificate.verdict is Verdict.PROVEN:
                assert maxima == {tuple((w / q).tolist())}
                assert weights[agree].sum() == best
            assert certificate.verdict is not Verdict.MAJORITY or 2 * certificate.n_agree > certificate.n_rows
    assert Verdict.PROVEN in seen


@given(st.integers(0, 10**6))
@settings(max_examples=60)
def test_a_tie_is_never_proven(seed):
    rng = np.random.default_rng(seed)
    d, half = int(rng.integers(1, 5)), int(rng.integers(3, 12))
    X = rng.integers(-2, 3, (2 * half, d))
    X = np.where(X.any(axis=1)[:, None], X, 1)
    w, other = rng.integers(-3, 4, d), rng.integers(-3, 4, d)
    if (w == other).all():
        return
    y = np.concatenate([X[:half] @ w, X[half:] @ other])
    counts = [int((X @ v == y).sum()) for v in (w, other)]
    worse = (w, other)[int(np.argmin(counts))]
    agree = X @ worse == y
    certificate = certify(X[agree], n_rows=len(X), n_agree=int(agree.sum()), rng=rng)
    assert certificate.determined is not Verdict.PROVEN


def test_all_paths_prove_what_they_can_and_no_more():
    rng = np.random.default_rng(0)
    for n_agree, d, options, expected in [
        (900, 1, {}, Bound.EXACT),
        (600, 2, {}, Bound.EXACT),
        (960, 20, {}, Bound.PACKING),
        (70, 3, {}, Bound.EXACT),
        (900, 20, {}, Bound.FOURTH_MOMENT),
        (700, 8, {"rng": rng}, Bound.SAMPLED),
        (520, 20, {"general_position": True}, Bound.ASSUMED),
    ]:
        n_rows = 100 if n_agree < 100 else 1000
        X = rng.standard_normal((n_agree, d))
        certificate = certify(X, n_rows=n_rows, n_agree=n_agree, **options)
        assert (certificate.verdict, certificate.bound) == (Verdict.PROVEN, expected)
        assert certificate.hyperplane_rows is not None
        assert 2 * n_agree > n_rows + certificate.hyperplane_rows
        assert certificate.confidence == (0.999 if expected is Bound.SAMPLED else 1.0)
        assert certificate.rank == d


def test_a_candidate_on_half_of_its_rows_in_a_hyperplane_is_not_proven():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((700, 5))
    X[:600, 0] = 0  # another formula, of any first coefficient, shares these
    certificate = certify(X, n_rows=1000, n_agree=700, rng=rng)
    assert certificate.verdict is Verdict.MAJORITY
    assert certificate.hyperplane_rows is None or certificate.hyperplane_rows >= 600
    # General position is an assumption: the caller's word, and the verdict repeats it.
    assumed = certify(X, n_rows=1000, n_agree=700, general_position=True)
    assert assumed.bound is Bound.ASSUMED
    assert "Assuming general position" in assumed.explain()


def test_majority_is_the_papers_test():
    X = np.random.default_rng(2).standard_normal((501, 60))
    assert certify(X, n_rows=1000, n_agree=501).verdict is Verdict.MAJORITY
    assert certify(X[:500], n_rows=1000, n_agree=500).verdict is Verdict.PLURALITY


def test_any_d_rows_can_be_fitted_so_they_are_no_majority():
    X = np.random.default_rng(3).standard_normal((6, 6))
    assert certify(X, n_rows=11, n_agree=6).verdict is Verdict.PLURALITY
    assert certify(X, n_rows=6, n_agree=6).verdict is Verdict.PROVEN  # and yet nothing else fits all


def test_a_subset_of_the_agreeing_rows_proves_less():
    X = np.random.default_rng(4).standard_normal((5000, 4))
    whole = certify(X, n_rows=5500, n_agree=5000)
    part = certify(X[:2500], n_rows=5500, n_agree=5000)
    few = certify(X[:400], n_rows=5500, n_agree=5000)
    assert whole.verdict is part.verdict is Verdict.PROVEN
    assert few.verdict is Verdict.MAJORITY
    assert few.hyperplane_rows is None or few.hyperplane_rows >= 4600
    assert part.hyperplane_rows is not None
    assert part.hyperplane_rows >= 2500
    assert 2 * 5000 > 5500 + part.hyperplane_rows


def test_zero_rows_count_for_no_side():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, 3))
    padded = np.vstack([X, np.zeros((500, 3))])
    certificate = certify(padded, n_rows=650, n_agree=560)
    plain = certify(X, n_rows=150, n_agree=60)
    assert (certificate.n_rows, certificate.n_agree) == (plain.n_rows, plain.n_agree) == (150, 60)
    assert certificate.verdict is plain.verdict is Verdict.PLURALITY
    weighted = certify(padded, n_rows=650, n_agree=560, sample_weight=np.ones(560))
    assert (weighted.n_rows, weighted.n_agree) == (150, 60)


def test_weights_count_like_repeated_rows():
    rng = np.random.default_rng(6)
    X = rng.integers(-3, 4, (14, 3))
    X = X[X.any(axis=1)]
    weights = rng.integers(1, 5, len(X))
    for wrong in (2, 10):
        total = int(weights.sum())
        weighted = certify(X, n_rows=total + wrong, n_agree=total, sample_weight=weights)
        repeated = certify(np.repeat(X, weights, axis=0), n_rows=total + wrong, n_agree=total)
        assert weighted.verdict is repeated.verdict
        assert (weighted.n_rows, weighted.n_agree) == (repeated.n_rows, repeated.n_agree)
    fractions = certify(X, n_rows=0.1 * (total + 10), n_agree=0.1 * total, sample_weight=0.1 * weights)
    assert fractions.verdict is weighted.verdict


# --- what the agreeing rows leave open ---


def test_undetermined_directions_are_exact_and_named():
    rng = np.random.default_rng(7)
    price, size, unused = rng.uniform(1, 1e6, 300), rng.standard_normal(300), np.zeros(300)
    X = np.column_stack([price, price * 0.5, size, unused])
    names = ["price", "price_eur", "size", "empty"]
    certificate = certify(X, n_rows=320, n_agree=300, column_names=names)
    assert certificate.verdict is Verdict.UNIDENTIFIABLE
    assert certificate.determined is Verdict.PROVEN
    assert certificate.rank == 2
    assert certificate.undetermined_columns == (("price", "price_eur"), ("empty",))
    N = certificate.undetermined
    np.testing.assert_allclose(N.T @ N, np.eye(2), atol=1e-14)
    np.testing.assert_allclose(X @ N, 0, atol=1e-9)
    expected = np.array([[1, -2, 0, 0], [0, 0, 0, np.sqrt(5)]]).T / np.sqrt(5)
    np.testing.assert_allclose(N @ N.T, expected @ expected.T, atol=1e-13)
    words = certificate.explain()
    assert "price and price_eur always move together" in words
    assert "Nothing determines the coefficient of empty" in words
    assert "up to what is left open" in words
    assert certify(X, n_rows=320, n_agree=300).undetermined_columns == ((0, 1), (3,))


def test_a_dummy_trap_is_one_group():
    rng = np.random.default_rng(8)
    X = np.zeros((400, 7))
    X[np.arange(400), rng.integers(0, 4, 400)] = 1
    X[:, 4] = 1  # the intercept is the sum of the dummies
    X[:, 5:] = rng.standard_normal((400, 2))
    certificate = certify(X, n_rows=401, n_agree=400)
    assert certificate.undetermined_columns == ((0, 1, 2, 3, 4),)
    assert certificate.determined is Verdict.PROVEN


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_units_do_not_decide_ranks(scale):
    X = np.random.default_rng(9).standard_normal((100, 3)) * [1, 1e-9, scale]
    certificate = certify(X, n_rows=101, n_agree=100)
    assert certificate.verdict is Verdict.PROVEN


def test_nearly_dependent_columns_are_not_claimed():
    """Formulas that differ visibly would fit these rows up to rounding."""
    rng = np.random.default_rng(10)
    X = rng.standard_normal((200, 2))
    X = np.column_stack([X, X[:, 0] + 1e-14 * rng.standard_normal(200)])
    assert certify(X, n_rows=201, n_agree=200).verdict is Verdict.UNIDENTIFIABLE


def test_no_agreeing_rows_determine_nothing():
    for X in (np.zeros((0, 3)), np.zeros((4, 3))):
        certificate = certify(X, n_rows=10, n_agree=len(X))
        assert certificate.verdict is Verdict.UNIDENTIFIABLE
        assert certificate.determined is Verdict.PLURALITY
        assert certificate.undetermined_columns == ((0,), (1,), (2,))


# --- ReLU ---


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_proven_relu_is_the_unique_l0_minimizer(d):
    """Vertices fit d rows exactly; other parameters are tried at random, in half-integers."""
    rng = np.random.default_rng(d)
    proven = 0
    for _ in range(150):
        n = int(rng.integers(d + 2, 14))
        X = rng.integers(-2, 3, (n, d))
        w = rng.integers(-3, 4, d)
        y = np.maximum(X @ w, 0)
        wrong = rng.random(n) < 0.15
        y[wrong] = rng.choice([0, 1, 5], wrong.sum())
        fits = np.maximum(X @ w, 0) == y
        positive = y > 0
        if not (fits & positive).any():
            continue
        certificate = certify_relu(
            X[fits & positive],
            n_pos=int(positive.sum()),
            a_pos=int((fits & positive).sum()),
            n_zero=int((~positive).sum()),
            a_zero=int((fits & ~positive).sum()),
        )
        assert (certificate.n_rows, certificate.n_agree) == (n, fits.sum())
        if certificate.verdict is not Verdict.PROVEN:
            continue
        proven += 1
        others = np.vstack(
            [rng.integers(-20, 21, (2000, d)), w + rng.integers(-2, 3, (500, d))]
            + [2 * v / q for v, q in candidates(X, y)]
        )
        others = others[(others != 2 * w).any(axis=1)]
        counts = (np.abs(np.maximum(others @ X.T / 2, 0) - y) < 1e-9).sum(axis=1)
        assert counts.max() < fits.sum()
    assert proven > 10


def test_zero_is_no_majority_of_a_relu():
    X = np.random.default_rng(11).standard_normal((10, 3))
    zeros = certify_relu(X, n_pos=100, a_pos=10, n_zero=900, a_zero=900)
    assert zeros.verdict is Verdict.PLURALITY
    assert certify_relu(np.zeros((0, 3)), n_pos=1, a_pos=0, n_zero=9, a_zero=9).verdict is Verdict.UNIDENTIFIABLE


def test_wrong_zeros_weaken_a_relu():
    X = np.random.default_rng(12).standard_normal((90, 2))
    arguments = {"n_pos": 100, "a_pos": 90, "n_zero": 200}
    assert certify_relu(X, a_zero=190, **arguments).verdict is Verdict.PROVEN
    weak = certify_relu(X, a_zero=112, **arguments)  # 90 - 1 is not more than 10 + 88
    assert weak.verdict is Verdict.MAJORITY


# --- tolerance ---


def test_a_tolerance_turns_hyperplanes_into_slabs():
    """Rows whose second entry hides in the tolerance: exact labels would prove what rounded ones do not."""
    rng = np.random.default_rng(13)
    X = np.column_stack([rng.uniform(1, 2, 100), 1e-4 * rng.standard_normal(100)])
    X[:10, 1] = rng.uniform(1, 2, 10)
    exact = certify(X, n_rows=130, n_agree=100)
    rounded = certify(X, n_rows=130, n_agree=100, tolerance=0.005)
    assert exact.verdict is Verdict.PROVEN
    assert rounded.verdict is Verdict.MAJORITY
    # A formula that differs visibly shares 90 rows and may fit the 30 wrong ones: 120 in all.
    assert (np.abs(X @ [0.0, 5.0]) <= 0.01).sum() >= 90


def test_a_tolerance_is_proven_up_to_a_resolution():
    rng = np.random.default_rng(14)
    X = rng.standard_normal((2000, 4))
    for n_rows in (2100, 2500):
        certificate = certify(X, n_rows=n_rows, n_agree=2000, tolerance=0.005)
        assert certificate.verdict is Verdict.PROVEN
        assert certificate.bound in (Bound.PACKING, Bound.FOURTH_MOMENT)
        assert 0 < certificate.resolution <= 2 * 0.005 * 1000
        # No direction that exceeds the resolution somewhere shares more rows than h.
        R = rng.standard_normal((5000, 4))
        values = np.abs(R @ X.T)
        values *= 1.0001 * certificate.resolution / values.max(axis=1)[:, None]
        assert (values <= 0.01).sum(axis=1).max() <= certificate.hyperplane_rows
        words = certificate.explain()
        assert "within 0.005" in words
        assert f"differs from it by more than {certificate.resolution:.3g} on some row that agrees" in words
    assumed = certify(X[:1200], n_rows=2000, n_agree=1200, tolerance=0.005, general_position=True)
    assert assumed.bound is not Bound.ASSUMED
    assert assumed.verdict is Verdict.MAJORITY


@given(st.integers(0, 10**6))
@settings(max_examples=30)
def test_a_proven_tolerance_has_no_rival_in_the_plane(seed):
    """Every slab through pairs of rows is tried: no r above the resolution fits as many rows."""
    rng = np.random.default_rng(seed)
    n, t = int(rng.integers(8, 30)), 0.05
    X = rng.standard_normal((n, 2)) * rng.uniform(0.1, 3, (n, 1))
    w = rng.standard_normal(2)
    y = X @ w + rng.uniform(-t, t, n)
    wrong = rng.random(n) < 0.15
    y[wrong] += rng.choice([-1, 1], wrong.sum()) * rng.uniform(0.2, 3, wrong.sum())
    agree = np.abs(X @ w - y) <= t
    if not agree.any():
        return
    certificate = certify(X[agree], n_rows=n, n_agree=int(agree.sum()), tolerance=t)
    if certificate.verdict is not Verdict.PROVEN:
        return
    for i, j in combinations(range(n), 2):
        for a in (-t, t):
            for b in (-t, t):
                rival = np.linalg.solve(X[[i, j]], y[[i, j]] + [a, b])
                fits = (np.abs(X @ rival - y) <= t * (1 - 1e-9)).sum()
                if np.abs(X[agree] @ (rival - w)).max() > certificate.resolution:
                    assert fits < agree.sum()


# --- words and arguments ---


def test_explanations_say_what_holds():
    X = np.random.default_rng(15).standard_normal((9000, 4))
    proven = certify(X, n_rows=10_000, n_agree=9000)
    words = proven.explain()
    assert words.startswith("The formula fits 9,000 of 10,000 rows (90.0 %).")
    assert "It is proven that no other formula fits as many" in words
    assert "disjoint blocks" in words
    assert "another fits at most 8,999 rows" in words
    assert "Not claimed" in words
    sampled = certify(X[:5600, :3], n_rows=10_000, n_agree=5600, rng=np.random.default_rng(0), budget=3e9)
    assert sampled.bound is Bound.SAMPLED
    assert "With confidence 99.9 % it is proven" in sampled.explain()
    majority = certify(X[:5100], n_rows=10_000, n_agree=5100).explain()
    assert "majority" in majority
    assert "Not claimed: that no other formula fits as many rows" in majority
    assert "hypothesis" in certify(X[:3000], n_rows=10_000, n_agree=3000).explain()
    for certificate in (proven, sampled):
        assert 2 <= certificate.explain().count(". ") + 1 <= 5


def test_every_verdict_and_bound_speaks():
    assert all(verdict.value for verdict in Verdict)
    assert all(bound.value for bound in Bound)


def test_noisy_certificates_prove_nothing():
    certificate = noisy_certificate(1000, 640, 0.25, 3, n_columns=3, column_names=["a", "b", "c"])
    assert certificate.verdict is Verdict.NOISY
    assert (certificate.scale, certificate.hyperplane_rows, certificate.bound) == (0.25, None, Bound.NONE)
    assert "up to noise of scale 0.25" in certificate.explain()
    assert "nothing is proven" in certificate.explain()
    X = np.column_stack([np.arange(5.0), 2 * np.arange(5.0)])
    deficient = noisy_certificate(10, 5, 1.0, 1, n_columns=2, X_inliers=X)
    assert deficient.undetermined_columns == ((0, 1),)
    assert "column 0 and column 1 always move together" in deficient.explain()


def test_certificates_are_frozen_and_reproducible():
    X = np.random.default_rng(16).standard_normal((700, 8))
    one, other = (certify(X, n_rows=1000, n_agree=700, rng=np.random.default_rng(1)) for _ in range(2))
    assert isinstance(one, Certificate)
    assert one.explain() == other.explain()
    with pytest.raises(FrozenInstanceError):
        one.verdict = Verdict.PROVEN  # type: ignore[misc]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_agree": 11}, "n_agree = 11 is more than n_rows = 10"),
        ({"n_agree": 3}, "the agreeing rows given weigh 4, more than the count 3"),
        ({"n_rows": float("nan")}, "n_rows must be a non-negative number, got nan"),
        ({"confidence": 0.0}, "confidence must be between 0 and 1, got 0"),
        ({"tolerance": -1.0}, "tolerance must be a non-negative number, got -1"),
        ({"budget": -1.0}, "budget must not be negative"),
        ({"column_names": ["a"]}, "column_names has 1 names but there are 2 columns"),
        ({"sample_weight": [1, 2]}, "sample_weight must have shape"),
        ({"X_agree": [[np.inf, 1.0]]}, "X_agree must be finite, got inf at row 0, column 0"),
        ({"X_agree": [1.0, 2.0]}, "X_agree must be a matrix"),
    ],
)
def test_bad_arguments_are_named(changes, message):
    arguments = {"X_agree": np.random.default_rng(0).standard_normal((4, 2)), "n_rows": 10, "n_agree": 4} | changes
    with pytest.raises(ValueError, match=message):
        certify(arguments.pop("X_agree"), **arguments)


def test_bad_relu_and_noisy_arguments_are_named():
    X = np.ones((2, 1))
    with pytest.raises(ValueError, match="X_pos_agree has a zero row"):
        certify_relu(np.zeros((1, 2)), n_pos=1, a_pos=1, n_zero=0, a_zero=0)
    with pytest.raises(ValueError, match="a_zero = 3 is more than n_zero = 2"):
        certify_relu(X, n_pos=2, a_pos=2, n_zero=2, a_zero=3)
    with pytest.raises(ValueError, match="scale must be positive and finite, got 0"):
        noisy_certificate(10, 5, 0.0, 1, n_columns=1)
    with pytest.raises(ValueError, match="rank must be between 0 and n_columns = 1, got 2"):
        noisy_certificate(10, 5, 1.0, 2, n_columns=1)
    with pytest.raises(ValueError, match="X_inliers is needed"):
        noisy_certificate(10, 5, 1.0, 1, n_columns=2)
    with pytest.raises(ValueError, match="rank is 1 of 2 columns, X_inliers has 2 of 2"):
        noisy_certificate(10, 5, 1.0, 1, n_columns=2, X_inliers=np.eye(2))
