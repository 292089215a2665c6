"""Laws of the score in bits: a prefix code, the bound for labels in any order, and what may not come out as a rule."""

from itertools import permutations, product
from math import comb, factorial

import numpy as np
import pytest

from massart.recover import beyond_chance, choice_bits, integer_bits, rule_beyond_chance, short_number
from massart.recover.score import intervals, signed_bits
from massart.rows import IDENTITY, Agreement, Level, Link, levels

EXACT = Agreement(Level.EXACT, relative=1e-14)


def encode(y, low, high):
    """Write the order of the labels for a receiver who has the intervals and the multiset, as numbers below bounds."""
    n, message = len(y), []
    right = (low <= y) & (y <= high)
    message.append((int(right.sum()), n + 1))
    subsets = [mask for mask in product((False, True), repeat=n) if sum(mask) == right.sum()]
    message.append((subsets.index(tuple(right)), len(subsets)))
    values = np.unique(y)
    for i in np.flatnonzero(right):
        inside = values[(low[i] <= values) & (values <= high[i])].tolist()
        message.append((inside.index(y[i]), len(inside)))
    rest = sorted(set(permutations(y[~right])))
    message.append((rest.index(tuple(y[~right])), len(rest)))
    return message


def decode(message, multiset, low, high):
    numbers = [number for number, _ in message]
    n = len(multiset)
    right = [mask for mask in product((False, True), repeat=n) if sum(mask) == numbers[0]][numbers[1]]
    values, left, y = np.unique(multiset), list(multiset), np.zeros(n)
    for i, number in zip(np.flatnonzero(right), numbers[2:-1], strict=True):
        y[i] = values[(low[i] <= values) & (values <= high[i])][number]
        left.remove(y[i])
    y[~np.array(right)] = sorted(set(permutations(left)))[numbers[-1]]
    return y


@pytest.mark.parametrize("seed", range(6))
def test_an_order_can_be_decoded_from_as_many_bits_as_the_score_says(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, 6).astype(float)
    centre, half = rng.integers(0, 4, 6).astype(float), rng.choice([0.0, 1.0], 6)
    low, high = centre - half, centre + half
    message = encode(y, low, high)
    assert decode(message, np.sort(y), low, high).tolist() == y.tolist()
    bits = sum(np.log2(bound) for _, bound in message)
    orders = factorial(6) / np.prod([factorial(count) for count in np.unique(y, return_counts=True)[1]])
    assert beyond_chance(y, low, high, 3.0) == pytest.approx(np.log2(orders) - bits - 3.0)


@pytest.mark.parametrize("labels", [(0, 1, 2, 3, 4, 5), (0, 0, 1, 1, 2, 3), (0, 0, 0, 1, 1, 1)])
def test_over_all_orders_of_the_labels_messages_fit_in_one_prefix_code(labels):
    rng = np.random.default_rng(1)
    rules = [(c - h, c + h) for c, h in ((rng.integers(0, 6, 6).astype(float), w) for w in (0.0, 0.0, 1.0, 2.0))]
    every = list(set(permutations(map(float, labels))))
    total = 0.0
    largest = -np.inf
    for order in every:
        y = np.array(order)
        for low, high in rules:
            score = beyond_chance(y, low, high, np.log2(len(rules)))
            total += 2.0**score / len(every)
            largest = max(largest, score)
    assert 0 < total <= 1
    assert largest > -5


def test_any_rows_of_those_that_agree_may_be_called_right():
    y = np.array([0.0, 1, 2, 3, 4])
    low, high = y - 0.5, y + 0.5
    total = 0.0
    for order in permutations(y):
        order = np.array(order)
        for mask in product((False, True), repeat=5):
            if not (np.array(mask) & ~((low <= order) & (order <= high))).any():
                total += 2.0 ** beyond_chance(order, low, high, 0.0, np.array(mask)) / factorial(5)
    assert 0 < total <= 1


def test_the_most_frequent_value_is_no_rule():
    for y in (np.zeros(50), np.repeat([0.0, 7.0], [45, 5]), np.arange(50.0)):
        for half in (0.0, 3.0, 100.0):
            assert beyond_chance(y, np.full(50, -half), np.full(50, half), 1.0) < 0


def test_codes_are_prefix_codes():
    k = np.arange(1, 1_000_000)
    assert 0.5 < np.sum(2.0 ** -integer_bits(k)) < 0.75
    signed = np.concatenate([[0], k, -k])
    assert 0.5 < np.sum(2.0 ** -signed_bits(signed)) <= 1
    assert sum(comb(7, k) * 2.0 ** -choice_bits(7, k) for k in range(8)) == pytest.approx(1)
    total = 0.0
    for mantissa, exponent, sign in product(range(1, 400), range(-9, 10), (-1, 1)):
        if mantissa % 10:
            value = sign * float(f"{mantissa}e{exponent}")
            written, bits = short_number(value, abs(value) * 1e-9)
            assert written == value
            total += 2.0**-bits
    assert 0.1 < total <= 1


def test_a_short_number_is_within_its_slack_and_no_shorter_one_is():
    rng = np.random.default_rng(0)
    for value in rng.standard_normal(200) * 10.0 ** rng.integers(-8, 9, 200):
        for slack in abs(value) * 10.0 ** -rng.uniform(0.5, 12, 3):
            written, bits = short_number(float(value), float(slack))
            assert abs(written - value) <= slack
            assert bits < 120
            digits = len(f"{written:.16e}".split("e")[0].replace(".", "").replace("-", "").rstrip("0"))
            if digits > 1:
                assert abs(float(f"{value:.{digits - 2}e}") - value) > slack or bits <= short_number(written, 0.0)[1]


@pytest.mark.parametrize("link", [IDENTITY, Link(), Link(slope=0.1), Link(-1.0, 2.0)])
def test_the_label_of_a_row_that_agrees_is_within_its_interval(link):
    rng = np.random.default_rng(2)
    met = 0
    for _ in range(50):
        X = np.round(rng.standard_normal((200, 3)) * 10.0 ** rng.integers(-2, 6), 2)
        w = np.round(rng.standard_normal(3), 2)
        y = np.round(link(X @ w) + rng.choice([0.0, 0.01, 0.005, 1e-9], 200), 2)
        for level in levels("auto", X, y):
            low, high = intervals(X, w, level.uncapped, link)
            agree = level.uncapped.agree(X, y, w, link)
            met += int(agree.sum())
            assert ((low <= y) & (y <= high))[agree].all()
    assert met > 5_000


def table(rng, n, kind):
    X = np.round(rng.uniform(1, 500, (n, 2)), 2) if kind == "cents" else rng.integers(0, 20, (n, 2)).astype(float)
    w = np.array([0.19, 1.2]) if kind == "cents" else np.array([2.0, 1.0])
    y = np.round(X @ w, 2)
    return X, np.where(rng.random(n) < 0.3, rng.permutation(y), y), w


@pytest.mark.parametrize("kind", ["cents", "counts"])
def test_the_order_of_rows_does_not_matter_and_shuffled_labels_say_nothing(kind):
    rng = np.random.default_rng(3)
    for _ in range(20):
        X, y, w = table(rng, 60, kind)
        known = levels("auto", X, y)
        order, shuffled = rng.permutation(60), rng.permutation(y)

        def best(X, y, known=known, w=w):
            return max(rule_beyond_chance(X, y, w, level.uncapped, n_levels=len(known)) for level in known)

        assert best(X, y) > 20
        assert best(X[order], y[order]) == pytest.approx(best(X, y), abs=3)  # rows of equal worth may name the rule
        assert best(X, shuffled) < 0


def test_through_the_whole_code_an_order_of_six_labels_saves_less_than_nothing_on_average():
    rng = np.random.default_rng(4)
    X = np.column_stack([np.arange(1.0, 7), rng.integers(0, 3, 6)])
    rules = [np.array(w, dtype=float) for w in ((1, 0), (2, 0), (0, 1), (1, 1), (0.5, 0), (7, -3), (1, -1))]
    labels = X @ rules[0]
    total = largest = 0.0
    for order in permutations(labels):
        for w in rules:
            score = rule_beyond_chance(X, np.array(order), w, EXACT)
            total += 2.0**score / 720
            largest = max(largest, 2.0**score)
    assert total <= 1
    assert largest > 1e-5
