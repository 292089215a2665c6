"""Laws of cutting planes: what a cut leaves is kept, volumes fall as the formulas say, and targets are found."""

from __future__ import annotations

import inspect
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, minimize

from massart.cutting_plane import Cuts, Halfspace, Method, Status, analytic_center, ellipsoid
from massart.cutting_plane.analytic import CUTS_PER_DIMENSION, Polytope
from massart.cutting_plane.ellipsoid import Ellipsoid

METHODS = [ellipsoid, analytic_center]
REGIONS = [Ellipsoid, Polytope]
both = pytest.mark.parametrize("method", METHODS)
seeds = st.integers(0, 2**32 - 1)
dimensions = st.integers(1, 8)


def unit(v):
    return v / np.linalg.norm(v)


def in_ball(d, rng, n=None):
    """Return points uniform in the unit ball."""
    v = rng.standard_normal((n or 1, d))
    v *= (rng.random(len(v)) ** (1 / d) / np.linalg.norm(v, axis=1))[:, None]
    return v if n else v[0]


class Hidden:
    """Accept within r of w, else keep the ball of radius r/2 about w, as Algorithm 3 does.

    The normals are random; `depth` is the share of the way to that ball which a cut goes.
    """

    def __init__(self, w, r, seed=0, depth=0.0):
        self.w, self.r, self.depth = w, r, depth
        self.rng = np.random.default_rng(seed)
        self.queries = []

    def __call__(self, query):
        self.queries.append(query)
        toward = query - self.w
        if np.linalg.norm(toward) <= self.r:
            return None
        normal = unit(self.rng.standard_normal(len(query)))
        normal *= np.sign(normal @ toward)
        if normal @ toward < self.r / 2:
            normal = unit(toward)
        return Halfspace(normal, float(normal @ query) - self.depth * (float(normal @ toward) - self.r / 2))


def absolute_loss(w, r, seed=0, scale=1.0):
    """Return an oracle without randomness: the gradient of an L1 loss whose minimum is w."""
    X = np.random.default_rng(seed).standard_normal((30 * len(w), len(w)))

    def oracle(query):
        if np.linalg.norm(query - w) <= r:
            return None
        normal = scale * (np.sign(X @ (query - w)) @ X)
        return Halfspace(normal, float(normal @ query))

    return oracle


def random_cuts(region, n, seed, deepest=0.0):
    """Cut a region n times by random normals, as deep as a random share of the width of what is left."""
    rng = np.random.default_rng(seed)
    regions = [region]
    for _ in range(n):
        normal = unit(rng.standard_normal(len(region.center)))
        if isinstance(region, Ellipsoid):
            width = np.linalg.norm(region.B.T @ normal)
        else:
            width = np.linalg.norm(np.linalg.solve(region.R.T, normal))
        region = region.cut(normal, deepest * rng.random() * width)
        assert region is not None
        regions.append(region)
    return regions


# The ellipsoid


@pytest.mark.parametrize("d", [1, 2, 3, 10, 50])
def test_a_central_cut_shrinks_the_ellipsoid_by_the_formula(d):
    factor = d / (d + 1) * (d * d / (d * d - 1)) ** ((d - 1) / 2) if d > 1 else 0.5
    assert factor < np.exp(-1 / (2 * d + 2))
    for before, after in pairwise(random_cuts(Ellipsoid.unit_ball(d), 30, d)):
        ratio = np.linalg.det(after.B) / np.linalg.det(before.B)
        assert ratio == pytest.approx(factor, rel=1e-12)
        assert after.log_volume() - before.log_volume() == pytest.approx(np.log(factor), abs=1e-11)


def test_the_factor_is_that_of_the_textbook_update():
    """Compare with Grötschel, Lovász and Schrijver's formula for the matrix B B'."""
    rng = np.random.default_rng(0)
    d = 7
    region = random_cuts(Ellipsoid.unit_ball(d), 20, 1)[-1]
    for alpha in (0.0, 0.3, 0.9):
        a = unit(rng.standard_normal(d))
        E = region.B @ region.B.T
        width = np.sqrt(a @ E @ a)
        b = E @ a / width
        shrunk = E - 2 * (1 + d * alpha) / ((d + 1) * (1 + alpha)) * np.outer(b, b)
        expected = d * d * (1 - alpha**2) / (d * d - 1) * shrunk
        after = region.cut(a, alpha * width)
        assert after.B @ after.B.T == pytest.approx(expected, rel=1e-10)
        assert after.center == pytest.approx(region.center - (1 + d * alpha) / (d + 1) * b, rel=1e-10)


@pytest.mark.slow
@given(seed=seeds, d=dimensions, deepest=st.floats(0, 0.99))
def test_the_cap_lies_in_the_new_ellipsoid(seed, d, deepest):
    rng = np.random.default_rng(seed)
    region = random_cuts(Ellipsoid.unit_ball(d), 5, seed, 0.3)[-1]
    sphere = rng.standard_normal((300, d))
    sphere /= np.linalg.norm(sphere, axis=1)[:, None]
    normal = unit(rng.standard_normal(d))
    depth = deepest * np.linalg.norm(region.B.T @ normal)
    after = region.cut(normal, depth)
    points = region.center + sphere @ region.B.T  # the whole boundary, of which the cut keeps a part
    kept = points[(points - region.center) @ normal <= -depth]
    assert (np.linalg.norm(np.linalg.solve(after.B, (kept - after.center).T), axis=0) <= 1 + 1e-9).all()


def test_the_factor_survives_many_cuts():
    d, n = 50, 3000
    region = random_cuts(Ellipsoid.unit_ball(d), n, 0)[-1]
    expected = n * (np.log(d / (d + 1)) + (d - 1) / 2 * np.log(d * d / (d * d - 1)))
    assert region.log_volume() == pytest.approx(expected, rel=1e-12)


def test_in_one_dimension_the_ellipsoid_method_is_bisection():
    w, r = 0.7071, 1e-9
    oracle = Hidden(np.array([w]), r)
    found = ellipsoid(oracle, 1, 1.0)
    low, high = -1.0, 1.0
    for query in oracle.queries:
        assert query[0] == pytest.approx((low + high) / 2, abs=1e-15)
        low, high = (query[0], high) if query[0] < w else (low, query[0])
    assert found.status is Status.ACCEPTED
    assert found.log_volume == pytest.approx((found.n_queries - 1) * np.log(0.5))


# The analytic centre


def barrier(A, b):
    def value(x):
        slack, f = b - A @ x, 1 - x @ x
        return np.inf if f <= 0 or slack.min(initial=1) <= 0 else -np.log(slack).sum() - np.log(f)

    return value


@pytest.mark.slow
@given(seed=seeds, d=dimensions, n=st.integers(0, 30))
def test_the_factor_holds_the_gradient_and_the_hessian_of_the_barrier(seed, d, n):
    region = random_cuts(Polytope.unit_ball(d), n, seed)[-1]
    x, slack, f = region.center, region.b - region.A @ region.center, 1 - region.center @ region.center
    scaled = region.A / slack[:, None]
    hessian = scaled.T @ scaled + 2 / f * np.eye(d) + 4 / f**2 * np.outer(x, x)
    assert region.R.T @ region.R == pytest.approx(hessian, rel=1e-9, abs=1e-9 * np.abs(hessian).max())
    step = 1e-6 * slack.min(initial=f)
    numeric = approx_fprime(x, barrier(region.A, region.b), step)
    assert region.R.T @ region.residual == pytest.approx(numeric, abs=1e-3 * np.sqrt(np.diag(hessian).max()))


@pytest.mark.parametrize("d", [1, 2, 5, 10])
def test_the_centre_is_the_minimum_of_the_barrier(d):
    for region in random_cuts(Polytope.unit_ball(d), 4 * d, d)[1::3]:
        # Whitened, so that a method that knows no Newton step gets there too.
        scale = np.linalg.inv(region.R)
        value = barrier(region.A, region.b)
        best = minimize(
            lambda z, s=scale, c=region.center, v=value: v(c + s @ z),
            np.zeros(d),
            method="Nelder-Mead" if d < 3 else "Powell",
        )
        # Self-concordance: a decrement of 0.1 puts the minimum within 0.1 / (1 - 0.1) in the local norm.
        assert np.linalg.norm(best.x) <= 0.12
        assert region.decrement <= 0.1


@pytest.mark.slow
@settings(max_examples=50)
@given(seed=seeds, d=st.integers(1, 4), n=st.integers(0, 12))
def test_the_polytope_lies_within_reach_and_below_the_volume_bound(seed, d, n):
    region = random_cuts(Polytope.unit_ball(d), n, seed)[-1]
    points = in_ball(d, np.random.default_rng(seed), 20_000)
    left = points[(points @ region.A.T <= region.b).all(axis=1)]
    lengths = np.linalg.norm((left - region.center) @ region.R.T, axis=1)
    assert lengths.max(initial=0) <= region.reach
    assert len(left) / len(points) <= np.exp(region.log_volume()) * (1 + 1e-9) + 1e-3


def test_before_the_first_cut_the_bound_is_the_ball_itself():
    for d in (1, 3, 20):
        assert Polytope.unit_ball(d).reach == pytest.approx(np.sqrt(2))
        assert Polytope.unit_ball(d).log_volume() == pytest.approx(0, abs=1e-12)


def test_cuts_beyond_the_limit_are_dropped():
    d = 5
    counts = [len(region.b) for region in random_cuts(Polytope.unit_ball(d), 200, 0)]
    assert max(counts) == CUTS_PER_DIMENSION * d
    assert counts[-1] == CUTS_PER_DIMENSION * d


@pytest.mark.slow
@given(seed=seeds, d=dimensions)
def test_a_deep_cut_is_kept_at_its_full_depth(seed, d):
    rng = np.random.default_rng(seed)
    w = 0.9 * unit(rng.standard_normal(d))
    normal = -unit(w)
    region = Polytope.unit_ball(d).cut(normal, 0.9 - 1e-6)  # far beyond the Dikin ellipsoid
    assert region.b[-1] == pytest.approx(-0.9 + 1e-6, abs=1e-12)
    assert normal @ region.center < region.b[-1]
    assert normal @ w <= region.b[-1]


# Every method


def holds(region, w):
    if isinstance(region, Ellipsoid):
        return np.linalg.norm(np.linalg.solve(region.B, w - region.center)) <= 1 + 1e-9
    return np.linalg.norm(w) <= 1 and (region.A @ w <= region.b + 1e-12).all()


@pytest.mark.slow
@settings(max_examples=30)
@pytest.mark.parametrize("region_type", REGIONS)
@given(seed=seeds, d=dimensions, depth=st.sampled_from([0.0, 0.5, 0.99]))
def test_no_cut_loses_the_target(region_type, seed, d, depth):
    rng = np.random.default_rng(seed)
    w = in_ball(d, rng)
    region = region_type.unit_ball(d)
    for _ in range(10 * d):
        if np.linalg.norm(region.center - w) < 1e-6:
            break
        normal = unit(rng.standard_normal(d))
        normal *= np.sign(normal @ (region.center - w))
        region = region.cut(normal, depth * (normal @ (region.center - w)))
        assert holds(region, w)


def most_queries(method, d, r):
    """Return the proven bound for the ellipsoid, and for the centre half more than halving the volume takes."""
    if method is ellipsoid:
        return 2 * d * (d + 1) * np.log(2 / r) + 1
    return 1.5 * d * np.log2(2 / r) + 10


@pytest.mark.slow
@both
@settings(max_examples=30)
@given(seed=seeds, d=dimensions, exponent=st.integers(1, 9), depth=st.sampled_from([0.0, 0.3, 1.0]))
@example(seed=0, d=5, exponent=7, depth=1.0)  # a corner that takes more stages than a deep cut gets
def test_a_hidden_target_is_found_within_the_bound(method, seed, d, exponent, depth):
    r = 10.0**-exponent
    oracle = Hidden((1 - r) * in_ball(d, np.random.default_rng(seed)), r, seed, depth)
    found = method(oracle, d, 1.0)
    assert found.status is Status.ACCEPTED
    assert np.linalg.norm(found.point - oracle.w) <= r
    assert found.n_queries == len(oracle.queries) <= most_queries(method, d, r)
    assert np.array_equal(found.point, oracle.queries[-1])


@pytest.mark.slow
@settings(max_examples=20)
@given(seed=seeds, d=st.integers(2, 8))
def test_the_centre_finds_a_target_on_the_rim_of_the_ball(seed, d):
    oracle = Hidden((1 - 1e-7) * unit(np.random.default_rng(seed).standard_normal(d)), 1e-7, seed)
    assert analytic_center(oracle, d, 1.0).status is Status.ACCEPTED


@pytest.mark.slow
def test_the_centre_takes_fifteen_times_fewer_queries_than_the_ellipsoid():
    d, r = 20, 1e-7
    w = in_ball(d, np.random.default_rng(0))
    counts = [method(absolute_loss(w, r), d, 1.0).n_queries for method in (ellipsoid, analytic_center)]
    assert counts[0] >= 15 * counts[1]


@both
def test_one_subspace_may_be_resolved_before_the_rest(method):
    """The normals of Algorithm 3 lie in V until V is solved: the region is a needle then."""
    d, k, r = 6, 3, 1e-9
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
    w = in_ball(d, rng)

    def oracle(query):
        for part in (basis[:, :k], basis[:, k:]):
            toward = part.T @ (query - w)
            if np.linalg.norm(toward) > r:
                normal = part @ toward
                return Halfspace(normal, float(normal @ query))
        return None

    found = method(oracle, d, 1.0)
    assert found.status is Status.ACCEPTED
    assert found.point == pytest.approx(w, abs=2 * r)


@both
def test_searching_is_equivariant_to_scaling(method):
    """Powers of two change no rounding, so that nothing at all may change."""
    d, w = 4, np.array([0.3, -0.2, 0.1, 0.5])
    reference = method(absolute_loss(w, 1e-6), d, 1.0)
    for scale in (2.0**-27, 2.0**27, 2.0**-300):
        found = method(absolute_loss(w * scale, 1e-6 * scale), d, scale)
        assert np.array_equal(found.point, reference.point * scale)
        assert (found.n_queries, found.log_volume) == (reference.n_queries, reference.log_volume)


@both
@pytest.mark.parametrize("radius", [1e-8, 1e8])
def test_any_radius_will_do(method, radius):
    w = radius * in_ball(5, np.random.default_rng(1))
    found = method(absolute_loss(w, 1e-7 * radius), 5, radius)
    assert found.status is Status.ACCEPTED


@both
def test_the_length_of_a_normal_does_not_matter(method):
    w = np.array([0.3, -0.2, 0.1, 0.5])
    reference = method(absolute_loss(w, 1e-6), 4, 1.0)
    for scale in (2.0**-900, 2.0**900):
        assert np.array_equal(method(absolute_loss(w, 1e-6, scale=scale), 4, 1.0).point, reference.point)


@both
def test_searching_is_equivariant_to_rotation(method):
    d, n = 5, 40
    rng = np.random.default_rng(3)
    w, Q = in_ball(d, rng), np.linalg.qr(rng.standard_normal((d, d)))[0]
    oracle = absolute_loss(w, 1e-9)

    def turned(query):
        answer = oracle(Q.T @ query)
        return Halfspace(Q @ answer.normal, answer.offset)

    straight, rotated = method(oracle, d, 1.0, max_queries=n), method(turned, d, 1.0, max_queries=n)
    assert rotated.point == pytest.approx(Q @ straight.point, abs=1e-8)
    assert rotated.log_volume == pytest.approx(straight.log_volume, abs=1e-6)


@both
def test_the_search_starts_where_it_is_told(method):
    start = np.array([100.0, -50.0, 3.0])
    oracle = Hidden(start + [0.1, 0.2, -0.3], 1e-6)
    found = method(oracle, 3, 1.0, start=start)
    assert np.array_equal(oracle.queries[0], start)
    assert found.status is Status.ACCEPTED
    assert method(Hidden(start, 1.0), 3, 1.0, start=start).n_queries == 1


@both
def test_deep_cuts_save_queries(method):
    w = in_ball(6, np.random.default_rng(0))
    central, deep = (method(Hidden(w, 1e-7, 0, depth), 6, 1.0).n_queries for depth in (0.0, 0.9))
    assert deep < 0.8 * central


# Every ending


def check_empty(found: Cuts, d: int):
    assert found.status is Status.EMPTY
    assert found.point.shape == (d,)
    assert np.isfinite(found.point).all()
    assert found.log_volume <= 0


@pytest.mark.slow
@both
@pytest.mark.parametrize("d", [1, 2, 6])
def test_an_oracle_that_lies_is_found_out(method, d):
    first = np.eye(d)[0]
    rng = np.random.default_rng(0)
    signs = iter(np.tile([1.0, -1.0], 10_000))

    def same(query):
        return Halfspace(first, query[0])

    def alternating(query):
        normal = next(signs) * first
        return Halfspace(normal, float(normal @ query))

    def anything(query):
        normal = rng.standard_normal(d)
        return Halfspace(normal, float(normal @ query))

    for oracle in (same, alternating, anything):
        check_empty(method(oracle, d, 1.0), d)
        check_empty(method(oracle, d, 1e-8, start=np.ones(d)), d)  # numbers near 1 are 1e-16 apart


@both
@pytest.mark.parametrize(("length", "offset"), [(1.0, -1.0), (1.0, -1.5), (1.0, -1e300), (1e-300, -1e10)])
def test_a_cut_that_leaves_nothing_ends_the_search(method, length, offset):
    found = method(lambda query: Halfspace(np.array([0.0, length, 0.0]), offset), 3, 1.0)
    check_empty(found, 3)
    assert found.n_queries == 1


@both
def test_half_spaces_that_contradict_each_other_end_the_search(method):
    def oracle(query):
        sign = 1.0 if query[0] > -0.25 else -1.0  # x <= -1/2 and x >= 0
        return Halfspace(np.array([sign, 0.0]), -0.5 if sign > 0 else 0.0)

    check_empty(method(oracle, 2, 1.0), 2)


@both
def test_no_query_is_asked_twice_in_a_row(method):
    """Numbers near 1 are 2e-16 apart: a region of that size has run out of queries, whatever tol says."""
    rng, queries = np.random.default_rng(0), []

    def oracle(query):
        queries.append(query)
        normal = rng.standard_normal(3)
        return Halfspace(normal, float(normal @ query))

    check_empty(method(oracle, 3, 1e-8, start=np.ones(3), tol=1e-100), 3)
    assert all((before != after).any() for before, after in pairwise(queries))


@both
def test_empty_is_claimed_at_tol(method):
    d, tol = 3, 1e-3
    residuals = []

    def oracle(query):
        normal = np.random.default_rng(len(residuals)).standard_normal(d)
        return Halfspace(normal, float(normal @ query))

    found = method(oracle, d, 1.0, tol=tol, callback=lambda progress: residuals.append(progress.residual))
    check_empty(found, d)
    assert found.log_volume < d * np.log(tol)
    assert np.exp(found.log_volume / d) == pytest.approx(residuals[-1])
    assert (np.array(residuals[:-1]) >= tol).all()


@both
def test_the_query_limit_is_kept(method):
    oracle = Hidden(np.full(3, 0.2), 1e-9)
    found = method(oracle, 3, 1.0, max_queries=7)
    assert found.status is Status.QUERY_LIMIT
    assert found.n_queries == len(oracle.queries) == 7
    assert np.array_equal(found.point, oracle.queries[-1])


@both
def test_every_query_is_reported(method):
    told = []
    found = method(Hidden(np.full(3, 0.2), 1e-5), 3, 1.0, tol=1e-9, callback=told.append)
    assert [progress.step for progress in told] == list(range(1, found.n_queries + 1))
    assert {progress.goal for progress in told} == {1e-9}


@both
def test_an_oracle_may_write_into_its_query(method):
    hidden = Hidden(np.full(3, 0.2), 1e-5)

    def oracle(query):
        answer = hidden(query.copy())
        query[:] = np.nan
        return answer

    assert method(oracle, 3, 1.0).point == pytest.approx(hidden.w, abs=1e-5)


def test_all_methods_have_one_signature():
    signatures = {inspect.signature(method) for method in METHODS}
    assert len(signatures) == 1
    expected = list(inspect.signature(Method.__call__).parameters)[1:]
    assert list(signatures.pop().parameters) == expected


@both
@pytest.mark.parametrize(
    ("normal", "offset", "message"),
    [
        ([0.0, 0.0], 0.0, "oracle must return a normal that is not zero"),
        ([1.0, np.nan], 0.0, "oracle must return finite numbers"),
        ([1.0, np.inf], 0.0, "oracle must return finite numbers"),
        ([1.0, 0.0], np.nan, "oracle must return finite numbers"),
        ([1.0, 0.0, 0.0], 0.0, r"oracle must return a normal of shape \(2,\), got \(3,\)"),
        ([1.0, 0.0], 0.1, "oracle must return a half-space that does not hold its query"),
    ],
)
def test_a_broken_oracle_is_named(method, normal, offset, message):
    with pytest.raises(ValueError, match=message):
        method(lambda query: Halfspace(np.array(normal), offset), 2, 1.0)


@both
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"d": 0}, "d must be at least 1, got 0"),
        ({"radius": 0.0}, "radius must be positive and finite, got 0.0"),
        ({"radius": -1.0}, "radius must be positive"),
        ({"radius": np.inf}, "radius must be positive and finite, got inf"),
        ({"radius": np.nan}, "radius must be positive and finite, got nan"),
        ({"start": np.zeros(3)}, "start must be 2 finite numbers"),
        ({"start": np.array([0.0, np.nan])}, "start must be 2 finite numbers"),
        ({"max_queries": 0}, "max_queries must be at least 1, got 0"),
        ({"tol": 0.0}, "tol must be between 0 and 1, got 0.0"),
        ({"tol": 1.0}, "tol must be between 0 and 1, got 1.0"),
    ],
)
def test_invalid_arguments_are_named(method, arguments, message):
    with pytest.raises(ValueError, match=message):
        method(**({"oracle": Hidden(np.zeros(2), 0.1), "d": 2, "radius": 1.0} | arguments))
