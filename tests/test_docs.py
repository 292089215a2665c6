"""What the documentation shows is what happens."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import massart

_ROOT = Path(__file__).parents[1]
_MODULES = [
    module.name for module in pkgutil.walk_packages(massart.__path__, "massart.") if module.name != "massart.__main__"
]


@pytest.mark.parametrize("page", sorted(path.name for path in (_ROOT / "docs").glob("*.rst")))
def test_examples_of_the_pages(page: str) -> None:
    failed, _ = doctest.testfile(str(_ROOT / "docs" / page), module_relative=False, encoding="utf-8")
    assert failed == 0


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
