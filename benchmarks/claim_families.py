r"""Tables on which a claim could be false: families of rows, and adversaries that hide where rows are rare.

A family is a distribution of tables with a known rule. Given the rows, each label is wrong independently with a
probability of at most eta, and what a wrong label says is up to the adversary: the model in which massart claims.
A table says what is right by values, not by coefficients: `clean` is what the rule gives on each row and `half` is how
far a right label may be from it, so that one definition judges formulas, links and data frames alike.

The groups:

==  ====================================================================================================
a   families on which commit 3e6e445 claimed a majority for a wrong formula, with the share that was false
b   adversaries that abstain: labels are wrong only where few rows tell two formulas apart
c   the families of `a` and others under other adversaries
d   tables whose rule should be claimed
e   tables on which "proven" could be false; where they are small, every rival is tried
f   rounding: of labels, of inputs, of floats
g   tables without a rule
h   families that nobody tuned on
==  ====================================================================================================
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from plain_ledger import CHARGES, GROUP, ID, MOST_WRONG, PRICES, TARGET, make_ledger

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Generator = np.random.Generator

EXACT = 1e-9
"""Labels that nothing rounded follow their formula to this share of the terms that it adds up."""

_BESIDE = 1e-3
"""A coefficient counts as this share of the largest one, at least: one that is 0 is never found to the last bit."""

_TYLER_STEPS = 5
"""Any weights that depend on X alone are valid; more steps run away where a subspace is heavy."""

_SPAN = 1e-10
"""Eigenvalues of the Gram matrix below this share of the largest are directions that no row has."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows, their rule w, and the direction r in which few rows tell w from its rival w + r."""

    X: FloatArray
    w: FloatArray
    r: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table and what is true of it.

    Attributes
    ----------
    X : (n, d) array
        The rows as numbers; for a data frame, the columns that its formula may use.
    y : (n,) array
    clean : (n,) array or None
        What the rule gives; None where there is no rule, so that any claim is false.
    half : (n,) array
        A label follows a formula if it is at most so far from the formula's value.
    eta : float
        The largest probability with which a label was wrong.
    kind : {"linear", "relu", "table"}
        Which door of massart it goes through.
    rivals : tuple of (n,) arrays
        What other known formulas of the model give.
    rounded : bool
        Whether `half` is an interval that a person would notice; formulas that differ by less are then the same.
    weights : (n,) array or None
    given : object
        What is handed over in place of X: a sparse matrix, float32 rows, integers, the columns of a data frame.
    labels : array or None
        The same for y.
    options : mapping
        Of the estimator, or of `audit_table`.
    exhaustive : bool
        Whether numbers are small integers and every rival can be tried.
    """

    X: FloatArray
    y: FloatArray
    clean: FloatArray | None
    half: FloatArray
    eta: float
    kind: Literal["linear", "relu", "table"] = "linear"
    rivals: tuple[FloatArray, ...] = ()
    rounded: bool = False
    weights: FloatArray | None = None
    given: Any = None
    labels: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)
    exhaustive: bool = False

    def fits(self, values: FloatArray) -> BoolArray:
        """Mark the rows whose label follows a formula with these values."""
        return np.asarray(np.abs(self.y - values) <= self.half, dtype=np.bool_)

    @property
    def right(self) -> BoolArray:
        """The rows whose label is right; none where there is no rule."""
        return np.zeros(len(self.y), dtype=np.bool_) if self.clean is None else self.fits(self.clean)

    @property
    def alpha(self) -> float | None:
        """Share of the evidence that agrees with the rule in the direction where it is weakest.

        For a ReLU, the evidence is in the rows where the rule is positive.
        """
        if self.clean is None:
            return None
        speaks = self.clean > 0 if self.kind == "relu" else np.ones(len(self.y), dtype=np.bool_)
        if self.weights is not None:
            speaks &= self.weights > 0
        return support(self.X[speaks], self.right[speaks], None if self.weights is None else self.weights[speaks])


@dataclass(frozen=True, slots=True)
class Family:
    """A distribution of tables.

    Attributes
    ----------
    group, name : str
    make : callable
        From a generator to a table.
    tables, small : int
        Tables of a full run, and of one with ``--small``.
    listed : str
        False claims of massart 3e6e445, as its review counted them.
    base : str
        The same as counted by this benchmark.
    """

    group: str
    name: str
    make: Callable[[Generator], Table]
    tables: int
    small: int = 0
    listed: str = ""
    base: str = ""

    def table(self, seed: int, trial: int) -> Table:
        """Return one table; nothing but the name and the two numbers enters it."""
        return self.make(np.random.default_rng([zlib.crc32(self.name.encode()), seed, trial]))


def support(X: FloatArray, agree: BoolArray, weights: FloatArray | None = None) -> float:
    r"""Return alpha of research/support.md: the smallest eigenvalue of M_A in units of M, on the range of M.

    .. math:: M = \sum_i c_i x_i x_i^T, \qquad M_A = \sum_{i \in A} c_i x_i x_i^T,

    with a few steps of Tyler's fixed point for c, times the weights of the rows. It is 0 if no row agrees.
    """
    used = X.any(axis=1)
    if not used.any():
        return 0.0
    Z = X[used] / np.maximum(np.abs(X[used]).max(axis=0), 1e-300)
    values, vectors = np.linalg.eigh(Z.T @ Z)
    kept = values > _SPAN * values[-1]
    Y = Z @ (vectors[:, kept] / np.sqrt(values[kept]))
    n, k = Y.shape
    c = 1 / np.maximum(np.einsum("ij,ij->i", Y, Y), 1e-300)
    for _ in range(_TYLER_STEPS):
        M = (Y * c[:, None]).T @ Y
        c = k / n / np.maximum(np.einsum("ij,ij->i", Y, np.linalg.solve(M, Y.T).T), 1e-300)
    W = Y * np.sqrt(c if weights is None else c * weights[used])[:, None]
    root = np.linalg.inv(np.linalg.cholesky(W.T @ W))
    A = W[agree[used]] @ root.T
    return float(np.linalg.eigvalsh(A.T @ A)[0])


# Adversaries: from rows and right labels to wrong labels, and the formulas (as values) that they follow.

Lies = tuple[FloatArray, tuple[FloatArray, ...]]
Adversary = Callable[[Rows, FloatArray, Generator], Lies]


def junk(rows: Rows, clean: FloatArray, rng: Generator) -> Lies:
    """Answer anything."""
    return clean + (1 + np.abs(clean)) * rng.standard_normal(len(clean)), ()


def decoy(rows: Rows, clean: FloatArray, rng: Generator) -> Lies:
    """Follow w + r, and answer anything where that is right."""
    rival = rows.X @ (rows.w + rows.r)
    return np.where(_tells(rows), rival, junk(rows, clean, rng)[0]), (rival,)


def abstain(rows: Rows, clean: FloatArray, rng: Generator) -> Lies:
    """Follow w + r where that is wrong, and leave all other labels right."""
    rival = rows.X @ (rows.w + rows.r)
    return np.where(_tells(rows), rival, clean), (rival,)


def constant(rows: Rows, clean: FloatArray, rng: Generator) -> Lies:
    """Answer one value always."""
    value = np.full(len(clean), float(rng.integers(-20, 1000)))
    return value, (value,)


def flip(rows: Rows, clean: FloatArray, rng: Generator) -> Lies:
    """Turn the sign."""
    return -clean, (-clean,)


def unit(rows: Rows, clean: FloatArray, rng: Generator) -> Lies:
    """Be one off."""
    return clean + 1, (clean + 1,)


def groups(rows: Rows, clean: FloatArray, rng: Generator) -> Lies:
    """Follow w + r in one part of the table and other rules, two terms off, in three others; junk where right."""
    d = len(rows.w)
    part = np.arange(len(clean)) * 4 // len(clean)
    lies = rows.X @ (rows.w + rows.r)
    rivals = [lies]
    for k in range(1, 4):
        off = np.zeros(d)
        off[rng.choice(d, min(d, 2), replace=False)] = rng.integers(1, 5, min(d, 2))
        rivals.append(rows.X @ (rows.w + off))
        lies = np.where(part == k, rivals[-1], lies)
    same = np.abs(lies - clean) <= EXACT * _size(rows.X, rows.w, clean)
    return np.where(same, junk(rows, clean, rng)[0], lies), tuple(rivals)


ADVERSARIES: Mapping[str, Adversary] = {
    "decoy": decoy,
    "abstain": abstain,
    "junk": junk,
    "constant": constant,
    "flip": flip,
    "unit": unit,
    "groups": groups,
}


def _tells(rows: Rows) -> BoolArray:
    """Mark the rows that tell w + r from w."""
    return np.asarray(np.abs(rows.X @ rows.r) > EXACT * _size(rows.X, rows.w), dtype=np.bool_)


def _size(X: FloatArray, w: FloatArray, y: FloatArray | float = 0.0) -> FloatArray:
    """Return the magnitudes that cancel in y - w.x."""
    size = np.abs(w)
    return np.asarray(np.abs(X) @ np.maximum(size, _BESIDE * size.max(initial=0)) + np.abs(y), dtype=np.float64)


def planted(rng: Generator, rows: Callable[[Generator], Rows], adversary: str, eta: float, relu: bool = False) -> Table:
    """Return rows whose labels are wrong with probability `eta`, and then say what the adversary likes."""
    made = rows(rng)
    z = made.X @ made.w
    lies, formulas = ADVERSARIES[adversary](made, z, rng)
    y = np.where(rng.random(len(z)) < eta, lies, z)
    rivals = [values for values in formulas if is_formula(made.X, values)]
    if relu:
        z, y, rivals = np.maximum(z, 0), np.maximum(y, 0), [np.maximum(values, 0) for values in rivals]
    half = EXACT * _size(made.X, made.w, y)
    kind: Literal["relu", "linear"] = "relu" if relu else "linear"
    return Table(made.X, y, z, half, eta, kind, tuple(rivals), options={"fit_intercept": False})


def is_formula(X: FloatArray, values: FloatArray) -> bool:
    """Whether the values are a linear formula of the rows."""
    w = np.linalg.lstsq(X, values, rcond=None)[0]
    return bool(np.all(np.abs(X @ w - values) <= EXACT * (_size(X, w, values) + np.abs(values).max())))


# Rows.


def _whole(rng: Generator, d: int) -> FloatArray:
    return rng.integers(-9, 9, d).astype(np.float64)


def _direction(d: int, entries: Mapping[int, float]) -> FloatArray:
    r = np.zeros(d)
    for place, value in entries.items():
        r[place] = value
    return r


def _dummies(codes: NDArray[np.intp], n_levels: int, first: int = 0) -> FloatArray:
    """Return one column for each level from the one numbered `first`."""
    return np.eye(n_levels)[codes][:, first:]


def _heavy(rng: Generator, n: int, d: int, spread: float) -> FloatArray:
    return rng.standard_normal((n, d)) * np.exp(spread * rng.standard_normal((n, 1)))


def flags(rng: Generator, n: int, numbers: int = 13, n_flags: int = 6, rare: float = 0.06) -> Rows:
    """Return flags coded 1 and 2 beside a constant and numbers of very different sizes."""
    coded = np.where(rng.random((n, n_flags)) < rare, 2.0, 1.0)
    X = np.column_stack([_heavy(rng, n, numbers, 2.0), coded, np.ones(n)])
    shift = rng.integers(1, 9, n_flags).astype(np.float64)
    return Rows(X, _whole(rng, X.shape[1]), np.concatenate([np.zeros(numbers), shift, [-shift.sum()]]))


def base_level(rng: Generator, n: int, numbers: int = 4, n_levels: int = 3, rare: float = 0.03, cats: int = 4) -> Rows:
    """Return categories whose first level, the rare one, has no column."""
    columns = [rng.standard_normal((n, numbers)), np.ones((n, 1))]
    r = [0.0] * (numbers + 1)
    for shift in rng.integers(1, 9, cats).tolist():
        level = np.where(rng.random(n) < rare, 0, rng.integers(1, n_levels, n))
        columns.append(_dummies(level, n_levels, first=1))
        r[numbers] += shift
        r += [-shift] * (n_levels - 1)
    X = np.column_stack(columns)
    return Rows(X, _whole(rng, X.shape[1]), np.array(r))


def quantity(rng: Generator, n: int, numbers: int = 4, rare: float = 0.1) -> Rows:
    """Return amounts in cents, a quantity that is mostly 1, and a constant."""
    count = np.where(rng.random(n) < rare, rng.integers(2, 6, n), 1)
    amounts = np.round(np.exp(2 + rng.standard_normal((n, numbers))), 2)
    X = np.column_stack([amounts, count, np.ones(n)])
    return Rows(X, np.round(rng.uniform(-3, 3, numbers + 2), 2), _direction(numbers + 2, {-2: 2, -1: -2}))


def one_hot(rng: Generator, n: int, n_rare: int = 4, size: int = 20) -> Rows:
    """Return a number and a category of three frequent and some rare levels, each with its column."""
    level = rng.integers(0, 3, n)
    level[rng.permutation(n)[: n_rare * size]] = 3 + np.repeat(np.arange(n_rare), size)
    X = np.column_stack([rng.standard_normal(n), _dummies(level, 3 + n_rare)])
    r = np.concatenate([np.zeros(4), rng.integers(1, 9, n_rare)])
    return Rows(X, _whole(rng, X.shape[1]), r)


def lattice(rng: Generator, n: int, d: int = 6, high: int = 3) -> Rows:
    """Return small positive integers; the rival moves one unit from one column to another."""
    X = rng.integers(1, high + 1, (n, d)).astype(np.float64)
    a, b = rng.choice(d, 2, replace=False).tolist()
    return Rows(X, _whole(rng, d), _direction(d, {a: 1, b: -1}))


def gaussian(rng: Generator, n: int, d: int) -> Rows:
    """Return Gaussian rows and any rival."""
    return Rows(rng.standard_normal((n, d)), _whole(rng, d), rng.standard_normal(d))


def twins(rng: Generator, n: int, apart: int, d: int = 6, high: int = 9) -> Rows:
    """Return integers in which the first two columns are equal except on `apart` rows."""
    X = rng.integers(1, high + 1, (n, d)).astype(np.float64)
    X[:, 1] = X[:, 0]
    where = rng.choice(n, apart, replace=False)
    X[where, 1] = X[where, 0] + rng.choice([-3, -2, -1, 1, 2, 3], apart)
    return Rows(X, _whole(rng, d), _direction(d, {0: 1, 1: -1}))


def interaction(rng: Generator, n: int, numbers: int = 3, rare: float = 0.2) -> Rows:
    """Return two flags, each rare, and their product, beside numbers and a constant."""
    a, b = (rng.random((2, n)) < rare).astype(np.float64)
    X = np.column_stack([rng.standard_normal((n, numbers)), np.ones(n), a, b, a * b])
    return Rows(X, _whole(rng, numbers + 4), _direction(numbers + 4, {-1: float(rng.integers(1, 9))}))


def yes_or_no(rng: Generator, n: int, d: int = 4) -> Rows:
    """Return columns of 0 and 1 and a constant; the rival has other small coefficients."""
    X = np.column_stack([rng.integers(0, 2, (n, d)), np.ones(n)]).astype(np.float64)
    w, r = rng.integers(-3, 4, d + 1), rng.integers(-2, 3, d + 1)
    return Rows(X, w.astype(np.float64), r.astype(np.float64))


def nested(rng: Generator, n: int, regions: int = 4, shops: int = 4, rare: float = 0.05) -> Rows:
    """Return regions, and shops within regions, whose first shop, the rare one, has no column."""
    region = rng.integers(0, regions, n)
    shop = np.where(rng.random(n) < rare, 0, rng.integers(1, shops, n))
    inner = _dummies(region * shops + shop, regions * shops)[:, np.arange(regions * shops) % shops > 0]
    X = np.column_stack([rng.integers(1, 50, n), _dummies(region, regions), inner]).astype(np.float64)
    shift = float(rng.integers(1, 9))
    r = np.zeros(X.shape[1])
    r[1] = shift
    r[1 + regions : regions + shops] = -shift
    return Rows(X, _whole(rng, X.shape[1]), r)


def two_way(rng: Generator, n: int, a_levels: int = 4, b_levels: int = 3) -> Rows:
    """Return two categories of geometric sizes and all their products; the rival lives in the smallest cell."""
    a = np.minimum(rng.geometric(0.55, n) - 1, a_levels - 1)
    b = np.minimum(rng.geometric(0.6, n) - 1, b_levels - 1)
    A, B = _dummies(a, a_levels, 1), _dummies(b, b_levels, 1)
    products = (A[:, :, None] * B[:, None, :]).reshape(n, -1)
    X = np.column_stack([np.round(rng.uniform(1, 100, n), 1), np.ones(n), A, B, products])
    sizes = np.where(products.any(axis=0), products.sum(axis=0), np.inf)
    smallest = X.shape[1] - products.shape[1] + int(np.argmin(sizes))
    return Rows(X, _whole(rng, X.shape[1]), _direction(X.shape[1], {smallest: float(rng.integers(1, 9))}))


def heavy_subspace(rng: Generator, n: int, d: int = 8, share: float = 0.85) -> Rows:
    """Return integers of which most rows lie in a random plane of half the dimension."""
    X = rng.integers(-3, 4, (n, d))
    k = d // 2
    basis = rng.integers(-1, 2, (k, d))
    inside = rng.random(n) < share
    X[inside] = rng.integers(-3, 4, (int(inside.sum()), k)) @ basis
    X[~X.any(axis=1), 0] = 1
    normal = np.linalg.svd(basis.astype(np.float64))[2][-1]
    return Rows(X.astype(np.float64), _whole(rng, d), 3 * normal)


def heavy_tails(rng: Generator, n: int, d: int = 6) -> Rows:
    """Return Pareto columns, whole numbers, of which the largest rows carry most of any sum."""
    X = np.ceil(rng.pareto(0.9, (n, d)) + 1).clip(max=1e7)
    X[:, -1] = 1
    a, b = rng.choice(d - 1, 2, replace=False).tolist()
    return Rows(X, np.round(rng.uniform(-5, 5, d), 1), _direction(d, {a: 0.5, b: -0.5}))


def near_duplicates(rng: Generator, n: int, numbers: int = 4, apart: float = 0.08) -> Rows:
    """Return list price and price paid, which differ on few rows, and a third column a cent off now and then."""
    price = np.round(rng.lognormal(3, 0.8, n), 2)
    paid = np.where(rng.random(n) < apart, np.round(0.9 * price, 2), price)
    copied = np.where(rng.random(n) < apart, np.round(price + 0.01, 2), price)
    X = np.column_stack([price, paid, copied, rng.integers(0, 20, (n, numbers)), np.ones(n)])
    return Rows(X, np.round(rng.uniform(-3, 3, X.shape[1]), 1), _direction(X.shape[1], {0: 1, 1: -1}))


def calendar(rng: Generator, n: int) -> Rows:
    """Return a trend, the months but one, and a holiday flag of one row in forty."""
    day = np.arange(n)
    X = np.column_stack([day, np.ones(n), _dummies(day // 30 % 12, 12, 1), rng.random(n) < 0.025, rng.poisson(20, n)])
    r = _direction(X.shape[1], {-2: float(rng.integers(2, 9))})
    return Rows(X.astype(np.float64), _whole(rng, X.shape[1]), r)


def scales(rng: Generator, n: int, d: int = 8) -> Rows:
    """Return columns from 1e-4 to 1e7, and rows of which few are a thousand times larger than the others."""
    X = rng.uniform(0.5, 1.5, (n, d)) * np.logspace(-4, 7, d) * np.where(rng.random((n, 1)) < 0.05, 1e3, 1.0)
    w = rng.integers(1, 9, d) / np.logspace(-4, 7, d)
    return Rows(X, w, w * rng.choice([-0.5, 0.5, 1.0], d))


def counts(rng: Generator, n: int, d: int = 9) -> Rows:
    """Return counts that are mostly 0, some of them rare, and a constant."""
    X = np.column_stack([rng.poisson(np.geomspace(0.03, 3, d - 1), (n, d - 1)), np.ones(n)]).astype(np.float64)
    return Rows(X, _whole(rng, d), _direction(d, {0: 2.0, 1: -1.0, -1: 0.0}))


def sorted_blocks(rng: Generator, n: int, blocks: int = 5, numbers: int = 2) -> Rows:
    """Return sorted blocks, each with columns of its own, the last ones short."""
    sizes = (n * np.array([0.5, 0.25, 0.13, 0.08, 0.04])).astype(int)
    sizes[0] += n - sizes.sum()
    block = np.repeat(np.arange(blocks), sizes)
    own = rng.integers(1, 20, (n, numbers))[:, None, :] * np.eye(blocks)[block][:, :, None]
    X = np.column_stack([own.reshape(n, -1), np.ones(n)]).astype(np.float64)
    r = np.zeros(X.shape[1])
    r[-numbers - 1 : -1] = rng.integers(1, 9, numbers)
    return Rows(X, _whole(rng, X.shape[1]), r)


def repeated(rng: Generator, n: int, distinct: int = 40, d: int = 6) -> Rows:
    """Return few distinct rows of integers, the first ones very often."""
    kinds = rng.integers(0, 5, (distinct, d))
    kinds[:, -1] = 1
    X = kinds[np.minimum(rng.geometric(0.1, n) - 1, distinct - 1)].astype(np.float64)
    often = np.linalg.svd(kinds[: d - 1].astype(np.float64))[2][-1]
    return Rows(X, _whole(rng, d), 3 * often)


def fixed_effects(rng: Generator, n: int, firms: int = 25) -> Rows:
    """Return firms of geometric sizes, each with its column, and two numbers; the rival shifts the small firms."""
    firm = np.minimum(rng.geometric(0.15, n) - 1, firms - 1)
    X = np.column_stack([rng.integers(1, 100, (n, 2)), _dummies(firm, firms)]).astype(np.float64)
    small = X[:, 2:].sum(axis=0) < 0.03 * n
    return Rows(X, _whole(rng, firms + 2), np.concatenate([np.zeros(2), np.where(small, rng.integers(1, 9), 0)]))


def powers(rng: Generator, n: int) -> Rows:
    """Return x, x² and x³ of counts that are mostly 0 or 1, where the three are one column."""
    x = rng.binomial(1, 0.5, n) + np.where(rng.random(n) < 0.1, rng.integers(1, 5, n), 0)
    X = np.column_stack([np.ones(n), x, x**2, x**3, rng.integers(1, 30, n)]).astype(np.float64)
    return Rows(X, _whole(rng, 5), _direction(5, {1: 1, 2: -1}))


def survey(rng: Generator, n: int, questions: int = 9) -> Rows:
    """Return questions that nearly all answer with yes, and a constant."""
    X = np.column_stack([rng.random((n, questions)) < 0.93, np.ones(n)]).astype(np.float64)
    r = np.zeros(questions + 1)
    r[:3], r[-1] = 2, -6
    return Rows(X, _whole(rng, questions + 1), r)


def composition(rng: Generator, n: int, parts: int = 5) -> Rows:
    """Return amounts that share one total in percent, of which one is mostly absent."""
    share = rng.multinomial(100, [0.4, 0.3, 0.2, 0.09, 0.01], n)[:, :parts]
    X = np.column_stack([share, rng.integers(1, 200, n)]).astype(np.float64)
    return Rows(X, _whole(rng, parts + 1), _direction(parts + 1, {parts - 1: float(rng.integers(1, 9))}))


# Whole tables: ledgers through `audit_table`, small tables with every rival, rounding, no rule.


def ledger_of(rng: Generator, rows: Callable[[Generator], Rows], eta: float) -> Table:
    """Return a data frame of the numbers, their constant left to the audit."""
    table = planted(rng, rows, "decoy", eta)
    frame = {f"amount{j}": column for j, column in enumerate(table.X.T[:-1], 1)} | {TARGET: table.y}
    return Table(
        table.X, table.y, table.clean, table.half, eta, "table", table.rivals, given=frame, options={"target": TARGET}
    )


def demo(rng: Generator, n: int) -> Table:
    """Return the ledger of ``massart demo``, at any length."""
    columns = make_ledger(rng, n)
    known = np.array([hours is not None for hours in columns["hours"]])
    frame = {name: np.asarray(values)[known] for name, values in columns.items()}
    frame["hours"] = frame["hours"].astype(np.float64)
    service = np.array([list(CHARGES).index(name) for name in frame["service"].tolist()])
    numbers = [frame["hours"], frame["items"], frame["km"], frame["weekend"] == "yes"]
    X = np.column_stack([*numbers, _dummies(service, len(CHARGES))]).astype(np.float64)
    w = np.array([*PRICES.values(), *CHARGES.values()])
    y = np.array([float(text.replace(",", "")) for text in frame[TARGET].tolist()])
    options = {"target": TARGET, "id": ID, "group": GROUP}
    half = 0.005 + EXACT * _size(X, w, y)
    return Table(X, y, X @ w, half, MOST_WRONG, "table", given=frame, options=options, rounded=True)


def exhaustible(
    rng: Generator,
    d: int,
    relu: bool = False,
    tolerance: float | None = None,
    weighted: bool = False,
    sparse: bool = False,
) -> Table:
    """Return 8 to 14 rows of small integers with many coincidences, about half of them wrong by a little or by rule."""
    n = int(rng.integers(8, 15))
    X = _small_rows(rng, n, d)
    w = rng.integers(-3, 4, d)
    eta = float(rng.uniform(0.1, 0.5))
    step = 1 if tolerance is None else int(np.ceil(2 * tolerance))
    rival = X @ (w + rng.integers(-2, 3, d))
    lies = np.where(rng.random() < 0.6, rival, X @ w + step * rng.integers(-3, 4, n))
    y = np.where(rng.random(n) < eta, lies, X @ w).astype(np.float64)
    if tolerance is not None:
        y += rng.integers(-int(tolerance), int(tolerance) + 1, n)
    clean, rival = (X @ w).astype(np.float64), rival.astype(np.float64)
    if relu:
        y, clean, rival = np.maximum(y, 0), np.maximum(clean, 0), np.maximum(rival, 0)
    X = X.astype(np.float64)
    weights = rng.integers(0, 4, n).astype(np.float64) if weighted else None
    if weights is not None and not weights.any():
        weights[0] = 1.0
    return Table(
        X,
        y,
        clean,
        (tolerance or 0.0) + EXACT * (1 + np.abs(X).sum(axis=1) + np.abs(y)),
        eta,
        "relu" if relu else "linear",
        (rival,),
        rounded=tolerance is not None,
        weights=weights,
        given=scipy.sparse.csr_array(X) if sparse else None,
        options={"fit_intercept": False} | ({} if tolerance is None else {"tolerance": tolerance}),
        exhaustive=True,
    )


def _small_rows(rng: Generator, n: int, d: int) -> NDArray[np.int64]:
    """Return integer rows that span, none of them zero."""
    kind = rng.integers(0, 4)
    while True:
        X = rng.integers(-2, 4, (n, d))
        if kind == 1:
            X = X[rng.integers(0, max(d, n // 2), n)]
        elif kind == 2 and d > 1:
            X[: n // 2, int(rng.integers(d))] = 0
        elif kind == 3:
            X = X[rng.integers(0, max(d, n // 2), n)] * rng.integers(1, 4, (n, 1))
        if X.any(axis=1).all() and np.linalg.matrix_rank(X) == d:
            return X.astype(np.int64)


def near_tie(rng: Generator, n: int, d: int, relu: bool = False, tolerance: float | None = None) -> Table:
    """Return two formulas that share the rows of a hyperplane and part the others almost evenly."""
    X = rng.integers(-4, 5, (n, d)).astype(np.float64)
    w = rng.integers(-5, 6, d).astype(np.float64)
    a, b = rng.choice(d, 2, replace=False).tolist()
    r = _direction(d, {a: 1, b: -1})
    shared = rng.random(n) < rng.uniform(0, 0.7)
    X[shared, b] = X[shared, a]
    apart = np.flatnonzero(X @ r != 0)
    n_first = len(apart) // 2 + int(rng.integers(-1, 3))
    second = rng.permutation(apart)[n_first:]
    z, rival = X @ w, X @ (w + (r if tolerance is None else r * tolerance * rng.uniform(1.5, 4)))
    y = z.copy()
    y[second] = rival[second]
    lost = rng.random(n) < rng.uniform(0, 0.1)
    y[lost] += rng.integers(20, 90, int(lost.sum()))
    if relu:
        z, rival, y = np.maximum(z, 0), np.maximum(rival, 0), np.maximum(y, 0)
    options = {"fit_intercept": False} | ({} if tolerance is None else {"tolerance": tolerance})
    half = (tolerance or 0.0) + EXACT * _size(X, w, y)
    if (np.abs(y - rival) <= half).sum() > (np.abs(y - z) <= half).sum():
        z, rival = rival, z
    kind: Literal["relu", "linear"] = "relu" if relu else "linear"
    return Table(X, y, z, half, 0.5, kind, (rival,), rounded=tolerance is not None, options=options)


def dust(rng: Generator, n: int = 300) -> Table:
    """Return a ReLU that is 0 on four rows of five, where the labels hold what a float subtraction leaves."""
    X = rng.standard_normal((n, 3))
    side = np.where(rng.random(n) < 0.8, -1, 1)
    X[:, 0] = side * (np.abs(X[:, 0]) + 3)
    w, v = np.array([1, 0.5, -0.25]), np.array([2, -0.5, 0.75])
    clean, rival = np.maximum(X @ w, 0), np.maximum(X @ v, 0)
    bad = (rng.random(n) < 0.3) & (side > 0)
    y = np.where(bad, X @ v, clean)
    y[y == 0] = 5.55e-17
    return Table(X, y, clean, EXACT * _size(X, w, y), 0.3, "relu", (rival,), options={"fit_intercept": False})


def single(rng: Generator, n: int = 600) -> Table:
    """Return float32 numbers in which the second term is small beside the first, and two values of its price."""
    X = np.column_stack([rng.uniform(1000, 2000, n), rng.uniform(0, 1, n)]).astype(np.float32)
    wide = X.astype(np.float64)
    clean, rival = wide @ [1, 1], wide @ [1, 1.01]
    labels = np.where(rng.random(n) < 0.4, rival, clean).astype(np.float32)
    half = np.float64(np.finfo(np.float32).eps) * np.abs(clean)
    return _given(wide, labels.astype(np.float64), clean, half, 0.4, (rival,), X, labels)


def huge_term(rng: Generator, n: int = 500) -> Table:
    """Return one term of 1e12 beside terms of cents, in float64, which holds both."""
    X = rng.uniform(0, 1, (n, 3))
    wide = X.astype(np.longdouble)
    clean, rival = (wide @ np.array([1e12, price, 1], dtype=np.longdouble) for price in (0.03, 0.01))
    y = np.where(rng.random(n) < 0.4, rival, clean).astype(np.float64)
    half = 4 * np.finfo(np.float64).eps * np.abs(y)
    return _given(X, y, clean.astype(np.float64), half, 0.4, (rival.astype(np.float64),))


def huge_integers(rng: Generator, n: int = 300) -> Table:
    """Return integers above 2**53, which float64 does not hold; refusing them is a right answer, too."""
    X = np.column_stack([rng.integers(2**55, 2**56, n), np.zeros(n, dtype=np.int64), rng.integers(1, 500, n)])
    X[:, 1] = X[:, 0] - rng.integers(1, 1000, n)
    clean = X[:, 0] - X[:, 1] + 3 * X[:, 2]
    rival = X[:, 0] - X[:, 1] + 2 * X[:, 2]
    y = np.where(rng.random(n) < 0.4, rival, clean).astype(np.float64)
    values = (clean.astype(np.float64), rival.astype(np.float64))
    return _given(X.astype(np.float64), y, values[0], np.full(n, 0.5), 0.4, values[1:], X)


def _given(
    X: FloatArray,
    y: FloatArray,
    clean: FloatArray | None,
    half: FloatArray,
    eta: float,
    rivals: tuple[FloatArray, ...] = (),
    given: Any = None,
    labels: Any = None,
    intercept: bool = False,
) -> Table:
    return Table(
        X, y, clean, half, eta, rivals=rivals, given=given, labels=labels, options={"fit_intercept": intercept}
    )


# Rounding. Amounts are made of whole cents, so that a rounded label is the one that a person would write.

CENT = 0.005
"""Half a cent."""


def freight(rng: Generator, n: int, terms: int) -> Table:
    """Return weights with one decimal times a price with three, rounded to cents, and pieces; no label is wrong."""
    tenths = rng.integers(1, 51, (n, 1))
    mills = rng.integers(500, 3000, 1)
    if terms > 1:
        tenths = np.column_stack([tenths, 10 * rng.integers(1, 21, (n, terms - 1))])
        mills = np.concatenate([mills, 10 * rng.integers(50, 300, terms - 1)])
    exact = tenths @ mills  # in hundredths of a cent
    y = (exact + 50) // 100 / 100
    X = tenths / 10
    return _rounded(X, y, exact / 1e4, CENT, 0.0, intercept=True)


def thousands(rng: Generator, n: int = 300, eta: float = 0.1) -> Table:
    """Return sums of prices times counts, rounded to thousands, some of them wrong by more."""
    X = np.column_stack([rng.integers(1, 500, (n, 2)), rng.integers(1, 9, n)]).astype(np.float64)
    clean = X @ rng.integers(200, 3000, 3).astype(np.float64)
    y = 1000 * np.floor(clean / 1000 + 0.5)
    y = np.where(rng.random(n) < eta, y + 1000 * rng.integers(2, 60, n), y)
    return _rounded(X, y, clean, 500.0, eta)


def tax(rng: Generator, n: int = 200, eta: float = 0.3) -> Table:
    """Return a tax in cents, one label in three a cent too high."""
    net = rng.integers(100, 50_000, n)
    percent = int(rng.integers(5, 26))
    right = (net * percent + 50) // 100
    y = (right + (rng.random(n) < eta)) / 100
    return _rounded(net[:, None] / 100, y, net * percent / 1e4, CENT, eta)


def amounts(rng: Generator, size: float, gross: bool, n: int = 400, eta: float = 0.4) -> Table:
    """Return sums of amounts up to `size`, or gross amounts, with wrong labels that are 1 to 50 cents off."""
    most = int(size * 100)
    cents = rng.integers(most // 10, most, (n, 1 if gross else 3))
    if gross:
        exact = cents[:, 0] * 119
        right = (exact + 50) // 100
    else:
        signs = np.array([1, 1, -1])
        exact, right = 100 * (cents @ signs), cents @ signs
    off = rng.integers(1, 51, n) * rng.choice([-1, 1], n)
    y = np.where(rng.random(n) < eta, right + off, right) / 100
    return _rounded(cents / 100, y, exact / 1e4, CENT, eta)


def from_single(rng: Generator, n: int = 400, eta: float = 0.2) -> Table:
    """Return decimals that went through float32, as those of Stata files do, in float64."""
    X = np.round(rng.uniform(1, 900, (n, 3)), 2)
    w = np.round(rng.uniform(-4, 4, 3), 1)
    y = np.round(X @ w, 3)
    y = np.where(rng.random(n) < eta, np.round(y + rng.uniform(5, 500, n), 3), y)
    X, y = X.astype(np.float32).astype(np.float64), y.astype(np.float32).astype(np.float64)
    eps = float(np.finfo(np.float32).eps)
    return _rounded(X, y, X @ w, 5e-4 + eps * (np.abs(X) @ np.abs(w) + np.abs(y)), eta)


def published(rng: Generator, kind: Literal["difference", "share", "sum"], n: int = 200, eta: float = 0.1) -> Table:
    """Return figures with one decimal of which the last was computed before they were rounded."""
    if kind == "share":
        parts = 100 * rng.dirichlet([4, 3, 2], n)
        X, w, last = np.column_stack([parts[:, :2], np.full(n, 100.0)]), np.array([-1.0, -1, 1]), parts[:, 2]
        half = 3 * 0.05
    else:
        X = rng.uniform(10, 500, (n, 2 if kind == "difference" else 5))
        w = np.array([1.0, -1]) if kind == "difference" else np.ones(5)
        last, half = X @ w, (X.shape[1] + 1) * 0.05
    X, y = np.round(X, 1), np.round(last, 1)
    y = np.where(rng.random(n) < eta, np.round(y + rng.choice([-1, 1], n) * rng.uniform(2, 50, n), 1), y)
    return _rounded(X, y, X @ w, half, eta)


def two_rates(rng: Generator, n: int = 300) -> Table:
    """Return net, rate and gross, a product, with two rates; no label is wrong."""
    net = np.round(rng.uniform(5, 500, n), 2)
    rate = rng.choice([7.0, 19.0], n)
    clean = net * (1 + rate / 100)
    y = np.round(clean, 2)
    X = np.column_stack([net, rate, np.ones(n)])
    frame = {"net": net, "vat_rate": rate, TARGET: y}
    half = np.full(n, CENT + EXACT)
    return Table(X, y, clean, half, 0.0, "table", rounded=True, given=frame, options={"target": TARGET})


def rounded_noise(rng: Generator, n: int = 1000) -> Table:
    """Return whole numbers that follow a line up to noise of half a unit: an estimate, not a rule."""
    x = rng.uniform(0, 10, n)
    y = np.round(100 * x + rng.normal(0, 0.5, n))
    return _given(x[:, None], y, None, np.full(n, 0.5), 0.0, intercept=True)


def _rounded(
    X: FloatArray, y: FloatArray, clean: FloatArray, half: FloatArray | float, eta: float, intercept: bool = False
) -> Table:
    width = np.full(len(y), half) * (1 + EXACT) + 4 * np.finfo(np.float64).eps * np.abs(y)
    return Table(X, y, clean, width, eta, rounded=True, options={"fit_intercept": intercept})


# No rule.


def unrelated(rng: Generator, n: int, d: int, label: Literal["amount", "count"], door: str = "linear") -> Table:
    """Return dummies and counts, and a label that has nothing to do with them."""
    X = np.where(np.arange(d) % 2, rng.random((n, d)) < rng.uniform(0.1, 0.6, d), rng.poisson(4, (n, d)))
    y = np.round(rng.lognormal(4, 1, n), 2) if label == "amount" else rng.poisson(30, n).astype(np.float64)
    return _no_rule(X.astype(np.float64), y, door)


def frequent(rng: Generator, n: int, d: int, related: float, door: str = "linear") -> Table:
    """Return a yes or no that is mostly no and depends on the first column a little, or not at all."""
    X = np.column_stack([rng.random((n, d // 2)) < 0.4, rng.poisson(3, (n, d - d // 2))]).astype(np.float64)
    y = (rng.random(n) < rng.uniform(0.1, 0.4) + related * X[:, 0]).astype(np.float64)
    return _no_rule(X, y, door)


def _no_rule(X: FloatArray, y: FloatArray, door: str) -> Table:
    half = EXACT * (1 + np.abs(y))
    if door == "linear":
        return _given(X, y, None, half, 1.0, intercept=True)
    frame = {f"x{j}": column for j, column in enumerate(X.T, 1)} | {TARGET: y}
    return Table(X, y, None, half, 1.0, "table", given=frame, options={"target": TARGET})


# The registry.


def families() -> tuple[Family, ...]:
    """Return all families, group by group."""
    made = (*_listed(), *_abstaining(), *_adversarial(), *_powerful(), *_proven(), *_rounding(), *_ruleless(), *_new())
    return tuple(replace(family, base=BASE.get(family.name, "")) for family in made)


def _planted(
    group: str,
    rows: Callable[..., Rows],
    n: int,
    eta: float,
    adversary: str,
    tables: int,
    *,
    small: int = 0,
    listed: str = "",
    relu: bool = False,
    name: str = "",
    **shape: int,
) -> Family:
    name = name or ("relu-" if relu else "") + rows.__name__.replace("_", "-")
    make = partial(planted, rows=partial(rows, n=n, **shape), adversary=adversary, eta=eta, relu=relu)
    return Family(group, f"{name}/{adversary}/{n}/{eta:g}", make, tables, small, listed)


def _listed() -> Iterator[Family]:
    """Yield the families of review/claims.md, section 2."""
    for rows, n, eta, tables, small, listed in (
        (flags, 400, 0.4, 80, 8, "32/40"),
        (flags, 1_000, 0.4, 80, 4, "17/40"),
        (flags, 20_000, 0.4, 60, 2, "20/30"),
        (flags, 400, 0.3, 80, 0, "10/40"),
        (flags, 20_000, 0.3, 60, 0, "3/30"),
        (base_level, 400, 0.4, 80, 8, "28/40"),
        (base_level, 20_000, 0.4, 60, 2, "27/40"),
        (base_level, 200_000, 0.4, 20, 0, "10/20"),
        (quantity, 400, 0.4, 160, 8, "14/80"),
        (quantity, 20_000, 0.4, 60, 2, "6/30"),
        (one_hot, 400, 0.4, 80, 8, "10/40"),
    ):
        yield _planted("a", rows, n, eta, "decoy", tables, small=small, listed=listed)
    ledger = partial(ledger_of, rows=partial(quantity, n=100_000), eta=0.4)
    yield Family("a", "quantity-ledger/decoy/100000/0.4", ledger, 60, 0, "3/20")
    yield _planted("a", one_hot, 200, 0.4, "decoy", 120, small=8, listed="10/60", name="one-level", n_rare=1, size=4)
    for n in (30, 40, 50, 60):
        yield _planted("a", lattice, n, 0.45, "decoy", 80, small=4, listed="28/160")
    for n, d in ((30, 12), (40, 12), (60, 20)):
        yield _planted("a", gaussian, n, 0.45, "decoy", 40, listed="6/47", name=f"gaussian-{d}", d=d)


def _abstaining() -> Iterator[Family]:
    """Yield the families of research/support.md in which the adversary waits for rare directions."""
    for apart in (15, 40):
        name = f"twins-{apart}"
        yield _planted(
            "b",
            twins,
            400,
            0.4,
            "decoy",
            120,
            small=4,
            listed="7/60" if apart == 15 else "5/60",
            name=name,
            apart=apart,
        )
        yield _planted("b", twins, 400, 0.4, "abstain", 300, small=4, name=name, apart=apart)
        yield _planted("b", twins, 4_000, 0.4, "abstain", 60, name=name, apart=apart)
    for rows in (flags, base_level, quantity, one_hot, interaction):
        for n, eta, tables in ((400, 0.4, 120), (4_000, 0.4, 60), (400, 0.2, 60)):
            yield _planted("b", rows, n, eta, "abstain", tables, small=2 if (n, eta) == (400, 0.4) else 0)


def _adversarial() -> Iterator[Family]:
    """Yield every kind of rows under every adversary that the other groups leave out."""
    for rows in (flags, base_level, quantity, one_hot, lattice, interaction):
        for adversary in ("junk", "constant", "flip", "unit", "groups"):
            yield _planted("c", rows, 400, 0.4, adversary, 60, small=int(rows is flags))
    for adversary in ADVERSARIES:
        yield _planted("c", gaussian, 200, 0.4, adversary, 60, small=1, name="gaussian-6", d=6)
        yield _planted("c", gaussian, 600, 0.35, adversary, 30, relu=True, name="relu-gaussian-5", d=5)
    yield _planted("c", interaction, 400, 0.4, "decoy", 60)
    yield _planted("c", flags, 4_000, 0.3, "decoy", 20, relu=True)
    yield _planted("c", quantity, 4_000, 0.3, "abstain", 20, relu=True)
    yield _planted("c", yes_or_no, 20_000, 0.4, "decoy", 100, relu=True)  # 5 of 164 crashed, claims.md, section 5


def _powerful() -> Iterator[Family]:
    """Yield tables with enough rows for a claim."""
    for n, d, eta, tables in ((300, 5, 0.2, 100), (1_000, 10, 0.25, 60), (2_000, 10, 0.3, 60), (20_000, 10, 0.4, 30)):
        for adversary in ("decoy", "junk"):
            yield _planted("d", gaussian, n, eta, adversary, tables, small=1, name=f"gaussian-{d}", d=d)
    yield Family("d", "demo-ledger/15000", partial(demo, n=15_000), 10, 1)
    yield Family("d", "demo-ledger/3000", partial(demo, n=3_000), 20)
    for n, eta, tables in ((6_000, 0.3, 20), (30_000, 0.4, 10)):
        yield _planted("d", gaussian, n, eta, "decoy", tables, relu=True, name="relu-gaussian-10", d=10)


def _proven() -> Iterator[Family]:
    """Yield tables for which "proven" can be refuted: by trying every rival, or by one that was planted."""
    for d in (1, 2, 3):
        yield Family("e", f"every-rival/{d}", partial(exhaustible, d=d), 2_000, 30)
        yield Family("e", f"every-rival-relu/{d}", partial(exhaustible, d=d, relu=True), 2_000, 15)
    for d in (2, 3):
        yield Family("e", f"every-rival-weighted/{d}", partial(exhaustible, d=d, weighted=True), 2_000, 20)
    yield Family("e", "every-rival-sparse/3", partial(exhaustible, d=3, sparse=True), 1_000, 10)
    for d in (1, 2):
        yield Family("e", f"every-rival-tolerance/{d}", partial(exhaustible, d=d, tolerance=1.0), 2_000, 20)
    yield Family("e", "every-rival-relu-tolerance/1", partial(exhaustible, d=1, relu=True, tolerance=1.0), 1_000)
    for n, d in ((60, 3), (300, 5)):
        yield Family("e", f"near-tie/{n}x{d}", partial(near_tie, n=n, d=d), 500, 10)
        yield Family("e", f"near-tie-relu/{n}x{d}", partial(near_tie, n=n, d=d, relu=True), 200)
        yield Family("e", f"near-tie-tolerance/{n}x{d}", partial(near_tie, n=n, d=d, tolerance=0.25), 300)
    yield Family("e", "dust", dust, 100, 5, "22/88")
    yield Family("e", "float32", single, 100, 5)
    yield Family("e", "huge-term", huge_term, 100, 5)
    yield Family("e", "huge-integers", huge_integers, 30, 2)


def _rounding() -> Iterator[Family]:
    """Yield tables whose numbers were rounded; what counts is which rows are called wrong."""
    for terms, listed in ((1, "24/300"), (2, "11/200")):
        yield Family("f", f"freight/{terms}", partial(freight, n=100, terms=terms), 300, 10, listed)
    yield Family("f", "thousands", thousands, 40, 2)
    yield Family("f", "tax", tax, 120, 4, "46/120")
    for size in (1e11, 1e12, 1e13):
        yield Family("f", f"sums/{size:.0e}", partial(amounts, size=size, gross=False), 20, 1)
        yield Family("f", f"gross/{size:.0e}", partial(amounts, size=size, gross=True), 20)
    yield Family("f", "from-float32", from_single, 40, 1)
    for kind in ("difference", "share", "sum"):
        yield Family("f", f"published/{kind}", partial(published, kind=kind), 40, 1)
    yield Family("f", "two-rates", two_rates, 20)
    yield Family("f", "rounded-noise", rounded_noise, 40, 2)


def _ruleless() -> Iterator[Family]:
    """Yield tables without a rule, on which nothing may be claimed."""
    for n, d in ((88, 13), (168, 14), (534, 17)):
        for label in ("amount", "count"):
            yield Family("g", f"unrelated/{label}/{n}x{d}", partial(unrelated, n=n, d=d, label=label), 4)
        yield Family("g", f"unrelated-table/{n}x{d}", partial(unrelated, n=n, d=d, label="count", door="table"), 4)
    for n, d in ((200, 4), (1_000, 8)):
        for related in (0.0, 0.1):
            kind = "related" if related else "unrelated"
            yield Family("g", f"frequent/{kind}/{n}x{d}", partial(frequent, n=n, d=d, related=related), 20, 1)
            table = partial(frequent, n=n, d=d, related=related, door="table")
            yield Family("g", f"frequent-table/{kind}/{n}x{d}", table, 10)
    yield Family("g", "unrelated/count/60000x15", partial(unrelated, n=60_000, d=15, label="count"), 2)
    yield Family("g", "unrelated-table/60000x15", partial(unrelated, n=60_000, d=15, label="count", door="table"), 2)


def _new() -> Iterator[Family]:
    """Yield families that were made after the verdicts and tuned nothing."""
    for rows in (
        nested,
        two_way,
        heavy_subspace,
        heavy_tails,
        near_duplicates,
        calendar,
        scales,
        counts,
        sorted_blocks,
        repeated,
        fixed_effects,
        powers,
        survey,
        composition,
    ):
        yield _planted("h", rows, 500, 0.4, "decoy", 60, small=1)
        yield _planted("h", rows, 500, 0.4, "groups", 30)
        yield _planted("h", rows, 5_000, 0.4, "decoy", 40)
        yield _planted("h", rows, 5_000, 0.4, "abstain", 40, small=1)


_MEASURED = """
flags/decoy/400/0.4 52/80  flags/decoy/1000/0.4 35/80  flags/decoy/20000/0.4 41/60  flags/decoy/400/0.3 17/80
flags/decoy/20000/0.3 9/60  base-level/decoy/400/0.4 47/80  base-level/decoy/20000/0.4 37/60
base-level/decoy/200000/0.4 12/20  quantity/decoy/400/0.4 15/160  quantity/decoy/20000/0.4 9/60
one-hot/decoy/400/0.4 14/80  quantity-ledger/decoy/100000/0.4 4/60  one-level/decoy/200/0.4 16/120
lattice/decoy/30/0.45 15/80  lattice/decoy/40/0.45 19/80  lattice/decoy/50/0.45 19/80  lattice/decoy/60/0.45 21/80
gaussian-12/decoy/30/0.45 7/40  gaussian-12/decoy/40/0.45 8/40  gaussian-20/decoy/60/0.45 4/40
twins-15/decoy/400/0.4 12/60  twins-15/abstain/400/0.4 0/60  twins-15/abstain/4000/0.4 10/60
twins-40/decoy/400/0.4 7/60  twins-40/abstain/400/0.4 1/60  twins-40/abstain/4000/0.4 15/60
flags/abstain/400/0.4 46/60  flags/abstain/4000/0.4 47/60  flags/abstain/400/0.2 0/60
base-level/abstain/400/0.4 39/60  base-level/abstain/4000/0.4 42/60  base-level/abstain/400/0.2 4/60
quantity/abstain/400/0.4 0/60  quantity/abstain/4000/0.4 8/60  quantity/abstain/400/0.2 0/60
one-hot/abstain/400/0.4 17/60  one-hot/abstain/4000/0.4 15/60  one-hot/abstain/400/0.2 1/60
interaction/abstain/400/0.4 0/60  interaction/abstain/4000/0.4 0/60  interaction/abstain/400/0.2 0/60
flags/junk/400/0.4 0/20  flags/constant/400/0.4 14/20  flags/flip/400/0.4 6/20  flags/unit/400/0.4 18/20
flags/groups/400/0.4 5/20  base-level/junk/400/0.4 0/20  base-level/constant/400/0.4 0/20
base-level/flip/400/0.4 1/20  base-level/unit/400/0.4 11/20  base-level/groups/400/0.4 3/20
quantity/junk/400/0.4 0/20  quantity/constant/400/0.4 3/20  quantity/flip/400/0.4 1/20  quantity/unit/400/0.4 2/20
quantity/groups/400/0.4 0/20  one-hot/junk/400/0.4 0/20  one-hot/constant/400/0.4 0/20  one-hot/flip/400/0.4 0/20
one-hot/unit/400/0.4 8/20  one-hot/groups/400/0.4 0/20  lattice/junk/400/0.4 0/20  lattice/constant/400/0.4 0/20
lattice/flip/400/0.4 0/20  lattice/unit/400/0.4 0/20  lattice/groups/400/0.4 0/20  interaction/junk/400/0.4 0/20
interaction/constant/400/0.4 0/20  interaction/flip/400/0.4 0/20  interaction/unit/400/0.4 6/20
interaction/groups/400/0.4 0/20  gaussian-6/decoy/200/0.4 0/20  relu-gaussian-5/decoy/600/0.35 0/20
gaussian-6/abstain/200/0.4 0/20  relu-gaussian-5/abstain/600/0.35 0/20  gaussian-6/junk/200/0.4 0/20
relu-gaussian-5/junk/600/0.35 0/20  gaussian-6/constant/200/0.4 0/20  relu-gaussian-5/constant/600/0.35 0/20
gaussian-6/flip/200/0.4 0/20  relu-gaussian-5/flip/600/0.35 0/20  gaussian-6/unit/200/0.4 0/20
relu-gaussian-5/unit/600/0.35 0/20  gaussian-6/groups/200/0.4 0/20  relu-gaussian-5/groups/600/0.35 0/20
interaction/decoy/400/0.4 4/20  relu-flags/decoy/4000/0.3 0/20  relu-quantity/abstain/4000/0.3 1/20
relu-yes-or-no/decoy/20000/0.4 1/100  gaussian-5/decoy/300/0.2 0/6  gaussian-5/junk/300/0.2 0/6
gaussian-10/decoy/1000/0.25 0/6  gaussian-10/junk/1000/0.25 0/6  gaussian-10/decoy/2000/0.3 0/6
gaussian-10/junk/2000/0.3 0/6  gaussian-10/decoy/20000/0.4 0/6  gaussian-10/junk/20000/0.4 0/6  demo-ledger/15000 0/6
demo-ledger/3000 0/6  relu-gaussian-10/decoy/6000/0.3 0/6  relu-gaussian-10/decoy/30000/0.4 0/6  every-rival/1 0/250
every-rival-relu/1 0/250  every-rival/2 11/250  every-rival-relu/2 0/250  every-rival/3 18/250
every-rival-relu/3 0/250  every-rival-weighted/2 17/250  every-rival-weighted/3 32/250  every-rival-sparse/3 18/250
every-rival-tolerance/1 0/250  every-rival-tolerance/2 17/250  every-rival-relu-tolerance/1 0/250  near-tie/60x3 16/60
near-tie-relu/60x3 0/60  near-tie-tolerance/60x3 8/60  near-tie/300x5 25/60  near-tie-relu/300x5 10/60
near-tie-tolerance/300x5 26/60  dust 20/88  float32 60/60  huge-term 60/60  huge-integers 0/60  freight/1 23/300
freight/2 20/200  thousands 0/12  tax 55/120  sums/1e+11 12/12  gross/1e+11 12/12  sums/1e+12 12/12  gross/1e+12 12/12
sums/1e+13 12/12  gross/1e+13 12/12  from-float32 0/12  published/difference 12/12  published/share 12/12
published/sum 8/12  two-rates 8/12  rounded-noise 12/12  unrelated/amount/88x13 0/1  unrelated/count/88x13 0/1
unrelated-table/88x13 0/1  unrelated/amount/168x14 0/1  unrelated/count/168x14 0/1  unrelated-table/168x14 0/1
unrelated/amount/534x17 0/1  unrelated/count/534x17 0/1  unrelated-table/534x17 0/1  frequent/unrelated/200x4 8/8
frequent-table/unrelated/200x4 8/8  frequent/related/200x4 7/8  frequent-table/related/200x4 8/8
frequent/unrelated/1000x8 8/8  frequent-table/unrelated/1000x8 8/8  frequent/related/1000x8 7/8
frequent-table/related/1000x8 7/8  unrelated/count/60000x15 0/1  unrelated-table/60000x15 0/1
nested/decoy/500/0.4 1/20  nested/groups/500/0.4 0/20  nested/decoy/5000/0.4 4/20  nested/abstain/5000/0.4 7/20
two-way/decoy/500/0.4 4/20  two-way/groups/500/0.4 0/20  two-way/decoy/5000/0.4 0/20  two-way/abstain/5000/0.4 0/20
heavy-subspace/decoy/500/0.4 1/20  heavy-subspace/groups/500/0.4 0/20  heavy-subspace/decoy/5000/0.4 0/20
heavy-subspace/abstain/5000/0.4 0/20  heavy-tails/decoy/500/0.4 0/20  heavy-tails/groups/500/0.4 0/20
heavy-tails/decoy/5000/0.4 0/20  heavy-tails/abstain/5000/0.4 0/20  near-duplicates/decoy/500/0.4 3/20
near-duplicates/groups/500/0.4 3/20  near-duplicates/decoy/5000/0.4 5/20  near-duplicates/abstain/5000/0.4 4/20
calendar/decoy/500/0.4 0/20  calendar/groups/500/0.4 1/20  calendar/decoy/5000/0.4 0/20
calendar/abstain/5000/0.4 0/20  scales/decoy/500/0.4 0/20  scales/groups/500/0.4 0/20  scales/decoy/5000/0.4 0/20
scales/abstain/5000/0.4 0/20  counts/decoy/500/0.4 3/20  counts/groups/500/0.4 0/20  counts/decoy/5000/0.4 0/20
counts/abstain/5000/0.4 0/20  sorted-blocks/decoy/500/0.4 5/20  sorted-blocks/groups/500/0.4 1/20
sorted-blocks/decoy/5000/0.4 0/20  sorted-blocks/abstain/5000/0.4 0/20  repeated/decoy/500/0.4 0/20
repeated/groups/500/0.4 0/20  repeated/decoy/5000/0.4 0/20  repeated/abstain/5000/0.4 0/20
fixed-effects/decoy/500/0.4 0/20  fixed-effects/groups/500/0.4 0/20  fixed-effects/decoy/5000/0.4 12/20
fixed-effects/abstain/5000/0.4 6/20  powers/decoy/500/0.4 2/20  powers/groups/500/0.4 0/20  powers/decoy/5000/0.4 1/20
powers/abstain/5000/0.4 0/20  survey/decoy/500/0.4 8/20  survey/groups/500/0.4 0/20  survey/decoy/5000/0.4 5/20
survey/abstain/5000/0.4 7/20  composition/decoy/500/0.4 0/20  composition/groups/500/0.4 0/20
composition/decoy/5000/0.4 0/20  composition/abstain/5000/0.4 0/20
"""

BASE: Mapping[str, str] = dict(zip(_MEASURED.split()[::2], _MEASURED.split()[1::2], strict=True))
"""False claims of massart 3e6e445 in each family, of so many tables, at seed 0.

In group f, tables with a claim and a row that was judged wrongly.
"""
