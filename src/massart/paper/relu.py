r"""Section 3, ReLU regression with Massart noise: Lemma 3.1, Algorithm 3 and Theorem 1.3.

The L1 loss of :math:`y = \max(0, w \cdot x)` is not convex, but at a query :math:`w_0` its gradient on the active
rows, :math:`w_0 \cdot x \ge 0`, tells on which side :math:`w^*` lies, if right rows outweigh wrong ones among them in
the direction :math:`w_0 - w^*` (Lemma 3.1). In radial-isotropic position of the active rows they do, with high
probability, so each query is cut off by a hyperplane, and a cutting-plane method closes in on the truth (Theorem 1.3).
The active rows change with the query, and so does the transform: each query starts it afresh.

**When is the answer "Yes"?** Algorithm 3 says Yes where w0 fits half of the rows. No count is sound: w0 = 0 fits every
label 0, zero rows count, and with most rows in a hyperplane an adversary who abstains there makes a wrong w0 fit most
rows, and rows that span. The reading that works: *Yes iff* :math:`w_0` *is the L1 minimizer, in their position, of the
rows with* :math:`w_0 \cdot x > 0`, *which span, and fits half of them*; within each piece where V is heavy. From any
other query the loss on these rows falls towards the truth (dagger), and at the truth the structural condition (Lemma
2.3) holds. The count by itself proves nothing, but where few rows lie off a heavy subspace it exposes minimizers that
are so by chance. As floats have no bits to round to, w0 is accepted when that minimizer is within Delta of it, and is
one again for its own active rows; the minimizer, exact to rounding, is the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from massart.cutting_plane import Halfspace, Method, ellipsoid
from massart.isotropy import decompose, radial_isotropy
from massart.l1 import l1_regression
from massart.paper.linear import algorithm_2, checked
from massart.rows import BoolArray, Callback, FloatArray, Progress, check_vector, silent

Reading: TypeAlias = Literal["sound", "printed"]

_SAME = 1e-12
"""Numbers that differ by less, relative to what they are made of, differ by rounding."""

_SHARE = 8.0
"""1/s: right labels above 0 are taken to hold at least this part of the sum that bounds the truth."""


def relu(t: FloatArray) -> FloatArray:
    """Return max(0, t)."""
    return np.maximum(t, 0.0)


def _step(t: FloatArray) -> FloatArray:
    return np.where(t >= 0, 1.0, 0.0)


# --- Lemma 3.1 ---


def separation_margin(
    X: ArrayLike,
    y: ArrayLike,
    w0: ArrayLike,
    w_true: ArrayLike,
    *,
    f: Callable[[FloatArray], FloatArray] = relu,
    derivative: Callable[[FloatArray], FloatArray] = _step,
) -> float:
    r"""Lemma 3.1 (dagger): by how much right rows outweigh wrong ones in the direction of a query.

    .. math::
        \Delta = \frac1m \Bigl( \sum_{y_i = f(w^* \cdot x_i)} - \sum_{y_i \ne f(w^* \cdot x_i)} \Bigr)
            |(w_0 - w^*) \cdot x_i| \, f'(w_0 \cdot x_i)

    Parameters
    ----------
    X : (m, d) array
        Rows, as the oracle sees them: in the position of the active ones. The lemma needs rows of length 1 at most.
    y : (m,) array
        A label is right if it is f(w*.x) to the last bit, or within rounding of it.
    w0, w_true : (d,) arrays
        The query and the truth.
    f, derivative : callable
        Any non-decreasing f; the ReLU by default.

    Notes
    -----
    Where this is positive, :func:`l1_gradient` is the normal of a hyperplane through w0 that keeps the ball of radius
    Delta/2 about the truth. With longer rows that is false: f(t) = t, rows (1, 100) and (0, .001), labels 0, w* = 0,
    w0 = (1, 0) have Delta = 1/2, and the cut removes (0, .2).

    Paper: Lemma 3.1. Tests: test_paper_relu::test_every_cut_keeps_the_ball_of_lemma_3_1, test_paper_relu::test_lemma_3_1_needs_short_rows
    """  # noqa: E501 - the line is read by the table of the documentation
    rows, labels = checked(X, y)[:2]
    query, truth = np.asarray(w0, dtype=np.float64), np.asarray(w_true, dtype=np.float64)
    sizes = np.abs(rows) @ np.abs(truth) + np.abs(labels)
    right = np.abs(labels - f(rows @ truth)) <= _SAME * sizes
    pull = np.abs(rows @ (query - truth)) * derivative(rows @ query)
    return float((pull[right].sum() - pull[~right].sum()) / len(rows))


def l1_gradient(
    X: ArrayLike,
    y: ArrayLike,
    w0: ArrayLike,
    *,
    f: Callable[[FloatArray], FloatArray] = relu,
    derivative: Callable[[FloatArray], FloatArray] = _step,
) -> FloatArray:
    r"""Return the gradient of the L1 loss at w0, the normal of Lemma 3.1's hyperplane, with sgn(0) = +1.

    .. math:: \nabla \hat L(w_0) = \frac1m \sum_i \mathrm{sgn}(f(w_0 \cdot x_i) - y_i) \, f'(w_0 \cdot x_i) \, x_i

    A right row with :math:`f(w_0 \cdot x) = y` is on neither side, but where :math:`w_0 \cdot x = 0 = y` the truth has
    :math:`w^* \cdot x \le 0`, and the lemma's third equality needs +1.
    """
    rows, labels = checked(X, y)[:2]
    z = rows @ np.asarray(w0, dtype=np.float64)
    return np.asarray((np.where(f(z) >= labels, 1.0, -1.0) * derivative(z)) @ rows / len(rows))


# --- Algorithm 3 ---


class Answer(Enum):
    """What the separation oracle says; the value says it in words."""

    YES = "the query is the L1 minimizer of its active rows, in their position, and fits half of them"
    CUT = "the truth lies on the other side of a hyperplane through the query"
    SILENT = "no row tells on which side the truth lies"


@dataclass(frozen=True, slots=True)
class Separation:
    """What the separation oracle says to one query.

    Attributes
    ----------
    answer : Answer
    normal : (d,) array
        The truth w has ``normal @ w <= normal @ w0``; zero unless the answer is CUT.
    w : (d,) array
        The L1 minimizer that a Yes means; the query itself in the printed reading, and without a Yes.
    subspace : (d, k) array
        V of the level that gave the cut: the normal lies in it.
    weights : (m,) array
        ``1 / |A V'x|`` of the rows of that level, 0 for others: the normal is the mean of these times signed rows.
    """

    answer: Answer
    normal: FloatArray
    w: FloatArray
    subspace: FloatArray
    weights: FloatArray


def separation_oracle(
    X: ArrayLike,
    y: ArrayLike,
    w0: ArrayLike,
    *,
    gamma: float = 0.5,
    delta: float | None = None,
    reading: Reading = "sound",
) -> Separation:
    r"""Algorithm 3, SEP: Yes, or a hyperplane between the query and the truth.

    Parameters
    ----------
    X : (m, d) array
    y : (m,) array
    w0 : (d,) array
        The query.
    gamma : float
        Line 8: of the radial-isotropic transforms.
    delta : float, optional
        Radius of the ball about the truth in which a query gets a Yes; 1e-9 of the query's length by default.
    reading : {"sound", "printed"}
        "printed" says Yes by the number of rows that fit (line 5), has sgn(0) = 0, and keeps the ReLU on the complement
        of a heavy subspace (line 17). The page of readings of the documentation shows where each of these fails.

    Notes
    -----
    Line 11's :math:`A^{-1} r` is :math:`\sum_i s_i x_i / |A x_i|`: no inverse is taken. Lines 14 and 19: the hyperplane
    is orthogonal to V, so that its normal lies in V. The recursion of lines 12 and 17 is a loop over levels.

    Paper: Algorithm 3. Tests: test_paper_relu::test_algorithm_3_is_its_fifteen_lines, test_paper_relu::test_a_wrong_query_that_fits_most_rows_is_not_accepted

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 2))
    >>> y = np.maximum(X @ [3.0, -1.0], 0)
    >>> y[:50] = 7
    >>> cut = separation_oracle(X, y, [1.0, 1.0])
    >>> cut.answer.name, bool(cut.normal @ [3.0, -1.0] < cut.normal @ [1.0, 1.0])
    ('CUT', True)
    >>> separation_oracle(X, y, [3.0, -1.0]).answer.name
    'YES'
    """  # noqa: E501 - the line is read by the table of the documentation
    rows, labels = checked(X, y)[:2]
    query = check_vector(w0, rows.shape[1], "w0")
    if reading not in get_args(Reading):
        raise ValueError(f'reading must be "sound" or "printed", got {reading!r}')
    delta = 1e-9 * float(np.linalg.norm(query)) if delta is None else delta
    return _Oracle(rows, labels, gamma, delta, reading == "printed").ask(query)


@dataclass(frozen=True, slots=True)
class _Oracle:
    """The table and the options of Algorithm 3."""

    X: FloatArray
    y: FloatArray
    gamma: float
    delta: float
    printed: bool

    def ask(self, w0: FloatArray) -> Separation:
        """Answer a query; a Yes holds only if its L1 minimizer is one for its own active rows, too."""
        found = self.sep(w0)
        if self.printed or found.answer is not Answer.YES or np.array_equal(self.X @ w0 > 0, self.X @ found.w > 0):
            return found
        again = self.sep(found.w)
        if again.answer is Answer.YES and np.linalg.norm(again.w - found.w) <= _SAME * np.linalg.norm(found.w):
            return again
        return self.sep(w0, may_accept=False)

    def sep(self, w0: FloatArray, *, may_accept: bool = True) -> Separation:
        """Lines 4 to 20; a level is a subspace: R^d, then the complement of V, and so on."""
        X, y, minimizer = self.X, self.y, np.zeros(len(w0))
        basis, left = np.eye(len(w0)), np.asarray(self.printed | X.any(axis=1))  # printed: line 5 counts zero rows
        while True:
            P, q = _project(X, basis), basis.T @ w0
            if self.printed and 2 * self._fits(P[left], y[left], q).sum() >= left.sum():  # 5
                return _yes(w0, len(X))  # 6
            linear = not self.printed and len(q) < len(w0)  # on the complement of V labels are residuals: no ReLU
            S = np.asarray(left & P.any(axis=1) & (linear | (P @ q >= 0)))  # 7
            if not S.any():
                return self._without_active_rows(left, basis, w0)
            piece = radial_isotropy(P[S], self.gamma)  # 8
            V, A, members = piece.subspace, piece.matrix, np.zeros(len(X), dtype=bool)
            members[S] = piece.members
            level = _Level(P[members] @ V, y[members], V.T @ q, A, X[members] @ w0 > 0)
            found = self._minimizer(level, whole=len(A) == len(q)) if may_accept else None
            if found is None:
                return self._level_cut(level, basis @ V, members, w0)  # 9 to 11; 12 to 14 and 17 to 19 where dim V < d
            minimizer = minimizer + basis @ V @ found
            if len(A) == len(q):
                return _yes(minimizer, len(X))  # 20
            y = y - P @ V @ found  # 16
            left = S & ~members
            basis = basis @ np.linalg.qr(V, mode="complete")[0][:, len(A) :]  # 15

    def _minimizer(self, level: _Level, *, whole: bool) -> FloatArray | None:
        """Return the L1 minimizer of a level in its position if the query is that, up to Delta."""
        Z, y, q = level.Z, level.y, level.q
        if self.printed:  # the call of line 12 has a line 5 of its own
            return q if not whole and 2 * self._fits(Z, y, q).sum() >= len(Z) else None
        Z, y = Z[level.positive], y[level.positive]
        near = np.abs(Z @ q - y) <= self.delta * np.linalg.norm(Z, axis=1)
        if 2 * np.count_nonzero(near) < max(len(Z), 2 * len(q)):
            return None  # the truth fits half of the rows, and a minimizer as many as there are columns
        U = Z @ level.A
        lengths = np.linalg.norm(U, axis=1)
        found = l1_regression(U / lengths[:, None], y / lengths)
        w = np.asarray(level.A @ found.coef)
        return w if found.rank == len(q) and np.linalg.norm(w - q) <= self.delta else None

    def _fits(self, X: FloatArray, y: FloatArray, w: FloatArray) -> BoolArray:
        return np.asarray(np.abs(relu(X @ w) - y) <= self.delta * np.linalg.norm(X, axis=1))

    def _level_cut(self, level: _Level, V: FloatArray, members: BoolArray, w0: FloatArray) -> Separation:
        """Lines 10 and 11 on a level."""
        gap = level.Z @ level.q - level.y
        weights = np.zeros(len(self.X))
        weights[members] = 1 / np.linalg.norm(level.Z @ level.A, axis=1)
        sizes = np.linalg.norm(level.Z, axis=1) * np.linalg.norm(level.q) + np.abs(level.y)
        sign = np.sign(gap) if self.printed else np.where(gap >= -_SAME * sizes, 1.0, -1.0)
        r = (sign * weights[members]) @ level.Z / len(gap)
        return _cut(self.X, w0, V @ r, V, weights)

    def _without_active_rows(self, left: BoolArray, basis: FloatArray, w0: FloatArray) -> Separation:
        """Cut where no active row is left: a right label above 0 on another row says that w* is nearer to that row."""
        rows = ~left if len(w0) > basis.shape[1] else np.ones(len(left), dtype=bool)
        rows &= (self.y > 0) & (self.X @ w0 < 0)
        P = _project(self.X, basis)
        lengths = np.linalg.norm(P, axis=1)
        weights = np.divide(1.0, lengths, out=np.zeros(len(P)), where=rows & (lengths > 0))
        return _cut(self.X, w0, basis @ -(weights @ P) / len(P), basis, weights)


def _yes(w: FloatArray, m: int) -> Separation:
    return Separation(Answer.YES, np.zeros(len(w)), w, np.zeros((len(w), 0)), np.zeros(m))


def _cut(X: FloatArray, w0: FloatArray, normal: FloatArray, V: FloatArray, weights: FloatArray) -> Separation:
    """Return the cut with this normal, unless it is what rounding left of rows that cancel."""
    cancelled = np.linalg.norm(normal) <= _SAME * (weights @ np.linalg.norm(X, axis=1)) / len(X)
    return Separation(Answer.SILENT if cancelled else Answer.CUT, normal, w0, V, weights)


@dataclass(frozen=True, slots=True)
class _Level:
    """The active rows in V, in coordinates."""

    Z: FloatArray  # (n, k)
    y: FloatArray  # (n,) labels, less what the levels before explain
    q: FloatArray  # (k,) the query
    A: FloatArray  # (k, k) the transform
    positive: BoolArray  # (n,) rows with w0.x > 0


def _project(X: FloatArray, basis: FloatArray) -> FloatArray:
    """Return coordinates on `basis`, zero where they are rounding: "x in V" is a rank decision."""
    if basis.shape[0] == basis.shape[1]:
        return X
    P = X @ basis
    return np.where(np.abs(P) > _SAME * np.linalg.norm(X, axis=1)[:, None], P, 0.0)


# --- Theorem 1.3 ---


class ReLUStatus(Enum):
    """How recovery of a ReLU ended; the value says it in words."""

    ACCEPTED = "the separation oracle said Yes"
    ROUNDED = "no query got a Yes, but the L1 minimizer on the active rows of one did: that is w"
    EMPTY = (
        "the cuts left nothing: the truth lies outside of the first ball, or a cut was wrong; "
        "w is the L1 minimizer, on the active rows of a query, that fits most rows (printed: the last query)"
    )
    QUERY_LIMIT = "max_queries were asked and none got a Yes; w is as for EMPTY"
    SILENT = "no row showed on which side the truth lies; w is as for EMPTY"


@dataclass(frozen=True, slots=True)
class ReLURecovery:
    """What Theorem 1.3's algorithm returns.

    Attributes
    ----------
    w : (d,) array
    n_queries : int
        Questions to the separation oracle.
    radius : float
        Of the first ball.
    status : ReLUStatus
    """

    w: FloatArray
    n_queries: int
    radius: float
    status: ReLUStatus


def recover_relu(
    X: ArrayLike,
    y: ArrayLike,
    *,
    radius: float | None = None,
    method: Method = ellipsoid,
    gamma: float = 0.5,
    tol: float = 1e-9,
    max_queries: int = 20_000,
    reading: Reading = "sound",
    callback: Callback = silent,
) -> ReLURecovery:
    r"""Theorem 1.3: exact recovery of a ReLU, by a cutting-plane method with the separation oracle of Algorithm 3.

    Parameters
    ----------
    X : (m, d) array
    y : (m,) array
    radius : float, optional
        The truth is looked for in the ball :math:`|w| \le` radius. By default in an ellipsoid, the ball of a radius that
        the labels give (see Notes) in the position of all rows, so that units of columns do not matter.
    method : callable
        :func:`massart.paper.ellipsoid`, the paper's, or :func:`massart.paper.analytic_center`, which asks fewer queries.
    gamma : float
        Of the radial-isotropic transforms. Each query's starts afresh.
    tol : float
        Delta, the radius of the ball in which a query gets a Yes, in units of `radius`. The method gives up, EMPTY, when
        what is left holds no ball of a thousandth of that.
    max_queries : int
    reading : {"sound", "printed"}
        Of Algorithm 3, see :func:`separation_oracle`.
    callback : callable

    Notes
    -----
    In the position of all rows, :math:`\sum_i |\tilde w \cdot u_i| \ge (1 - \gamma) m |\tilde w| / d` for the unit rows
    u. Where right labels above 0 hold a share s of that sum, one of them is at least
    :math:`s (1 - \gamma) |\tilde w| / d`; so with s = 1/8 the largest label bounds the truth. Labels of a wild size
    enlarge the ball, which costs queries in proportion to the logarithm.

    With few rows off a heavy subspace (dagger) may fail in a region, where cuts are wrong and the ball ends empty. Then
    the queries are rounded, as the paper rounds to b bits: to the L1 minimizer on their active rows, if that gets a Yes.

    Paper: Theorem 1.3. Tests: test_paper_relu::test_theorem_1_3_in_general_position, test_paper_relu::test_theorem_1_3_with_heavy_subspaces

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((400, 4))
    >>> y = np.maximum(0, X @ [3, 0, -1, 0.5])
    >>> y[:100] = 7
    >>> found = recover_relu(X, y)
    >>> np.round(found.w, 12) + 0.0, found.status.name
    (array([ 3. ,  0. , -1. ,  0.5]), 'ACCEPTED')
    """  # noqa: E501 - the line is read by the table of the documentation
    rows, labels = checked(X, y)[:2]
    if radius is None:
        basis, radius = _first_ball(rows, labels, gamma)
    else:
        basis = np.eye(rows.shape[1])
    Z = rows @ basis
    lengths = np.linalg.norm(Z, axis=1) + ~Z.any(axis=1)
    if reading not in get_args(Reading):
        raise ValueError(f'reading must be "sound" or "printed", got {reading!r}')
    oracle = _Oracle(Z / lengths[:, None], labels / lengths, gamma, tol * radius, reading == "printed")
    queries: list[FloatArray] = []
    found = Separation(Answer.SILENT, np.zeros(0), np.zeros(Z.shape[1]), np.zeros((0, 0)), np.zeros(len(Z)))

    def ask(z: FloatArray) -> Halfspace | None:
        nonlocal found
        queries.append(z)
        found = oracle.ask(z)
        callback(Progress("separation oracle", len(queries), float(found.answer is not Answer.YES), 0.0))
        return Halfspace(found.normal, float(found.normal @ z)) if found.answer is Answer.CUT else None

    if not Z.any():
        return ReLURecovery(basis @ found.w, 0, radius, ReLUStatus.SILENT)
    cuts = method(ask, Z.shape[1], radius, max_queries=max_queries, tol=1e-3 * tol)
    if found.answer is Answer.YES:
        return ReLURecovery(basis @ found.w, len(queries), radius, ReLUStatus.ACCEPTED)
    status = ReLUStatus.SILENT if found.answer is Answer.SILENT else ReLUStatus[cuts.status.name]
    z, rounded = (found.w, False) if reading == "printed" else _rounded(oracle, queries)
    return ReLURecovery(basis @ z, len(queries), radius, ReLUStatus.ROUNDED if rounded else status)


def _rounded(oracle: _Oracle, queries: list[FloatArray]) -> tuple[FloatArray, bool]:
    """Return the first L1 minimizer on the active rows of a query that gets a Yes; else that which fits most rows."""
    best, most, seen = np.zeros(oracle.X.shape[1]), -1, set()
    for query in queries:
        active = oracle.X @ query > 0
        key = np.packbits(active).tobytes()
        if key in seen or not active.any():
            continue
        seen.add(key)
        z = algorithm_2(oracle.X[active], oracle.y[active], oracle.gamma).w
        if oracle.ask(z).answer is Answer.YES:
            return z, True
        fitted = int(((oracle.X @ z > 0) & (np.abs(oracle.X @ z - oracle.y) <= oracle.delta)).sum())
        if fitted > most:
            best, most = z, fitted
    return best, False


def _first_ball(X: FloatArray, y: FloatArray, gamma: float) -> tuple[FloatArray, float]:
    """Return a map from the position of all rows, level by level, and a radius there that should hold the truth."""
    columns, squares, known = [np.zeros((X.shape[1], 0))], 0.0, np.abs(y)
    for piece in decompose(X, gamma):
        basis = piece.subspace @ piece.matrix
        lengths = np.linalg.norm(X @ basis, axis=1)
        largest = float((known[piece.members] / lengths[piece.members]).max())
        radius = _SHARE * len(piece.matrix) / (1 - gamma) * largest
        known = known + radius * lengths  # what this level may add to the products of rows of later ones
        columns.append(basis)
        squares += radius**2
    return np.hstack(columns), float(np.sqrt(squares)) or 1.0  # labels that are all 0 have no scale
