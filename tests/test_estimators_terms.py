"""TermFeatures keeps scikit-learn's contract, and gives the values that terms have."""

from __future__ import annotations

import datetime
import pickle
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from massart import MassartRegressor, TermFeatures
from massart.rules import TermError

pd = pytest.importorskip("pandas", reason="pandas is not installed")


@parametrize_with_checks([TermFeatures("x0, max(0, x0 - 1)")])  # type: ignore[untyped-decorator]
def test_scikit_learn_contract(estimator: TermFeatures, check: Any) -> None:
    check(estimator)


def bills(n: int = 240, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "qty": rng.integers(1, 20, n),
            "unit price": rng.integers(100, 999, n) / 100,
            "service": rng.choice(["cut", "wash", "dye & dry"], n),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), unit="D"),
            "note": ["x", None] * (n // 2),
        }
    )


TERMS = "qty*`unit price`, qty:service, (day >= 2024-05-01), cumsum(qty, by=service), month(day)"


def expected(frame: Any) -> Any:
    counts = frame["service"].value_counts()
    by_level = [
        frame["qty"] * (frame["service"] == name) for name in sorted(counts.index, key=lambda k: (-counts[k], k))
    ]
    return np.column_stack(
        [
            frame["qty"] * frame["unit price"],
            *by_level,
            frame["day"] >= "2024-05-01",
            frame.groupby("service")["qty"].cumsum(),
            frame["day"].dt.month,
        ]
    ).astype(float)


def test_values_are_those_of_the_terms() -> None:
    frame = bills()
    features = TermFeatures(TERMS).fit(frame)
    assert_allclose(features.transform(frame), expected(frame))
    assert_array_equal(features.feature_names_in_, frame.columns)
    names = features.get_feature_names_out()
    assert names[0] == "qty * `unit price`"
    assert "qty * (service = `dye & dry`)" in names
    assert names[-1] == "month(day)"
    assert_array_equal(names, features.get_feature_names_out(frame.columns))


@pytest.mark.parametrize("kind", ["categories", "objects", "polars", "narrow"])
def test_frames_of_all_kinds_give_the_same(kind: str) -> None:
    frame = bills()
    plain = TermFeatures(TERMS).fit_transform(frame)
    other: Any = frame.copy()
    if kind == "categories":
        other["service"] = other["service"].astype("category")
    elif kind == "objects":
        other["service"] = other["service"].astype(object)
        other["day"] = pd.Series([day.date() for day in frame["day"]], dtype=object)
        other["unit price"] = pd.Series([Decimal(f"{price:.2f}") for price in frame["unit price"]], dtype=object)
    elif kind == "polars":
        other = pytest.importorskip("polars", reason="polars is not installed").DataFrame(
            frame.assign(note="x").to_dict("list")
        )
    else:
        other["qty"] = other["qty"].astype("Int16")
    assert_allclose(TermFeatures(TERMS).fit_transform(other), plain)


def test_columns_as_they_stand_are_numbers_and_levels() -> None:
    frame = bills()[["service", "qty"]]
    features = TermFeatures().fit(frame)
    assert [name.split(" = ")[0] for name in features.get_feature_names_out()] == ["(service"] * 3 + ["qty"]
    assert_array_equal(features.transform(frame)[:, :3].sum(axis=1), 1)
    X = np.arange(6.0).reshape(3, 2)
    assert_array_equal(TermFeatures().fit_transform(X), X)


def test_output_can_be_a_frame_with_names() -> None:
    frame = bills()
    frame.index += 7
    out = TermFeatures(["qty*`unit price`", "qty^2"]).set_output(transform="pandas").fit_transform(frame)
    assert list(out.columns) == ["qty * `unit price`", "qty^2"]
    assert_array_equal(out.index, frame.index)


def test_a_rule_of_terms_is_found_in_a_pipeline() -> None:
    frame = bills()
    rate = frame["service"].map({"cut": 2.5, "wash": 1.0, "dye & dry": 4.0})
    y = (frame["qty"] * rate + 3 * (frame["day"] >= "2024-05-01") + 12).to_numpy().copy()
    right = y.copy()
    y[::4] += 5
    model = make_pipeline(TermFeatures("qty:service, (day >= 2024-05-01)"), MassartRegressor(random_state=0)).fit(
        frame, y
    )
    assert_allclose(model.predict(frame), right, rtol=1e-12)
    assert model[-1].noise_rate_ == 0.25
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(frame), model.predict(frame))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # wrong terms have no rule
def test_terms_are_chosen_by_a_grid() -> None:
    frame = bills()
    y = (2 * frame["qty"] * frame["unit price"] + 1).to_numpy().copy()
    y[::5] += 100
    model = make_pipeline(TermFeatures(), MassartRegressor(random_state=0))
    grid = {"termfeatures__terms": ["qty, `unit price`", "qty*`unit price`", "qty/`unit price`"]}
    search = GridSearchCV(model, grid, scoring="neg_median_absolute_error", cv=3).fit(frame, y)
    assert search.best_params_ == {"termfeatures__terms": "qty*`unit price`"}


def test_levels_that_fit_has_not_seen_are_zero_and_said_so() -> None:
    frame = bills()
    features = TermFeatures("qty:service").fit(frame)
    other = frame.head(6).assign(service=["cut", "shave", "shave", "wash", "dye & dry", "cut"])
    with pytest.warns(UserWarning, match="'service' has levels such as 'shave' in 2 rows that were not there in fit"):
        found = features.transform(other)
    assert_array_equal(found.sum(axis=1), [*other["qty"][:1], 0, 0, *other["qty"][3:]])


def test_a_lag_has_no_value_in_the_first_row() -> None:
    found = TermFeatures("x0, lag(x0)").fit_transform(np.arange(1.0, 5.0)[:, None])
    assert_array_equal(found, [[1, np.nan], [2, 1], [3, 2], [4, 3]])


def test_only_columns_that_are_used_must_be_complete() -> None:
    frame = bills()
    frame.loc[3, "unit price"] = np.nan
    TermFeatures("qty, month(day)").fit_transform(frame)
    with pytest.raises(ValueError, match="'unit price' has NaN or infinity in row 3"):
        TermFeatures("`unit price`").fit(frame)
    with pytest.raises(ValueError, match=r"'note' has no value \(NaN or None\) in row 1"):
        TermFeatures("C(note)").fit(frame)


@pytest.mark.parametrize(
    ("terms", "match"),
    [
        ("quantity", "no column 'quantity'"),
        ("", "cannot be read"),
        ("qty / (qty - qty)", "in row 1"),
        ("__import__('os')", "no function"),
        ("(service = shave)", "no level 'shave'"),
        (3, "terms must be a text"),
        (["qty", 3], "terms must be a text"),
        (None, "terms must be a text"),
    ],
)
def test_terms_that_cannot_be_are_one_line(terms: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        TermFeatures(terms).fit(bills())


def test_columns_that_changed_are_refused() -> None:
    frame = bills()
    features = TermFeatures("qty*`unit price`, month(day)").fit(frame)
    with pytest.raises(ValueError, match="column 'qty' must hold numbers"):
        features.transform(frame.assign(qty="many"))
    with pytest.raises(ValueError, match="column 'day' must hold dates"):
        features.transform(frame.assign(day=3))
    with pytest.raises(ValueError, match="feature names"):
        features.transform(frame.drop(columns="qty"))
    with pytest.raises(TermError, match="no value|infinite"):
        TermFeatures("qty / `unit price`").fit(frame).transform(frame.assign(**{"unit price": 0.0}))
    with pytest.raises(NotFittedError):
        clone(features).transform(frame)


def test_dates_of_python_are_dates() -> None:
    frame = pd.DataFrame({"day": [datetime.date(2024, 5, 1), datetime.date(1969, 12, 31)]}, dtype=object)
    assert_array_equal(TermFeatures("month(day), day").fit_transform(frame), [[5, 19_844], [12, -1]])
