"""Recovery behind a ReLU: exact where it can be, and never claimed where it is not."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arrays import recovered
from massart.certificate import Verdict
from massart.paper import MassartNoise, decoy, far_constant, flip, gaussian, gross, negate, relu_labels, scale, zero
from massart.rows import RELU, Progress
from relu_cases import FAMILIES, ReluCell, attempt, default, wrong_claims
from row_families import integers_on_subspace, oppose

ADVERSARIES = {
    "negate": lambda w, rng: negate(w),
    "flip": lambda w, rng: flip(w, relu_labels),
    "constant": lambda w, rng: far_constant,
    "zero": lambda w, rng: zero,
    "gross": lambda w, rng: gross(),
    "decoy": lambda w, rng: decoy(rng.standard_normal(w.size), relu_labels),
    "oppose": lambda w, rng: oppose(w, relu_labels),
    "1.1": lambda w, rng: scale(1.1),
    "-100": lambda w, rng: scale(-100.0),
}


def relative_error(found, w):
    return np.linalg.norm(found - w) / np.linalg.norm(w)


def table(n, d, eta, adversary, seed=0):
    rng = np.random.default_rng(seed)
    X = gaussian(n, d, rng)
    w = rng.standard_normal(d)
    noise = MassartNoise(eta, ADVERSARIES[adversary](w, rng)).corrupt(X, relu_labels(X, w), rng)
    return X, noise.labels, w, noise.changed


# --- recovery ---


@pytest.mark.slow
@settings(max_examples=15)
@given(st.sampled_from(sorted(ADVERSARIES)), st.floats(0, 0.3), st.integers(0, 2**32 - 1))
def test_recovery_is_exact_for_any_adversary(name, eta, seed):
    d = 2 + seed % 5
    X, y, w, _ = table(60 * d, d, eta, name, seed)
    found = recovered(X, y, link=RELU)
    assert relative_error(found.coef, w) <= 1e-12
    np.testing.assert_array_equal(found.agree, np.abs(y - relu_labels(X, w)) <= 1e-9 * (np.abs(X) @ np.abs(w)))
    assert found.agreement.label == 0


@pytest.mark.slow
@pytest.mark.parametrize("cell", [cell for cells in FAMILIES.values() for cell in cells], ids=lambda cell: str(cell))
def test_hard_tables_are_recovered_and_never_claimed_wrongly(cell: ReluCell):
    answer = attempt(cell, default, 0)
    assert cell.possible(0)
    assert answer.recovered
    assert wrong_claims([answer]) == 0


@pytest.mark.parametrize("cell", FAMILIES["labels to zero"], ids=str)
def test_zero_is_not_the_answer_to_labels_that_were_zeroed(cell):
    for trial in range(4):
        drawn = cell.table(trial)
        assert (drawn.y == 0).mean() > 0.6, "zero fits the larger part"
        found = recovered(drawn.X, drawn.y, link=RELU)
        assert relative_error(found.coef, drawn.truth) <= 1e-12


def test_float32_tables_are_exact_up_to_their_own_rounding():
    X, y, w, changed = table(600, 6, 0.3, "gross")
    coarse = X.astype(np.float32)
    labels = np.where(changed, y, relu_labels(coarse, w)).astype(np.float32)
    found = recovered(coarse, labels, link=RELU)
    assert relative_error(found.coef, w) <= 1e-6
    np.testing.assert_array_equal(found.agree, ~changed)
    assert found.certificate.verdict.stands
    assert str(found.agreement) == "within rounding of float32"


@pytest.mark.parametrize("tolerance", ["auto", 0.005])
def test_labels_in_cents_need_the_looser_tolerance_and_get_it(tolerance):
    rng = np.random.default_rng(0)
    X = rng.uniform(-100, 100, (400, 3))
    w = np.array([0.421, -1.534, 2.077])
    y = np.round(relu_labels(X, w), 2)
    wrong = (rng.random(400) < 0.3) & (y > 0)
    y[wrong] = np.round(1.1 * y[wrong], 2)
    found = recovered(X, y, link=RELU, tolerance=tolerance)
    assert found.agreement.label == 0.005
    np.testing.assert_array_equal(found.agree, ~wrong)
    assert relative_error(found.coef, w) < 1e-4
    assert found.certificate.verdict.stands
    assert found.certificate.tolerance == 0.005


@pytest.mark.parametrize("seed", range(3))
def test_a_false_majority_on_a_subspace_is_not_claimed(seed):
    """90 % of the rows in three dimensions: a formula right there and wrong beyond fits a majority of all rows."""
    rng = np.random.default_rng(seed)
    planted = integers_on_subspace(400, 9, 3, 360, rng)
    X, outside = planted.X, ~planted.inside
    y = relu_labels(X, rng.integers(1, 6, 9).astype(float))
    y[outside] = rng.integers(0, 60, outside.sum()) + 0.5
    found = recovered(X, y, link=RELU)
    assert 2 * found.agree.sum() > len(y)
    assert found.certificate.thin or not found.certificate.verdict.stands


# --- brute force on small tables ---


def small_table(seed):
    """Return rows and labels of small integers: d <= 2, n <= 12, with zero rows, repeated rows and negative labels."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 13)), int(rng.integers(1, 3))
    X = rng.integers(-3, 4, (n, d)).astype(float)
    clean = relu_labels(X, rng.integers(-3, 4, d))
    return X, np.where(rng.random(n) < rng.choice([0.5, 0.7, 0.9]), clean, rng.integers(-2, 9, n)).astype(float)


def fitted(X, y, w):
    return np.abs(y - np.maximum(X @ w, 0.0)) < 1e-9


def determined(X, y):
    """Return the parameters that d rows with positive labels determine."""
    for chosen in itertools.combinations(np.flatnonzero(y > 0), X.shape[1]):
        rows = X[list(chosen)]
        if abs(np.linalg.det(rows)) > 1e-9:
            yield np.linalg.solve(rows, y[list(chosen)])


def all_kinds(X, y):
    """Return a parameter of every kind, apart from which rows of labels y >= 0 they fit; d is 1 or 2.

    What a parameter fits changes on the lines w.x = y only: all their crossings, a point of every piece of a line
    between two crossings, and (off all lines only zeros are fitted) a direction between any two lines of zeros.
    """
    used = (y >= 0) & X.any(axis=1)
    X, y = X[used], y[used]
    if X.shape[1] == 1:
        return np.array(with_gaps([0.0, *(y / X[:, 0])]))[:, None]
    kinds = [np.zeros(2)]
    for row, label in zip(X, y, strict=True):
        foot, along = row * label / (row @ row), np.array([-row[1], row[0]])
        crossed = np.abs(X @ along) > 1e-12
        places = (y[crossed] - X[crossed] @ foot) / (X[crossed] @ along)
        kinds += [foot + place * along for place in with_gaps([0.0, *places])]
    angles = np.arctan2(X[:, 1], X[:, 0])
    turns = with_gaps([*(angles + np.pi / 2) % (2 * np.pi), *(angles - np.pi / 2) % (2 * np.pi)]) if len(X) else []
    return np.array(kinds + [np.array([np.cos(turn), np.sin(turn)]) for turn in turns])


def with_gaps(values):
    values = sorted(set(values))
    middles = [(low + high) / 2 for low, high in itertools.pairwise(values)]
    return [*values, *middles, values[0] - 0.01, values[-1] + 0.01]


@pytest.mark.slow
def test_no_parameter_that_rows_confirm_fits_more_rows_of_a_small_table():
    """Any d decisive rows have a parameter, and one more may be a repeated row: those need not be found."""
    confirmed = quiet = 0
    for seed in range(100):
        X, y = small_table(seed)
        found = recovered(X, y, link=RELU)
        ours = fitted(X, y, found.coef).sum()
        if (fitted(X, y, found.coef) & (y > 0)).sum() <= X.shape[1] + 1:
            assert ours >= (y == 0).sum(), "where nothing is known, zero fits no more"
            quiet += 1
        for w in determined(X, y):
            rows = fitted(X, y, w)
            if (rows & (y > 0)).sum() > X.shape[1] + 1:
                assert ours >= rows.sum()
                confirmed += 1
    assert confirmed > 50
    assert quiet > 10


@pytest.mark.slow
def test_what_is_proven_of_a_small_table_is_true():
    claims = 0
    for seed in range(200):
        X, y = small_table(seed)
        found = recovered(X, y, link=RELU)
        if found.certificate.verdict is not Verdict.PROVEN:
            continue
        claims += 1
        ours = fitted(X, y, found.coef).sum()
        for w in all_kinds(X, y):
            assert np.abs(w - found.coef).max() < 1e-9 or fitted(X, y, w).sum() < ours
    assert claims > 20


# --- laws ---


@pytest.mark.slow
@settings(max_examples=8)
@given(st.sampled_from(["flip", "constant", "decoy", "gross"]), st.integers(0, 2**32 - 1))
def test_recovery_follows_the_units_and_the_order_of_the_rows(name, seed):
    X, y, _, _ = table(200, 4, 0.35, name, seed)
    rng = np.random.default_rng(seed)
    base = recovered(X, y, link=RELU)
    rows, columns = np.exp2(rng.integers(-8, 9, len(y))), np.exp2(rng.integers(-20, 21, 4))
    order = rng.permutation(len(y))
    permuted = recovered(X[order], y[order], link=RELU)
    np.testing.assert_array_equal(permuted.agree, base.agree[order])
    for other, back in (
        (permuted, 1.0),
        (recovered(X * rows[:, None], y * rows, link=RELU), 1.0),
        (recovered(X * columns, y, link=RELU), columns),
        (recovered(X, 1024 * y, link=RELU), 1 / 1024),
    ):
        assert relative_error(other.coef * back, base.coef) <= 1e-11
        assert other.agree.sum() == base.agree.sum()


@settings(max_examples=5)
@given(st.integers(0, 2**32 - 1))
def test_weights_repeat_rows(seed):
    X, y, _, _ = table(120, 3, 0.3, "decoy", seed)
    weights = np.random.default_rng(seed).integers(0, 4, len(y))
    weighted = recovered(X, y, link=RELU, sample_weight=weights)
    repeated = recovered(np.repeat(X, weights, axis=0), np.repeat(y, weights), link=RELU)
    assert relative_error(weighted.coef, repeated.coef) <= 1e-12
    np.testing.assert_array_equal(np.repeat(weighted.agree, weights), repeated.agree)
    ours, theirs = weighted.certificate, repeated.certificate
    assert (ours.n_rows, ours.n_agree, ours.n_decisive, ours.n_active, ours.rank) == (
        theirs.n_rows,
        theirs.n_agree,
        theirs.n_decisive,
        theirs.n_active,
        theirs.rank,
    )


@pytest.mark.slow
def test_the_numbers_of_the_certificate_are_those_of_the_answer():
    verdicts = [
        check_numbers(name, eta, seed) for name in sorted(ADVERSARIES) for seed, eta in enumerate((0.0, 0.2, 0.45))
    ]
    assert verdicts.count(Verdict.PROVEN) > 5
    assert len({*verdicts} - {Verdict.PROVEN}) > 0


def check_numbers(name, eta, seed):
    X, y, _, _ = table(150, 3, eta, name, seed)
    found = recovered(X, y, link=RELU)
    agree = found.agreement.agree(X, y, found.coef, RELU)
    np.testing.assert_array_equal(found.agree, agree)
    certificate = found.certificate
    possible = y >= 0
    speaking = possible & (X @ found.coef > 0) & ~(agree & (y == 0))
    assert certificate.n_rows == possible.sum()
    assert certificate.n_agree == agree.sum()
    assert certificate.n_decisive == (agree & (y > 0)).sum()
    assert certificate.n_active == speaking.sum()
    assert certificate.rank == np.linalg.matrix_rank(X[agree & (y > 0)])
    if certificate.verdict is Verdict.PROVEN:
        missed = possible.sum() - agree.sum()
        assert certificate.n_decisive - certificate.hyperplane_rows > missed
    if certificate.verdict.stands:
        assert 2 * certificate.n_decisive > certificate.n_active
        assert certificate.support.alpha > 0.5 or certificate.verdict.certain
        between = f"Where it is between its limits, {certificate.n_decisive} rows agree"
        assert between in certificate.explain()
    return certificate.verdict


def test_a_callback_stops_the_search_by_raising():
    def stop(progress: Progress) -> None:
        raise KeyboardInterrupt

    X, y, _, _ = table(200, 4, 0.3, "flip")
    with pytest.raises(KeyboardInterrupt):
        recovered(X, y, link=RELU, callback=stop)


# --- odd tables ---


def test_labels_that_are_all_zero_leave_every_coefficient_open():
    found = recovered(gaussian(60, 3, np.random.default_rng(0)), np.zeros(60), link=RELU)
    np.testing.assert_array_equal(found.coef, 0)
    assert found.agree.all()
    assert found.certificate.verdict is Verdict.NONE
    assert (found.certificate.rank, found.certificate.n_agree, found.certificate.n_decisive) == (0, 60, 0)


def test_labels_that_are_all_negative_agree_with_nothing():
    rng = np.random.default_rng(0)
    found = recovered(gaussian(60, 3, rng), -1 - rng.random(60), link=RELU)
    np.testing.assert_array_equal(found.coef, 0)
    assert not found.agree.any()
    assert found.certificate.verdict is Verdict.NONE
    assert (found.certificate.n_rows, found.certificate.n_agree) == (0, 0)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        pytest.param(np.arange(1.0, 7)[:, None], [2.0, 4, 6, 8, 10, 3], id="one column"),
        pytest.param(np.ones((5, 1)), [1.0, 1, 2, 1, 1], id="constant column"),
        pytest.param(np.random.default_rng(0).standard_normal((3, 5)), [1.0, 2.0, 3.0], id="fewer rows than columns"),
        pytest.param(np.random.default_rng(0).standard_normal((5, 5)), np.arange(5.0), id="as many"),
        pytest.param(np.zeros((4, 2)), [0.0, 0, 0, 1], id="zero rows"),
        pytest.param(np.zeros((4, 2)), [-1.0, -2, 3, 1], id="zero rows with labels"),
        pytest.param([[1.0, 2.0]], [3.0], id="one row"),
        pytest.param([[1.0, 2.0]], [0.0], id="one row of label zero"),
        pytest.param([[1.0, 2.0]], [-1.0], id="one row of a negative label"),
        pytest.param(np.ones((6, 3)), np.ones(6), id="the same row"),
        pytest.param(-np.ones((6, 1)), [0.0, 0, 0, 0, 0, 4], id="hardly an active row"),
        pytest.param(1e150 * np.random.default_rng(0).standard_normal((30, 2)), np.full(30, 3.0), id="huge"),
        pytest.param(1e-150 * np.random.default_rng(0).standard_normal((30, 2)), np.full(30, 3.0), id="tiny"),
    ],
)
def test_odd_tables_get_an_honest_answer(X, y):
    X, y = np.asarray(X), np.asarray(y)
    found = recovered(X, y, link=RELU)
    assert np.isfinite(found.coef).all()
    np.testing.assert_array_equal(found.agree, found.agreement.agree(X, y, found.coef, RELU))
    certificate = found.certificate
    assert certificate.explain()
    assert (certificate.verdict is Verdict.NONE) or (found.agree & (y > 0)).sum() > certificate.rank


def test_undetermined_columns_are_named():
    X = gaussian(80, 3, np.random.default_rng(0))
    X = np.column_stack([X, 2 * X[:, 0], np.zeros(80)])
    found = recovered(X, relu_labels(X[:, :3], [1.0, 2.0, 3.0]), link=RELU)
    certificate = found.certificate
    assert certificate.verdict is Verdict.PROVEN
    assert set(certificate.undetermined_columns) == {(0, 3), (4,)}
    assert certificate.rank == 3
    np.testing.assert_allclose(X[found.agree] @ certificate.undetermined, 0, atol=1e-12)
    assert found.agree.all()
