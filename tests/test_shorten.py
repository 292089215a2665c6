"""Laws of the short formula: the sparsest that fits the same rows, without dust and terms that rest on one or two."""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from massart.recover import polish
from massart.recover.polish import least_squares
from massart.recover.shorten import shorten as shorten_formula
from massart.rows import IDENTITY, RELU, Level, Link, Sample, levels

seeds = st.integers(0, 2**32 - 1)


def exactly(X, y):
    return levels(0, X, y)[0]


def sample_of(X, y, counts=None):
    return Sample(np.asarray(X, dtype=float), y, counts, np.arange(len(y)))


def shorten(X, y, counts, *more):
    coef, thin = shorten_formula(sample_of(X, y, counts), *more)
    return SimpleNamespace(coef=coef, thin=thin)


def short(X, y, w, agreement=None, link=IDENTITY, counts=None):
    """Return the short formula and what it left out, after checking the laws that hold for every table."""
    agreement = exactly(X, y) if agreement is None else agreement
    counts = np.ones(len(y)) if counts is None else counts
    found = shorten(X, y, counts, w, agreement, link)
    before, after = (counts[agreement.agree(X, y, v, link)].sum() for v in (w, found.coef))
    assert after >= before - sum(weight for _, weight in found.thin)
    assert np.count_nonzero(found.coef) <= np.count_nonzero(w)
    assert all(found.coef[column] == 0 and w[column] != 0 and 0 < weight <= 2 for column, weight in found.thin)
    again = shorten(X, y, counts, found.coef, agreement, link)
    np.testing.assert_array_equal(again.coef, found.coef)
    assert again.thin == ()
    return found


def anywhere(X, w, rng, scale=1.0):
    """Return a formula that all rows leave as possible as `w`: a point of the family."""
    s, Vt = np.linalg.svd(X)[1:]
    rank = int((s > 1e-9 * s[0]).sum())
    return w + scale * rng.standard_normal(X.shape[1] - rank) @ Vt[rank:]


def spoiled(y, rng, share=0.3):
    wrong = rng.random(len(y)) < share
    return np.where(wrong, y + rng.integers(1, 999, len(y)), y), ~wrong


def terms(coef):
    return {int(j): round(float(coef[j]), 9) for j in np.flatnonzero(coef)}


# What the rows leave open


@st.composite
def hierarchies(draw):
    """Return the parents of the nodes of a random tree: 0 is the root, and whoever has children has two or more."""
    parents = {0: -1}
    leaves = [0]
    for _ in range(draw(st.integers(2, 6))):
        node = leaves.pop(draw(st.integers(0, len(leaves) - 1)))
        for _ in range(draw(st.integers(2, 4))):
            leaves.append(len(parents))
            parents[len(parents)] = node
    return parents


@pytest.mark.slow
@given(hierarchies(), seeds)
@settings(max_examples=30)
def test_a_total_is_the_sum_of_its_subtotals(parents, seed):
    rng = np.random.default_rng(seed)
    n, nodes = 150, len(parents)
    values = np.zeros((n, nodes))
    for node in reversed(range(nodes)):
        if node not in parents.values():
            values[:, node] = rng.integers(1, 10 ** rng.integers(2, 6), n)
        if node:
            values[:, parents[node]] += values[:, node]
    order = rng.permutation(np.arange(1, nodes))
    X = np.column_stack([values[:, order], rng.integers(0, 9, n), np.ones(n)])
    textbook = np.array([float(parents[node] == 0) for node in order] + [0.0, 0.0])
    y, right = spoiled(values[:, 0], rng)
    w = anywhere(X, textbook, rng, 0.1)
    np.testing.assert_array_equal(exactly(X, y).agree(X, y, w), right)
    found = short(X, y, w)
    assert terms(found.coef) == terms(textbook)
    assert found.thin == ()


@pytest.mark.slow
def test_sums_are_found_in_the_smallest_number_of_terms_nearly_always():
    n_tables = n_longer = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        rank, spare = rng.integers(2, 5), rng.integers(1, 4)
        d = rank + spare
        mix = np.hstack([np.eye(rank), rng.choice([-1, 0, 0, 1], (rank, spare))])
        X = (rng.integers(1, 50, (60, rank)) @ mix)[:, rng.permutation(d)]
        y, right = spoiled(X[:, rng.choice(d, 2, replace=False)] @ rng.choice([1, 2, -1, 0.5], 2), rng, 0.2)
        w = anywhere(X[right], np.linalg.lstsq(X[right], y[right], rcond=None)[0], rng)
        found = short(X, y, w)
        fewest = next(
            size
            for size in range(d + 1)
            for columns in combinations(range(d), size)
            if np.linalg.norm(y[right] - X[right][:, columns] @ np.linalg.pinv(X[right][:, columns]) @ y[right]) < 1e-6
        )
        n_tables += 1
        n_longer += np.count_nonzero(found.coef) > fewest
    assert n_tables == 60
    assert n_longer <= 1


@pytest.mark.slow
@given(seeds)
@settings(max_examples=20)
def test_permuted_columns_permute_the_answer(seed):
    rng = np.random.default_rng(seed)
    parts = rng.integers(1, 999, (80, 5)).astype(float)
    private, government = parts[:, :3].sum(axis=1), parts[:, 3:].sum(axis=1)
    X = np.column_stack([parts, private, government, np.ones(80)])
    y, _ = spoiled(private + government, rng)
    w = anywhere(X, np.array([0.0, 0, 0, 0, 0, 1, 1, 0]), rng, 0.1)
    order = rng.permutation(8)
    permuted = short(X[:, order], y, w[order])
    np.testing.assert_allclose(permuted.coef, short(X, y, w).coef[order], atol=1e-12)
    assert sorted(order[np.flatnonzero(permuted.coef)].tolist()) == [5, 6]


@pytest.mark.parametrize(
    ("columns", "y", "expected"),
    [
        (lambda x: [x, x], lambda x: 3 * x, {0: 3.0}),  # of two equal columns the first
        (lambda x: [x / 1.609344, x, x / 1000], lambda x: 2 * x, {1: 2.0}),  # the unit with the shortest number
        (lambda x: [x, 2 * x, 0 * x], lambda x: 2 * x, {1: 1.0}),  # a column itself
        (lambda x: [2 * x, x + 0, 7 * x], lambda x: 21 * x, {2: 3.0}),
        (lambda x: [np.sign(x % 3), x % 3 == 0, x], lambda x: x + 4, {2: 1.0, 3: 4.0}),  # levels beside a constant
        (lambda x: [x % 3 == 0, x % 3 == 1, x % 3 == 2], lambda x: 5.0 * (x % 3 == 1), {1: 5.0}),
        (lambda x: [x], lambda x: 0 * x + 7, {1: 7.0}),
    ],
)
def test_what_rows_leave_open_comes_out_as_a_person_would_write_it(columns, y, expected):
    x = np.random.default_rng(0).integers(1, 900, 200).astype(float)
    X, labels = np.column_stack([*columns(x), np.ones(200)]).astype(float), y(x)
    found = short(X, labels, least_squares(X, labels))
    assert terms(found.coef) == expected


def test_rounded_subtotals_are_not_told_from_their_parts():
    rng = np.random.default_rng(0)
    parts = rng.uniform(1, 50, (400, 9))
    sums = [parts[:, :3].sum(axis=1), parts[:, 3:7].sum(axis=1), parts[:, 7:].sum(axis=1)]
    X = np.round(np.column_stack([parts, *sums, sums[0] + sums[1]]), 2)
    y = np.round(parts.sum(axis=1), 2)
    agreement = levels("auto", X, y)[-1]
    assert agreement.level is Level.INPUTS
    found = polish(sample_of(X, y), np.linalg.lstsq(X, y, rcond=None)[0], agreement, IDENTITY)
    w = found.coef
    assert found.rows.agree.all()
    assert np.count_nonzero(w) > 5
    found = short(X, y, w, agreement)
    assert {j: round(c, 2) for j, c in terms(found.coef).items()} == {11: 1.0, 12: 1.0}


# What comes back as it is


@pytest.mark.slow
@given(seeds, st.integers(1, 8))
def test_a_formula_that_rows_determine_comes_back_unchanged(seed, d):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20 + 6 * d, d)) * 10.0 ** rng.integers(-3, 4, d)
    w = rng.uniform(0.5, 2, d) * rng.choice([-1, 1], d)
    y, _ = spoiled(X @ w, rng)
    found = short(X, y, w)
    np.testing.assert_array_equal(found.coef, w)
    assert found.thin == ()


def test_rounded_labels_keep_every_term_that_rows_need():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.round(rng.uniform(0, 100, (500, 4)), 2), np.ones(500)])
    w = np.array([0.5, 1.19, 0.002, 3.0, 9.9])
    y = np.round(X @ w, 2)
    agreement = levels(0.005, X, y)[0]
    np.testing.assert_array_equal(short(X, y, w, agreement).coef, w)


def test_levels_of_two_rows_each_are_evidence_together():
    # Each has one row to confirm it. One such level may be chance; ten are a rate by category.
    X = np.kron(np.eye(10), np.ones((2, 1)))
    w = np.arange(3.0, 13.0)
    found = short(X, X @ w, w)
    np.testing.assert_array_equal(found.coef, w)


@pytest.mark.parametrize(("n", "d"), [(3, 3), (4, 3), (7, 6), (2, 5), (1, 1)])
def test_few_rows_are_not_explained_away(n, d):
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, d))
    y = X @ rng.standard_normal(d)
    w = np.linalg.lstsq(X, y, rcond=None)[0]
    found = short(X, y, w)
    assert found.thin == ()
    assert exactly(X, y).agree(X, y, found.coef).all()


# Thin terms


def test_three_terms_that_take_in_one_row_are_left_out():
    rng = np.random.default_rng(0)
    a, b, q, r = rng.integers(1, 500, (4, 178)).astype(float)
    p = q + r
    p[-1] += 3
    X = np.column_stack([a, b, p, q, r])
    y = a - b
    y[-1] -= 3 * 866
    w = least_squares(X, y)
    np.testing.assert_allclose(w, [1, -1, -866, 866, 866])
    found = short(X, y, w)
    assert terms(found.coef) == {0: 1.0, 1: -1.0}
    assert found.thin == ((2, 1.0), (3, 1.0), (4, 1.0))


@pytest.mark.parametrize("n_rows", [1, 2, 3])
def test_a_level_of_one_or_two_rows_is_thin(n_rows):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(1, 99, 300), np.arange(300) < n_rows, np.ones(300)]).astype(float)
    w = np.array([2.5, 5 / 17, 3.0])
    y, _ = spoiled(X @ w, np.random.default_rng(1))
    y[:3] = X[:3] @ w
    found = short(X, y, w)
    assert found.thin == (((1, float(n_rows)),) if n_rows < 3 else ())
    assert terms(found.coef) == terms(w if n_rows == 3 else w * [1, 0, 1])


def test_weights_count_as_so_many_rows():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(1, 99, 100), np.arange(100) == 0, np.ones(100)]).astype(float)
    w = np.array([2.5, 7.0, 3.0])
    counts = np.ones(100)
    assert short(X, X @ w, w, counts=counts).thin == ((1, 1.0),)
    counts[0] = 2.0
    assert short(X, X @ w, w, counts=counts).thin == ((1, 2.0),)
    counts[0] = 3.0
    assert short(X, X @ w, w, counts=counts).thin == ()
    shares = np.full(100, 1 / 128)
    assert short(X, X @ w, w, counts=shares).thin == ((1, 1 / 128),)
    shares[50] = 0.0
    assert short(X, X @ w, w, counts=shares).thin == ((1, 1 / 128),)
    dense = rng.uniform(1, 9, (100, 3))
    np.testing.assert_array_equal(short(dense, dense @ w, w, counts=np.full(100, 1 / 128)).coef, w)


# Links


@pytest.mark.parametrize("link", [RELU, Link(0.0, 120.0), Link(slope=0.25), Link(slope=4.0)])
def test_links_change_nothing_about_it(link):
    rng = np.random.default_rng(0)
    parts = rng.integers(-30, 60, (300, 3)).astype(float)
    X = np.column_stack([parts, parts[:, 0] + parts[:, 1], np.arange(300) == 5, np.ones(300)])
    textbook = np.array([0.0, 0.0, 2.0, 1.0, 0.0, 3.0])
    w = textbook + 0.25 * np.array([1, 1, 0, -1, 0, 0])
    assert 0 < (X @ w)[5] < 105
    w[4] = 11.0
    y, _ = spoiled(link(X @ w), rng, 0.2)
    y[5] = link(X @ w)[5]
    found = short(X, y, w, link=link)
    np.testing.assert_allclose(found.coef, textbook, atol=1e-9)
    assert found.thin == ((4, 1.0),)


def test_a_column_that_only_clipped_rows_need_stays():
    rng = np.random.default_rng(0)
    closed = rng.random(200) < 0.3
    x = rng.uniform(1, 9, 200)
    X = np.column_stack([x, closed, x, np.arange(200) == np.flatnonzero(~closed)[0]]).astype(float)
    w = np.array([1.0, -500.0, 1.0, 3.0])
    found = short(X, RELU(X @ w), w, link=RELU)
    assert terms(found.coef) == {0: 2.0, 1: -500.0}
    assert found.thin == ((3, 1.0),)


# Cost
