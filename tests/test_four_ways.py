"""One table four ways: held in memory, read in blocks, read by a cluster, and checked by the model saved of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("pyarrow", reason="pyarrow is not installed: tables are optional")

from pyarrow import csv, parquet

import golden
from massart.cli import run

Values = NDArray[Any]

ANOTHER, UNEXPLAINED = "value of another row", "unexplained"

OF_A_CHECK = {
    "verdict of other rows": ("explanation", "reason", "eta_max", "wrong_at_most", "confidence", "alpha", "scale"),
    "nor which direction is weak, or what is left open": ("weakest_direction", "undetermined", "thin"),
    "a check has limits of its own": ("saved", "max_unjudged", "passed", "exit_status"),
    "a model does not have the columns without weight, nor say how columns were read": ("coefficients", "notices"),
    "a check searches for nothing": ("second_rule",),
}
"""What a check says otherwise than a fit of the same rows, and why."""


def errors(rng: np.random.Generator, y: Values, share: float) -> Values:
    """Return labels of which a share is wrong: tenfold, of another sign, off by 100, of the row before, or drawn."""
    way = rng.random(len(y)) / share
    drawn = np.round(rng.uniform(1, 300, len(y)), 2)
    ways = [way < 0.3, way < 0.45, way < 0.65, way < 0.75, way < 0.9, way < 1]
    return np.select(ways, [y * 10, -y, np.round(y + 100, 2), np.roll(y, 1), drawn, np.round(y + 0.01, 2)], y)


def plain(rng: np.random.Generator, a: Values, b: Values, c: Values) -> tuple[Values, str]:
    return errors(rng, np.round(2.5 * a + 1.2 * b + 15, 2), 0.25), "columns"


def by_level(rng: np.random.Generator, a: Values, b: Values, c: Values) -> tuple[Values, str]:
    return errors(rng, np.round(3.1 * a + b * np.where(c == "N", 1.1, 1.7) + 9, 2), 0.2), "a, b:c"


def whole(rng: np.random.Generator, a: Values, b: Values, c: Values) -> tuple[Values, str]:
    return errors(rng, np.rint(2.5 * a + 1.2 * b + 15), 0.2), "a, b"


def segment(rng: np.random.Generator, a: Values, b: Values, c: Values) -> tuple[Values, str]:
    y = np.where(b > 80, 4 * a + 1.9 * b, 2.5 * a + 1.2 * b + 15)
    return errors(rng, np.round(y, 2), 0.1), "a, b"


def of_a_gap(rng: np.random.Generator, a: Values, b: Values, c: Values) -> tuple[Values, str]:
    y = np.where(c == "", 4 * a + 1.9 * b, 2.5 * a + 1.2 * b + 15)
    return errors(rng, np.round(y, 2), 0.1), "a, b"


def noisy(rng: np.random.Generator, a: Values, b: Values, c: Values) -> tuple[Values, str]:
    y = np.round(2.5 * a + 1.2 * b + 15 + rng.normal(0, 3, len(a)), 2)
    return np.where(rng.random(len(a)) < 0.1, 3 * y, y), "columns"


def clipped(rng: np.random.Generator, a: Values, b: Values, c: Values) -> tuple[Values, str]:
    return errors(rng, np.round(np.maximum(0, 4 * a + 1.5 * b - 90), 2), 0.15), "a, b"


def swapped(rng: np.random.Generator, a: Values, b: Values, c: Values) -> tuple[Values, str]:
    y = np.round(2.5 * a + 1.2 * b + 15, 2)
    first, second = rng.permutation(len(y))[:120].reshape(2, -1)
    y[first], y[second] = y[second], y[first].copy()
    return errors(rng, y, 0.05), "a, b"


CASES = (plain, by_level, whole, segment, of_a_gap, noisy, clipped, swapped)


@pytest.fixture(scope="module")
def address() -> Iterator[str | None]:
    with golden.cluster() as found:
        yield found


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_table_says_the_same_four_ways(
    case: Callable[..., tuple[Values, str]],
    address: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    rng, n = np.random.default_rng(0), 700
    a, b = rng.integers(1, 40, n), np.round(rng.uniform(1, 90, n), 2)
    clerk, c = rng.choice(["x", "y", "z"], n), rng.choice(["N", "S", "W"], n)
    if case is of_a_gap:  # in a column that the rule does not read
        c = np.where(rng.random(n) < 0.1, "", c)
    y, terms = case(rng, a, b, c)
    lines = [f"{i},{a[i]},{'' if i % 31 == 5 else b[i]},{c[i]},{clerk[i]},{y[i]}" for i in range(n)]
    Path("t.csv").write_text("\n".join(["id,a,b,c,clerk,y", *lines]) + "\n")
    parquet.write_table(csv.read_csv("t.csv"), "t.parquet", row_group_size=90)

    def said(*arguments: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        run([*arguments, "--id", "id", "--group", "clerk", "--audit", "audit.csv", "--json", "--all-rows"])
        found = json.loads(capsys.readouterr().out)
        found = found["tables"][0] if "tables" in found else found
        table = csv.read_csv("audit.csv").sort_by("row").to_pylist()
        rows = [row for row in table if row["wrong"] or (row["kind"] or "").endswith("?")]
        return found, [{name: cell for name, cell in row.items() if name != "rank"} for row in rows]

    fit = ("--target", "y", "--terms", terms, *(("--model", "relu") if case is clipped else ()))
    whole, rows = said("fit", "t.csv", *fit, "--save", "model.json")
    assert len(rows) > 50
    assert said("fit", "t.csv", *fit, "--max-memory", "10kB") == (whole, rows)
    if address is not None:
        found, listed = said("fit", "t.parquet", *fit, "--max-memory", "10kB", "--dask", address)
        assert ({**found, "table": "t.csv"}, len(listed)) == (whole, len(rows))
    other = {name for names in OF_A_CHECK.values() for name in names}
    for memory in ("1GB", "10kB"):
        found, listed = said("check", "model.json", "t.csv", "--max-memory", memory)
        if memory == "10kB" and ANOTHER in {row["kind"] for row in rows}:  # which takes all rows to be known
            rows = [{**row, "kind": UNEXPLAINED if row["kind"] == ANOTHER else row["kind"]} for row in rows]
            found |= {name: whole[name] for name in ("kinds", "worst_rows")}
        assert listed == rows
        if whole["segment"]:
            found["segment"] |= {name: whole["segment"][name] for name in ("formula", "rows_follow_formula")}
        differ = {name for name in whole.keys() & found.keys() if whole[name] != found[name]}
        assert differ <= other
        assert found["formula"] == whole["formula"]
