from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import massart

pytest.importorskip("typer", reason="typer is not installed: the command line is optional")

pytest.importorskip("pyarrow", reason="pyarrow is not installed: the command line reads tables with it")
pytest.importorskip("jinja2", reason="jinja2 is not installed: the demo writes a report with it")

from massart.cli import run


@pytest.mark.slow
def test_the_demo_recovers_the_price_list_and_writes_its_files(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["demo"]) == 0
    out, err = capsys.readouterr()
    found = " ".join(out.split())
    assert "+ 95 * (service = installation) + hours * rate - 1.4 * max(0, items - 10) CONFIRMED" in found
    assert "worst of" in out
    compared = out[out.index("least squares") :]
    assert compared.count("max(0, items - 10)") == compared.count("service = repair") == 1  # each term once
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "massart-audit.csv",
        "massart-ledger.csv",
        "massart-report.html",
    ]
    (command,) = [line for line in err.splitlines() if line.startswith("$ ")]
    report = (tmp_path / "massart-report.html").read_bytes()
    assert run(command.split()[2:]) == 0  # the command that it shows makes the same page
    assert (tmp_path / "massart-report.html").read_bytes() == report


@pytest.mark.parametrize(
    "arguments",
    [
        ["demo", "--nonsense"],
        ["demo", "--seed", "two"],
        ["demo", "--seed", "-1"],
        ["demo", "--rows", "3"],
        ["demo", "--out", "no-such-folder"],
        ["demo", "--out", __file__],
        ["fit"],
        ["fit", "no-such-file.csv"],
        ["fit", "no-such-file.csv", "--target", "y"],
        ["fit", "no-such-file.csv", "--target", "y", "--model", "cubic"],
        ["fit", "no-such-file.csv", "--target", "y", "--max-wrong", "2"],
        ["predict", "no-such-model.json", "no-such-file.csv"],
        ["no-command"],
    ],
)
def test_bad_arguments_are_one_line_and_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert err.startswith("massart: ")


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"massart {massart.__version__}\n"
    for arguments in ([], ["--help"]):
        assert run(arguments) == 0
        assert "demo" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["fit", "check", "scan", "predict", "export", "demo", "reproduce"])
def test_help_has_groups_and_two_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "--help"]) == 0
    options, examples = capsys.readouterr().out.split("Examples:")
    assert examples.count(f"massart {command}") == 2
    assert not re.search(r"<(str|path|int|float|list)|\{", options)  # types of Python
    if command in ("fit", "check", "predict"):
        assert {"Input:", "Verdict:", "Output:"} <= {line.strip() for line in options.splitlines()}


def test_a_shell_completes_commands_and_options() -> None:
    for words, completed in (("massart fi", "fit"), ("massart fit --wrong", "--wrong-at-most")):
        asked = {"_MASSART_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        program = [sys.executable, "-m", "massart"]
        done = subprocess.run(program, env=os.environ | asked, capture_output=True, text=True, check=True)
        assert done.stdout.split() == [completed]


def test_without_a_target_the_columns_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "ledger.csv"
    file.write_text("day,zone,hours,total\n2024-01-05,north,3,7.5\n2024-01-06,south,4,10\n2024-01-07,north,5,12.5\n")
    assert run(["fit", str(file)]) == 2
    out, err = capsys.readouterr()
    assert [line.split()[:2] for line in out.splitlines()[1:5]] == [
        *(["day", "dates"], ["zone", "texts"], ["hours", "numbers"], ["total", "numbers"])
    ]
    assert f"massart fit {file} --target total" in out
    assert f"massart scan {file}" in out
    assert "--target must name the column" in err


def test_without_typer_there_is_one_clear_line() -> None:
    program = "import sys; sys.modules['typer'] = None; from massart.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "massart: the command line needs typer: pip install 'massart[cli]'\n"


@pytest.mark.slow
def test_reproduce_writes_a_page_and_prints_where(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: figures are optional")
    from massart.experiments import reproduce
    from massart.experiments.experiment import Entrant
    from massart.experiments.figure_1 import Figure1a

    tiny = Figure1a(d=4, m=20, etas=(0.1,), entrants=(Entrant("naive_l1", published=True),))
    monkeypatch.setitem(reproduce.FIGURES, "fig1a", (tiny,))
    assert run(["reproduce", "fig1a", "--out", str(tmp_path / "new" / "figures"), "--trials", "2", "--jobs", "1"]) == 0
    out, err = capsys.readouterr()
    assert out == f"{tmp_path / 'new' / 'figures' / 'index.html'}\n"
    assert "massart" not in err
    page = Path(out.strip()).read_text(encoding="utf-8")
    assert "massart reproduce fig1a --trials 2 --seed 0" in page


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fig3"], "no figure 'fig3': choose from fig1a, fig1b, fig2a, fig2b, phase, all"),
        ([], "FIGURE"),
        (["fig1a", "--trials", "0"], "--trials"),
        (["fig1a", "--jobs", "0"], "--jobs"),
        (["fig1a", "--seed", "-1"], "--seed"),
        (["fig1a", "--data", "drug.mat"], "--data is for fig2b"),
        (["fig2b", "--data", "no-such-file.mat"], "cannot read the drug-discovery file no-such-file.mat"),
        (["fig2b", "--data", __file__], "is not the drug-discovery file: its SHA-256 starts with"),
        (["fig1a", "--out", f"{__file__}/figures"], "cannot be written to"),
    ],
)
def test_reproduce_refuses_bad_input_in_one_line(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: figures are optional")
    monkeypatch.chdir(tmp_path)
    assert run(["reproduce", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert words in err


@pytest.mark.slow
def test_reproduce_without_matplotlib_is_one_line(tmp_path: Path) -> None:
    program = "import sys; sys.modules['matplotlib'] = None; from massart.__main__ import main; main()"
    command = [sys.executable, "-c", program, "reproduce", "fig1a", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "massart: figures need matplotlib: install massart[plot]\n"
