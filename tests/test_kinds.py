"""What happened in wrong rows: planted errors are named, and chance is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

pytest.importorskip("pyarrow", reason="pyarrow is not installed: tables are optional")

import kinds as benchmark
from massart.audit import apply_model, audit_table, check_table, summary
from massart.audit.changes import Parts
from massart.audit.error_types import LAST_PLACE, UNEXPLAINED, RowErrorTypes, find_kinds
from massart.audit.explanations import ANOTHER, RowLabels
from massart.cli.layout import lines
from massart.rows import IDENTITY
from massart.rules import Formula, Summand, column
from massart.tables import table_of

EVERY_KIND = benchmark.PLAIN + benchmark.OF_DIGITS


def a_sum(names: tuple[str, ...], each: NDArray[Any]) -> Parts:
    """Return a rule that adds up some columns."""
    terms = tuple(Summand(column(name), 1.0, None, 0.0, True) for name in names)
    return Parts(each, Formula("y", terms, None, IDENTITY, noisy=False))


def named(planted: benchmark.Planted, **more: Any) -> RowErrorTypes:
    """Return the kinds of a table whose rule is known."""
    rule, given = planted.rule, planted.given
    each = np.column_stack(list(rule.parts.values()))
    exact = each.sum(axis=1)
    unit = None if rule.places is None else 10.0**-rule.places
    rounded = np.abs(exact - planted.implied).max() > 1e-6
    widths = 1e-14 * (np.abs(each).sum(axis=1) + np.abs(given)) + (unit / 2 * (1 + 1e-6) if unit and rounded else 0)
    wrong = np.abs(given - exact) > widths
    last_place = wrong & (np.abs(given - exact) <= (unit or 0) + widths)
    labels = RowLabels(given, planted.implied, wrong & ~last_place, last_place, widths, unit)
    return find_kinds(labels, a_sum(tuple(rule.parts), each), **more)


def words(found: RowErrorTypes) -> NDArray[Any]:
    return found.of(np.arange(len(found.codes)))


def planter(seed: int, n: int = 2_000) -> benchmark.Planter:
    rng = np.random.default_rng(seed)
    return benchmark.Planter(benchmark.RULES[seed % len(benchmark.RULES)](rng, n), rng)


@pytest.mark.slow
@pytest.mark.parametrize("kind", EVERY_KIND)
def test_a_planted_kind_is_named_among_rows_that_nothing_explains(kind: str) -> None:
    planted_rows = right = wrong = 0
    for seed in range(10):
        table = planter(seed)
        if table.rule.places is None and kind in benchmark.OF_DIGITS:
            continue
        table.make("drawn", 100)
        table.make("changed", 100)
        table.make(kind, 100)
        truth, said = table.planted.kinds, words(named(table.planted))
        planted_rows += np.count_nonzero(truth != "")
        right += np.count_nonzero((truth == said) & (truth != ""))
        wrong += np.count_nonzero((truth != said) & (said != UNEXPLAINED))
        assert not said[truth == ""].any()
    assert planted_rows > 2_000
    assert right >= 0.97 * planted_rows
    assert wrong <= 0.005 * planted_rows


@pytest.mark.parametrize("kind", [kind for kind in EVERY_KIND if kind not in ("factor", "constant", "value", "digit")])
def test_two_rows_are_enough_where_every_digit_fits(kind: str) -> None:
    for seed in range(4):
        table = planter(seed)
        table.make(kind, 2)
        truth, said = table.planted.kinds, words(named(table.planted))
        np.testing.assert_array_equal(said, truth)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    noise=st.sampled_from(["uniform", "permuted", "small", "relative", "tens", "whole"]),
    n=st.sampled_from([40, 300, 2_000]),
    share=st.sampled_from([0.05, 0.4]),
)
def test_what_chance_explains_stays_unexplained(seed: int, noise: str, n: int, share: float) -> None:
    table = planter(seed, n)
    rng, f, unit = np.random.default_rng(seed), table.implied, table.unit
    values = {
        "uniform": rng.uniform(f.min(), f.max(), n),
        "permuted": rng.permutation(f),
        "small": f + rng.normal(0, 8 * unit or 1, n),
        "relative": f * rng.uniform(0.5, 1.5, n),
        "tens": f + 10 * unit * rng.integers(-9, 10, n) + (0 if unit else rng.normal(0, 1, n)),
        "whole": np.rint(rng.uniform(f.min(), f.max(), n)) + (0 if unit else rng.normal(0, 1, n)),
    }[noise]
    wrong = rng.random(n) < share
    table.given[wrong] = table.rule.write(values)[wrong]
    found = named(table.planted)
    # A permutation has the values of other rows, by its construction.
    explained = sum(kind.rows for kind in found.kinds if kind.explains and (noise, kind.label) != ("permuted", ANOTHER))
    # It has pairs that are swapped and rows that move by one, too; others have next to none.
    assert explained <= 4 + 0.02 * wrong.sum()


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    values=st.sampled_from([2, 5, 40]),
    share=st.sampled_from([0.1, 0.5]),
    same=st.booleans(),
)
def test_few_digits_say_nothing(seed: int, values: int, share: float, same: bool) -> None:
    rng = np.random.default_rng(seed)
    n = 600
    each = rng.integers(0, values, (n, 2)).astype(float) * [1, 2]
    implied = np.full(n, 7.0) if same else each.sum(axis=1)
    given = np.where(rng.random(n) < share, rng.integers(0, 3 * values, n), implied).astype(float)
    labels = RowLabels(given, implied, given != implied, np.zeros(n, dtype=bool), unit=1.0)
    found = find_kinds(labels, None if same else a_sum(("a", "b"), each))
    explained = sum(kind.rows for kind in found.kinds if kind.explains)
    # One table in some hundred has a value that seven of its fifty wrong rows share by chance.
    assert explained <= max(0.1 * np.count_nonzero(given != implied), 8) or (same and values == 2)


@pytest.mark.parametrize("tax", [1.19, 1.07, 1.08])
@pytest.mark.parametrize("how", ["charged", "charged on cents", "forgotten", "twice"])
@pytest.mark.parametrize("unit", [None, 0.01, 1.0])
def test_a_tax_is_named_however_given_and_implied_were_rounded(tax: float, how: str, unit: float | None) -> None:
    rng = np.random.default_rng([int(100 * tax), len(how)])
    n, places = 800, {None: 12, 0.01: 2, 1.0: 0}[unit]
    amounts = [
        rng.integers(1, 40, n) * np.round(rng.uniform(0.5, 90, n), 2) * rng.choice([1, 0.95, 0.9], n) for _ in "ab"
    ]
    net = np.sum(amounts, axis=0)
    right = net if how.startswith("charged") else net * tax
    written = np.round(right, places)
    wrong = {"charged": net * tax, "charged on cents": written * tax, "forgotten": net, "twice": written * tax}[how]
    taxed, other = rng.random(n) < 0.05, rng.random(n) < 0.1
    given = np.where(taxed, np.round(wrong, min(places, 2)), written)
    given[other] = np.round(right + rng.uniform(1, 300, n), min(places, 2))[other]
    off = given != written
    parts = a_sum(("a", "b"), np.column_stack([np.round(a * right / net, 9) for a in amounts]))
    found = find_kinds(RowLabels(given, written, off, np.zeros(n, dtype=bool), unit=unit), parts)
    expected = f"factor 1/{tax}" if how == "forgotten" else f"factor {tax}"
    named = dict.fromkeys(found.words, 0) | {kind.label: kind.rows for kind in found.kinds}
    assert (taxed & ~other & off).sum() <= named[expected] <= (taxed & ~other).sum() + 3


def test_one_row_is_named_if_that_is_no_accident() -> None:
    rng = np.random.default_rng(0)
    implied = np.round(rng.uniform(10, 2_000, 200), 2)
    implied[0] = 1234.56
    for value, word in (
        (12345.6, "factor 10"),
        (123.46, "factor 0.1"),
        (-1234.56, "sign"),
        (0.0, "zero"),
        (-999.0, "placeholder -999"),
        (777.77, UNEXPLAINED),
        (1234.57, UNEXPLAINED),
    ):
        labels = np.append(value, implied[1:])
        wrong = np.arange(200) == 0
        found = find_kinds(RowLabels(labels, implied, wrong, np.zeros(200, dtype=bool), unit=0.01))
        assert words(found)[0] == word
        assert found.kinds[0].examples == (0,)
        assert not found.codes[1:].any()


def test_without_wrong_rows_there_are_no_kinds() -> None:
    for n in (0, 5):
        none = np.zeros(n, dtype=bool)
        found = find_kinds(RowLabels(np.ones(n), np.ones(n), none, none))
        assert found.kinds == ()
        assert not found.codes.any()


def test_every_wrong_row_has_one_kind_and_counts_are_those_of_the_codes() -> None:
    for seed in range(10):
        found = named(benchmark.plant(seed))
        counts = np.bincount(found.codes, minlength=len(found.kinds) + 1)[1:]
        assert counts.tolist() == [kind.rows for kind in found.kinds]
        assert len({kind.label for kind in found.kinds}) == len(found.kinds)
        explained = [kind.rows for kind in found.kinds if kind.explains]
        assert explained == sorted(explained, reverse=True)
        for code, kind in enumerate(found.kinds, 1):
            assert all(found.codes[row] == code for row in kind.examples)


@pytest.mark.parametrize("power", [-3, 2])
def test_kinds_do_not_depend_on_the_unit(power: int) -> None:
    table = planter(2)  # whole numbers
    for kind in ("sign", "forgotten", "digits", "before", "drawn"):
        table.make(kind, 80)
    rule, factor = table.rule, 10.0**power
    scaled = replace(
        table.planted,
        rule=replace(
            rule,
            coefs={name: coef * factor for name, coef in rule.coefs.items()},
            constant=rule.constant * factor,
            places=-power,
        ),
        given=np.round(table.given * factor, -power),
        implied=np.round(table.implied * factor, -power),
    )
    assert named(scaled).kinds == named(table.planted).kinds


def test_kinds_do_not_depend_on_the_order_of_rows_unless_they_are_about_it() -> None:
    table = planter(1)
    for kind in ("factor", "digits", "twice", "swapped", "drawn"):
        table.make(kind, 80)
    order = np.random.default_rng(0).permutation(2_000)
    rule = replace(table.rule, columns={name: values[order] for name, values in table.rule.columns.items()})
    shuffled = benchmark.Planted(rule, table.given[order], table.implied[order], table.kinds[order])
    np.testing.assert_array_equal(words(named(shuffled)), words(named(table.planted))[order])


@pytest.mark.parametrize("copies", ["next to each other", "below the table"])
def test_a_copy_of_a_wrong_row_does_not_explain_it(copies: str) -> None:
    rng = np.random.default_rng(0)
    n = 300
    hours, km = rng.integers(1, 900, (2, n))
    total = 12.5 * hours + 3 * km
    total[::10] *= 10
    total[5::20] += 25
    total[7::5] = rng.integers(1, 90_000, len(total[7::5])) / 7
    columns = {"id": [f"A{k}" for k in range(n)], "hours": hours, "km": km, "total": total}
    again = np.repeat(np.arange(n), 2) if copies == "next to each other" else np.tile(np.arange(n), 2)
    table = {name: np.asarray(values)[again] for name, values in columns.items()}
    found = {kind.label: kind.rows for kind in audit_table(table, "total", id="id", terms="columns").kinds.kinds}
    assert found == {"factor 10": 60, "off by +25": 30, UNEXPLAINED: 118}


def test_a_stale_value_of_the_same_group_is_found() -> None:
    table = planter(1)
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.arange(2_000) // 5)
    order = np.argsort(groups, kind="stable")
    rows = order[1:][(np.diff(groups[order]) == 0) & (rng.random(1_999) < 0.05)]
    before = dict(zip(order[1:].tolist(), order[:-1].tolist(), strict=True))
    table.given[rows] = [table.implied[before[row]] for row in rows.tolist()]
    found = named(table.planted, groups=groups)
    assert [kind.label for kind in found.kinds] == ["value of the row before in its group"]
    assert [kind.label for kind in named(table.planted).kinds] == [ANOTHER]


@pytest.mark.slow
def test_an_audit_names_kinds_everywhere() -> None:
    table = planter(0)
    for kind in ("factor", "sign", "two_forgotten"):
        table.make(kind, 60)
    columns = {**table.rule.columns, "target": table.given}
    found = audit_table(columns, "target")
    np.testing.assert_array_equal(words(found.kinds), table.kinds)
    rows = found.rows()
    np.testing.assert_array_equal(rows["kind"], table.kinds[rows["row"] - 1])
    listed = summary(found)["kinds"]
    assert {entry["kind"]: entry["rows"] for entry in listed} == dict.fromkeys(set(table.kinds) - {""}, 60)
    assert all(table.kinds[row - 1] == entry["kind"] for entry in listed for row in entry["examples"])
    text = "\n".join(lines(found))
    assert text.index("what happened") < text.index("coefficient")
    assert all(entry["kind"] in text for entry in listed)
    predicted = apply_model(found.model(), table_of(columns)).columns
    np.testing.assert_array_equal(predicted["kind"], table.kinds)
    fragment = found._repr_html_()
    assert "kind" in fragment


def test_rows_off_by_a_last_place_are_listed_last() -> None:
    table = planter(1)
    table.make("sign", 50)
    free = np.flatnonzero(table.kinds == "")[:30]
    table.given[free] = np.round(table.implied[free] + 0.01, 2)
    found = named(table.planted)
    assert [(kind.label, kind.explains) for kind in found.kinds] == [("sign", True), (LAST_PLACE, False)]


@pytest.mark.slow
def test_many_wrong_rows_have_their_kinds() -> None:
    table = benchmark.plant(1, 60_000)
    said = words(named(table))
    wrong = table.kinds != ""
    assert np.mean(said[wrong] == table.kinds[wrong]) > 0.99


@pytest.mark.full
@pytest.mark.slow
def test_the_benchmark_of_kinds_reaches_its_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmark.main(["--tables", "5", "--seed", "3"]) == 0
    assert "one digit wrong" in capsys.readouterr().out


def test_a_factor_multiplies_the_noise_of_a_row() -> None:
    rng = np.random.default_rng(0)
    implied = rng.normal(0, 1_000, 1_000)
    given = implied + rng.uniform(-0.5, 0.5, 1_000)
    given[:100] *= 10
    wrong = np.abs(given - implied) > 0.5
    found = find_kinds(RowLabels(given, implied, wrong, np.zeros(1_000, dtype=bool), half_widths=0.5))
    assert [(kind.label, kind.rows) for kind in found.kinds] == [("factor 10", 100)]


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-9, 0.01, 1.0, 1e300, 1e308]))
def test_values_near_the_end_of_floats_have_a_kind_like_any_other(seed: int, unit: float) -> None:
    rng = np.random.default_rng(seed)
    implied, values = (rng.choice([-1, 1], 12) * 10.0 ** rng.choice([0, 3, 150, 307, 308], 12) for _ in range(2))
    wrong = rng.random(12) < 0.6
    values = np.where(wrong, values, implied)
    found = find_kinds(RowLabels(values, implied, wrong, np.zeros(12, bool), unit=unit))
    assert [bool(name) for name in found.of(np.arange(12))] == wrong.tolist()


def of_cents(given: NDArray[Any], implied: NDArray[Any], exact: NDArray[Any] | None = None) -> RowErrorTypes:
    """Name the wrong rows of a formula in cents."""
    wrong = np.abs(given - implied) > 1e-9
    labels = RowLabels(given, implied, wrong, np.zeros(len(given), dtype=bool), unit=0.01)
    return find_kinds(labels, a_sum(("a",), (implied if exact is None else exact)[:, np.newaxis]))


def test_whole_numbers_among_cents_agree_by_chance() -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        implied = rng.integers(1_000, 20_000, 3_000) * 1.0
        given = np.where(rng.random(3_000) < 0.3, rng.integers(1_000, 20_000, 3_000) * 1.0, implied)
        assert [kind.label for kind in of_cents(given, implied).kinds] == [UNEXPLAINED]


def test_factors_next_to_each_other_do_not_stand_out() -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        implied = rng.integers(1_000, 90_000, 400) / 100
        given = np.round(implied * (1 + rng.integers(1, 12, 400) / 100), 2)
        found = of_cents(np.where(rng.random(400) < 0.3, given, implied), implied)
        named = sum(kind.rows for kind in found.kinds if kind.explains)
        assert named < 0.3 * np.count_nonzero(found.codes)


def test_half_a_unit_may_have_been_rounded_the_other_way() -> None:
    rng = np.random.default_rng(0)
    exact = rng.integers(100, 9_000, 400) / 100 + 0.005
    implied = np.round(exact, 2)
    other = np.where(implied > exact, implied - 0.01, implied + 0.01)
    given = np.where(rng.random(400) < 0.2, np.round(10 * other, 2), implied)
    assert [kind.label for kind in of_cents(given, implied, exact).kinds] == ["factor 10"]


def told(columns: dict[str, Any], given: NDArray[Any], terms: str) -> dict[str, int]:
    """Return what an audit says of a table, and of how many rows."""
    found = audit_table({**columns, "y": given}, "y", terms=terms)
    return {kind.label: kind.rows for kind in found.kinds.kinds}


def test_german_tax_on_dutch_invoices_and_forgotten_tax_are_said_of_levels_and_columns() -> None:
    rng = np.random.default_rng(0)
    rates = {"AT": 1.2, "DE": 1.19, "NL": 1.21, "PL": 1.23}
    country = rng.choice([*rates], 900, p=[0.2, 0.2, 0.2, 0.4])
    net = rng.integers(500, 90_000, 900) / 100
    gross = np.round(net * [rates[name] for name in country.tolist()], 2)
    dutch = np.flatnonzero(country == "NL")[:40]
    gross[dutch] = np.round(1.19 * net[dutch], 2)
    gross[400:430] = net[400:430]
    free = np.setdiff1d(np.arange(900), [*dutch.tolist(), *range(400, 430)])
    gross[free[:25]] = np.round(1.3 * net[free[:25]], 2)
    expected = {
        "as for country = DE": np.setdiff1d(dutch, np.arange(400, 430)).size,
        "the value of net": 30,
        "net * country at 1.3": 25,
    }
    said = told({"net": net, "country": country}, gross, "net:country")
    assert {label: said.get(label) for label in expected} == expected
    assert not [label for label in said if "counted twice" in label or "forgotten" in label]


def test_several_constants_are_all_named() -> None:
    rng = np.random.default_rng(2)
    x = rng.integers(1, 9_000, 2_000)
    y = 7.0 * x + 3
    for k, constant in enumerate((25, 40, 100)):
        y[150 * k : 150 * (k + 1)] += constant
    assert told({"x": x}, y, "columns") == {"off by +25": 150, "off by +40": 150, "off by +100": 150}


def test_nothing_is_said_of_rows_that_follow_a_formula_up_to_noise() -> None:
    rng = np.random.default_rng(3)
    x = rng.uniform(0, 100, 800)
    y = 3 * x + rng.normal(0, 1, 800)
    y[:120] += 2_500
    found = audit_table({"x": x, "y": y}, "y")
    assert found.certificate.verdict.name == "NOISY"
    assert found.n_wrong >= 120
    assert [kind.label for kind in found.kinds.kinds] == [UNEXPLAINED]


def test_a_column_that_is_ten_times_too_large_is_named() -> None:
    rng = np.random.default_rng(4)
    qty, fee = np.rint(np.exp(rng.uniform(0, 7, 700))), rng.integers(1, 40_000, 700) / 100
    y = np.round(12.5 * qty + fee, 2)
    typed = qty.copy()
    typed[np.flatnonzero(qty < 100)[:50]] *= 10
    expected = {"qty may be wrong: factor 10": 50}
    assert told({"qty": typed, "fee": fee}, y, "columns") == expected


def test_what_is_forgotten_keeps_its_brackets() -> None:
    rng = np.random.default_rng(5)
    start, stop, guests = (rng.integers(low, high, 600) for low, high in ((0, 300), (301, 600), (1, 9)))
    rate = rng.integers(1_000, 20_000, 600) / 100
    y = np.round((stop - start) * rate + 2.5 * (stop - start) * guests, 2)
    y[:60] = np.round((stop - start) * rate, 2)[:60]
    columns = {"start": start, "stop": stop, "guests": guests, "rate": rate}
    assert told(columns, y, "(stop - start)*rate, (stop - start)*guests") == {"(stop - start) * guests forgotten": 60}


def test_streams_and_saved_models_say_the_same(tmp_path: Any) -> None:
    rng = np.random.default_rng(6)
    n = 2_000
    zone, kg = rng.choice(["A", "B", "C"], n), rng.integers(1, 900, n) / 10
    rate = np.select([zone == "A", zone == "B"], [1.5, 2.25], 4.0)
    y = np.round(kg * rate, 2)
    y[:150] = np.round(1.5 * kg, 2)[:150]
    y[200:300] = kg[200:300]
    columns = {"zone": zone, "kg": kg, "y": y}
    path = tmp_path / "table.csv"
    path.write_text(
        ",".join(columns)
        + "\n"
        + "\n".join(map(",".join, zip(*(v.astype(str) for v in columns.values()), strict=True)))
    )
    whole = audit_table(path, "y", terms="kg:zone")
    said = {kind.label: kind.rows for kind in whole.kinds.kinds}
    assert set(said) == {"as for zone = A", "the value of kg"}
    streamed = audit_table(path, "y", terms="kg:zone", max_memory=20_000)
    assert {kind.label: kind.rows for kind in streamed.kinds.kinds} == said
    for memory in (None, 20_000):
        check = check_table(whole.model(), path, max_memory=memory)
        assert {kind.label: kind.rows for kind in check.audit.kinds.kinds} == said
