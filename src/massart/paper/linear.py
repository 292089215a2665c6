r"""Section 2, linear regression with Massart noise: Lemma 2.3, Algorithms 1 and 2, Theorems 1.2 and 2.1.

Given rows with labels of which more than half satisfy :math:`y = w^* \cdot x`, find :math:`w^*` exactly. For a map A,

.. math::
    \tilde w = \arg\min_w \sum_i \left| \frac{y_i}{|A x_i|} - w \cdot \frac{A x_i}{|A x_i|} \right| ,
    \qquad w = A \tilde w ,

is the truth wherever the right rows outweigh the wrong ones in every direction (Lemma 2.3). In radial-isotropic
position (Definition 1.4) every row has about the same say, and Massart noise of rate below 1/2 leaves the right rows
the heavier side with high probability (Theorem 2.1). Where a subspace V holds too many rows, so that there is no such
position, Algorithm 2 solves for the part of w in V by the rows in V, and goes on with the rest of the rows, projected
on the complement of V, and with what V explains taken off their labels (Theorem 1.2).

The paper transforms the distribution; here, as in its algorithms, the rows of the sample are transformed, and the proof
holds with the rows fixed and the corruption random (see :mod:`massart.paper.position`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from massart.isotropy import RadialIsotropy, decompose, radial_isotropy
from massart.isotropy import Status as IsotropyStatus
from massart.l1 import Status as L1Status
from massart.l1 import l1_regression
from massart.paper.position import most_effective_position
from massart.rows import SQUARE_IS_FINITE, Callback, FloatArray, check_matrix, check_vector, check_weights, silent

Position = Literal["radial_isotropic", "most_effective"]


class LinearStatus(Enum):
    """How Algorithm 1 or 2 ended; the value says it in words."""

    DONE = "the algorithm ran to its last line"
    HEAVY_SUBSPACE = "a subspace forbids a transform of all rows: w is the answer on that subspace only"
    NOT_SPANNING = "the rows do not span the space: w is zero in the directions that no row sees"
    STALLED = "a transform ended above gamma: w is the L1 answer in the position that was reached"
    INEXACT = "an L1 regression could not be proven optimal: w is the best answer found"


@dataclass(frozen=True, slots=True)
class LinearRecovery:
    """What Algorithm 1 or 2 returns.

    Attributes
    ----------
    w : (d,) array
    pieces : tuple of RadialIsotropy
        The subspace and the transform of each call of GeneralizedForster, in the order of the recursion.
    status : LinearStatus
    """

    w: FloatArray
    pieces: tuple[RadialIsotropy, ...]
    status: LinearStatus


def algorithm_1(
    X: ArrayLike,
    y: ArrayLike,
    gamma: float = 0.5,
    *,
    position: Position = "radial_isotropic",
    sample_weight: ArrayLike | None = None,
    callback: Callback = silent,
) -> LinearRecovery:
    """Algorithm 1: L1 regression in radial-isotropic position, for rows in general position.

    Parameters
    ----------
    X : (m, d) array
    y : (m,) array
    gamma : float
        Line 2: the rows are brought in gamma-approximate radial-isotropic position.
    position : {"radial_isotropic", "most_effective"}
        Ours, not the paper's, is "most_effective": weights by X alone, with the guarantee of Theorem 2.1 for fixed
        rows, under which more rows act in the least effective direction (see
        :func:`massart.paper.most_effective_position`).
    sample_weight : (m,) array, optional
        A row of weight c counts c times.
    callback : callable

    Returns
    -------
    LinearRecovery
        With the status HEAVY_SUBSPACE where the rows have no such position: Algorithm 2 goes on from there.

    Notes
    -----
    Paper: Algorithm 1. Tests: test_paper_linear::test_algorithm_1_is_its_fifteen_lines, test_paper_linear::test_figure_1a_has_the_rates_of_the_paper
    Paper: Theorem 2.1. Tests: test_paper_linear::test_algorithm_1_recovers_rows_in_general_position

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 5))
    >>> y = X @ [3, 0, -1, 0.5, 2]
    >>> y[:90] = 7
    >>> found = algorithm_1(X, y)
    >>> np.round(found.w, 12) + 0.0, found.status.name
    (array([ 3. ,  0. , -1. ,  0.5,  2. ]), 'DONE')
    """  # noqa: E501 - the line is read by the table of the documentation
    rows, labels, weights = checked(X, y, sample_weight)
    if not rows.any():
        return LinearRecovery(np.zeros(rows.shape[1]), (), LinearStatus.NOT_SPANNING)
    # 2: A such that the A x_i / |A x_i| are in gamma-approximate radial-isotropic position
    piece = radial_isotropy(rows, gamma, sample_weight=weights, callback=callback)
    w, optimal = l1_in_position(rows, labels, piece, position, weights)  # 3, 4
    there = rows.any(axis=1) if weights is None else rows.any(axis=1) & (weights > 0)
    return LinearRecovery(w, (piece,), _status((piece,), len(w), optimal, complete=bool(piece.members[there].all())))


def algorithm_2(
    X: ArrayLike,
    y: ArrayLike,
    gamma: float = 0.5,
    *,
    position: Position = "radial_isotropic",
    sample_weight: ArrayLike | None = None,
    pieces: Sequence[RadialIsotropy] | None = None,
    solve: Callable[[RadialIsotropy, FloatArray], FloatArray] | None = None,
    callback: Callback = silent,
) -> LinearRecovery:
    r"""Algorithm 2, RecoverLinear: Algorithm 1 on heavy subspaces, one after the other.

    Parameters
    ----------
    X, y, gamma, position, sample_weight, callback
        As for :func:`algorithm_1`. At gamma = 1/2 a subspace that holds more than a share k/d of the rows is split off
        only where less than :math:`(1 - k/d)/2` of the rows is outside; with a transform of all rows both are right.
    pieces : sequence of RadialIsotropy, optional
        The decomposition of X, if it is known: it depends on no label.
    solve : callable, optional
        In place of lines 3 to 6 and 8 to 9: ``solve(piece, w)`` returns the part in the subspace of the piece, given w
        on the subspaces before. A search that goes beyond the paper comes in here.

    Notes
    -----
    Line 7, "x in V", is a rank decision: a row lies in V if it is within `tol` of it (:func:`massart.decompose`).
    The transform of a piece is that of Lemma 2.6, with a symmetric A, so that line 6 is right as printed.

    Paper: Algorithm 2. Tests: test_paper_linear::test_algorithm_2_is_its_fifteen_lines, test_paper_linear::test_heavy_subspaces_are_solved_one_after_the_other
    Paper: Theorem 1.2. Tests: test_paper_linear::test_theorem_1_2_for_any_adversary

    Examples
    --------
    Two thirds of the rows lie in a plane, and three of ten labels are negated:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((360, 6))
    >>> X[:240, 2:] = 0
    >>> y = X @ [1, 2, 3, 4, 5, 6]
    >>> y[rng.random(360) < 0.3] *= -1
    >>> found = algorithm_2(X, y, gamma=0.1)
    >>> np.round(found.w, 12) + 0.0, [piece.subspace.shape[1] for piece in found.pieces]
    (array([1., 2., 3., 4., 5., 6.]), [2, 4])
    """  # noqa: E501 - the lines are read by the table of the documentation
    rows, labels, weights = checked(X, y, sample_weight)
    w, optimal = np.zeros(rows.shape[1]), True
    if pieces is None:  # 2, and 12 again on the rows that are left
        pieces = decompose(rows, gamma, sample_weight=weights, callback=callback)
    for piece in pieces:
        if solve is not None:
            w = w + solve(piece, w)
            continue
        residual = labels - rows @ w  # 11
        part, proven = l1_in_position(rows, residual, piece, position, weights)  # 3 to 6, 7 to 9
        w, optimal = w + part, optimal and proven  # 13
    return LinearRecovery(w, tuple(pieces), _status(pieces, len(w), optimal, complete=True))


def l1_in_position(
    X: FloatArray,
    y: FloatArray,
    piece: RadialIsotropy,
    position: Position = "radial_isotropic",
    sample_weight: FloatArray | None = None,
) -> tuple[FloatArray, bool]:
    """Lines 3 and 4 of Algorithm 1 on the rows in V, and whether the L1 regression is proven optimal."""
    V, A, members = piece.subspace, piece.matrix, piece.members
    Z = X[members] @ V @ A
    lengths = np.linalg.norm(Z, axis=1)
    weights = None if sample_weight is None else sample_weight[members]
    if position == "most_effective":
        own = most_effective_position(X[members] @ V, start=piece, sample_weight=weights).weights
        weights = own * lengths if weights is None else weights * own * lengths
    elif position != "radial_isotropic":
        raise ValueError(f'position must be "radial_isotropic" or "most_effective", got {position!r}')
    solution = l1_regression(Z / lengths[:, None], y[members] / lengths, weights)
    return np.asarray(V @ (A @ solution.coef)), solution.status is not L1Status.INEXACT


def checked(
    X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Return rows, one label a row and weights as arrays, or raise a ValueError that names the argument."""
    rows = check_matrix(X)
    labels = check_vector(y, len(rows), "y")
    for array, name in ((rows, "X"), (labels, "y")):
        largest = float(np.abs(array).max())
        if largest and not 1 / SQUARE_IS_FINITE <= largest <= SQUARE_IS_FINITE:
            bounds = "between 1e-152 and 1e152"
            raise ValueError(f"{name} must have its largest number {bounds}, got {largest:g}: write it in other units")
    return rows, labels, check_weights(sample_weight, len(rows))


def _status(pieces: Sequence[RadialIsotropy], d: int, optimal: bool, *, complete: bool) -> LinearStatus:
    spanned = sum(piece.subspace.shape[1] for piece in pieces)
    if any(piece.status is IsotropyStatus.STALLED for piece in pieces):
        return LinearStatus.STALLED
    if not optimal:
        return LinearStatus.INEXACT
    if spanned < d:
        return LinearStatus.NOT_SPANNING if complete else LinearStatus.HEAVY_SUBSPACE
    return LinearStatus.DONE
