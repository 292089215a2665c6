from __future__ import annotations

import re
import subprocess
import sys

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


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'fit_everything'"):
        _ = massart.fit_everything


def test_star_import_gives_exactly_the_public_names() -> None:
    namespace: dict[str, object] = {}
    exec("from massart import *", namespace)
    assert set(namespace) - {"__builtins__"} == set(massart.__all__)


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import massart", ["numpy", "scipy", "sklearn"]),
        ("from massart import radial_isotropy, l1_regression", ["sklearn", "pandas", "matplotlib"]),
        ("import massart.recover", ["sklearn", "pandas", "matplotlib"]),
        ("import massart.cli", ["numpy", "scipy", "sklearn"]),
    ],
)
def test_imports_are_lazy(statement: str, absent: list[str]) -> None:
    program = f"import sys; {statement}; print([name for name in {absent} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_the_version_is_a_release_number() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", massart.__version__)
