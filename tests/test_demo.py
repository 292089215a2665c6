from __future__ import annotations

import numpy as np
import pytest

from massart.demo import CHARGES, CLERKS, ID, PRICES, TARGET, make_ledger


def right_totals(columns: dict[str, list[object]]) -> np.ndarray:
    inputs = [np.array([0.0 if v is None else float(v) for v in columns[name]]) for name in ("hours", "items", "km")]
    weekend = np.array([value == "yes" for value in columns["weekend"]])
    charge = np.array([CHARGES[name] for name in columns["service"]])
    return np.column_stack([*inputs, weekend]) @ np.array(list(PRICES.values())) + charge


@pytest.mark.parametrize("seed", range(3))
def test_about_a_third_of_the_totals_are_wrong_and_some_clerks_are_worse(seed: int) -> None:
    columns = make_ledger(np.random.default_rng(seed), 20_000)
    given = np.array([float(text.replace(",", "")) for text in columns[TARGET]])
    complete = np.array([hours is not None for hours in columns["hours"]])
    wrong = np.abs(given - right_totals(columns))[complete] > 1e-6
    assert abs(wrong.mean() - 0.36) < 0.02
    clerk = np.array(columns["clerk"])[complete]
    shares = {name: wrong[clerk == name].mean() for name in CLERKS}
    assert min(shares, key=shares.__getitem__) == "Clark"
    assert max(shares.values()) < 0.48


def test_ids_are_distinct_and_the_same_seed_gives_the_same_ledger() -> None:
    first, again, other = (make_ledger(np.random.default_rng(seed), 300) for seed in (0, 0, 1))
    assert len(set(first[ID])) == 300
    assert first[TARGET] == again[TARGET] != other[TARGET]
