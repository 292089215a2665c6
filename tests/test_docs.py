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

import pytest

import massart

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


# The API pages: every public name has one.
_PUBLIC = [
    *("agreement", "audit", "certificate", "cutting_plane", "estimators", "exact", "export", "isotropy", "l1"),
    *("paper", "recover", "robust"),
]


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


@pytest.mark.parametrize("module", _PUBLIC)
def test_every_name_of_a_public_module_has_a_page(module: str) -> None:
    names = set(importlib.import_module(f"massart.{module}").__all__) - set(dir(massart))
    assert _documented(f"api/{module}.rst") == {f"massart.{module}.{name}" for name in names}


def test_every_page_is_of_a_name_that_exists() -> None:
    for name in [name for page in _PAGES if page.startswith("api/") for name in _documented(page)]:
        assert pkgutil.resolve_name(name) is not None


# The theory page: what it names as the implementation and the test of a statement is there.
@pytest.mark.slow
def test_the_theory_names_functions_and_tests_that_exist() -> None:
    text = (_DOCS / "theory.rst").read_text(encoding="utf-8")
    functions = re.findall(r":(?:func|class|mod|meth):`~?(massart[\w.]*)`", text)
    tests = re.findall(r"``(test_\w+)::(test_\w+)``", text)
    assert len(functions) > 15
    assert len(tests) > 20
    for name in functions:
        assert pkgutil.resolve_name(name) is not None
    for module, name in tests:
        tree = ast.parse((_ROOT / "tests" / f"{module}.py").read_text(encoding="utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, f"{module}::{name}"


def test_the_citation_is_of_this_version() -> None:
    citation = (_ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.*)$", citation, re.MULTILINE) == [massart.__version__]


def test_every_example_of_the_gallery_says_what_is_certain() -> None:
    examples = sorted((_DOCS / "gallery").glob("*.py"))  # they run while the documentation is built
    assert len(examples) >= 10
    assert [path.name for path in examples if "**What is certain.**" not in path.read_text(encoding="utf-8")] == []
