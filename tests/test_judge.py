"""The judge: one ladder of verdicts, each with its table, and none better than its numbers."""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest

import massart.recover.driver
import massart.recover.excluded
from massart import MassartPACRegressor, MassartRegressor, MassartReLURegressor
from massart.certificate import Reason, Verdict, geometry_of
from massart.certificate.support import held_out_support, measure_support
from massart.recover import Assumption, Formula, Judges, Options, judge, recover
from massart.recover.driver import _Driver
from massart.recover.excluded import excluded, excluded_by_counting
from massart.recover.judge import _without
from massart.recover.judges import beyond_mode, measure_support_of
from massart.rows import IDENTITY, RELU, Agreement, ArrayRows, Level, Link, Sample, levels, tally_of

NOTHING_MORE = Assumption()


def fit(X, y, weights=None, seed=0, **options):
    return recover(ArrayRows(np.asarray(X, dtype=float), y, weights), rng=np.random.default_rng(seed), **options)


def certificate_of(X, y, **options):
    return fit(X, y, **options).certificates[0]


def judged(X, y, w, link=IDENTITY, agreement=None, assumption=NOTHING_MORE, units=None, **options):
    """Return what the judge says of any formula, found or not."""
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    sample = Sample(X, y, None, np.arange(len(y)))
    formula = Formula(np.asarray(w, dtype=float), agreement or levels("auto", X, y)[0], link)
    judges = Judges(sample, geometry_of(X, units=units), None, units, assumption, np.random.default_rng(0))
    return judge(formula, judges, tally_of(formula.marks(sample)[1], None), **options)


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
def test_as_many_rows_as_shuffled_labels_give_are_chance():
    X, y = gaussian(400, 10, 0.35)
    w = np.arange(1.0, 11)
    assert judged(X, y, w, shuffled=lambda: 0.3).verdict is Verdict.MAJORITY
    certificate = judged(X, y, w, shuffled=lambda: 0.65)
    assert (certificate.verdict, certificate.reason, certificate.chance) == (Verdict.NONE, Reason.CHANCE, 260)


def test_few_rows_of_many_are_no_rule():
    """4 % of the rows agree with a formula of two columns: far more than chance gives, and far from a rule."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((1000, 2)), 9 * rng.standard_normal(1000)
    y[:40] = X[:40] @ [1.0, 2.0]
    certificate = judged(X, y, [1.0, 2.0])
    assert (certificate.verdict, certificate.reason, certificate.n_agree) == (Verdict.NONE, Reason.FEW, 40)
    y[:100] = X[:100] @ [1.0, 2.0]
    assert judged(X, y, [1.0, 2.0]).verdict is Verdict.PLURALITY


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


def test_a_column_of_zeros_is_constant():
    X = np.column_stack([np.random.default_rng(0).integers(0, 3, (300, 3)), np.ones(300)])
    found = fit(X, np.zeros(300))
    np.testing.assert_array_equal(found.coef, 0)
    assert found.agree.all()
    assert found.certificates[0].constant


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


@pytest.mark.slow
def test_rows_that_are_wrong_together_count_once():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((100, 8)), 10, axis=0)
    y = X @ np.arange(1.0, 9)
    wrong = np.repeat(rng.random(100) < 0.2, 10)
    y[wrong] = rng.standard_normal(int(wrong.sum()))
    each, together = (certificate_of(X, y, units=units) for units in (None, np.repeat(np.arange(100), 10)))
    assert together.eta_max < 0.3 < each.eta_max
    assert together.support.alpha == pytest.approx(each.support.alpha, abs=0.05)
    alone = certificate_of(X, y, units=np.arange(1000))
    assert alone.eta_max == pytest.approx(each.eta_max, abs=0.05)


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
        monkeypatch.setattr(massart.recover.driver, "JUDGING_ROWS", 1800)
        monkeypatch.setattr(massart.recover.driver, "JUDGING_ROWS_PER_COLUMN", 1)
    X, y = clipped(link=link)

    def held_out(labels):
        options = Options(np.random.default_rng(0))
        judges = _Driver(ArrayRows(X, labels), link, "auto", Assumption(), None, options).judges
        assert judges.held_out is not None
        return judges.rows.index[judges.held_out]

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
    options = Options(np.random.default_rng(0))
    driver = _Driver(rows, RELU, "auto", Assumption(), unit if kind == "units" else None, options)
    held_out = driver.judges.held_out
    assert held_out is not None
    later = driver.judges.rows.index[held_out]
    assert len(later)
    assert not set(unit[later]) & set(unit[driver.finder.rows.index])


def test_rows_of_a_unit_that_was_seen_confirm_nothing():
    X, y, unit, _ = together("units")
    options = Options(np.random.default_rng(0))
    judges = _Driver(ArrayRows(X, y), IDENTITY, "auto", Assumption(), unit, options).judges
    others = replace(judges, seen=np.flatnonzero(unit < 2)[::50]).unseen
    assert others is not None
    assert set(others.units) == {2, 3, 4}


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


@pytest.mark.parametrize("weight", [1.0, 1000.0, 1000.5])
@pytest.mark.parametrize("seed", range(4))
def test_as_many_rows_as_columns_fit_any_formula_whatever_they_weigh(weight, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((5, 3)), rng.standard_normal(5)
    certificate = certificate_of(X, y, weights=weight * rng.integers(1, 9, 5))
    assert (certificate.verdict, certificate.reason) == (Verdict.NONE, Reason.FEW)
    assert "any table has a formula for so few" in certificate.explain()


# --- the level of agreement belongs to the claim ---


def test_a_looser_agreement_claims_less_precisely():
    X, y = lattice()
    exact = judged(X, y, [3.0, -2.0])
    loose = judged(X, y, [3.0, -2.0], agreement=Agreement(Level.GIVEN, label=0.01))
    assert exact.verdict is loose.verdict is Verdict.PROVEN
    assert loose.agreement.label == loose.tolerance == 0.01
    widest = judged(X, y, [3.0, -2.0], agreement=Agreement(Level.GIVEN, label=50.0))
    assert widest.verdict is not Verdict.PROVEN or widest.n_agree == widest.n_rows


def test_what_may_fail_of_a_link_is_shared_by_all_rows_and_held_out_ones(monkeypatch):
    spent = []

    def whole(*arguments, confidence, reserved=0.5, **options):
        spent.append((1 - reserved) * (1 - confidence))
        return measure_support(*arguments, confidence=confidence, reserved=reserved, **options)

    def held_out(*arguments, confidence, **options):
        spent.append(1 - confidence)
        return held_out_support(*arguments, confidence=confidence, **options)

    monkeypatch.setattr(massart.recover.excluded, "measure_support", whole)
    monkeypatch.setattr(massart.recover.excluded, "held_out_support", held_out)
    X, y = clipped(n=1500)
    assert fit(X, y, link=RELU).certificates[0].verdict.stands
    assert len(spent) == 2
    assert sum(spent) == pytest.approx(1 - NOTHING_MORE.confidence)


@pytest.mark.parametrize(
    ("certain", "first", "drawn", "second", "expected"),
    [
        (7.0, 0.5, None, None, 0.5),  # nothing is drawn where that is enough
        (7.0, 0.3, None, None, 0.3),
        (7.0, 0.3, 5.2, 0.6, 0.6),
        (7.0, 0.3, 5.2, 0.2, 0.3),
        (None, None, 5.2, 0.6, 0.6),
        (None, None, None, None, 0.0),
    ],
)
def test_what_may_fail_of_counting_is_shared_by_the_draws_and_what_they_show(
    monkeypatch, certain, first, drawn, second, expected
):
    counted, asked = [], []

    def eta_max(n, agree, shared, delta):
        counted.append((n, agree, shared, pytest.approx(delta)))
        return first if shared == 7 else second

    def sharing(case, rng, *, confidence, wanted):
        asked.append((case, rng, pytest.approx(1 - confidence), wanted))
        return drawn

    monkeypatch.setattr(massart.recover.excluded, "counting_eta_max", eta_max)
    monkeypatch.setattr(massart.recover.excluded, "sample_sharing", sharing)
    X, rng = np.ones((100, 2)), np.random.default_rng(0)
    rows, assumption = Sample(X, X[:, 0], None, np.arange(100)), Assumption(wrong_at_most=0.4, confidence=0.98)
    judges = Judges(rows, None, None, None, assumption, rng)
    found = SimpleNamespace(rows=certain)

    assert excluded_by_counting("case", found, 100.0, 80.0, judges) == expected
    assert counted == [(100, 80, 7, 0.01)] * (certain is not None) + [(100, 80, 6, 0.005)] * (drawn is not None)
    assert asked == [("case", rng, 0.005, 30.0)] * (first != 0.5)
    for other in (
        replace(judges, rows=replace(rows, weights=np.ones(100))),
        replace(judges, units=np.arange(100)),
        replace(judges, rows=Sample(np.ones((5001, 2)), np.ones(5001), None, np.arange(5001))),
    ):
        assert excluded_by_counting("case", found, 100.0, 80.0, other) == 0.0


@pytest.mark.parametrize("held", [0.2, 0.4])
def test_of_a_link_the_rows_between_its_limits_judge_all_of_them_or_those_held_out(monkeypatch, held):
    X = np.column_stack([np.arange(-4.0, 8), np.arange(12) % 3])
    link, w = Link(0.0, 5.0), np.array([1.0, 0.0])  # products from -4 to 7
    y = link(X @ w)
    y[[6, 9]] += 0.5
    inside, right = np.isin(np.arange(12), [5, 6, 7, 8]), np.isin(np.arange(12), [5, 7, 8])
    rows = Sample(X, y, None, np.arange(12))
    asked = []

    def whole(geometry, given, agree, widths, **options):
        asked.append((given[:, 0].tolist(), agree.tolist()))
        return SimpleNamespace(eta_max=0.3, on_rows="all")

    def held_out(geometry, given, agree, widths, **options):
        asked.append((given[:, 0].tolist(), agree.tolist()))
        return SimpleNamespace(eta_max=held, on_rows="held out")

    monkeypatch.setattr(massart.recover.excluded, "measure_support", whole)
    monkeypatch.setattr(massart.recover.excluded, "held_out_support", held_out)
    formula = Formula(w, Agreement(Level.GIVEN, 0.1), link)
    found, marks = formula.marks(rows)

    def excluded_by(which):
        asked.clear()
        judges = Judges(rows, None, which, None, Assumption(), None)
        return excluded(formula, judges, None, found, marks)

    everything = (X[:, 0].tolist(), right.tolist())
    assert excluded_by(None) == (0.3, "all")
    assert asked == [everything]
    assert excluded_by(np.arange(12) % 8 != 0) == ((0.4, "held out") if held > 0.3 else (0.3, "all"))
    assert asked == [everything, ([1.0, 2.0, 3.0], [True, False, True])]
    for few in (~inside, np.arange(12) == 5):  # none, or none that span
        assert excluded_by(few) == (0.3, "all")
        assert asked == [everything]


@pytest.mark.parametrize("link", [IDENTITY, RELU], ids=str)
def test_what_is_excluded_is_what_rows_say_whose_labels_were_not_seen(link):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2))
    y = np.where(rng.random(300) < 0.35, 9.0, link(X @ [1.0, 2.0]))
    rows, seen = Sample(X, y, None, np.arange(300)), np.arange(100)
    y[seen] = link(X[seen] @ [1.0, 2.0])
    formula = Formula(np.array([1.0, 2.0]), levels("auto", X, y)[0], link)

    def asked(rows, seen=None):
        judges = Judges(rows, geometry_of(rows.X), None, None, Assumption(), np.random.default_rng(0), seen)
        found, marks = formula.marks(rows)
        return excluded(formula, judges, measure_support_of(formula, judges, found, marks), found, marks)

    for ours, theirs in zip(asked(rows, seen), asked(rows.take(np.arange(100, 300))), strict=True):
        np.testing.assert_allclose(ours, theirs)
    assert (np.hstack(asked(rows, seen)) != np.hstack(asked(rows))).any()
    nothing, widths = asked(rows, np.arange(298))
    assert nothing == 0.0
    assert np.isinf(widths).tolist() == [True, True]


def test_the_support_of_a_link_excludes_nothing_whatever_rows_speak():
    """Which they are depends on the formula: see what is excluded by rows that are held out."""
    X, y = clipped(300)
    judges = Judges(Sample(X, y, None, np.arange(300)), None, None, None, Assumption(), np.random.default_rng(0))
    for labels, w, share in ((y, [1.0, 2.0, 3.0], 0.5), (np.zeros(300), [0.0, 0.0, 0.0], 0.0)):
        rows = replace(judges.rows, y=labels)
        formula = Formula(np.array(w), levels("auto", X, y)[0], RELU)
        support = measure_support_of(formula, replace(judges, rows=rows), *formula.marks(rows))
        assert support.eta_max == 0.0
        assert (support.alpha > share) == (share > 0)


@pytest.mark.parametrize(("fresh", "enough"), [(3, True), (2, False)])
def test_rows_that_were_not_seen_judge_if_they_are_more_than_the_columns(fresh, enough):
    X = np.random.default_rng(0).standard_normal((10, 2))
    rows = Sample(X, X[:, 0], None, 10 * np.arange(10))
    judges = Judges(rows, None, np.arange(10) % 2 == 0, None, Assumption(), None)
    assert judges.unseen is judges
    others = replace(judges, seen=10 * np.arange(fresh, 10)).unseen
    assert (others is not None) == enough
    if others is not None:
        assert others.rows.index.tolist() == [0, 10, 20]
        assert others.held_out.tolist() == [True, False, True]
        assert (others.units, others.seen) == (None, None)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_most_frequent_label_does_not_speak_for_a_rule(weighted):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    w = np.array([2.0, -1.0])
    y = X @ w
    weights = rng.integers(1, 6, 60).astype(float) if weighted else None
    counts = np.ones(60) if weights is None else weights

    def beyond(labels):
        sample = Sample(X, labels, weights, np.arange(60))
        return beyond_mode(sample, Formula(w, levels(0, X, y)[0], IDENTITY).marks(sample)[0], IDENTITY)

    assert beyond(y) == counts.sum()  # no label is frequent, however much a row weighs
    X[:6] = X[0]
    y = X @ w
    y[50:] += 1
    assert beyond(y) == counts[6:50].sum()


def test_nothing_is_proven_where_a_row_sees_what_the_others_leave_open():
    """A column that wrong rows alone have: no row that agrees tells its coefficient."""
    X, y = lattice()
    for column, verdict in ((np.zeros(40), True), (np.arange(40) < 12, False), (1e-6 * (np.arange(40) == 3), False)):
        found = judged(np.column_stack([X, column]), y, [3.0, -2.0, 0.0])
        assert (found.verdict is Verdict.PROVEN) == verdict
        assert [*found.undetermined_columns] == [(2,)]


def test_what_may_fail_adds_up_over_all_columns_that_labels_may_leave_out():
    """Which columns rest on few rows is seen in the labels: every choice of them has its part, next to the whole."""
    X = np.random.default_rng(0).standard_normal((60, 5))
    judges = Judges(Sample(X, X[:, 0], None, np.arange(60)), geometry_of(X), None, None, Assumption(), None)
    choices = [list(which) for k in range(1, 6) for which in combinations(range(5), k)]
    spent = sum(1 - _without(judges, which).assumption.each for which in choices)
    assert 0 < spent <= 0.01 * (1 - judges.assumption.confidence)


@pytest.mark.parametrize("link", [IDENTITY, RELU], ids=["plain", "relu"])
def test_nothing_is_excluded_by_chance_where_looks_are_too_many_to_count(link):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((600, 2))
    y = link(X @ [1.0, 2.0])
    y[:150] = rng.standard_normal(150)
    found = [certificate_of(X, y, link=link, assumption=Assumption(looks=looks)) for looks in (1.0, 1e20)]
    assert [certificate.eta_max > 0.2 for certificate in found] == [True, False]
    assert found[1].eta_max == 0
