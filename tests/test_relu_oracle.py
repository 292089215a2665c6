"""The separation oracle: Lemma 3.1 and Algorithm 3."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from massart.agreement import Agreement, Level
from massart.cutting_plane import Status, analytic_center
from massart.isotropy import radial_isotropy
from massart.paper.noise import (
    MassartNoise,
    decoy,
    far_constant,
    flip,
    gaussian,
    negate,
    paper_adversary,
    paper_mixture,
    paper_weights,
    relu_labels,
    zero,
)
from massart.progress import Progress
from massart.relu import RELU, Link
from massart.relu.oracle import radius_of, separation_oracle
from massart.relu.separation import Answer, Position, separation_margin, sides
from row_families import (
    dummy_table,
    gaussian_with_intercept,
    integer_weights,
    integers_on_subspace,
    intercept_weights,
    oppose,
)

LINKS = {
    "ReLU": RELU,
    "leaky": Link(slope=0.1),
    "clip": Link(lower=-1, upper=1),
    "saturated": Link(lower=-np.inf, upper=1),
    "from one": Link(lower=1),
    "linear": Link(lower=-np.inf),
}
ADVERSARIES = {
    "negate": lambda w, rng: negate(w),
    "flip": lambda w, rng: flip(w, relu_labels),
    "constant": lambda w, rng: far_constant,
    "zero": lambda w, rng: zero,
    "decoy": lambda w, rng: decoy(rng.standard_normal(w.size), relu_labels),
    "oppose": lambda w, rng: oppose(w, relu_labels),
}
TABLES = {
    "gaussian": lambda rng: gaussian(120, 4, rng),
    "intercept": lambda rng: gaussian_with_intercept(120, 4, rng),
    "mixture": lambda rng: paper_mixture(120, 4, rng),
    "subspace": lambda rng: integers_on_subspace(120, 5, 2, 100, rng).X,
    "dummies": lambda rng: dummy_table(120, (3, 4), rng),
    "few rows": lambda rng: gaussian(6, 4, rng),
}
NEAR = Agreement(Level.EXACT, relative=1e-9)  # what a search without a polish reaches


def queries(w, rng):
    """Return the origin, points around the truth, and far ones."""
    directions = rng.standard_normal((6, w.size))
    return [np.zeros(w.size), *(w + directions * np.array([1e-6, 1e-3, 0.1, 1, 10, 1000])[:, None])]


@pytest.mark.slow
@pytest.mark.parametrize("link_name", sorted(LINKS))
def test_without_noise_every_cut_keeps_the_true_parameter(link_name):
    link, cuts = LINKS[link_name], 0
    for table in sorted(TABLES):
        for seed in range(3):
            rng = np.random.default_rng(seed)
            X = TABLES[table](rng)
            w = rng.standard_normal(X.shape[1])
            oracle = separation_oracle(X, link(X @ w), link=link)
            for w0 in queries(w, rng):
                found = oracle.separate(w0)
                if found.answer is Answer.CUT:
                    # The exact margin is positive unless all rows of the level agree with query and truth alike.
                    assert found.halfspace.normal @ (w0 - w) > -1e-12 * np.linalg.norm(w0 - w)
                    cuts += 1
    assert cuts > 60


@pytest.mark.slow
@pytest.mark.parametrize("link_name", sorted(LINKS))
def test_every_cut_keeps_the_true_parameter_where_the_margin_is_positive(link_name):
    link, positive, negative = LINKS[link_name], 0, 0
    for trial, (table, adversary) in enumerate(product(sorted(TABLES), sorted(ADVERSARIES))):
        rng = np.random.default_rng(trial)
        X = TABLES[table](rng)
        w = rng.standard_normal(X.shape[1])
        eta = rng.uniform(0, 0.49)
        y = MassartNoise(eta, ADVERSARIES[adversary](w, rng)).corrupt(X, link(X @ w), rng).labels
        if link.impossible(y).all():
            continue
        oracle = separation_oracle(X, y, link=link)
        for w0 in queries(w, rng)[::2]:
            found = oracle.separate(w0)
            if found.answer is Answer.CUT:
                kept = found.halfspace.offset - found.halfspace.normal @ w
                size = 1 + np.linalg.norm(w0) + np.linalg.norm(w)
                margin = separation_margin(found, X, y, w, link=link)
                assert kept >= margin - 1e-12 * size * np.linalg.norm(found.halfspace.normal)
                positive, negative = positive + (margin > 0), negative + (margin <= 0)
    assert positive > 40
    assert negative > 0, "labels that the lemma does not allow are among them"


def test_the_margin_is_the_left_hand_side_of_dagger():
    rng = np.random.default_rng(0)
    X, w = gaussian(200, 5, rng), rng.standard_normal(5)
    w0 = w + 0.3 * rng.standard_normal(5)  # near enough for the active rows to be the only ones that vote
    noise = MassartNoise(0.3, far_constant).corrupt(X, relu_labels(X, w), rng)
    found = separation_oracle(X, noise.labels).separate(w0)
    active = X @ w0 >= 0
    np.testing.assert_array_equal(found.weights > 0, active)
    terms = found.weights * np.abs(X @ (w0 - w))
    expected = terms[active & ~noise.changed].sum() - terms[active & noise.changed].sum()
    assert separation_margin(found, X, noise.labels, w) == pytest.approx(expected)


def test_the_weights_are_those_of_radial_isotropic_position():
    rng = np.random.default_rng(0)
    X, w = paper_mixture(120, 8, rng), paper_weights(8)
    w0 = w + 0.3 * rng.standard_normal(8)
    found = separation_oracle(X, relu_labels(X, w), gamma=1e-9).separate(w0)
    S = X @ w0 >= 0
    lengths = np.linalg.norm(X[S] @ radial_isotropy(X[S], 1e-9).matrix.T, axis=1)
    np.testing.assert_allclose(found.weights[S] * S.sum(), 1 / lengths, rtol=1e-6)


def test_the_normal_is_that_of_the_paper_with_an_explicit_inverse():
    rng = np.random.default_rng(0)
    X, w = gaussian(200, 5, rng), rng.standard_normal(5)
    w0 = w + 0.3 * rng.standard_normal(5)
    y = MassartNoise(0.3, far_constant).corrupt(X, relu_labels(X, w), rng).labels
    oracle = separation_oracle(X, y, gamma=1e-9)
    S = X @ w0 >= 0
    A = radial_isotropy(X[S], 1e-9).matrix
    unit = X[S] @ A.T
    unit /= np.linalg.norm(unit, axis=1)[:, None]
    r = (unit * np.sign(X[S] @ w0 - y[S])[:, None]).mean(axis=0)
    cut = oracle(w0)
    np.testing.assert_allclose(cut.normal, np.linalg.inv(A) @ r, rtol=1e-6)
    assert cut.offset == pytest.approx(cut.normal @ w0)


def test_at_zero_no_direction_is_wrong():
    """Research: with sgn(0) = 0 for labels 0 all of 40 directions are wrong."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, w = gaussian(480, 10, rng), rng.standard_normal(10)
        adversary = [zero, far_constant, flip(w, relu_labels), negate(w)][seed % 4]
        y = MassartNoise(0.4, adversary).corrupt(X, relu_labels(X, w), rng).labels
        found = separation_oracle(X, y).separate(np.zeros(10))
        assert found.answer is Answer.CUT
        assert found.halfspace.normal @ w < 0


@pytest.mark.parametrize("eta", [0.0, 0.25, 0.4])
def test_zero_is_never_accepted(eta):
    """Half of the labels and more are 0 then, which the published test takes for a fit."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, w = gaussian(480, 10, rng), rng.standard_normal(10)
        y = MassartNoise(eta, zero).corrupt(X, relu_labels(X, w), rng).labels
        found = separation_oracle(X, y).separate(np.zeros(10))
        assert found.answer is Answer.CUT
        assert found.fitted > 0.4


@pytest.mark.parametrize("share", [0.7, 0.9])
def test_a_parameter_that_is_right_on_a_heavy_subspace_only_is_not_accepted(share):
    accepted_by_the_paper = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        planted = integers_on_subspace(720, 9, 3, round(share * 720), rng)
        X, w = planted.X, integer_weights(9, rng)
        y = MassartNoise(0.25, [far_constant, flip(w, relu_labels)][seed % 2]).corrupt(X, relu_labels(X, w), rng).labels
        V = np.linalg.qr(planted.basis)[0]
        away = rng.standard_normal(9) * 5
        found = separation_oracle(X, y).separate(w + away - V @ (V.T @ away))
        assert found.answer is Answer.CUT
        assert found.halfspace.normal @ (found.query - w) > 0
        np.testing.assert_allclose(V.T @ found.halfspace.normal, 0, atol=1e-9, err_msg="the cut is in V-perp")
        accepted_by_the_paper += found.fitted > 0.5
    assert accepted_by_the_paper >= 4


def test_the_normal_lies_in_a_heavy_subspace_on_which_the_query_is_wrong():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        planted = integers_on_subspace(400, 9, 3, 360, rng)
        X, w = planted.X, integer_weights(9, rng)
        V = np.linalg.qr(planted.basis)[0]
        found = separation_oracle(X, relu_labels(X, w)).separate(w + V @ rng.standard_normal(3))
        assert found.subspace.shape[1] == 3
        normal = found.halfspace.normal
        np.testing.assert_allclose(V @ (V.T @ normal), normal, atol=1e-9)


@pytest.mark.parametrize("link_name", sorted(LINKS))
def test_the_truth_is_accepted_without_noise(link_name):
    link, accepted = LINKS[link_name], 0
    for table, seed in product(["gaussian", "mixture", "subspace"], range(4)):
        rng = np.random.default_rng(seed)
        X = TABLES[table](rng)
        w = rng.standard_normal(X.shape[1])
        y = link(X @ w)
        found = separation_oracle(X, y, link=link).separate(w)
        assert found.fitted == 1
        pinned = link.decisive(y)
        # A level of so few rows that any parameter fits them can be left over in a table with subspaces.
        if pinned.sum() > 8 * X.shape[1] and np.linalg.matrix_rank(X[pinned]) == X.shape[1] and table != "subspace":
            assert found.answer is Answer.ACCEPTED
            accepted += 1
    assert accepted > 2


def test_the_truth_is_accepted_with_noise():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        cases = [
            (gaussian(480, 10, rng), rng.standard_normal(10), far_constant),
            (gaussian_with_intercept(480, 10, rng), intercept_weights(10, rng), far_constant),
            (paper_mixture(240, 30, rng), paper_weights(30), paper_adversary(paper_weights(30))),
            (integers_on_subspace(720, 9, 3, 504, rng).X, integer_weights(9, rng), far_constant),
        ]
        for X, w, adversary in cases:
            y = MassartNoise(0.25, adversary).corrupt(X, relu_labels(X, w), rng).labels
            assert separation_oracle(X, y)(w) is None


def test_a_majority_of_all_rows_is_needed_too():
    """The decoy is right on all rows that it calls active, which are few."""
    rng = np.random.default_rng(0)
    X = np.abs(gaussian(300, 2, rng)) * np.where(np.arange(300) < 50, -1, 1)[:, None]
    w = np.array([1.0, 2.0])
    y = np.where(np.arange(300) < 50, X @ -w, relu_labels(X, w))
    found = separation_oracle(X, y).separate(-w)
    assert found.answer is Answer.CUT
    assert found.halfspace.normal @ (-w - w) > 0


def test_answers_do_not_depend_on_the_scale_of_rows():
    cuts = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, w = gaussian(100, 4, rng), rng.standard_normal(4)
        y = MassartNoise(0.3, far_constant).corrupt(X, relu_labels(X, w), rng).labels
        c = np.ldexp(1.0, rng.integers(-300, 300, 100))  # other factors change the last digits of X
        ours, scaled = separation_oracle(X, y), separation_oracle(X * c[:, None], y * c)
        for w0 in queries(w, rng):
            one, other = ours.separate(w0), scaled.separate(w0)
            assert one.answer is other.answer
            if one.answer is Answer.CUT:
                np.testing.assert_allclose(one.halfspace.normal, other.halfspace.normal, rtol=1e-9, atol=1e-12)
                cuts += 1
    assert cuts > 40


def test_weights_are_repetitions():
    rng = np.random.default_rng(0)
    X, w = gaussian(150, 4, rng), rng.standard_normal(4)
    y = MassartNoise(0.3, far_constant).corrupt(X, relu_labels(X, w), rng).labels
    counts = rng.integers(0, 4, 150)
    weighted = separation_oracle(X, y, sample_weight=counts, gamma=1e-9)
    repeated = separation_oracle(np.repeat(X, counts, axis=0), np.repeat(y, counts), gamma=1e-9)
    for w0 in queries(w, rng):
        one, other = weighted(w0), repeated(w0)
        assert (one is None) is (other is None)
        if one is not None:
            np.testing.assert_allclose(one.normal, other.normal, rtol=1e-5, atol=1e-7)


def test_a_warm_start_saves_iterations():
    """At gamma = 1/2 whitening is all that most tables need; a smaller gamma shows what the last transform saves."""
    rng = np.random.default_rng(0)
    X, w = paper_mixture(800, 15, rng), rng.standard_normal(15)
    path = np.linspace(w + 0.3 * rng.standard_normal(15), w, 20, endpoint=False)
    warm = separation_oracle(X, relu_labels(X, w), gamma=0.1)
    cold = 0
    for w0 in path:
        warm(w0)
        fresh = Position(X, 0.1)
        fresh.pieces(X @ w0 >= 0)
        cold += fresh.n_iter
    assert warm.n_queries == 20
    assert 0 < warm.n_isotropy < 0.6 * cold
    before = warm.n_isotropy
    warm(path[-1])
    assert warm.n_isotropy == before, "the same rows again cost nothing"


@pytest.mark.slow
@pytest.mark.parametrize("d", [5, 10])
@pytest.mark.parametrize("adversary", ["flip", "constant", "decoy"])
def test_analytic_centres_recover_the_truth(d, adversary):
    rng = np.random.default_rng(d)
    X, w = gaussian(48 * d, d, rng), rng.standard_normal(d)
    y = MassartNoise(0.25, ADVERSARIES[adversary](w, rng)).corrupt(X, relu_labels(X, w), rng).labels
    oracle = separation_oracle(X, y, agreement=NEAR)
    found = analytic_center(oracle, d, radius_of(X, y))
    assert found.status is Status.ACCEPTED
    assert oracle.n_queries == found.n_queries < 60 * d
    assert np.linalg.norm(found.point - w) < 1e-6 * np.linalg.norm(w)


@pytest.mark.parametrize("link", [LINKS["clip"], LINKS["leaky"]])
def test_analytic_centres_recover_the_truth_through_other_links(link):
    rng = np.random.default_rng(0)
    X, w = gaussian(240, 5, rng), rng.standard_normal(5)
    y = MassartNoise(0.25, far_constant).corrupt(X, link(X @ w), rng).labels
    found = analytic_center(separation_oracle(X, y, link=link, agreement=NEAR), 5, radius_of(X, y, link=link))
    assert found.status is Status.ACCEPTED
    assert np.linalg.norm(found.point - w) < 1e-6 * np.linalg.norm(w)


@pytest.mark.slow
def test_analytic_centres_resolve_a_heavy_subspace_first():
    rng = np.random.default_rng(0)
    X, w = integers_on_subspace(400, 6, 2, 300, rng).X, integer_weights(6, rng)
    y = MassartNoise(0.2, flip(w, relu_labels)).corrupt(X, relu_labels(X, w), rng).labels
    found = analytic_center(separation_oracle(X, y, agreement=NEAR), 6, radius_of(X, y))
    assert found.status is Status.ACCEPTED
    assert np.linalg.norm(found.point - w) < 1e-6 * np.linalg.norm(w)


@pytest.mark.parametrize("table", ["dummies", "gaussian", "intercept", "mixture", "subspace"])
def test_the_first_ball_holds_the_truth(table):
    told = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = TABLES[table](rng)
        w = rng.standard_normal(X.shape[1]) * 10.0 ** rng.integers(-3, 4)
        y = MassartNoise(0.4, zero).corrupt(X, relu_labels(X, w), rng).labels
        if (y > 0).sum() > 2 * w.size:  # fewer tell nothing of the size
            assert radius_of(X, y) > np.linalg.norm(w)
            told += 1
    assert told > 2


def test_the_first_ball_follows_the_units():
    rng = np.random.default_rng(0)
    X, w = gaussian(100, 3, rng), rng.standard_normal(3)
    y = relu_labels(X, w)
    assert radius_of(X, 1000 * y) == pytest.approx(1000 * radius_of(X, y))
    assert radius_of(1e200 * X, y) == pytest.approx(1e-200 * radius_of(X, y), rel=1e-12, abs=0)
    assert radius_of(X, 0 * y) == 1.0


def test_with_no_active_row_the_cut_makes_positive_labels_active():
    rng = np.random.default_rng(0)
    X, w = gaussian_with_intercept(300, 4, rng), np.array([1.0, 0.5, -1.0, -0.5])
    y = MassartNoise(0.3, far_constant).corrupt(X, relu_labels(X, w), rng).labels
    w0 = np.array([0.0, 0.0, 0.0, -5.0])
    assert not (X @ w0 >= 0).any()
    found = separation_oracle(X, y).separate(w0)
    np.testing.assert_array_equal(found.weights > 0, y > 0)
    assert found.halfspace.normal @ (w0 - w) > 0


def test_where_no_row_tells_a_side_the_oracle_says_so():
    X = np.random.default_rng(0).random((50, 3)) + 0.1
    found = separation_oracle(X, np.zeros(50)).separate([-1.0, -1.0, -1.0])
    assert found.answer is Answer.SILENT
    assert found.halfspace is None
    assert found.fitted == 1


def test_rows_that_cancel_tell_no_side():
    found = separation_oracle(np.ones((2, 1)), [1.0, 3.0]).separate([2.0])
    assert found.answer is Answer.SILENT
    assert found.fitted == 0


def test_impossible_labels_and_zero_rows_are_dropped():
    rng = np.random.default_rng(0)
    X, w, w0 = gaussian(100, 3, rng), rng.standard_normal(3), rng.standard_normal(3)
    y = relu_labels(X, w)
    more = np.vstack([X, gaussian(300, 3, rng), np.zeros((5, 3))])
    labels = np.concatenate([y, np.full(300, -1.0), np.zeros(5)])
    oracle = separation_oracle(more, labels)
    np.testing.assert_array_equal(oracle(w0).normal, separation_oracle(X, y)(w0).normal)
    assert oracle(w) is None
    assert not oracle.separate(w0).weights[100:].any()


def test_one_column():
    X = np.array([[1.0], [2.0], [-1.0], [3.0], [-2.0], [4.0]])
    y = np.array([2.0, 4.0, 0.0, 6.0, 0.0, 100.0])
    oracle = separation_oracle(X, y)
    assert oracle(np.array([3.0])).normal[0] > 0
    assert oracle(np.array([1.0])).normal[0] < 0
    assert oracle(np.array([-1.0])).normal[0] < 0
    assert oracle(np.array([2.0])) is None


def test_rows_that_do_not_span_are_served_in_their_span():
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((5, 3)))[0]
    X, w = gaussian(200, 3, rng) @ basis.T, rng.standard_normal(5)
    oracle = separation_oracle(X, relu_labels(X, w), agreement=NEAR)
    assert oracle.rank == 3
    assert oracle(w) is None
    assert oracle(basis @ (basis.T @ w)) is None
    normal = oracle(rng.standard_normal(5)).normal
    np.testing.assert_allclose(basis @ (basis.T @ normal), normal, atol=1e-12)


def test_parts_beyond_a_subspace_are_decomposed_in_their_own_span():
    rng = np.random.default_rng(0)
    X = np.zeros((90, 6))
    X[:60, :2] = rng.standard_normal((60, 2))
    X[60:, 1:4] = rng.standard_normal((30, 3))
    Q = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    for rows, basis in ((X, np.eye(6)[:, :2]), (X @ Q.T, Q[:, :2])):
        (piece,) = Position(rows, 0.5).beyond(basis, np.ones(90, dtype=bool))
        np.testing.assert_array_equal(piece.members, np.arange(90) >= 60)
        assert piece.subspace.shape == (6, 2)
        np.testing.assert_allclose(basis.T @ piece.subspace, 0, atol=1e-12)


def test_sides_tell_the_right_inequality_for_every_right_label():
    rng = np.random.default_rng(0)
    for link in LINKS.values():
        z, truth = rng.standard_normal((2, 1000)) * 2
        z[:100] = truth[:100]
        z[100:200] = 0
        told = sides(z, link(truth), np.abs(z), link=link)
        assert (told.sign * (z - truth) >= -1e-12).all()
        np.testing.assert_array_equal(told.active, link.derivative(z) > 0)
        assert (told.tells >= told.active).all()
        assert (told.sign[told.active & (np.abs(z - truth) > 1e-9)] != 0).all()


def test_rounded_labels_fit_within_their_tolerance():
    rng = np.random.default_rng(0)
    X, w = gaussian(200, 3, rng) * 10, np.array([1.5, -0.5, 2.0])
    y = np.round(relu_labels(X, w), 2)
    assert separation_oracle(X, y)(w) is not None
    assert separation_oracle(X, y, agreement=Agreement(Level.GIVEN, label=0.005, relative=1e-12))(w) is None


def test_the_callback_hears_every_query():
    heard: list[Progress] = []
    X = np.random.default_rng(0).standard_normal((50, 2))
    oracle = separation_oracle(X, relu_labels(X, [1.0, 2.0]), callback=heard.append)
    oracle(np.zeros(2))
    oracle(np.array([1.0, 2.0]))
    assert [progress.step for progress in heard] == [1, 2]
    assert heard[-1].residual == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": [-1.0, -2.0, -3.0]}, "y has no label that the link can produce, between 0 and inf"),
        ({"X": np.zeros((3, 2))}, "row of X that is not zero"),
        ({"y": [1.0, 2.0]}, "y must have shape \\(3,\\)"),
        ({"gamma": 1.5}, "gamma must be between 0 and 1"),
        ({"X": [[1.0, np.nan]] * 3}, "X must be finite"),
    ],
)
def test_misuse_is_named(changes, message):
    arguments = {"X": np.eye(3)[:, :2] + 1, "y": [1.0, 2.0, 3.0]} | changes
    with pytest.raises(ValueError, match=message):
        separation_oracle(arguments.pop("X"), arguments.pop("y"), **arguments)


def test_a_query_of_the_wrong_shape_is_named():
    oracle = separation_oracle(np.ones((4, 2)), np.ones(4))
    with pytest.raises(ValueError, match="w0 must have shape \\(2,\\), got \\(3,\\)"):
        oracle(np.zeros(3))
    with pytest.raises(ValueError, match="w0 must be finite"):
        oracle(np.array([np.inf, 0.0]))
