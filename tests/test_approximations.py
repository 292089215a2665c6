"""What is merely near the labels is no rule: noise and curves are not taken for rounding, and rounding is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from massart import MassartRegressor, MassartReLURegressor, audit_table, certify
from massart.certificate import Verdict

N = 800


def normal(rng, size):
    return rng.normal(0, 0.6 * size, N)


def uniform(rng, size):
    return rng.uniform(-1.2 * size, 1.2 * size, N)


@pytest.mark.parametrize("noise", [normal, uniform])
@pytest.mark.parametrize("d", [1, 3, 6])
def test_noise_as_wide_as_rounded_columns_explain_is_noise(d, noise):
    rng = np.random.default_rng([d, N])
    X, w = rng.integers(0, 100, (N, d)), rng.integers(1, 40, d) / 4
    y = np.round(X @ w + noise(rng, w.sum() / 2), 1)
    assert MassartRegressor(random_state=0).fit(X, y).certificate_.verdict is Verdict.NOISY


@pytest.mark.parametrize("share", [0.5, 1.0])
@pytest.mark.parametrize("model", [MassartRegressor, MassartReLURegressor])
def test_noise_accuses_no_right_row_whatever_the_link_and_the_weights(model, share):
    rng = np.random.default_rng(round(10 * share))
    X, w, wrong = rng.integers(-60, 100, (N, 2)), np.array([3.25, 2.5]), rng.random(N) < 0.2
    products = X @ w + rng.normal(0, share * w.sum() / 2, N)
    right = np.round(products if model is MassartRegressor else np.maximum(products, 0), 1)
    y, weights = np.where(wrong, np.round(rng.uniform(0, 500, N), 1), right), rng.integers(1, 4, N)
    fitted = model(random_state=0).fit(X, y, sample_weight=weights)
    assert fitted.certificate_.verdict is Verdict.NOISY
    assert (~fitted.inlier_mask_ & ~wrong).sum() <= 0.02 * N


@pytest.mark.parametrize("rate", [0.0, 0.3])
@pytest.mark.parametrize("d", [1, 3, 6])
def test_columns_that_were_rounded_have_a_rule(d, rate):
    rng = np.random.default_rng([d, N])
    X, w = rng.uniform(0, 1000, (N, d)), rng.integers(4, 40, d) / 4
    wrong = rng.random(N) < rate
    y = np.round(X @ w + wrong * rng.uniform(-5000, 5000, N), 1)
    fitted = MassartRegressor(random_state=0).fit(np.rint(X), y)
    assert fitted.certificate_.verdict.stands
    assert (fitted.inlier_mask_ >= ~wrong).all()
    assert (fitted.inlier_mask_ & wrong).sum() < 0.05 * N


def test_errors_of_one_unit_are_no_noise():
    rng = np.random.default_rng(3)
    price, pieces = rng.integers(100, 90_000, N) / 100, rng.integers(1, 30, N)
    off = rng.choice([0, 0.01, -0.01], N, p=[0.7, 0.28, 0.02])
    frame = pd.DataFrame({"price": price, "pieces": pieces, "y": np.round(np.round(1.19 * price * pieces, 2) + off, 2)})
    audit = audit_table(frame, "y")
    assert audit.certificate.verdict.stands
    assert not (np.asarray(audit.wrong) & (off == 0)).any()


def bessel(rng):
    x = np.round(rng.uniform(0, 120, N), 1)
    return {"x": x}, np.rint(100 * np.exp(-x / 300) * np.cos(x / 200))


def distance(rng):
    a, b = rng.integers(0, 40, (2, N))
    return {"a": a, "b": b}, np.rint(np.hypot(a, b))


def daily_rates(rng):
    day, usd = rng.integers(0, 300, N), np.round(rng.uniform(5, 60, N), 2)
    rate = 1.1 + 0.0005 * np.cumsum(rng.normal(0, 1, 300))
    return {"day": (19_000 + day).astype("datetime64[D]").astype(str), "usd": usd}, np.round(usd / rate[day], 1)


@pytest.mark.parametrize(("table", "rate"), [(bessel, 0.2), (distance, 0.2), (daily_rates, 0.0)])
def test_an_approximation_is_no_majority_unless_it_is_within_a_unit(table, rate):
    rng = np.random.default_rng(5)
    columns, right = table(rng)
    wrong = rng.random(N) < rate
    frame = pd.DataFrame(columns | {"y": np.round(right + wrong * rng.uniform(-50, 50, N))})
    frame.loc[~wrong, "y"] = right[~wrong]
    audit = audit_table(frame, "y")
    accused = (np.asarray(audit.wrong) & ~wrong).sum()
    assert not audit.certificate.verdict.stands or (np.abs(audit.implied - right).max() <= 1 and accused <= 0.01 * N)


def test_noise_about_a_grown_rule_is_an_estimate_in_its_terms():
    rng = np.random.default_rng(9)
    principal, days, wrong = 100 * rng.integers(10, 90, N), rng.integers(1, 60, N), rng.random(N) < 0.25
    interest = np.round(principal * days / 36_500 + rng.normal(0, 0.04, N), 1)
    frame = pd.DataFrame({"principal": principal, "days": days})
    frame["interest"] = np.round(interest + wrong * rng.uniform(-400, 400, N), 1)
    audit = audit_table(frame, "interest")
    assert audit.certificate.verdict is Verdict.NOISY
    assert "principal * days" in str(audit.formula)
    assert (np.asarray(audit.wrong) & ~wrong).sum() <= 0.01 * N
    assert audit.certificate.scale == pytest.approx(0.05, abs=0.02)


def test_a_relation_through_exchanged_labels_is_no_plurality():
    rng = np.random.default_rng(7)
    X = np.column_stack([rng.integers(1, 200, (N, 3)), rng.uniform(0, 2, (N, 1)).round(3)])
    labels = np.round(X[:, :3] @ [3.9, 1.3, 1.1], 1)
    y = np.empty(N)
    y[np.argsort(np.argsort(labels) + 8 * rng.uniform(-1, 1, N))] = np.sort(labels)
    verdict = audit_table(pd.DataFrame({**{f"x{j}": X[:, j] for j in range(4)}, "y": y}), "y").certificate.verdict
    assert verdict < Verdict.PLURALITY


@pytest.mark.parametrize("copies", [1, 20])
def test_copies_of_rows_do_not_make_a_rule(copies):
    rng = np.random.default_rng(11)
    X, y = rng.uniform(0, 90, (40, 8)), np.round(rng.uniform(10, 400, 40), 2)
    through = np.linalg.solve(X[:8], y[:8])
    rows = np.repeat(np.arange(40), copies)
    certificate = certify(X[rows], y[rows], through)
    assert certificate.n_agree >= 8 * copies
    assert certificate.verdict is Verdict.NONE


def test_rows_of_few_kinds_are_no_copies_of_each_other():
    rng = np.random.default_rng(12)
    kind = rng.integers(0, 6, N)
    price = np.array([4.9, 7.5, 9.9, 12.0, 15.5, 21.0])
    y = np.where(rng.random(N) < 0.55, np.round(rng.uniform(1, 99, N), 2), price[kind])
    assert certify(np.eye(6)[kind], y, price).verdict is Verdict.PLURALITY


@pytest.mark.parametrize("scale", [0.0, 0.02])
def test_rounding_to_five_cents_of_what_is_noisy_is_noise(scale):
    rng = np.random.default_rng(1)
    x, q = np.round(rng.uniform(3, 80, N), 2), rng.integers(1, 9, N)
    y = np.round(np.rint((1.081 * x * q + rng.normal(0, scale, N)) / 0.05) * 0.05, 2)
    audit = audit_table(pd.DataFrame({"x": x, "q": q, "y": y}), "y")
    # No coefficient of its own tests the rate inside of the rounding: a majority at most.
    assert audit.certificate.verdict is (Verdict.NOISY if scale else Verdict.MAJORITY)
    assert audit.n_wrong <= 0.01 * N


@pytest.mark.parametrize(("scale", "stands"), [(0.05, True), (0.25, False)])
def test_a_few_labels_that_noise_moves_to_the_next_unit_do_not_hide_a_rule(scale, stands):
    rng = np.random.default_rng(3)
    x, z, wrong = rng.integers(0, 9_000, N), rng.integers(1, 60, N), rng.random(N) < 0.25
    y = 100 * np.rint((3 * x + 40 * z + rng.normal(0, 100 * scale, N)) / 100)
    y[wrong] = 100 * rng.integers(0, 300, wrong.sum())
    audit = audit_table(pd.DataFrame({"x": x, "z": z, "y": y}), "y")
    assert audit.certificate.verdict.stands == stands
    assert not (np.asarray(audit.wrong) & ~wrong).any()
