"""Arrays of other namespaces: the answer is the same as for numpy, and it is where the rows are.

The strict arrays of the standard refuse what is not in it, and have devices that numpy cannot reach. With CuPy, or a
GPU that torch sees, these laws hold there.
"""

from __future__ import annotations

import builtins
import sys
import warnings
from dataclasses import asdict, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal, assert_equal

from massart import MassartRegressor, MassartReLURegressor
from massart.recover.settings import SETTINGS
from massart.rows import (
    AGREES,
    IDENTITY,
    LAST_PLACE,
    RELU,
    Agreement,
    ArrayRows,
    ArrayValues,
    Has,
    Level,
    Link,
    Mark,
    compensated_products,
    tally,
    to_numpy,
)
from massart.rows import memory as rows_in_memory


def strict(values, dtype=None):
    """Return an array on a device of its own: to take it for one of numpy is an error."""
    xp = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    return xp.asarray(np.array(values, dtype=dtype), device=xp.Device("device1"))


def torch_on(device):
    def make(values, dtype=None):
        torch = pytest.importorskip("torch", reason="torch is not installed")
        if device != "cpu" and not torch.cuda.is_available():
            pytest.skip("torch sees no GPU")
        return torch.asarray(np.array(values, dtype=dtype), device=device)

    return make


def cupy(values, dtype=None):
    cp = pytest.importorskip("cupy", reason="CuPy is not installed")
    if not cp.is_available():
        pytest.skip("CuPy sees no GPU")
    return cp.asarray(np.array(values, dtype=dtype))


PLACES = {"strict": strict, "torch": torch_on("cpu"), "torch on a GPU": torch_on("cuda"), "CuPy": cupy}


@pytest.fixture(params=PLACES.values(), ids=PLACES.keys())
def there(request):
    pytest.importorskip("array_api_compat", reason="array-api-compat is not installed")
    request.param(0.0)  # skips here
    return request.param


def table(n=900, d=5, seed=0, link=IDENTITY):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    w = np.round(rng.standard_normal(d) * 8) / 4 + 0.125
    y = link(X @ w + 0.5)
    wrong = rng.random(n) < 0.3
    y[wrong] += rng.standard_normal(wrong.sum()) * 10
    return X, y, wrong


def same_kind(found, there):
    return type(found) is type(there(0.0))


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [MassartRegressor, MassartReLURegressor])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_fit_is_that_of_numpy(there, estimator, weighted):
    X, y, wrong = table(link=RELU if estimator is MassartReLURegressor else IDENTITY)
    weights = np.random.default_rng(1).integers(0, 3, len(y)).astype(float) if weighted else None
    known = estimator(fit_intercept=True, random_state=0).fit(X, y, weights)
    found = estimator(fit_intercept=True, random_state=0).fit(
        there(X), there(y), None if weights is None else there(weights)
    )
    assert_array_equal(found.coef_, known.coef_)
    assert found.intercept_ == known.intercept_
    assert_equal(asdict(found.certificate_), asdict(known.certificate_))
    assert found.noise_rate_ == known.noise_rate_
    assert same_kind(found.inlier_mask_, there)
    assert_array_equal(to_numpy(found.inlier_mask_), known.inlier_mask_)
    assert_array_equal(known.inlier_mask_[wrong], False)
    predicted = found.predict(there(X))
    assert same_kind(predicted, there)
    assert_allclose(to_numpy(predicted), known.predict(X), rtol=0, atol=1e-13 * np.abs(y).max())
    assert found.score(there(X), there(y)) == pytest.approx(known.score(X, y), rel=1e-12)
    assert found.report().to_html() == known.report().to_html()


@pytest.mark.slow
def test_several_labels_keep_their_shape(there):
    X, y, _ = table()
    both = np.column_stack([y, -2 * y])
    known = MassartRegressor(random_state=0).fit(X, both)
    found = MassartRegressor(random_state=0).fit(there(X), there(both))
    assert_array_equal(found.coef_, known.coef_)
    assert_array_equal(to_numpy(found.inlier_mask_), known.inlier_mask_)
    assert tuple(found.predict(there(X)).shape) == both.shape


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int32])
def test_rows_of_other_types_are_read_as_they_are(there, dtype):
    rng = np.random.default_rng(3)
    X = (rng.standard_normal((900, 4)) * 100).astype(dtype)
    y = X.astype(np.float64) @ [1.5, -2.0, 3.25, 0.5]
    y[:300] += rng.standard_normal(300) * 50
    known = MassartRegressor(random_state=0).fit(X, y)
    found = MassartRegressor(random_state=0).fit(there(X), there(y))
    assert_array_equal(found.coef_, known.coef_)
    assert_equal(asdict(found.certificate_), asdict(known.certificate_))
    assert_array_equal(to_numpy(found.inlier_mask_), known.inlier_mask_)
    assert_allclose(to_numpy(found.predict(there(X))), known.predict(X), rtol=1e-13)


def test_bfloat16_is_read_though_numpy_does_not_have_it():
    pytest.importorskip("array_api_compat", reason="array-api-compat is not installed")
    X, w = np.round(np.random.default_rng(4).standard_normal((900, 3)) * 16), np.array([1.0, -2.0, 0.5])
    rows = torch_on("cpu")(X)
    found = MassartRegressor(random_state=0).fit(rows.bfloat16(), X @ w)
    assert_array_equal(found.coef_, w)


def test_labels_and_weights_may_come_from_the_host(there):
    X, y, _ = table()
    weights = np.ones(len(y))
    weights.flags.writeable = False
    rows = ArrayRows(there(X), y, weights, intercept=True)
    block = next(rows._blocks(()))[0]
    assert same_kind(block.y, there)
    assert same_kind(block.weights, there)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = MassartRegressor(random_state=0).fit(there(X), y.tolist(), weights)
    assert_array_equal(found.coef_, MassartRegressor(random_state=0).fit(X, y, weights).coef_)


def test_no_more_than_samples_come_to_the_host(there, monkeypatch):
    few = replace(SETTINGS, certify=400, certify_per_column=40)
    monkeypatch.setattr("massart.recover.driver.SETTINGS", few)
    came, X, y, _ = [], *table(n=5000)

    def watched(array):
        came.append(tuple(array.shape))
        return to_numpy(array)

    monkeypatch.setattr(rows_in_memory, "to_numpy", watched)
    found = MassartRegressor(random_state=0).fit(there(X), there(y))
    assert found.certificate_.n_rows == 5000
    assert sum(shape[0] for shape in came if shape[1:] == (X.shape[1] + 1,)) in range(400, 1000)
    assert max(shape[0] for shape in came) < 1000


# --- marks ---


_ARITHMETIC = 12 * 2.0**-52
LEVELS = {
    "exact": Agreement(Level.EXACT, relative=_ARITHMETIC),
    "on a grid": Agreement(Level.EXACT, relative=_ARITHMETIC, unit=1e-9),
    "cents": Agreement(Level.LABEL, label=0.005, relative=_ARITHMETIC, unit=0.01),
    "inputs": Agreement(Level.INPUTS, label=0.005, inputs=(1e-3,) * 6, relative=_ARITHMETIC, unit=0.01),
    "given": Agreement(Level.GIVEN, label=0.1),
}


@pytest.mark.slow
@pytest.mark.parametrize("link", [IDENTITY, RELU, Link(-1, 1), Link(slope=0.3), Link(slope=2.5)], ids=str)
@pytest.mark.parametrize("agreement", LEVELS.values(), ids=LEVELS.keys())
def test_marks_have_the_same_bits_everywhere(there, link, agreement, monkeypatch):
    """Labels are within a few roundings of the edge of agreement, on both sides of it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 6)) * 10.0 ** rng.integers(-6, 6, (2000, 6))
    w = rng.standard_normal(6)
    edge = agreement.half_widths(np.abs(X) @ np.abs(w) + np.abs(X @ w), w)
    y = X @ w + edge * rng.choice([-1, 1], 2000) * (1 + rng.standard_normal(2000) * 0.1)
    y = link(y)
    marks = Mark(w, agreement, link)
    known = ArrayRows(X, y).map(marks).to_numpy()
    found = ArrayRows(there(X), there(y)).map(marks)
    assert same_kind(found.native(), there)
    assert_array_equal(found.to_numpy(), known)
    assert len(np.unique(known)) > 1
    assert_array_equal(tally(found, None), tally(ArrayValues(known), None))
    assert_array_equal(found.map(Has(1)).to_numpy(), known & 1 > 0)
    monkeypatch.setattr(rows_in_memory, "BLOCK_BYTES", 1)
    monkeypatch.setattr(rows_in_memory, "_DEVICE_BLOCK_BYTES", 1)
    assert_array_equal(ArrayRows(there(X), there(y)).map(marks).to_numpy(), known)


def test_marks_are_by_definition_where_terms_cancel(there):
    """Rows whose product is near zero, and their labels a cent off: their size is far above what y and w.x tell."""
    rng = np.random.default_rng(2)
    cents, w = rng.integers(-100_000, 100_000, (3000, 6)), np.array([1.0, -2.0, 3.0, 1.0, 2.0, 1.0])
    right = rng.integers(-3, 4, 3000)
    cents[:, -1] = right - cents[:, :-1] @ w[:-1].astype(np.int64)
    off = rng.integers(-1, 2, 3000)
    X, y = cents / 100, (right + off) / 100
    agreement = Agreement(Level.EXACT, relative=_ARITHMETIC, unit=0.01)
    for rows in (ArrayRows(X, y), ArrayRows(there(X), there(y))):
        marks = rows.map(Mark(w, agreement, IDENTITY)).to_numpy()
        assert_array_equal(marks & AGREES > 0, off == 0)
        assert_array_equal(marks & LAST_PLACE > 0, off != 0)


def test_compensated_sums_have_the_same_bits_everywhere(there):
    """A fused multiply-add in Dekker's product would show here."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((5000, 9)) * 10.0 ** rng.integers(-8, 8, (5000, 9))
    w = rng.standard_normal(9)
    w[3] = 0.0
    known, found = compensated_products(X, w), compensated_products(there(X), w)
    for mine, theirs in zip(known, found, strict=True):
        assert_array_equal(to_numpy(theirs).view(np.uint64), mine.view(np.uint64))
    assert np.count_nonzero(known[1]) > 4000


def test_a_tally_adds_weights(there):
    marks = np.random.default_rng(0).integers(0, 32, 500).astype(np.uint8)
    weights = np.random.default_rng(1).random(500)
    found = tally(ArrayValues(there(marks)), ArrayValues(there(weights)))
    assert_allclose(found, np.bincount(marks, weights, 32), rtol=1e-14)


# --- what is refused ---


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_number_that_is_none_is_named(there, value):
    X, y, _ = table()
    X[432, 2] = value
    with pytest.raises(ValueError, match="X must be finite, got (NaN|inf) at row 432, column 2"):
        MassartRegressor().fit(there(X), there(y))
    X, y, _ = table()
    y[7] = value
    with pytest.raises(ValueError, match="y must be finite, got (NaN|inf) at row 7"):
        MassartRegressor().fit(there(X), there(y))


def test_what_numpy_is_refused_is_refused(there):
    X, y, _ = table(n=50)
    large = np.full((50, 2), 2**53 + 1)
    with pytest.raises(ValueError, match="X holds the integer 9007199254740993, above 2\\*\\*53"):
        MassartRegressor().fit(there(large), there(y))
    with pytest.raises(ValueError, match="y holds the integer 9007199254740993, above 2\\*\\*53"):
        MassartRegressor().fit(there(X), there(large[:, 0]))
    with pytest.raises(ValueError, match="y has 49 rows but X has 50"):
        MassartRegressor().fit(there(X), there(y[:-1]))
    with pytest.raises(ValueError, match="X must be a matrix"):
        MassartRegressor().fit(there(y), there(y))
    with pytest.raises(ValueError, match="X must hold real numbers, got dtype .*complex"):
        MassartRegressor().fit(there(X * 1j), there(y))
    with pytest.raises(ValueError, match="sample_weight must not be negative, got -1 at row 0"):
        MassartRegressor().fit(there(X), there(y), there(-np.ones(50)))
    with pytest.raises(ValueError, match="X has 3 features, but MassartRegressor is expecting 5"):
        MassartRegressor().fit(there(X), there(y)).predict(there(X[:, :3]))


def test_rows_and_labels_of_two_kinds_are_refused():
    pytest.importorskip("array_api_compat", reason="array-api-compat is not installed")
    X, y, _ = table(n=50)
    other = torch_on("cpu")(y)
    with pytest.raises(ValueError, match="where X is: X is of array_api_strict on .*, and y of torch on cpu"):
        MassartRegressor().fit(strict(X), other)


def test_rows_and_labels_on_two_devices_are_refused():
    pytest.importorskip("array_api_compat", reason="array-api-compat is not installed")
    xp = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    X, y, _ = table(n=50)
    away = xp.asarray(y, device=xp.Device("device2"))
    with pytest.raises(ValueError, match="y must be of numpy or where X is"):
        MassartRegressor().fit(strict(X), away)


def test_array_api_compat_is_asked_for(monkeypatch):
    X, y, _ = table(n=50)
    X = strict(X)
    real = builtins.__import__

    def without(name, *arguments, **options):
        if name.startswith("array_api_compat"):
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.delitem(sys.modules, "array_api_compat", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"need array-api-compat: pip install 'massart\[gpu\]'"):
        MassartRegressor().fit(X, y)


def test_no_gradient_is_kept():
    pytest.importorskip("array_api_compat", reason="array-api-compat is not installed")
    X, y, _ = table()
    known = torch_on("cpu")(X).requires_grad_()
    found = MassartRegressor(random_state=0).fit(known, torch_on("cpu")(y))
    assert not found.inlier_mask_.requires_grad
    assert_array_equal(found.coef_, MassartRegressor(random_state=0).fit(X, y).coef_)
