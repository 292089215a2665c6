from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import massart

pytest.importorskip("typer", reason="typer is not installed: the command line is optional")

from massart.cli import run
from massart.demo import COLUMNS, Ledger


def test_the_demo_recovers_the_price_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo"]) == 0
    out, err = capsys.readouterr()
    assert "total = 54 hours + 7.9 items + 25 weekend + 0.42 km + 35 callout" in out
    assert "rows that do not follow the formula" in out
    assert "seed 0" in err


def test_the_demo_prints_the_same_for_the_same_seed(capsys: pytest.CaptureFixture[str]) -> None:
    outputs = []
    for seed in ("3", "3", "4"):
        run(["demo", "--seed", seed])
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1] != outputs[2]


def test_the_demo_exits_with_1_when_no_majority_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_a_rule(rng: np.random.Generator, n_rows: int) -> Ledger:
        return Ledger(COLUMNS, rng.standard_normal((n_rows, 5)), rng.standard_normal(n_rows))

    monkeypatch.setattr("massart.demo.make_ledger", without_a_rule)
    assert run(["demo", "--rows", "50"]) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["demo", "--nonsense"],
        ["demo", "--seed", "two"],
        ["demo", "--seed", "-1"],
        ["demo", "--rows", "3"],
        ["no-command"],
    ],
)
def test_bad_arguments_are_one_line_and_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert err.startswith("massart: ")


def test_bad_input_is_one_line_and_status_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("X must be finite, got NaN at row 3")

    monkeypatch.setattr("massart.demo.fit", refuse)
    assert run(["demo"]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == "massart: X must be finite, got NaN at row 3"


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"massart {massart.__version__}\n"
    for arguments in ([], ["--help"]):
        assert run(arguments) == 0
        assert "demo" in capsys.readouterr().out


def test_the_module_runs_as_a_program() -> None:
    done = subprocess.run([sys.executable, "-m", "massart", "--version"], check=True, capture_output=True, text=True)
    assert done.stdout == f"massart {massart.__version__}\n"


def test_without_typer_there_is_one_clear_line() -> None:
    program = "import sys; sys.modules['typer'] = None; from massart.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "massart: the command line needs typer: install massart[cli]\n"
