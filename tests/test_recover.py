"""The driver: any table behind three verbs, a few reads of it, every answer verified on all rows."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from massart import MassartRegressor
from massart.certificate import Verdict
from massart.paper import MassartNoise, far_constant, gaussian, gross, scale
from massart.recover import Options, Start, polish, propose, recover
from massart.recover.polish import least_squares
from massart.recover.settings import SETTINGS
from massart.rows import IDENTITY, RELU, Agreement, ArrayRows, Level, Link, Sample, levels
from row_families import dummy_table


def table(n, d, eta, adversary, seed=0):
    rng = np.random.default_rng(seed)
    X = gaussian(n, d, rng)
    w = rng.standard_normal(d)
    noise = MassartNoise(eta, adversary).corrupt(X, X @ w, rng)
    return X, noise.labels, w, noise.changed


def fit(X, y, sample_weight=None, intercept=False, seed=0, **options):
    return recover(ArrayRows(X, y, sample_weight, intercept=intercept), rng=np.random.default_rng(seed), **options)


class CountingRows(ArrayRows):
    """Rows that count how often the whole table is read, and how many rows are sampled."""

    reads = 0
    sampled = 0

    def map(self, kernel):
        self.reads += 1
        return super().map(kernel)

    def reduce(self, kernel):
        self.reads += 1
        return super().reduce(kernel)

    def sample(self, size, rng):
        self.sampled += min(size, self.n_rows)
        return super().sample(size, rng)


def test_a_large_table_costs_one_read():
    X, y, w, changed = table(50_000, 10, 0.4, scale(1.1))
    rows = CountingRows(X, y)
    found = recover(rows, rng=np.random.default_rng(0))
    np.testing.assert_allclose(found.coef[:, 0], w, rtol=1e-12)
    np.testing.assert_array_equal(found.agree[:, 0], ~changed)
    assert found.noise_rate[0] == pytest.approx(changed.mean())
    assert found.certificates[0].verdict.stands
    assert found.certificates[0].n_rows == 50_000
    assert found.certificates[0].n_agree == (~changed).sum()
    assert rows.reads == 1
    assert rows.sampled == SETTINGS.search + SETTINGS.certify


@pytest.mark.parametrize(("eta", "sampled"), [(0.2, SETTINGS.search), (0.42, SETTINGS.search + SETTINGS.certify)])
def test_more_rows_judge_only_where_the_first_do_not_settle_it(eta, sampled):
    X, y, _, changed = table(50_000, 5, eta, scale(1.1))
    rows = CountingRows(X, y)
    found = recover(rows, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(found.agree[:, 0], ~changed)
    assert found.certificates[0].verdict is Verdict.CONFIRMED
    assert found.certificates[0].eta_max >= 0.5
    assert rows.sampled == sampled


@pytest.mark.parametrize("seed", range(3))
def test_plain_noise_is_not_searched_and_exact_rows_are(seed):
    rng = np.random.default_rng(seed)
    X, w = rng.standard_normal((300, 4)), np.array([3.0, -2.0, 1.0, 4.0])
    noisy, steps = X @ w + 0.3 * rng.standard_normal(300), list[str]()
    found = recover(ArrayRows(X, noisy), rng=rng, callback=lambda progress: steps.append(progress.task))
    assert found.certificates[0].verdict is Verdict.NOISY
    assert "search" not in steps
    exact = np.where(rng.random(300) < 0.55, noisy, X @ w)
    found = recover(ArrayRows(X, exact), rng=rng, callback=lambda progress: steps.append(progress.task))
    np.testing.assert_allclose(found.coef[:, 0], w, rtol=1e-12)
    assert "search" in steps


@pytest.mark.slow
@pytest.mark.parametrize("search", [True, False])
def test_the_sample_grows_until_a_majority_agrees(search):
    """A first sample of 400 rows is not enough where 47 % are wrong."""
    X, y, w, _ = table(12_000, 20, 0.47, scale(1.1))
    found = fit(X, y, seed=1, search=search)
    np.testing.assert_allclose(found.coef[:, 0], w, rtol=1e-10)
    assert found.certificates[0].n_agree == (np.abs(y - X @ w) < 1e-9).sum()


@pytest.mark.parametrize("kind", ["memory map", "sparse", "float32", "integers", "Fortran"])
def test_kinds_of_tables(kind, tmp_path):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((6000, 6)) < 0.5, rng.integers(-9, 10, (6000, 6)), 0).astype(float)
    w = np.array([1.5, -2, 3, 0.25, 5, -6])
    y = MassartNoise(0.4, far_constant).corrupt(X, X @ w, rng).labels
    if kind == "memory map":
        file = np.memmap(tmp_path / "rows", dtype=np.float64, mode="w+", shape=X.shape)
        file[:] = X
        file.flush()
        table = np.memmap(tmp_path / "rows", dtype=np.float64, mode="r", shape=X.shape)
    else:
        kinds = {"sparse": sp.csc_array, "float32": np.float32, "integers": np.int32, "Fortran": np.asfortranarray}
        table = X.astype(kinds[kind]) if kind in ("float32", "integers") else kinds[kind](X)
    found = fit(table, y)
    np.testing.assert_allclose(found.coef[:, 0], w, rtol=1e-12)
    assert found.certificates[0].verdict.stands


def test_several_label_columns_share_one_sample_and_take_one_read_each():
    X, y, w, changed = table(30_000, 8, 0.35, scale(-1.0))
    rows = CountingRows(X, np.column_stack([y, X @ (2 * w), np.where(changed, 1.0, X @ (w + 1))]))
    found = recover(rows, rng=np.random.default_rng(0))
    np.testing.assert_allclose(found.coef, np.column_stack([w, 2 * w, w + 1]), rtol=1e-10)
    assert found.noise_rate[1] == 0
    assert rows.reads == 3
    assert rows.sampled == 30_000


@pytest.mark.slow
def test_noisy_inliers_are_found_and_said():
    rng = np.random.default_rng(0)
    X = gaussian(1500, 5, rng)
    w = rng.standard_normal(5)
    y = X @ w + 0.1 * rng.standard_normal(1500)
    y[:600] = 50.0
    found = fit(X, y)
    assert found.certificates[0].verdict is Verdict.NOISY
    assert found.scale[0] == pytest.approx(0.1, rel=0.2)
    assert np.all(np.abs(found.coef[:, 0] - w) < 5 * found.standard_errors[:, 0])
    assert found.noise_rate[0] == pytest.approx(0.4, abs=0.03)
    assert fit(X, y, inliers="exact").certificates[0].verdict in (Verdict.PLURALITY, Verdict.NONE)


@pytest.mark.slow
def test_dummies_at_scale():
    rng = np.random.default_rng(0)
    X = dummy_table(20_000, [20, 15, 18], rng)
    w = rng.integers(-50, 50, X.shape[1]).astype(float)
    y = MassartNoise(0.4, scale(1.1)).corrupt(X, X @ w, rng).labels
    found = fit(X, y)
    np.testing.assert_allclose(found.coef[:, 0], w, atol=1e-9)
    assert found.certificates[0].verdict.stands


def test_a_bad_number_in_the_rows_is_named_wherever_it_is():
    X, y, _, _ = table(20_000, 4, 0.3, gross())
    X[15_321, 2] = np.nan
    with pytest.raises(ValueError, match="X must be finite, got NaN at row 15321, column 2"):
        fit(X, y)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": np.zeros((0, 2)), "y": []}, "X must have at least one row"),
        ({"X": np.zeros(3)}, "X must have at least one row and one column"),
        ({"X": np.array([["a"], ["b"], ["c"]])}, "X must hold real numbers"),
        ({"X": [[1.0], [2.0], [3.0]]}, "X must be an array or a SciPy sparse matrix, got list"),
        ({"y": [1.0, np.inf, 0.0]}, "y must be finite, got inf at row 1"),
        ({"inliers": "maybe"}, "inliers must be"),
        ({"tolerance": np.nan}, "tolerance"),
        ({"sample_weight": [1.0, -1.0, 0.0]}, "sample_weight must not be negative"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        fit(**{"X": np.ones((3, 1)), "y": np.ones(3), **arguments})


# --- the three verbs ---


@pytest.mark.slow
@pytest.mark.parametrize("wrong", ["a constant", "a rule"])
def test_an_exact_minority_does_not_hide_a_noisy_majority(wrong):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 5))
    w = rng.standard_normal(5)
    y = X @ w + 0.1 * rng.standard_normal(1500)
    y = np.where(rng.random(1500) < 0.3, 9.0 if wrong == "a constant" else -X @ w, y)
    found = recover(ArrayRows(X, y, intercept=True), rng=np.random.default_rng(0))
    assert found.certificates[0].verdict is Verdict.NOISY
    assert np.linalg.norm(found.coef[:-1, 0] - w) < 0.03


@pytest.mark.parametrize("cents", [False, True])
@pytest.mark.parametrize("law", ["standard_normal", "standard_cauchy", "standard_exponential"])
def test_an_exact_rule_is_kept_however_the_other_labels_scatter_about_it(law, cents):
    """65 % of the labels are wrong by noise: least squares would call the rule noisy."""
    rng = np.random.default_rng(25)
    X = np.round(rng.uniform(0, 100, (1000, 4)), 2) if cents else rng.standard_normal((1000, 4))
    w, wrong = np.array([2.0, -3.5, 0.25, 7.0]), rng.random(1000) < 0.65
    y = X @ w + 12 + wrong * 20 * getattr(rng, law)(1000)
    found = fit(
        np.column_stack([X, X[:, 0]]), np.round(y, 2) if cents else y, intercept=True
    )  # a column twice is no reason, either
    assert found.certificates[0].verdict is Verdict.PLURALITY
    np.testing.assert_allclose(found.coef[[1, 2, 3, 5], 0], [*w[1:], 12.0], atol=1e-3)
    assert found.coef[0, 0] + found.coef[4, 0] == pytest.approx(2.0, abs=1e-3)
    assert (found.agree[:, 0] == ~wrong).mean() > 0.999
    assert "at most half of the rows agree" in found.certificates[0].explain().lower()


def test_columns_are_not_taken_as_rounded_where_a_minority_agrees_without_that():
    """Errors of a few units are dense: some lie within what rounding of the columns would explain."""
    rng = np.random.default_rng(27)
    X = np.round(rng.uniform(0, 100, (1300, 6)), 2)
    w, wrong = np.array([2.0, -3.5, 0.25, 7.0, 9.5, -8.25]), rng.random(1300) < 0.66
    y = np.round(X @ w + wrong * rng.uniform(-6, 6, 1300), 2)
    found = fit(X, y, intercept=True)
    assert found.certificates[0].agreement.level is Level.LABEL
    assert found.certificates[0].verdict is Verdict.PLURALITY
    np.testing.assert_allclose(found.coef[:-1, 0], w, atol=2e-4)


@pytest.mark.parametrize("seed", range(3))
def test_the_larger_of_two_rules_without_a_majority_is_never_more_than_a_plurality(seed):
    rng = np.random.default_rng(seed)
    X, u = rng.standard_normal((1500, 3)), rng.random(1500)
    y = np.where(u < 0.4, X @ [1.0, 2, 3], np.where(u < 0.75, X @ [2.0, -1, 1], 5 * rng.standard_normal(1500)))
    found = fit(X, y)
    assert found.certificates[0].verdict is Verdict.PLURALITY
    np.testing.assert_array_equal(found.coef[:, 0], [1.0, 2.0, 3.0])
    assert "another rule may hold for the others" in found.certificates[0].explain()


@pytest.mark.parametrize("sigma", [0.02, 0.1, 1.0])
def test_noise_that_was_rounded_is_no_exact_rule(sigma):
    """A tenth of the rows and more are within half a cent of the rule: as many as beside it."""
    rng = np.random.default_rng(26)
    X = rng.uniform(0, 100, (1000, 3))
    y = np.round(X @ [2.0, 3.5, 0.25] + sigma * rng.standard_normal(1000), 2)
    assert fit(X, y).certificates[0].verdict is Verdict.NOISY


@pytest.mark.slow
def test_wrong_labels_that_scatter_about_the_rule_are_no_noise():
    """A little more than half of the labels may be wrong: those that follow the rule at all follow it exactly."""
    found = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, w = rng.standard_normal((200, 6)), rng.standard_normal(6)
        wrong = rng.permutation(200) < 102
        y = X @ w + wrong * rng.standard_cauchy(200)
        answer = recover(ArrayRows(X, y, intercept=True), rng=np.random.default_rng(0))
        found += bool(np.abs(answer.coef[:-1, 0] - w).max() < 1e-9)
        assert answer.certificates[0].verdict in (Verdict.PLURALITY, Verdict.NOISY)
    assert found >= 7


@pytest.mark.parametrize("key", [15, 20, 21])
def test_a_level_on_which_only_the_sample_agrees_is_no_majority(key: int) -> None:
    # With the first key the first sample prefers, on one level, the rule that forgets the fee: there 43 % of all rows.
    rng = np.random.default_rng([6000, key])
    n = 6000
    tariff = rng.integers(0, 3, n)
    X = np.column_stack(
        [rng.integers(80, 900, n), rng.integers(20, 400, n), tariff == 1, tariff == 2, rng.random(n) < 0.5]
    ).astype(float)
    w = np.array([0.3412, 0.2278, 14.6, 5, 0, 9.9])
    y = np.round(X @ w[:-1] + w[-1], 2)
    wrong = rng.random(n) < 0.4
    y[wrong] = np.round(y[wrong] - 9.9, 2)
    found = recover(ArrayRows(X, y, intercept=True), rng=np.random.default_rng(0))
    np.testing.assert_allclose(found.coef[:, 0], w, atol=1e-9)
    np.testing.assert_array_equal(found.agree[:, 0], ~wrong)


# --- coefficients that are known from elsewhere ---


def ledger(n=400, wrong=0.2, seed=3):
    rng = np.random.default_rng(seed)
    X = np.round(rng.uniform(1, 200, (n, 2)), 2)
    w = np.array([0.37, 1.45, 12.5])
    y = np.round(X @ w[:2] + w[2], 2)
    bad = rng.random(n) < wrong
    y[bad] = np.round(y[bad] * rng.uniform(1.1, 3.0, bad.sum()), 2)
    return X, y, w, bad


@pytest.mark.parametrize("off", [0.0, 1e-7])
def test_a_start_near_the_rule_leads_to_the_answer_of_a_search(off):
    X, y, w, bad = ledger()
    known, found = (fit(X, y, intercept=True, start=start) for start in (None, Start(w * (1 + off), half_width=0.005)))
    np.testing.assert_array_equal(found.coef[:, 0], w)
    np.testing.assert_array_equal(found.coef, known.coef)
    np.testing.assert_array_equal(found.agree[:, 0], ~bad)
    assert found.fractions == known.fractions
    assert found.certificates[0].verdict is known.certificates[0].verdict
    assert str(found.certificates[0].agreement) == str(known.certificates[0].agreement)


def test_a_start_of_exact_labels_is_no_rounded_rule_because_some_labels_are_a_unit_off():
    """Cents that were typed wrong by one belong to an exact rule; they do not make it a rounded one."""
    X, _, w, _ = ledger()
    X, w = np.round(X), np.array([3.0, 2.0, 12.5])
    y = X @ w[:2] + w[2]
    off = np.arange(400) % 12 == 0
    y[off] += 0.01
    found = fit(X, y, intercept=True, start=Start(w, half_width=0.005))
    assert not found.certificates[0].agreement.rounded
    np.testing.assert_array_equal(found.coef[:, 0], w)
    np.testing.assert_array_equal(found.agree[:, 0], ~off)
    np.testing.assert_array_equal(found.last_place[:, 0], off)
    assert found.certificates[0].n_last_place == off.sum()


def test_a_start_that_nothing_follows_is_searched_beyond():
    X, y, w, bad = ledger()
    found = fit(X, y, intercept=True, start=Start(-w, half_width=0.005))
    np.testing.assert_array_equal(found.coef[:, 0], w)
    np.testing.assert_array_equal(found.agree[:, 0], ~bad)


def test_a_start_that_is_final_is_judged_as_it_stands():
    X, y, w, _ = ledger()
    agreement = fit(X, y, intercept=True).certificates[0].agreement
    other = w + [0.0, 0.0, 0.01]
    fractions = tuple(Fraction(str(value)) for value in (0.37, 1.45, 12.51))
    found = fit(X, y, intercept=True, start=Start(other, fractions=fractions, agreement=agreement))
    np.testing.assert_array_equal(found.coef[:, 0], other)
    assert found.fractions[0] == fractions
    rows = np.column_stack([X, np.ones(len(X))])
    np.testing.assert_array_equal(found.agree[:, 0], agreement.agree(rows, y, other))
    assert found.agree.mean() < 0.5


# --- polish ---


@pytest.mark.parametrize("link", [IDENTITY, RELU, Link(-1.0, 3.0), Link(slope=0.25)], ids=str)
@pytest.mark.parametrize("decimals", [None, 2])
def test_a_formula_that_is_nearly_right_is_polished_to_the_last_digits(link, decimals):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3)) * [1.0, 20.0, 300.0]
    w = np.array([2.0, -0.3, 0.01])
    y = link(X @ w) if decimals is None else np.round(link(X @ w), decimals)
    bad = rng.random(300) < 0.3
    y[bad] = rng.uniform(0.05, 2.9, bad.sum()) if decimals is None else np.round(rng.uniform(0.1, 2.9, bad.sum()), 2)
    level = levels("auto" if decimals is None else 0.005, X, y)[0]
    right = level.agree(X, y, w, link)
    found = polish(Sample(X, y, None, np.arange(300)), w * (1 + 1e-9), level, link)
    found, rows = found.coef, found.rows
    assert (rows.agree & ~bad).sum() >= (right & ~bad).sum()
    np.testing.assert_allclose(found, w, rtol=1e-13 if decimals is None else 2e-3)
    np.testing.assert_array_equal(rows.agree, level.agree(X, y, found, link))


def test_rounded_labels_are_taken_into_their_intervals():
    """Errors that lean to one side turn least squares away from the number behind the labels."""
    x = np.linspace(1, 2, 200)[:, None]
    y = 1.19 * x[:, 0] + np.where(x[:, 0] < 1.1, 0.0099, -0.005)
    level = Agreement(Level.GIVEN, 0.01)
    fitted = least_squares(x, y)
    assert not level.agree(x, y, fitted).all()
    found = polish(Sample(x, y, None, np.arange(200)), fitted, level, IDENTITY)
    assert found.rows.agree.all()
    assert found.coef[0] == pytest.approx(1.19, abs=1e-3)


@pytest.mark.parametrize("wrong", [0.0, 0.4, 0.45])
def test_a_coefficient_that_most_of_its_own_rows_refuse_is_changed(wrong):
    """Most rows agree with 9 in the place of 5, since few have the flag; of those with it most do not."""
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.standard_normal((400, 2)), np.arange(400) < 40])
    w = np.array([1.5, -2.0, 5.0])
    y = X @ w
    y[: int(40 * wrong)] += 4.0
    sample = Sample(X, y, None, np.arange(400))
    options = Options(np.random.default_rng(0), rounds=1)
    found = propose(sample, levels("auto", X, y), IDENTITY, options, first=w + [0.0, 0.0, 4.0])
    np.testing.assert_allclose(found.coef, w, rtol=1e-13)
    np.testing.assert_array_equal(found.rows.agree, np.arange(400) >= int(40 * wrong))


@pytest.mark.parametrize(("n", "share"), [(200, 0.05), (2000, 0.05), (2000, 0.3), (5000, 0.3)])
def test_counts_that_are_one_too_high_are_wrong_and_no_rounding(n, share):
    # Half a unit between the two fits every row, at the very edge of what rounding leaves.
    rng = np.random.default_rng(n)
    X = rng.integers(1, 30, (n, 3)).astype(float)
    wrong = rng.random(n) < share
    found = MassartRegressor(random_state=0).fit(X, X @ [3.0, 2.0, 7.0] + 5 + wrong)
    assert (*found.coef_, found.intercept_) == (3.0, 2.0, 7.0, 5.0)
    np.testing.assert_array_equal(found.inlier_mask_, ~wrong)
