"""The judge: a list of rungs about numbers, and the numbers that tables give; none better than its numbers."""

from __future__ import annotations

import gc
import warnings
import weakref
from dataclasses import replace
from functools import partial
from math import comb, inf
from types import SimpleNamespace

import numpy as np
import pytest

from massart import MassartPACRegressor, MassartRegressor, MassartReLURegressor, audit_table
from massart.audit import check_table, load_model
from massart.certificate import (
    Assumption,
    Bound,
    Declared,
    Evidence,
    IndependentErrors,
    Reason,
    Sharing,
    Verdict,
    geometry_of,
    held_out_support,
    measure_support,
    span_of,
)
from massart.certificate import judge as verdict_of
from massart.recover import CertificationRows, Formula, Options, judge, recover
from massart.recover.problem import Problem, Question
from massart.recover.settings import SETTINGS
from massart.rows import IDENTITY, RELU, Agreement, ArrayRows, Level, Link, Sample, levels, tally_of

NOTHING_MORE = Assumption()


# --- the rungs: numbers in, a verdict and its reason out ---

NOT_PROVEN = Sharing(500.0, Bound.PACKING, False, inf)
PROVEN = Sharing(100.0, Bound.PACKING, True, 5.0)
BROKEN = SimpleNamespace(is_accused=True)
DECLARED = Assumption(errors="independent")


def known(refuted=Reason.NOTHING, resolution=inf):
    return Declared(IndependentErrors(0, 0), refuted, resolution)


def evidence(alpha=0.7, **changes):
    """Numbers of a rule of 3 columns that 700 of 1,000 rows follow, far above chance; nothing excludes others."""
    facts = {
        "assumption": NOTHING_MORE,
        "agreement": Agreement(Level.EXACT),
        "n_rows": 1000.0,
        "n_agree": 700.0,
        "n_decisive": 700.0,
        "n_last_place": 0.0,
        "n_active": None,
        "n_columns": 3,
        "n_terms": 3,
        "n_distinct": 700,
        "span": span_of(np.eye(3)),
        "beyond": 690.0,
        "thin": (),
        "n_seen": None,
        "is_noise": False,
        "stands_out": True,
        "constant": False,
        "sharing": NOT_PROVEN,
        "leaves_open": False,
        "segment": None,
        "contested": False,
        "support": SimpleNamespace(alpha=alpha),
        "excludes_others": False,
        "eta_max": 0.4,
        "resolution": 7.0,
        "chance": 10.0,
        "declared": known(),
    }
    return SimpleNamespace(**(facts | changes))


CASES = {
    "no row between the limits": ({"n_active": 0.0}, Verdict.NONE, Reason.LIMITS),
    "nothing is spanned": ({"span": span_of(np.zeros((0, 3)))}, Verdict.NONE, Reason.FEW),
    "as many rows as any rule fits": ({"n_decisive": 3.0}, Verdict.NONE, Reason.FEW),
    "heavy rows, but as few": ({"n_distinct": 3}, Verdict.NONE, Reason.FEW),
    "one more": ({"n_distinct": 4}, Verdict.MAJORITY, Reason.NOTHING),
    "the most frequent value": ({"beyond": 6.0}, Verdict.NONE, Reason.MODE),
    "a row more than that": ({"beyond": 7.0, "chance": 0.0}, Verdict.MAJORITY, Reason.NOTHING),
    "noise explains it better": ({"is_noise": True, "sharing": PROVEN}, Verdict.NONE, Reason.NEAR),
    "a majority need not stand out": ({"stands_out": False}, Verdict.MAJORITY, Reason.NOTHING),
    "others have to": ({"stands_out": False, "alpha": 0.5}, Verdict.NONE, Reason.NEAR),
    "and so has a rule that is broken": ({"stands_out": False, "segment": BROKEN}, Verdict.NONE, Reason.NEAR),
    "a constant that all rows have": (
        {"beyond": 0.0, "n_agree": 1000.0, "sharing": PROVEN},
        Verdict.PROVEN,
        Reason.NOTHING,
    ),
    "proven": ({"sharing": PROVEN}, Verdict.PROVEN, Reason.NOTHING),
    "proven, but labels chose": ({"sharing": PROVEN, "n_seen": 9}, Verdict.MAJORITY, Reason.NOTHING),
    "proven, but open": ({"sharing": PROVEN, "leaves_open": True}, Verdict.MAJORITY, Reason.NOTHING),
    "proven, but broken": ({"sharing": PROVEN, "segment": BROKEN}, Verdict.PLURALITY, Reason.PART),
    "confirmed": ({"excludes_others": True}, Verdict.CONFIRMED, Reason.NOTHING),
    "confirmed, but broken": ({"excludes_others": True, "segment": BROKEN}, Verdict.PLURALITY, Reason.PART),
    "no evidence in a direction": ({"excludes_others": True, "alpha": 0.0}, Verdict.PLURALITY, Reason.DIRECTION),
    "chance": ({"beyond": 76.0, "chance": 52.0}, Verdict.NONE, Reason.CHANCE),
    "more than chance": ({"beyond": 76.1, "chance": 52.0}, Verdict.MAJORITY, Reason.NOTHING),  # 52 + 3 (1 + sqrt(49))
    "a twentieth": ({"n_agree": 53.0, "n_decisive": 53.0}, Verdict.NONE, Reason.FEW),
    "more than a twentieth": ({"n_agree": 54.0, "n_decisive": 54.0}, Verdict.PLURALITY, Reason.HALF),
    "half": ({"n_agree": 500.0}, Verdict.PLURALITY, Reason.HALF),
    "more than half": ({"n_agree": 501.0}, Verdict.MAJORITY, Reason.NOTHING),
    "contested": ({"excludes_others": True, "contested": True}, Verdict.PLURALITY, Reason.CONTESTED),
    "half of the evidence": ({"alpha": 0.5}, Verdict.PLURALITY, Reason.DIRECTION),
    "half of it, but for rounding": ({"alpha": 0.5 + 1e-15}, Verdict.PLURALITY, Reason.DIRECTION),
    "declared": ({"assumption": DECLARED, "declared": known(resolution=9.0)}, Verdict.CONFIRMED, Reason.NOTHING),
    "declared, unknown": ({"assumption": DECLARED}, Verdict.MAJORITY, Reason.NOTHING),
    "not declared": ({"declared": known(resolution=9.0)}, Verdict.MAJORITY, Reason.NOTHING),
    "declared, uneven": (
        {"assumption": DECLARED, "declared": known(Reason.UNEVEN, 9.0)},
        Verdict.MAJORITY,
        Reason.UNEVEN,
    ),
    "declared, two rules": (
        {"assumption": DECLARED, "alpha": 0.3, "declared": known(Reason.SECOND_RULE, 9.0)},
        Verdict.PLURALITY,
        Reason.SECOND_RULE,
    ),
    "declared, but broken": (
        {"assumption": DECLARED, "segment": BROKEN, "declared": known(resolution=9.0)},
        Verdict.PLURALITY,
        Reason.PART,
    ),
}


@pytest.mark.parametrize(("changes", "verdict", "reason"), CASES.values(), ids=CASES.keys())
def test_a_verdict_follows_from_numbers(changes, verdict, reason):
    numbers = evidence(**changes)
    found = verdict_of(numbers)
    assert (found.verdict, found.reason) == (verdict, reason)
    assert found.assumption is numbers.assumption
    assert (found.segment is BROKEN) == (reason is Reason.PART)
    resolutions = {Verdict.PROVEN: 10.0, Verdict.CONFIRMED: 9.0 if numbers.assumption is DECLARED else 7.0}
    assert found.resolution == resolutions.get(verdict, 0.0)


def test_what_is_expensive_is_asked_only_where_it_decides():
    for changes, expected in (
        ({"n_distinct": 2}, []),
        ({"sharing": PROVEN}, []),
        ({"excludes_others": True}, ["excludes_others"]),
        ({}, ["excludes_others", "chance"]),
        ({"assumption": DECLARED}, ["excludes_others", "chance", "declared"]),
    ):
        facts, asked = vars(evidence(**changes)), []

        def noted(name, value, asked=asked):
            asked.append(name)
            return value

        for name in ("excludes_others", "chance", "declared", "eta_max", "resolution"):
            facts[name] = partial(noted, name, facts[name])
        found = verdict_of(Evidence(**facts))
        assert asked == expected
        asked.clear()
        if found.verdict is not Verdict.NONE:  # the rest is computed when it is read, once
            assert (found.eta_max, found.eta_max) == (0.4, 0.4)
            assert asked == ["eta_max"]


def test_a_certificate_does_not_keep_the_table_for_what_it_computes_later():
    X, y = gaussian(60_000, 2, 0.3)
    certificate = certificate_of(X, y)
    alive = weakref.ref(X)
    del X
    gc.collect()
    assert alive() is None
    assert certificate.eta_max > 0.5


# --- the numbers: tables ---


def problem_of(rows, link, units=None, settings=SETTINGS):
    options = Options(np.random.default_rng(0))
    question = Question(link, "auto", "auto", Assumption(), None, True, options, settings)
    return next(Problem.of(question, rows, units=units).columns())


def fit(X, y, weights=None, seed=0, **options):
    return recover(ArrayRows(np.asarray(X, dtype=float), y, weights), rng=np.random.default_rng(seed), **options)


def certificate_of(X, y, **options):
    return fit(X, y, **options).certificates[0]


def judged(X, y, w, link=IDENTITY, agreement=None, assumption=NOTHING_MORE, units=None, **options):
    """Return what the judge says of any formula, found or not."""
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    sample = Sample(X, y, None, np.arange(len(y)))
    formula = Formula(np.asarray(w, dtype=float), agreement or levels("auto", X, y)[0], link)
    certification = CertificationRows(
        sample, geometry_of(X, units=units), assumption, np.random.default_rng(0), units=units
    )
    return judge(formula, certification, tally_of(formula.marks(sample)[1], None), **options)


def gaussian(n, d, wrong, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    bad = rng.random(n) < wrong
    return X, np.where(bad, 9 * rng.standard_normal(n), X @ np.arange(1.0, d + 1))


def lattice(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(-4, 5, (40, 2)).astype(float)
    y = X @ [3.0, -2.0]
    y[:12] = X[:12] @ [1.0, 5.0]
    return X, y


def noisy(seed=0):
    X, y = gaussian(300, 3, 0.0, seed)
    return X, y + 0.1 * np.random.default_rng(seed).standard_normal(300)


def flags(seed=0):
    """Labels that columns do not explain, of which one value is frequent."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, 3, (300, 3)), np.ones(300)])
    return X, np.where(rng.random(300) < 0.8, 1.0, rng.integers(2, 9, 300))


# --- the ladder ---


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "verdict", "reason"),
    [
        (lattice(), Verdict.PROVEN, Reason.NOTHING),
        (gaussian(1000, 10, 0.25), Verdict.CONFIRMED, Reason.NOTHING),
        (gaussian(400, 10, 0.35), Verdict.MAJORITY, Reason.NOTHING),
        (gaussian(200, 5, 0.6), Verdict.PLURALITY, Reason.DIRECTION),
        (noisy(), Verdict.NOISY, Reason.NOTHING),
        ((gaussian(300, 3, 0.0)[0], gaussian(300, 3, 1.0, 1)[1]), Verdict.NONE, Reason.FEW),
        (flags(), Verdict.NONE, Reason.MODE),
    ],
    ids=lambda value: value.name if isinstance(value, Verdict) else "",
)
def test_every_verdict_has_its_table(table, verdict, reason):
    certificate = certificate_of(*table)
    assert (certificate.verdict, certificate.reason) == (verdict, reason)


@pytest.mark.slow
def test_no_verdict_is_better_than_its_numbers():
    seen = dict.fromkeys(Verdict, 0)
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n, d, wrong = int(rng.integers(20, 250)), int(rng.integers(1, 9)), rng.uniform(0, 0.7)
        if seed % 10 > 7:
            n, d, wrong = ((1000, 10, 0.25), (200, 3, 0.97))[seed % 2]
        X, y = gaussian(n, d, wrong, seed)
        if seed % 3 == 0:
            X, y = np.round(2 * X), np.round(y)
        bound = (0.5, 0.3)[seed % 2]
        certificate = judged(X, y, np.arange(1.0, d + 1), assumption=Assumption(wrong_at_most=bound))
        seen[certificate.verdict] += 1
        wrong_rows = certificate.n_rows - certificate.n_agree
        match certificate.verdict:
            case Verdict.PROVEN:
                assert certificate.n_decisive - certificate.hyperplane_rows > wrong_rows
            case Verdict.CONFIRMED:
                assert certificate.eta_max >= bound
            case Verdict.MAJORITY:
                assert certificate.support.alpha > 0.5
                assert 2 * certificate.n_agree > certificate.n_rows
                assert certificate.eta_max < bound
            case Verdict.PLURALITY:
                assert certificate.support.alpha <= 0.5 or 2 * certificate.n_agree <= certificate.n_rows
                assert certificate.n_decisive - certificate.rank > 0.05 * certificate.n_rows
            case Verdict.NONE:
                assert certificate.reason is not Reason.NOTHING
    assert all(seen[verdict] > 0 for verdict in Verdict if verdict is not Verdict.NOISY), seen


@pytest.mark.slow
@pytest.mark.parametrize("link", [IDENTITY, RELU], ids=["linear", "ReLU"])
def test_two_rivals_never_both_have_a_majority(link):
    stands = {0: 0, 1: 0, 2: 0}
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(20, 120)), int(rng.integers(1, 5))
        X = rng.integers(-2, 3, (n, d)) if seed % 2 else rng.standard_normal((n, d))
        w = np.arange(1.0, d + 1)
        other = w + rng.integers(-1, 2, d)
        if (other == w).all():
            continue
        y = link(np.where(rng.random(n) < rng.uniform(0.3, 0.8), X @ w, X @ other))
        verdicts = [judged(X, y, v, link).verdict for v in (w, other)]
        if np.array_equal(link(X @ w), link(X @ other)):
            continue
        stands[sum(verdict.stands for verdict in verdicts)] += 1
    assert stands[2] == 0
    assert stands[1] > 8


# --- no rule, and a rule that says little ---


@pytest.mark.slow
def test_as_many_rows_as_shuffled_labels_give_are_chance():
    X, y = gaussian(400, 10, 0.35)
    w = np.arange(1.0, 11)
    assert judged(X, y, w, shuffled=lambda: 0.3).verdict is Verdict.MAJORITY
    certificate = judged(X, y, w, shuffled=lambda: 0.65)
    assert (certificate.verdict, certificate.reason, certificate.chance) == (Verdict.NONE, Reason.CHANCE, 260)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.8, *(pytest.param(share, marks=pytest.mark.slow) for share in (0.55, 0.97))])
def test_the_most_frequent_value_is_no_rule(share):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = np.column_stack([rng.integers(0, 5, (400, 3)), rng.uniform(0, 1, 400), np.ones(400)])
        y = np.where(rng.random(400) < share, 3.0, rng.integers(4, 30, 400))
        assert certificate_of(X, y).verdict is Verdict.NONE


@pytest.mark.parametrize("value", [7.0, 0.1, -1e6])
def test_a_constant_column_is_said_to_be_constant(value):
    X = np.column_stack([np.random.default_rng(0).integers(0, 3, (300, 3)), np.ones(300)])
    certificate = certificate_of(X, np.full(300, value))
    assert certificate.constant
    assert certificate.verdict is Verdict.PROVEN
    X, y = gaussian(300, 3, 0.1)
    assert not certificate_of(X, y).constant


def test_a_column_that_rests_on_two_rows_is_left_out_and_listed():
    rng = np.random.default_rng(0)
    hours, flag = rng.integers(1, 40, 400) / 4, np.arange(400) < 2
    y = 54 * hours + 30 * flag + 7
    y[50:150] = rng.integers(1, 999, 100)
    found = fit(np.column_stack([hours, flag, np.ones(400)]), y)
    certificate = found.certificates[0]
    np.testing.assert_array_equal(found.coef[:, 0], [54, 0, 7])
    assert certificate.thin == ((1, 2),)
    assert certificate.undetermined_columns == ((1,),)
    assert certificate.verdict.certain, "the rest is"
    assert not found.agree[:2].any()


@pytest.mark.parametrize("weight", [1.0, 1000.0, 1000.5])
@pytest.mark.parametrize("seed", range(4))
def test_as_many_rows_as_columns_fit_any_formula_whatever_they_weigh(weight, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((5, 3)), rng.standard_normal(5)
    certificate = certificate_of(X, y, weights=weight * rng.integers(1, 9, 5))
    assert (certificate.verdict, certificate.reason) == (Verdict.NONE, Reason.FEW)
    assert "any table has a formula for so few" in certificate.explain()


# --- what is open ---


def collinear(seed=0):
    """Rows with a column that is a sum of others, one that is never used, and one used by wrong rows only."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(1, 1000, (500, 6)) * [1, 1, 1e-3, 1, 1, 1]
    X[:, 3] = X[:, 0] + X[:, 1]
    X[:, 4] = 0
    X[:, 5] = np.where(np.arange(500) < 8, X[:, 5], 0)  # more of them would be a segment that breaks the rule
    y = X[:, :3] @ [1.0, 2, 3]
    y[:100] = rng.uniform(1, 9999, 100)
    return X, y


@pytest.mark.parametrize("estimator", [MassartRegressor, MassartReLURegressor, MassartPACRegressor])
def test_no_row_that_agrees_sees_the_undetermined_directions(estimator):
    X, y = collinear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = estimator(fit_intercept=False, random_state=0).fit(X, y)
    certificate = model.certificate_
    agree = model.inlier_mask_ if hasattr(model, "inlier_mask_") else np.abs(y - model.predict(X)) < 1e-6
    assert agree[100:].all()
    assert certificate.rank == np.linalg.matrix_rank(X[agree] / [1, 1, 1e-3, 1, 1, 1])
    assert certificate.undetermined.shape == (6, 6 - certificate.rank)
    np.testing.assert_allclose(X[agree] @ certificate.undetermined, 0, atol=1e-9)
    assert set(certificate.undetermined_columns) >= {(0, 1, 3), (4,)}
    assert certificate.verdict.stands or estimator is MassartPACRegressor  # it leaves no thin column out


def test_nothing_is_proven_where_a_row_sees_what_the_others_leave_open():
    """A column that wrong rows alone have: no row that agrees tells its coefficient."""
    X, y = lattice()
    for column, verdict in ((np.zeros(40), True), (np.arange(40) < 12, False), (1e-6 * (np.arange(40) == 3), False)):
        found = judged(np.column_stack([X, column]), y, [3.0, -2.0, 0.0])
        assert (found.verdict is Verdict.PROVEN) == verdict
        assert [*found.undetermined_columns] == [(2,)]


# --- what CONFIRMED assumes ---


@pytest.mark.slow
def test_a_smaller_bound_on_wrong_labels_confirms_more():
    X, y = gaussian(1000, 10, 0.33)
    verdicts = {}
    for bound in (0.3, 0.4, 0.49, 0.5):
        certificate = certificate_of(X, y, assumption=Assumption(wrong_at_most=bound))
        assert certificate.wrong_at_most == bound
        assert (certificate.verdict is Verdict.CONFIRMED) == (certificate.eta_max >= bound)
        verdicts[bound] = certificate.verdict
    assert verdicts[0.3] is Verdict.CONFIRMED
    assert verdicts[0.5] is Verdict.MAJORITY


def test_more_confidence_confirms_less():
    X, y = gaussian(1000, 10, 0.25)
    etas = [certificate_of(X, y, assumption=Assumption(confidence=c)).eta_max for c in (0.9, 0.999, 1 - 1e-9)]
    assert etas == sorted(etas, reverse=True)
    assert etas[-1] < 0.5 <= etas[0]


@pytest.mark.parametrize("unit", [1.0, 2.0**40, 2.0**55, 1.12871e17, 1e300])
def test_weights_of_any_size_are_judged_alike(unit):
    """Whole weights above 2^53 have sums that round (review/claims.md, 5)."""
    X, y = gaussian(80, 3, 0.2)
    weights = np.random.default_rng(0).integers(1, 4, 80)
    plain, scaled = (fit(X, y, weights * c) for c in (1.0, unit))
    np.testing.assert_array_equal(plain.coef, scaled.coef)
    np.testing.assert_array_equal(plain.agree, scaled.agree)
    ours, theirs = plain.certificates[0], scaled.certificates[0]
    assert (ours.verdict, ours.rank) == (theirs.verdict, theirs.rank)
    assert ours.n_agree * unit == pytest.approx(theirs.n_agree, rel=1e-12)
    assert theirs.explain()


@pytest.mark.slow
@pytest.mark.parametrize("labels", ["exact", "to cents", "noisy", "none"])
def test_shares_of_rows_say_what_rows_do(labels):
    X, y = gaussian(300, 3, 0.2)
    rng = np.random.default_rng(0)
    if labels == "to cents":
        y = np.round(y, 2)
    elif labels == "noisy":
        y += 0.3 * rng.standard_normal(300)
    elif labels == "none":
        y = rng.permutation(y)
    shares = rng.uniform(0.5, 1.5, 300)
    rows, parts = (certificate_of(X, y, weights=shares / size) for size in (shares.mean(), shares.sum()))
    assert parts.verdict is rows.verdict
    assert parts.n_rows == pytest.approx(rows.n_rows)
    assert parts.verdict is Verdict.NONE or parts.n_agree == pytest.approx(rows.n_agree)


def test_a_looser_agreement_claims_less_precisely():
    X, y = lattice()
    exact = judged(X, y, [3.0, -2.0])
    loose = judged(X, y, [3.0, -2.0], agreement=Agreement(Level.GIVEN, label=0.01))
    assert exact.verdict is loose.verdict is Verdict.PROVEN
    assert loose.agreement.label == loose.tolerance == 0.01
    widest = judged(X, y, [3.0, -2.0], agreement=Agreement(Level.GIVEN, label=50.0))
    assert widest.verdict is not Verdict.PROVEN or widest.n_agree == widest.n_rows


def test_every_verdict_keeps_what_was_assumed(tmp_path):
    """NOISY ones and saved rules, too."""
    assumption = Assumption(wrong_at_most=0.3, confidence=0.99)
    for table in (lattice(), gaussian(400, 10, 0.35), noisy(), flags()):
        assert certificate_of(*table, assumption=assumption).assumption == assumption
    X, y = lattice()
    frame = {"a": X[:, 0], "b": X[:, 1], "y": y}
    for bound in (0.3, 0.5):
        found = audit_table(frame, "y", terms="columns", wrong_at_most=bound)
        found.model().save(tmp_path / "model.json")
        model = load_model(tmp_path / "model.json")
        assert (model.assumption.wrong_at_most, model.assumption.confidence) == (bound, 0.999)
        assert check_table(model, frame).audit.certificate.wrong_at_most == bound


# --- delta is split: every share is found again in the numbers that it buys ---


def test_a_link_has_half_of_delta_for_held_out_rows():
    X, y = clipped(n=2000)
    w, between = np.arange(1.0, 4), None
    sample = Sample(X, y, None, np.arange(2000))
    held_out = np.arange(2000) >= 800
    formula = Formula(w, levels("auto", X, y)[0], RELU)
    certification = CertificationRows(sample, geometry_of(X), NOTHING_MORE, np.random.default_rng(0), held_out)
    found = judge(formula, certification, tally_of(formula.marks(sample)[1], None))
    verified = formula.marks(sample)[0]
    between = held_out & (X @ w > 2 * verified.half_widths)
    rows = X[between], verified.agree[between], verified.half_widths[between]
    expected, whole = (held_out_support(geometry_of(rows[0]), *rows, confidence=c) for c in (0.9995, 0.999))
    assert found.eta_max == pytest.approx(expected.eta_max, abs=1e-9)
    assert expected.eta_max < whole.eta_max
    # Of all rows those that agree between the limits speak for the formula, at the other half.
    certification = replace(certification, held_out=None)
    found = judge(formula, certification, tally_of(formula.marks(sample)[1], None))
    speak = verified.agree & (X @ w > 2 * verified.half_widths)
    given = certification.geometry, X, speak, verified.half_widths
    all_rows = measure_support(*given, rng=np.random.default_rng(0), simulate=False, confidence=0.9995)
    assert found.eta_max == all_rows.eta_max


def test_all_columns_that_labels_may_leave_out_share_delta():
    """Which columns rest on few rows is seen in the labels: all choices of them together have a hundredth."""
    d = 5
    X, y = gaussian(300, d, 0.1)
    spent = 0.0
    for k in range(1, d + 1):
        given = judged(X, y, [0.0] * k + [*range(k + 1, d + 1)], thin=tuple((j, 2.0) for j in range(k)))
        spent += comb(d, k) * given.assumption.delta
    assert 0 < spent <= 0.01 * (1 - NOTHING_MORE.confidence)


@pytest.mark.parametrize("link", [IDENTITY, RELU], ids=["linear", "ReLU"])
def test_nothing_is_excluded_by_chance_with_more_hypotheses_than_floats_can_share(link):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((600, 2))
    y = link(X @ [1.0, 2.0])
    y[:150] = rng.standard_normal(150)
    found = [certificate_of(X, y, link=link, assumption=Assumption(hypotheses=number)) for number in (1.0, 1e20)]
    assert [certificate.eta_max > 0.2 for certificate in found] == [True, False]
    assert found[1].eta_max == 0


@pytest.mark.parametrize("link", [IDENTITY, RELU], ids=["linear", "ReLU"])
def test_rows_whose_labels_were_seen_confirm_nothing(link):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2))
    y = np.where(rng.random(300) < 0.42, 9.0, link(X @ [1.0, 2.0]))
    y[:100] = link(X[:100] @ [1.0, 2.0])
    formula = Formula(np.array([1.0, 2.0]), levels("auto", X, y)[0], link)

    def asked(index, seen=None):
        rows = Sample(X, y, None, np.arange(300)).take(index)
        certification = CertificationRows(rows, geometry_of(rows.X), NOTHING_MORE, np.random.default_rng(0), seen=seen)
        found = judge(formula, certification, tally_of(formula.marks(rows)[1], None))
        return found.support.eta_max if link is IDENTITY and seen is None else found.eta_max

    fresh = np.arange(100, 300)
    assert asked(np.arange(300), np.arange(100)) == pytest.approx(asked(fresh), abs=1e-12)
    assert asked(np.arange(300)) > asked(fresh)
    assert asked(np.arange(300), np.arange(298)) == 0.0, "two rows of two columns say nothing"


@pytest.mark.parametrize(
    "wrong", [{"wrong_at_most": 0.0}, {"wrong_at_most": 1.0}, {"confidence": 1.0}, {"errors": "even"}]
)
def test_an_assumption_that_makes_no_sense_is_an_error(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Assumption(**wrong)


# --- links: the formula is fixed before the labels of held-out rows are read ---


def clipped(n=3000, d=3, seed=0, link=RELU):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = link(X @ np.arange(1.0, d + 1))
    wrong = rng.random(n) < 0.3
    y[wrong] = 4 * rng.random(int(wrong.sum()))
    return X, y


@pytest.mark.slow
@pytest.mark.parametrize("link", [RELU, pytest.param(Link(-1, 2), marks=pytest.mark.slow)], ids=["ReLU", "limits"])
@pytest.mark.parametrize("sampled", [True, False], ids=["some rows judge", "all rows judge"])
def test_labels_of_held_out_rows_do_not_move_the_formula(link, sampled, monkeypatch):
    if sampled:
        few = replace(SETTINGS, certify=1800, certify_per_column=1)
        monkeypatch.setattr("massart.recover.driver.SETTINGS", few)
    X, y = clipped(link=link)

    def held_out(labels):
        certification = problem_of(ArrayRows(X, labels), link, settings=few if sampled else SETTINGS).certification
        assert certification.held_out is not None
        return certification.rows.index[certification.held_out]

    first = held_out(y)
    assert len(first) > 900
    plain = fit(X, y, link=link)
    rng = np.random.default_rng(1)
    for change in ("shuffled", "destroyed"):
        other = y.copy()
        other[first] = rng.permutation(y[first]) if change == "shuffled" else rng.uniform(0, 1)
        np.testing.assert_array_equal(held_out(other), first, err_msg="rows are chosen by X alone")
        found = fit(X, other, link=link)
        assert found.coef.tobytes() == plain.coef.tobytes()
        assert not found.certificates[0].verdict.certain
    assert plain.certificates[0].verdict.stands


@pytest.mark.slow
def test_held_out_rows_confirm_what_all_rows_cannot():
    X, y = clipped(6000, 10)
    certificate = certificate_of(X, y, link=RELU)
    assert certificate.verdict is Verdict.CONFIRMED
    assert judged(X, y, np.arange(1.0, 11), RELU).eta_max < 0.5


def together(kind, n_units=5, size=800, d=8):
    """Rows of which all in a unit are wrong together: with the same labels of another formula, or as copies of one."""
    rng = np.random.default_rng(0)
    n = n_units * size
    unit = np.repeat(np.arange(n_units), size)
    X = rng.normal(4, 2, (n, d))
    if kind == "weights":
        X, unit, size = X[: n // 8], np.arange(n // 8), 8
    w = np.arange(1.0, d + 1)
    wrong = unit < 4 if kind == "units" else unit % 5 < 4
    y = RELU(np.where(wrong, X @ (w + np.eye(d)[0]), X @ w))
    return X, y, unit, size


def test_a_link_is_no_surer_than_the_units_that_are_wrong_together_allow():
    X, y, unit, _ = together("units")
    apart, units = (fit(X, y, link=RELU, units=given).certificates[0] for given in (None, unit))
    assert apart.eta_max > 0.5
    assert units.eta_max < 0.1  # four of five units may well be wrong


@pytest.mark.parametrize("kind", ["units", "weights"])
def test_no_unit_both_finds_a_formula_and_holds_its_labels_back(kind):
    X, y, unit, size = together(kind)
    weights = np.full(len(y), float(size)) if kind == "weights" else None
    rows = ArrayRows(X, y, sample_weight=weights)
    problem = problem_of(rows, RELU, unit if kind == "units" else None)
    held_out = problem.held_out
    assert held_out is not None
    later = problem.certify.index[held_out]
    assert len(later)
    assert not set(unit[later]) & set(unit[problem.search.index])


def test_rows_of_a_unit_that_was_seen_confirm_nothing():
    X, y, unit, _ = together("units")
    certification = problem_of(ArrayRows(X, y), IDENTITY, unit).certification
    others = replace(certification, seen=np.flatnonzero(unit < 2)[::50]).unseen
    assert others is not None
    assert set(others.units) == {2, 3, 4}


@pytest.mark.parametrize("rows", [8, 1_300])
def test_a_column_that_only_the_rows_have_which_chose_it_is_not_confirmed(rows):
    rng = np.random.default_rng(4)
    x, flag = rng.integers(1, 500, 3_000), np.arange(3_000) < rows
    y = np.where(rng.random(3_000) < 0.2 * ~flag, rng.integers(1, 1_500, 3_000), 3 * x + 7 * flag).astype(float)
    table = ArrayRows(np.column_stack([x, flag]).astype(float), y, intercept=False)
    found = recover(table, rng=np.random.default_rng(0), seen=np.arange(1_000))
    np.testing.assert_array_equal(found.coef[:, 0], [3, 7])
    assert found.certificates[0].verdict is (Verdict.MAJORITY if rows <= 1_000 else Verdict.CONFIRMED)
