"""A ? in a term stands for a constant that is found, and rows that chose it never confirm it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from massart.certificate import Verdict
from massart.rules import TermError

pytest.importorskip("pyarrow", reason="pyarrow is not installed: tables are optional")

from massart import audit_table
from massart.cli import run

N = 1_200

RULES = {
    "max(0, km - ?), km": (lambda f: 12 + 0.8 * f["km"] + 0.35 * np.maximum(0, f["km"] - 65), "max(0, km - 65)"),
    "min(km, ?)": (lambda f: 4 + 1.1 * np.minimum(f["km"], 120), "min(km, 120)"),
    "exp(? * t)": (lambda f: 5000 * np.exp(-0.085 * f["t"]), "exp(-0.085 * t)"),
    "(1 + ?)^t": (lambda f: 1000 * 1.035 ** f["t"], "(1 + 0.035)^t"),
    "x / (? + x)": (lambda f: 250 * f["x"] / (7.5 + f["x"]), "x / (7.5 + x)"),
    "ceil(km / ?)": (lambda f: 3 + 2.5 * np.ceil(f["km"] / 15), "ceil(km / 15)"),
    "x^?": (lambda f: 20 * f["x"] ** 0.7, "x^0.7"),
    "log(1 + x / ?)": (lambda f: 300 * np.log(1 + f["x"] / 4), "log(1 + x / 4)"),
    "x, x * (km > ?)": (lambda f: 9 * f["x"] - 1.5 * f["x"] * (f["km"] > 25), "x * (km > 25)"),
    "x, x * (day >= ?)": (lambda f: f["x"] * (9 + (f["day"] >= np.datetime64("2024-07-01"))), "(day >= 2024-07-01)"),
    "km, max(0, km - ?), max(0, km - ?)": (
        lambda f: 1.2 * f["km"] - 0.4 * np.maximum(0, f["km"] - 50) - 0.3 * np.maximum(0, f["km"] - 130),
        "max(0, km - 130)",
    ),
    "1 / (1 + exp((? - t) / ?))": (lambda f: 900 / (1 + np.exp((14 - f["t"]) / 2.5)), "exp((14 - t) / 2.5)"),
}


def table(rule: Any, wrong: float, seed: int = 1, n: int = N) -> tuple[dict[str, Any], Any]:
    """Return a table with wrong labels (forgotten parts, rates, values of other rows), and where they are."""
    rng = np.random.default_rng(seed)
    frame: dict[str, Any] = {
        "km": rng.integers(0, 200, n).astype(float),
        "x": np.round(rng.uniform(0.1, 50, n), 2),
        "t": np.round(rng.uniform(0, 30, n), 1),
        "day": np.datetime64("2024-01-01") + rng.integers(0, 360, n).astype("timedelta64[D]"),
    }
    right = np.round(rule(frame), 2)
    odd = np.choose(rng.integers(0, 3, n), [right * 1.19, right + rng.choice([5, 10, 25], n), rng.permutation(right)])
    y = np.where(rng.random(n) < wrong, np.round(odd, 2), right)
    return {**frame, "y": y}, y != right


@pytest.mark.parametrize("terms", RULES)
def test_constants_are_found_as_they_were_written(terms: str) -> None:
    rule, written = RULES[terms]
    frame, planted = table(rule, 0.4)
    audit = audit_table(frame, "y", terms=terms)
    assert written in str(audit.formula)
    assert audit.is_rule
    assert not (audit.wrong & ~planted).any()
    assert (audit.wrong & planted).sum() >= 0.99 * planted.sum()
    assert audit.notices[-1].startswith("Found")


def test_constants_are_no_less_exact_where_much_is_tolerated() -> None:
    frame, _ = table(RULES["max(0, km - ?), km"][0], 0.3, n=600)
    audit = audit_table(frame, "y", terms="max(0, km - ?), km", tolerance=1.0)
    assert str(audit.formula) == "y = 0.35 * max(0, km - 65) + 0.8 * km + 12"


def test_rows_that_chose_a_constant_prove_nothing() -> None:
    verdicts = []
    for n in (60, 600):  # of few rows, all choose
        frame, _ = table(RULES["x / (? + x)"][0], 0.0, n=n)
        assert audit_table(frame, "y", terms="x / (7.5 + x)").certificate.verdict is Verdict.PROVEN
        verdicts.append(audit_table(frame, "y", terms="x / (? + x)").certificate.verdict)
    assert verdicts == [Verdict.MAJORITY, Verdict.CONFIRMED]


@pytest.mark.slow
def test_labels_that_say_nothing_have_no_constant() -> None:
    accepted = 0
    for seed in range(4):
        frame, _ = table(lambda f: np.random.default_rng(7).normal(300, 90, 400), 0.0, seed, 400)
        for terms in ("max(0, km - ?), km", "x * (t > ?)", "exp(? * t)"):
            audit = audit_table(frame, "y", terms=terms)
            accepted += audit.is_rule
            (missed,) = (notice for notice in audit.notices if notice.startswith("No constant was found for "))
            assert "came closest" in missed
    assert accepted == 0


def test_a_step_that_a_few_wrong_rows_suggest_is_left_out() -> None:
    n_left_out = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x, z = rng.integers(1, 90, 600).astype(float), rng.integers(0, 300, 600).astype(float)
        y = 3 * x + 5 + 7 * (rng.random(600) < 0.35)  # wrong alike, so that some of them lie together
        for terms in ("x, (z > ?)", "x, x * (? < z <= ?)", "x, max(0, z - ?)"):
            audit = audit_table({"x": x, "z": z, "y": y}, "y", terms=terms)
            assert str(audit.formula) == "y = 3 * x + 5"
            n_left_out += "left out" in audit.notices[-1]
    assert n_left_out == 15


@pytest.mark.parametrize(
    ("terms", "why"),
    [
        ("? * km", "found without a ?"),
        ("km + ?", "found without a ?"),
        ("?", "found without a ?"),
        ("lag(y), max(0, km - ?)", "looks at other rows"),
        ("exp(? * t), x^?, t^?, min(km, ?), min(x, ?)", "5 constants are asked for, and 4 is the most"),
        ("C(ceil(x / ?))", "has no value until the constant is found"),
    ],
)
def test_what_cannot_be_looked_for_is_one_line(terms: str, why: str) -> None:
    frame, _ = table(RULES["x^?"][0], 0.1)
    with pytest.raises(TermError, match=why.replace("?", "[?]")):
        audit_table(frame, "y", terms=terms)


def test_the_command_line_finds_saves_and_exports_a_constant(tmp_path: Any, capsys: Any) -> None:
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    frame, planted = table(RULES["max(0, km - ?), km"][0], 0.35)
    file, model = tmp_path / "trips.csv", tmp_path / "rule.json"
    pd.DataFrame(frame).to_csv(file, index=False)
    terms = "max(0, km - ?), km"
    assert run(["fit", str(file), "--target", "y", "--terms", terms, "--save", str(model), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows_wrong"] == planted.sum()
    assert run(["check", str(model), str(file), "--max-wrong", "0.5"]) == 0
    assert run(["export", str(model), "--to", "sql"]) == 0
    assert "65e0" in capsys.readouterr().out
    assert run(["fit", str(file), "--formula", "y ~ max(0, km - ?) + km"]) == 0
    assert "max(0, km - 65)" in capsys.readouterr().out
