"""Links: what a label tells, and recovery through every one of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from arrays import recovered
from massart.certificate import Verdict
from massart.paper import MassartNoise, decoy, far_constant, flip, gaussian, gross, scale
from massart.rows import (
    ACTIVE,
    AGREES,
    DECISIVE,
    IDENTITY,
    IMPOSSIBLE,
    RELU,
    Agreement,
    Level,
    Link,
    Mark,
    tally_of,
    verify,
)

INFINITY = float("inf")
CLIPPING = {
    "ReLU": RELU,
    "two-sided": Link(lower=-1, upper=1.5),
    "right-censored": Link(lower=-INFINITY, upper=1.0),
    "shifted": Link(lower=0.5, upper=INFINITY),
    "narrow": Link(lower=0.5, upper=2.5),
}
INVERTIBLE = {"identity": IDENTITY, "leaky": Link(slope=0.1), "steep": Link(slope=3.0), "bent twice": Link(-1, 1, 0.5)}

LINKS = st.builds(
    Link,
    st.one_of(st.just(-INFINITY), st.floats(-10, 1)),
    st.one_of(st.just(INFINITY), st.floats(1.5, 10)),
    st.one_of(st.just(0.0), st.floats(0.05, 3)),
)
PRODUCTS = st.lists(st.floats(-30, 30), min_size=1, max_size=20).map(np.array)


def relative_error(found, w):
    return np.linalg.norm(found - w) / np.linalg.norm(w)


def table(link, n, d, eta, adversary, seed=0):
    rng = np.random.default_rng(seed)
    X = gaussian(n, d, rng)
    w = rng.standard_normal(d)

    def concept(rows, parameter):
        return link(rows @ parameter)

    adversaries = {
        "flip": flip(w, concept),
        "constant": far_constant,
        "decoy": decoy(rng.standard_normal(d), concept),
        "gross": gross(),
        "1.1": scale(1.1),
    }
    noise = MassartNoise(eta, adversaries[adversary]).corrupt(X, link(X @ w), rng)
    return X, noise.labels, w, noise.changed


# --- what a link is ---


@settings(max_examples=50)
@given(LINKS, PRODUCTS)
def test_a_link_is_its_formula(link, z):
    expected = np.where(
        z < link.lower,
        link.lower + link.slope * (z - link.lower) if link.lower > -INFINITY else z,
        np.where(z > link.upper, link.upper + link.slope * (z - link.upper) if link.upper < INFINITY else z, z),
    )
    np.testing.assert_allclose(link(z), expected, rtol=1e-13, atol=1e-13)


@settings(max_examples=50)
@given(LINKS, PRODUCTS)
def test_a_link_never_falls(link, z):
    assert (np.diff(link(np.sort(z))) >= -1e-13).all()


@pytest.mark.slow
@settings(max_examples=50)
@given(LINKS, PRODUCTS)
def test_the_inverse_undoes_the_link(link, z):
    y = link(z)
    if link.slope:
        np.testing.assert_allclose(link.inverse(y), z, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(link(link.inverse(z)), z, rtol=1e-9, atol=1e-12)
    decisive = link.decisive(y)
    np.testing.assert_allclose(link.inverse(y[decisive]), z[decisive], rtol=1e-9, atol=1e-12)


@settings(max_examples=50)
@given(LINKS, PRODUCTS, st.floats(0, 0.2))
def test_labels_are_decisive_at_a_limit_or_impossible(link, y, slack):
    y = np.append(y, [limit for limit in (link.lower, link.upper) if np.isfinite(limit)])
    decisive, impossible = link.decisive(y), link.impossible(y)
    assert not (decisive & impossible).any()
    if link.invertible:
        assert decisive.all()
        return
    np.testing.assert_array_equal(impossible, link(y) != y)
    np.testing.assert_array_equal(~decisive & ~impossible, (y == link.lower) | (y == link.upper))
    assert not (link.decisive(y, slack) & ~decisive).any(), "slack makes more labels limits"
    assert not (link.impossible(y, slack) & ~impossible).any()


@settings(max_examples=50)
@given(LINKS, PRODUCTS)
def test_the_derivative_follows_finite_differences(link, z):
    h = 1e-6
    away = (np.abs(z - link.lower) > 2 * h) & (np.abs(z - link.upper) > 2 * h)
    difference = (link(z + h) - link(z - h)) / (2 * h)
    np.testing.assert_allclose(link.derivative(z)[away], difference[away], atol=1e-7)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lower": 1.0, "upper": 1.0}, "lower must be less than upper, got 1.0 and 1.0"),
        ({"lower": 2.0, "upper": -1.0}, "lower must be less than upper"),
        ({"lower": float("nan")}, "lower must be less than upper"),
        ({"upper": float("nan")}, "lower must be less than upper"),
        ({"slope": -0.1}, "slope must be finite and not negative, got -0.1"),
        ({"slope": INFINITY}, "slope must be finite"),
        ({"slope": float("nan")}, "slope must be finite"),
    ],
)
def test_impossible_links_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Link(**arguments)


# --- recovery through links ---


@pytest.mark.slow
@settings(max_examples=12)
@given(
    st.sampled_from(sorted(CLIPPING)),
    st.sampled_from(["flip", "constant", "decoy", "gross", "1.1"]),
    st.floats(0, 0.3),
    st.integers(0, 2**32 - 1),
)
def test_recovery_is_exact_through_any_clip(name, adversary, eta, seed):
    link = CLIPPING[name]
    X, y, w, _ = table(link, 400, 3, eta, adversary, seed)
    assume(link.decisive(X @ w).mean() >= 0.2)  # a small w hardly leaves a limit
    found = recovered(X, y, link=link)
    assert relative_error(found.coef, w) <= 1e-12
    sizes = np.abs(X) @ np.abs(w) + np.abs(y)
    np.testing.assert_array_equal(found.agree, np.abs(y - link(X @ w)) <= 1e-10 * sizes)


@pytest.mark.slow
@settings(max_examples=12)
@given(
    st.sampled_from(sorted(INVERTIBLE)),
    st.sampled_from(["flip", "constant", "decoy", "gross"]),
    st.floats(0, 0.3),
    st.integers(0, 2**32 - 1),
)
def test_recovery_is_exact_through_any_invertible_link(name, adversary, eta, seed):
    link = INVERTIBLE[name]
    X, y, w, _ = table(link, 300, 4, eta, adversary, seed)
    found = recovered(X, y, link=link)
    assert relative_error(found.coef, w) <= 1e-12
    assert found.certificate.verdict.stands
    assert found.certificate.n_active is None
    assert found.certificate.n_rows == 300


def test_a_leaky_link_is_linear_recovery_of_the_inverse():
    link = Link(slope=0.1)
    X, y, _, _ = table(link, 200, 5, 0.3, "decoy")
    np.testing.assert_allclose(recovered(X, y, link=link).coef, recovered(X, link.inverse(y)).coef, rtol=1e-13)


def test_a_shift_of_limits_and_labels_is_a_shift_of_the_intercept():
    rng = np.random.default_rng(0)
    X = np.column_stack([gaussian(500, 3, rng), np.ones(500)])
    w = np.array([1.0, -2, 0.5, 0.25])
    for shift in (0.0, 3.0, -40.0):
        link = Link(lower=shift, upper=shift + 3)
        moved = w + [0, 0, 0, shift]
        y = np.where(rng.random(500) < 0.3, shift + 2 * rng.random(500), link(X @ moved))
        found = recovered(X, y, link=link)
        np.testing.assert_allclose(found.coef, moved, rtol=1e-11, atol=1e-11)
        assert found.certificate.verdict.stands


def test_units_of_labels_and_limits_change_together():
    X, y, w, _ = table(CLIPPING["narrow"], 400, 3, 0.3, "decoy")
    for unit in (1e-6, 1.0, 1e9):
        found = recovered(X, unit * y, link=Link(0.5 * unit, 2.5 * unit))
        assert relative_error(found.coef / unit, w) <= 1e-11


def test_labels_beyond_the_limits_count_for_no_side():
    link = CLIPPING["two-sided"]
    X, y, w, _ = table(link, 400, 3, 0.0, "gross")
    y[:80] = 1.6
    y[80:160] = -1.1
    found = recovered(X, y, link=link)
    assert relative_error(found.coef, w) <= 1e-12
    assert found.certificate.n_rows == found.certificate.n_agree == 240
    assert not found.agree[:160].any()
    assert found.certificate.verdict is Verdict.PROVEN


def test_cents_at_two_limits():
    link = Link(lower=0, upper=100)
    rng = np.random.default_rng(0)
    X = rng.uniform(-50, 50, (500, 3))
    w = np.array([1.234, -0.567, 2.5])
    y = np.round(link(X @ w), 2)
    wrong = rng.random(500) < 0.3
    y[wrong] = np.round(rng.uniform(5, 95, wrong.sum()), 2)
    found = recovered(X, y, link=link)
    assert relative_error(found.coef, w) < 1e-3
    assert found.agreement.label == 0.005
    assert not found.agree[wrong & (np.abs(y - link(X @ w)) > 0.02)].any()
    assert found.agree[~wrong].mean() > 0.97
    assert found.certificate.verdict.stands


def test_labels_that_all_saturate_leave_every_coefficient_open():
    link = Link(lower=-1, upper=1)
    X = gaussian(50, 2, np.random.default_rng(0))
    for y in (np.ones(50), -np.ones(50), np.sign(X[:, 0])):
        found = recovered(X, y, link=link)
        assert np.isfinite(found.coef).all()
        assert (found.certificate.verdict, found.certificate.rank) == (Verdict.NONE, 0)
        assert found.certificate.n_decisive == 0


# --- marks, and the rows that speak ---


@settings(max_examples=40)
@given(LINKS, st.integers(0, 2**32 - 1))
def test_marks_are_by_definition_and_the_tally_is_their_weight(link, seed):
    rng = np.random.default_rng(seed)
    X, y, w = rng.uniform(-6, 6, (40, 2)), rng.uniform(-12, 12, 40), rng.uniform(-2, 2, 2)
    given = Agreement(Level.GIVEN, label=0.1)
    near = rng.random(40) < 0.5
    y[near] = link(X @ w)[near] + rng.uniform(-0.05, 0.05, int(near.sum()))
    weights = rng.integers(0, 4, 40).astype(float)
    marks = Mark(w, given, link).of(verify(X, y, w, given, link), y)
    t = 0.1 * max(1.0, link.slope)
    np.testing.assert_array_equal((marks & AGREES) > 0, np.abs(y - link(X @ w)) <= t)
    assert (marks & AGREES).sum() >= near.sum()
    np.testing.assert_array_equal((marks & ACTIVE) > 0, link.decisive(X @ w))
    np.testing.assert_array_equal((marks & DECISIVE) > 0, link.decisive(y, t))
    np.testing.assert_array_equal((marks & IMPOSSIBLE) > 0, link.impossible(y, t))
    counts = tally_of(marks, weights)
    assert counts.sum() == weights.sum()
    assert counts[AGREES::2].sum() == weights[(marks & AGREES) > 0].sum()


def test_a_majority_of_all_rows_is_none_without_one_of_the_active_rows():
    """60 % of the rows are zeros that the formula fits; of those between the limits fewer than half agree."""
    rng = np.random.default_rng(0)
    for wrong, expected in ((0.3, True), (0.6, False)):
        X = gaussian(600, 3, rng)
        X[:, 0] = np.where(np.arange(600) < 360, -1, 1) * (np.abs(X[:, 0]) + 6)
        y = RELU(X @ [1.0, 0.5, -0.25])
        active = np.arange(600) >= 360
        bad = active & (rng.random(600) < wrong)
        y[bad] = rng.uniform(1, 20, int(bad.sum()))
        found = recovered(X, y, link=RELU)
        assert 2 * found.certificate.n_agree > found.certificate.n_rows
        assert found.certificate.verdict.stands is expected
        if expected:
            assert (found.certificate.n_active, found.certificate.n_decisive) == (240, 240 - bad.sum())
