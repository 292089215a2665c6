"""The benchmark of tables without a rule: its tables have none, and it fails when a rule is claimed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import no_rule
import ruleless_tables
from ruleless_tables import FAMILIES


@pytest.mark.parametrize("family", FAMILIES)
def test_a_table_depends_on_its_seed_alone(family: str) -> None:
    some, again, other = (no_rule.draw(family, seed) for seed in (3, 3, 4))
    assert list(some.columns) == list(again.columns)
    for name, values in some.columns.items():
        np.testing.assert_array_equal(values, again.columns[name])
    assert len({len(values) for values in some.columns.values()}) == 1
    assert some.target in some.columns
    assert len(some.columns) >= 2
    assert list(some.columns) != list(other.columns) or any(
        not np.array_equal(values, other.columns[name]) for name, values in some.columns.items()
    )


def test_a_shuffled_target_has_the_same_values_and_no_relation_to_a_column() -> None:
    shuffled = no_rule.draw("public-shuffled", 1)
    values = shuffled.columns[shuffled.target].astype(float)
    numbers = [column.astype(float) for name, column in shuffled.columns.items() if name != shuffled.target]
    assert max(abs(np.corrcoef(values, column)[0, 1]) for column in numbers if column.std()) < 5 / np.sqrt(len(values))


def test_an_exchanged_target_is_near_the_right_one_and_seldom_equal() -> None:
    rng = np.random.default_rng(0)
    for right in (rng.integers(0, 1_000_000, 800), np.rint(rng.gamma(2, 300, 2_000)), rng.integers(0, 90, 500)):
        given = ruleless_tables.exchange(rng, right)
        assert (given == right).mean() < 0.05
        assert np.corrcoef(given, right)[0, 1] > 0.9
        np.testing.assert_array_equal(np.sort(given), np.sort(right))


def test_public_data_have_their_targets_and_no_column_that_is_derived() -> None:
    for name, targets in ruleless_tables.PUBLIC.items():
        columns = ruleless_tables.public_columns(name)
        assert set(targets) <= set(columns)
        assert not set(ruleless_tables.DERIVED) & set(columns)
        assert len(columns) >= 2


def record(verdict: str, family: str = "noise", seed: int = 1) -> no_rule.Record:
    return no_rule.Record(family, seed, 500, 5, verdict, 300, 200, 0.5, "value = 2 * x")


@pytest.mark.parametrize(
    ("verdicts", "fails"),
    [
        (["NONE"] * 100 + ["NOISY"] * 20, False),
        (["NONE"] * 100 + ["PLURALITY"], False),
        (["NONE"] * 100 + ["PLURALITY", "MAJORITY"], True),
        (["NONE"] * 1100 + ["PLURALITY", "MAJORITY"], False),
        (["NONE"] * 1100 + ["CONFIRMED"], True),
    ],
)
def test_it_fails_when_more_than_one_in_500_is_accepted_or_one_is_certain(verdicts: list[str], fails: bool) -> None:
    records = [record(verdict) for verdict in verdicts]
    assert no_rule.has_failed(records) is fails
    accepted = sum(verdict not in ("NONE", "NOISY") for verdict in verdicts)
    assert f"accepted {accepted} of {len(verdicts)} " in no_rule.report(records)


@pytest.mark.slow
def test_a_run_goes_on_from_its_journal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = tmp_path / "no_rule.jsonl"
    asked = ["--families", "few-rows", "--journal", str(journal)]
    assert no_rule.main([*asked, "--tables", "1"]) == 0
    first = journal.read_text().splitlines()
    journal.write_text(first[0] + '\n{"family": "few-')  # killed while it wrote
    assert no_rule.main([*asked, "--tables", "2"]) == 0
    lines = journal.read_text().splitlines()
    assert lines[0] == first[0]
    assert len(lines) == 3
    assert "few-rows       2" in capsys.readouterr().out


def test_an_estimate_of_which_no_row_between_its_limits_is_trusted_is_an_estimate_without_limits() -> None:
    """Half of the labels are at a limit, and the step that takes them into account had no row left."""
    audit = no_rule.audited(no_rule.draw("classes", 2909110012))
    assert audit.certificate.verdict.name in ("NOISY", "NONE")
    assert np.isfinite(np.asarray(audit.implied, dtype=float)).all()
