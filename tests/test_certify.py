"""certify: the certificate of any formula is that which recovery gives it, and no formula is certain without a rule."""

from __future__ import annotations

import warnings
from itertools import combinations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from massart import MassartRegressor, MassartReLURegressor, certify
from massart.certificate import Certificate, Verdict
from massart.l1 import l1_regression
from massart.paper import MassartNoise, algorithm_2, far_constant, flip, gross, linear_labels, recover_relu, relu_labels
from massart.rows import IDENTITY, RELU, Link

W = np.array([2.0, -0.5, 0.0, 3.25])


def table(seed: int = 0, n: int = 300, eta: float = 0.25) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and labels of W and a constant of 1.5."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    return X, MassartNoise(eta, gross()).corrupt(X, X @ W + 1.5, rng).labels


def counts(certificate: Certificate) -> tuple[object, ...]:
    return (
        certificate.verdict,
        certificate.reason,
        certificate.rank,
        certificate.bound,
        certificate.hyperplane_rows,
        str(certificate.agreement),
        *(round(n, 6) for n in (certificate.n_rows, certificate.n_agree, certificate.n_decisive)),
    )


# --- the same certificate as that of recovery ---


def whole(rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 4, 300).astype(float)


def shares(rng: np.random.Generator) -> np.ndarray:
    return rng.random(300) / 300


@pytest.mark.parametrize("eta", [0.0, 0.1, 0.25])
@pytest.mark.parametrize("weigh", [None, whole, shares])
def test_it_is_the_certificate_of_a_regressor(eta, weigh):
    for seed in range(2):
        X, y = table(seed, eta=eta)
        weights = None if weigh is None else weigh(np.random.default_rng(seed))
        reg = MassartRegressor(random_state=0).fit(X, y, sample_weight=weights)
        found = certify(X, y, reg.coef_, intercept=reg.intercept_, sample_weight=weights)
        assert found.verdict.stands
        assert counts(found) == counts(reg.certificate_)
        assert found.eta_max == pytest.approx(reg.certificate_.eta_max, abs=0.02)  # of other draws


def test_it_is_the_certificate_of_a_regressor_where_labels_are_in_cents():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 100, (400, 3))
    y = np.round(X @ [0.421, 1.534, 2.077], 2)
    y[:80] = np.round(1.1 * y[:80], 2)
    reg = MassartRegressor(random_state=0, fit_intercept=False).fit(X, y)
    found = certify(X, y, reg.coef_)
    assert found.verdict is Verdict.PROVEN
    assert found.tolerance == 0.005
    assert counts(found) == counts(reg.certificate_)
    assert counts(certify(X, y, reg.coef_, tolerance=0.005))[6:] == counts(found)[6:]
    assert certify(X, y, reg.coef_, tolerance=0.0).verdict is Verdict.NONE


def test_a_constant_column_is_an_intercept():
    X, y = table()
    with_column = certify(np.column_stack([X, np.ones(300)]), y, [*W, 1.5])
    assert with_column.explain() == certify(X, y, W, intercept=1.5).explain()
    narrow = X.astype(np.float32)
    labels = (narrow @ W.astype(np.float32) + np.float32(1.5)).astype(np.float32)
    assert str(certify(narrow, labels, W, intercept=1.5).agreement) == "within rounding of float32"


@pytest.mark.parametrize("intercept", [None, 0.25])
def test_through_a_link_it_is_what_the_rows_prove(intercept):
    X, _ = table(eta=0.0)
    rng = np.random.default_rng(0)
    clean = RELU(X @ W + (intercept or 0))
    y = MassartNoise(0.1, gross()).corrupt(X, clean, rng).labels
    reg = MassartReLURegressor(random_state=0, fit_intercept=intercept is not None).fit(X, y)
    found = certify(X, y, reg.coef_, intercept=None if intercept is None else reg.intercept_, link=Link())
    assert found.verdict is Verdict.PROVEN
    assert counts(found) == counts(reg.certificate_)
    assert found.n_active == reg.certificate_.n_active


def test_a_formula_behind_a_link_that_saw_the_labels_is_not_confirmed_by_them():
    """A regressor holds labels back, which confirm; a formula from elsewhere may have seen all."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 4))
    y = MassartNoise(0.3, far_constant).corrupt(X, RELU(X @ W), rng).labels
    reg = MassartReLURegressor(random_state=0).fit(X, y)
    found = certify(X, y, reg.coef_, link=Link())
    assert reg.certificate_.verdict is Verdict.CONFIRMED
    assert found.verdict is Verdict.MAJORITY
    assert found.n_agree == reg.certificate_.n_agree


def test_answers_of_the_papers_algorithms_are_certified():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 4))
    y = MassartNoise(0.2, flip(W, linear_labels)).corrupt(X, X @ W, rng).labels
    assert certify(X, y, algorithm_2(X, y).w).verdict.certain
    y = MassartNoise(0.1, flip(W, relu_labels)).corrupt(X, RELU(X @ W), rng).labels
    assert certify(X, y, recover_relu(X, y).w, link=Link()).verdict.stands


# --- what is not certain ---


@pytest.mark.parametrize(
    ("coef", "intercept"), [(W + [0, 1e-6, 0, 0], 1.5), (W, 1.5001), (W, None), (-W, 1.5), (0 * W, 0.0)]
)
def test_a_wrong_formula_is_no_rule(coef, intercept):
    X, y = table()
    found = certify(X, y, coef, intercept=intercept)
    assert found.verdict is Verdict.NONE
    assert found.n_agree <= 4


def test_the_wrong_one_of_two_formulas_is_not_certain():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 4))
    other = rng.standard_normal(4)
    y = np.where(np.arange(400) < 180, X @ other, X @ W)
    assert certify(X, y, W).n_agree == 220
    assert not certify(X, y, other).verdict.stands


def interpolations(X: np.ndarray, y: np.ndarray, rng: np.random.Generator):
    """Yield formulas made to fit labels: through d rows, by least squares and least absolute values, and the best."""
    n, d = X.shape
    subsets = list(combinations(range(n), d)) if n <= 14 else [rng.choice(n, d, replace=False) for _ in range(200)]
    fits = [np.linalg.solve(X[list(s)], y[list(s)]) for s in subsets if abs(np.linalg.det(X[list(s)])) > 1e-9]
    yield np.linalg.lstsq(X, y, rcond=None)[0]
    yield l1_regression(X, y).coef
    yield from sorted(fits, key=lambda w: np.sum(np.abs(X @ w - y) > 1e-9))[:5]


LABELS = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "digits": lambda rng, n: rng.integers(0, 10, n).astype(float),
    "coins": lambda rng, n: rng.permutation(np.r_[0.0, 1.0, rng.integers(0, 2, n - 2)]),  # of both sides
    "sorted": lambda rng, n: np.sort(rng.standard_normal(n)),
}


@pytest.mark.slow
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("n", [4, 6, 14, 60, 300])
def test_labels_without_a_rule_have_no_certain_formula(n, labels):
    looked_at = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n, 3))
        y = LABELS[labels](rng, n)
        for coef in interpolations(X, y, rng):
            for weights in (None, np.abs(X @ coef - y) < 1e-9):  # weights that the formula likes, too
                if weights is not None and not weights.any():
                    continue
                given = None if weights is None else np.where(weights, 5.0, 1.0)
                assert not certify(X, y, coef, sample_weight=given).verdict.certain
                looked_at += 1
        for link in (RELU, Link(upper=1.0, lower=0.0)):
            for coef in interpolations(X, link(y), rng):
                assert not certify(X, link(y), coef, link=link).verdict.certain
    assert looked_at > 25


def test_repeated_rows_whose_labels_contradict_each_other_have_no_certain_formula():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((8, 3)), 10, axis=0)
    y = rng.standard_normal(80)
    for coef in interpolations(X, y, rng):
        assert certify(X, y, coef).verdict is Verdict.NONE


def test_rows_that_are_repeated_by_their_weights_are_one_row():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 2)), rng.standard_normal(20)
    weights = np.where(np.arange(20) < 2, 40, 1)
    found = certify(X, y, np.linalg.solve(X[:2], y[:2]), sample_weight=weights)
    assert found.verdict is Verdict.NONE
    assert (found.n_agree, found.n_rows) == (80, 98)


def test_the_most_frequent_label_is_no_rule_unless_all_labels_are_it():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    y = np.where(rng.random(200) < 0.7, 7.0, rng.standard_normal(200))
    assert certify(X, y, np.zeros(3), intercept=7.0).verdict is Verdict.NONE
    found = certify(X, np.full(200, 7.0), np.zeros(3), intercept=7.0)
    assert (found.verdict, found.constant) == (Verdict.PROVEN, True)
    assert certify(X, np.full(200, 7.0), [1.0, 0, 0], intercept=7.0).verdict is Verdict.NONE
    with_constant = np.column_stack([X, np.full(200, 2.0)])
    found = certify(with_constant, np.full(200, 7.0), [0, 0, 0, 2.0], intercept=3.0)
    assert found.undetermined_columns == ((3, 4),)  # a constant beside the constant is left open


# --- laws ---


@pytest.mark.parametrize("eta", [0.1, 0.3, 0.45])
def test_the_order_of_the_rows_does_not_matter(eta):
    X, y = table(eta=eta)
    weights = np.random.default_rng(1).integers(0, 99, 300) / 8
    order = np.random.default_rng(2).permutation(300)
    for link in (IDENTITY, Link()):
        for given in (None, weights):
            one = certify(X, y, W, intercept=1.5, link=link, sample_weight=given)
            moved = None if given is None else given[order]
            other = certify(X[order], y[order], W, intercept=1.5, link=link, sample_weight=moved)
            assert counts(one) == counts(other)
            assert one.eta_max == other.eta_max


def test_units_do_not_matter():
    X, y = table()
    plain = certify(X, y, W, intercept=1.5)
    scales = 2.0 ** np.array([-20, 30, 0, 5])
    assert counts(certify(X * scales, y, W / scales, intercept=1.5)) == counts(plain)
    assert counts(certify(X, 1024 * y, 1024 * W, intercept=1536)) == counts(plain)


def test_nothing_is_written_to_and_lists_and_frames_will_do():
    X, y = table(n=60)
    coef = W.copy()
    for array in (X, y, coef):
        array.flags.writeable = False
    plain = certify(X, y, coef, intercept=1.5).explain()
    assert plain == certify(X.tolist(), y.tolist(), coef.tolist(), intercept=1.5).explain()
    pandas = pytest.importorskip("pandas")
    assert (
        plain
        == certify(pandas.DataFrame(X), pandas.Series(y), pandas.Series(coef), intercept=np.float64(1.5)).explain()
    )


def test_the_formula_of_another_library():
    linear_model = pytest.importorskip("sklearn.linear_model")
    X, y = table(eta=0.0)
    model = linear_model.LinearRegression().fit(X, y)
    assert certify(X, y, model.coef_, intercept=model.intercept_).verdict is Verdict.PROVEN
    X, y = table()
    model = linear_model.LinearRegression().fit(X, y)
    assert certify(X, y, model.coef_, intercept=model.intercept_).verdict is Verdict.NONE


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"coef": [1.0, 2.0]}, r"coef must be 3 finite numbers, one a column of X, got \[1.0, 2.0\]"),
        ({"coef": [1.0, 2.0], "intercept": 1.0}, "coef must be 3 finite numbers"),
        ({"coef": [[1.0, 2.0, 3.0]]}, "coef must be 3 finite numbers"),
        ({"coef": [[1.0, 2.0, 3.0]], "intercept": 1.0}, "coef must be 3 finite numbers"),
        ({"coef": [1.0, np.nan, 1.0]}, "coef must be 3 finite numbers"),
        ({"coef": 1.0}, "coef must be 3 finite numbers"),
        ({"intercept": np.inf}, "intercept must be a finite number or None, got inf"),
        ({"intercept": np.nan}, "intercept must be a finite number or None, got nan"),
        ({"intercept": [1.0]}, r"intercept must be a finite number or None, got \[1.0\]"),
        ({"link": "relu"}, "link must be a massart.Link, got 'relu'"),
        ({"link": Link}, "link must be a massart.Link"),
        ({"X": np.ones(3)}, "X must be a matrix"),
        ({"X": [[1.0, np.nan, 0.0]] * 3}, "X must be finite"),
        ({"X": 1e200 * np.eye(3)}, "X must have its largest number between"),
        ({"y": [1.0, 2.0]}, "y has 2 rows but X has 3"),
        ({"y": [1.0, np.inf, 2.0]}, "y must be finite, got inf at row 1"),
        ({"y": np.ones((3, 2))}, "y must have shape"),
        ({"y": [1.0, 1e300, 2.0]}, "y must have numbers up to"),
        ({"sample_weight": [1.0, -1.0, 1.0]}, "sample_weight must not be negative"),
        ({"tolerance": -1.0}, "tolerance"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        certify(**{"X": np.eye(3), "y": np.ones(3), "coef": np.ones(3), **arguments})


def test_a_regressor_warns_of_doubt_and_certify_only_says_it():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 2)), rng.standard_normal(60)
    with pytest.warns(ConvergenceWarning):
        reg = MassartRegressor(random_state=0, inliers="exact").fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert certify(X, y, reg.coef_, intercept=reg.intercept_).verdict in (Verdict.NONE, Verdict.PLURALITY)
