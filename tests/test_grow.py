"""Growing a rule: laws of the search, and stories of what it finds."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from massart.audit import audit_table
from massart.rules import Columns, Levels, TermMatrix, column
from massart.rules.grow import Grown, Settings, glance, grow, short_coefficients
from massart.rules.grow.fit import Labels
from massart.rules.grow.growing import search_rows
from massart.rules.grow.sample import Sample, written
from massart.rules.grow.simplify import pruned
from massart.rules.grow.tidy import tidied
from massart.rules.grow.units import near_numbers
from massart.rules.grow.windows import maximum_sum
from massart.rules.terms import power, within

SECONDS = 600.0


def table(seed: int, n: int = 600) -> tuple[Columns, np.ndarray, np.ndarray]:
    """Return columns, a mask of rows that go wrong, and values for these."""
    rng = np.random.default_rng(seed)
    numbers = {
        "qty": rng.integers(1, 60, n).astype(float),
        "price": rng.integers(100, 9999, n) / 100,
        "km": rng.integers(1, 400, n).astype(float),
        "minutes": rng.integers(1, 700, n).astype(float),
    }
    zone = Levels(rng.integers(0, 3, n).astype(np.int32), ("north", "south", "west"))
    return Columns(numbers, {"zone": zone}), rng.random(n) < 0.2, rng.integers(1, 500_000, n) / 100


def grown(exact: np.ndarray, data: tuple[Columns, np.ndarray, np.ndarray]) -> tuple[Grown, np.ndarray]:
    """Grow a rule for labels that are rounded to cents, and return its values in all rows."""
    columns, wrong, junk = data
    found = grow(columns, np.where(wrong, junk, np.round(exact, 2)), np.random.default_rng(0), SECONDS)
    assert found is not None
    assert found.is_clear
    X = TermMatrix(columns, found.terms)
    return found, found.link(X @ found.coef[:-1] + found.coef[-1])


RATES = np.array([0.31, 0.42, 0.57])
CAPS = np.array([60.0, 90.0, 40.0])
STORIES = {
    "price * qty": lambda x, zone: x["qty"] * x["price"],
    "max(0, km - 150)": lambda x, zone: 12 + 0.5 * x["km"] + 0.25 * np.maximum(0, x["km"] - 150),
    "km * (zone = west)": lambda x, zone: RATES[zone] * x["km"] + 4,
    "ceil(minutes / 60)": lambda x, zone: 3.5 * np.ceil(x["minutes"] / 60),
    "ceil(km / 2.5)": lambda x, zone: 4.3 + 0.46 * np.ceil(x["km"] / 2.5) + 0.1 * x["qty"],
    "ceil(minutes / qty)": lambda x, zone: 3.85 * np.ceil(x["minutes"] / x["qty"]) + 7.5,
    "(km < minutes)": lambda x, zone: np.where(x["km"] >= x["minutes"], 0.3 * x["km"] + 9, 0.2 * x["km"]),
    "min(price, 60": lambda x, zone: np.minimum(x["price"], CAPS[zone]),
    "max(0.3 * qty": lambda x, zone: np.maximum(0.12 * x["price"], 0.3 * x["qty"]),
    "(price * qty < 1000)": lambda x, zone: x["qty"] * x["price"] * np.where(x["qty"] * x["price"] >= 1000, 0.97, 1),
    "(zone": lambda x, zone: 0.4 * x["km"] + 5 + np.where((zone != 1) & (x["km"] > 180), 18.0, 0.0),
}
"""What an author writes, and a part of it that the rule found has, too."""


@pytest.mark.slow
@pytest.mark.parametrize("words", STORIES)
def test_authors_find_their_rule_again(words: str) -> None:
    data = table(1, 1000)
    exact = STORIES[words](data[0].numbers, data[0].levels["zone"].codes)
    found, values = grown(exact, data)
    assert np.mean(np.abs(values - exact) < 0.02) > 0.99
    assert any(words in str(term) or words in " * ".join(sorted(str(term).split(" * "))) for term in found.terms)


SHARES, FEES = np.array([0.31, 0.27, 0.42]), np.array([5.5, 3.0, 9.0])
FORMS = {
    ("0.21 * km", "0.06 * max(0, km - 200)", "4.5"): lambda x, _: np.maximum(
        0.21 * x["km"] + 4.5, 0.27 * x["km"] - 7.5
    ),
    ("0.186 * min(price, 70)",): lambda x, _: 0.186 * x["price"] - 0.186 * np.maximum(0, x["price"] - 70),
    ("2.5 * ceil(minutes / 60)", "at most 18"): lambda x, _: np.minimum(18, 2.5 * np.ceil(x["minutes"] / 60)),
    (
        "0.31 * (km + price) * (zone = north)",
        "0.27 * (km + price) * (zone = south)",
        "0.42 * (km + price) * (zone = west)",
    ): lambda x, zone: (x["km"] + x["price"]) * SHARES[zone],
    ("price * (km < 50)", "0.95 * price * (50 <= km < 200)", "0.9 * price * (km >= 200)"): lambda x, _: (
        x["price"] * (1 - 0.05 * (x["km"] >= 50) - 0.05 * (x["km"] >= 200))
    ),
    ("5.5 * (zone = north)", "3 * (zone = south)", "9 * (zone = west)", "1.75 * km"): lambda x, zone: (
        1.75 * x["km"] + FEES[zone]
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_of_equal_forms_that_of_the_author_is_written(form: tuple[str, ...]) -> None:
    data = table(11)
    exact = FORMS[form](data[0].numbers, data[0].levels["zone"].codes)
    found, values = grown(exact, data)
    parts = [f"{w:.12g} * {term}".removeprefix("1 * ") for term, w in zip(found.terms, found.coef, strict=False)]
    parts += [f"{found.coef[-1]:.12g}"] if found.coef[-1] else []
    parts += [f"at most {found.link.upper:g}"] if np.isfinite(found.link.upper) else []
    assert set(parts) == set(form)
    assert np.mean(np.abs(values - exact) < 0.006) > 0.99


def test_labels_of_the_other_rows_are_not_read() -> None:
    """The terms are fixed before a label that confirms them is looked at: without these labels they are the same."""
    data = table(2, 300)
    x = data[0].numbers
    y = np.where(data[1], data[2], np.round(0.2 * x["km"] + 0.07 * np.maximum(0, x["km"] - 120), 2))
    rows = search_rows(len(y), np.random.default_rng(5), Settings())
    assert len(rows) < len(y)
    others = np.setdiff1d(np.arange(len(y)), rows)
    blind, mixed = y.copy(), y.copy()
    blind[others], mixed[others] = np.nan, np.random.default_rng(6).permutation(y[others])
    known = grow(data[0], y, np.random.default_rng(5), SECONDS)
    assert known is not None
    np.testing.assert_array_equal(known.rows, rows)
    for labels in (blind, mixed):
        found = grow(data[0], labels, np.random.default_rng(5), SECONDS)
        assert found is not None
        assert (known.terms, known.link, known.half_width) == (found.terms, found.link, found.half_width)
        np.testing.assert_array_equal(known.coef, found.coef)


@pytest.mark.slow
def test_shuffled_labels_have_no_rule() -> None:
    columns, _, _ = table(3, 400)
    rng = np.random.default_rng(3)
    y = rng.permutation(np.round(columns.numbers["qty"] * columns.numbers["price"], 2))
    found = grow(columns, y, np.random.default_rng(0), 2.0)
    assert found is None or not found.is_clear


def test_the_score_is_what_the_formula_says() -> None:
    columns, _, junk = table(4, 200)
    settings = Settings()
    labels = Labels.of(Sample(columns, junk, 0.005, 40), "identity", settings)
    fit = labels.fit([(), (column("km"),)])
    assert fit is not None
    off = np.abs(junk - fit.coef[0] - fit.coef[1] * columns.numbers["km"]) / labels.half_widths
    cost = [min(np.log2(max(r, 1)), labels.cap) + settings.miss_bits * (r > 0.98) for r in off]
    assert fit.total == pytest.approx(sum(cost) + 2 * settings.number_bits)


def test_a_simpler_rule_never_costs_more() -> None:
    columns, wrong, junk = table(5, 300)
    y = np.where(wrong, junk, np.round(2.5 * columns.numbers["qty"] + 30, 2))
    labels = Labels.of(Sample(columns, y, 0.005, 40), "identity", Settings())
    long = labels.fit([(), *((column(name),) for name in columns.numbers)])
    assert long is not None
    short = pruned(long)
    assert short.total <= long.total
    assert set(short.terms) == {(), (column("qty"),)}


def test_short_coefficients_keep_the_rows() -> None:
    rng = np.random.default_rng(6)
    X = np.column_stack([rng.uniform(1, 100, 200), np.ones(200)])
    for rate, fee in ((0.19, 12.5), (1 / 12, 3.0), (7 / 30, 0.25)):
        y = np.round(X @ [rate, fee], 2)
        rough = np.array([rate, fee]) * (1 + 1e-6 * rng.normal(size=2))
        half_widths = np.full(200, 0.00501)
        agree = np.abs(y - X @ rough) <= half_widths
        short = short_coefficients(X, y, half_widths, rough, agree)
        assert np.count_nonzero(np.abs(y - X @ short) <= half_widths) >= np.count_nonzero(agree)
        assert short[1] == fee
    assert near_numbers(7 / 30 + 1e-9, 1e-8)[0] == pytest.approx(7 / 30, abs=1e-12)


def test_the_maximum_sum_is_that_of_all_runs() -> None:
    rng = np.random.default_rng(7)
    for _ in range(50):
        gains = rng.normal(size=12)
        sums = {(i, j): gains[i:j].sum() for i in range(12) for j in range(i, 13)}
        total, first, end = maximum_sum(gains)
        assert total == pytest.approx(max(sums.values()))
        assert gains[first:end].sum() == pytest.approx(total)


def test_a_glance_sees_the_plain_columns_only_where_they_have_a_rule() -> None:
    columns, wrong, junk = table(10)
    plain = [column(name) for name in columns.numbers]
    y = np.where(wrong, junk, 3 * columns.numbers["km"] + columns.numbers["qty"])
    assert glance(columns, plain, y, np.random.default_rng(0)) > 0.7
    assert glance(columns, plain, junk, np.random.default_rng(0)) < 0.1


@pytest.mark.parametrize("share", [0.3, 0.7])
def test_a_bonus_that_is_left_empty_is_0(share: float) -> None:
    """Also in a column that is empty in most rows, which is no input otherwise."""
    rng = np.random.default_rng(8)
    base, bonus = rng.integers(1500, 6000, 400).astype(float), rng.integers(1, 20, 400) * 50.0
    empty, wrong = rng.random(400) < share, rng.random(400) < 0.1
    salary = np.round(1.05 * base + np.where(empty, 0, bonus), 2) + np.where(wrong, rng.integers(1, 90, 400), 0)
    frame = pa.table({"base": base, "bonus": pa.array(bonus, mask=empty), "salary": salary})
    audit = audit_table(frame, "salary")
    np.testing.assert_array_equal(audit.wrong, wrong)
    assert any(notice.startswith('Read missing values of "bonus" as 0') for notice in audit.notices)
    assert len(audit.design.kept) == 400


@pytest.mark.parametrize("seed", range(3))
def test_a_few_rows_with_nothing_at_an_end_of_a_column_are_right(seed: int) -> None:
    """No pay before the eighth month: too few rows for a window, and a third of all labels is wrong."""
    rng = np.random.default_rng(seed)
    months, pay = rng.permutation(np.arange(400) // 2 + 2), np.round(rng.gamma(9, 260, 400) + 1500, 2)
    exact = np.round(np.where(months < 8, 0, pay * months / 48), 2)
    wrong = (rng.random(400) < 0.35) & (months > 5)
    due = np.where(wrong, np.round(exact * rng.uniform(0.3, 2, 400) + 1, 2), exact)
    audit = audit_table(pa.table({"months": months, "pay": pay, "due": due}), "due")
    assert not (audit.wrong & ~wrong).any()
    np.testing.assert_array_equal(audit.wrong, wrong)


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "steps"), [(2, "ceil"), (3, "ceil"), (7, "floor")])
def test_rows_whose_steps_are_whole_are_right(seed: int, steps: str) -> None:
    """Started steps are one more full one, but where a quotient is whole: in few of these rows."""
    rng = np.random.default_rng(seed)
    width, height = np.round(rng.uniform(0.8, 5.2, 500), 2), np.round(rng.uniform(1.1, 2.9, 500), 2)
    fabric, price = rng.choice([1.4, 1.5, 2.8, 2.0], 500), rng.choice([12.9, 16.5, 19.9, 24.5, 32.0], 500)
    depth = rng.choice([1.5, 2.0, 2.5], 500)
    drops = np.ceil(width / fabric - 1e-9) if steps == "ceil" else np.floor(width / fabric + 1e-9)
    exact, wrong = drops * (height + 0.25) * price, rng.random(500) < 0.12
    cost = np.round(np.where(wrong, exact * rng.uniform(0.3, 2, 500), exact), 2)
    frame = pa.table({"width": width, "height": height, "fabric": fabric, "price": price, "depth": depth, "cost": cost})
    audit = audit_table(frame, "cost")
    assert f"{steps}(width / fabric)" in str(audit.formula)
    assert not (audit.wrong & (np.abs(cost - exact) < 0.006)).any()


def test_intervals_of_a_column_with_a_curve_are_a_line_and_a_cap() -> None:
    """Tax by person and night, for seven nights at most: labels in halves follow numbers by interval, too."""
    rng = np.random.default_rng(1)
    adults, nights = rng.integers(1, 5, 600).astype(float), rng.integers(1, 12, 600).astype(float)
    tax = 2.5 * adults * np.minimum(nights, 7)
    labels = Labels.of(Sample(Columns({"adults": adults, "nights": nights}), tax, 0.25, 40), "identity", Settings())
    ends = [None, 2.5, 4.0, 5.0, 6.0, 7.0, None]
    terms = [(column("adults"), within("nights", *both, "left")) for both in pairwise(ends)]
    long = labels.fit([*terms, (column("adults"), power(column("nights"), -2))])
    assert long is not None
    short = tidied(long)
    assert short.n_agree == len(tax)
    assert [(str(written(term)), w) for term, w in zip(short.terms, short.coef, strict=True)] == [
        ("adults * min(nights, 7)", 2.5)
    ]


@pytest.mark.parametrize("seed", range(3))
def test_a_rule_that_is_rounded_to_halves_keeps_the_rows_of_a_small_case(seed: int) -> None:
    """Rates in fewer digits would give all lessons of an hour for a second child half a euro less."""
    rng = np.random.default_rng(seed)
    rates = {"cello": 63.5, "guitar": 55.0, "piano": 69.0, "recorder": 39.0}
    kind, child = rng.choice(list(rates), 1150), rng.choice(["first", "later"], 1150, p=[0.6, 0.4])
    minutes = rng.choice([30, 45, 60], 1150, p=[0.5, 0.38, 0.12])
    full = np.array([rates[one] for one in kind]) * minutes / 30 * np.where(child == "later", 0.85, 1)
    exact, wrong = np.floor(2 * full + 0.5 + 1e-9) / 2, rng.random(1150) < 0.25
    other = np.where(rng.random(1150) < 0.5, np.round(full, 2), np.round(exact * rng.uniform(0.4, 1.9, 1150), 1))
    fee = np.where(wrong, other, exact)
    audit = audit_table(pa.table({"kind": kind, "child": child, "minutes": minutes, "fee": fee}), "fee")
    np.testing.assert_array_equal(audit.wrong & (fee == exact), False)
