"""Counting against brute force: every bound on the rows of a slab, and what is PROVEN by it."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from arrays import recovered
from massart.certificate import EXACT_REACH, Bound, Decisive, Verdict, bound_sharing, span_of
from massart.certificate.counting import packing_bound, slab_count
from massart.certificate.fourth_moment import fourth_moment_bound, moment_bounds
from massart.rows import IDENTITY, RELU, levels, verify

# --- exact references ---


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


def all_bounds(X, weights):
    weights_given = None if (weights == 1).all() else weights
    yield "packing", packing_bound(X, np.inf, weights=weights_given)
    yield "packing a little", packing_bound(X, 1.0, weights=weights_given)
    yield "fourth moment", fourth_moment_bound(X, weights=weights_given)
    yield "counted", slab_count(X, weights=weights_given)
    yield "packing, exact", packing_bound(X, np.inf, weights=weights_given, limit=EXACT_REACH)
    yield "moments, exact", fourth_moment_bound(X, weights=weights_given, limit=EXACT_REACH)
    yield "counted, exact", slab_count(X, weights=weights_given, limit=EXACT_REACH)


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


# --- bounds on the rows of a hyperplane ---


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
        for name, bound in all_bounds(X * column_scales, weights):
            assert bound is None or bound.rows >= h, (name, X, weights)
            known.update([name] if bound is not None else [])
        exact = slab_count(X * column_scales, weights=weights, limit=EXACT_REACH)
        assert exact is not None
        assert exact.rows == h
    assert len(known) == 7, "every bound was tried"


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
    for name, bound in all_bounds(X, np.ones(300)):
        assert bound is None or bound.rows >= held, name


def test_packing_is_tight_in_general_position():
    X = np.random.default_rng(0).standard_normal((100, 7))
    bound = packing_bound(X, np.inf)
    assert bound is not None
    assert bound.rows == 100 - 100 // 7


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


def test_slab_bounds_hold_for_slabs():
    """Where r exceeds 2 t reach on some row, no more rows than the bound lie within 2 t."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((200, 3)) * rng.uniform(0.5, 2, (200, 1))
    X[:80, 2] *= 1e-2  # a slab, not a hyperplane
    R = np.vstack([rng.standard_normal((4000, 3)), np.array(list(_orthogonal_pairs(X[:60])))])
    values = np.abs(R @ X.T)
    largest = values.max(axis=1)
    for bound in (packing_bound(X, np.inf), fourth_moment_bound(X), slab_count(X)):
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


def test_exactly_parallel_rows_are_never_told_apart():
    rng = np.random.default_rng(10)
    x = rng.integers(1, 1000, 5)
    X = np.vstack([x * k for k in range(1, 200)] + [np.eye(5, dtype=int)[i] for i in range(5)]).astype(float)
    X[::2] *= -1
    bound = slab_count(X, limit=EXACT_REACH)
    assert bound is not None
    assert bound.rows == 199 + 3


def test_bounds_give_up_without_a_span_or_a_budget():
    rng = np.random.default_rng(11)
    flat = rng.standard_normal((50, 4)) @ np.diag([1.0, 1, 1, 0])
    assert packing_bound(flat, 10) is None
    assert fourth_moment_bound(flat) is None
    assert slab_count(flat) is None
    X = rng.standard_normal((500, 8))
    assert slab_count(X, budget=1e6) is None
    assert fourth_moment_bound(X, budget=1e3) is None
    assert packing_bound(X[:5], 1) is None


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_extreme_sizes(scale):
    X = np.random.default_rng(12).standard_normal((60, 3)) * scale
    for _, bound in all_bounds(X, np.ones(60)):
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


# --- what is proven: small lattices, every vertex is tried ---


def vertices(X, y):
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


def decisive(X, y, w, weights=None, link=IDENTITY, tolerance="auto"):
    """Return the case that `w` has on these rows, by the definitions and not by the judge; None without a row."""
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    level = levels(tolerance, X, y)[0]
    found = verify(X, y, w, level, link)
    told = found.agree & link.decisive(y, found.half_widths) & X.any(axis=1)
    if not told.any() or not found.half_widths[told].all():
        return None
    counts = np.ones(len(y)) if weights is None else weights
    possible = ~link.impossible(y, found.half_widths)
    rows = X[told] / found.half_widths[told][:, None]
    wrong = counts[possible & ~found.agree].sum()
    return Decisive(rows, None if weights is None else weights[told], float(counts[told].sum()), float(wrong), 1e6)


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


@pytest.mark.full(every=3)
@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_what_is_proven_of_a_lattice_is_its_unique_l0_minimizer(kind, d):
    rng = np.random.default_rng([d, KINDS.index(kind)])
    claims = 0
    for trial in range(40):
        X, y = planted(rng, int(rng.integers(d + 1, 13)), d, kind)
        weights = rng.integers(1, 4, len(X)).astype(float) if trial % 2 else None
        counts = np.ones(len(X)) if weights is None else weights
        if np.linalg.matrix_rank(X) < d:
            continue
        fits = {tuple((w / q).tolist()): float(counts[fitted(X, y, w, q)].sum()) for w, q in vertices(X, y)}
        best = max(fits.values())
        for w in list(fits)[:12]:  # any candidate, not only a good one
            case = decisive(X, y, np.array(w), weights)
            if case is None:
                continue
            known = bound_sharing(case)
            if known.proven:
                claims += 1
                assert [v for v, count in fits.items() if count == best] == [w]
                assert known.rows is not None
                assert known.rows + case.wrong < case.total
    assert claims > 0


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 2, 3])
def test_what_is_proven_of_a_relu_lattice_is_its_unique_l0_minimizer(d):
    """Vertices fit d rows exactly; other parameters are tried at random, in half-integers."""
    rng = np.random.default_rng(d)
    claims = 0
    for trial in range(100):
        n = int(rng.integers(d + 2, 14))
        X = rng.integers(-2, 3, (n, d))
        w = rng.integers(-3, 4, d)
        y = np.maximum(X @ w, 0)
        wrong = rng.random(n) < 0.15
        y[wrong] = rng.choice([0, 1, 5], wrong.sum())
        weights = rng.integers(1, 4, n).astype(float) if trial % 2 else None
        counts = np.ones(n) if weights is None else weights
        case = decisive(X, y, w.astype(float), weights, RELU)
        if case is None or not bound_sharing(case).proven:
            continue
        claims += 1
        others = np.vstack(
            [rng.integers(-20, 21, (2000, d)), 2 * w + rng.integers(-4, 5, (500, d))]
            + [2 * v / q for v, q in vertices(X, y)]
        )
        told = (np.maximum(X @ w, 0) == y) & (y > 0)  # what these leave open is no other formula
        others = others[(np.abs((others - 2 * w) @ X[told].T) > 1e-9).any(axis=1)]
        reached = (np.abs(np.maximum(others @ X.T / 2, 0) - y) < 1e-9) @ counts
        assert reached.max() < counts[np.maximum(X @ w, 0) == y].sum()
    assert claims > 10


def test_a_tie_is_never_proven():
    ties = 0
    for seed in range(80):
        rng = np.random.default_rng(seed)
        d, half = int(rng.integers(1, 5)), int(rng.integers(3, 12))
        X = rng.integers(-2, 3, (2 * half, d))
        X = np.where(X.any(axis=1)[:, None], X, 1)
        w, other = rng.integers(-3, 4, d), rng.integers(-3, 4, d)
        if (w == other).all():
            continue
        y = np.concatenate([X[:half] @ w, X[half:] @ other])
        counts = [int((X @ v == y).sum()) for v in (w, other)]
        case = decisive(X, y, (w, other)[int(np.argmin(counts))].astype(float))
        if case is not None:
            assert not bound_sharing(case).proven
            ties += 1
    assert ties > 40


# --- slabs, weights, and the bounds in their order ---


def rivals_in_the_plane(X, y, t):
    """Return the vertices of all slabs |y - w.x| <= t, a hair inside, and points far along each slab."""
    found = []
    inside = t * (1 - 1e-7)
    for i, j in combinations(range(len(y)), 2):
        if abs(np.linalg.det(X[[i, j]])) > 1e-9:
            shifts = np.array(list(product((-1, 1), repeat=2))).T * inside[[i, j]][:, None]
            found += list(np.linalg.solve(X[[i, j]], y[[i, j]][:, None] + shifts).T)
    for row, label in zip(X, y, strict=True):
        foot, along = row * label / (row @ row), np.array([-row[1], row[0]]) / (row @ row)
        found += [foot + k * along for k in (-1e6, -1e3, -10, 10, 1e3, 1e6)]
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_proven_tolerance_has_no_rival_in_the_plane(weighted):
    """No formula beyond the resolution fits as many rows; widths that differ from row to row are slabs of their own."""
    claims = near = 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        n, t = int(rng.integers(8, 20)), 0.05
        X = rng.standard_normal((n, 2)) * rng.uniform(0.1, 3, (n, 1))
        y = X @ rng.standard_normal(2) + rng.uniform(-t, t, n)
        wrong = rng.random(n) < 0.15
        y[wrong] += rng.choice([-1, 1], wrong.sum()) * rng.uniform(0.2, 3, wrong.sum())
        weights = rng.integers(1, 4, n).astype(float) if weighted else None
        found = recovered(X, y, tolerance=t, sample_weight=weights)
        if found.certificate.verdict is not Verdict.PROVEN:
            continue
        claims += 1
        counts = np.ones(n) if weights is None else weights
        widths = verify(X, y, found.coef, found.agreement).half_widths
        rivals = rivals_in_the_plane(X, y, widths)
        reached = (np.abs(rivals @ X.T - y) <= widths) @ counts
        apart = (np.abs((rivals - found.coef) @ X[found.agree].T) / widths[found.agree]).max(axis=1)
        assert (reached[apart > found.certificate.resolution] < counts[found.agree].sum()).all()
        near += int((reached >= counts[found.agree].sum()).any())
    assert claims > 5
    assert near > 0, "formulas that count as the same are among those tried"


def test_a_tolerance_turns_hyperplanes_into_slabs():
    """Rows whose second entry hides in the tolerance: exact labels prove what rounded ones do not."""
    rng = np.random.default_rng(13)
    X = np.column_stack([rng.uniform(1, 2, 130), 1e-4 * rng.standard_normal(130)])
    X[:10, 1] = rng.uniform(1, 2, 10)
    y = X @ [1.0, 2.0]
    y[100:] += rng.uniform(3, 9, 30)
    exact, rounded = recovered(X, y), recovered(X, y, tolerance=0.005)
    np.testing.assert_allclose(exact.coef, [1, 2], rtol=1e-9)
    assert exact.certificate.verdict is Verdict.PROVEN
    assert rounded.certificate.verdict is not Verdict.PROVEN
    # A formula that differs visibly shares 90 rows and may fit the 30 wrong ones: 120 in all.
    assert (np.abs(X[:100] @ [0.0, 5.0]) <= 0.01).sum() >= 90


def check_no_rival(found, X, y, rivals, link=IDENTITY):
    """Assert of a PROVEN formula that none of some rivals beyond its resolution fits as many rows."""
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    mine = verify(X, y, found.coef, found.agreement, link)
    told = mine.agree & link.decisive(y, mine.half_widths) & (mine.half_widths > 0)
    for rival in rivals:
        theirs = verify(X, y, np.asarray(rival, dtype=float), found.agreement, link).agree
        apart = np.abs(X[told] @ (rival - found.coef)) / mine.half_widths[told]
        assert apart.max(initial=0.0) <= found.certificate.resolution or theirs.sum() < mine.agree.sum()


@pytest.mark.parametrize("dust", [5.55e-17, 1e-300, 0.0])
def test_zeros_with_float_dust_prove_no_wrong_relu(dust):
    truth, rival = np.array([1, 0.5, -0.25]), np.array([2, -0.5, 0.75])
    claims = 0
    for seed, share in product(range(6), (0.1, 0.3)):
        rng = np.random.default_rng(seed)
        n = 300
        X = rng.standard_normal((n, 3))
        g = np.where(rng.random(n) < 0.8, -1, 1)
        X[:, 0] = g * (np.abs(X[:, 0]) + 3)
        y = np.maximum(X @ truth, 0)
        bad = (rng.random(n) < share) & (g > 0)
        y[bad] = X[bad] @ rival
        y[y == 0] = dust
        found = recovered(X, y, link=RELU)
        if found.certificate.verdict is Verdict.PROVEN:
            claims += 1
            assert np.abs(found.coef - truth).max() < 1e-9
            check_no_rival(found, X, y, [truth, rival], RELU)
    assert claims > 0


@pytest.mark.slow
@pytest.mark.parametrize("easy", [False, True])
def test_float32_is_a_slab(easy):
    """Two rates within float32 of each other: neither is proven, nor one between; of other tables some are."""
    claims = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        if easy:
            X = rng.standard_normal((400, 3)).astype(np.float32)
            rivals = np.array([[1, 2, 3], [1, 2, 3.25]])
        else:
            X = np.column_stack([rng.uniform(1000, 2000, 600), rng.uniform(0, 1, 600)]).astype(np.float32)
            rivals = np.array([[1, 1], [1, 1.01]])
        first = rng.random(len(X)) < (0.9 if easy else 0.6)
        y = np.where(first, X @ rivals[0].astype(np.float32), X @ rivals[1].astype(np.float32)).astype(np.float32)
        found = recovered(X, y)
        if found.certificate.verdict is Verdict.PROVEN:
            claims += 1
            check_no_rival(found, X, y, rivals)
    assert claims > 0 or not easy


@pytest.mark.slow
@pytest.mark.parametrize("size", [1e6, 1e12])
def test_a_huge_term_hides_no_rival(size):
    claims = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.uniform(0, 1, (500, 3))
        rivals = np.array([[size, 0.03, 1], [size, 0.01, 1]])
        y = np.where(rng.random(500) < 0.6 + 0.3 * (seed % 2), X @ rivals[0], X @ rivals[1])
        found = recovered(X, y)
        if found.certificate.verdict is Verdict.PROVEN:
            claims += 1
            check_no_rival(found, X, y, rivals)
    assert claims > 0 or size == 1e12


def gaussian_case(n_agree, n_rows, d, seed=0, weights=None):
    rows = np.random.default_rng(seed).standard_normal((n_agree, d)) * 1e10
    return Decisive(rows, weights, float(n_agree), float(n_rows - n_agree), 1e6)


@pytest.mark.parametrize(
    ("n_agree", "n_rows", "d", "expected"),
    [
        (900, 1000, 1, Bound.EXACT),
        (600, 1000, 2, Bound.EXACT),
        (70, 100, 3, Bound.EXACT),
        (960, 1000, 20, Bound.PACKING),
        (900, 1000, 20, Bound.FOURTH_MOMENT),
    ],
)
def test_all_paths_prove_what_they_can_and_no_more(n_agree, n_rows, d, expected):
    case = gaussian_case(n_agree, n_rows, d)
    known = bound_sharing(case)
    assert known.bound is expected or (d == 1 and known.bound is Bound.PACKING)
    assert known.proven
    assert known.rows is not None
    assert 2 * n_agree > n_rows + known.rows
    assert known.reach <= 1e6
    assert not bound_sharing(gaussian_case(n_agree, 2 * n_agree, d)).proven, "half of the rows prove nothing"


def test_as_many_rows_off_every_slab_as_are_wrong_prove_nothing():
    """Another formula of two columns shares one of ten rows, so that nine may be won by it."""
    for n_wrong, proven in ((8, True), (9, False)):
        case = gaussian_case(10, 10 + n_wrong, 2)
        assert bound_sharing(case).proven is proven


def test_rows_in_a_hyperplane_are_not_proven():
    case = gaussian_case(700, 1000, 5)
    rows = case.rows.copy()
    rows[:600, 0] = 0  # another formula, of any first coefficient, shares these
    known = bound_sharing(Decisive(rows, None, case.total, case.wrong, case.limit))
    assert not known.proven
    assert known.rows is None or known.rows >= 600


def test_a_subset_of_the_decisive_rows_proves_less():
    whole = gaussian_case(5000, 5500, 4)
    part, few = (Decisive(whole.rows[:m], None, whole.total, whole.wrong, whole.limit) for m in (2500, 400))
    assert bound_sharing(whole).proven
    known = bound_sharing(part)
    assert known.proven
    assert known.rows is not None
    assert 2500 <= known.rows < 4500
    assert not bound_sharing(few).proven


def test_weights_count_like_repeated_rows():
    rng = np.random.default_rng(6)
    X = rng.integers(-3, 4, (14, 3))
    X = X[X.any(axis=1)] * 1e12
    weights = rng.integers(1, 5, len(X))
    total = float(weights.sum())
    outcomes = set()
    for wrong in (0.0, 2.0, 10.0, 30.0):
        weighted = bound_sharing(Decisive(X, weights.astype(float), total, wrong, 1e6))
        repeated = bound_sharing(Decisive(np.repeat(X, weights, axis=0), None, total, wrong, 1e6))
        tenths = bound_sharing(Decisive(X, 0.1 * weights, 0.1 * total, 0.1 * wrong, 1e6))
        assert weighted.proven == repeated.proven == tenths.proven
        outcomes.add(weighted.proven)
    assert outcomes == {True, False}


@pytest.mark.parametrize("unit", [1.0, 2.0**53, 1e300])
def test_sums_of_weights_are_not_trusted_to_the_last_digit(unit):
    """One row more than are wrong proves, if that is more than the rounding of sums of weights."""
    rows = 1e12 * np.ones((101, 1))
    weights = None if unit == 1.0 else np.full(101, unit)
    assert bound_sharing(Decisive(rows, weights, 101 * unit, 100 * unit, 1e6)).proven
    edge = 100.0 if unit == 1.0 else np.nextafter(101 * unit, 0)
    assert bound_sharing(Decisive(rows, weights, 101 * unit, edge, 1e6)).proven is (unit == 1.0)
