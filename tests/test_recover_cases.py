"""What a recovery must find, must not claim and must not depend on, whatever its steps are.

Each case is a table of a kind that some version lost. A rule counts as found where the coefficients are the numbers of
its author; wrong claims are verdicts above the ones allowed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import massart
from massart.certificate import Assumption, Verdict
from massart.recover import recover
from massart.rows import ArrayRows, Link

STANDS = (Verdict.MAJORITY, Verdict.CONFIRMED, Verdict.PROVEN)
CERTAIN = (Verdict.CONFIRMED, Verdict.PROVEN)
NOTHING = (Verdict.NONE, Verdict.NOISY)
Rng = np.random.Generator


def fit(X: Any, y: Any, weights: Any = None, seed: int = 0, **options: Any) -> Any:
    return recover(ArrayRows(np.asarray(X), y, weights), rng=np.random.default_rng(seed), **options)


def mixed(rng: Rng, wrong: Any, right: Any, share: float) -> Any:
    """Return labels, of which a share is wrong."""
    return np.where(rng.random(len(right)) < share, wrong, right)


# --- rules that are there ---------------------------------------------------------------------------------------------


def gaussian(n: int, d: int, share: float, places: int | None = None) -> Callable[[Rng], Any]:
    def table(rng: Rng) -> Any:
        X, w = rng.standard_normal((n, d)), np.round(rng.uniform(-9, 9, d), 2)
        y = X @ w if places is None else np.round(X @ w, places)
        return X, mixed(rng, X @ np.round(rng.uniform(-9, 9, d), 2), y, share), w

    return table


def integers_with_a_decoy(rng: Rng) -> Any:
    """Whole labels that another rule moves by little: a looser level fits some of both (3.004 for 3)."""
    X, w = rng.integers(1, 10, (5000, 6)).astype(float), rng.integers(1, 10, 6).astype(float)
    return X, mixed(rng, X @ (w + [1, 0, 0, -1, 0, 0]), X @ w, 0.4), w


def fixed_effects(rng: Rng) -> Any:
    """One coefficient of 27 is off where few rows look."""
    firm = rng.integers(0, 25, 600)
    X = np.column_stack([rng.standard_normal((600, 2)), np.eye(25)[firm]])
    w = rng.integers(-9, 10, 27).astype(float)
    return X, mixed(rng, X @ w + rng.integers(1, 5, 600), X @ w, 0.3), w


def sparse_counts(rng: Rng) -> Any:
    X, w = rng.poisson(0.5, (300, 15)).astype(float), rng.integers(-9, 10, 15).astype(float)
    return X, mixed(rng, rng.integers(-40, 40, 300), X @ w, 0.3), w


def rare_column(rng: Rng) -> Any:
    """40 of 60,000 rows have a column: no sample would."""
    X = rng.integers(0, 20, (60_000, 4)).astype(float)
    X[:, 3] = 0
    X[rng.choice(60_000, 40, replace=False), 3] = 1
    w = np.array([3.0, 0.25, 7.0, 40.0])
    return X, mixed(rng, rng.integers(0, 300, 60_000), X @ w, 0.3), w


def beneath(rng: Rng) -> Any:
    """Small terms beneath a huge one."""
    X = rng.standard_normal((400, 4)) * [1e9, 1, 1, 1]
    w = np.array([3.0, -2.0, 0.5, 7.0])
    return X, mixed(rng, 1e9 * rng.standard_normal(400), X @ w, 0.3), w


def tariff(rng: Rng) -> Any:
    """Quarters of an hour at 54.50: every second amount ends in half a cent."""
    X = np.column_stack([rng.integers(1, 160, 500) / 4, rng.integers(0, 30, 500), np.ones(500)])
    w = np.array([54.5, 3.9, 12.0])
    y = np.round(X @ w, 2)
    return X, mixed(rng, y * rng.choice([1.19, 10, -1], 500), y, 0.3), w


def cent_too_high(rng: Rng) -> Any:
    """Three labels in ten are a cent too high, and pull the formula up."""
    X = np.column_stack([np.round(rng.uniform(10, 900, 600), 2), np.ones(600)])
    w = np.array([0.19, 4.0])
    y = np.round(X @ w, 2)
    return X, mixed(rng, y + 0.01, y, 0.3), w


def rounded_columns(rng: Rng) -> Any:
    """Columns that were rounded after the labels were computed."""
    exact, w = rng.uniform(0, 100, (800, 2)), np.array([3.0, 5.0])
    return np.round(exact), mixed(rng, rng.integers(0, 800, 800), np.round(exact @ w), 0.3), w


def fractions(rng: Rng) -> Any:
    X, w = rng.integers(1, 300, (400, 3)).astype(float), np.array([1 / 3, 5 / 7, 0.0])
    return X, mixed(rng, rng.uniform(0, 300, 400), X @ w, 0.35), w


def subtotals(rng: Rng) -> Any:
    """A total beside its parts: of the formulas that rows do not tell apart, the shortest."""
    parts = rng.integers(1, 99, (300, 3)).astype(float)
    X = np.column_stack([parts, parts.sum(axis=1)])
    return X, mixed(rng, rng.integers(0, 600, 300), 2 * X[:, 3] + X[:, 0], 0.25), np.array([1.0, 0, 0, 2])


def flags_coded_one_or_two(rng: Rng) -> Any:
    """One row in 16 has a flag, and 40 % are wrong by a rival that differs there alone."""
    X = np.column_stack([1 + (rng.random((4000, 6)) < 0.06), rng.standard_normal((4000, 6)), np.ones(4000)])
    w = rng.integers(-9, 10, 13).astype(float)
    rival = w.copy()
    rival[:6] += rng.choice([-2, -1, 1, 2], 6)
    rival[-1] -= (rival - w)[:6].sum()
    return X, mixed(rng, X @ rival, X @ w, 0.4), w


def many_rows(rng: Rng) -> Any:
    X, w = rng.standard_normal((60_000, 20)), rng.integers(-9, 10, 20) / 4
    return X, mixed(rng, X @ rng.standard_normal(20), X @ w, 0.4), w


def clipped(link: Link) -> Callable[[Rng], Any]:
    def table(rng: Rng) -> Any:
        X, w = rng.standard_normal((1000, 4)), np.array([2.0, -1.0, 0.5, 0.25])
        return X, mixed(rng, link(X @ rng.standard_normal(4)), link(X @ w), 0.2), w

    return table


RULES: dict[str, tuple[Callable[[Rng], Any], dict[str, Any]]] = {
    "60 x 4": (gaussian(60, 4, 0.35), {}),
    "250 x 9": (gaussian(250, 9, 0.4), {}),
    "360 x 20": (gaussian(360, 20, 0.4), {}),
    "in cents": (gaussian(400, 6, 0.4, 2), {}),
    "integers with a decoy": (integers_with_a_decoy, {}),
    "fixed effects": (fixed_effects, {}),
    "sparse counts": (sparse_counts, {}),
    "beneath": (beneath, {}),
    "tariff": (tariff, {}),
    "a cent too high": (cent_too_high, {}),
    "rounded columns": (rounded_columns, {}),
    "fractions": (fractions, {}),
    "subtotals": (subtotals, {}),
    "ReLU": (clipped(Link()), {"link": Link()}),
    "two limits": (clipped(Link(-1.0, 2.0)), {"link": Link(-1.0, 2.0)}),
    "leaky": (clipped(Link(2.0, slope=0.1)), {"link": Link(2.0, slope=0.1)}),
    "tolerance": (gaussian(300, 4, 0.3), {"tolerance": 1e-6}),
}


@pytest.mark.parametrize("name", RULES)
def test_the_rule_is_found_in_the_numbers_of_its_author(name: str) -> None:
    make, options = RULES[name]
    for seed in range(3):
        X, y, w = make(np.random.default_rng([seed, 11]))
        recovery = fit(X, y, **options)
        loose = options.get("tolerance", 0.0)
        np.testing.assert_allclose(recovery.coef[:, 0], w, rtol=0, atol=max(loose, 1e-12 * np.abs(w).max()))
        assert recovery.certificates[0].verdict >= Verdict.PLURALITY
        if name != "tolerance":
            assert [float(number) for number in recovery.fractions[0]] == w.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("make", [rare_column, flags_coded_one_or_two, many_rows])
def test_large_tables_are_sampled_and_all_rows_are_marked(make: Callable[[Rng], Any]) -> None:
    X, y, w = make(np.random.default_rng(3))
    recovery = fit(X, y)
    np.testing.assert_allclose(recovery.coef[:, 0], w, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(recovery.agree[:, 0], np.abs(y - X @ w) < 1e-9)
    assert recovery.certificates[0].verdict >= Verdict.PLURALITY


@pytest.mark.parametrize("seed", range(3))
def test_a_column_on_two_wrong_rows_is_left_out_and_listed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.standard_normal((200, 3)), np.zeros(200)])
    X[:2, 3] = 1
    y = mixed(rng, 9 * rng.standard_normal(200), X[:, :3] @ [2.0, -1.0, 0.5], 0.2)
    y[:2] = [70.0, 31.0]
    recovery = fit(X, y)
    assert recovery.coef[:, 0].tolist() == [2.0, -1.0, 0.5, 0.0]
    assert recovery.certificates[0].verdict in STANDS
    assert [column for column, _ in recovery.certificates[0].thin] in ([], [3])


# --- rules that are not there -----------------------------------------------------------------------------------------


def noise_of_three_cents(rng: Rng) -> Any:
    x = np.round(rng.uniform(1, 300, (400, 1)), 2)
    return x, np.round(0.19 * x[:, 0] + 0.03 * rng.standard_normal(400), 2)


def noise_of_twenty_cents(rng: Rng) -> Any:
    x = np.round(rng.uniform(1, 300, (500, 1)), 2)
    return x, np.round(0.19 * x[:, 0] + 0.2 * rng.standard_normal(500), 2)


def vague_counts(rng: Rng) -> Any:
    x = rng.integers(0, 400, (500, 1)).astype(float)
    return x, np.round(0.1 * x[:, 0] + 5 * rng.standard_normal(500))


def unrelated(labels: Callable[[Rng, int], Any], n: int) -> Callable[[Rng], Any]:
    return lambda rng: (rng.standard_normal((n, 3)), labels(rng, n))


NO_RULE: dict[str, Callable[[Rng], Any]] = {
    "noise of three cents": noise_of_three_cents,
    "noise of twenty cents": noise_of_twenty_cents,
    "vague counts": vague_counts,
    "floats": unrelated(lambda rng, n: rng.standard_normal(n), 300),
    "cents": unrelated(lambda rng, n: np.round(100 * rng.random(n), 2), 300),
    "counts": unrelated(lambda rng, n: rng.poisson(3, n).astype(float), 200),
    "yes or no": unrelated(lambda rng, n: (rng.random(n) < 0.4).astype(float), 300),
    "mostly zero": unrelated(lambda rng, n: rng.poisson(0.2, n).astype(float), 500),
    "few": unrelated(lambda rng, n: rng.standard_normal(n), 7),
}


@pytest.mark.parametrize("name", NO_RULE)
def test_nothing_is_claimed_where_there_is_no_exact_rule(name: str) -> None:
    for seed in range(2):
        X, y = NO_RULE[name](np.random.default_rng([seed, 12]))
        assert fit(X, y).certificates[0].verdict in NOTHING


def test_a_rule_of_a_minority_is_no_more_than_a_plurality() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 3))
    y = np.where(np.arange(500) < 200, X @ [3.0, 1.0, -2.0], 30 * rng.standard_normal(500))
    certificate = fit(X, y).certificates[0]
    assert certificate.verdict is Verdict.PLURALITY
    assert certificate.n_agree == 200


# --- brute force ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 3])
def test_on_tiny_tables_no_formula_fits_more_rows_than_a_certain_one(d: int) -> None:
    """Every formula that fits d independent rows is tried: where one is PROVEN, all others fit fewer rows."""
    certain = 0
    for seed in range(24):
        rng = np.random.default_rng([seed, d])
        n = int(rng.integers(d + 3, 15))
        X, w = rng.integers(-3, 4, (n, d)).astype(float), rng.integers(-4, 5, d).astype(float)
        y = mixed(rng, rng.integers(-9, 10, n), X @ w, rng.choice([0.1, 0.3, 0.5]))
        recovery = fit(X, y)
        agree = recovery.agree[:, 0]
        if recovery.certificates[0].verdict not in CERTAIN:
            continue
        np.testing.assert_array_equal(agree, np.abs(y - X @ recovery.coef[:, 0]) < 1e-9)
        certain += 1
        for rows in map(list, combinations(range(n), d)):
            if abs(np.linalg.det(X[rows])) > 0.5:
                other = np.linalg.solve(X[rows], y[rows])
                fits = np.abs(y - X @ other) < 1e-9
                used = agree | fits
                same = np.abs(X[used] @ (other - recovery.coef[:, 0])).max() < 1e-9
                assert same or fits.sum() < agree.sum()
    assert certain >= 3


# --- what must not matter ---------------------------------------------------------------------------------------------

LAWS: dict[str, Callable[[Any, Any, Any], Any]] = {  # X, y, w -> X, y, w that must be found
    "other units of the labels": lambda X, y, w: (X, 1024 * y, 1024 * w),
    "other units of the columns": lambda X, y, w: (X * [0.5, 2, 64, 1], y, w / [0.5, 2, 64, 1]),
    "columns in another order": lambda X, y, w: (X[:, [2, 0, 3, 1]], y, w[[2, 0, 3, 1]]),
    "another rule on top": lambda X, y, w: (X, y + X @ [2.0, -1, 4, 1], w + [2.0, -1, 4, 1]),
    "another basis": lambda X, y, w: (np.column_stack([X[:, 0] + X[:, 1], X[:, 1:]]), y, w - [0, w[0], 0, 0]),
    "labels turned": lambda X, y, w: (X, -y, -w),
}


@pytest.mark.parametrize("name", LAWS)
def test_another_way_to_write_a_table_changes_the_formula_as_it_must(name: str) -> None:
    for seed in range(3):
        rng = np.random.default_rng([seed, 13])
        X, w = rng.integers(-20, 21, (300, 4)).astype(float), rng.integers(-9, 10, 4).astype(float)
        y = mixed(rng, rng.integers(-200, 200, 300), X @ w, 0.35)
        plain, other = fit(X, y), fit(*(changed := LAWS[name](X, y, w))[:2])
        np.testing.assert_array_equal(plain.coef[:, 0], w)
        np.testing.assert_array_equal(other.coef[:, 0], changed[2])
        np.testing.assert_array_equal(other.agree, plain.agree)
        assert other.certificates[0].verdict == plain.certificates[0].verdict


@pytest.mark.parametrize("kind", ["exact", "cents", "none"])
def test_the_order_of_rows_does_not_matter(kind: str) -> None:
    rng = np.random.default_rng(4)
    X = rng.uniform(0, 50, (300, 4))
    right = X @ [1.25, -2.0, 0.5, 3.75]
    y = {"exact": right, "cents": np.round(right, 2), "none": rng.permutation(right)}[kind]
    y = mixed(rng, 100 * rng.standard_normal(300), y, 0.3)
    plain, order = fit(X, y), rng.permutation(300)
    other = fit(X[order], y[order])
    assert other.coef.tobytes() == plain.coef.tobytes()
    np.testing.assert_array_equal(other.agree, plain.agree[order])
    assert other.certificates[0].verdict == plain.certificates[0].verdict


@pytest.mark.parametrize("link", [Link(-np.inf), Link()], ids=["linear", "ReLU"])
def test_a_weight_is_a_number_of_rows(link: Link) -> None:
    rng = np.random.default_rng(5)
    X, w, other = rng.standard_normal((400, 3)), np.array([1.0, 2.0, -0.5]), np.array([2.0, 0.0, 1.0])
    y = mixed(rng, link(X @ other), link(X @ w), 0.3)
    y[200:] = link(X[200:] @ other)  # rows that do not count
    times = np.where(np.arange(400) < 200, rng.integers(1, 4, 400), 0)
    weighted = fit(X, y, times.astype(float), link=link)
    repeated = fit(np.repeat(X, times, axis=0), np.repeat(y, times), link=link, units=np.repeat(np.arange(400), times))
    np.testing.assert_allclose(weighted.coef[:, 0], w, rtol=1e-12)
    np.testing.assert_allclose(repeated.coef[:, 0], w, rtol=1e-12)
    np.testing.assert_array_equal(np.repeat(weighted.agree[:, 0], times), repeated.agree[:, 0])
    assert weighted.n_agree[0] == repeated.n_agree[0]
    assert weighted.noise_rate[0] == pytest.approx(repeated.noise_rate[0])
    assert weighted.certificates[0].verdict is repeated.certificates[0].verdict


def test_weights_make_a_majority() -> None:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((300, 3))
    heavy = np.arange(300) < 120
    y = np.where(heavy, X @ [1.0, 2.0, -0.5], X @ [2.0, 0.0, 1.0])
    weighted, plain = (fit(X, y, weights) for weights in (np.where(heavy, 2.0, 1.0), None))
    assert weighted.coef[:, 0].tolist() == [1.0, 2.0, -0.5]
    assert weighted.noise_rate[0] == pytest.approx(180 / 420)
    assert weighted.certificates[0].verdict in STANDS
    assert plain.coef[:, 0].tolist() == [2.0, 0.0, 1.0]
    assert fit(X, y, np.where(heavy, 3.0, 2.0)).certificates[0].verdict not in STANDS


def test_clusters_count_less_than_their_rows_whatever_they_are_called() -> None:
    rng = np.random.default_rng(6)
    X = rng.standard_normal((2000, 3))
    y = mixed(rng, X @ [1.0, 1.0, 1.0], X @ [3.0, -2.0, 0.5], 0.42)
    clusters = rng.integers(0, 200, 2000)
    codes = (None, np.arange(2000), clusters, 9999 - 7 * clusters)
    alone, each, together, renamed = (fit(X, y, units=units).certificates[0] for units in codes)
    assert each.eta_max == pytest.approx(alone.eta_max, abs=0.02)
    assert together.support.alpha == pytest.approx(alone.support.alpha, abs=0.05)
    assert together.verdict is renamed.verdict is Verdict.MAJORITY
    assert together.eta_max == pytest.approx(renamed.eta_max, abs=0.02)
    assert together.eta_max < alone.eta_max - 0.04


def test_each_of_several_label_columns_has_the_answer_it_has_alone() -> None:
    rng = np.random.default_rng(9)
    X = rng.standard_normal((300, 3))
    y = mixed(rng, 9 * rng.standard_normal(300), X @ [3.0, -2.0, 0.5], 0.3)
    Y = np.column_stack([y, rng.standard_normal(300), np.round(X @ [1.0, 4.0, 0.0], 2)])
    together = fit(X, Y)
    assert together.coef.shape == (3, 3)
    for j in (0, 2):
        alone = fit(X, Y[:, j])
        np.testing.assert_array_equal(together.coef[:, j], alone.coef[:, 0])
        np.testing.assert_array_equal(together.agree[:, j], alone.agree[:, 0])
        assert together.certificates[j].verdict is alone.certificates[0].verdict
    assert together.certificates[1].verdict in NOTHING


def test_rows_whose_labels_were_seen_confirm_nothing() -> None:
    rng = np.random.default_rng(6)
    X = rng.standard_normal((2000, 3))
    y = mixed(rng, X @ [1.0, 1.0, 1.0], X @ [3.0, -2.0, 0.5], 0.42)
    none, some, everything = (fit(X, y, seen=np.arange(n)).certificates[0] for n in (0, 1500, 2000))
    assert everything.eta_max == 0
    assert 0.3 < some.eta_max < none.eta_max - 0.04


def test_a_declaration_is_needed_where_most_rows_are_wrong() -> None:
    rng = np.random.default_rng(8)
    X = rng.standard_normal((800, 2))
    y = mixed(rng, 20 * rng.standard_normal(800), X @ [3.0, -2.0], 0.6)
    assert fit(X, y).certificates[0].verdict is Verdict.PLURALITY
    declared = fit(X, y, assumption=Assumption(errors="independent")).certificates[0]
    assert declared.verdict is Verdict.CONFIRMED


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1.0, 2.0], [3.0, -1e160], [5.0, 6.0]], np.zeros(3), r"got -1e\+160 at row 1, column 1: choose another unit"),
        (
            np.ones((3, 2)),
            [0.0, 1e250, -1.1e250],
            r"y must have numbers up to 1e\+250, got -1.1e\+250 at row 2: choose",
        ),
    ],
)
def test_a_number_that_is_too_large_is_named_with_its_place(X: Any, y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(X, np.array(y))


@pytest.mark.parametrize("terms", ["exp(-400*t)", "exp(-400*t), x", "exp(-100*t), exp(-400*t), x"])
def test_numbers_whose_squares_vanish_say_nothing(terms: str) -> None:
    rng = np.random.default_rng(0)
    t, x = np.round(rng.uniform(0, 10, 300), 2), np.round(rng.uniform(0, 50, 300), 1)
    y = np.round(3 * x + 2, 2) + 5 * (rng.random(300) < 0.2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        audit = massart.audit_table({"t": t, "x": x, "y": y}, "y", terms=terms)
    assert (str(audit.formula) == "y = 3 * x + 2") == ("x" in terms.split(", "))
