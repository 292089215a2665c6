"""PROVEN against brute force: no other formula fits as many rows, whatever the data look like."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from massart.certificate import Bound, Decisive, HyperplaneBound, Verdict, bound_sharing, sample_sharing, sharing
from massart.certificate.blocks import failure_ceiling, largest_share
from massart.recover import recover_matrix
from massart.rows import IDENTITY, RELU, levels, verify


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


# --- small lattices: every vertex is tried ---


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


# --- tolerances: every vertex of the slabs is tried ---


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
        found = recover_matrix(X, y, tolerance=t, sample_weight=weights)
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


@pytest.mark.slow
def test_a_proven_tolerance_has_no_rival_on_the_line():
    claims = 0
    for seed in range(80):
        rng = np.random.default_rng(seed)
        n, t = int(rng.integers(3, 15)), 0.1
        x = rng.integers(-4, 5, n).astype(float)
        x[x == 0] = 1
        y = np.where(rng.random(n) < 0.6, x * 1.5, x * rng.integers(-3, 4)) + rng.uniform(-t, t, n)
        found = recover_matrix(x[:, None], y, tolerance=t)
        if found.certificate.verdict is not Verdict.PROVEN:
            continue
        claims += 1
        ends = np.concatenate([(y + t) / x, (y - t) / x])
        rivals = np.concatenate([ends, ends * (1 + 1e-12), ends * (1 - 1e-12)])
        reached = (np.abs(y - rivals[:, None] * x) <= t).sum(axis=1)
        apart = np.abs(np.outer(rivals - found.coef[0], x[found.agree])).max(axis=1) / t
        assert (reached[apart > found.certificate.resolution * (1 + 1e-9)] < found.agree.sum()).all()
    assert claims > 10


def test_a_tolerance_turns_hyperplanes_into_slabs():
    """Rows whose second entry hides in the tolerance: exact labels prove what rounded ones do not."""
    rng = np.random.default_rng(13)
    X = np.column_stack([rng.uniform(1, 2, 130), 1e-4 * rng.standard_normal(130)])
    X[:10, 1] = rng.uniform(1, 2, 10)
    y = X @ [1.0, 2.0]
    y[100:] += rng.uniform(3, 9, 30)
    exact, rounded = recover_matrix(X, y), recover_matrix(X, y, tolerance=0.005)
    np.testing.assert_allclose(exact.coef, [1, 2], rtol=1e-9)
    assert exact.certificate.verdict is Verdict.PROVEN
    assert rounded.certificate.verdict is not Verdict.PROVEN
    # A formula that differs visibly shares 90 rows and may fit the 30 wrong ones: 120 in all.
    assert (np.abs(X[:100] @ [0.0, 5.0]) <= 0.01).sum() >= 90


# --- floats: the false proofs of review/claims.md, 1, and tables in which something is proven ---


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
        found = recover_matrix(X, y, link=RELU)
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
        found = recover_matrix(X, y)
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
        found = recover_matrix(X, y)
        if found.certificate.verdict is Verdict.PROVEN:
            claims += 1
            check_no_rival(found, X, y, rivals)
    assert claims > 0 or size == 1e12


# --- the bounds in their order ---


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


def test_random_blocks_bound_what_is_shared_and_are_not_drawn_in_vain():
    case = gaussian_case(700, 1000, 8)
    assert not bound_sharing(case).proven
    rng = np.random.default_rng(0)
    shared = sample_sharing(case, rng, confidence=0.999, wanted=400)
    assert shared is not None
    assert 7 <= shared < 400
    before = rng.bit_generator.state
    assert sample_sharing(case, rng, confidence=0.999, wanted=20) is None
    assert rng.bit_generator.state == before


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


@pytest.mark.parametrize(
    ("weights", "total", "wrong", "slack"),
    [
        (None, 10.0, 2.0, 0),
        ([4.0, 6.0], 10.0, 2.0, 0),
        ([4.5, 5.5], 10.0, 2.0, 12e-9),
        (None, 10.5, 2.0, 12.5e-9),
        (None, 10.0, 2.5, 12.5e-9),
        (None, 2.0**53 - 2, 2.0, 0),
        (None, 2.0**53, 2.0, 1e-9 * 2.0**53),
    ],
)
def test_sums_of_whole_numbers_are_exact_and_others_have_some_slack(weights, total, wrong, slack):
    case = Decisive(np.ones((2, 1)), None if weights is None else np.array(weights), total, wrong)
    assert case.slack == pytest.approx(slack, rel=1e-12)


def test_equal_weights_never_share_less_than_rows_without_weights():
    case = gaussian_case(700, 1000, 8)
    weighted = Decisive(case.rows, np.full(len(case.rows), 2.0), 2 * case.total, 2 * case.wrong, case.limit)
    plain, twice = (
        sample_sharing(one, np.random.default_rng(0), confidence=0.999, wanted=wanted)
        for one, wanted in ((case, 400), (weighted, 800))
    )
    assert plain is not None
    assert twice is not None
    assert 2 * plain <= twice < 1400  # a row may be drawn twice where rows have weights
    assert sample_sharing(weighted, np.random.default_rng(0), confidence=0.999, wanted=1.8 * plain) is None


@pytest.mark.parametrize(
    ("k", "n_rows", "wrong", "bounds"),
    [
        (0, 100, 0, ""),
        (40, 1001, 25, "packing"),  # 25 blocks of 40 rows, and one more
        (40, 1000, 25, ""),
        (40, 10**6, 207, "packing"),  # 208 blocks at 10 * 3 * 40^3 operations are 4e8, about
        (40, 10**6, 208, ""),
        (31, 50, 1000, "counting"),  # 31 subsets of 31 directions are 2e7 operations, about
        (32, 50, 1000, ""),
        (32, 400, 141, "moments"),  # 34 / 96 of 400
        (32, 400, 142, ""),
        (32, 460, 100, "moments"),  # 4 n^3 and some
        (32, 463, 100, ""),
    ],
)
def test_bounds_are_tried_where_they_may_prove_enough_within_the_budget(monkeypatch, k, n_rows, wrong, bounds):
    assert sharing.is_affordable(k, n_rows, wrong) == bool(bounds)
    tried = []
    for name, known in (("packing", "packing_bound"), ("counting", "slab_count"), ("moments", "fourth_moment_bound")):
        monkeypatch.setattr(sharing, known, lambda *_, name=name, **given: tried.append((name, given["budget"])))
    case = Decisive(np.broadcast_to(1.0, (n_rows, k)), None, n_rows, wrong)
    assert not list(sharing._bounds(case, case.rows))
    expected = {"packing": 4e8, "counting": 2e7, "moments": 4e8}
    assert dict(tried) == {name: expected[name] for name, _ in tried}
    names = [name for name, _ in tried]
    assert names == sorted(names, key=["packing", "counting", "moments"].index)
    assert ("packing" in names) == (bounds == "packing")
    assert ("counting" in names) == (k > 0)
    assert ("moments" in names) == (k > 0 and wrong < (k + 2) / (3 * k) * n_rows)


@pytest.mark.parametrize(("k", "n_draws"), [(1, 20_000), (5, 20_000), (10, 4000), (158, 1), (159, 0)])
@pytest.mark.parametrize("weighted", [False, True])
def test_as_many_blocks_are_drawn_as_the_budget_allows_where_so_few_failures_would_do(
    monkeypatch, k, n_draws, weighted
):
    drawn = []

    def bound(rows, rng, *, n_draws, confidence, sample_weight, limit):
        drawn.append((rows.shape[1], n_draws, confidence, limit))
        return HyperplaneBound(50.0)

    monkeypatch.setattr(sharing, "sampled_bound", bound)
    rows = np.random.default_rng(0).standard_normal((200, k + 1))
    rows[:, k] = rows[:, 0]  # of rank k
    case = Decisive(rows, np.full(200, 0.5) if weighted else None, 210.0, 0.0)
    ceiling = failure_ceiling(0, n_draws, 0.99) if n_draws else 1.0
    least = 100 * ceiling ** (1 / k) + 110 if weighted else largest_share(200, k, ceiling) + 10
    for wanted, enough in ((least + 1e-9, True), (least - 1e-9, False)):
        drawn.clear()
        shared = sample_sharing(case, np.random.default_rng(0), confidence=0.99, wanted=wanted)
        assert shared == ((50 + (110 if weighted else 10)) if enough and n_draws else None)
        assert drawn == ([(k, n_draws, 0.99, 1e3)] if enough and n_draws else [])
    nothing = Decisive(np.zeros((3, 2)), None, 3.0, 0.0)
    assert sample_sharing(nothing, np.random.default_rng(0), confidence=0.99, wanted=9.0) is None


@pytest.mark.parametrize("held", [(95.0, 80.0), (80.0, 95.0), (80.0, 80.0)])
def test_the_least_of_the_bounds_is_told_where_none_proves(monkeypatch, held):
    names = [Bound.PACKING, Bound.FOURTH_MOMENT]
    found = [(name, HyperplaneBound(rows, 7.0)) for name, rows in zip(names, held, strict=True)]
    monkeypatch.setattr(sharing, "_bounds", lambda case, rows: iter(found))
    case = Decisive(np.random.default_rng(0).standard_normal((100, 2)), None, 110.0, 20.0)
    least = bound_sharing(case)
    assert (least.rows, least.bound, least.proven, least.reach) == (90, names[int(np.argmin(held))], False, np.inf)
    proven = bound_sharing(Decisive(case.rows, None, 110.0, 19.0))
    first = int(held[0] > 80)  # of those that prove the first is told
    assert (proven.rows, proven.bound, proven.proven, proven.reach) == (90, names[first], True, 7)
    monkeypatch.setattr(sharing, "_bounds", lambda case, rows: iter(()))
    nothing = bound_sharing(case)
    assert (nothing.rows, nothing.bound, nothing.proven) == (None, Bound.NONE, False)
    monkeypatch.setattr(sharing, "_bounds", lambda case, rows: pytest.fail("more rows are wrong than are at hand"))
    assert not bound_sharing(Decisive(case.rows, None, 110.0, 100.0)).proven
