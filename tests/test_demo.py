from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from massart import audit_table
from massart.demo import CLERKS, GROUP, ID, TARGET, make_ledger, right_totals


def is_wrong(columns: dict[str, list[str]]) -> np.ndarray:
    given = np.array([float(text.replace(",", "")) for text in columns[TARGET]])
    return np.abs(given - right_totals(columns)) > 1e-6  # not where the hours are missing


@pytest.mark.parametrize("seed", range(3))
def test_about_a_fifth_of_the_totals_are_wrong_and_some_clerks_are_worse(seed: int) -> None:
    columns = make_ledger(np.random.default_rng(seed), 20_000)
    wrong = is_wrong(columns)
    assert abs(wrong.mean() - 0.19) < 0.02
    clerk = np.array(columns[GROUP])
    shares = {name: wrong[clerk == name].mean() for name in CLERKS}
    assert min(shares, key=shares.__getitem__) == "Clark"
    assert max(shares.values()) < 0.3


@pytest.mark.full(first=1)
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_price_list_is_confirmed_and_every_wrong_row_has_its_kind(seed: int) -> None:
    columns = make_ledger(np.random.default_rng(seed))
    found = audit_table(columns, TARGET, id=ID, group=GROUP, budget=600)  # whatever else is running
    assert found.certificate.verdict.name == "CONFIRMED"
    assert {term.label: term.coef for term in found.formula.all_terms if term.coef} == {
        "hours * rate": 1.0,
        "items": 7.9,
        "max(0, items - 10)": -1.4,
        "weekend": 25.0,
        "service = repair": 35.0,
        "service = inspection": 20.0,
        "service = installation": 95.0,
    }
    assert np.array_equal(found.wrong, is_wrong(columns)[found.design.kept])
    assert {kind.label for kind in found.kinds.kinds} == {
        "factor 1.08",
        "factor 10",
        "digits swapped",
        "weekend forgotten",
    }


def test_ids_are_distinct_and_the_same_seed_gives_the_same_ledger() -> None:
    first, again, other = (make_ledger(np.random.default_rng(seed), 300) for seed in (0, 0, 1))
    assert len(set(first[ID])) == 300
    assert first[TARGET] == again[TARGET] != other[TARGET]


@pytest.mark.slow
def test_the_readme_shows_what_is_printed() -> None:
    pytest.importorskip("typer", reason="typer is not installed: the command line is optional")
    from massart.cli.layout import lines

    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```\n(total = .*?)```", readme, re.DOTALL)
    found = audit_table(make_ledger(np.random.default_rng(0)), TARGET, id=ID, budget=600)
    printed = list(lines(found))
    assert [line for line in shown.splitlines() if line not in printed] == ["..."]
