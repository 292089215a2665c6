"""Section 3 of the paper: Lemma 3.1, Algorithm 3 and Theorem 1.3."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from massart.isotropy import radial_isotropy
from massart.l1 import l1_regression
from massart.paper import (
    Answer,
    MassartNoise,
    ReLUStatus,
    analytic_center,
    decoy,
    ellipsoid,
    far_constant,
    gaussian,
    l1_gradient,
    negate,
    recover_relu,
    relu_labels,
    separation_margin,
    separation_oracle,
    zero,
)

ADVERSARIES = {
    "negate": lambda w, rng: negate(w),
    "zero": lambda w, rng: zero,
    "far": lambda w, rng: far_constant,
    "decoy": lambda w, rng: decoy(3 * rng.standard_normal(w.size), relu_labels),
}
LINKS = {
    "relu": (lambda t: np.maximum(t, 0), lambda t: (t >= 0) * 1.0),
    "identity": (lambda t: t, np.ones_like),
    "leaky": (lambda t: np.where(t >= 0, t, 0.2 * t), lambda t: np.where(t >= 0, 1, 0.2)),
    "clipped": (lambda t: np.clip(t, -0.3, 0.5), lambda t: ((t >= -0.3) & (t <= 0.5)) * 1.0),
}


def table(kind, adversary, seed, d=4, eta=0.3):
    """Rows, labels and truth, 80 rows a column; `heavy` has three quarters of its rows in a subspace."""
    rng = np.random.default_rng([51, seed])
    X = gaussian(80 * d, d, rng)
    if kind == "heavy":
        basis = np.linalg.qr(rng.standard_normal((d, d)))[0][:, : d // 2]
        inside = rng.random(len(X)) < 0.75
        X[inside] = X[inside] @ basis @ basis.T
    w = 3 * rng.standard_normal(d)
    return X, MassartNoise(eta, ADVERSARIES[adversary](w, rng)).corrupt(X, relu_labels(X, w), rng).labels, w


def is_exact(found, w):
    return bool(np.linalg.norm(found - w) <= 1e-9 * np.linalg.norm(w))


# --- Lemma 3.1 ---


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.sampled_from(sorted(LINKS)), st.floats(0, 0.45))
@settings(max_examples=60)
def test_every_cut_keeps_the_ball_of_lemma_3_1(seed, d, link, eta):
    rng = np.random.default_rng(seed)
    f, derivative = LINKS[link]
    X = gaussian(50, d, rng)
    X /= np.maximum(np.linalg.norm(X, axis=1), 1)[:, None]  # of length 1 at most, as the lemma needs
    w, w0 = rng.standard_normal(d), rng.standard_normal(d)
    y = np.where(rng.random(50) < eta, 3 * rng.standard_normal(50), f(X @ w))
    delta = separation_margin(X, y, w0, w, f=f, derivative=derivative)
    n = l1_gradient(X, y, w0, f=f, derivative=derivative)
    assert n @ (w0 - w) >= delta - 1e-12  # the lemma's chain of inequalities, whatever the sign of delta
    if delta > 0:  # the nearest point of the ball of radius delta/2 to the hyperplane is kept
        assert n @ (w0 - w) - np.linalg.norm(n) * delta / 2 > 0


def test_many_draws_of_that_law_have_a_positive_margin():
    rng = np.random.default_rng(52)
    X, w = gaussian(50, 3, rng), np.ones(3)
    X /= np.linalg.norm(X, axis=1)[:, None]
    margins = [separation_margin(X, relu_labels(X, w), w + rng.standard_normal(3), w) for _ in range(20)]
    assert sum(margin > 0 for margin in margins) >= 15


def test_lemma_3_1_needs_short_rows():
    identity = {"f": lambda t: t, "derivative": np.ones_like}
    X, y, w0 = np.array([[1.0, 100.0], [0.0, 1e-3]]), np.zeros(2), np.array([1.0, 0.0])
    assert separation_margin(X, y, w0, np.zeros(2), **identity) == pytest.approx(0.5)
    assert l1_gradient(X, y, w0, **identity) @ (w0 - [0, 0.2]) < 0  # (0, .2) is nearer than Delta/2 to the truth


# --- Algorithm 3, literally, from the kernels alone ---


def literal_sep(X, y, w0, delta, z=None):
    """None for Yes, else the normal; `z` are the products of the whole rows, on the complement of a heavy subspace."""
    S = X.any(axis=1) & ((X @ w0 >= 0) if z is None else True)  # 7
    z = (X @ w0 if z is None else z)[S]
    X, y = X[S], y[S]
    piece = radial_isotropy(X)  # 8
    V, A, inside = piece.subspace, piece.matrix, piece.members
    Z, q, positive = X[inside] @ V, V.T @ w0, z[inside] > 0
    lengths = np.linalg.norm(Z @ A, axis=1)[:, None]
    w = A @ l1_regression((Z @ A / lengths)[positive], (y[inside] / lengths[:, 0])[positive]).coef
    gap = Z @ q - y[inside]
    fits = np.abs(gap[positive]) <= delta * np.linalg.norm(Z[positive], axis=1)
    if np.linalg.norm(w - q) > delta or fits.mean() < 0.5:  # 5, in the reading that is sound
        return V @ np.mean(Z / lengths * np.where(gap >= -1e-12, 1, -1)[:, None], axis=0)  # 10, 11, 14
    C = np.linalg.qr(V, mode="complete")[0][:, V.shape[1] :]  # 15
    if not C.size:
        return None
    n = literal_sep(X[~inside] @ C, y[~inside] - X[~inside] @ V @ w, C.T @ w0, delta, z[~inside])  # 16, 17
    return None if n is None else C @ n  # 18 to 20


@pytest.mark.parametrize("kind", ["general", "heavy"])
@pytest.mark.parametrize("adversary", sorted(ADVERSARIES))
def test_algorithm_3_is_its_fifteen_lines(kind, adversary):
    yes, cuts = 0, 0
    for seed in range(3):
        X, y, w = table(kind, adversary, seed, d=5)
        rng = np.random.default_rng(seed)
        queries = [w, np.ones(5), *(w + 10.0**-k * rng.standard_normal(5) for k in range(4))]
        if kind == "heavy":  # right on the subspace, wrong beyond it
            _, _, axes = np.linalg.svd(X)
            V = radial_isotropy(X, 1e-3).subspace
            queries.append(V @ (V.T @ w) + 0.1 * axes[-1])
        for query in queries:
            literal, found = literal_sep(X, y, query, 1e-9), separation_oracle(X, y, query, delta=1e-9)
            if literal is None:
                yes += 1
                assert found.answer is Answer.YES
                assert is_exact(found.w, w)
            else:
                cuts += 1
                assert found.answer is Answer.CUT
                np.testing.assert_allclose(found.normal, literal, rtol=0, atol=1e-9 * np.linalg.norm(literal))
    assert yes >= 2
    assert cuts >= 9


@pytest.mark.parametrize("kind", ["general", "heavy"])
def test_every_cut_keeps_the_truth_where_dagger_holds(kind):
    """(dagger) is checked in the position and on the rows of the level that gave the cut."""
    held = 0
    for seed in range(30):
        X, y, w = table(kind, sorted(ADVERSARIES)[seed % 4], seed)
        rng = np.random.default_rng(seed)
        w0 = w + 3 * rng.standard_normal(4)
        found = separation_oracle(X, y, w0)
        assert found.answer is Answer.CUT
        V, c = found.subspace, found.weights
        level = c > 0
        assert np.linalg.norm(found.normal - V @ (V.T @ found.normal)) <= 1e-12 * np.linalg.norm(found.normal)
        right = np.abs(y - relu_labels(X, w))[level] <= 1e-9
        pull = c[level] * np.abs(X[level] @ V @ (V.T @ (w0 - w)))  # the first level is wrong: nothing is explained yet
        margin = pull[right].sum() - pull[~right].sum()
        if margin > 0:
            held += 1
            assert found.normal @ (w0 - w) > 0
    assert held >= 25


@pytest.mark.parametrize(("d", "share"), [(3, 0.6), (5, 0.7), (6, 0.55)])
def test_a_wrong_query_that_fits_most_rows_is_not_accepted(d, share):
    """The adversary abstains on a hyperplane with most rows, and elsewhere answers by a wrong w0 that agrees there."""
    printed = 0
    for seed in range(5):
        rng = np.random.default_rng([53, d, seed])
        normal = np.linalg.qr(rng.standard_normal((d, 1)))[0][:, 0]
        X = gaussian(80 * d, d, rng)
        inside = rng.random(len(X)) < share
        X[inside] -= np.outer(X[inside] @ normal, normal)
        w = 3 * rng.standard_normal(d)
        w0 = w + normal
        y = np.where((rng.random(len(X)) < 0.3) & ~inside, relu_labels(X, w0), relu_labels(X, w))
        assert separation_oracle(X, y, w0).answer is Answer.CUT
        assert separation_oracle(X, y, w).answer is Answer.YES
        printed += separation_oracle(X, y, w0, reading="printed").answer is Answer.YES
    assert printed == 5  # line 5 as printed says Yes


def test_line_5_as_printed_accepts_zero_and_counts_zero_rows():
    X, y, w = table("general", "zero", 1)
    assert separation_oracle(X, y, np.zeros(4), delta=1e-9, reading="printed").answer is Answer.YES
    assert separation_oracle(X, y, np.zeros(4), delta=1e-9).answer is Answer.CUT
    padded = np.vstack([X, np.zeros_like(X)]), np.concatenate([y, np.zeros(len(y))])
    assert separation_oracle(*padded, np.ones(4), reading="printed").answer is Answer.YES
    assert separation_oracle(*padded, np.ones(4)).answer is Answer.CUT
    assert separation_oracle(*padded, w).answer is Answer.YES


def test_at_zero_the_sign_of_zero_decides():
    """Labels negated, eta .4: with sgn 0 = 0 the right rows of label 0 are silent, and the wrong ones decide."""
    wrong = {"sound": 0, "printed": 0}
    for seed in range(20):
        X, y, w = table("general", "negate", seed, eta=0.4)
        for reading in wrong:
            wrong[reading] += separation_oracle(X, y, np.zeros(4), delta=1e-9, reading=reading).normal @ w > 0
    assert wrong["sound"] <= 1
    assert wrong["printed"] >= 15


def test_the_truth_gets_a_yes_also_where_most_products_are_zero():
    rng = np.random.default_rng(54)
    for _ in range(5):
        w = rng.standard_normal(3)
        X = gaussian(240, 3, rng)
        level = rng.random(240) < 0.6
        X[level] -= np.outer(X[level] @ w, w) / (w @ w)  # w.x = 0 on most rows
        y = MassartNoise(0.3, far_constant).corrupt(X, relu_labels(X, w), rng).labels
        assert separation_oracle(X, y, w).answer is Answer.YES


def test_with_no_active_row_the_cut_points_to_positive_labels():
    X = np.array([[1.0, 0], [0, 1], [1, 1], [2, 1]])
    y = X @ [1.0, 2.0]
    found = separation_oracle(X, y, [-1.0, -1.0])
    assert found.answer is Answer.CUT
    assert found.normal @ [1.0, 2.0] < found.normal @ [-1.0, -1.0]
    assert separation_oracle(X, -y, [-1.0, -1.0]).answer is Answer.SILENT
    assert separation_oracle(np.zeros((3, 2)), np.ones(3), [1.0, 1.0]).answer is Answer.SILENT


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=15)
def test_cuts_do_not_depend_on_the_length_or_the_order_of_rows(seed):
    X, y, w = table("general", "decoy", seed % 1000)
    rng = np.random.default_rng(seed)
    w0, lengths, order = w + rng.standard_normal(4), np.exp(3 * rng.standard_normal(len(X))), rng.permutation(len(X))
    one = separation_oracle(X, y, w0, gamma=1e-8).normal
    for other in (
        separation_oracle(X * lengths[:, None], y * lengths, w0, gamma=1e-8).normal,  # a loose position is not unique
        separation_oracle(X[order], y[order], w0, gamma=1e-8).normal,
    ):
        np.testing.assert_allclose(other, one, rtol=0, atol=1e-6 * np.linalg.norm(one))


# --- Theorem 1.3 ---


@pytest.mark.parametrize("method", [ellipsoid, analytic_center])
@pytest.mark.parametrize("adversary", sorted(ADVERSARIES))
def test_theorem_1_3_in_general_position(adversary, method):
    for seed, d in enumerate((1, 2, 3) if method is ellipsoid else (1, 2, 4)):
        X, y, w = table("general", adversary, 100 + seed, d=d)
        found = recover_relu(X, y, method=method)
        assert found.status is ReLUStatus.ACCEPTED
        assert is_exact(found.w, w)


@pytest.mark.slow
@pytest.mark.parametrize("method", [ellipsoid, analytic_center])
@pytest.mark.parametrize("adversary", sorted(ADVERSARIES))
def test_theorem_1_3_with_heavy_subspaces(adversary, method):
    for seed, d in enumerate((4,) if method is ellipsoid else (4, 5)):  # benchmarks/paper.py has the larger ones
        X, y, w = table("heavy", adversary, 200 + seed, d=d)
        found = recover_relu(X, y, method=method)
        assert found.status in (ReLUStatus.ACCEPTED, ReLUStatus.ROUNDED)
        assert is_exact(found.w, w)


@pytest.mark.slow
def test_queries_are_rounded_where_cuts_were_wrong():
    """30 % of all labels are far, and few rows lie off a heavy plane: in a region of the space (dagger) fails."""
    rounded = 0
    for seed in range(200, 204):
        X, y, w = table("heavy", "far", seed, d=5)
        found = recover_relu(X, y, method=analytic_center)
        rounded += found.status is ReLUStatus.ROUNDED
        assert found.status not in (ReLUStatus.ACCEPTED, ReLUStatus.ROUNDED) or is_exact(found.w, w)
    assert rounded >= 1


@pytest.mark.parametrize("seed", range(3))
def test_recovery_does_not_depend_on_units(seed):
    X, y, w = table("general", "decoy", seed, d=3)
    scales = np.array([1e-6, 1.0, 1e6])
    found = recover_relu(X * scales, 1e3 * y, method=analytic_center)
    assert found.status is ReLUStatus.ACCEPTED
    assert is_exact(found.w * scales / 1e3, w)


def test_the_table_that_broke_the_warm_start():
    """400 x 5, 70 % of the rows in a plane, labels negated: a transform that starts from the last one drifts (A1)."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((400, 5))
        X[:280, 2:] = 0
        w = rng.standard_normal(5)
        y = MassartNoise(0.3, negate(w)).corrupt(X, relu_labels(X, w), rng).labels
        found = recover_relu(X, y, method=analytic_center)
        assert np.isfinite(found.w).all()
        assert found.status in (ReLUStatus.ACCEPTED, ReLUStatus.ROUNDED)
        assert is_exact(found.w, w)


def test_a_ball_without_the_truth_ends_empty_and_says_so():
    X, y, w = table("general", "decoy", 3, d=3)
    found = recover_relu(X, y, radius=0.5 * np.linalg.norm(w))
    assert found.status in (ReLUStatus.EMPTY, ReLUStatus.ROUNDED)
    assert found.radius == 0.5 * np.linalg.norm(w)
    assert is_exact(recover_relu(X, y, radius=10 * np.linalg.norm(w)).w, w)


def test_a_limit_of_queries_is_a_status():
    X, y, _ = table("general", "decoy", 4)
    found = recover_relu(X, y, max_queries=7)
    assert found.status in (ReLUStatus.QUERY_LIMIT, ReLUStatus.ROUNDED)
    assert found.n_queries == 7
    assert recover_relu(X, y, max_queries=1).status is ReLUStatus.QUERY_LIMIT
    assert np.isfinite(found.w).all()


def test_rows_that_tell_nothing_are_a_status():
    rng = np.random.default_rng(55)
    X = gaussian(50, 3, rng)
    for y in (np.zeros(50), -rng.random(50)):
        found = recover_relu(X, y, method=analytic_center)
        assert found.status in (ReLUStatus.SILENT, ReLUStatus.EMPTY)
        assert np.isfinite(found.w).all()
    assert recover_relu(np.zeros((4, 2)), np.ones(4)).status is ReLUStatus.SILENT


def test_the_printed_reading_accepts_zero():
    X, y, w = table("general", "zero", 5)
    printed = recover_relu(X, y, reading="printed")
    assert printed.status is ReLUStatus.ACCEPTED
    assert not is_exact(printed.w, w)
    assert is_exact(recover_relu(X, y).w, w)


def test_directions_that_no_row_sees_stay_zero():
    rng = np.random.default_rng(56)
    X = gaussian(300, 3, rng) @ rng.standard_normal((3, 5))
    w = rng.standard_normal(5)
    y = MassartNoise(0.3, negate(w)).corrupt(X, relu_labels(X, w), rng).labels
    found = recover_relu(X, y, method=analytic_center)
    np.testing.assert_allclose(X @ found.w, X @ w, atol=1e-9 * np.abs(X @ w).max())


def test_every_query_is_heard():
    X, y, _ = table("general", "far", 6, d=2)
    heard = []
    found = recover_relu(X, y, callback=heard.append)
    assert [progress.step for progress in heard] == list(range(1, found.n_queries + 1))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: separation_oracle(np.eye(2), np.ones(2), np.ones(3)), "w0 must have shape"),
        (lambda: separation_oracle(np.eye(2), np.ones(2), [1, np.nan]), "w0"),
        (lambda: separation_oracle(np.eye(2), np.ones(2), np.ones(2), reading="loud"), "reading must be"),
        (lambda: separation_oracle(np.eye(2), np.ones(2), np.ones(2), gamma=0), "gamma must be between 0 and 1"),
        (lambda: recover_relu(np.eye(2), np.ones(2), reading="loud"), "reading must be"),
        (lambda: recover_relu(np.eye(2), np.ones(2), radius=-1), "radius must be positive"),
        (lambda: recover_relu(np.eye(2), np.ones((2, 2))), "y must have shape"),
        (lambda: recover_relu([[np.nan]], [1.0]), "X"),
        (lambda: recover_relu(np.eye(2), [1.0, 1e300]), "y must have its largest number between"),
        (lambda: separation_oracle(1e-200 * np.eye(2), np.ones(2), np.ones(2)), "X must have its largest number"),
    ],
)
def test_misuse_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
