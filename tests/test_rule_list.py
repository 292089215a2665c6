"""recover_list: each rule has its own rows and its own test, and what chance or repeated errors make is no rule."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest

from massart import RuleList, recover_list
from massart.certificate import Width, explained_by_chance, rows_needed
from massart.recover import ErrorType, RuleError

FIRST, SECOND = np.array([2.0, 0.5, 12.0]), np.array([1.5, 4.0, 0.0])


def columns(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.uniform(0, 100, (n, 2)).round(2)


def given(X: np.ndarray, w: np.ndarray) -> np.ndarray:
    return np.column_stack([X, np.ones(len(X))]) @ w


def mixture(seed: int, n: int = 900, cents: bool = False, junk: float = 0.1) -> tuple[np.ndarray, ...]:
    """Return rows, labels and which rule made each: 0, 1, or -1 for none."""
    rng = np.random.default_rng(seed)
    X = columns(rng, n)
    made = rng.choice([0, 1, -1], n, p=[0.6 * (1 - junk), 0.4 * (1 - junk), junk])
    y = np.choose(made + 1, [rng.uniform(0, 600, n), given(X, FIRST), given(X, SECOND)])
    return X, y.round(2) if cents else y, made


def written(found: RuleList) -> list[list[float]]:
    return [[*rule.coef.round(9).tolist(), round(rule.intercept, 9)] for rule in found.rules]


# --- what is found ---


@pytest.mark.parametrize("cents", [False, True])
def test_each_rule_of_a_mixture_has_its_own_rows(cents):
    for seed in range(2):
        X, y, made = mixture(seed, cents=cents)
        found = recover_list(X, y)
        assert written(found) == [FIRST.tolist(), SECOND.tolist()]
        assert all(value is not None for rule in found.rules for value in rule.fractions)
        told = found.assigned != -2
        assert told.mean() > 0.99
        assert (found.assigned[told] == made[told]).mean() > 0.995
        for rule in found.rules:
            assert rule.test.is_certified
            assert rule.test.rows >= rule.test.needed > X.shape[1] + 1
            assert np.allclose(rule.predict(X)[rule.own], y[rule.own], atol=0.006)


def test_rows_that_fit_two_rules_are_given_to_neither():
    rng = np.random.default_rng(0)
    X = columns(rng, 900)
    X[:200, 0], X[:200, 1] = 0, rng.integers(1, 9, 200) * 10  # 2 a + 5 b and 3 a + 5 b are the same there
    y = X @ [2.0, 5.0]
    y[::2] = X[::2] @ [3.0, 5.0]
    found = recover_list(X, y, intercept=False)
    assert len(found.rules) == 2
    assert found.shared[:200].all()
    assert not found.shared[200:].any()
    assert [rule.n_own for rule in found.rules] == [350, 350]
    assert all(rule.n_shared == 200 for rule in found.rules)
    assert not found.none.any()
    assert all(rule.test.rows <= 550 for rule in found.rules)


def test_order_of_rows_and_columns_and_units_change_nothing():
    X, y, _ = mixture(2, cents=True)
    order = np.random.default_rng(7).permutation(len(y))
    first, again = recover_list(X, y), recover_list(X[order][:, ::-1], y[order])
    assert len(first.rules) == 2
    assert written(again) == [[b, a, c] for a, b, c in written(first)]
    assert np.array_equal(again.assigned, first.assigned[order])
    other = recover_list(X * 8, y)
    assert np.array_equal(other.assigned, first.assigned)


# --- what is no rule ---


def test_labels_without_a_rule_have_none():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = columns(rng, 300)
        laws = (rng.uniform(0, 600, 300).round(2), rng.choice([0.0, 2.0, 3.0], 300), np.full(300, 7.0))
        assert recover_list(X, laws[seed % 3]).rules == ()


@pytest.mark.parametrize("law", ["uniform", "normal", "Cauchy"])
def test_beside_one_rule_and_junk_there_is_no_second(law):
    claims = 0
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X = columns(rng, 600)
        y = given(X, FIRST)
        wrong = rng.random(600) < 0.4
        draw = {"uniform": partial(rng.uniform, -10, 10), "normal": rng.standard_normal, "Cauchy": rng.standard_cauchy}
        errors = 30 * draw[law](size=600)
        found = recover_list(X, (y + wrong * errors).round(2))
        assert len(found.rules) == 1
        claims += written(found) == [FIRST.tolist()]
    assert claims == 2


@pytest.mark.parametrize("amounts", [(), (25.0,), (25.0, -40.0, 7.5)])
@pytest.mark.parametrize("cents", [False, True])
def test_amounts_that_rows_are_off_by_are_set_aside(amounts, cents):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X = columns(rng, 900)
        which = rng.choice(len(amounts) + 2, 900, p=[1 - 0.2 - 0.1 * len(amounts), 0.2, *[0.1] * len(amounts)])
        off = np.choose(which, [np.zeros(900), rng.uniform(-300, 300, 900), *[np.full(900, a) for a in amounts]])
        y = given(X, FIRST) + off
        found = recover_list(X, y.round(2) if cents else y)
        assert written(found) == [FIRST.tolist()]
        assert {one.error for one in found.errors} == {RuleError(0, ErrorType.AMOUNT, amount) for amount in amounts}
        assert all(np.array_equal(one.rows, np.flatnonzero(off == one.error.value)) for one in found.errors)


@pytest.mark.parametrize(
    ("change", "error", "column"),
    [
        (lambda X, y: 10 * y, ErrorType.MULTIPLE, None),
        (lambda X, y: 1.19 * y, ErrorType.MULTIPLE, None),
        (lambda X, y: y - 4 * X[:, 1], ErrorType.FORGOTTEN, 1),
        (lambda X, y: y + 1.5 * X[:, 0], ErrorType.TWICE, 0),
        (lambda X, y: y - 8 * X[:, 1], ErrorType.SIGN, 1),
        (lambda X, y: X[:, 0], ErrorType.COLUMN, 0),
    ],
)
def test_an_error_that_makes_a_formula_is_no_rule(change, error, column):
    rng = np.random.default_rng(4)
    X = columns(rng, 1000)
    right = given(X, np.array([1.5, 4.0, 9.0]))
    which = rng.choice(3, 1000, p=[0.5, 0.3, 0.2])
    y = np.choose(which, [right, change(X, right), rng.uniform(0, 600, 1000)])
    found = recover_list(X, y)
    assert written(found) == [[1.5, 4.0, 9.0]]
    (listed,) = found.errors
    assert listed.error == RuleError(0, error, listed.error.value, column)
    assert np.array_equal(listed.rows, np.flatnonzero(which == 1))
    assert np.array_equal(found.none, which != 0)
    assert np.array_equal(found.assigned, np.where(which == 0, 0, -1))


def test_a_value_that_many_rows_have_is_named():
    X, y, made = mixture(6)
    y[np.flatnonzero(made == -1)[:50]] = 0
    found = recover_list(X, y)
    assert len(found.rules) == 2
    assert [(one.error.words(), len(one.rows)) for one in found.errors] == [("the value 0", 50)]


def test_another_price_for_one_thing_is_a_rule():
    """Where a rule has one term, any other rule is a multiple of it, or another charge beside it."""
    rng = np.random.default_rng(5)
    net = rng.uniform(1, 100, (900, 1)).round(2)
    rate = rng.choice([1.19, 1.07, 10.7], 900, p=[0.5, 0.3, 0.2])
    found = recover_list(net, (net[:, 0] * rate).round(2))
    assert [rule.coef[0] for rule in found.rules] == [1.19, 1.07]
    assert [(listed.error.type, listed.error.rule) for listed in found.errors] == [(ErrorType.MULTIPLE, 1)]


def test_large_labels_make_no_second_rule():
    claims = 0
    for seed, size in itertools.product(range(2), (1e8, 1e9)):  # half-widths are those of the largest label
        rng = np.random.default_rng(seed)
        X = columns(rng, 600)
        y = given(X, FIRST) + size
        wrong = rng.random(600) < 0.4
        y = y + wrong * 5 * rng.standard_normal(600)
        found = recover_list(X, y)
        assert len(found.rules) <= 1
        claims += len(found.rules)
    assert claims > 0


def test_the_tangent_of_a_curve_is_no_rule():
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X = columns(rng, 600)
        y = np.where(rng.random(600) < 0.55, given(X, FIRST), 20 * np.sqrt(X[:, 0]) + X[:, 1]).round(0)
        assert len(recover_list(X, y).rules) == 1


# --- the test ---


def test_what_is_explained_covers_a_formula_between_two_rules():
    """Two rules pass through 0, 2 and 3 wherever labels are replaced by these: the third value is left for another."""
    rng = np.random.default_rng(0)
    pairs = np.array([*itertools.permutations([0.0, 2.0, 3.0], 2)])
    third = 5 - pairs.sum(axis=1)
    n, share, reached = 3000, 0.2, 0
    for _ in range(20):
        level = rng.integers(6, size=n)
        kind = rng.choice(5, n, p=[0.2, 0.2, share, share, share])
        junk = np.choose(np.maximum(kind - 2, 0), [np.zeros(n), np.full(n, 2.0), np.full(n, 3.0)])
        y = np.where(kind == 0, pairs[level, 0], np.where(kind == 1, pairs[level, 1], junk))
        found = explained_by_chance(y, [pairs[level, 0], pairs[level, 1]], Width.of(1e-12, 1.0), 1e-3)
        fits = found.left & (y == third[level])
        assert found.share >= fits.mean()
        reached += found.share < 1 or fits.any()
        assert fits.sum() < rows_needed(found, 6, 5e-4)
    assert reached


@pytest.mark.parametrize("amounts", [(), (25.0,), (25.0, -40.0, 7.5)])
@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_beside_a_rule_and_its_amounts_no_line_reaches_what_is_needed(amounts, noise):
    """Labels are in cents; every line through two of the rows is counted, also where noise surrounds the rule."""
    claimed = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        n, half = 160, 0.005
        x = rng.uniform(0, 100, n).round(2)
        which = rng.choice(len(amounts) + 2, n, p=[0.7 - 0.15 * len(amounts), 0.3, *[0.15] * len(amounts)])
        right = 2 * x + 7 + noise * rng.uniform(-1, 1, n)
        junk = 5.0 * rng.integers(0, 60, n)
        y = np.choose(which, [right, junk, *[right + amount for amount in amounts]]).round(2)
        found = explained_by_chance(y, [2 * x + 7], Width.of(half, 100.0), 1e-3)
        needed = rows_needed(found, 2, 5e-4)
        i, j = np.triu_indices(n, 1)
        i, j = i[x[i] != x[j]], j[x[i] != x[j]]
        slope = (y[j] - y[i]) / (x[j] - x[i])
        rest = np.abs(y - y[i, None] - slope[:, None] * (x - x[i, None]))
        best = np.count_nonzero((rest <= 2 * half + 1e-9) & found.left, axis=1).max()
        assert 2 <= best < needed
        claimed += needed <= n
    assert claimed == 4


# --- bad input ---


def test_bad_input_is_told():
    X, y, _ = mixture(0, n=50)
    for options, words in (
        ({"n_rules": 0}, "n_rules"),
        ({"n_rules": "many"}, "n_rules"),
        ({"tolerance": -1.0}, "tolerance"),
        ({"random_state": "x"}, "random_state"),
    ):
        with pytest.raises(ValueError, match=words):
            recover_list(X, y, **options)
    with pytest.raises(ValueError, match="y has 49 rows but X has 50"):
        recover_list(X, y[1:])
    with pytest.raises(ValueError, match="X must be finite"):
        recover_list(np.where(X > 99, np.nan, X) * np.nan, y)
    with pytest.raises(ValueError, match="shape"):
        recover_list(X, np.column_stack([y, y]))


def test_few_or_degenerate_rows_have_no_rules():
    assert recover_list([[1.0]], [2.0]).rules == ()
    assert recover_list(np.zeros((40, 2)), np.zeros(40)).rules == ()
    assert recover_list(np.ones((40, 2)), np.arange(40.0)).rules == ()
