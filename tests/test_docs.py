"""What the documentation shows is what happens."""

from __future__ import annotations

import ast
import doctest
import importlib
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import massart
import massart.paper

_ROOT = Path(__file__).parents[1]
_DOCS = _ROOT / "docs"
_PAGES = sorted(str(path.relative_to(_DOCS)) for path in [*_DOCS.glob("*.rst"), *_DOCS.glob("api/*.rst")])
_MODULES = [
    module.name for module in pkgutil.walk_packages(massart.__path__, "massart.") if module.name != "massart.__main__"
]


def _text(page: str) -> str:
    return (_DOCS / page).read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("page", _PAGES)
def test_examples_of_the_pages(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    failed, _ = doctest.testfile(str(_DOCS / page), module_relative=False, encoding="utf-8")
    assert failed == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", _MODULES)
def test_examples_of_the_docstrings(name: str) -> None:
    if name == "massart.cli":
        pytest.importorskip("typer", reason="typer is not installed: the command line is optional")
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def test_example_of_the_readme(capsys: pytest.CaptureFixture[str]) -> None:
    readme = (_ROOT / "README.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    exec(program, {})
    shown = re.findall(r"print\(.*\)\s+# (.*)", program)
    assert capsys.readouterr().out.splitlines() == shown


# Shell blocks. In ``code-block:: sh`` every command has to succeed; in ``code-block:: console``, commands behind "$ "
# (and "> ") print what stands below them, where a line of three dots stands for any lines. A comment ``.. sh:``
# prepares what a page takes for granted, and ``.. not run:`` before a block gives the reason.
_BLOCK = re.compile(
    r"^\.\. (?:(?P<hidden>sh): (?P<first>.*)|(?P<reason>not run): .*|code-block:: (?P<kind>sh|console))\n"
    r"(?P<body>(?:[ ]{3,}.*\n|\n)*)",
    re.MULTILINE,
)


def _steps(text: str) -> list[tuple[str, str | None]]:
    """Return commands, each with what it is shown to print; None where that it succeeds is all."""
    steps: list[tuple[str, str | None]] = []
    skip = False
    for match in _BLOCK.finditer(text):
        if match["reason"]:
            skip = True
            continue
        if skip:
            skip = False
            continue
        lines = [line[3:] for line in match["body"].splitlines()]
        if match["kind"] != "console":
            block = "\n".join([*filter(None, [match["first"]]), *lines])
            steps.append((f"( set -e\n{block}\n) > block.log && echo @ok", None))
            continue
        for line in lines[1:]:
            if line.startswith("$ "):
                steps.append((line[2:], ""))
            elif line.startswith("> ") and not steps[-1][1]:
                steps[-1] = (f"{steps[-1][0]}\n{line[2:]}", "")
            else:
                steps[-1] = (steps[-1][0], f"{steps[-1][1]}{line}\n")
    return steps


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no bash")
@pytest.mark.parametrize("page", [page for page in _PAGES if _steps(_text(page))])
def test_shell_blocks_of_the_pages(page: str, tmp_path: Path) -> None:
    for needed in ("typer", "pyarrow", "jinja2"):
        pytest.importorskip(needed, reason=f"{needed} is not installed: the command line is optional")
    steps = _steps(_text(page))
    # One shell a page, so that later commands see what earlier ones left; $? is that of the command before.
    lines = ['python() { "$PYTHON" "$@"; }', 'massart() { "$PYTHON" -m massart "$@"; }', "rc=0"]
    for k, (command, _) in enumerate(steps):
        lines += [f"echo @@{k}", "(exit $rc)", command, "rc=$?"]
    lines += ["echo @@end"]
    environment = {**os.environ, "DOCS": str(_DOCS), "PYTHON": sys.executable, "COLUMNS": "100", "NO_COLOR": "1"}
    done = subprocess.run(
        ["bash", "-c", "\n".join(lines)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    printed = re.split(r"^@@\w+\n", done.stdout, flags=re.MULTILINE)[1:]
    assert len(printed) == len(steps) + 1, done.stdout + done.stderr
    for (command, shown), output in zip(steps, printed, strict=False):
        if shown is None:
            assert output.endswith("@ok\n"), f"{command}\n{output}\n{done.stderr}"
        else:
            wanted, got = ("\n".join(line.rstrip() for line in text.strip().splitlines()) for text in (shown, output))
            pattern = re.escape(wanted).replace(re.escape("\n...\n"), r"\n(?:.*\n)*?")
            pattern = re.sub(r"\\\n\\\.\\\.\\\.$", r"(?:\\n.*)*", pattern)
            assert re.fullmatch(pattern, got), f"{command}\n--- shown\n{wanted}\n--- printed\n{got}\n{done.stderr}"


@pytest.mark.slow
@pytest.mark.parametrize("page", _PAGES)
def test_commands_are_in_blocks_that_run(page: str) -> None:
    """A command in another kind of literal block is one that nobody tries."""
    tried = "".join(match["body"] for match in _BLOCK.finditer(_text(page)) if match["kind"])
    assert [line for line in re.findall(r"^    ?massart [a-z].*", _text(page), re.MULTILINE) if line not in tried] == []


# The API pages: every public name has one, and they are the names at the top, those of the paper, and results.
def _documented(page: str) -> set[str]:
    """Return the full names that the autosummaries of a page list."""
    names: set[str] = set()
    module = "massart"
    for line in _text(page).splitlines():
        if found := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = found[1]
        elif found := re.fullmatch(r"   ([A-Za-z_][\w.]*)", line):
            names.add(f"{module}.{found[1]}")
    return names


def test_every_name_at_the_top_has_a_page() -> None:
    assert _documented("api.rst") == {f"massart.{name}" for name in dir(massart) if name != "__version__"}


def test_every_name_of_the_paper_has_a_page() -> None:
    names = {f"massart.paper.{name}" for name in massart.paper.__all__} - {
        f"massart.paper.{name}" for name in dir(massart)
    }
    assert _documented("api/paper.rst") == names


def test_every_page_is_of_a_name_that_exists() -> None:
    for name in [name for page in _PAGES if page.startswith("api/") for name in _documented(page)]:
        assert pkgutil.resolve_name(name) is not None


def _assert_test_exists(test: str) -> None:
    module, _, name = test.partition("::")
    tree = ast.parse((_ROOT / "tests" / f"{module}.py").read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, test


def test_the_theory_names_functions_and_tests_that_exist() -> None:
    functions = re.findall(r":(?:func|class|mod|meth):`~?(massart[\w.]*)`", _text("theory.rst"))
    tests = re.findall(r"``(test_\w+::test_\w+)``", _text("theory.rst"))
    assert len(functions) > 3
    assert len(tests) > 15
    for name in functions:
        assert pkgutil.resolve_name(name) is not None
    for test in tests:
        _assert_test_exists(test)


# The page of the paper. Its table is made from the docstrings by docs/statements.py.
@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(_DOCS)
    return importlib.import_module("statements")


def test_the_statements_are_those_of_the_paper(statements: Any) -> None:
    """Definitions, theorems and lemmas share one number in each section, as in the paper; algorithms have their own."""
    numbers = [statement.split()[1] for statement in statements.STATEMENTS if re.match("[DTL]", statement)]
    last = {"1": 4, "2": 6, "3": 1, "B": 3, "C": 2, "D": 1}
    assert numbers == [f"{section}.{k}" for section in last for k in range(1, last[section] + 1)]
    others = [statement for statement in statements.STATEMENTS if not re.match("[DTL]", statement)]
    assert others == ["Algorithm 1", "Algorithm 2", "Algorithm 3", "Section 4", "Appendix A"]


def test_every_statement_has_a_name_and_no_docstring_makes_one_up(statements: Any) -> None:
    claimed = {claim.statement for claim in statements.claims()}
    assert claimed == set(statements.STATEMENTS) - set(statements.NO_ALGORITHM)
    assert set(statements.NO_ALGORITHM) == {"Lemma 2.4", "Theorem D.1"}


def test_every_claim_names_tests_that_exist_and_a_page_of_the_api(statements: Any) -> None:
    pages = {name for page in _PAGES if page.startswith("api") for name in _documented(page)}
    claims = list(statements.claims())
    assert len(claims) > 20
    for claim in claims:
        assert claim.name in pages
        assert claim.tests
        for test in claim.tests:
            _assert_test_exists(test)


def test_every_statement_has_a_section_that_names_what_implements_it(statements: Any) -> None:
    text = _text("paper.rst")
    for statement in statements.STATEMENTS:
        title = re.escape(statement).replace(r"Section\ ", "")
        section = re.search(
            rf"\.\. _{statements.label(statement)}:\n\n{title}\b.*\n[-~]+\n(?s:(.*?))(?=\n\.\. _|\Z)", text
        )
        assert section, statement
        if statement in statements.NO_ALGORITHM:
            assert "no algorithm" in section[1]
        else:
            names = {claim.name.rpartition(".")[2] for claim in statements.claims() if claim.statement == statement}
            assert {name for name in names if not re.search(rf"\b{name}`", section[1])} == set(), statement


def test_the_citation_is_of_this_version() -> None:
    citation = (_ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.*)$", citation, re.MULTILINE) == [massart.__version__]


def test_every_example_of_the_gallery_says_what_is_certain() -> None:
    examples = sorted((_DOCS / "gallery").glob("*.py"))  # they run while the documentation is built
    assert len(examples) >= 10
    assert [path.name for path in examples if "**What is certain.**" not in path.read_text(encoding="utf-8")] == []
