"""Names of massart.noise, .pac, .relu and .linear that have moved to massart.paper work for one release, and warn."""

from __future__ import annotations

import importlib
import pkgutil
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

# What each package exported in its last release.
OLD = {
    "massart.noise": [
        *("Adversary", "Concept", "Corruption", "ErrorVector", "MassartNoise", "ObliviousNoise", "Predicate"),
        *("Simulation", "constant", "decoy", "far_constant", "flip", "gaussian", "gross", "high_leverage", "idle"),
        *("linear", "massart_rate", "negate", "paper_adversary", "paper_mixture", "paper_weights", "relu", "scale"),
        *("simulate_oblivious", "where", "zero"),
    ],
    "massart.pac": [
        *("OutlierRemoval", "OutlierStatus", "PACFormula", "PACPiece", "PACStatus", "learn_pac", "remove_outliers"),
    ],
    "massart.relu": [
        *("Answer", "Descent", "IDENTITY", "Link", "RELU", "ReLURecovery", "Scale", "Separation", "SeparationOracle"),
        *("Transformation", "descend", "radius_of", "recover_relu", "separation_margin", "separation_oracle"),
    ],
    "massart.linear": ["recover_linear"],
}
SHIMS = [name for name in OLD if "__getattr__" in vars(importlib.import_module(name))]


def test_noise_has_moved() -> None:
    assert "massart.noise" in SHIMS  # and so the tests below have something to look at


@pytest.mark.parametrize(("old", "name"), [(old, name) for old in SHIMS for name in OLD[old]])
def test_an_old_name_is_the_new_thing_and_warns_with_its_new_place(old: str, name: str) -> None:
    with pytest.warns(DeprecationWarning, match="the old name will be removed") as caught:
        thing = getattr(importlib.import_module(old), name)
    (warning,) = caught
    assert warning.filename == __file__  # the line of the user, not one of massart
    said = re.fullmatch(rf"{re.escape(old)}\.{name} is now (massart[\w.]*); .*", str(warning.message))
    assert said is not None
    assert pkgutil.resolve_name(said[1]) is thing


@pytest.mark.parametrize("old", SHIMS)
def test_from_import_works_and_warns_once_a_name(old: str) -> None:
    names = OLD[old][:2]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(f"from {old} import {', '.join(names)}", {})
    assert [str(warning.message).split()[0] for warning in caught] == [f"{old}.{name}" for name in names]


@pytest.mark.parametrize("old", SHIMS)
def test_importing_the_module_is_silent_and_unknown_names_are_attribute_errors(old: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"import {old}"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    with pytest.raises(AttributeError, match=f"module '{old}' has no attribute 'fit_everything'"):
        _ = importlib.import_module(old).fit_everything


def test_nothing_of_ours_uses_an_old_name() -> None:
    root = Path(__file__).parents[1]
    old = re.compile(rf"^\s*(from|import) ({'|'.join(map(re.escape, SHIMS))})\b(?!\.)", re.MULTILINE)
    sources = [path for folder in ("src", "benchmarks", "docs", "tests") for path in (root / folder).rglob("*.py")]
    assert len(sources) > 300
    assert [str(path.relative_to(root)) for path in sources if old.search(path.read_text(encoding="utf-8"))] == []
