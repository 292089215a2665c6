"""Laws of the steps of recovery, each by itself: which level gains, what decides, exact numbers, noise of units."""

from __future__ import annotations

import sys
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import norm

from massart.certificate import Reason, SegmentScan, Verdict, geometry_of
from massart.l1 import l1_regression
from massart.paper import LinearRecovery, LinearStatus
from massart.recover import Covariates, Options, recover
from massart.recover import driver as driver_module
from massart.recover import finding as finding_module
from massart.recover import noisy as noisy_module
from massart.recover.driver import Recovery, _Driver, _is_whole, _judging_rows, _some_units, _telling_rows, check_size
from massart.recover.finding import Finder, Found, Start, some_of
from massart.recover.judge import judge
from massart.recover.judges import PLAIN, Assumption, Formula, Judges, beyond_mode
from massart.recover.noisy import (
    _barely_noisy,
    _best_start,
    _closest,
    _far,
    _looks_noisy,
    _problem,
    _spread,
    find_noisy,
    noise_of_units,
)
from massart.recover.polish import ROUNDING, _beneath, _into_intervals, _solve, least_squares, without_dust
from massart.recover.propose import (
    Proposal,
    _crowded,
    _gains,
    _is_more,
    _share_in_the_middle,
    _Task,
    chance_inside,
    has_edge,
    has_majority,
    has_more_digits,
    search_rows,
)
from massart.recover.scanned import Scanned
from massart.recover.shorten import Shortened
from massart.recover.snapping import (
    hold_to_exact_arithmetic,
    linear_rows,
    snap,
)
from massart.robust import Inliers
from massart.rows import (
    AGREES,
    DECISIVE,
    IDENTITY,
    KINDS,
    RELU,
    Agreement,
    ArrayRows,
    Level,
    Link,
    Sample,
    Verified,
    tally_of,
    verify,
)
from massart.search import Candidate, Consensus

propose_module = sys.modules["massart.recover.propose"]  # the package has a function of this name

EPS = float(np.finfo(float).eps)
CENTS = Agreement(Level.LABEL, label=1.0, unit=2.0)
COLUMNS = Agreement(Level.INPUTS, label=1.0, inputs=(0.0,), unit=2.0)
EXACT = Agreement(Level.EXACT, relative=1e-15)


def residuals_of(*parts):
    """Return residuals: so many of this size each."""
    return np.concatenate([np.full(number, size) for number, size in parts])


def proposal(residuals, agreement=CENTS, coef=(1.0,), width=1.0):
    widths = np.full(len(residuals), width)
    agree = np.abs(residuals) <= widths
    rows = Verified(np.zeros(len(residuals)), residuals, widths, agree)
    return Proposal(np.array(coef), agreement, rows, float(agree.sum()))


def sample_of(X, y, weights=None):
    X = np.asarray(X, dtype=float)
    return Sample(X, np.asarray(y, dtype=float), weights, np.arange(len(X)))


# Levels


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([(200, 0.3), (200, 0.6), (114, 1.2)], True),  # half of those just inside, and a deviation
        ([(200, 0.3), (200, -0.6), (115, 1.2)], False),
        ([(200, 0.3), (200, 0.6), (400, 1.51)], True),  # farther out they say nothing
        ([(200, 0.3), (200, 0.6), (400, -1.49)], False),
        ([(200, 0.49), (200, 0.6), (200, 1.2)], False),  # inside is beyond one half of the half-width
        ([(200, 0.51), (200, 0.6), (200, 1.2)], True),
        ([(100, 0.5), (100, 0.9)], True),
        ([(100, 0.5), (101, 0.9)], False),  # most at the edges
        ([(100, 0.5), (101, 0.79)], True),
        ([(100, 0.5), (101, -0.81)], False),
        ([(75, 0.1), (150, 0.9)], True),  # unless half as many are in the middle
        ([(74, 0.1), (150, 0.9)], False),
        ([(75, 0.21), (150, 0.9)], False),
        ([(75, 0.19), (150, 0.9)], True),
    ],
)
def test_a_level_has_an_edge_where_rows_end(parts, expected):
    residuals = residuals_of(*parts)
    y = np.linspace(-1000, 1000, len(residuals))
    assert has_edge(proposal(residuals), y, np.ones(len(residuals))) == expected
    assert has_edge(proposal(residuals, EXACT), y, np.ones(len(residuals)))
    assert has_edge(proposal(residuals), y, np.full(len(residuals), 0.0)) or not expected


@pytest.mark.parametrize(("spread", "expected"), [(10.0, True), (9.9, False)])
def test_half_of_the_labels_span_ten_half_widths(spread, expected):
    y = np.linspace(0, 2 * spread, 401)
    residuals = np.linspace(-1, 1, 401)
    assert has_edge(proposal(residuals), y, np.ones(401)) == expected


@pytest.mark.parametrize(("number", "size", "expected"), [(60, 0.31, True), (40, 0.31, False), (60, 0.29, False)])
def test_rounded_columns_are_seen_in_some_rows(number, size, expected):
    residuals = residuals_of((1000 - number, 0.1), (number, size))
    y = np.linspace(0, 1000, 1000)
    assert has_edge(proposal(residuals, COLUMNS), y, np.ones(1000)) == expected
    assert has_edge(proposal(residuals), y, np.ones(1000))


def test_more_is_three_deviations_and_a_row_or_two_beyond_chance():
    assert not _is_more(11.5, 4.0)
    assert _is_more(11.6, 4.0)
    assert not _is_more(1.5, 0.0)
    assert _is_more(2.0, 0.0)


def test_chance_is_half_of_those_within_three_half_widths():
    rows = proposal(residuals_of((10, 0.5), (6, 2.9), (8, -1.1), (100, 3.1))).rows
    assert chance_inside(rows, np.ones(124)) == 7.0
    assert chance_inside(rows, np.full(124, 2.0)) == 14.0


@pytest.mark.parametrize(
    ("near", "far", "size", "expected"),
    [(11, 8, 5.0, False), (12, 8, 5.0, True), (12, 12, 9.0, False), (12, 12, 9.1, True)],
)
def test_rows_crowd_outside_of_a_level_or_no_majority_follows(near, far, size, expected):
    residuals = residuals_of((60, 0.0), (near, 3.0), (far, size), (40 - near - far, 100.0))
    best = proposal(residuals, EXACT, (1.0, 2.0), 1e-9)
    looser, X = Agreement(Level.GIVEN, label=1.0), np.ones((100, 2))
    assert _crowded(best, X, np.zeros(100), looser, np.ones(100)) == expected
    sized = replace(best, rows=replace(best.rows, products=np.full(100, -3.0)))
    assert _crowded(sized, X, np.full(100, 5.0), Agreement(Level.GIVEN, relative=1 / 8), np.ones(100)) == expected
    half = proposal(residuals_of((51, 0.0), (49, 100.0)), EXACT, (1.0, 2.0), 1e-9)
    assert _crowded(half, X, np.zeros(100), looser, np.ones(100))
    more = proposal(residuals_of((52, 0.0), (48, 100.0)), EXACT, (1.0, 2.0), 1e-9)
    assert not _crowded(more, X, np.zeros(100), looser, np.ones(100))


def gains(tight, loose, X=None, coef=(1.0,), levels=(EXACT, CENTS), widths=(0.01, 1.0), y=None):
    n = len(tight)
    X = np.full((n, len(coef)), 1e6) if X is None else X
    tighter, looser = (proposal(r, level, coef, t) for r, level, t in zip((tight, loose), levels, widths, strict=True))
    return _gains(looser, tighter, X, np.zeros(n) if y is None else y, np.ones(n))


@pytest.mark.parametrize(
    ("gained", "little", "lost", "expected"),
    [
        (32, 8, 0, True),  # four in five of those that are little off
        (31, 9, 0, False),
        (32, 0, 1, True),  # one in fifty of the majority at most
        (32, 0, 2, False),
    ],
)
def test_a_looser_level_explains_nearly_all_that_is_little_off_a_majority(gained, little, lost, expected):
    far = 40 - gained - little
    tight = residuals_of((60, 0.0), (gained, 0.5), (little, 19.9), (far, 20.1))
    loose = residuals_of((lost, 50.0), (60 - lost, 0.0), (gained + lost, 0.5), (little + far - lost, 50.0))
    assert gains(tight, loose) == expected
    assert gains(tight[18:], loose[18:]) == (expected or lost > 0)  # the lost ones are the first
    assert gains(tight[19:], loose[19:])  # without a majority, and a row for the column, it is enough to gain
    none = residuals_of((60, 0.0), (40, 2.0))
    assert not gains(none, none)


def test_no_rounding_makes_digits_beyond_its_unit():
    y = np.array([0.0, 1e-12, 0.3, 1e6 + 0.1, -2.0, 0.25, 0.30001, 1e6 + 0.15])
    assert has_more_digits(y, Agreement(Level.LABEL, 0.05, unit=0.1)).tolist() == [False] * 5 + [True] * 3
    assert not has_more_digits(y, Agreement(Level.EXACT, unit=0.1)).any()
    assert not has_more_digits(y, Agreement(Level.GIVEN, 0.05)).any()
    tight, loose = residuals_of((20, 0.0), (20, 0.5)), residuals_of((40, 0.5))
    for odd, expected in [(10, True), (11, False)]:
        labels = np.where(np.arange(40) >= 40 - odd, 1.0, 2.0)  # of a unit of 2
        assert gains(tight, loose, y=labels) == expected


def test_rows_that_rounded_columns_gain_are_near_the_tighter_formula():
    tight = residuals_of((60, 0.0), (20, 1.5), (20, 0.5))
    loose = residuals_of((100, 0.5))
    assert gains(tight, loose)
    assert not gains(tight, loose, levels=(EXACT, COLUMNS))
    assert gains(residuals_of((60, 0.0), (8, 1.5), (32, 0.5)), loose, levels=(EXACT, COLUMNS))


@pytest.mark.parametrize(
    ("gained", "farther", "size", "expected"),
    [
        (400, 40, 0.5, True),  # one in ten
        (405, 41, 0.5, False),
        (405, 41, 0.375, True),  # farther than one and a half units
        (406, 41, 0.5, True),  # 60 % would be the nearest by chance, and half of the others
    ],
)
def test_a_few_errors_within_what_columns_explain_are_errors(gained, farther, size, expected):
    """The nearest labels are 19 % where a column adds seven times the half-width of the label."""
    level = Agreement(Level.INPUTS, label=0.125, inputs=(0.875,), unit=0.25)
    tight = residuals_of((600, 0.0), (gained - farther, 0.2), (farther, -size), (100, 50.0))
    loose = residuals_of((600 + gained, 0.5), (100, 50.0))
    assert gains(tight, loose, levels=(EXACT, level)) == expected


@pytest.mark.parametrize("inputs", [(0.0, 0.0), (0.5, 0.0), (0.5, 0.25)])
def test_the_nearest_label_is_as_frequent_as_a_normal_error_is_small(inputs):
    level = Agreement(Level.INPUTS, label=0.5, inputs=inputs, unit=1.0)
    w = np.array([2.0, -3.0])
    spread = np.sqrt((0.5**2 + (2 * inputs[0]) ** 2 + (3 * inputs[1]) ** 2) / 3)  # of uniform errors
    share = _share_in_the_middle(proposal(np.zeros(3), level, w))
    assert share == pytest.approx(norm.cdf(0.5, scale=spread) - norm.cdf(-0.5, scale=spread))


def test_labels_of_many_steps_fill_what_few_steps_leave_and_hide_no_term():
    long = Agreement(Level.EXACT, relative=1e-13)

    def gained(filled, size, share):
        tight = residuals_of((share, filled), (60 - share, 0.0), (40, 0.5))
        X = np.column_stack([np.full(100, 1e9), np.full(100, size)])
        return gains(tight, residuals_of((100, 0.5)), X, (1.0, 1.0), levels=(EXACT, long))

    assert gained(0.0031, 1e9, 31)
    assert not gained(0.0029, 1e9, 31)
    assert not gained(0.0031, 1e9, 30)
    assert gained(0.0031, 101.0, 31)
    assert not gained(0.0031, 99.0, 31)
    assert not gained(0.0031, 0.5, 31)
    assert gained(0.0031, 0.0, 31)  # a term that is not there hides nothing


def task(X, y, link=IDENTITY):
    return _Task(X, y, np.ones(len(y)), link, (), Options(np.random.default_rng(0)))


def test_every_column_has_a_majority_of_the_rows_that_use_it():
    X = np.array([[1.0, 0.0, 0.0], [1.0, 2.0, 0.0], [1.0, 3.0, 0.0], [1.0, 0.0, 0.0]]).repeat(9, axis=0)

    def has(*agree, clear=0.0):
        marks = np.array(agree, dtype=bool).repeat(9)
        return has_majority(Verified(np.zeros(36), np.zeros(36), np.zeros(36), marks), X, np.ones(36), clear)

    assert has(1, 1, 1, 0)
    assert not has(1, 1, 0, 1)  # one of two of the second
    assert has(1, 1, 0, 1, clear=1.0)  # which is not clear
    assert not has(1, 0, 0, 1, clear=1.0)
    assert not has(0, 1, 1, 0, clear=9.0)  # two of four of all


@pytest.mark.parametrize("wrong", [3, 8])
@pytest.mark.parametrize("link", [IDENTITY, RELU], ids=str)
def test_single_coefficients_are_improved_where_few_follow_them(wrong, link):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal((60, 2)), np.arange(60) < 10])
    w = np.array([1.0, 2.0, 5.0])
    y = X @ w
    y[:wrong] += 7.0  # of the ten rows that use the last column
    y = link(y)
    assert (y[:10] > 0).all()
    agreement = Agreement(Level.EXACT, relative=20 * EPS)
    start = np.array([1.0, 2.0, 4.5])
    better, rows = task(X, y, link)._improve(start, verify(X, y, start, agreement, link), agreement)
    np.testing.assert_allclose(better, w + [0, 0, 7.0 * (wrong > 5)], rtol=1e-12)
    assert rows.agree.sum() == 60 - min(wrong, 10 - wrong)
    kept, _ = task(X, y, link)._improve(better, rows, agreement)
    np.testing.assert_array_equal(kept, better)


@pytest.mark.parametrize("link", [IDENTITY, Link(slope=0.5), RELU, Link(-1.0, 2.0)], ids=str)
def test_what_is_left_of_a_piece_is_in_units_of_its_rows(link):
    rng = np.random.default_rng(0)
    X, basis, w = rng.standard_normal((60, 3)), rng.standard_normal((3, 2)), np.array([0.1, -0.2, 0.3])
    y = link(X @ [1.0, -2.0, 0.5])
    y[::7], y[::11] = link.lower + 0.01 if np.isfinite(link.lower) else 0.01, min(link.upper, 9.0) - 0.01
    members = np.arange(60) % 3 > 0
    agreement = Agreement(Level.GIVEN, 0.005, relative=1e-3)
    problem = task(X, y, link)._consensus(members, w, basis, 0.005, agreement)
    assert problem.near == 1e-3
    assert task(X, y, link)._consensus(members, w, basis, 0.0, EXACT).near == 2.0**-26
    assert (problem.limits is None) == link.invertible
    for i, row in enumerate(np.flatnonzero(members)):
        z, explained = X[row] @ basis, X[row] @ w
        length = np.hypot(*z)
        dust = 0.005 + 1e-3 * (abs(explained) + np.abs(y).max())
        near = [limit for limit in (link.lower, link.upper) if abs(y[row] - limit) <= dust and not link.invertible]
        label = near[0] if near else float(link.inverse(y[row : row + 1])[0])
        assert problem.lengths[i] == pytest.approx(length)
        np.testing.assert_allclose(problem.Z[i], z / length)
        assert problem.y[i] == pytest.approx((label - explained) / length)
        assert problem.slack[i] == pytest.approx(0.005 / length)
        if problem.limits is not None:
            assert problem.limits.decisive[i] == (not near)
            assert problem.limits.lower[i] == pytest.approx((link.lower - explained) / length)
            assert problem.limits.upper[i] == pytest.approx((link.upper - explained) / length)


class Sought:
    """A problem of k columns whose answers have given scores."""

    def __init__(self, n, k, clipped, scores):
        self.Z, self.y = np.ones((n, k)), np.ones(n)
        self.decisive = np.arange(3)
        self.limits = object() if clipped else None
        self.scores, self.chance, self.unique = scores, 5.0, 50.0

    def best(self, W):
        return Candidate(W[0], self.scores[W[0][0]])

    def settled(self, candidate, enough):
        assert enough == self.unique
        return candidate.agreement > enough


@pytest.mark.parametrize(
    ("n", "clipped", "rounds", "scores", "expected"),
    [
        (24, False, None, {1: 51.0}, (1, None)),
        (24, False, None, {1: 20.0, 2: 51.0}, (2, None)),  # as soon as one settles it
        (24, False, None, {1: 30.0, 2: 20.0}, (9, 2)),  # the search begins at the last
        (23, False, None, {1: 30.0, 2: 20.0}, (9, 7)),  # with many rows few rounds find it
        (96, True, None, {1: 30.0}, (9, 3)),
        (95, True, None, {1: 30.0}, (9, 7)),
        (23, False, 4, {1: 30.0}, (9, 4)),
        (24, False, 1, {1: 30.0}, (9, 1)),
        (24, False, 0, {1: 30.0, 2: 20.0}, (1, None)),
        (24, False, 0, {1: 3.0, 2: 2.0}, (1, None)),
        (24, True, 0, {1: 5.0, 2: 2.0}, (2, None)),  # by chance
        (24, True, 0, {1: 6.0, 2: 2.0}, (1, None)),
    ],
)
def test_the_answer_of_a_piece_settles_it_or_is_searched_from(monkeypatch, n, clipped, rounds, scores, expected):
    problem, searched = Sought(n, 2, clipped, scores), []

    def alternate(given, start, steps):
        assert (given, steps) == (problem, 12)
        np.testing.assert_allclose(start, [3e-9, 3e-9])
        yield from (np.full(2, float(name)) for name in scores)

    def search_rows(given, first, options, rounds):
        assert first.tolist() == [max(scores)] * 2
        searched.append(rounds)
        return np.full(2, 9.0)

    monkeypatch.setattr(propose_module, "alternate", alternate)
    monkeypatch.setattr(propose_module, "search_rows", search_rows)
    one = replace(task(np.ones((3, 2)), np.ones(3)), options=Options(np.random.default_rng(0), rounds))
    answer = one._solve_piece(problem)
    assert (answer[0], searched) == (expected[0], [expected[1]] if expected[1] else [])


@pytest.mark.parametrize(("n", "k", "size"), [(800, 2, 800), (801, 2, 400), (960, 30, 960), (961, 30, 480)])
@pytest.mark.parametrize("better", [False, True])
def test_the_search_looks_at_some_of_many_rows_and_all_count(monkeypatch, n, k, size, better):
    rng = np.random.default_rng(0)
    w, other = np.ones(k), np.full(k, 2.0)
    Z = rng.standard_normal((n, k))
    Z /= np.linalg.norm(Z, axis=1)[:, None]
    right = np.arange(n) % 3 == 0
    y = Z @ w + np.where(right, 0.0, 10 + np.arange(n))
    if better:
        y = np.where(~right & (np.arange(n) % 8 > 1), Z @ other, y)
    problem = Consensus(Z, y, np.zeros(n), 1e-9, np.ones(n), np.ones(n))
    options, asked = Options(rng), []

    def search(part, first, rng, enough, rounds, callback):
        asked.append((len(part.y), len(np.unique(part.y)), rounds, enough == part.unique, first is w))
        return Candidate(other, 0.0)

    monkeypatch.setattr(propose_module, "search_consensus", search)
    if not problem.settled(problem.best(other[None]), problem.unique):
        assert search_rows(problem, w, options, 5) is not None
        assert asked == [(size, size, 5, True, True)]
        np.testing.assert_array_equal(search_rows(problem, w, options, 5), other if better else w)
        asked.clear()
    settled = replace(problem, y=Z @ w)
    np.testing.assert_array_equal(search_rows(settled, w, options, 5), w)
    assert asked == []


def proposed(monkeypatch, levels_of, y, first=None, link=IDENTITY):
    """Propose with a solver that answers what is right; return the levels that were begun and solved, scaled back."""
    X, w = np.column_stack([np.arange(1.0, 101), np.ones(100)]), np.array([2.0, 1.0])
    begun, solved = [], []
    unit = 2.0 ** np.frexp(np.abs(y).max())[1]

    def begin(self, given, by):
        assert by == unit
        begun.append([*given])
        return self

    def solve(self, agreement, start):
        solved.append((agreement.label * unit, agreement.relative, None if start is None else (start * unit).tolist()))
        np.testing.assert_array_equal(self.y, y / unit)
        return w / unit

    def decompose(*_, **__):
        raise AssertionError("the pieces are known")

    monkeypatch.setattr(propose_module, "decompose", decompose)
    monkeypatch.setattr(_Task, "begun", begin)
    monkeypatch.setattr(_Task, "solve", solve)
    answer = propose_module.propose(sample_of(X, y), levels_of, link, Options(np.random.default_rng(0)), (), first)
    np.testing.assert_allclose(answer.coef, w, rtol=1e-12)
    return answer, begun, solved


def test_several_levels_begin_together_and_a_looser_one_starts_from_the_tighter(monkeypatch):
    w = [2.0, 1.0]
    y = 2.0 * np.arange(1.0, 101) + 1
    tight, long = Agreement(Level.EXACT, relative=1e-15), Agreement(Level.EXACT, relative=1e-13)
    single = replace(long, precision=2.0**-23)
    given_one = Agreement(Level.GIVEN, 0.25)
    assert proposed(monkeypatch, [tight], y)[1:] == ([], [(0.0, 1e-15, None)])
    assert proposed(monkeypatch, [tight, given_one], y)[1:] == ([[tight, given_one]], [(0.0, 1e-15, None)])
    assert proposed(monkeypatch, [tight, given_one], y, np.array(w))[1] == []
    assert proposed(monkeypatch, [tight, given_one], y, link=RELU)[1] == []
    y[:60] += 0.1  # a minority is exact, and all lie within the looser level
    answer, _, solved = proposed(monkeypatch, [tight, given_one], y)
    assert solved == [(0.0, 1e-15, None), (0.25, 0.0, w)]
    assert (answer.agreement, answer.weight) == (given_one, 100)
    assert [relative for _, relative, _ in proposed(monkeypatch, [tight, long], y)[2]] == [1e-15]  # polished again
    assert [relative for _, relative, _ in proposed(monkeypatch, [tight, single], y)[2]] == [1e-15, 1e-13]


class Answered(_Task):
    """A task whose answers by pieces are given, and noted."""

    asked: list = []  # noqa: RUF012 - of one test
    answers: list = []  # noqa: RUF012

    def _by_pieces(self, agreement, start):
        self.asked.append((agreement, self.options.rounds))
        return self.answers[len(self.asked) - 1]

    @classmethod
    def of(cls, y, answers, rounds=None):
        cls.asked, cls.answers = [], answers
        X = np.column_stack([np.arange(1.0, 101), np.ones(100)])
        return cls(X, y, np.ones(100), IDENTITY, (), Options(np.random.default_rng(0), rounds))


def algorithm_2_answers(monkeypatch, w):
    found = LinearRecovery(w, (), LinearStatus.DONE)
    monkeypatch.setattr(propose_module, "algorithm_2", lambda *_, **__: found)


@pytest.mark.parametrize(
    ("right", "rounded", "serves"), [(52, 0, True), (51, 0, False), (51, 1, True), (30, 21, False)]
)
def test_one_answer_serves_several_levels_if_a_majority_follows_it_at_one(monkeypatch, right, rounded, serves):
    """Of a hundred rows and two columns 52 are a majority."""
    w, others = np.array([2.0, 1.0]), np.arange(100) >= right
    y = 2.0 * np.arange(1.0, 101) + 1
    y += np.where(others, 5000.0 + 31.0 * np.arange(100) ** 2, 0)
    y[right : right + rounded] = 2.0 * np.arange(right + 1, right + rounded + 1) + 1.25
    levels_of = [Agreement(Level.EXACT, relative=1e-14), Agreement(Level.LABEL, 2.0, unit=4.0)]
    algorithm_2_answers(monkeypatch, w / 4)
    begun = Answered.of(y / 4, [w + 1]).begun(levels_of, 4.0)
    if serves:
        np.testing.assert_array_equal(begun.first, w / 4)
        assert begun.columns_too
        assert Answered.asked == []
    else:  # the labels span so much that hardly one lies within rounding by chance
        assert begun.first is Answered.answers[0]
        assert not begun.columns_too
        assert Answered.asked == [(levels_of[1].uncapped.scaled(4.0), None)]


@pytest.mark.parametrize(("spread", "loosest"), [(1000.0, 2), (999.0, 1), (499.0, None)])
def test_one_search_serves_exact_and_rounded_labels_that_spread_wide(monkeypatch, spread, loosest):
    y = np.where(np.arange(100) < 50, 0.0, spread)
    given = [EXACT, Agreement(Level.LABEL, 0.5, unit=1.0), CENTS, replace(COLUMNS, inputs=(1.0, 1.0))]
    algorithm_2_answers(monkeypatch, np.zeros(2))
    answers = [np.ones(2)]
    begun = Answered.of(y, answers).begun(given, 1.0)
    if loosest is None:
        assert begun.first is None
        assert Answered.asked == []
        return
    assert begun.first is answers[0]
    assert not begun.columns_too
    assert Answered.asked[0][0] == given[loosest].uncapped
    assert Answered.of(y, answers, rounds=0).begun(given, 1.0).first is None
    assert Answered.of(y, answers).begun([EXACT, given[3]], 1.0).first is None


def test_a_known_answer_is_polished_unless_columns_are_rounded_and_it_was_found_without():
    w = np.array([2.0, 1.0])
    y = 2.0 * np.arange(1.0, 101) + 1
    columns = replace(COLUMNS, inputs=(0.1, 0.1))
    for first, too, level, asked in [
        (None, True, EXACT, 1),
        (w, True, EXACT, 0),
        (w, True, columns, 0),
        (w, False, EXACT, 0),
        (w, False, columns, 1),
    ]:
        one = replace(Answered.of(y, [w]), first=first, columns_too=too)
        np.testing.assert_allclose(one.solve(level, None), w)
        assert len(Answered.asked) == asked


def test_at_a_looser_level_the_tighter_answer_competes():
    w, other = np.array([2.0, 1.0]), np.array([-1.0, 500.0])
    y = 2.0 * np.arange(1.0, 101) + 1
    y[:30] = 500.0 - np.arange(1.0, 31)
    for first, start, level, expected in [
        (w, other, CENTS, w),
        (other, w, CENTS, w),
        (other, w, EXACT, other),
        (other, None, CENTS, other),
    ]:
        one = Answered.of(y, [first], rounds=0)
        np.testing.assert_allclose(one.solve(level, start), expected, atol=1.0)


def test_nothing_is_said_where_zero_says_it_better():
    X = np.column_stack([np.arange(1.0, 21), np.ones(20)])
    y = np.r_[3.0, 5.0, 7.0, np.zeros(17)]
    agreement = Agreement(Level.EXACT, relative=20 * EPS)
    w = np.array([2.0, 1.0])
    assert task(X, y, RELU)._or_nothing(w, verify(X, y, w, agreement, RELU), agreement).tolist() == [0.0, 0.0]
    for link, expected in [(RELU, [0.0, 0.0]), (IDENTITY, [2.0, 1.0])]:
        one = replace(task(X, y, link), first=w, options=Options(np.random.default_rng(0), 0))
        assert one.solve(agreement, None).tolist() == expected
    y = np.r_[3.0, 5.0, 7.0, 9.0, np.zeros(16)]  # four rows are more than any formula of two terms fits
    assert task(X, y, RELU)._or_nothing(w, verify(X, y, w, agreement, RELU), agreement).tolist() == [2.0, 1.0]


# Which of two formulas is taken


def finder(n=100, d=2, first_size=50):
    rng = np.random.default_rng(0)
    rows = sample_of(rng.standard_normal((n, d)), np.zeros(n))
    return Finder(rows, None, (EPS, EPS), IDENTITY, "auto", first_size, np.arange(3), Options(rng))


def found(weight, agreement=EXACT, chance=0.0, decided=None, alpha=0.4):
    formula = Formula(np.ones(2), agreement, IDENTITY)
    return Found(
        formula, agreement, weight, chance, weight if decided is None else decided, SimpleNamespace(alpha=alpha)
    )


def test_a_looser_formula_has_to_fit_more_rows_than_chance_adds():
    f = finder()
    assert f._is_better(f.rows, found(41), found(40))
    assert not f._is_better(f.rows, found(40), found(40))
    for weight, expected in [(50.0, False), (50.5, True)]:
        assert f._is_better(f.rows, found(weight, CENTS, 4.0), found(40)) == expected
        assert f._is_better(f.rows, found(40), found(weight, CENTS, 4.0)) == (not expected)
    for weight, expected in [(92.0, False), (92.5, True)]:  # four in five of what a majority leaves
        assert f._is_better(f.rows, found(weight, CENTS, 4.0), found(60, alpha=0.6)) == expected
    assert f._is_better(f.rows, found(60.5, CENTS, 4.0), found(50))  # one half is no majority
    assert f._is_better(f.rows, found(41, Agreement(Level.GIVEN, 1.0)), found(40, CENTS))  # as loose


def test_a_formula_is_barren_that_fits_no_more_than_any_and_a_plurality():
    small, large = finder(n=199), finder(n=200)
    assert small._is_barren(found(90, decided=3))
    assert not small._is_barren(found(90, decided=4))
    assert large._is_barren(found(90, decided=13))
    assert not large._is_barren(found(90, decided=14))


def test_a_majority_in_every_direction_settles_it(monkeypatch):
    assert finder()._is_settled(found(51, alpha=0.51))
    assert not finder()._is_settled(found(50, alpha=0.9))
    few = replace(finder(), scouts=SimpleNamespace(geometry=SimpleNamespace(wide=None)))
    assert not few._is_settled(found(90, alpha=0.5))
    asked = []
    monkeypatch.setattr(finding_module, "is_weak_by_chance", lambda *given: asked.append(given) or True)
    weighed = replace(few, rows=replace(few.rows, weights=np.full(100, 2.0)))
    assert weighed._is_settled(best := found(150, alpha=0.5))
    assert asked == [(few.scouts.geometry, best.support, 0.75)]


class Scripted(Finder):
    """A finder whose attempts are noted, as rows and rounds; what they find is given."""

    attempts: list = []  # noqa: RUF012 - of one test
    outcomes: list = []  # noqa: RUF012
    quick = best = None

    def _attempt(self, finding, sample, rounds):
        self.attempts.append((len(sample.index), rounds))
        return self.outcomes[min(len(self.attempts), len(self.outcomes)) - 1]

    def _quick(self, finding, rounds):
        return self.quick

    def _drawn(self, finding, size, best):
        return finding.take(np.arange(size))

    def _is_settled(self, found):
        return found.support.alpha > 0.5

    def asked(self, outcomes, patient=False, rounds=None, quick=None):
        type(self).attempts, type(self).outcomes, type(self).quick = [], outcomes, quick
        type(self).best = self.find(0, patient, rounds)
        return self.attempts


def scripted(n, d=2, first_size=400):
    rows = Sample(np.ones((n, d)), np.zeros((n, 1)), None, np.arange(n))
    options = Options(np.random.default_rng(0))
    return Scripted(rows, None, (EPS, EPS), IDENTITY, "auto", first_size, np.arange(0), options)


def test_samples_double_until_all_rows_are_looked_at():
    growing = [found(weight) for weight in range(1000, 1010)]
    table = scripted(10_000)
    assert table.asked(growing) == [(400, 2), (800, 2), (1600, 2), (10_000, None)]
    assert table.asked(growing, rounds=1) == [(400, 1), (800, 1), (1600, 1), (10_000, 1)]
    assert table.asked([growing[0], found(5000, alpha=0.6)]) == [(400, 2), (800, 2)]
    assert table.asked([found(5000, alpha=0.6)]) == [(400, 2)]
    assert table.asked(growing, quick=found(900)) == [(800, 2), (1600, 2), (10_000, None)]
    assert table.asked(growing, quick=found(900, alpha=0.6)) == []


def test_what_fits_more_rows_is_kept():
    table = scripted(10_000)
    weights = [1000, 1200, 1100, 1150]
    table.asked([found(weight) for weight in weights])
    assert table.best.weight == 1200


def test_where_nothing_is_found_all_rows_are_looked_at_once():
    table, barren = scripted(10_000), [found(3, decided=3)]
    assert table.asked(barren) == [(400, 2), (800, 2), (10_000, 0)]
    assert table.asked(barren, patient=True) == [(400, 2), (800, 2), (1600, 2), (10_000, None)]
    assert table.asked([found(1000), *barren]) == [(400, 2), (800, 2), (1600, 2), (10_000, 0)]


@pytest.mark.parametrize(
    ("n", "d", "weight", "rounds", "expected"),
    [
        (1000, 2, 400, None, [(1000, None), (500, 2), (500, 2), (500, 2)]),
        (300, 2, 120, None, [(300, None), (150, 2)]),
        (1000, 100, 400, None, [(1000, None), (800, 2), (800, 2), (800, 2)]),
        (1000, 100, 600, None, [(1000, None), (800, 0), (800, 0), (800, 0)]),  # many columns and a majority
        (1000, 63, 600, None, [(1000, None), (504, 2), (504, 2), (504, 2)]),
        (1000, 125, 600, None, [(1000, None)]),  # no smaller part would do
        (1000, 2, 400, 0, [(1000, 0)]),
        (1000, 2, 3, None, [(1000, None)]),
    ],
)
def test_a_table_that_was_taken_whole_is_looked_at_in_halves(n, d, weight, rounds, expected):
    assert scripted(n, d).asked([found(weight)], rounds=rounds) == expected


def test_rows_are_drawn_at_random_and_half_of_them_where_support_is_weak():
    f = finder(n=1000)
    drawn = f._drawn(f.rows, 100, None)
    assert len(np.unique(drawn.index)) == 100
    assert (np.diff(drawn.index) > 0).all()
    assert len(f._drawn(f.rows, 5000, None).index) == 1000


@pytest.mark.parametrize(("weak", "most"), [(0, 50), (30, 80), (400, 100)])
def test_half_of_the_rows_are_drawn_where_a_formula_has_too_little_support(monkeypatch, weak, most):
    best = found(10)

    def weights(geometry, X, support):
        assert (geometry, support) == ("geometry", best.support)
        return np.where(np.arange(1000) < weak, 1.0, 0.0)

    monkeypatch.setattr(finding_module, "weak_row_weights", weights)
    f = replace(finder(n=1000), scouts=SimpleNamespace(geometry="geometry"))
    drawn = f._drawn(f.rows, 100, best)
    assert 50 <= (drawn.index >= weak).sum() + 50 * (weak == 400) <= 100
    assert len(drawn.index) <= most
    assert (np.diff(drawn.index) > 0).all()
    assert (drawn.index < weak).sum() >= min(weak, 50)
    silent = f._drawn(replace(f.rows, weights=np.where(np.arange(1000) < 20, 0.0, 1.0)), 900, best)
    assert (silent.index >= 20).sum() >= 430 + (weak > 400)


def test_what_is_found_is_counted_on_all_rows_that_may_propose():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    y = RELU(X @ [1.0, 2.0])
    y[:40], y[40:44] = 3.0, RELU(X[40:44] @ [1.0, 2.0]) + 0.02
    weights = rng.integers(1, 4, 200).astype(float)
    rows = sample_of(X, y, weights)
    judges = Judges(rows, geometry_of(X, sample_weight=weights), None, None, Assumption(), rng)
    f = Finder(rows, judges, (EPS, EPS), RELU, "auto", 400, np.arange(0), Options(rng))
    level = Agreement(Level.GIVEN, 0.01)
    answer = f._counted(rows, Proposal(np.array([1.0, 2.0]), level, None, 0.0))
    sizes = np.abs(y - RELU(X @ [1.0, 2.0]))
    right = sizes <= 0.01
    assert answer.weight == weights[right].sum()
    assert answer.decided == weights[right & (y > 0.01)].sum() < answer.weight
    assert answer.chance == weights[~right & (sizes <= 0.03)].sum() / 2 > 0
    assert (answer.if_exact, answer.formula.agreement) == (level, level.uncapped)
    plain = replace(f, link=IDENTITY)._counted(rows, Proposal(np.array([1.0, 2.0]), level, None, 0.0))
    assert plain.support.eta_max == answer.support.eta_max == 0.0  # nothing is excluded on the way


def test_some_rows_are_so_many_and_the_rare_ones():
    rows = sample_of(np.arange(200.0)[:, None], np.zeros(200))
    rare = np.array([3, 190])
    assert some_of(rows, 200, rare, np.random.default_rng(0)) is rows
    some = some_of(rows, 50, rare, np.random.default_rng(0))
    assert 50 <= len(some.index) <= 52
    assert np.isin(rare, some.index).all()


def searching(X, y, inputs=True, first_size=400):
    """Return a finder of these rows that can be asked, and its rows."""
    rng = np.random.default_rng(0)
    rows = sample_of(X, y)
    judges = Judges(rows, geometry_of(rows.X), None, None, Assumption(), rng)
    table = replace(rows, y=rows.y[:, None])
    return Finder(
        table, judges, (EPS, EPS), IDENTITY, "auto", first_size, np.arange(0), Options(rng), None, inputs
    ), rows


@pytest.mark.parametrize("shift", [-0.5, 0.0, 0.5])
def test_a_constant_that_is_known_within_rounding_may_be_off_to_either_side(shift):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(1, 100, (300, 2)), np.ones(300)])
    w = np.array([3.0, 7.0, 20.0])
    f, rows = searching(X, X @ w)
    near = w * (1 + 1e-9)
    answer = f._started(rows, Start(near + [0.0, 0.0, shift], 0.5))
    np.testing.assert_allclose(answer.formula.coef, w, rtol=1e-12)
    assert answer.weight == 300
    X[:5, 1] = 1.0
    other, rows = searching(X[:, [0, 2, 1]], X @ w)  # some ones are no constant
    assert (other._started(rows, Start(near[[0, 2, 1]] + [0.0, 0.0, shift], 0.5)).weight == 300) == (shift == 0.0)
    plain, rows = searching(X[:, ::-1], X @ w)  # without a column of ones in the last place nothing is shifted
    assert (plain._started(rows, Start((near + [0.0, 0.0, shift])[::-1], 0.5)).weight == 300) == (shift == 0.0)


@pytest.mark.parametrize(
    ("n_off", "half_width", "level"),
    [(0, 0.005, Level.EXACT), (6, 0.005, Level.EXACT), (7, 0.005, Level.LABEL), (7, 0.004, Level.EXACT)],
)
def test_a_known_formula_has_the_tightest_level_at_which_hardly_a_row_is_lost(n_off, half_width, level):
    rng = np.random.default_rng(0)
    X, w = rng.integers(1, 1000, (300, 2)) / 4, np.array([1.0, 3.0])
    y = X @ w
    X[:n_off, 0] += 0.002  # which labels of two places do not show
    f, rows = searching(X, y, inputs=False)
    assert [one.level for one in f.levels(rows)] == [Level.EXACT, Level.LABEL]
    assert f._started(rows, Start(w, half_width)).formula.agreement.level is level


def test_rows_a_unit_off_an_exact_majority_are_wrong_and_not_rounded():
    rng = np.random.default_rng(0)
    X, w = np.column_stack([rng.integers(1, 1000, 300) / 4, np.ones(300)]), np.array([1.0, 3.0])
    y = X @ w
    y[:100] += 0.01  # between the two lies a formula that all follow within rounding
    f, rows = searching(X, y, inputs=False)
    found_one = f._started(rows, Start(w + [0.0, 0.005], 0.005))
    assert found_one.formula.agreement.level is Level.EXACT
    assert found_one.weight == 200
    y[200:] = np.round(rng.uniform(1e3, 2e3, 100), 2)  # a minority is no reason
    f, rows = searching(X, y, inputs=False)
    assert f._started(rows, Start(w + [0.0, 0.005], 0.005)).weight >= 200


@pytest.mark.parametrize(("wrong", "level"), [(70, Level.LABEL), (71, Level.EXACT)])
def test_rows_that_rounding_gains_are_wrong_if_most_are_a_unit_off(monkeypatch, wrong, level):
    rng = np.random.default_rng(0)
    X, w = np.column_stack([rng.integers(1, 1000, 300) / 4, np.ones(300)]), np.array([1.0, 3.0])
    y = X @ w + np.r_[np.full(wrong, 0.01), np.full(140 - wrong, 0.004), np.zeros(160)]
    f, rows = searching(X, X @ w, inputs=False)
    exact, cents = Agreement(Level.EXACT, relative=1e-14), Agreement(Level.LABEL, 0.005, relative=1e-14, unit=0.01)
    monkeypatch.setattr(Finder, "levels", lambda *_: (exact, cents))
    found_one = f._started(replace(rows, y=y), Start(w + [0.0, 0.005], 0.005))
    assert found_one.formula.agreement.level is level


def test_a_start_more_precise_than_any_level_has_the_first():
    X, w = np.random.default_rng(0).uniform(1, 9, (100, 2)), np.array([1.0, 3.0])
    f, rows = searching(X, X @ w + 0.25)
    answer = replace(f, tolerance=0.5)._started(rows, Start(w))
    assert (answer.formula.agreement.level, answer.weight) == (Level.GIVEN, 100)


def test_a_look_by_reweighting_needs_many_rows_and_a_majority(monkeypatch):
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((400, 5)), np.arange(1.0, 6)
    y = X @ w
    y[:120] = 9 * rng.standard_normal(120)
    f, rows = searching(X, y)
    assert f._quick(rows, 2) is None  # of few numbers
    monkeypatch.setattr(finding_module, "QUICK_NUMBERS", 2_000)
    answer = f._quick(rows, 2)
    assert answer is not None
    np.testing.assert_allclose(answer.formula.coef, w, rtol=1e-12)
    assert answer.weight == answer.decided == 280
    assert f._quick(rows, 0) is None
    assert f._quick(replace(rows, weights=np.ones(400)), 2) is None
    assert replace(f, link=RELU)._quick(rows, 2) is None
    assert f._quick(rows.take(np.arange(399)), 2) is None
    few, rows = searching(np.hstack([X] * 6)[:, :26], y)
    assert few._quick(rows, 2) is None  # 16 rows a column
    monkeypatch.setattr(finding_module, "reweighted", lambda *_: w)
    for wrong, expected in [(199, True), (200, False)]:
        most = X @ w
        most[:wrong] = 9 * rng.standard_normal(wrong)
        f, rows = searching(X, most)
        assert (f._quick(rows, 2) is not None) == expected


def test_labels_that_are_all_different_are_not_shuffled():
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((300, 3)), np.arange(1.0, 4)
    y = X @ w
    y[:100] = 9 * rng.standard_normal(100)
    f, rows = searching(X, y)
    formula = Formula(w, Agreement(Level.EXACT, relative=1e-14), IDENTITY)
    assert f.shuffled(rows, formula) == 3 / 300
    alike = np.round(y)
    f, rows = searching(X, alike)
    share = f.shuffled(rows, Formula(w, Agreement(Level.LABEL, 0.5, unit=1.0), IDENTITY))
    assert 10 / 300 < share < 0.5


@pytest.mark.parametrize("weight", [1.0, 2.0])
@pytest.mark.parametrize(
    ("right", "groups", "half_width", "plenty"),
    [
        (31, (2, 3), 0.0, True),  # the most frequent label does not count
        (31, (3, 3), 0.0, False),
        (12, (2,), 0.0, True),
        (12, (2, 2), 0.0, False),
        (31, (9, 1, 1, 1), 0.95, True),  # labels a unit apart, of which three lie within two units
        (31, (9, 1, 1, 1), 1.0, False),
    ],
)
def test_labels_are_shuffled_where_as_many_as_a_tenth_of_those_that_agree_are_alike(
    monkeypatch, weight, right, groups, half_width, plenty
):
    """One row agrees with any formula of one column."""
    X = np.arange(1.0, 101)[:, None]
    y = np.where(np.arange(100) < right, 1000 * X[:, 0], 1e6 + 100 * np.arange(100) ** 2)
    y[100 - sum(groups) :] = -50.0 - np.repeat(np.arange(len(groups)), groups)
    weights = None if weight == 1 else np.full(100, weight)
    agreement = Agreement(Level.GIVEN, half_width, relative=1e-14)
    f, rows = searching(X, y)
    asked = []

    def proposed(sample, levels, link, options, pieces):
        agree = np.random.default_rng(len(asked)).random(100) < 0.3 + 0.3 * len(asked)
        asked.append((sample, levels, options.rounds, agree))
        return SimpleNamespace(rows=Verified(y, np.zeros(100), np.zeros(100), agree))

    monkeypatch.setattr(finding_module, "propose", proposed)
    share = f.shuffled(replace(rows, weights=weights), Formula(np.array([1000.0]), agreement, IDENTITY))
    if plenty:
        assert (share, asked) == (0.01, [])
        return
    assert [(levels, rounds) for _, levels, rounds, _ in asked] == [((agreement,), 1)] * 2
    for sample, *_ in asked:
        assert (sample.y != y).sum() > 50
        np.testing.assert_array_equal(np.sort(sample.y), np.sort(y))
    mode = -50.0 if groups[0] > 1 else None
    assert share == max((agree & (sample.y != mode)).sum() for sample, _, _, agree in asked) / 100


def test_a_formula_that_shuffled_labels_follow_is_chance(monkeypatch):
    X, y = np.ones((100, 1)), np.repeat([1.0, 2.0, 3.0], [50, 30, 20])
    f, rows = searching(X, y)
    nothing = Verified(y, np.zeros(100), np.zeros(100), np.zeros(100, dtype=bool))
    monkeypatch.setattr(finding_module, "propose", lambda *_: SimpleNamespace(rows=nothing))
    formula = Formula(np.array([2.0]), Agreement(Level.GIVEN, 1.0), IDENTITY)
    assert f.shuffled(rows, formula) == 0.5  # all but the most frequent label


def test_the_tightest_level_keeps_all_rows():
    rng = np.random.default_rng(0)
    X, w = rng.uniform(1, 100, (300, 2)), np.array([1.25, 3.0])
    f, rows = searching(X, np.round(X @ w, 2))
    exact, label = f.levels(rows)
    wide = Agreement(Level.LABEL, 5.0, unit=0.01)
    assert f.tightest(rows, w, wide, exact=True) == label
    assert f.tightest(rows, w, wide, exact=False) == label.uncapped
    assert f.tightest(rows, w, exact, exact=True) is exact
    assert f.tightest(rows, w + 0.01, wide, exact=True) is wide
    f, rows = searching(X, X @ w)
    assert not f.tightest(rows, w, wide, exact=True).rounded


# Exact numbers


@pytest.mark.parametrize("link", [Link(slope=0.25), Link(-1.0, 2.0, 0.5), IDENTITY, RELU], ids=str)
def test_rows_beyond_a_limit_are_those_of_a_smaller_slope(link):
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((50, 3)), np.array([1.0, -2.0, 3.0])
    y = link(X @ w)
    rows, labels = linear_rows(X, y, link)
    told = link.decisive(y)
    np.testing.assert_allclose((rows @ w)[told], labels[told], atol=1e-13)
    assert told.sum() > 10


def test_so_few_rows_have_no_exact_numbers_and_no_terms_have_zero():
    X = np.array([[1.0, 2.0], [3.0, 5.0]])
    w = np.array([0.5, 0.25])
    coef, fractions = snap(X, X @ w, np.ones(2, dtype=bool), w, EXACT, IDENTITY)
    assert (coef.tolist(), fractions) == (w.tolist(), (None, None))
    more = np.vstack([X, [[7.0, 1.0]]])
    coef, fractions = snap(
        more, more @ w, np.ones(3, dtype=bool), w, Agreement(Level.EXACT, relative=8 * EPS), IDENTITY
    )
    assert fractions == (Fraction(1, 2), Fraction(1, 4))
    spare = np.column_stack([more[:, 0], [3.0, 1.0, 2.0], more[:, 1]])
    coef, fractions = snap(
        spare, more @ w, np.ones(3, dtype=bool), np.array([0.5, 0.0, 0.25]), replace(EXACT, relative=8 * EPS), IDENTITY
    )
    assert fractions == (Fraction(1, 2), Fraction(0), Fraction(1, 4))
    assert coef.tolist() == [0.5, 0.0, 0.25]
    coef, fractions = snap(more, np.zeros(3), np.ones(3, dtype=bool), np.zeros(2), EXACT, IDENTITY)
    assert fractions == (Fraction(0), Fraction(0))


@pytest.mark.parametrize(
    ("right", "fractions", "expected"),
    [
        (50, (None, None, None), True),
        (49, (None, None, None), False),  # most vouch for other digits
        (50, (Fraction(1, 3), Fraction(1, 4), Fraction(0)), True),  # fewer agree with twelve digits
        (49, (Fraction(1, 3), Fraction(1, 4), Fraction(0)), False),
    ],
)
def test_plain_numbers_are_held_to_exact_arithmetic_where_terms_are_large(right, fractions, expected):
    """In numbers of 1e13, coefficients that are computed leave some units; and a third has no plain number."""
    rng = np.random.default_rng(0)
    known = fractions[0] is not None
    w = np.array([1 / 3 if known else 3.0, 0.25, 0.0])
    X = np.column_stack([3 * rng.integers(10**12, 10**13, 100), 12 * rng.integers(1, 99, 100), rng.random(100) * 1e-3])
    X[0] = [3.0, 4.0, 0.0]  # the largest row decides
    y = np.round(X @ w)
    y[right:] += rng.choice([-1.0, 1.0], 100 - right)
    agreement = Agreement(Level.EXACT, relative=1e-12, unit=1.0)
    computed = w if known else w * (1 + 1e-14) + [0, 0, 1e-3]
    rows = sample_of(X, y)
    coef, numbers, exact = hold_to_exact_arithmetic(rows, computed, fractions, agreement, IDENTITY)
    assert exact == expected
    assert coef.tolist() == (w if exact else computed).tolist()
    assert numbers == (fractions if known or not exact else (Fraction(3), Fraction(1, 4), Fraction(0)))
    small = replace(rows, X=X * 1e-12, y=y * 1e-12)  # where half-widths are in proportion, nothing is to be held
    assert hold_to_exact_arithmetic(small, computed, fractions, agreement, IDENTITY) == (computed, fractions, known)
    loose = hold_to_exact_arithmetic(rows, computed, fractions, replace(agreement, tight=1e-12), IDENTITY)
    assert loose == (computed, fractions, known)


def test_a_number_that_is_too_large_is_named_with_its_place():
    rows = sample_of([[1.0, 2.0], [3.0, -1e160], [5.0, 6.0]], np.zeros(3))
    with pytest.raises(ValueError, match=r"got -1e\+160 at row 1, column 1: choose another unit"):
        check_size(rows)
    rows = replace(sample_of(np.ones((3, 2)), np.zeros(3)), y=np.array([[0.0, 1.0], [2.0, 1e250], [1.0, -1.1e250]]))
    with pytest.raises(ValueError, match=r"y must have numbers up to 1e\+250, got -1.1e\+250 at row 2: choose"):
        check_size(rows)
    check_size(replace(rows, y=rows.y[:2]))


# Least squares and intervals


def test_a_polish_solves_in_units_of_half_widths():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 2)), rng.standard_normal(30)
    widths = np.r_[0.0, 10.0 ** rng.integers(-6, 6, 29)]
    units = 1.0 / np.r_[1.0, 2.0 ** np.ceil(np.log2(widths[1:]))]
    expected = np.linalg.lstsq(X * units[:, None], y * units, rcond=None)[0]
    np.testing.assert_allclose(_solve(X, y, widths), expected, rtol=1e-9)


@pytest.mark.parametrize("least", [1e-3, 8.0])
def test_what_lies_beneath_is_an_l1_fit_in_units_of_half_widths(least):
    """Rows without one have the smallest of the others, or one."""
    rng = np.random.default_rng(0)
    X, y, w = rng.standard_normal((40, 2)), rng.standard_normal(40), np.array([1.0, -2.0])
    widths = np.where(np.arange(40) < 15, 0.0, least * rng.uniform(1, 3, 40))
    widths[20] = least
    units = 1.0 / np.where(widths > 0, np.maximum(widths, min(least, 1.0)), min(least, 1.0))
    expected = l1_regression(X * units[:, None], (y - X @ w) * units).coef
    np.testing.assert_allclose(_beneath(X, y, w, widths), expected, atol=1e-7)


@pytest.mark.parametrize(("number", "crowded"), [(10, False), (11, True)])
def test_small_terms_are_looked_for_where_rows_crowd_that_nearly_agree(monkeypatch, number, crowded):
    asked = []

    def beneath(X, y, w, half_widths):
        asked.append(len(X))
        return np.zeros(2)

    polish_module = sys.modules["massart.recover.polish"]  # the package has a function of this name
    monkeypatch.setattr(polish_module, "_beneath", beneath)
    X, w = np.random.default_rng(0).uniform(1, 9, (120, 2)), np.array([1.5, 2.5])
    y = X @ w
    y[:number] += 1e-9
    y[number:20] += 5.0
    rows = polish_module.polish(X, y, np.ones(120), w, Agreement(Level.EXACT, relative=1e-13), IDENTITY)[1]
    assert rows.agree.sum() == 100
    assert asked == [100 + number] * crowded


@pytest.mark.parametrize("seed", range(4))
def test_least_squares_is_that_of_exact_arithmetic(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(-50, 50, (12, 3)) * np.array([1.0, 2.0**30, 2.0**-30])
    y = rng.integers(-1000, 1000, 12).astype(float)
    A = [[Fraction(v) for v in row] for row in X.tolist()]
    gram = [[sum(a[i] * a[j] for a in A) for j in range(3)] for i in range(3)]
    right = [sum(a[i] * Fraction(v) for a, v in zip(A, y.tolist(), strict=True)) for i in range(3)]
    for i in range(3):  # elimination
        for k in range(3):
            if k != i:
                factor = gram[k][i] / gram[i][i]
                gram[k] = [g - factor * h for g, h in zip(gram[k], gram[i], strict=True)]
                right[k] -= factor * right[i]
    exact = [float(right[i] / gram[i][i]) for i in range(3)]
    np.testing.assert_allclose(least_squares(X, y), exact, rtol=1e-14)
    # Where labels follow a formula, it is found to the last digit even of columns that are nearly dependent.
    near = np.column_stack([X[:, 0], X[:, 0] * 2.0**8 + rng.integers(-3, 4, 12), np.ones(12)])
    np.testing.assert_allclose(least_squares(near, near @ [3.0, 5.0, -7.0]), [3.0, 5.0, -7.0], rtol=2 * EPS)


def test_dust_is_what_rounding_of_another_term_is():
    X = np.array([[1.0, 1.0, 0.0], [-2.0, 0.5, 0.0]])
    cleared = without_dust(X, np.array([1.0, 31 * EPS, 1.0]), ROUNDING)
    assert cleared is not None
    assert cleared.tolist() == [1.0, 0.0, 1.0]
    assert without_dust(X, np.array([1.0, 33 * EPS, 1.0]), ROUNDING) is None
    assert without_dust(X, np.array([1.0, 0.0, 1.0]), ROUNDING) is None
    assert without_dust(X, np.array([1.0, 0.01, 1.0]), 0.01) is not None


@pytest.mark.parametrize("seed", range(3))
def test_a_formula_moves_where_least_is_missing_to_the_intervals(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-5, 5, (60, 2))
    w = np.array([1.0, -2.0])
    y = X @ w + rng.uniform(-1.2, 1.2, 60)
    agreement = Agreement(Level.GIVEN, label=1.0)
    start = w + 0.05
    rows = verify(X, y, start, agreement)
    assert not rows.agree.all()
    near = np.abs(rows.residuals) <= 2.0
    moved = _into_intervals(X, y, start, rows, IDENTITY, 2.0)
    m = int(near.sum())
    found_best = linprog(
        np.r_[np.zeros(2), np.ones(m)],
        A_ub=np.block([[X[near], -np.eye(m)], [-X[near], -np.eye(m)]]),
        b_ub=np.r_[y[near] + 1, 1 - y[near]],
        bounds=[(None, None)] * 2 + [(0, None)] * m,
    ).fun
    missing = np.maximum(np.abs(y - X @ moved)[near] - 1.0, 0.0).sum()
    assert missing == pytest.approx(found_best, abs=1e-3)
    inside = verify(X, X @ w, w, agreement)
    assert _into_intervals(X, X @ w, w, inside, IDENTITY, 2.0) is None


# Noise


def off_by_units(n_off, size=1.0, positive=0.5, n=1000):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-50, 50, n), np.ones(n)])
    y = np.round(X @ [3.0, 7.0])
    signs = np.where(np.arange(n_off) < positive * n_off, 1.0, -1.0)
    y[:n_off] = np.round((X @ [3.0, 7.0])[:n_off] + signs * size)
    return X, y


UNITS = Agreement(Level.LABEL, label=0.5, unit=1.0)


@pytest.mark.parametrize(
    ("n_off", "size", "positive", "expected"),
    [
        (51, 1.0, 0.5, True),
        (50, 1.0, 0.5, False),
        (200, 2.0, 0.5, True),
        (200, 4.0, 0.5, False),
        (200, 1.0, 0.31, True),
        (200, 1.0, 0.29, False),
        (200, 1.0, 0.3, False),
        (200, 1.0, 0.7, False),
        (200, 1.0, 0.71, False),
        (200, 1.0, 0.69, True),
    ],
)
def test_noise_of_a_unit_or_two_to_both_sides_is_noise(n_off, size, positive, expected):
    X, y = off_by_units(n_off, size, positive)
    y = np.rint(y)
    exact = X @ [3.0, 7.0]
    agree = np.abs(y - exact) <= 0.5
    if (~agree).sum() != n_off:
        y[:n_off] = np.rint(exact[:n_off]) + np.sign(y[:n_off] - exact[:n_off]) * np.maximum(size, 1.0)
    fit = noise_of_units(sample_of(X, y), np.array([3.0, 7.0]), UNITS, IDENTITY)
    assert (fit is not None) == expected
    if fit is not None:
        near = np.abs(y - exact) <= 2.5
        coef = np.linalg.lstsq(X[near], y[near], rcond=None)[0]
        rest = y[near] - X[near] @ coef
        scale = np.sqrt(rest @ rest / (near.sum() - 2))
        covariance = scale**2 * np.linalg.inv(X[near].T @ X[near])
        np.testing.assert_allclose(fit.coef, coef, rtol=1e-9)
        assert fit.scale == pytest.approx(scale, rel=1e-9)
        np.testing.assert_allclose(fit.covariance, covariance, rtol=1e-8)
        np.testing.assert_allclose(fit.standard_errors, np.sqrt(np.diag(covariance)), rtol=1e-8)
        assert fit.reach == 2.5
    assert noise_of_units(sample_of(X, y), np.array([3.0, 7.0]), UNITS, RELU) is None
    assert noise_of_units(sample_of(X, y), np.array([3.0, 7.0]), EXACT, IDENTITY) is None


def test_as_many_rows_as_columns_leave_no_noise():
    X = np.array([[1.0, 1.0], [-1.0, 1.0]])
    fit = noise_of_units(sample_of(X, X @ [3.0, 7.0] + [1.0, -1.0]), np.array([3.0, 7.0]), UNITS, IDENTITY)
    assert fit is not None
    np.testing.assert_allclose(fit.coef, [4.0, 7.0])
    assert fit.scale == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(fit.covariance, 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("exact", "shared", "first", "rest", "expected"),
    [
        (400, 0, Inliers.NOISY, None, True),
        (400, 0, Inliers.NO_RULE, None, False),
        (499, 200, Inliers.EXACT, Inliers.NOISY, True),
        (499, 200, Inliers.EXACT, Inliers.EXACT, False),
        (499, 200, Inliers.EXACT, Inliers.NO_RULE, False),
        (500, 200, Inliers.EXACT, Inliers.NOISY, False),  # the rest is no majority
        (499, 201, Inliers.EXACT, Inliers.NOISY, False),  # most of those that are noisy are exact
    ],
)
def test_an_exact_minority_is_left_out_before_noise_is_looked_for(monkeypatch, exact, shared, first, rest, expected):
    asked = []

    def judged_inliers(part, candidates, options):
        asked.append(len(part.y))
        np.testing.assert_array_equal(candidates, [[2.0], [3.0]])
        return first if len(asked) == 1 else rest

    monkeypatch.setattr(noisy_module, "_judge_inliers", judged_inliers)
    X = np.arange(1.0, 1001)[:, None]
    y = np.where(np.arange(1000) < exact, 2.0, 3.0) * X[:, 0]
    inliers = np.arange(1000) >= exact - shared
    inliers[exact + 200 :] = False
    fit = SimpleNamespace(coef=np.array([3.0]), inliers=inliers)
    options = Options(np.random.default_rng(0))
    assert _looks_noisy(sample_of(X, y), np.array([2.0]), fit, EXACT, options) is expected
    assert asked == [1000, 1000 - exact][: 1 + (rest is not None and exact < 500 and shared <= 200)]


@pytest.mark.parametrize(
    ("n", "d", "inliers", "scale", "expected"),
    [
        (100, 2, 51, 1e-8, True),
        (100, 2, 50, 1e-8, False),  # one half
        (20, 2, 13, 1e-8, True),
        (20, 2, 12, 1e-8, False),  # ten more than any formula fits
        (30, 12, 25, 1e-8, True),
        (30, 12, 24, 1e-8, False),  # two a column
        (100, 2, 60, 2.98e-8, True),
        (100, 2, 60, 3.0e-8, False),
    ],
)
def test_a_majority_nearly_agrees_where_noise_is_half_of_the_digits(n, d, inliers, scale, expected):
    part = sample_of(np.ones((n, d)) / d, np.full(n, -0.5))
    fit = SimpleNamespace(coef=np.full(d, -1.5), inliers=np.arange(n) < inliers, scale=scale)
    assert _barely_noisy(part, fit) == expected


def test_an_inlier_is_within_reach_and_its_noise_has_a_scale():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal((400, 2)), np.ones(400)])
    y = X @ [1.0, -2.0, 0.5] + 0.1 * rng.standard_normal(400)
    y[:80] = 20.0
    fit = find_noisy(sample_of(X, y), None, EXACT, IDENTITY, Options(np.random.default_rng(0)), forced=True)
    assert fit is not None
    residuals = np.sort(np.abs(y - X @ fit.coef))
    (last,) = residuals[np.isclose(residuals, fit.reach, rtol=1e-9)]
    assert last * (1 + 1e-11) < fit.reach  # in any arithmetic
    assert (residuals <= fit.reach).sum() <= 320
    assert fit.scale == pytest.approx(0.1, rel=0.15)
    assert np.all(np.abs(fit.coef - [1.0, -2.0, 0.5]) <= 5 * fit.standard_errors)
    assert fit.span.rank == 3
    assert find_noisy(sample_of(X, X @ [1.0, 2.0, 3.0]), None, EXACT, IDENTITY, Options(rng), forced=True) is None


@pytest.mark.parametrize("link", [RELU, Link(-2.0, 3.0)], ids=str)
def test_rows_of_a_link_are_a_problem_with_limits(link):
    rng = np.random.default_rng(0)
    X, counts = rng.standard_normal((60, 2)) * [1.0, 100.0], np.ones(60)
    X[:3], counts[3:5] = 0.0, 0.0
    y = rng.uniform(-4, 4, 60)
    problem, basis = _problem(X, y, counts, link)
    np.testing.assert_allclose(np.linalg.norm(problem.Z, axis=1), 1.0)
    np.testing.assert_allclose(problem.Z * problem.lengths[:, None], X[5:] @ basis)
    assert np.linalg.eigvalsh(problem.Z.T @ problem.Z / 55)[0] > 0.24  # of 1/2 in isotropic position
    inside = np.clip(y[5:], link.lower, link.upper)
    np.testing.assert_allclose(problem.y * problem.lengths, inside)
    np.testing.assert_allclose(problem.limits.lower * problem.lengths, np.full(55, link.lower))
    np.testing.assert_array_equal(problem.limits.decisive, (inside > link.lower) & (inside < link.upper))
    X[:, 1] = 0.0  # rows that do not span are taken as they are
    np.testing.assert_array_equal(_problem(X, y, counts, link)[1], np.eye(2))


def test_the_start_of_a_noisy_link_explains_a_majority_most_closely():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal((500, 2)), np.ones(500)])
    w = np.array([2.0, -1.0, 0.5])
    y = RELU(X @ w + 0.05 * rng.standard_normal(500))
    y[:100] = rng.uniform(5, 9, 100)
    far = np.array([-3.0, 0.0, 8.0])
    found_one = _best_start(X, y, np.ones(500), far, RELU, np.random.default_rng(0))
    np.testing.assert_allclose(found_one, w, atol=0.1)
    np.testing.assert_array_equal(_best_start(X, RELU(X @ w), np.ones(500), w, RELU, np.random.default_rng(0)), w)


@pytest.mark.parametrize("link", [RELU, Link(-1.0, 2.0)], ids=str)
def test_the_closest_explains_a_majority_and_has_the_smallest_spread(link):
    chosen = set()
    for seed in range(100):
        rng = np.random.default_rng(seed)
        X, starts = rng.standard_normal((8, 2)), rng.standard_normal((5, 2))
        counts = rng.integers(1, 3, 8).astype(float)
        y = link(X @ starts[1] + 0.1 * rng.standard_normal(8))
        ranks = []
        for w in starts:
            products = X @ w
            r, active = np.abs(y - link(products)), (products > link.lower) & (products < link.upper)
            told = active & (y > link.lower) & (y < link.upper)
            enough = [s for s in r[told] if 2 * counts[told & (r <= s)].sum() > counts[active].sum()]
            spread = min(enough, default=np.inf)
            ranks.append((2 * counts[r <= 3 * spread].sum() <= counts.sum(), spread))
        expected = min(range(5), key=lambda i: ranks[i])
        assert _closest(starts, X, y, counts, link) == expected
        chosen.add(expected)
    assert len(chosen) > 1


@pytest.mark.parametrize(
    ("start", "scales", "asked", "left"),
    [
        (1.0, [1.0, 2.0, 2.0], [20, 18, 15], 15),  # until these rows come again
        (1.0, [1.0, 2.0, 1.0], [20, 18, 15], 15),
        (1.0, [6.8, 6.8], [20, 3], 3),
        (1.0, [7.2], [20], 20),  # two rows a column are too few
        (1.0, [0.4 * i + 0.5 for i in range(20)], [20 - i for i in range(10)], 11),  # ten times at most
        (-1.0, [1.0, 1.0], [20, 18], 18),
        (0.12, [0.0, 0.0], [20], 20),
    ],
)
def test_rows_far_from_the_limits_are_fitted_until_they_stay(monkeypatch, start, scales, asked, left):
    fits = []

    def regression(X, y, sample_weight, starts, rng, callback):
        np.testing.assert_array_equal(y, X[:, 0])
        assert sample_weight is None
        fits.append((len(X), float(starts[0][0])))
        return SimpleNamespace(coef=np.ones(1), scale=scales[len(fits) - 1])

    monkeypatch.setattr(noisy_module, "robust_regression", regression)
    monkeypatch.setattr(noisy_module, "_best_start", lambda *_: np.array([start]))
    x = np.r_[np.arange(-5.0, 21), 0.0]
    sample = sample_of(x[:, None], RELU(x))
    fit, rows = noisy_module._robust_fit(sample, np.zeros(1), RELU, Options(None))
    assert [number for number, _ in fits] == asked
    assert [first for _, first in fits] == [start, *[1.0] * (len(fits) - 1)]
    assert rows.sum() == left
    assert fit.scale == scales[len(fits) - 1]
    few = sample.take(x <= 2)  # two labels tell a product
    assert noisy_module._robust_fit(few, np.zeros(1), RELU, Options(None)) is None


def test_rows_of_a_noisy_link_may_have_columns_of_zeros():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(5, 9, 60), np.where(np.arange(60) < 50, 0.0, 1.0)])
    y = X @ [2.0, 1.0] + 0.1 * rng.standard_normal(60)
    _, rows = noisy_module._robust_fit(sample_of(X, y), np.array([2.0, 1.0]), RELU, Options(rng))
    assert rows.all()


def test_far_rows_are_inside_by_more_than_a_distance():
    products, decisive = np.array([-1.0, 0.5, 0.51, 9.0, 9.49, 9.5, 20.0]), np.ones(7, dtype=bool)
    link = Link(0.0, 10.0)
    assert _far(products, decisive, link, 0.5).tolist() == [False, False, True, True, True, False, False]
    assert not _far(products, ~decisive, link, 0.5).any()


def test_the_spread_is_the_residual_that_a_majority_does_not_exceed():
    rng = np.random.default_rng(0)
    for _ in range(20):
        residuals, counts = rng.random(9), rng.integers(1, 4, 9).astype(float)
        for majority in (counts.sum() / 2, counts.sum(), 0.0):
            expected = min((r for r in residuals if counts[residuals <= r].sum() > majority), default=np.inf)
            assert _spread(residuals, counts, majority) == expected


# Who judges, and by how much


def test_a_rule_that_most_rows_of_a_segment_break_is_a_plurality():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2))
    y = X @ [3.0, -2.0]
    y[:40] += 5.0
    for codes, stands in [((np.arange(300) < 40).astype(int), False), (np.arange(300) % 5, True)]:
        covariates = Covariates(SegmentScan([], [codes]))
        recovery = recover(ArrayRows(X, y), rng=np.random.default_rng(0), covariates=covariates)
        certificate, errors = recovery.certificates[0], recovery.standard_errors
        assert certificate.verdict.stands == stands
        assert (np.isnan(errors) == (not stands)).all()  # of what stands nothing is estimated
        assert stands == (errors == 0).all()
        if not stands:
            assert (certificate.verdict, certificate.reason) == (Verdict.PLURALITY, Reason.PART)
            assert certificate.segment.levels == ((0, 1),)


@pytest.mark.parametrize(("n", "share"), [(5_000, 0.5), (5_001, 0.0)])
def test_counting_has_half_of_what_may_fail_where_rows_are_few(n, share):
    judges = Judges(Sample(np.ones((n, 1)), np.ones(n), None, np.arange(n)), None, None, None, Assumption(), None)
    assert judges.reserved == share


def test_rows_that_are_wrong_together_are_taken_together():
    units = np.repeat([7, 3, 9, 4], [5, 5, 2, 8])
    for seed in range(10):
        chosen = _some_units(units, 6, np.random.default_rng(seed))
        whole = [set(chosen[units == unit]) for unit in (7, 3, 9, 4)]
        assert all(len(one) == 1 for one in whole)
        assert 6 <= chosen.sum() < 6 + 8
        renamed = _some_units(-units, 6, np.random.default_rng(seed))
        np.testing.assert_array_equal(renamed, chosen)


def test_looks_share_what_may_fail():
    assert Assumption(confidence=0.99).each == 0.99
    assert Assumption(confidence=0.99, hypotheses=4).each == pytest.approx(0.9975)


def test_rows_beyond_the_most_frequent_label_are_counted():
    y = np.array([7.0, 7.0, 7.0, 1.0, 2.0, 3.0, 0.0])
    rows = sample_of(np.ones((7, 1)), y)
    agree = np.array([1, 1, 0, 1, 1, 0, 1], dtype=bool)
    verified = Verified(y, np.zeros(7), np.zeros(7), agree)
    assert beyond_mode(rows, verified, IDENTITY) == 3.0
    assert beyond_mode(rows, verified, RELU) == 2.0  # a label of 0 tells a side
    different = sample_of(np.ones((7, 1)), np.arange(7.0))
    assert beyond_mode(different, verified, IDENTITY) == 5.0  # no label is more frequent than others
    weighed = sample_of(np.ones((7, 1)), y, np.array([1.0, 1, 1, 9, 2, 1, 1]))
    assert beyond_mode(weighed, verified, IDENTITY) == 14.0
    assert beyond_mode(sample_of(np.ones((7, 1)), np.zeros(7)), verified, RELU) == 0.0


def test_weights_are_repetitions_if_they_are_whole_and_not_too_many():
    assert _is_whole(np.array([1.0, 0.0, 19_999.0]))
    assert not _is_whole(np.array([1.0, 20_000.0]))
    assert not _is_whole(np.array([1.0, 1.5]))


def test_a_recovery_counts_by_weight():
    tally = np.zeros(KINDS)
    tally[[AGREES, AGREES | DECISIVE, DECISIVE, 0]] = [1.0, 5.0, 1.5, 0.5]
    nothing = np.zeros(1)
    recovery = Recovery(nothing, (), (tally, tally[::-1]), (), (), nothing, nothing, (), ())
    assert recovery.n_agree.tolist() == [6.0, 2.0]
    assert recovery.noise_rate.tolist() == [0.25, 0.75]


@pytest.mark.parametrize(
    ("d", "rows"),
    [(1, 40_000), (28, 40_000), (50, 70_000), (119, 166_600), (120, 166_666), (400, 50_000), (1000, 32_000)],
)
def test_the_number_of_rows_that_judge_is_fixed_by_the_number_of_columns(d, rows):
    assert _judging_rows(d) == rows


def test_the_number_of_rows_that_tell_exact_numbers_is_fixed_by_the_number_of_columns():
    assert [_telling_rows(d, EXACT) for d in (1, 200, 250, 400, 500, 1200)] == [5000, 5000, 4000, 2500, 2500, 5000]
    assert _telling_rows(1000, CENTS) == 20_000


@pytest.mark.parametrize(("n", "decided", "asked"), [(100, 3, False), (100, 4, True), (40, 2, False), (40, 3, True)])
def test_a_formula_is_shortened_that_more_rows_follow_than_any(monkeypatch, n, decided, asked):
    """One more than the columns, or a plurality of the rows."""
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((n, 2)), np.array([3.0, 4.0])
    rows = ArrayRows(X, X @ w)
    one = _Driver(rows, IDENTITY, "auto", PLAIN, None, Options(rng))
    calls = []

    def shortened(X, y, counts, coef, agreement, link):
        calls.append(coef.tolist())
        return Shortened(coef)

    monkeypatch.setattr(driver_module, "shorten", shortened)
    agreement = Agreement(Level.EXACT, relative=1e-13)
    known = Found(Formula(w, agreement, IDENTITY), agreement, float(n), 0.0, float(decided), None)
    answer = one._final(0, known)
    assert calls == [[3.0, 4.0]] * asked
    assert answer.fractions == (3, 4)


class Outcomes:
    """A driver whose steps are noted; what they find is given."""

    _is_exact = _Driver._is_exact
    _is_sharp = _Driver._is_sharp

    def __init__(self, monkeypatch, link, verdict, units, noisy):
        self.steps = steps = []
        rows = SimpleNamespace(column=lambda j: f"column {j}")
        self.finder = SimpleNamespace(
            start=None, rows=rows, some=lambda rows, most: (rows, most), find=self._find, tolerance="auto"
        )
        self.link, self.options, self.verdict = link, Options(None, 5), verdict

        def of_units(*given):
            steps.append("units")
            return units

        def find(sample, coef, agreement, link, options, forced, sharp=False):
            assert not sharp
            assert sample == ("column 2", 20_000)
            steps.append(("noisy", coef, forced))
            return noisy

        monkeypatch.setattr(driver_module, "noise_of_units", of_units)
        monkeypatch.setattr(driver_module, "find_noisy", find)

    def _find(self, j, patient, rounds):
        self.steps.append(("find", patient, rounds))

    def _final(self, j, found):
        certificate = SimpleNamespace(verdict=self.verdict, n_agree=1, n_rows=4, agreement=EXACT)
        return SimpleNamespace(coef="w", certificate=certificate)

    def _noisy(self, j, found):
        return found


@pytest.mark.parametrize(
    ("inliers", "link", "verdict", "units", "noisy", "steps", "expected"),
    [
        ("exact", IDENTITY, Verdict.NONE, None, None, [("find", True, 5)], "w"),
        ("auto", IDENTITY, Verdict.PROVEN, None, "noise", [("find", False, 5), "units"], "w"),
        ("auto", IDENTITY, Verdict.PROVEN, "of units", None, [("find", False, 5), "units"], "of units"),
        ("auto", IDENTITY, Verdict.NONE, "of units", "noise", [("find", False, 5), "units"], "of units"),
        ("auto", IDENTITY, Verdict.NONE, None, "noise", [("find", False, 5), "units", ("noisy", "w", False)], "noise"),
        ("auto", IDENTITY, Verdict.NONE, None, None, [("find", False, 5), "units", ("noisy", "w", False)], "w"),
        ("noisy", IDENTITY, Verdict.NONE, None, "noise", [("noisy", None, True)], "noise"),
        (
            "noisy",
            IDENTITY,
            Verdict.PROVEN,
            None,
            None,
            [("noisy", None, True), ("find", False, 1), ("noisy", "w", True)],
            "w",
        ),
        ("noisy", RELU, Verdict.PROVEN, "of units", "noise", [("find", False, 1), ("noisy", "w", True)], "noise"),
    ],
)
def test_noise_is_looked_for_where_it_was_asked_for_or_nothing_is_exact(
    monkeypatch, inliers, link, verdict, units, noisy, steps, expected
):
    one = Outcomes(monkeypatch, link, verdict, units, noisy)
    answer = _Driver.outcome(one, 2, inliers)
    assert one.steps == steps
    assert getattr(answer, "coef", answer) == expected


@pytest.mark.parametrize(("search", "rounds"), [(True, None), (False, 0), (3, 3)])
def test_a_search_has_all_its_rounds_or_so_many(monkeypatch, search, rounds):
    asked = []

    def made(*given):
        asked.append(given[5])
        raise StopIteration

    monkeypatch.setattr(driver_module, "_Driver", made)
    with pytest.raises(StopIteration):
        recover(None, rng=np.random.default_rng(0), search=search)
    assert [options.rounds for options in asked] == [rounds]


@pytest.mark.parametrize(("agreement", "fractions"), [(EXACT, (1,)), (EXACT, None), (None, (1,)), (None, None)])
def test_a_start_is_final_if_its_numbers_and_its_level_are(monkeypatch, agreement, fractions):
    one = Outcomes(monkeypatch, IDENTITY, Verdict.PROVEN, None, None)
    one.finder.start = start = Start(np.ones(1), 0.0, fractions, agreement)
    one._judged = lambda *given: given
    answer = _Driver.outcome(one, 2, "exact")
    if agreement is None or fractions is None:
        assert answer.coef == "w"
    else:
        assert answer == (2, Formula(start.coef, EXACT, IDENTITY), (1,))


def driver(X, link=IDENTITY, weights=None, units=None):
    rows = ArrayRows(X, np.arange(len(X), dtype=float) + 1, sample_weight=weights)
    return _Driver(rows, link, "auto", PLAIN, units, Options(np.random.default_rng(0)))


@pytest.mark.parametrize(
    ("n", "judging", "finding"), [(300, 300, 300), (30_000, 30_000, 20_000), (50_000, 40_000, 20_000)]
)
def test_so_many_rows_judge_and_so_many_of_them_propose(n, judging, finding):
    one = driver(np.random.default_rng(0).standard_normal((n, 2)))
    assert len(one.judges.rows.index) == judging
    assert len(one.finder.rows.index) == finding
    assert np.isin(one.finder.rows.index, one.judges.rows.index).all()
    assert one.finder.first_size == 400
    assert one.judges.held_out is None


def test_the_first_sample_has_16_rows_a_column_and_twice_as_many_where_a_link_clips():
    X = np.random.default_rng(0).standard_normal((1000, 30))
    assert driver(X).finder.first_size == 480
    assert driver(X, RELU).finder.first_size == 960


@pytest.mark.parametrize(
    ("n", "finding"),
    [(399, None), (400, 200), (1_600, 800), (2_000, 800), (3_200, 800), (4_000, 1_000), (8_000, 2_000)],
)
def test_a_link_that_clips_is_found_on_a_part_and_judged_by_the_others(n, finding):
    X = np.random.default_rng(0).standard_normal((n, 2))
    one = driver(X, RELU)
    assert len(one.judges.rows.index) == n
    if finding is None:
        assert one.judges.held_out is None
        assert len(one.finder.rows.index) == n
        return
    assert len(one.finder.rows.index) == finding
    others = one.judges.rows.index[one.judges.held_out]
    assert not np.isin(others, one.finder.rows.index).any()
    assert len(others) == n - finding
    assert one.finder.scouts.held_out is None
    assert len(one.finder.scouts.rows.index) == finding


def test_rows_of_whole_weights_are_repeated_and_wrong_together():
    X = np.random.default_rng(0).standard_normal((50, 2))
    weights = np.tile([2.0, 0.0, 1.0, 3.0, 1.0], 10)
    one = driver(X, weights=weights)
    np.testing.assert_array_equal(np.bincount(one.judges.rows.index, minlength=50), weights)
    np.testing.assert_array_equal(one.judges.units, one.judges.rows.index)
    assert one.judges.rows.weights is None
    kept = driver(X, weights=weights + 0.5)
    assert kept.judges.rows.weights is not None
    assert kept.judges.units is None
    units = np.arange(50) // 5
    given_units = driver(X, weights=weights, units=units).judges
    np.testing.assert_array_equal(given_units.units, units[given_units.rows.index])


@pytest.mark.parametrize(("mean", "unit"), [(0.25, 0.25), (7.3, 1.0)])
def test_shares_count_as_rows_and_a_weight_is_never_less_than_one_on_average(mean, unit):
    rng = np.random.default_rng(0)
    X, weights = rng.standard_normal((50, 2)), rng.uniform(0.5, 1.5, 50)
    weights *= mean / weights.mean()
    one = driver(X, weights=weights)
    assert one.unit == pytest.approx(unit)
    np.testing.assert_allclose(one.judges.rows.weights, weights[one.judges.rows.index] / unit)
    y = X @ [1.0, 2.0]
    y[:10] = 9.0
    found_one = recover(ArrayRows(X, y, weights), rng=np.random.default_rng(0)).certificates[0]
    assert found_one.n_rows == pytest.approx(50 * mean / unit)
    assert found_one.n_agree == pytest.approx(weights[10:].sum() / unit)


@pytest.mark.parametrize("constant", [False, True])
def test_rows_that_a_rare_column_rests_on_are_looked_for(constant):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal((60_000, 2)), np.zeros(60_000)])
    users = rng.choice(60_000, 30, replace=False)
    X[users, 2] = 1.0
    if constant:
        X = np.column_stack([X, np.ones(60_000)])
    one = driver(X)
    assert np.isin(users, one.judges.rows.index).all()
    assert np.isin(users, one.finder.rows.index).all()
    assert 40_000 <= len(one.judges.rows.index) <= 40_030
    X[:, 2] = rng.standard_normal(60_000)
    assert len(driver(X).judges.rows.index) == 40_000


# The ladder


def judged(X, agree, shuffled=None, codes=None):
    """Judge a formula that these rows follow, and the others do not."""
    w = np.array([3.0, -2.0])
    rows = sample_of(X, X @ w + np.where(agree, 0.0, np.pi + np.arange(len(X))))
    judges = Judges(rows, geometry_of(X), None, None, PLAIN, np.random.default_rng(0))
    if codes is not None:
        judges = replace(judges, scanned=Scanned.of(rows, None, Covariates(SegmentScan([], [codes]))))
    formula = Formula(w, Agreement(Level.EXACT, relative=20 * EPS), IDENTITY)
    tally = tally_of(formula.marks(rows)[1])
    return judge(formula, judges, tally, shuffled=None if shuffled is None else lambda: shuffled)


def circle(n):
    angles = np.pi * np.arange(n) / n
    return np.column_stack([np.cos(angles), np.sin(angles)]) * (1 + np.arange(n) / 97)[:, None]


@pytest.mark.parametrize(("chance", "enough"), [(6.0, True), (6.5, True), (6.7, False), (9.0, False)])
def test_a_rule_is_more_than_shuffled_labels_give(chance, enough):
    """Chance is 6.7 rows of 31, less 2 that any formula fits: three deviations beyond are more than 16."""
    certificate = judged(circle(31), np.arange(31) % 2 == 0, chance / 31)
    assert (certificate.reason is not Reason.CHANCE) == (certificate.verdict is not Verdict.NONE) == enough
    assert certificate.chance == round(chance)


def test_a_majority_agrees_in_every_direction_and_in_every_part():
    X, agree = np.tile(circle(3), (15, 1)), np.repeat([True, False, True, False, True] * 3, 3)
    assert judged(X, agree, 0.0).verdict is Verdict.MAJORITY
    X, agree = np.tile(X, (3, 1)), np.tile(agree, 3)
    strange = judged(X, agree, 0.0, agree.astype(int))
    assert (strange.verdict, strange.reason) == (Verdict.PLURALITY, Reason.PART)
    assert judged(X, agree, 0.0, np.tile(np.arange(3), 45)).verdict is Verdict.MAJORITY
    X, agree = X[:45], agree[:45]
    agree[[0, 1, 2, 6, 7]] = False
    half = judged(X, agree, 0.0)
    assert (half.n_agree, half.verdict) == (22, Verdict.PLURALITY)


@pytest.mark.parametrize(
    ("n", "agree", "verdict", "reason"),
    [
        (100, 8, Verdict.PLURALITY, Reason.DIRECTION),
        (100, 7, Verdict.NONE, Reason.FEW),  # one in twenty beyond those that any formula fits
        (10, 4, Verdict.PLURALITY, Reason.DIRECTION),
        (10, 3, Verdict.NONE, Reason.CHANCE),
        (10, 2, Verdict.NONE, Reason.FEW),
    ],
)
def test_a_plurality_has_some_rows_more_than_any_formula_fits(n, agree, verdict, reason):
    certificate = judged(circle(n), np.isin(np.arange(n), np.linspace(0, n - 1, agree).astype(int)))
    assert certificate.n_agree == agree
    assert (certificate.verdict, certificate.reason) == (verdict, reason)


@pytest.mark.parametrize(
    ("verdict", "agree", "exact"),
    [
        (Verdict.MAJORITY, 1, True),
        (Verdict.PLURALITY, 51, True),
        (Verdict.PLURALITY, 50, False),
        (Verdict.NONE, 90, False),
        (Verdict.NOISY, 90, False),
    ],
)
def test_noise_is_not_considered_where_a_majority_agrees(verdict, agree, exact):
    certificate = SimpleNamespace(verdict=verdict, n_agree=agree, n_rows=100)
    assert _Driver._is_exact(None, certificate) == exact


@pytest.mark.parametrize(("wrong", "proven"), [(14, True), (15, False)])
def test_proven_is_what_no_other_formula_can_match(wrong, proven):
    """Another formula shares one row at most: no two lie in one direction."""
    agree = np.arange(16 + wrong) % 2 == 0
    agree[1] = wrong == 14
    certificate = judged(circle(16 + wrong), agree)
    assert certificate.n_agree == 16
    assert (certificate.verdict is Verdict.PROVEN) == proven
    assert certificate.hyperplane_rows == 1
