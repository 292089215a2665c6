"""Every bound on the rows of one hyperplane, against all hyperplanes; exact arithmetic decides."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from massart.certificate import EXACT_REACH, fourth_moment_bound, packing_bound, sampled_bound, slab_count
from massart.certificate.blocks import failure_ceiling, largest_share
from massart.certificate.fourth_moment import largest_off_share, moment_bounds
from massart.certificate.span import span_of


def exact_rank(rows) -> int:
    """Return the rank of integer rows, by elimination in rational numbers."""
    matrix = [[Fraction(int(value)) for value in row] for row in rows]
    rank = 0
    for column in range(len(matrix[0]) if matrix else 0):
        pivot = next((i for i in range(rank, len(matrix)) if matrix[i][column]), None)
        if pivot is None:
            continue
        matrix[rank], matrix[pivot] = matrix[pivot], matrix[rank]
        for i in range(rank + 1, len(matrix)):
            factor = matrix[i][column] / matrix[rank][column]
            matrix[i] = [a - factor * b for a, b in zip(matrix[i], matrix[rank], strict=True)]
        rank += 1
    return rank


def normals_of(X):
    """Return an integer normal of every hyperplane that d - 1 integer rows span: the minors, by elimination."""
    d = X.shape[1]
    found = []
    for subset in combinations(range(len(X)), d - 1):
        B = X[list(subset)].astype(object)
        normal = np.array([(-1) ** j * _determinant(np.delete(B, j, axis=1)) for j in range(d)], dtype=object)
        if any(normal):
            found.append(normal)
    return found


def _determinant(B) -> int:
    if len(B) == 0:
        return 1
    return sum((-1) ** j * B[0][j] * _determinant(np.delete(B[1:], j, axis=1)) for j in range(len(B)) if B[0][j])


def fullest_hyperplane(X, weights) -> float:
    """Return h by brute force, for integer rows that span."""
    if X.shape[1] == 1:
        return 0.0
    return max(float(weights[(X.astype(object) @ normal) == 0].sum()) for normal in normals_of(X))


def all_bounds(X, weights, rng):
    weights_given = None if (weights == 1).all() else weights
    yield "packing", packing_bound(X, np.inf, sample_weight=weights_given)
    yield "packing a little", packing_bound(X, 1.0, sample_weight=weights_given)
    yield "fourth moment", fourth_moment_bound(X, sample_weight=weights_given)
    yield "counted", slab_count(X, sample_weight=weights_given)
    yield "sampled", sampled_bound(X, rng, n_draws=300, confidence=1 - 1e-9, sample_weight=weights_given)
    yield "packing, exact", packing_bound(X, np.inf, sample_weight=weights_given, limit=EXACT_REACH)
    yield "moments, exact", fourth_moment_bound(X, sample_weight=weights_given, limit=EXACT_REACH)
    yield "counted, exact", slab_count(X, sample_weight=weights_given, limit=EXACT_REACH)


def degenerate_rows(rng, n, d, kind):
    """Return non-zero integer rows with many coincidences that span R^d."""
    while True:
        X = rng.integers(-2, 3, (n, d))
        if kind == "few hyperplanes":
            X[: (2 * n) // 3, int(rng.integers(d))] = 0
        elif kind == "duplicates":
            X = X[rng.integers(0, max(d, n // 3), n)]
        elif kind == "parallel":
            X = X[rng.integers(0, max(d, n // 2), n)] * rng.integers(1, 4, (n, 1))
        elif kind == "subspace" and d > 2:
            X[: n // 2, 2:] = 0
        X = X[X.any(axis=1)]
        if len(X) and exact_rank(X) == d:
            return X


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 2, 3, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["plain", "few hyperplanes", "duplicates", "parallel", "subspace"])
def test_every_bound_is_at_least_the_fullest_hyperplane(d, kind):
    rng = np.random.default_rng([d, len(kind)])
    known: set[str] = set()
    for trial in range(12):
        X = degenerate_rows(rng, int(rng.integers(d + 1, 15)), d, kind)
        weights = np.ones(len(X)) if trial % 2 else rng.integers(1, 5, len(X)).astype(float)
        h = fullest_hyperplane(X, weights)
        column_scales = 10.0 ** rng.integers(-6, 7, d) if trial % 3 == 0 else np.ones(d)
        for name, bound in all_bounds(X * column_scales, weights, rng):
            assert bound is None or bound.rows >= h, (name, X, weights)
            known.update([name] if bound is not None else [])
        exact = slab_count(X * column_scales, sample_weight=weights, limit=EXACT_REACH)
        assert exact is not None
        assert exact.rows == h
    assert len(known) == 8, "every bound was tried"


@pytest.mark.slow
@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(0, 12))
@settings(max_examples=15)
def test_bounds_hold_for_small_integers(seed, d, extra):
    rng = np.random.default_rng(seed)
    X = degenerate_rows(rng, 2 * d + extra, d, "plain")
    h = fullest_hyperplane(X, np.ones(len(X)))
    for name, bound in all_bounds(X, np.ones(len(X)), rng):
        assert bound is None or bound.rows >= h, name


@pytest.mark.slow
@pytest.mark.parametrize("d", [3, 6, 10])
@pytest.mark.parametrize("share", [0.5, 0.8])
def test_bounds_hold_for_rows_planted_in_a_hyperplane_that_rounding_hides(d, share):
    rng = np.random.default_rng(d)
    X = rng.standard_normal((300, d))
    held = int(share * 300)
    X[:held, 0] = 0
    X = X @ rng.standard_normal((d, d)) * 10.0 ** rng.uniform(-3, 3, (300, 1))  # zero inner products become rounding
    X = X[rng.permutation(300)]
    for name, bound in all_bounds(X, np.ones(300), rng):
        assert bound is None or bound.rows >= held, name


def test_packing_is_tight_in_general_position():
    X = np.random.default_rng(0).standard_normal((100, 7))
    bound = packing_bound(X, np.inf)
    assert bound is not None
    assert bound.rows == 100 - 100 // 7


def test_packing_stops_once_enough_is_packed():
    X = np.random.default_rng(0).standard_normal((1000, 5))
    bound = packing_bound(X, 20)
    assert bound is not None
    assert bound.rows == 1000 - 21


def test_packing_counts_weights_like_repeated_rows():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((30, 3))
    weights = rng.integers(1, 6, 30)
    weighted = packing_bound(X, np.inf, sample_weight=weights)
    repeated = packing_bound(np.repeat(X, weights, axis=0), np.inf)
    assert weighted is not None
    assert repeated is not None
    assert weights.sum() - weighted.rows >= 0.7 * (weights.sum() - repeated.rows)


def test_packing_finds_the_rare_columns_of_a_table_of_dummies():
    rng = np.random.default_rng(2)
    X = np.zeros((3000, 20))
    X[np.arange(3000), np.minimum(rng.geometric(0.25, 3000), 20) - 1] = 1
    X = X[:, X.sum(axis=0) > 0]
    rarest = X.sum(axis=0).min()
    bound = packing_bound(X, np.inf)
    assert bound is not None
    assert bound.rows == 3000 - rarest  # the hyperplane without the rarest column


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("gauss 2000 x 5", 0.42, 0.46), ("gauss 5000 x 20", 0.28, 0.31), ("student 5000 x 20", 0.13, 0.16)]
    + [("binary 5000 x 20", 0.27, 0.30), pytest.param("gauss 20000 x 50", 0.25, 0.27, marks=pytest.mark.slow)],
)
def test_fourth_moments_reach_the_measured_shares(name, low, high):
    kind, n, _, d = name.split()
    shape = int(n), int(d)
    rng = np.random.default_rng(0)
    X = {
        "gauss": lambda: rng.standard_normal(shape),
        "student": lambda: rng.standard_t(2, size=shape),
        "binary": lambda: rng.integers(0, 2, shape),
    }[kind]()
    bound = fourth_moment_bound(X[X.any(axis=1)], limit=EXACT_REACH)
    assert bound is not None
    assert low < 1 - bound.rows / len(X) < high


def test_fourth_moments_do_not_depend_on_the_units_of_columns():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((800, 6))
    mapped = X @ rng.standard_normal((6, 6)) * 1e-7 * 10.0 ** np.arange(-9, 9, 3)
    one, other = fourth_moment_bound(X), fourth_moment_bound(mapped)
    assert one is not None
    assert other is not None
    assert abs(one.rows - other.rows) <= 1


@pytest.mark.slow
@pytest.mark.parametrize(("n", "d"), [(25, 8), (300, 8), (60, 3)])  # fewer and more rows than d (d + 1) / 2
def test_moment_bounds_are_those_of_every_direction(n, d):
    rng = np.random.default_rng(n)
    Z = rng.standard_t(3, size=(n, d))
    c = rng.uniform(0.5, 2, n)
    c /= c.sum()
    second, fourth = moment_bounds(Z, c)
    R = rng.standard_normal((20_000, d))
    R = np.vstack([R, Z])  # towards a row the fourth moment is large
    inner = R / np.linalg.norm(R, axis=1)[:, None] @ Z.T
    assert (inner**2 @ c).min() >= second
    assert (inner**4 @ c).max() <= fourth
    squares = (Z**2).sum(axis=1)
    covariance = (Z * c[:, None]).T @ Z
    assert second == pytest.approx(np.linalg.eigvalsh(covariance)[0], rel=1e-9)
    assert fourth >= 3 / (d * (d + 2)) * c @ squares**2  # the mean over the sphere


def test_no_rows_exceed_the_largest_share_of_fourth_moments():
    rng = np.random.default_rng(4)
    for d in (1, 2, 5):
        X = rng.standard_normal((4000, d))
        bound = fourth_moment_bound(X)
        assert bound is not None
        assert 1 - bound.rows / 4000 <= largest_off_share(d) + 1e-9


def test_slab_bounds_hold_for_slabs():
    """Where r exceeds 2 t reach on some row, no more rows than the bound lie within 2 t."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((200, 3)) * rng.uniform(0.5, 2, (200, 1))
    X[:80, 2] *= 1e-2  # a slab, not a hyperplane
    R = np.vstack([rng.standard_normal((4000, 3)), np.array(list(_orthogonal_pairs(X[:60])))])
    values = np.abs(R @ X.T)
    largest = values.max(axis=1)
    for bound in (packing_bound(X, np.inf), fourth_moment_bound(X), sampled_bound(X, rng), slab_count(X)):
        assert bound is not None
        assert bound.reach <= 1001
        assert bound.rows < 200
        inside = (values * (bound.reach * (1 + 1e-9)) < largest[:, None]).sum(axis=1)  # 2 t = largest / reach
        assert inside.max() <= bound.rows


def _orthogonal_pairs(X):
    for i, j in combinations(range(len(X)), 2):
        yield np.cross(X[i], X[j])


def test_tiny_rows_make_no_slab_bound():
    X = np.random.default_rng(6).standard_normal((60, 2))
    X[:50] *= 1e-7  # any r is within a tolerance on these
    bound = packing_bound(X, np.inf)
    assert bound is not None
    assert bound.rows >= 55


@pytest.mark.slow
def test_the_confidence_of_the_sampled_bound_is_kept():
    """Rows half of which share a hyperplane: the bound may fail in one of ten runs, and does not in more."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((60, 2))
    X[:30, 1] = 0
    runs = 1000
    failures = sum(
        bound is not None and bound.rows < 30
        for bound in (sampled_bound(X, rng, n_draws=20, confidence=0.9) for _ in range(runs))
    )
    assert failures <= 0.1 * runs + 4 * np.sqrt(runs * 0.09)
    assert failures > 0  # the statement is not idle
    weights = rng.uniform(0.5, 1.5, 60)
    failures = sum(
        bound is not None and bound.rows < weights[:30].sum()
        for bound in (sampled_bound(X, rng, n_draws=20, confidence=0.9, sample_weight=weights) for _ in range(runs))
    )
    assert failures <= 0.1 * runs + 4 * np.sqrt(runs * 0.09)


def test_sampled_bound_is_the_formula_without_failures():
    X = np.random.default_rng(8).standard_normal((5000, 10))
    bound = sampled_bound(X, np.random.default_rng(0), n_draws=10_000, confidence=0.999, limit=1e6)
    assert bound is not None
    assert bound.rows / 5000 == pytest.approx((np.log(1000) / 10_000) ** 0.1, abs=0.02)  # research: 0.46 to 0.5


def test_largest_share_is_the_definition():
    from math import comb

    for n, k, p in [(10, 3, 0.2), (50, 5, 1e-3), (12, 12, 0.5), (30, 2, 0.9)]:
        expected = max(h for h in range(n + 1) if comb(h, k) <= p * comb(n, k))
        assert largest_share(n, k, p) == expected
    assert failure_ceiling(0, 100, 0.95) == pytest.approx(1 - 0.05**0.01)


def test_exactly_parallel_rows_are_never_told_apart():
    rng = np.random.default_rng(10)
    x = rng.integers(1, 1000, 5)
    X = np.vstack([x * k for k in range(1, 200)] + [np.eye(5, dtype=int)[i] for i in range(5)]).astype(float)
    X[::2] *= -1
    bound = slab_count(X, limit=EXACT_REACH)
    assert bound is not None
    assert bound.rows == 199 + 3


def test_lines_close_at_pi():
    X = np.array([[1.0, 0.0], [-2.0, 0.0], [1.0, 1e-16], [1.0, -1e-16], [0.0, 1.0], [0.0, -1.0]])
    bound = slab_count(X, limit=EXACT_REACH)
    assert bound is not None
    assert bound.rows == 4


def test_bounds_give_up_without_a_span_or_a_budget():
    rng = np.random.default_rng(11)
    flat = rng.standard_normal((50, 4)) @ np.diag([1.0, 1, 1, 0])
    assert packing_bound(flat, 10) is None
    assert sampled_bound(flat, rng) is None
    assert fourth_moment_bound(flat) is None
    assert slab_count(flat) is None
    X = rng.standard_normal((500, 8))
    assert slab_count(X, budget=1e6) is None
    assert fourth_moment_bound(X, budget=1e3) is None
    assert packing_bound(X[:5], 1) is None


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_extreme_sizes(scale):
    X = np.random.default_rng(12).standard_normal((60, 3)) * scale
    for _, bound in all_bounds(X, np.ones(60), np.random.default_rng(0)):
        assert bound is not None
        assert 2 <= bound.rows < 60


def test_the_span_of_integers_is_exact():
    rng = np.random.default_rng(13)
    for _ in range(50):
        d = int(rng.integers(1, 7))
        X = rng.integers(-3, 4, (int(rng.integers(1, 12)), d))
        X = X[X.any(axis=1)]
        span = span_of(X.astype(float) * 10.0 ** rng.integers(-8, 9, d))
        assert span.rank == (exact_rank(X) if len(X) else 0)
        assert exact_rank(X[:, span.columns]) == span.rank if len(X) else True


def test_bad_arguments_are_named():
    X = np.ones((3, 2))
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="n_draws must be at least 1, got 0"):
        sampled_bound(X, rng, n_draws=0)
    with pytest.raises(ValueError, match="confidence must be between 0 and 1, got 1"):
        sampled_bound(X, rng, confidence=1.0)
    with pytest.raises(ValueError, match="sample_weight must not be negative"):
        packing_bound(X, 1, sample_weight=[1, -1, 1])
    with pytest.raises(ValueError, match="X must be finite"):
        slab_count([[np.nan, 1.0]])


def test_moment_bounds_of_orthogonal_rows_whatever_lapack_makes_of_equal_eigenvalues():
    """As many rows as columns, in isotropic position: eigenvalues coincide, on which LAPACK's syevr may give up."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        k = int(rng.integers(10, 60))
        Z = np.linalg.qr(rng.standard_normal((k, k)))[0]
        second, fourth = moment_bounds(Z, np.full(k, 1 / k))
        assert second == pytest.approx(1 / k)
        assert fourth >= 1 / k - 1e-12  # met by r = any of the rows


@pytest.mark.parametrize("d", [2, 5])
def test_a_sampled_bound_of_equal_weights_is_no_less_than_that_of_rows(d):
    X = np.random.default_rng(d).standard_normal((200, d))
    plain, weighted = (
        sampled_bound(X, np.random.default_rng(0), n_draws=500, confidence=0.99, limit=1e6, sample_weight=weights)
        for weights in (None, np.ones(200))
    )
    assert plain is not None
    assert weighted is not None
    assert plain.rows <= weighted.rows < 200


def test_rows_of_weight_zero_are_not_packed():
    rng = np.random.default_rng(11)
    X = rng.standard_normal((90, 3))
    weights = rng.integers(0, 3, 90).astype(float)
    X[weights == 0] = [1.0, 0.0, 0.0]  # they would spoil every block that they are in, and would not fill one
    there = weights > 0
    ours, known = (packing_bound(X[some], needed=60, sample_weight=weights[some]) for some in (slice(None), there))
    assert ours is not None
    assert ours.rows == known.rows
    assert ours.reach == pytest.approx(known.reach)
