"""Names of massart.noise, .pac, .relu and .linear that have moved to massart.paper work for one release, and warn."""

from __future__ import annotations

import importlib
import pkgutil
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from massart import Link, paper
from massart.recover import recover_matrix

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
        *("Answer", "Descent", "IDENTITY", "ReLURecovery", "Scale", "Separation", "Transformation", "descend"),
        "separation_margin",
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


# Two functions of massart.relu have other arguments now: they are translated.

OLD_RELU = importlib.import_module("massart.relu")


def relu_table() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((200, 3)), np.array([3.0, -1.0, 0.5])
    y = np.maximum(X @ w, 0)
    y[:50] = 7
    return X, y, w


def test_recover_relu_does_what_it_did() -> None:
    X, y, w = relu_table()
    with pytest.warns(
        DeprecationWarning, match="massart.relu.recover_relu is now massart.MassartReLURegressor"
    ) as caught:
        found = OLD_RELU.recover_relu(X, y, sample_weight=np.ones(200))
    assert [warning.filename for warning in caught] == [__file__]
    np.testing.assert_allclose(found.coef, w, rtol=1e-12)
    now = recover_matrix(X, y, link=Link(), sample_weight=np.ones(200))
    assert found.certificate.explain() == now.certificate.explain()
    clip = Link(lower=-1, upper=2)
    with pytest.warns(DeprecationWarning, match="recover_relu"):
        found = OLD_RELU.recover_relu(X, np.where(y == 7, y, clip(X @ w)), link=clip, tolerance=0.0)
    np.testing.assert_allclose(found.coef, w, rtol=1e-12)


@pytest.mark.parametrize("cuts", [paper.ellipsoid, paper.analytic_center])
def test_recover_relu_by_cuts_is_the_algorithm_of_the_paper(cuts: object) -> None:
    X, y, w = relu_table()
    with pytest.warns(DeprecationWarning, match="massart.paper.recover_relu") as caught:
        found = OLD_RELU.recover_relu(X, y, cuts=cuts)
    assert [warning.filename for warning in caught] == [__file__]
    np.testing.assert_array_equal(found.coef, paper.recover_relu(X, y, method=cuts).w)
    np.testing.assert_allclose(found.coef, w, rtol=1e-12)
    np.testing.assert_array_equal(found.agree, np.arange(200) >= 50)
    assert found.certificate.verdict.stands
    for others in ({"link": Link(lower=1)}, {"sample_weight": np.ones(200)}):
        with (
            pytest.warns(DeprecationWarning, match="recover_relu"),
            pytest.raises(ValueError, match="cuts are for the ReLU, without weights"),
        ):
            OLD_RELU.recover_relu(X, y, cuts=cuts, **others)


def test_a_separation_oracle_is_asked_by_calling_it() -> None:
    X, y, w = relu_table()
    with pytest.warns(DeprecationWarning, match="massart.relu.separation_oracle is now massart.paper.") as caught:
        oracle = OLD_RELU.separation_oracle(X, y, gamma=0.1)
    assert [warning.filename for warning in caught] == [__file__]
    for query in (np.zeros(3), w + 1, -w):
        cut = oracle(query)
        assert cut is not None
        assert cut.offset == cut.normal @ query
        assert cut.normal @ w < cut.offset
    assert oracle(w) is None
    found = paper.analytic_center(oracle, 3, 10.0)  # it still serves a cutting-plane method
    np.testing.assert_allclose(found.point, w, rtol=1e-6)


def test_nothing_of_ours_uses_an_old_name() -> None:
    root = Path(__file__).parents[1]
    old = re.compile(rf"^\s*(from|import) ({'|'.join(map(re.escape, SHIMS))})\b(?!\.)", re.MULTILINE)
    sources = [path for folder in ("src", "benchmarks", "docs", "tests") for path in (root / folder).rglob("*.py")]
    assert len(sources) > 300
    assert [str(path.relative_to(root)) for path in sources if old.search(path.read_text(encoding="utf-8"))] == []
