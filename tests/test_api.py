from __future__ import annotations

import importlib
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import FunctionType

import pytest

import massart

NEED_PYARROW = ["Audit", "Check", "Scan", "audit_table", "check_table", "scan_table"]


@pytest.mark.parametrize("name", dir(massart))
def test_every_public_name_is_importable(name: str) -> None:
    if name in NEED_PYARROW:
        pytest.importorskip("pyarrow", reason="pyarrow is not installed: tables are optional")
    assert getattr(massart, name) is not None


def test_nothing_else_is_public() -> None:
    assert dir(massart) == sorted([*massart.__all__, *NEED_PYARROW])


@pytest.mark.parametrize("name", [module.name for module in pkgutil.walk_packages(massart.__path__, "massart.")])
def test_what_a_module_lists_is_what_it_has(name: str) -> None:
    if name == "massart.__main__":
        pytest.skip("it is a program")
    if name.startswith("massart.rows.dask"):
        pytest.importorskip("dask", reason="Dask is not installed: clusters are optional")
    module = importlib.import_module(name)
    listed = list(getattr(module, "__all__", ()))
    assert len(set(listed)) == len(listed)
    assert [what for what in listed if getattr(module, what, None) is None] == []
    if listed:  # and no function or class of massart is there by accident
        mine = [what for what, value in vars(module).items() if isinstance(value, FunctionType | type)]
        home = "massart." if hasattr(module, "__path__") else name  # a door shows names of others, a module its own
        mine = [what for what in mine if vars(module)[what].__module__.startswith(home)]
        assert sorted(what for what in mine if not what.startswith("_")) == sorted(set(mine) & set(listed))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'fit_everything'"):
        _ = massart.fit_everything


def test_star_import_gives_exactly_the_public_names() -> None:
    namespace: dict[str, object] = {}
    exec("from massart import *", namespace)
    assert set(namespace) - {"__builtins__"} == set(massart.__all__)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import massart", ["numpy", "scipy", "sklearn"]),
        ("from massart import radial_isotropy, l1_regression", ["sklearn", "pandas", "matplotlib"]),
        ("import massart.recover", ["sklearn", "pandas", "matplotlib"]),
        ("from massart.cli.app import commands; commands([])", ["numpy", "scipy", "sklearn"]),
        (
            "from massart.audit import check_table, load_model",
            ["massart.recover", "massart.search", "massart.paper", "massart.robust", "sklearn", "matplotlib"],
        ),
    ],
)
def test_imports_are_lazy(statement: str, absent: list[str]) -> None:
    program = f"import sys; {statement}; print([name for name in {absent} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_the_version_is_a_release_number() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", massart.__version__)


def test_the_picture_of_the_layers_is_the_contract() -> None:
    root = Path(__file__).parents[1]
    contracts = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    assert "```\n" + "\n".join(layers) + "\n```" in (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
