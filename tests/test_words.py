"""Every sentence that a verdict can print, on a table made for it, checked word by word and recounted."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

from massart import MassartRegressor, MassartReLURegressor
from massart.certificate import (
    Assumption,
    Breach,
    Certificate,
    PieceSupport,
    Reason,
    Segment,
    Support,
    Verdict,
    geometry_of,
)
from massart.report import SegmentFacts, count, explain, judgement, listed, name_of, share, weakest_columns
from massart.rows import Agreement, Level
from massart.rules import INTERCEPT

Array = NDArray[Any]


def fit(X: Array, y: Array, relu: bool = False, **parameters: Any) -> Any:
    estimator = MassartReLURegressor if relu else MassartRegressor
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator(random_state=0, **parameters).fit(X, y)


def numbers_in(pattern: str, text: str) -> list[float]:
    """Return the numbers that a sentence names; the pattern has # for each."""
    found = re.search(re.escape(pattern).replace(r"\#", r"([\d,.]+(?:e-\d+)?)"), text)
    assert found, f"no {pattern!r} in {text!r}"
    return [float(group.replace(",", "")) for group in found.groups()]


def lattice(seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.integers(-4, 5, (40, 2)).astype(float)
    X = X[X.any(axis=1)]
    y = X @ [3.0, -2.0]
    y[:12] = X[:12] @ [1.0, 5.0]
    return X, y


def gaussian(n: int, share_wrong: float, seed: int = 0, d: int = 4) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    X, w = rng.standard_normal((n, d)), np.arange(1.0, d + 1)
    wrong = rng.random(n) < share_wrong
    return X, np.where(wrong, 9 * rng.standard_normal(n), X @ w), ~wrong


def flagged(n_flags: int, seed: int = 0) -> tuple[Array, Array]:
    """An hourly rate, and a surcharge that few rows have; a quarter of the others are wrong."""
    rng = np.random.default_rng(seed)
    hours, flag = rng.integers(1, 40, 400) / 4, np.arange(400) < n_flags
    y = 54 * hours + 30 * flag + 7
    y[50:150] = rng.integers(1, 999, 100)
    return np.column_stack([hours, flag]), y


# PROVEN


def test_the_rows_that_the_formula_fits_are_counted() -> None:
    X, y = lattice()
    reg = fit(X, y, fit_intercept=False)
    said = reg.certificate_.explain()
    fits = np.isclose(X @ [3.0, -2.0], y)
    assert said.startswith(
        f"Proven by counting rows: the formula fits {fits.sum()} of {len(y)} rows exactly ({100 * fits.mean():.1f} %), "
        "and no other formula fits as many. "
    )


def test_a_proof_says_first_that_it_counts_rows_which_need_not_be_the_right_ones() -> None:
    """Of 1,000 rows 1.5 % are wrong: 15 of the 20 that have a surcharge, 15 in place of 10."""
    rng = np.random.default_rng(0)
    hours, surcharge = rng.integers(1, 99, 1000), np.arange(1000) < 20
    y = 2.0 * hours + 10 * surcharge
    y[:15] += 5
    reg = fit(np.column_stack([hours, surcharge]), y)
    assert reg.certificate_.verdict is Verdict.PROVEN
    assert reg.coef_.tolist() == [2, 15]  # what is proven is true, and the rule is another
    first, *others = reg.certificate_.explain().split(". ")
    assert first.startswith(
        "Proven by counting rows: the formula fits 995 of 1,000 rows exactly (99.5 %), and no other"
    )
    assert others[-1] == "Not claimed: that the rows it fits are the right ones, or that other data follow it."


def test_no_warning_begins_with_a_good_verdict() -> None:
    rng = np.random.default_rng(0)
    city = np.eye(3)[rng.integers(0, 3, 300)]  # as OneHotEncoder gives it
    X = np.column_stack([rng.integers(1, 99, 300), city])
    y = X @ [2.0, 10, 20, 30]
    warned = 0
    for targets in (y, np.column_stack([y, 2 * y])):
        with pytest.warns(ConvergenceWarning, match="always move together") as told:
            reg = MassartRegressor(random_state=0).fit(X, targets)
        verdicts = np.atleast_1d([reg.certificate_] if targets.ndim == 1 else reg.certificate_)
        assert all(one.verdict.stands for one in verdicts)
        for warning in told:
            warned += 1
            assert str(warning.message).startswith("The rows do not determine every coefficient")
    assert warned == 3


@pytest.mark.slow
def test_no_other_formula_fits_as_many_rows_and_none_more_than_is_said() -> None:
    claims = 0
    for seed in range(6):
        X, y = lattice(seed)
        certificate = fit(X, y, fit_intercept=False).certificate_
        if certificate.verdict is not Verdict.PROVEN:
            continue
        claims += 1
        most, shared = numbers_in(
            "and no other formula fits as many. Another fits at most # rows, since at most # of those that this one "
            "fits can be shared (",
            certificate.explain(),
        )
        ours = np.isclose(X @ [3.0, -2.0], y)
        assert most < ours.sum() == certificate.n_agree
        for pair in combinations(range(len(X)), 2):
            block = X[list(pair)]
            if abs(np.linalg.det(block)) < 0.5:
                continue
            rival = np.linalg.solve(block, y[list(pair)])
            fits = np.isclose(X @ rival, y)
            if not np.allclose(rival, [3, -2]):
                assert fits.sum() <= most
                assert (fits & ours).sum() <= shared
    assert claims > 3


@pytest.mark.slow
def test_formulas_that_count_as_the_same_are_within_the_resolution() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 100, (200, 2))
    y = np.round(X @ [1.234, 0.5], 2)
    y[::5] += 7
    reg = fit(X, y, fit_intercept=False)
    assert reg.certificate_.verdict is Verdict.PROVEN
    said = reg.certificate_.explain()
    assert "rows within rounding to cents (80.0 %)" in said
    (times,) = numbers_in(
        "Not distinguished from it: formulas that differ by at most # times the rounding error allowed in a row on the "
        "rows that prove it.",
        said,
    )
    rows = X[reg.inlier_mask_]
    residuals = y[reg.inlier_mask_] - rows @ reg.coef_
    room = np.concatenate([0.005 + residuals, 0.005 - residuals])
    farthest = max(
        -linprog(-sign * rows[i], A_ub=np.vstack([rows, -rows]), b_ub=room, bounds=(None, None)).fun
        for i in range(0, len(rows), 10)
        for sign in (1, -1)
    )
    assert 1e-5 < farthest <= times * 0.005


def test_exact_formulas_count_as_the_same_by_a_share_of_the_size_of_a_row() -> None:
    X, y = lattice()
    certificate = fit(X, y, fit_intercept=False).certificate_
    (near,) = numbers_in(
        "Not distinguished from it: formulas that differ by at most # of the size of a row on the rows that prove it.",
        certificate.explain(),
    )
    assert certificate.resolution * certificate.agreement.relative <= near < 1e-8
    assert certificate.explain().endswith(
        "Not claimed: that the rows it fits are the right ones, or that other data follow it."
    )


def test_a_proof_leaves_open_what_is_open() -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 10, (200, 3)).astype(float)
    X[:, 2] = X[:, 0]
    y = X @ [1.0, 2.0, 3.0] + 5
    y[::4] = 99
    reg = fit(X, y)
    said = reg.certificate_.explain(["a", "b", "a again"])
    assert reg.certificate_.verdict is Verdict.PROVEN
    assert "no other formula fits as many, apart from those that differ only in what is left open. Another" in said
    assert judgement(reg.certificate_).meaning == (
        "No other formula fits as many rows, apart from those that differ only in what is left open."
    )
    assert (
        "In the rows that agree, a and a again always move together: only combinations of their coefficients are "
        "determined." in said
    )
    other = reg.coef_ + [7.0, 0.0, -7.0]
    assert np.isclose(X @ other + reg.intercept_, y).sum() == reg.certificate_.n_agree


def test_coefficients_that_no_row_determines_are_named() -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(1, 10, (100, 4)).astype(float)
    X[:, [1, 3]] = 0
    y = X @ [1.0, 2.0, 3.0, 4.0]
    said = fit(X, y, fit_intercept=False).certificate_.explain(list("abcd"))
    assert "Nothing determines the coefficients of b and d: no row that agrees uses them." in said
    said = fit(X[:, :3], y, fit_intercept=False).certificate_.explain(list("abc"))
    assert "Nothing determines the coefficient of b: no row that agrees uses it." in said


# CONFIRMED


def test_a_confirmed_formula_says_under_which_assumption() -> None:
    X, y, _ = gaussian(2000, 0.3)
    certificate = fit(X, y).certificate_
    assert certificate.verdict is Verdict.CONFIRMED
    assert certificate.eta_max >= certificate.wrong_at_most == 0.5
    assert certificate.explain().endswith(
        " With 99.9 % confidence: either this is the formula (among formulas in these terms), or some label was wrong "
        "with a probability above one half, or errors were not independent. Not distinguished from it: "
        "formulas that differ by at most 2e-13 of the size of a row on every row that judges it."
    )
    assert judgement(certificate).off == "wrong rows"


@pytest.mark.slow
def test_a_confirmed_formula_says_which_bound_was_assumed_and_what_rounding_leaves() -> None:
    audit_table = pytest.importorskip("massart.audit", reason="pyarrow is not installed").audit_table
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0, 1000, (2, 600))
    y = np.round(1.5 * a + 0.25 * b, 2)
    wrong = rng.random(600) < 0.38
    y[wrong] = np.round(rng.uniform(0, 1500, wrong.sum()), 2)
    found = audit_table({"a": a, "b": b, "y": y}, "y", wrong_at_most=0.4)
    assert found.certificate.verdict is Verdict.CONFIRMED
    assert (
        "either this is the formula (among formulas in these terms, up to what rounding leaves open), or some label "
        "was wrong with a probability above 40 %, or errors were not independent." in found.explanation
    )


# MAJORITY


@pytest.mark.parametrize(("n_rows", "labels"), [(800, "labels"), (50_000_000, "the labels of 800 rows")])
def test_terms_that_labels_chose_promise_no_number_of_rows_that_judge(n_rows: int, labels: str) -> None:
    """Of many rows, and of a stream, not all the others judge; and of few, there may be no others."""
    X, y, _ = gaussian(800, 0.2)
    certificate = replace(fit(X, y).certificate_, verdict=Verdict.CONFIRMED, n_rows=n_rows, n_seen=800)
    (said,) = re.findall(r"Its terms were chosen[^.]*\.", explain(certificate))
    assert said == f"Its terms were chosen with {labels}: only other rows can confirm it."


@pytest.mark.slow
def test_a_majority_says_what_is_excluded_and_where_it_is_weakest() -> None:
    X, y, right = gaussian(500, 0.35)
    reg = fit(X, y, fit_intercept=False, tolerance=0.001)
    certificate = reg.certificate_
    assert certificate.verdict is Verdict.MAJORITY
    said = certificate.explain(["a", "b", "c", "d"])
    assert " More than half of the evidence agrees in every direction. With 99.9 % confidence: either this" in said
    (above,) = numbers_in("or some label was wrong with a probability above # %, or errors were not independent.", said)
    assert certificate.eta_max - 0.001 <= above / 100 <= certificate.eta_max + 1e-12
    columns, off = re.search(
        r"In the weakest direction \((.*)\), ([\d.]+) % of the evidence disagrees\.", said
    ).groups()  # type: ignore[union-attr]
    c = weights(X)
    M, agreeing = X.T @ (X * c[:, None]), X[right].T @ (X[right] * c[right, None])
    root = np.linalg.inv(np.linalg.cholesky(M))
    shares, axes = np.linalg.eigh(root @ agreeing @ root.T)
    assert float(off) == pytest.approx(100 * (1 - shares[0]), abs=0.06)
    assert shares[0] > 0.5
    largest = np.argsort(-np.abs(root.T @ axes[:, 0]))
    assert columns.replace("mostly ", "").startswith("abcd"[largest[0]])
    assert said.endswith(" Chance is not excluded; more rows in that direction could settle it.")


def weights(X: Array) -> Array:
    (piece,) = geometry_of(X).parts[0].pieces
    return 1 / piece.images(X)[1] ** 2


def test_a_majority_names_the_rows_that_would_settle_it() -> None:
    X, y = flagged(9)
    certificate = fit(X, y).certificate_
    assert certificate.verdict is Verdict.MAJORITY
    said = certificate.explain(["hours", "rush"])
    assert "Chance is not excluded: only 9 rows test one direction (rush); more of them could settle it." in said
    assert X[:, 1].sum() == 9
    assert said.endswith("Confirmed by themselves: hours and the intercept. Not confirmed: rush.")


# PLURALITY


@pytest.mark.slow
def test_a_plurality_says_why_it_is_not_more() -> None:
    X, y, right = gaussian(300, 0.6, d=3)
    certificate = fit(X, y, fit_intercept=False).certificate_
    assert certificate.verdict is Verdict.PLURALITY
    said = certificate.explain()
    assert said.startswith(f"The formula fits {right.sum()} of 300 rows exactly")
    assert "It is the best formula found, but it is not confirmed: treat it as a hypothesis." in said
    assert "At most half of the rows agree." in said
    (off,) = numbers_in("), # % of the evidence disagrees.", said)
    assert off >= 50
    assert judgement(certificate).off == "rows that do not follow"


# NOISY


def test_an_estimate_says_how_many_rows_follow_it() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    y = X @ [1.0, 2.0] + rng.normal(0, 0.1, 200)
    y[::5] += 20
    reg = fit(X, y)
    assert reg.certificate_.verdict is Verdict.NOISY
    rows, scale = (
        numbers_in("# of 200 rows (", reg.certificate_.explain())[0],
        numbers_in("follow the formula up to noise of scale #. Labels carry noise", reg.certificate_.explain())[0],
    )
    assert rows == reg.inlier_mask_.sum()
    assert scale == pytest.approx(reg.scale_, rel=1e-3)
    assert reg.certificate_.explain().endswith("the coefficients are estimates, and nothing is proven.")


# NONE


def test_the_most_frequent_value_is_no_rule() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 2)), (rng.random(200) < 0.3).astype(float)
    reg = fit(X, y)
    assert reg.certificate_.verdict is Verdict.NONE
    assert reg.certificate_.explain() == (
        "No rule was found: the best formula found explains hardly more rows than the most frequent value does. "
        "Searched: a linear formula of these columns."
    )
    assert reg.certificate_.n_agree - (y == 0).sum() <= 2 * max(1, np.count_nonzero([*reg.coef_, reg.intercept_]))


def test_chance_is_no_rule() -> None:
    rng = np.random.default_rng(0)
    group, y = rng.integers(0, 8, 300), rng.integers(0, 4, 300).astype(float)
    certificate = fit(np.eye(8)[group], y, fit_intercept=False, inliers="exact").certificate_
    (agree,) = numbers_in(
        "No rule was found: # of 300 rows agree with the best formula found; but labels lie about as densely near "
        "it as on it, or no more are on it than chance gives.",
        certificate.explain(),
    )
    assert agree == sum(np.unique(y[group == k], return_counts=True)[1].max() for k in range(8))
    shuffled = replace(certificate, reason=Reason.CHANCE, chance=90)
    assert "not clearly more than the 90 or so that fit some formula when the labels are shuffled" in explain(shuffled)


def test_a_few_rows_are_no_rule() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.uniform(1, 9, (400, 1)), rng.uniform(0, 99, 400)
    y[:15] = 2.5 * x[:15, 0]
    certificate = fit(x, y, fit_intercept=False, inliers="exact").certificate_
    assert certificate.explain().startswith(
        "No rule was found: no more than 15 of 400 rows agree with the best formula found."
    )
    X = rng.standard_normal((3, 2))
    assert (
        fit(X, np.array([1.0, 5.0, -2.0]))
        .certificate_.explain()
        .startswith(
            "No rule was found: the best formula found rests on 3 rows, and any table has a formula for so few."
        )
    )
    w = np.linalg.solve(np.column_stack([X, np.ones(3)]), [1.0, 5.0, -2.0])
    np.testing.assert_allclose(np.column_stack([X, np.ones(3)]) @ w, [1.0, 5.0, -2.0])


def test_no_rule_of_a_link_says_that_it_was_clipped() -> None:
    rng = np.random.default_rng(0)
    certificate = fit(
        rng.standard_normal((80, 2)), np.abs(rng.standard_normal(80)), relu=True, inliers="exact"
    ).certificate_
    assert certificate.verdict is Verdict.NONE
    assert certificate.explain().endswith("Searched: a linear formula of these columns, clipped at its limits.")


# Links


def test_rows_of_a_link_are_those_with_a_possible_label() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 3))
    y = np.maximum(0, X @ [1.0, 2.0, -1.0])
    wrong = rng.random(500) < 0.3
    y[wrong] = np.abs(9 * rng.standard_normal(wrong.sum()))
    y[::50] = -1
    reg = fit(X, y, relu=True)
    np.testing.assert_allclose(reg.coef_, [1, 2, -1])
    products = X @ [1.0, 2.0, -1.0]
    agree, possible = np.isclose(y, np.maximum(0, products)), y >= 0
    active = (products > 0) & possible
    said = reg.certificate_.explain()
    assert said.startswith(
        f"Of {possible.sum()} rows with a label within its limits the formula fits {agree.sum()} exactly ("
    )
    assert (
        f"Where it is between its limits, {(active & agree).sum()} rows agree and {(active & ~agree).sum()} do not."
        in said
    )


# What is beside the verdict


def test_a_constant_column_is_said_to_be_constant() -> None:
    X = np.random.default_rng(0).standard_normal((60, 3))
    said = fit(X, np.full(60, 7.0)).certificate_.explain()
    assert said.endswith("The column is constant: every row that agrees has the same value.")


def test_rows_off_by_a_last_place_are_counted_apart() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(1, 100, 300)
    exact = np.round(1.852 * x, 2)
    y = exact.copy()
    y[:12] = np.round(y[:12] + 0.01, 2)
    y[20:60] += 5
    reg = fit(x[:, None], y, fit_intercept=False)
    assert reg.certificate_.explain().endswith(" 12 rows are off by one unit of the last place.")
    np.testing.assert_array_equal(np.flatnonzero(reg.last_place_mask_), np.arange(12))
    y[1:12] = exact[1:12]
    assert (
        fit(x[:, None], y, fit_intercept=False)
        .certificate_.explain()
        .endswith(" 1 row is off by one unit of the last place.")
    )


@pytest.mark.parametrize("n_flags", [1, 2])
def test_a_column_that_rests_on_two_rows_is_left_out(n_flags: int) -> None:
    X, y = flagged(n_flags)
    reg = fit(X, y)
    assert X[:, 1].sum() == n_flags
    assert reg.coef_.tolist() == [54.0, 0.0]
    rows = "1 row" if n_flags == 1 else "2 rows"
    said = reg.certificate_.explain(["hours", "rush"])
    assert said.endswith(f"rush rests on {rows} and was left out.")
    assert "Nothing determines" not in said
    assert not reg.inlier_mask_[:n_flags].any()


# All verdicts, and the words themselves


def made(verdict: Verdict, **changes: Any) -> Certificate:
    facts: dict[str, Any] = {
        "verdict": verdict,
        "reason": Reason.NOTHING,
        "n_rows": 10,
        "n_agree": 6,
        "n_columns": 3,
        "rank": 3,
        "n_decisive": 6,
        "agreement": Agreement(Level.EXACT, relative=1e-14),
        "undetermined": np.zeros((3, 0)),
        "undetermined_columns": (),
        "hyperplane_rows": 1,
        "scale": 0.5,
    }
    return Certificate(**(facts | changes))


def test_thin_columns_are_left_out_and_named() -> None:
    certificate = made(Verdict.MAJORITY, thin=((0, 2.0), (2, 1.0)))
    said = explain(certificate, ["a", "b"])
    assert said.endswith("a rests on 2 rows and was left out. The intercept rests on 1 row and was left out.")
    many = made(Verdict.MAJORITY, n_columns=12, thin=tuple((j, 2.0) for j in range(11)))
    assert explain(many).endswith("So were 3 more columns.")


def test_one_row_is_singular() -> None:
    assert explain(made(Verdict.NOISY, n_rows=1, n_agree=1)).startswith("1 of 1 row (100 %) follows the formula")
    said = explain(made(Verdict.MAJORITY, n_rows=2, n_agree=1, n_active=2, n_decisive=1))
    assert said.startswith("Of 2 rows with a label within its limits the formula fits 1 exactly")
    assert "Where it is between its limits, 1 row agrees and 1 does not." in said
    few = made(Verdict.NONE, reason=Reason.FEW, n_decisive=1, rank=1)
    assert "rests on 1 row, and any table has a formula for so few" in explain(few)
    assert "rests on no row" in explain(replace(few, n_decisive=0))
    assert count(1, "rows that do not follow") == "1 row that does not follow"
    assert count(2, "wrong rows") == "2 wrong rows"
    assert count(1, "rows like other rows") == "1 row like other rows"


@pytest.mark.parametrize("verdict", list(Verdict))
def test_words_claim_no_more_than_the_verdict(verdict: Verdict) -> None:
    certificate = made(verdict)
    said, short = explain(certificate), judgement(certificate)
    assert short.word == verdict.name
    assert (short.off == "wrong rows") == verdict.stands
    assert ("no other formula fits as many" in said) == (verdict is Verdict.PROVEN)
    assert ("either this is the formula" in said) == (verdict is Verdict.CONFIRMED)
    assert ("hypothesis" in said) == (verdict is Verdict.PLURALITY)
    assert ("estimates" in said) == (verdict is Verdict.NOISY)
    assert ("No rule was found" in said) == (verdict is Verdict.NONE)
    assert said.endswith(".")
    assert "  " not in said
    assert len({judgement(made(other)).meaning for other in Verdict}) == len(Verdict)


def test_without_a_rule_nothing_is_said_about_the_coefficients() -> None:
    beside: dict[str, Any] = {
        "undetermined_columns": ((0,), (1, 2)),
        "thin": ((0, 2.0),),
        "constant": True,
        "n_last_place": 3,
    }
    plain = made(Verdict.NONE, reason=Reason.LIMITS)
    assert explain(replace(plain, **beside)) == explain(plain)
    assert explain(plain).startswith("No rule was found: too few rows lie between the limits.")


@pytest.mark.slow
@given(st.lists(st.text(min_size=1), min_size=2, max_size=2))
def test_columns_are_known_by_number_whatever_they_are_called(names: list[str]) -> None:
    open_columns = made(Verdict.CONFIRMED, undetermined_columns=((0, 2),))
    assert f"{names[0]} and the {INTERCEPT} always move together" in explain(open_columns, names)
    assert "column 0 and column 2 always move together" in explain(open_columns)
    assert [name_of(j, names) for j in range(3)] == [*names, f"the {INTERCEPT}"]


def test_many_names_are_cut() -> None:
    assert listed(list("abc")) == "a, b and c"
    assert listed(list("abcdefgh")) == "a, b, c, d, e, f, g and h"
    assert listed([str(j) for j in range(10)]) == "0, 1, 2, 3, 4, 5, 6 and 3 more"
    eight = made(Verdict.MAJORITY, n_columns=12, thin=tuple((j, 2.0) for j in range(8)))
    assert explain(eight).endswith("column 7 rests on 2 rows and was left out.")
    two = made(Verdict.CONFIRMED, n_columns=4, undetermined_columns=((0, 1), (2, 3)))
    assert "column 2 and column 3 always move together: only" in explain(two)
    alone = made(Verdict.CONFIRMED, undetermined_columns=((0,),))
    assert explain(alone).endswith("Nothing determines the coefficient of column 0: no row that agrees uses it.")
    groups = ((0, 1), (2, 3), (4, 5), (6, 7))
    said = explain(made(Verdict.CONFIRMED, n_columns=8, undetermined_columns=groups))
    assert "column 0 and column 1; column 2 and column 3 always move together, and so do 2 more groups" in said


@pytest.mark.parametrize(
    ("part", "text"), [(49, "< 0.1 %"), (50, "0.1 %"), (99_949, "99.9 %"), (99_950, "> 99.9 %"), (51_000, "51.0 %")]
)
def test_a_share_has_one_digit_that_is_right(part: int, text: str) -> None:
    assert share(part, 100_000) == text


@given(st.integers(0, 10**9), st.integers(1, 10**9))
def test_a_share_reads_zero_or_all_only_if_it_is(part: int, whole: int) -> None:
    part = min(part, whole)
    text = share(part, whole)
    assert (text == "0 %") == (part == 0)
    assert (text == "100 %") == (part == whole)
    if "<" in text or ">" in text:
        assert part < 0.0005 * whole or part > 0.9994 * whole
    else:
        assert float(text[:-2]) == pytest.approx(100 * part / whole, abs=0.0501)


def test_sums_of_weights_are_written_as_numbers() -> None:
    assert [count(v, "kg") for v in (7.0, 12345, 0.125, 2e6 + 0.5)] == [
        "7 kg",
        "12,345 kg",
        "0.125 kg",
        "2,000,000.5 kg",
    ]
    assert [count(v, "kg") for v in (999999.46, 1e6 + 0.26)] == ["999,999 kg", "1,000,000.3 kg"]


def piece(alpha: float, involved: list[float], n_rows: float = 5) -> PieceSupport:
    return PieceSupport(alpha, 1, n_rows, np.array(involved), np.zeros((len(involved), 0)))


def supported(*pieces: PieceSupport, confirmed: list[bool], n_rows: int = 10) -> Support:
    """The piece of fewest rows excludes least."""
    alpha = min(one.alpha for one in pieces)
    rates = tuple(one.n_rows / 50 for one in pieces)
    on_rows = np.where(confirmed, 0.0, np.inf)
    return Support(alpha, pieces, n_rows, False, (0.1,) * len(pieces), np.array(confirmed), on_rows, rates)


NAMES = ["a", "b", "c", "d"]
WEAK, STRONG = piece(0.32, [0.2, 1.0, 0.05, 0.1]), piece(0.9, [1.0, 0.0, 0.0, 0.0], 3)


def test_a_plurality_says_all_that_speaks_against_it() -> None:
    certificate = made(
        Verdict.PLURALITY,
        n_columns=4,
        n_agree=5,
        reason=Reason.DIRECTION,
        support=supported(STRONG, WEAK, confirmed=[True, False, False, True]),
        undetermined_columns=((2,),),
    )
    assert explain(certificate, NAMES) == (
        "The formula fits 5 of 10 rows exactly (50.0 %). It is the best formula found, but it is not confirmed: treat "
        "it as a hypothesis. At most half of the rows agree. That it is the rule rests on these alone: far "
        "more than chance explains, but no majority, so another rule may hold for the others. In the weakest "
        "direction (mostly b and a), 68.0 % of the evidence disagrees. Confirmed by themselves: a and d. Not "
        "confirmed: b. If errors are known to depend neither on the columns nor on each other, declare it (--errors "
        "independent): then it may be confirmed. Nothing determines the coefficient of c: no row that agrees uses it."
    )
    assert weakest_columns(certificate) == (1, 0)
    assert weakest_columns(replace(certificate, support=None)) == ()
    less = replace(certificate, n_agree=6, reason=Reason.DIRECTION, undetermined_columns=())
    assert "At most half" not in explain(less, NAMES)
    assert "Not confirmed: b and c." in explain(less, NAMES)
    everything = replace(certificate, support=supported(WEAK, confirmed=[True, True, False, True]))
    assert "onfirmed by themselves" not in explain(everything, NAMES)
    nothing = replace(less, support=supported(WEAK, confirmed=[False] * 4))
    assert "onfirmed by themselves" not in explain(nothing, NAMES)
    alone = replace(certificate, support=supported(piece(0.25, [0.0, 1.0, 0.0, 0.0]), confirmed=[True] * 4))
    assert "In the weakest direction (b), 75.0 % of the evidence disagrees." in explain(alone, NAMES)
    dust = replace(certificate, support=supported(piece(0.25, [1e-12, 1.0, 0.0, 0.0]), confirmed=[True] * 4))
    assert explain(dust, NAMES) == explain(alone, NAMES)
    more = replace(certificate, support=supported(piece(0.25, [1.5e-9, 1.0, 0.0, 0.0]), confirmed=[True] * 4))
    assert "In the weakest direction (mostly b), 75.0 %" in explain(more, NAMES)


def test_a_segment_in_which_most_rows_break_the_rule_is_named() -> None:
    counts = {"n_rows": 46, "n_wrong": 46, "n_others": 2954, "n_wrong_others": 886}
    segment = Segment(Breach.MASSART, **counts, column=1, low=50.47, high=77.77)
    certificate = made(Verdict.PLURALITY, n_columns=2, n_agree=8, reason=Reason.PART, segment=segment)
    assert (
        "The rule does not hold for b from 50.47 to 77.77: 46 of 46 rows break it, 30.0 % elsewhere. There some label "
        "breaks it with a probability above one half (99.9 %), so these rows follow another rule or none; they are not "
        "listed as wrong. It is the best formula"
    ) in explain(certificate, NAMES)
    known = SegmentFacts("kg from 50.47 up", 46, 45, 954, 0, "y = 3 * kg (45 of 46)")
    mostly = replace(certificate, segment=replace(segment, breach=Breach.MOSTLY))
    assert (
        "The rule does not hold for kg from 50.47 up: 45 of 46 rows break it, 0 % elsewhere. Rows that break it depend "
        "on the columns (99.9 %), and there most do, so these rows follow another rule or none; they are not listed as "
        "wrong. For these rows: y = 3 * kg (45 of 46)."
    ) in explain(mostly, NAMES, known)
    assert judgement(certificate, "b = 3").meaning == (
        "The rule does not hold for b = 3: another rule may hold there, or none."
    )
    for column, where in ((0, "a = 7"), (None, "a = 2 and c = 1")):
        levels = () if column == 0 else ((0, 2), (2, 1))
        one = replace(segment, column=column, low=7, high=7, levels=levels)
        assert f"hold for {where}: " in explain(replace(certificate, segment=one), NAMES)
    tail = replace(segment, low=-np.inf)
    assert "hold for b up to 77.77: " in explain(replace(certificate, segment=tail), NAMES)


def test_a_majority_says_what_is_excluded_and_what_would_settle_it() -> None:
    certificate = made(
        Verdict.MAJORITY, n_columns=4, eta_max=0.001, support=supported(STRONG, WEAK, confirmed=[True] * 4, n_rows=8)
    )
    weakest = "In the weakest direction (mostly b and a), 68.0 % of the evidence disagrees. "
    assert explain(certificate, NAMES) == (
        "The formula fits 6 of 10 rows exactly (60.0 %). More than half of the evidence agrees in every direction. "
        "With 99.9 % confidence: either this is the formula (among formulas in these terms), or some label was wrong "
        "with a probability above 0.1 %, or errors were not independent. "
        + weakest
        + "Chance is not excluded: only 3 rows of the 8 that judge test one direction (a); more of them could "
        "settle it."
    )
    little = explain(replace(certificate, eta_max=0.0009), NAMES)
    assert "With 99.9 % confidence nothing is excluded yet." in little
    assert "either this is" not in little
    whole = replace(certificate, support=supported(STRONG, WEAK, confirmed=[True] * 4), n_seen=None)
    assert "only 3 rows test one direction (a)" in explain(whole, NAMES)
    one = replace(certificate, support=supported(WEAK, confirmed=[True] * 4))
    settled = "Chance is not excluded; more rows in that direction could settle it."
    assert explain(one, NAMES).endswith(weakest + settled)
    assert explain(replace(one, support=None), NAMES).endswith(settled)
    assert settled not in explain(replace(one, n_seen=4), NAMES)


@pytest.mark.parametrize(
    ("probability", "said"),
    [(0.5, "one half"), (0.4, "40 %"), (0.2567, "25.6 %"), (0.03, "3 %"), (0.0019999, "0.1 %"), (0.6, "60 %")],
)
def test_a_probability_is_rounded_down(probability: float, said: str) -> None:
    certificate = made(Verdict.CONFIRMED, assumption=Assumption(wrong_at_most=probability))
    assert f"some label was wrong with a probability above {said}, or errors" in explain(certificate)
    rounded = replace(
        certificate, undetermined_columns=((0, 1),), thin=((2, 1.0),), agreement=Agreement(Level.LABEL, 0.5, unit=1.0)
    )
    assert (
        "(among formulas in these terms except those left out, up to what rounding leaves open, up to what no row "
        "determines)" in explain(rounded)
    )


@pytest.mark.parametrize(
    ("resolution", "said"),
    [
        (0.0, "0"),
        (2.0, "2"),
        (1.01, "1.1"),
        (9.91, "10"),
        (99.1, "100"),
        (101.0, "110"),
        (2345.0, "2,400"),
        (2e9, "2e+09"),
    ],
)
def test_a_resolution_is_rounded_up_to_two_digits(resolution: float, said: str) -> None:
    rounded = Agreement(Level.LABEL, 0.5, unit=1.0)
    certificate = made(Verdict.CONFIRMED, agreement=rounded, resolution=resolution)
    assert f"differ by at most {said} times the rounding error allowed in a row on every row" in explain(certificate)


def test_a_proof_says_how_many_rows_another_formula_fits_at_most() -> None:
    said = explain(made(Verdict.PROVEN, n_rows=20, n_agree=15, n_decisive=12, hyperplane_rows=3))
    assert "Another fits at most 11 rows, since at most 3 of those that this one fits can be shared" in said
