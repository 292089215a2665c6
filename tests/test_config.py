"""``massart.toml``: many tables and rules in one run, and no key that is read as nothing."""

from __future__ import annotations

import json
import shlex
import textwrap
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("typer", reason="typer is not installed: the command line is optional")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: the command line reads tables with it")

import numpy as np

from massart.audit import audit_table
from massart.cli import run


def table(seed: int, *, wrong: int = 0, rate: float = 3.5) -> str:
    rng = np.random.default_rng(seed)
    hours, km = rng.integers(1, 99, 200), rng.integers(1, 99, 200)
    total, tax = rate * hours + 2 * km + 7, 0.5 * hours + 1
    total[:wrong] += 1000 + np.arange(wrong)
    rows = zip(hours, km, total, tax, strict=True)
    return "hours,km,total,tax\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with two rules, tables, and a configuration that knows them."""
    (tmp_path / "rules").mkdir()
    (tmp_path / "data").mkdir()
    for name in ("may", "june", "july"):
        (tmp_path / "data" / f"{name}.csv").write_text(table(len(name)))
    for target in ("total", "tax"):
        found = audit_table(tmp_path / "data" / "may.csv", target, exclude=[{"total": "tax", "tax": "total"}[target]])
        found.model().save(tmp_path / "rules" / f"{target}.json")
    (tmp_path / "massart.toml").write_text(
        """
max_wrong = 0.0

[[check]]
model = ["rules/total.json", "rules/tax.json"]
files = ["data/*.csv"]

[[check]]
target = "total"
files = "data/may.csv"
max_wrong = 0.1
require = "confirmed"
"""
    )
    return tmp_path


@pytest.mark.slow
def test_one_run_checks_all(project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project / "data")  # paths are relative to the configuration
    config = ["check", "--config", "../massart.toml"]
    assert run(config) == 0
    assert capsys.readouterr().out == "7 checks: 7 passed. 0 of 1,400 rows are wrong (0 %); 0 not judged.\n"
    (project / "data" / "june.csv").write_text(table(9, wrong=3))
    assert run(config) == 3
    out = capsys.readouterr().out.splitlines()
    assert len(out) == 2
    assert "june.csv (total): 3 of 200 rows are wrong" in out[0]
    assert out[1] == "7 checks: 6 passed, 1 with too many wrong rows. 3 of 1,400 rows are wrong (0.2 %); 0 not judged."
    assert run([*config, "--max-wrong", "0.5", "--json"]) == 0  # the command line has the last word
    found = json.loads(capsys.readouterr().out)
    rules = [(Path(one["file"]).name, Path(one["rule"]).stem, one["rows_wrong"]) for one in found["tables"]]
    pairs = [(f"{name}.csv", rule) for name in ("july", "june", "may") for rule in ("total", "tax")]
    assert rules == [(*pair, 3 * (pair == ("june.csv", "total"))) for pair in pairs] + [("may.csv", "total", 0)]
    monkeypatch.chdir(project)
    assert run(["check"]) == 3  # massart.toml is there


def test_the_share_of_rows_that_are_not_judged_has_a_limit_of_its_own(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = table(7).splitlines()
    gaps = [f"{line.split(',')[0]},,{line.split(',', 2)[2]}" for line in lines[1:9]]
    (project / "data" / "june.csv").write_text("\n".join([lines[0], *gaps, *lines[9:]]) + "\n")
    config = project / "massart.toml"
    check = ["check", "--config", str(config)]
    assert run(check) == 0
    assert "8 of 1,400 rows are not judged (0.6 %)." in capsys.readouterr().out
    config.write_text("max_unjudged = 0.01\n" + config.read_text())
    assert run(check) == 1
    failed, told = capsys.readouterr().out.splitlines()
    assert "june.csv (total): 8 of 200 rows are not judged (4.0 %), more than 1 % (--max-unjudged); 0 of 192" in failed
    assert told.startswith("7 checks: 6 passed, 1 with too few judged rows. ")
    assert run([*check, "--max-unjudged", "0.04"]) == 0  # the command line has the last word


@pytest.mark.parametrize(("text", "words"), [
    ('max_wong = 0\n[[check]]\nmodel = "m"\nfiles = "f"', "unknown key 'max_wong': did you mean max_wrong?"),
    ('[[check]]\nmodel = "m"\nfile = "f"', "[[check]] 1: unknown key 'file': did you mean files?"),
    ('[[check]]\nmodel = "m"\nfiles = "f"\n[[check]]\nfiles = "f"', "[[check]] 2: one of model and target"),
    ('[[check]]\nmodel = "m"\ntarget = "t"\nfiles = "f"', "one of model and target"),
    ('[[check]]\nmodel = "m"', "files is missing"),
    ('[[check]]\nmodel = 3\nfiles = "f"', "model must be a text or a list of texts, got 3"),
    ('[[check]]\nmodel = []\nfiles = "f"', "model must be a text or a list of texts"),
    ('max_wrong = "1 %"\n[[check]]\nmodel = "m"\nfiles = "f"', "max_wrong must be a number from 0 to 1, got '1 %'"),
    ('max_wrong = true\n[[check]]\nmodel = "m"\nfiles = "f"', "max_wrong must be a number"),
    ('max_wrong = 5\n[[check]]\nmodel = "m"\nfiles = "f"', "max_wrong must be a number from 0 to 1"),
    ('max_unjudged = 5\n[[check]]\nmodel = "m"\nfiles = "f"', "max_unjudged must be a number from 0 to 1, got 5"),
    ('max_unjuged = 0\n[[check]]\nmodel = "m"\nfiles = "f"', "unknown key 'max_unjuged': did you mean max_unjudged?"),
    ('max_wrong = nan\n[[check]]\nmodel = "m"\nfiles = "f"', "max_wrong must be a number from 0 to 1"),
    ('require = "sure"\n[[check]]\nmodel = "m"\nfiles = "f"', '"majority", "confirmed" or "proven"'),
    ('inliers = "some"\n[[check]]\ntarget = "m"\nfiles = "f"', 'inliers must be "auto", "exact" or "noisy"'),
    ('[[check]]\nmodel = "m"\ntolerance = 1\nfiles = "f"', "tolerance is asked of a target; a model has its own"),
    ('strict = 1\n[[check]]\nmodel = "m"\nfiles = "f"', "strict must be true or false"),
    ("max_wrong = 0.1", "a [[check]] has to say what to check"),
    ("check = 3", "a [[check]] has to say what to check"),
    ("[[check]", "this is not TOML"),
    ('[[check]]\nmodel = "m"\nfiles = "*.nothing"', "no file has such a name"),
])  # fmt: skip
def test_what_is_wrong_is_named(text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "massart.toml"
    path.write_text(text)
    assert run(["check", "--config", str(path)]) == 2
    assert words in capsys.readouterr().err


def rules_of(config: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the rules that a configuration asks for; their tables are not there."""
    assert run(["check", "--config", str(config), "--json"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert {one["exit_status"] for one in found["tables"]} == {2}
    return [Path(one["rule"]).stem for one in found["tables"]]


def test_the_examples_of_the_docs_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[1] / "docs" / "pipelines.rst").read_text()
    example = textwrap.dedent(page.split(".. code-block:: toml", 1)[1].split("Keys are", 1)[0])
    (tmp_path / "exports").mkdir()
    (tmp_path / "exports" / "may.csv").write_text("x")
    (tmp_path / "massart.toml").write_text(example)
    assert rules_of(tmp_path / "massart.toml", capsys) == ["total", "tax", "balance"]
    yaml = pytest.importorskip("yaml")
    blocks = [block.split("\n\n", 2)[1] for block in page.split(".. code-block:: yaml")[1:]]
    pipeline, hook = (yaml.safe_load(textwrap.dedent(block)) for block in blocks)
    steps = [step["run"] for step in pipeline["jobs"]["tables"]["steps"] if "run" in step]
    assert steps[-1].startswith("massart check --config massart.toml")
    assert hook["repos"][0]["hooks"][0]["entry"].startswith("massart check rules/total.json")


@pytest.mark.slow
def test_the_hook_of_the_docs_passes_and_fails(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pre-commit runs its entry with the names of the files behind it."""
    page = (Path(__file__).parents[1] / "docs" / "pipelines.rst").read_text()
    entry = shlex.split(next(line for line in page.splitlines() if "entry: " in line).split("entry: ")[1])
    assert entry[0] == "massart"
    monkeypatch.chdir(project)
    assert run([*entry[1:], "data/may.csv", "data/june.csv"]) == 0
    (project / "data" / "june.csv").write_text(table(9, wrong=3))
    assert run([*entry[1:], "data/may.csv", "data/june.csv"]) == 3


def test_the_example_of_the_module_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = find_spec("massart.cli.config")
    assert found is not None
    example = textwrap.dedent(Path(str(found.origin)).read_text().split("::", 1)[1].split("Paths are", 1)[0])
    (tmp_path / "exports").mkdir()
    (tmp_path / "exports" / "may.csv").write_text("x")
    (tmp_path / "massart.toml").write_text(example)
    assert rules_of(tmp_path / "massart.toml", capsys) == ["total", "balance"]


def test_what_a_fit_may_be_asked_for_is_asked_in_a_configuration_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [(k % 7 + 1, k % 5 + 2, k, 3 * (k % 7 + 1) * (k % 5 + 2)) for k in range(70)]
    (tmp_path / "t.csv").write_text("qty,price,note,y\n" + "".join(f"{a},{b},{c},{d}\n" for a, b, c, d in rows))
    asked = 'target = "y"\nterms = "qty*price, price"\nwrong_at_most = 0.3\nexclude = ["note"]\nfiles = "t.csv"\n'
    (tmp_path / "massart.toml").write_text(f"[[check]]\n{asked}")
    assert run(["check", "--config", str(tmp_path / "massart.toml"), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["tables"]
    assert found["formula"] == "y = 3 * qty * price"
    (tmp_path / "massart.toml").write_text("[[check]]\n" + asked.replace('"qty*price, price"', '"note"'))
    assert run(["check", "--config", str(tmp_path / "massart.toml")]) == 2  # a term of a column that is excluded
