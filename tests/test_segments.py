"""Segments of a table in which a rule breaks: the scan against brute force, false alarms, what changes nothing."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, binom

from massart.certificate import Breach, SegmentScan

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
    scan = SegmentScan([x[rows]])
    assert scan.worst(wrong[rows]) is not None
    single = scan.without_copies(wrong[rows], labels[rows])
    assert single.sum() == wrong.sum()
    assert scan.worst(single) is None
    # Where rows are equal by nature, or differ in their label or in another column, all of them count.
    few = SegmentScan([np.round(x[rows])])
    assert few.without_copies(wrong[rows], labels[rows]).sum() == wrong[rows].sum()
    assert scan.without_copies(wrong[rows], np.arange(1_060.0)).sum() == wrong[rows].sum()
    other = SegmentScan([x[rows]], [np.arange(1_060)])
    assert other.without_copies(wrong[rows], labels[rows]).sum() == wrong[rows].sum()


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
