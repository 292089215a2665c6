"""Segments of a table in which a rule breaks: the scan against brute force, false alarms, what changes nothing."""

from __future__ import annotations

import json
import math
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, binom
from sklearn.exceptions import ConvergenceWarning

from massart import MassartRegressor, audit_table, check_table
from massart.audit import Contract, ModelError, load_model, summary
from massart.certificate import Breach, Reason, SegmentScan, Verdict
from massart.export import export
from massart.rules.find import EVEN

ALTERNATIVES = (0.35, 0.6, 0.8, 0.95, 0.995)


def numbers(rng, n):
    """Columns as tables have them: all different, rounded, with gaps, constant, mostly zero."""
    return [
        rng.normal(size=n),
        rng.integers(0, 6, n).astype(float),
        np.where(rng.random(n) < 0.7, np.nan, rng.gamma(2.0, 5.0, n)),
        np.full(n, 3.0),
        np.where(rng.random(n) < 0.9, 0.0, rng.normal(size=n)),
    ]


def by_brute_force(ordered, levels, wrong, p0):
    """Return the least bound of any segment, enumerated one by one, with its mask: the theorem, word by word."""

    def score(mask):
        n, k = mask.sum(), (mask & wrong).sum()
        return max(k * math.log(p1 / p0) + (n - k) * math.log((1 - p1) / (1 - p0)) for p1 in ALTERNATIVES if p1 > p0)

    ranges = [x for x in ordered if len(np.unique(x[~np.isnan(x)])) > 1]
    several = [c for c in levels if len(np.unique(c)) > 1]
    pairs = [(a, b) for a, b in combinations(several, 2) if (a.max() + 1) * (b.max() + 1) <= len(wrong)]
    crossed = [(c, x) for c in several for x in ranges]
    families = [(2, ranges), (1, several), (1, pairs), (1, crossed)]
    whole = sum(weight for weight, family in families if family)
    found = []
    for weight, family in families:
        for one in family:
            price = math.log(whole / weight * len(family))
            if family is ranges:
                values = np.unique(one[~np.isnan(one)])
                for i, low in enumerate(values):
                    for high in values[i:]:
                        mask = (one >= low) & (one <= high)
                        ends = math.log(len(values))
                        if low == values[0] or high == values[-1]:
                            ends = min(ends, math.log(2))
                        found.append((price + math.log(2 * 5) + ends - score(mask), mask))
            elif family is crossed:
                codes, x = one
                there = ~np.isnan(x)
                first = len({*zip(codes[there], x[there], strict=True)})
                for code in np.unique(codes):
                    values = np.unique(x[there & (codes == code)])
                    for i, low in enumerate(values):
                        for high in values[i:]:
                            mask = (codes == code) & (x >= low) & (x <= high)
                            found.append((price + math.log(5 * first) - score(mask), mask))
            else:
                codes = one if family is several else one[0] * (one[1].max() + 1) + one[1]
                for code in np.unique(codes):
                    mask = codes == code
                    n, k = mask.sum(), (mask & wrong).sum()
                    if k > p0 * n:
                        found.append((price + math.log(len(np.unique(codes))) + binom.logsf(k - 1, n, p0), mask))
    return min(found, key=lambda one: one[0])


@given(seed=st.integers(0, 10**6), share=st.sampled_from([0.1, 0.3, 0.45]))
@settings(max_examples=40)
def test_the_worst_segment_is_the_one_that_enumeration_finds(seed, share):
    rng, n = np.random.default_rng(seed), 60
    ordered, levels = numbers(rng, n), [rng.integers(0, 3, n), rng.integers(0, 4, n), np.zeros(n, dtype=int)]
    place = [ordered[0] > 0.3, (ordered[0] > -0.5) & (ordered[0] < 0.5), ordered[1] == 2, levels[0] == 1][seed % 4]
    wrong = (rng.random(n) < share) | (place & (rng.random(n) < 0.95))
    k, delta = int(wrong.sum()), 0.9
    limit = beta.ppf(1 - delta / 10, k + 1, n - k)
    found = SegmentScan(ordered, levels).worst(wrong, 1 - delta)
    expected = by_brute_force(ordered, levels, wrong, 0.5 if limit < 0.5 else limit)
    if limit < 0.5 and expected[0] > math.log(0.45 * delta):
        expected = by_brute_force(ordered, levels, wrong, limit)
    if expected[0] > math.log(0.45 * delta if limit < 0.5 else 0.9 * delta):
        assert found is None
        return
    assert found is not None
    assert found.log_p == pytest.approx(expected[0])
    there = found.members(ordered, levels)
    assert (there.sum(), (there & wrong).sum()) == (found.n_rows, found.n_wrong)
    if limit < 0.5:
        assert (found.breach is Breach.MASSART) == (expected[0] == by_brute_force(ordered, levels, wrong, 0.5)[0])


def test_the_enumeration_finds_segments():
    rng = np.random.default_rng(0)
    ordered = numbers(rng, 60)
    assert by_brute_force(ordered, [], ordered[0] > 0.3, 0.5)[0] < math.log(0.45 * 0.9)


def segments():
    """A part of a table of each kind, of some 5 % of the rows."""
    rng, n = np.random.default_rng(7), 3_000
    kg, day = rng.gamma(2.0, 5.0, n), rng.integers(0, 700, n).astype(float)
    zone, tier, branch = rng.integers(0, 6, n), rng.integers(0, 4, n), rng.integers(0, 20, n)
    low, high = np.quantile(kg, [0.4, 0.45])
    parts = {
        "range": (kg > low) & (kg < high),
        "tail": kg > np.quantile(kg, 0.95),
        "days": (day >= 150) & (day < 185),
        "weekend": day % 7 >= 6,
        "level": branch == 3,
        "pair": (zone == 2) & (tier == 1),
        "range of a level": (zone == 4) & (kg > np.quantile(kg, 0.7)),
    }
    return SegmentScan([kg, day, day % 7], [zone, tier, branch]), parts


@pytest.mark.parametrize("name", segments()[1])
def test_a_segment_of_each_kind_is_found_with_its_rows(name):
    scan, parts = segments()
    there, rng = parts[name], np.random.default_rng(1)
    wrong = there | (rng.random(3_000) < 0.2)
    found = scan.worst(wrong)
    assert found is not None
    assert found.breach is Breach.MASSART
    members = found.members(scan.ordered, scan.levels)
    assert (members & there).sum() >= 0.97 * there.sum()
    assert (members & ~there).sum() <= 0.05 * there.sum()


@given(seed=st.integers(0, 10**6))
@settings(max_examples=20)
def test_order_of_rows_and_columns_and_units_change_nothing(seed):
    rng, (scan, parts) = np.random.default_rng(seed), segments()
    wrong = (rng.random(3_000) < 0.3) | (seed % 2 * parts[sorted(parts)[seed % 7]] > 0)
    first = scan.worst(wrong)
    rows, columns = rng.permutation(3_000), rng.permutation(3)
    others = [
        (scan.take(rows), wrong[rows]),
        (SegmentScan([scan.ordered[j] for j in columns], [scan.levels[j] for j in columns]), wrong),
        (
            SegmentScan([5.0 * values - 3 for values in scan.ordered], [codes.max() - codes for codes in scan.levels]),
            wrong,
        ),
    ]
    for other, labels in others:
        found = other.worst(labels)
        assert (found is None) == (first is None)
        if found is not None and first is not None:
            assert (found.breach, found.n_rows, found.n_wrong) == (first.breach, first.n_rows, first.n_wrong)
            assert found.log_p == pytest.approx(first.log_p)


@pytest.mark.parametrize("by", ["label", "error", "row"])
def test_the_order_of_a_file_is_not_taken_for_a_segment(by):
    rng, n = np.random.default_rng(3), 2_000
    for _ in range(20):
        ordered = numbers(rng, n)[1:]
        wrong, label = rng.random(n) < 0.3, rng.normal(size=n)
        order = np.argsort({"label": label + 5.0 * wrong, "error": wrong * 1.0, "row": np.arange(n)}[by], kind="stable")
        scan = SegmentScan([values[order] for values in ordered])
        assert scan.worst(wrong[order]) is None
        assert scan.is_even(wrong[order])


def false_alarms(tables, n, delta):
    """Return how many tables are accused whose errors do not depend on their columns, the share estimated."""
    rng, alarms = np.random.default_rng(5), 0
    for _ in range(tables):
        share = rng.choice([0.05, 0.2, 0.4])
        scan = SegmentScan([*rng.normal(size=(2, n)), rng.integers(0, 30, n) * 1.0], [*rng.integers(0, 5, (2, n))])
        alarms += scan.worst(rng.random(n) < share, 1 - delta) is not None
    return alarms


def test_false_alarms_are_at_most_as_frequent_as_stated():
    assert false_alarms(300, 200, 0.1) <= 30


@pytest.mark.slow
def test_false_alarms_are_at_most_as_frequent_as_stated_in_many_tables():
    assert false_alarms(10_000, 300, 0.1) <= 1_000


def test_rates_that_differ_but_stay_below_one_half_do_not_refute_massart():
    rng, accused, uneven = np.random.default_rng(9), 0, 0
    for _ in range(100):
        x = rng.uniform(0, 1, 3_000)
        found = SegmentScan([x, rng.normal(size=3_000)]).worst(rng.random(3_000) < np.where(x < 1 / 3, 0.45, 0.1))
        uneven += found is not None
        accused += found is not None and found.breach is Breach.MASSART
    assert accused == 0
    assert uneven >= 95


def test_where_most_rows_are_wrong_the_whole_table_is_no_segment():
    rng = np.random.default_rng(2)
    x = rng.normal(size=3_000)
    wrong = rng.random(3_000) < 0.7
    assert SegmentScan([x]).worst(wrong) is None
    found = SegmentScan([x]).worst(wrong | (x > 1))
    assert found is not None
    assert (found.breach, found.n_wrong) == (Breach.MOSTLY, found.n_rows)


def test_no_wrong_rows_and_nothing_but_wrong_rows_are_no_segment():
    x = np.arange(100.0)
    assert SegmentScan([x]).worst(np.zeros(100, dtype=bool)) is None
    assert SegmentScan([x]).worst(np.ones(100, dtype=bool)) is None
    assert SegmentScan([np.full(100, np.nan)]).worst(x > 50) is None
    assert SegmentScan([]).worst(x > 50) is None


def test_copies_of_a_row_are_one_error():
    rng = np.random.default_rng(4)
    x, labels = rng.normal(size=1_000), rng.normal(size=1_000)
    wrong = rng.random(1_000) < 0.1
    rows = np.concatenate([np.arange(1_000), np.full(60, np.flatnonzero(wrong)[0])])
    scan, wrong, labels = SegmentScan([x[rows]]), wrong[rows], labels[rows]
    assert scan.worst(wrong) is not None
    assert scan.worst(wrong, labels=labels) is None
    # Where rows are equal by nature, or differ in their label or in another column, all of them count.
    assert SegmentScan([np.round(4 * x[rows])]).worst(wrong, labels=labels) is not None
    assert scan.worst(wrong, labels=np.arange(1_060.0)) is not None
    assert SegmentScan([x[rows]], [np.arange(1_060)]).worst(wrong, labels=labels) is not None


def test_a_trend_is_seen_where_no_segment_is():
    rng, seen = np.random.default_rng(6), 0
    for _ in range(20):
        x = np.round(rng.uniform(0, 1, 3_000), 2)
        scan, wrong = SegmentScan([x]), rng.random(3_000) < 0.05 + 0.2 * x
        seen += scan.worst(wrong) is None and not scan.is_even(wrong)
    assert seen >= 15


@pytest.mark.slow
def test_errors_that_do_not_depend_on_a_column_are_even():
    rng = np.random.default_rng(8)
    even = [SegmentScan(numbers(rng, 500)).is_even(rng.random(500) < share, 0.9) for share in [0.05, 0.3, 0.8] * 500]
    assert np.mean(even) >= 0.9


# The tables of users


def parcels(n=3_000, seed=0):
    """A price by weight and distance with 15 % wrong labels, and columns that are not in the rule."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"kg": np.round(rng.gamma(2.0, 5.0, n), 2), "km": rng.integers(1, 400, n)})
    frame["day"] = pd.Timestamp("2023-01-02") + pd.to_timedelta(rng.integers(0, 700, n), "D")
    frame["branch"] = rng.choice([f"b{k}" for k in range(20)], n)
    frame["zone"], frame["tier"] = rng.choice(list("ABCDEF"), n), rng.choice(list("uvwx"), n)
    frame["note"] = np.where(rng.random(n) < 0.06, "x", None)
    frame["price"] = np.round(4.2 + 0.85 * frame.kg + 0.11 * frame.km, 2)
    wrong = rng.random(n) < 0.15
    frame.loc[wrong, "price"] = np.round(frame.price[wrong] * rng.uniform(1.2, 3, int(wrong.sum())), 2)
    return frame, wrong


PARTS = {
    "kg from 31": lambda f: f.kg > 31,
    "kg from 7.9": lambda f: (f.kg >= 8) & (f.kg <= 9),
    "branch = b3": lambda f: f.branch == "b3",
    "weekday of day = Sunday": lambda f: f.day.dt.day_of_week == 6,
    "month of day = July": lambda f: f.day.dt.month == 7,
    "day of month of day from 1 to 2": lambda f: f.day.dt.day <= 2,
    "day from 2023-06-01 to 2023-06-30": lambda f: (f.day >= "2023-06-01") & (f.day <= "2023-06-30"),
    "tier = v and zone = C": lambda f: (f.zone == "C") & (f.tier == "v"),
    "zone = C and kg from": lambda f: (f.zone == "C") & (f.kg > 15),
    "note = x": lambda f: f.note == "x",
}


@pytest.mark.parametrize("where", PARTS)
def test_the_segment_in_which_a_rule_breaks_is_named_and_its_rows_are_not_called_wrong(where, tmp_path):
    frame, wrong = parcels()
    there = PARTS[where](frame).to_numpy()
    frame.loc[there, "price"] = np.round(9.9 + 0.5 * frame.kg[there] + 0.3 * frame.km[there], 2)
    audit = audit_table(frame, "price", terms="columns")
    certificate = audit.certificate
    assert (certificate.verdict, certificate.reason) == (Verdict.PLURALITY, Reason.PART)
    assert f"The rule does not hold for {where}" in audit.explanation
    assert audit.apart[there].mean() > 0.97
    assert (audit.wrong & there).mean() < 0.001
    assert (audit.wrong == (wrong & ~there)).mean() > 0.995
    assert audit.n_wrong + audit.n_apart + audit.n_agree + audit.n_last_place == len(frame)
    assert audit.segment_rule is not None
    assert audit.segment_rule.formula.expression() == "0.5 * kg + 0.3 * km + 9.9"
    rows = audit.rows()
    assert (rows.kind[~rows.wrong & (rows.kind != "")] == "under another rule?").all()
    assert Contract(max_wrong=0.5).outcome(audit).status == 1
    found = summary(audit)["segment"]
    assert found["where"] in audit.explanation
    assert found["rows_off"] == audit.n_apart == summary(audit)["rows_apart"]
    audit.model().save(tmp_path / "model.json")  # which sets the same rows apart, where it sees them
    checked = check_table(tmp_path / "model.json", frame).audit
    assert (checked.wrong.tolist(), checked.apart.tolist()) == (audit.wrong.tolist(), audit.apart.tolist())
    assert checked.segment.where == audit.segment.where
    assert f"not for {audit.segment.where}" in export(audit.model(), "sql").replace("\n-- ", " ")
    few = check_table(tmp_path / "model.json", frame[["kg", "km", "price"]]).audit
    is_seen = audit.segment.columns == ["kg"]
    assert few.n_apart == (audit.n_apart if is_seen else 0)
    assert is_seen == (not any("does not show which rows" in notice for notice in few.notices))


def test_rows_without_a_value_of_a_category_are_set_apart():
    frame, _ = parcels()
    gap = np.random.default_rng(1).random(len(frame)) < 0.06
    frame["zone"] = frame.zone.where(~gap, None)
    frame.loc[gap, "price"] = np.round(9.9 + 0.5 * frame.kg[gap] + 0.3 * frame.km[gap], 2)
    audit = audit_table(frame, "price", terms="kg, km")
    assert audit.segment.where == "zone without a value"
    assert audit.n_apart == audit.apart[gap].sum() > 0.97 * gap.sum()
    assert not audit.wrong[gap].any()
    n = int(gap.sum())
    assert f"zone without a value: {audit.n_apart} of {n} rows break it" in audit.explanation


def test_order_of_rows_and_columns_and_units_change_no_verdict():
    frame, _ = parcels(1_200, 3)
    frame.loc[frame.branch == "b3", "price"] *= 3
    first = audit_table(frame, "price", terms="columns")
    assert first.certificate.reason is Reason.PART
    shuffled = frame.sample(frac=1, random_state=1)[[*reversed(frame.columns)]]
    grams = frame.assign(kg=(1000 * frame.kg).round())
    for other in (shuffled, grams):
        audit = audit_table(other, "price", terms="columns")
        assert (audit.certificate.verdict, audit.segment.where, audit.n_apart, audit.n_wrong) == (
            first.certificate.verdict,
            first.segment.where,
            first.n_apart,
            first.n_wrong,
        )


def test_a_column_that_was_excluded_is_not_scanned_nor_a_number_that_is_no_feature():
    frame, wrong = parcels()
    frame["paid"] = np.where(wrong, 1e5, 0) + frame.price  # made of the target
    for options in ({"exclude": ["paid"]}, {"features": ["kg", "km"]}):
        assert audit_table(frame, "price", terms="columns", **options).certificate.verdict.certain
    frame.loc[frame.branch == "b3", "price"] *= 3
    audit = audit_table(frame, "price", terms="columns", features=["kg", "km"])
    assert audit.segment.where == "branch = b3"


def test_rows_of_an_error_unit_and_weights_are_not_taken_for_a_segment():
    rng = np.random.default_rng(5)
    clerk = np.repeat(np.arange(200), 15)
    frame = pd.DataFrame({"a": rng.integers(1, 900, 3_000) + clerk / 1000, "b": rng.integers(1, 90, 3_000)})
    frame["clerk"] = [f"c{k}" for k in clerk]
    frame["y"] = 2 * frame.a + frame.b + (rng.random(200) < 0.2)[clerk] * rng.integers(1, 99, 3_000)
    assert audit_table(frame, "y", terms="columns", exclude=["clerk"]).certificate.verdict.stands
    frame["day"] = clerk.astype(float) + 100  # rows that are wrong together are beside each other
    alone = audit_table(frame, "y", terms="columns", exclude=["clerk"])
    assert alone.certificate.segment is not None
    together = audit_table(frame, "y", terms="columns", error_unit="clerk")
    assert together.certificate.segment is None
    X, y = frame[["a", "b"]].to_numpy()[:500], frame.y.to_numpy()[:500]
    weights = np.ones(500)
    weights[np.flatnonzero(y != 2 * X[:, 0] + X[:, 1])[0]] = 40
    assert MassartRegressor().fit(X, y, sample_weight=weights).certificate_.segment is None


def test_an_uneven_table_is_said_to_be_so_and_keeps_its_verdict():
    rng = np.random.default_rng(2)
    a, b = rng.integers(1, 1_000, 4_000), rng.integers(1, 1_000, 4_000)
    wrong = rng.random(4_000) < np.where(b > 700, 0.35, 0.05)
    audit = audit_table({"a": a, "b": b, "y": 3 * a - b + wrong * rng.integers(1, 500, 4_000)}, "y", terms="columns")
    assert audit.certificate.verdict.stands
    assert audit.segment is not None
    assert not audit.segment.is_accused
    assert audit.n_apart == 0
    (notice,) = (notice for notice in audit.notices if "not spread evenly" in notice)
    assert notice.startswith("Of ")
    assert "with b from 70" in notice


def test_a_regressor_names_the_segment_by_its_column():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(2_000, 3)), columns=["a", "b", "c"])
    y = X @ [1.0, 2.0, 3.0]
    y[X.b > 1.5] += 5
    y[:200] += rng.normal(size=200)
    with pytest.warns(ConvergenceWarning, match="The rule does not hold for b from 1.5"):
        model = MassartRegressor().fit(X, y)
    assert model.certificate_.verdict is Verdict.PLURALITY
    off = np.flatnonzero(~model.inlier_mask_)
    assert set(model.wrong_rows_.index) == set(off[X.b.to_numpy()[off] <= 1.5])
    assert "set apart" in str(model.report(X, y))


@pytest.mark.parametrize("name", ["csv", "parquet"])
def test_a_file_that_is_read_in_blocks_has_the_same_segment(tmp_path, name):
    frame, _ = parcels(3_000, 4)
    there = (frame.branch == "b3").to_numpy()
    frame.loc[there, "price"] = np.round(9.9 + 0.5 * frame.kg[there] + 0.3 * frame.km[there], 2)
    path = tmp_path / f"parcels.{name}"
    frame.to_csv(path, index=False) if name == "csv" else frame.to_parquet(path)
    whole = audit_table(path, "price", terms="columns")
    parts = audit_table(path, "price", terms="columns", max_memory=100_000, audit=tmp_path / "wrong.csv")
    assert parts.whole is not None
    assert (parts.certificate.verdict, parts.certificate.reason) == (Verdict.PLURALITY, Reason.PART)
    assert whole.segment.where == parts.segment.where == "branch = b3"
    assert (parts.n_wrong, parts.n_apart, parts.n_agree) == (whole.n_wrong, whole.n_apart, whole.n_agree)
    listed = pd.read_csv(tmp_path / "wrong.csv")
    assert listed.wrong.sum() == parts.n_wrong
    assert (listed.kind[~listed.wrong] == "under another rule?").sum() == parts.n_apart
    assert parts.explanation.split("For these rows")[0] == whole.explanation.split("For these rows")[0]


def test_a_check_says_where_a_saved_rule_breaks(tmp_path):
    frame, _ = parcels(1_500, 6)
    audit_table(frame, "price", terms="columns").model().save(tmp_path / "model.json")
    for there, said in ((frame.day >= "2024-10-01", "day from 2024-10-01 up"), (frame.branch == "", None)):
        later = frame.assign(price=np.where(there, frame.price + 1, frame.price))
        audit = check_table(tmp_path / "model.json", later).audit
        notices = [notice for notice in audit.notices if "does not hold" in notice]
        n = int(there.sum())
        assert len(notices) == (said is not None)
        if said is not None:
            assert notices[0].startswith(f"The rule does not hold for {said}: {n} of {n} rows break it, ")
            assert audit.wrong[there].all()  # and are wrong by the rule that was saved


@pytest.mark.parametrize("size", [None, 100_000])
def test_a_rule_that_depends_on_the_days_between_two_dates_is_no_rule_for_all(tmp_path, size):
    # Two per cent off what is paid within ten days.
    rng = np.random.default_rng(0)
    n = 2_000
    sent, days, gross = rng.integers(0, 300, n), rng.integers(1, 45, n), np.round(np.exp(rng.uniform(3, 9, n)), 2)
    start = pd.Timestamp("2024-01-01")
    frame = pd.DataFrame({"paid_on": start + pd.to_timedelta(sent + days, "D"), "gross": gross})
    frame["invoiced"] = start + pd.to_timedelta(sent, "D")
    frame["paid"] = np.round(np.where(days <= 10, 0.98, 1) * gross, 2)
    wrong = rng.random(n) < 0.08
    frame.loc[wrong, "paid"] = np.round(1.19 * frame.paid[wrong], 2)
    frame.to_csv(tmp_path / "paid.csv", index=False)
    audit = audit_table(tmp_path / "paid.csv", "paid", terms="columns", max_memory=size)
    assert (audit.certificate.verdict, audit.certificate.reason) == (Verdict.PLURALITY, Reason.PART)
    assert "The rule does not hold for days from invoiced to paid_on up to 10: " in audit.explanation
    assert "paid = 0.98 * gross" in audit.explanation
    assert summary(audit)["segment"]["columns"] == ["invoiced", "paid_on"]
    if size is None:
        assert audit.apart.tolist() == ((days <= 10) & (frame.paid != gross)).tolist()
        assert audit.wrong.tolist() == (wrong & (days > 10)).tolist()


def test_a_rule_may_compare_a_sum_with_a_flag_in_it():
    rng = np.random.default_rng(0)
    qty, km, rush = rng.integers(1, 60, 1_500), rng.integers(1, 300, 1_500), rng.random(1_500) < 0.6
    y = 2.0 * km + 3 * km * (qty + rush >= 30) + 7 * (km > 250)
    audit = audit_table({"qty": qty, "rush": rush, "km": km, "y": y}, "y", terms="km, km*(qty + rush >= 30)")
    assert audit.segment.where == "km from 251 up"


@pytest.mark.slow
@pytest.mark.parametrize("tier", [False, True])
def test_terms_are_looked_for_only_where_rows_that_break_the_rule_lie_together(tier):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({f"c{j}": np.round(rng.gamma(2.0, 50.0, 6_000), 2) for j in range(6)})
    total = frame.c0 + 2 * frame.c1 + 7 - tier * np.round(0.5 * np.maximum(0.0, frame.c2 - 150), 3)
    wrong = rng.random(len(frame)) < 0.1
    frame["total"] = np.where(wrong, total * 10, total)
    audit = audit_table(frame, target="total")
    assert audit.certificate.verdict in (Verdict.PROVEN, Verdict.CONFIRMED)
    assert (EVEN in audit.notices) is not tier
    assert ("c2 - 150" in str(audit.formula)) is tier
    assert abs(audit.n_wrong - wrong.sum()) <= 5


@pytest.mark.parametrize(
    "change",
    [
        {"breach": "bad luck"},
        {"inputs": [{"kind": "number"}]},
        {"inputs": []},
        {"conditions": 1},
        {"conditions": [{"column": "kg", "part": "", "since": None, "low": "x", "high": None}]},
        {"conditions": [{"column": "kg", "part": "era", "since": None, "low": 1.0, "high": None}]},
        {"conditions": [{"column": "kg", "part": "", "since": "kg", "low": 1.0, "high": None}]},
        {"conditions": [{"column": "km", "part": "", "since": None, "low": 1.0, "high": None}]},
        {"conditions": [{"column": "kg", "part": "", "since": None, "low": 1.0}]},
        {"conditions": [{"term": ["column", "km"], "low": 1.0, "high": None}]},
        {"conditions": [{"term": "kg", "low": 1.0, "high": None}]},
    ],
)
def test_a_damaged_segment_of_a_model_is_one_line(change, tmp_path):
    frame, _ = parcels(800)
    frame.loc[frame.kg > 20, "price"] *= 2
    path = tmp_path / "model.json"
    audit_table(frame, "price", terms="kg, km").model().save(path)
    content = json.loads(path.read_text())
    assert content["segment"]["conditions"][0]["column"] == "kg"
    path.write_text(json.dumps({**content, "segment": {**content["segment"], **change}}))
    with pytest.raises(ModelError, match=r"^model\.json is damaged: ") as caught:
        load_model(path)
    assert len(str(caught.value).splitlines()) == 1
