r"""The learner behind :class:`massart.MassartPACRegressor`: right on all but a share epsilon, and it says for which.

If rows concentrate on a subspace, :math:`w^*` cannot be identified off it. What can be had (Theorem B.1) is a
:math:`\hat w` with

.. math::
    \Pr_x [ \hat w \cdot x \ne w^* \cdot x ] \le \epsilon .

Appendix B to the letter is :func:`massart.paper.pac_learn`: one L1 problem on the rows without outliers. Its argument
needs a number of rows that grows with the cube of the largest outlier ratio; Theorem 1.2's does not. This learner uses
the same outlier removal, and then all that recovery has.

**Learning.** Outliers are removed with :math:`\alpha = \epsilon / 2`; the rows inside the ellipsoid span V, and are
decomposed into radial-isotropic pieces. Rows off V follow, projected on its complement, in the same way. The pieces are
where recovery starts: Algorithm 2, then the search beyond it (:mod:`massart.search`) and the polish.

**What is claimed.** The appendix shows that enough rows suffice, not how many there are. So one half of the rows, by x
alone, chooses nested subspaces :math:`U_1 \subset U_2 \subset \dots`, the decomposition above. Piece j are the rows
in :math:`U_j` but not in :math:`U_{j-1}`. If :math:`\hat w` is right on :math:`U_{j-1}` and more rows of piece j agree,
off any hyperplane, than noise of rate :math:`\eta` can have spoilt, it is right on :math:`U_j`
(:mod:`massart.certificate.tails`). A piece that does not confirm the formula is joined to the next. The last
subspace so confirmed misses a share of the distribution, which the other half of the rows bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from massart.certificate import (
    EXACT_REACH,
    SLAB_REACH,
    Assumption,
    Certificate,
    Decisive,
    Verdict,
    bound_sharing,
    geometry_of,
    largest_share_outside,
    measure_support,
    most_wrong,
)
from massart.isotropy import RadialIsotropy, decompose
from massart.paper import remove_outliers
from massart.recover.certification import CertificationRows, Formula
from massart.recover.judge import judge
from massart.recover.propose import propose
from massart.recover.settings import Options
from massart.rows import (
    IDENTITY,
    Agreement,
    BoolArray,
    Callback,
    FloatArray,
    Level,
    Sample,
    check_labels,
    check_matrix,
    exponents,
    levels,
    precision_of,
    silent,
    tally_of,
    typical_sizes,
)

CLAIMS = 3
"""Statements that share the probability of being wrong: on labels, on hyperplanes, and on rows not seen."""

FINE_GAMMA = 0.02
"""Of the decomposition whose pieces are judged: a small one splits off every heavy subspace, and small pieces are
easier to prove. The L1 problems, which gain nothing from that, have the paper's 1/2."""

FREQUENT = 0.5
"""Rows of a direction, relative to what each of k directions would have, that make it a piece of its own."""

_SAME_DIRECTION = 9  # decimals of a unit row
_CLEARLY_NEW = 1e-3  # distance of a direction from the span of others


class PACStatus(Enum):
    """What the rows say about the epsilon asked for; the value says it in words."""

    PROVEN = "epsilon holds with the stated confidence, for any noise of rate eta"
    SHORT = "the rows do not stand behind the epsilon asked for"


@dataclass(frozen=True, slots=True)
class PACPiece:
    """Rows that lie in a subspace and not in that of the piece before.

    Attributes
    ----------
    subspace : (d, k) array
        Orthonormal basis of the subspace U of this piece and those before.
    n_rows, n_agree : int
        Rows of the piece, and those that agree with the formula.
    n_wrong : int
        Wrong labels that the noise may have left in the piece, at the confidence of the result.
    verdict : Verdict
        PROVEN: more rows agree off any hyperplane than can be wrong. CONFIRMED: the support of the formula excludes any
        other (:mod:`massart.certificate.support`). PLURALITY: neither, and nothing is claimed from here on.
    """

    subspace: FloatArray
    n_rows: int
    n_agree: int
    n_wrong: int
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class PACFormula:
    """A formula y = w.x, and the share of the distribution on which it may err.

    Attributes
    ----------
    coef : (d,) array
        w.
    epsilon : float
        The share asked for.
    achieved : float
        The share that the rows stand behind, at the `confidence`.
    confidence : float
    eta : float
        The noise rate for which that holds.
    agree : (n,) boolean array
        Rows whose residual is within the tolerance.
    agreement : Agreement
    pieces : tuple of PACPiece
        From the smallest subspace to the largest.
    certificate : Certificate
        What is proven about all rows together, and which columns are left open.
    status : PACStatus
    """

    coef: FloatArray
    epsilon: float
    achieved: float
    confidence: float
    eta: float
    agree: BoolArray
    agreement: Agreement
    pieces: tuple[PACPiece, ...]
    certificate: Certificate
    status: PACStatus

    def explain(self) -> str:
        """Say in plain words what is claimed and what is not."""
        noise = "fewer than half of the labels" if self.eta == 0.5 else f"at most {100 * self.eta:g} % of the labels"
        return (
            f"With confidence {100 * self.confidence:g} %, if each label is wrong independently and {noise} are, "
            f"the formula errs on at most {100 * self.achieved:.3g} % of such rows "
            f"({100 * self.epsilon:g} % were asked for)."
        )


def learn_pac(
    X: ArrayLike,
    y: ArrayLike,
    epsilon: float,
    *,
    eta: float | None = None,
    confidence: float = 0.95,
    tolerance: float | Literal["auto"] = "auto",
    rng: np.random.Generator,
    callback: Callback = silent,
) -> PACFormula:
    """Learn a formula y = w.x that is right on all but a share epsilon of the distribution, whatever that is.

    Parameters
    ----------
    X : (n, d) array
        Independent draws of one distribution. There are no weights, since the bounds count draws.
    y : (n,) array
    epsilon : float in (0, 1)
        Share on which the formula may err.
    eta : float, optional
        Largest rate at which labels are wrong, below 1/2. By default anything below 1/2, which asks for more rows
        before a piece counts as confirmed.
    confidence : float in (0, 1)
        Of `achieved`.
    tolerance : "auto" or float
        See :func:`massart.rows.levels`.
    rng : numpy.random.Generator
    callback : callable

    Raises
    ------
    ValueError
        Naming the argument that is wrong.

    Examples
    --------
    Rows in a plane of R^3, a third of the labels wrong: w is not identifiable, w.x is.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((600, 2)) @ [[1, 0, 1], [0, 1, 1]]
    >>> y = X @ [1, 2, 3]
    >>> y[::3] = 7
    >>> found = learn_pac(X, y, 0.05, rng=rng)
    >>> bool(np.allclose(X @ found.coef, X @ [1, 2, 3])), found.status.name, round(found.achieved, 3)
    (True, 'PROVEN', 0.014)
    """
    rows = check_matrix(X)
    labels = check_labels(y, len(rows))
    if labels.ndim != 1:
        raise ValueError(f"y must have shape (n,), got {labels.shape}")
    for value, name in ((epsilon, "epsilon"), (confidence, "confidence")):
        if not 0 < value < 1:
            raise ValueError(f"{name} must be between 0 and 1, got {value}")
    if eta is not None and not 0 <= eta < 0.5:
        raise ValueError(f"eta must be at least 0 and below 1/2, got {eta}")
    tol = precision_of(X) ** (5 / 6)
    # Columns of a common size, and no number above 1: distances from subspaces are plain there, squares are finite.
    scales = typical_sizes(rows)
    scaled = rows / scales
    shift = -int(exponents(scaled))
    scaled = np.ldexp(scaled, shift)
    candidates = levels(tolerance, rows, labels, X_precision=precision_of(X), y_precision=precision_of(y))
    candidates = tuple(level for level in candidates if level.level is not Level.INPUTS)  # columns are scaled here
    pieces = _pieces(scaled, epsilon / 2, tol, callback)
    sample = Sample(scaled, labels, None, np.arange(len(rows)))
    found = propose(sample, candidates, IDENTITY, Options(rng, callback=callback), pieces)
    agreement = found.agreement
    formula = Formula(np.ldexp(found.coef / scales, shift), agreement, IDENTITY)
    table = Sample(rows, labels, None, np.arange(len(rows)))
    verified, marks = formula.marks(table)
    certification = CertificationRows(table, geometry_of(rows), Assumption(), rng)
    certificate = judge(formula, certification, tally_of(marks))
    half = np.zeros(len(rows), dtype=bool)
    half[rng.permutation(len(rows))[: len(rows) // 2]] = True
    flag = _flag(scaled[half], epsilon / 2, tol, callback)
    delta = (1 - confidence) / (CLAIMS * max(len(flag), 1))
    rate = 0.5 if eta is None else float(eta)
    evidence = _Evidence(scaled, verified.agree, verified.half_widths, agreement, rate, delta, tol, rng)
    judged = tuple(evidence.judge(flag))
    achieved = evidence.share_outside(judged, ~half)
    return PACFormula(
        coef=formula.coef,
        epsilon=float(epsilon),
        achieved=achieved,
        confidence=float(confidence),
        eta=rate,
        agree=verified.agree,
        agreement=agreement,
        pieces=tuple(replace(piece, subspace=_unscaled(piece.subspace, scales)) for piece in judged),
        certificate=certificate,
        status=PACStatus.PROVEN if achieved <= epsilon else PACStatus.SHORT,
    )


def _unscaled(basis: FloatArray, scales: FloatArray) -> FloatArray:
    """Return an orthonormal basis of the subspace before columns were divided by `scales`."""
    return np.asarray(np.linalg.qr(basis * (scales / scales.max())[:, None])[0])


def _pieces(X: FloatArray, alpha: float, tol: float, callback: Callback, gamma: float = 0.5) -> list[RadialIsotropy]:
    """Return the pieces of the rows inside an ellipsoid, then those of the rows off its subspace, and so on.

    The rows of the subspace outside of the ellipsoid belong to none: that is the outlier removal.
    """
    left = np.asarray(X.any(axis=1))
    ambient = np.eye(X.shape[1])
    found: list[RadialIsotropy] = []
    while left.any() and ambient.shape[1]:
        rows = X[left] @ ambient
        removal = remove_outliers(rows, alpha=alpha, tol=tol, callback=callback)
        inside = np.flatnonzero(left)[removal.inside]
        for piece in decompose(rows[removal.inside], gamma, tol=tol, callback=callback):
            members = np.zeros(len(X), dtype=bool)
            members[inside] = piece.members
            found.append(replace(piece, subspace=ambient @ piece.subspace, members=members))
        left[left] = ~removal.spans(rows)
        ambient = ambient @ _complement(removal.subspace)
    return found


def _flag(X: FloatArray, alpha: float, tol: float, callback: Callback) -> list[FloatArray]:
    """Return orthonormal bases of the nested subspaces that the rows choose."""
    columns: list[FloatArray] = [np.zeros((X.shape[1], 0))]
    for piece in _pieces(X, alpha, tol, callback, FINE_GAMMA):
        own = _frequent_directions(X[piece.members] @ piece.subspace)
        columns += [piece.subspace @ own[:, [j]] for j in range(own.shape[1])]
        if own.shape[1] < piece.subspace.shape[1]:
            columns.append(piece.subspace @ _complement(own))
    return [np.linalg.qr(np.hstack(columns[: j + 1]))[0] for j in range(1, len(columns))]


def _frequent_directions(Z: FloatArray) -> FloatArray:
    """Return independent directions, in columns, that are many rows each: the indicators of a table of categories.

    A piece of one dimension has no hyperplane but zero, so that its majority is a proof.
    """
    n, k = Z.shape
    units = Z / np.linalg.norm(Z, axis=1)[:, None]
    units *= np.sign(units[np.arange(n), np.argmax(np.abs(units) > 1 / (2 * np.sqrt(k)), axis=1)])[:, None]
    directions, counts = np.unique(np.round(units, _SAME_DIRECTION), axis=0, return_counts=True)
    own = np.zeros((k, 0))
    for j in np.argsort(-counts, kind="stable"):
        if counts[j] * k < FREQUENT * n or own.shape[1] == k:
            break
        direction = directions[j] - own @ (own.T @ directions[j])
        if np.linalg.norm(direction) > _CLEARLY_NEW:
            own = np.linalg.qr(np.column_stack([own, direction]))[0]
    return own


def _complement(basis: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.qr(basis, mode="complete")[0][:, basis.shape[1] :])


@dataclass(frozen=True, slots=True)
class _Evidence:
    """What the rows of a table say about a formula, piece by piece; each claim may fail with probability `delta`."""

    X: FloatArray
    agree: BoolArray
    half_widths: FloatArray
    agreement: Agreement
    eta: float
    delta: float
    tol: float
    rng: np.random.Generator

    def judge(self, flag: Sequence[FloatArray]) -> Iterator[PACPiece]:
        """Yield the pieces of the nested subspaces `flag`; unconfirmed ones are joined to the next, the last ends."""
        levels = self._levels(flag)
        before: FloatArray = np.zeros((self.X.shape[1], 0))
        start = 0
        for j, basis in enumerate(flag):
            inside = (levels >= start) & (levels <= j)
            piece = self._piece(inside, before, basis)
            if piece.verdict is not Verdict.PLURALITY:
                before, start = basis, j + 1
                yield piece
            elif j == len(flag) - 1:
                yield piece

    def _piece(self, inside: BoolArray, before: FloatArray, basis: FloatArray) -> PACPiece:
        new = basis @ _complement(basis.T @ before)
        k = new.shape[1]
        agree = inside & self.agree
        n, a = int(inside.sum()), int(agree.sum())
        q = most_wrong(n, self.eta, self.delta)
        # More labels that disagree than can be wrong speak against the formula, or against eta.
        wrong = max(q, n - a)
        verdict = Verdict.PLURALITY
        if a - (k - 1) > wrong:
            verdict = self._verdict(inside, new, float(wrong))
        return PACPiece(basis, n, a, q, verdict)

    def _verdict(self, inside: BoolArray, new: FloatArray, wrong: float) -> Verdict:
        agree = inside & self.agree
        rows = self.X[agree] @ new
        present = rows.any(axis=1)
        scaled = (rows / np.maximum(self.half_widths[agree], np.finfo(float).tiny)[:, None])[present]
        limit = SLAB_REACH if self.agreement.rounded else EXACT_REACH
        case = Decisive(scaled, None, float(len(scaled)), wrong, limit)
        if bound_sharing(case).proven:
            return Verdict.PROVEN
        Z = self.X[inside] @ new
        support = measure_support(
            geometry_of(Z),
            Z,
            self.agree[inside],
            self.half_widths[inside],
            bound=self.eta,
            confidence=1 - self.delta,
            rng=self.rng,
        )
        return Verdict.CONFIRMED if support.eta_max >= self.eta and support.alpha > 0 else Verdict.PLURALITY

    def share_outside(self, pieces: Sequence[PACPiece], rows: BoolArray) -> float:
        """Bound the share of the distribution outside of the last subspace up to which all pieces are certain."""
        covered = np.asarray(~self.X.any(axis=1))
        for piece in pieces:
            if not piece.verdict.certain:
                break
            covered = _in_subspace(self.X, piece.subspace, self.tol)
        return largest_share_outside(int((~covered[rows]).sum()), int(rows.sum()), self.delta)

    def _levels(self, flag: Sequence[FloatArray]) -> NDArray[np.intp]:
        """Return for each row the first subspace that holds it; their number if none does, -1 for zero rows."""
        levels = np.full(len(self.X), len(flag))
        for j in reversed(range(len(flag))):
            levels[_in_subspace(self.X, flag[j], self.tol)] = j
        levels[~self.X.any(axis=1)] = -1
        return levels


def _in_subspace(X: FloatArray, basis: FloatArray, tol: float) -> BoolArray:
    away = np.linalg.norm(X @ _complement(basis), axis=1)
    return np.asarray(away <= tol * np.linalg.norm(X, axis=1))
