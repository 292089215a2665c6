"""Every bound on the rows of one hyperplane, against all hyperplanes; exact arithmetic decides."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from massart.certificate import EXACT_REACH, enumeration, fourth_moment_bound, packing_bound, sampled_bound, slab_count
from massart.certificate import blocks as blocks_module
from massart.certificate.blocks import _count_failures, _subsets, block_cost, failure_ceiling, largest_share
from massart.certificate.enumeration import enumeration_cost, parallel_classes
from massart.certificate.fourth_moment import fourth_moment_cost, largest_off_share, moment_bounds, whiten
from massart.certificate.span import Coordinates, coordinates, span_of, unit_rows


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
    assert (largest_off_share(1), largest_off_share(4)) == (1, 0.5)


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


def test_parallel_rows_are_one_class_and_others_are_not():
    X = np.array([[1.0, 0.0], [-2.0, -0.0], [1.0, 1e-17], [0.0, 3.0], [-1.0, 0.0]])
    first, weights = parallel_classes(X, np.array([1.0, 2, 4, 8, 16]))
    assert sorted(zip(first.tolist(), weights.tolist(), strict=True)) == [(0, 19), (2, 4), (3, 8)]
    assert sorted(parallel_classes(X, None)[1].tolist()) == [1, 1, 3]


def test_hyperplanes_may_be_counted_in_batches(monkeypatch):
    X = degenerate_rows(np.random.default_rng(0), 20, 3, "few hyperplanes")
    whole = slab_count(X)
    monkeypatch.setattr(enumeration, "_BATCH", 5 * (3 * 3 + 20))
    assert slab_count(X) == whole
    assert whole is not None
    assert whole.rows == fullest_hyperplane(X, np.ones(len(X)))


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
    assert sampled_bound(np.eye(2), rng, n_draws=1) is not None
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


# --- numbers of the bounds, one by one ---


def test_the_work_of_a_bound_is_what_is_stated():
    assert block_cost(4) == 10 * 12 * 4**2
    assert block_cost(4, 100) == 10 * 100 * 4**2
    assert fourth_moment_cost(7, 3) == 7 * 6**2 + 4 * 6**3
    assert fourth_moment_cost(6, 3) == 6**2 * 3 + 4 * 6**3
    assert enumeration_cost(10, 3) == comb(10, 2) * (2 * 10 * 3 + 20 * 3**3)
    X = np.random.default_rng(0).standard_normal((60, 3))
    for bound, cost in ((fourth_moment_bound, fourth_moment_cost), (slab_count, enumeration_cost)):
        assert bound(X, budget=cost(60, 3)) is not None
        assert bound(X, budget=0.999 * cost(60, 3)) is None


@pytest.mark.parametrize("blocks", [1, 9, 40])
def test_packing_takes_the_work_it_is_given_however_rows_are_ordered(blocks):
    X = np.repeat(np.eye(5), 50, axis=0)  # sorted: neighbours are alike
    bound = packing_bound(X, np.inf, budget=blocks * block_cost(5))
    assert bound is not None
    assert bound.rows == 250 - blocks
    assert packing_bound(X, np.inf, budget=0.0) is None


def test_a_block_of_rows_weighs_what_its_lightest_does_and_the_heaviest_are_packed_first():
    weights = np.r_[np.full(30, 9.0), np.full(30, 2.0)]
    X = np.tile(np.eye(3), (20, 1))
    first = packing_bound(X, 0.0, sample_weight=weights)
    whole = packing_bound(X, np.inf, sample_weight=weights)
    assert first is not None
    assert first.rows == 330 - 9
    assert whole is not None
    assert whole.rows == 330 - 110  # in each column there are 110


def test_the_reach_of_packed_blocks_is_that_of_the_worst():
    X = np.array([[1.0, 0], [0, 1], [1, 0], [1, 0.1]])
    bound = packing_bound(X, np.inf)
    assert bound is not None
    assert bound.rows == 2
    assert bound.reach == pytest.approx(np.sqrt(2) * np.sqrt(1.01) / np.linalg.svd(X[2:])[1][-1], rel=1e-9)


@pytest.mark.parametrize("failing", [False, True])
def test_a_sampled_bound_is_the_share_that_its_failures_leave(failing):
    X = np.random.default_rng(8).standard_normal((400, 3))
    X[:200, 0] *= not failing
    weights = np.random.default_rng(9).uniform(1, 2, 400)
    place, limit = coordinates(X), 1e6
    assert place is not None
    for counts in (None, weights):
        bound = sampled_bound(
            X, np.random.default_rng(0), n_draws=300, confidence=0.99, limit=1e6, sample_weight=counts
        )
        failures = _count_failures(place, counts, np.random.default_rng(0), 300, limit)
        assert (failures > 0) == (failing or counts is not None)  # a row may be drawn twice where rows have weights
        ceiling = beta.ppf(0.99, failures + 1, 300 - failures)  # Clopper and Pearson
        held = largest_share(400, 3, ceiling) if counts is None else ceiling ** (1 / 3) * counts.sum()
        assert bound is not None
        assert bound.rows == pytest.approx(held, rel=1e-12)
        assert bound.reach == limit


def test_random_subsets_are_uniform(monkeypatch):
    drawn = np.sort(_subsets(5, 3, 20_000, np.random.default_rng(0)), axis=1)
    subsets, counts = np.unique(drawn, axis=0, return_counts=True)
    assert sorted(map(tuple, subsets.tolist())) == sorted(combinations(range(5), 3))
    np.testing.assert_allclose(counts, 2000, atol=5 * np.sqrt(2000))
    X = np.vstack([np.eye(3)] * 2)  # 8 of 20 blocks are independent: no two rows that are the same
    place = coordinates(X)
    assert place is not None
    assert _count_failures(place, None, np.random.default_rng(0), 5000, 1e3) == pytest.approx(3000, abs=5 * 35)
    monkeypatch.setattr(blocks_module, "_BATCH", 9 * 7)
    assert _count_failures(place, None, np.random.default_rng(0), 5000, 1e3) == pytest.approx(3000, abs=5 * 35)


@pytest.mark.parametrize(("n", "k"), [(40, 3), (5000, 10), (200_000, 4)])
def test_the_largest_share_is_met_where_its_probability_is_given(n, k):
    for h in np.linspace(k + 1, n - 1, 12).astype(int).tolist():
        probability = float(Fraction(comb(h, k), comb(n, k)))
        assert largest_share(n, k, probability) == h
        assert largest_share(n, k, probability * (1 - 0.5 * k / h)) == h - 1


@pytest.mark.parametrize("k", [1, 3])
def test_coordinates_in_a_block_of_unit_vectors_are_the_rows(k):
    X = np.vstack([np.eye(k), np.full((1, k), 0.5)])
    place = coordinates(X * 2.0**7 * 2.0 ** -np.arange(k))
    assert place is not None
    np.testing.assert_array_equal(np.sort(place.Y, axis=0), np.sort(X, axis=0))
    relative = 64 * k * np.finfo(float).eps
    assert place.error == pytest.approx(max(1, k / 2) * relative / (1 - relative), rel=1e-12)
    assert place.longest == pytest.approx(1 + place.error, rel=1e-15)
    assert coordinates(np.eye(k)[1:]) is None
    dense = np.random.default_rng(k).uniform(-1, 1, (20, k))
    plain, huge = (coordinates(np.ldexp(dense, exponent)) for exponent in (0, 1023))
    assert plain is not None
    assert huge is not None
    np.testing.assert_array_equal(huge.Y, plain.Y)


@pytest.mark.parametrize(("gap", "spoilt"), [(1e-10, False), (6e-13, False), (4e-13, True), (0.0, True)])
def test_coordinates_that_rounding_spoils_are_none(gap, spoilt):
    """More than a quarter of them may be rounding."""
    flat = np.array([[1.0, 1.0], [1.0, 1.0 + gap]])
    place = coordinates(flat)
    assert (place is None) == spoilt
    if place is not None:
        conditions = np.linalg.norm(flat, np.inf) * np.linalg.norm(np.linalg.inv(flat), np.inf)
        relative = 64 * 2 * np.finfo(float).eps * conditions
        assert place.error == pytest.approx(relative / (1 - relative) * np.abs(place.Y).sum(axis=1).max(), rel=1e-3)


def test_rows_of_any_size_become_units_of_columns_of_a_common_size():
    rng = np.random.default_rng(0)
    plain = rng.uniform(0.5, 1, (30, 3)) * rng.choice([-1, 1], (30, 3))
    X = np.ldexp(plain, rng.integers(-300, 300, (30, 1)) + [-400, 0, 300])
    X[3] = 0
    units, scales = unit_rows(X)
    np.testing.assert_allclose(np.linalg.norm(np.delete(units, 3, axis=0), axis=1), 1, rtol=1e-12)
    assert not units[3].any()
    assert (np.abs(units).max(axis=0) > 0.25).all()
    np.testing.assert_allclose(np.log2(scales) - np.log2(scales[0]), [0, 400, 700], atol=1)
    far = unit_rows(np.array([[1e308, 5e-324], [1e308, 0.0], [0.0, 5e-324]]))[1]
    assert (far > 0).all()


@pytest.mark.parametrize("error", [0.0, 1e-3])
def test_the_reach_is_what_the_smallest_singular_value_allows(error):
    k, eps = 2, np.finfo(float).eps
    blocks = np.array([[[1.0, 0], [0, 0.5]], [[1.0, 0], [0, 1e-13]], [[1.0, 0], [0, 0]]])
    sizes = np.array([0.5, 1e-13, 0.0]) - np.sqrt(k) * error - 16 * k * eps
    expected = np.where(sizes > 0, np.sqrt(k) * 3.0 / sizes, np.inf)
    np.testing.assert_allclose(Coordinates(np.eye(k), 3.0, error).reach(blocks), expected, rtol=1e-9)


@pytest.mark.parametrize(("n", "d"), [(25, 4), (8, 4), (10, 4), (30, 1)])
def test_moment_bounds_are_the_formula_of_the_module_and_its_rounding(n, d):
    rng = np.random.default_rng(n)
    Z, c = 3 * rng.standard_normal((n, d)), rng.uniform(1, 2, n)
    c /= c.sum()
    squares = (Z**2).sum(axis=1)
    T = np.einsum("ij,ik->ijk", Z, Z) - squares[:, None, None] / d * np.eye(d)
    mixed = np.linalg.eigvalsh(np.einsum("i,ijk->jk", c * squares / d, T))[-1]
    flat = T.reshape(n, -1)
    top = np.linalg.eigvalsh((flat * c[:, None]).T @ flat)[-1]
    expected = c @ squares**2 / d**2 + 2 * mixed + (1 - 1 / d) * top
    least = np.linalg.eigvalsh((Z * c[:, None]).T @ Z)[0]
    second, fourth = moment_bounds(Z, c)
    rounding = 16 * (n + d * (d + 1) / 2) * np.finfo(float).eps
    assert least - second == pytest.approx(rounding * (c @ squares), rel=0.03)
    assert fourth - expected == pytest.approx(4 * rounding * (c @ squares**2), rel=0.03)


@pytest.mark.parametrize("weighted", [False, True])
def test_fourth_moments_of_orthogonal_rows_are_known(weighted):
    """Whitened, they are sqrt(d) e_i, with E (r.z)^4 at most d; rows that are very short count as lying in the slab."""
    d, n = 3, 300
    X = np.tile(np.eye(d), (n // d, 1)) * np.where(np.arange(n) < n / 2, 1.0, 4.0)[:, None]
    weights = np.full(n, 0.5) if weighted else None
    total = 0.5 * n if weighted else n
    bound = fourth_moment_bound(X, sample_weight=weights)
    assert bound is not None
    off = (1 - 0.1**2) ** 2 / d
    assert bound.rows == (pytest.approx(total * (1 - off), rel=1e-9) if weighted else np.floor(n * (1 - off)))
    assert bound.reach == pytest.approx(4 * np.sqrt(d) / 0.1, rel=1e-6)
    X[:60] *= 1e-6
    bound = fourth_moment_bound(X, sample_weight=weights)
    assert bound is not None
    off -= 60 / n
    assert bound.rows == (pytest.approx(total * (1 - off), rel=1e-9) if weighted else np.floor(n * (1 - off)))
    assert bound.reach == pytest.approx(1e3, rel=1e-9)
    X[:120] *= 1e-6
    assert fourth_moment_bound(X, sample_weight=weights) is None


def test_whitened_rows_have_the_identity_as_their_second_moment():
    rng = np.random.default_rng(0)
    Z, c = rng.standard_normal((50, 4)) @ rng.standard_normal((4, 4)), np.full(50, 1 / 50)
    B = whiten(Z, c)
    assert B is not None
    np.testing.assert_allclose((Z @ B * c[:, None]).T @ (Z @ B), np.eye(4), atol=1e-12)
    assert whiten(np.diag([1.0, 1.05e-5]), np.ones(2)) is not None
    assert whiten(np.diag([1.0, 0.95e-5]), np.ones(2)) is None  # 1e-10 of the largest eigenvalue


@pytest.mark.parametrize(("d", "near"), [(1, 1e-3), (2, 2e-3)])
def test_rows_near_a_hyperplane_are_counted_up_to_the_limit_of_the_reach(d, near):
    for times, held in ((0.99, 1), (1.01, 0)):
        X = np.vstack([np.eye(d), [*np.full(d - 1, 0.5), times * near]])
        for weights in (None, np.full(d + 1, 2.0)):
            bound = slab_count(X, sample_weight=weights, limit=1e3)
            assert bound is not None
            assert bound.rows == (d - 1 + held) * (1 if weights is None else 2)
            assert bound.reach == 1e3
