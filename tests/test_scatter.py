"""Wrong rows that lie all over a table, and such that lie where another term would be."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from massart import audit_table
from massart.certificate import Verdict
from massart.rules.columns import Columns, Levels
from massart.rules.find import EVEN
from massart.rules.scatter import is_even, shared_values

N = 12_000
LEAST = 0.015 * N


def columns(rng: np.random.Generator) -> Columns:
    numbers = {f"x{j}": rng.gamma(2.0, 10.0, N) for j in range(6)}
    numbers |= {"fee": (rng.random(N) < 0.03) * 1.0, "day": np.floor(rng.uniform(19_000, 20_000, N))}
    levels = {
        name: Levels(rng.integers(0, k, N).astype(np.int32), tuple("abcdef"[:k])) for name, k in (("u", 4), ("v", 6))
    }
    return Columns(numbers, levels, frozenset({"day"}))


def places(known: Columns, implied: np.ndarray) -> dict[str, np.ndarray]:
    """Rows in which a term that is not a plain column would be."""
    x, codes = known.numbers["x1"], {name: levels.codes for name, levels in known.levels.items()}
    low, high = np.quantile(x, [0.60, 0.62])
    return {
        "a tier": x > np.quantile(x, 0.98),
        "a bracket": (x > low) & (x < high),
        "a cap": implied > np.quantile(implied, 0.98),
        "a level": codes["v"] == 3,
        "two levels": (codes["u"] == 1) & (codes["v"] == 2),
        "a fee": known.numbers["fee"] > 0,
        "a tier of one level": (codes["u"] == 2) & (x > np.quantile(x, 0.9)),
        "Sundays": known.numbers["day"] % 7 == 3,
    }


@pytest.mark.slow
@settings(max_examples=12)
@given(seed=st.integers(0, 10**6), share=st.floats(0.03, 0.4))
def test_errors_that_do_not_depend_on_x_are_even_and_those_of_a_part_are_not(seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    known, implied = columns(rng), rng.normal(size=N)
    wrong = rng.random(N) < share
    for name, there in places(known, implied).items():
        assert not is_even(known, implied, wrong | there, LEAST), name


@pytest.mark.slow
def test_chance_is_hardly_ever_taken_for_a_part() -> None:
    rng = np.random.default_rng(0)
    even = [is_even(columns(rng), rng.normal(size=N), rng.random(N) < share, LEAST) for share in [0.05, 0.2, 0.4] * 10]
    assert sum(even) >= 28


def test_too_few_rows_tell_nothing() -> None:
    rng = np.random.default_rng(1)
    known, some = columns(rng), np.arange(300)
    assert not is_even(known.take(some), rng.normal(size=300), rng.random(300) < 0.2, 5.0)


@pytest.mark.slow
@pytest.mark.parametrize("tier", [False, True])
def test_terms_are_looked_for_only_where_rows_that_break_the_rule_lie_together(tier: bool) -> None:
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


@pytest.mark.parametrize("dated", [False, True])
def test_a_range_in_which_hardly_a_row_agrees_is_named(dated: bool) -> None:
    rng = np.random.default_rng(4)
    x = np.arange(2_000.0)
    agree = ~((x >= 1_500) & (rng.random(2_000) < 0.95))
    known = Columns({"x": x, "other": rng.normal(size=2_000)}, {}, frozenset({"x"} if dated else ()))
    (notice,) = shared_values(known, agree)
    low, high = ("1974-02-09", "1975-06-23") if dated else ("1500", "1999")
    assert notice.startswith(f"Of 500 rows with x from {low} to {high}, {np.count_nonzero(~agree)} do not agree")
    assert list(shared_values(known, rng.random(2_000) < 0.7)) == []


def test_a_curve_is_not_shown_as_a_plane_with_wrong_rows_alone() -> None:
    rng = np.random.default_rng(5)
    x = rng.uniform(0, 10, 800)
    y = np.minimum(x, 6 + 0.1 * (x - 6)) ** 2 + rng.normal(0, 0.3, 800)
    audit = audit_table(pd.DataFrame({"x": x, "y": y.round(3)}), target="y", budget=0.5)
    assert audit.certificate.verdict is Verdict.NOISY
    if audit.n_wrong > 100:
        assert any("a curve or another rule may hold there" in notice for notice in audit.notices)
