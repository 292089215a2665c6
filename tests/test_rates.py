"""Rates by level as a table: the same numbers whatever level the rule was written with as its base."""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: tables are optional")

from massart.audit import audit_table, summary
from massart.cli.layout import lines
from massart.rows import IDENTITY
from massart.rules import Formula, Summand, column, level, product, rates_by_level, text_by_level

RATES = {"AT": Fraction(6, 5), "DE": Fraction(119, 100), "NL": Fraction(121, 100)}


def gross(base: str | None, *more: Summand) -> Formula:
    """Return net times the rate of a country, with one of these as the base."""
    first = [] if base is None else [(column("net"), RATES[base])]
    others = [
        (product(column("net"), level("country", name)), rate - RATES.get(base or "", Fraction(0)))
        for name, rate in RATES.items()
        if name != base
    ]
    own = [Summand(term, float(rate), rate, 0.0, True) for term, rate in [*first, *others]]
    return Formula("gross", (*own, *more), None, IDENTITY, noisy=False)


def test_rates_do_not_depend_on_the_base_level() -> None:
    for base in (None, *RATES):
        [rates] = rates_by_level(gross(base), {"country": tuple(RATES)})
        assert {rate.level: rate.exact for rate in rates.rates} == RATES
        assert rates.listed == (("AT", "1.2"), ("DE", "1.19"), ("NL", "1.21"))
        assert text_by_level(gross(base), [rates]) == "gross = rate[country] * net"


def test_other_terms_stay_as_they_are() -> None:
    fee = Summand(column("fee"), -2.0, Fraction(-2), 0.0, True)
    weekend = Summand(level("day", "Sun"), 5.0, Fraction(5), 0.0, True)
    formula = gross("DE", fee, weekend)
    rates = rates_by_level(formula, {"country": tuple(RATES), "day": ("Mon", "Sun")})
    assert text_by_level(formula, rates) == "gross = rate[country] * net - 2 * fee + 5 * (day = Sun)"


def test_several_rates_of_a_level_have_names_of_their_own_and_a_level_without_a_rate_has_none() -> None:
    per_piece = [
        Summand(product(column("pieces"), level("country", name)), rate, None, 0.0, True)
        for name, rate in (("AT", 2.5), ("DE", 3.5), ("NL", 4.5))
    ]
    rates = rates_by_level(gross("DE", *per_piece), {"country": tuple(RATES)})
    assert [each.name for each in rates] == ["rate[country, net]", "rate[country, pieces]"]
    assert len(rates_by_level(gross("DE", *per_piece[1:]), {"country": tuple(RATES)})) == 1


def test_two_categories_beside_one_column_and_open_levels_stay_linear() -> None:
    kind = Summand(product(column("net"), level("kind", "old")), 0.1, Fraction(1, 10), 0.0, True)
    levels = {"country": tuple(RATES), "kind": ("new", "old")}
    assert rates_by_level(gross("DE", kind), levels) == ()
    unknown = Summand(product(column("net"), level("country", "PL")), 0.1, Fraction(1, 10), 0.0, True)
    assert rates_by_level(gross("DE", unknown), levels) == ()
    is_open = Summand(product(column("net"), level("country", "PL")), 0.1, None, np.nan, False)
    assert rates_by_level(gross("DE", is_open), {"country": (*RATES, "PL")}) == ()


def test_everybody_sees_the_same_rates_and_no_level_is_said_to_have_no_effect(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    country = rng.choice([*RATES, "FR"], 600)
    net = rng.integers(500, 90_000, 600) / 100
    y = np.round(net * np.select([country == name for name in RATES], [float(r) for r in RATES.values()], 1.2), 2)
    y[:40] *= 10
    found = audit_table({"net": net, "country": country, "gross": np.round(y, 2)}, "gross")
    text = "\n".join(lines(found))
    assert "gross = rate[country] * net\n  rate[country]: AT, FR 1.2; DE 1.19; NL 1.21\n" in text
    assert "Not in the rule" not in text
    [rates] = summary(found)["rates"]
    assert {each["level"]: each["exact"] for each in rates["levels"]} == {
        "AT": "6/5",
        "DE": "119/100",
        "FR": "6/5",
        "NL": "121/100",
    }
    found.report().save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "rate[country] * net" in page
    assert "No effect" not in page
    assert "Base level" not in page


@pytest.mark.parametrize("amounts", list(itertools.permutations([40.0, 75.5, 91.0])))
def test_the_base_level_that_is_said_is_the_one_without_a_term(amounts: tuple[float, ...]) -> None:
    rng = np.random.default_rng(1)
    zone = rng.choice(["a", "b", "c"], 400)
    km = rng.integers(1, 400, 400)
    values = dict(zip("abc", amounts, strict=True))
    y = 2.5 * km + [values[name] for name in zone.tolist()]
    found = audit_table({"km": km, "zone": zone, "y": y}, "y", terms="columns")
    [(name, base)] = found.bases.items()
    assert name == "zone"
    intercept = found.formula.intercept
    assert intercept is not None
    assert intercept.coef == pytest.approx(values[base])
    assert f"Levels without a term: zone = {base}." in "\n".join(lines(found))


def test_a_column_may_be_a_number_in_one_term_and_a_level_in_another() -> None:
    rng = np.random.default_rng(0)
    q, p = rng.choice([1, 2, 3, 5], 300), np.round(rng.uniform(1, 50, 300), 2)
    columns = {"q": q, "p": p, "y": np.round(q * p + 4 * (q == 3), 2)}
    audit = audit_table(columns, "y", terms="q * p, (q = 3)")
    assert str(audit.formula) == "y = q * p + 4 * (q = 3)"
    assert audit.bases == {}
