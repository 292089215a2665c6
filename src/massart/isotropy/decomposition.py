r"""The whole recursion of Algorithm 2 on the rows alone: V, then the rest projected on its complement, and so on.

:func:`decompose` splits the span of the rows into orthogonal subspaces :math:`V_1 \oplus V_2 \oplus \dots`. Each
non-zero row belongs to the first j with :math:`x \in V_1 \oplus \dots \oplus V_j`, and the projections on
:math:`V_j` of the rows that belong to j are in gamma-approximate radial-isotropic position. Nothing depends on labels,
so it is computed once for X and used for any number of label vectors.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from massart.isotropy.transform import RadialIsotropy, Status, radial_isotropy
from massart.rows import Callback, FloatArray, check_matrix, check_weights, precision_of, silent, with_safe_exponents


def decompose(
    X: ArrayLike,
    gamma: float = 0.5,
    *,
    sample_weight: ArrayLike | None = None,
    tol: float | None = None,
    callback: Callback = silent,
) -> list[RadialIsotropy]:
    """Split the span of the rows into orthogonal pieces, each with a transform for the rows that belong to it.

    Parameters
    ----------
    X, gamma, sample_weight, tol, callback
        As for :func:`radial_isotropy`.

    Returns
    -------
    list of RadialIsotropy
        In the order of the recursion. ``subspace`` is in the coordinates of X, ``members`` are the rows that
        belong to the piece: later pieces see them projected on their own subspace. Empty when X is zero.

    Notes
    -----
    A piece of dimension k holds at least the share k/r of the rows that earlier pieces left, where they left r
    dimensions: all of these rows, or those in a heavy subspace (Lemma 2.6).

    Paper: Algorithm 2 (the recursion on rows). Tests: test_decomposition::test_every_piece_holds_its_share_of_the_rows_left, test_decomposition::test_pieces_serve_algorithm_2_for_any_labels

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0, 0], [2, 0, 0], [3, 0, 0], [4, 0, 0], [5, 0, 0], [1, 2, 1], [0, 1, 3]])
    >>> [(piece.subspace.shape[1], int(piece.members.sum())) for piece in decompose(X)]
    [(1, 5), (2, 2)]
    """  # noqa: E501 - the table of the documentation reads that line
    matrix = with_safe_exponents(check_matrix(X))
    weights = check_weights(sample_weight, len(matrix))
    tol = precision_of(X) ** (5 / 6) if tol is None else tol
    left = np.asarray(matrix.any(axis=1))
    if weights is not None:
        left &= weights > 0
    ambient: FloatArray | None = None  # orthonormal basis of what is left of R^d; None for all of it
    pieces: list[RadialIsotropy] = []
    while left.any():
        rows = matrix[left] if ambient is None else matrix[left] @ ambient
        piece = radial_isotropy(
            rows,
            gamma,
            sample_weight=None if weights is None else weights[left],
            tol=tol,
            callback=callback,
        )
        members = np.zeros(len(matrix), dtype=bool)
        members[left] = piece.members
        left &= ~members
        subspace = piece.subspace if ambient is None else ambient @ piece.subspace
        status = Status.SUBSPACE if piece.status is Status.WHOLE and ambient is not None else piece.status
        pieces.append(replace(piece, subspace=subspace, members=members, status=status))
        if left.any():
            complement = np.linalg.qr(piece.subspace, mode="complete")[0][:, piece.subspace.shape[1] :]
            ambient = _span(matrix[left], complement if ambient is None else ambient @ complement, tol)
    return pieces


def _span(X: FloatArray, basis: FloatArray, tol: float, *, plain: float = 1e-3) -> FloatArray:
    """Return a basis of the span of the projections of the rows on the columns of `basis`.

    It is `basis` itself where that does, since it keeps zeros of the table; else the principal axes of the
    projections: in other axes a coordinate may be small by cancellation, and bringing it to size one would magnify
    rounding. Where columns differ by more than float64 resolves, the axes would lose rows: then `basis` stays, too.

    Parameters
    ----------
    X, basis, tol
    plain : float
        Smallest ratio of singular values at which coordinates are kept as they are.
    """
    projected = X @ basis
    _, sizes, axes = np.linalg.svd(projected / np.linalg.norm(X, axis=1)[:, None])
    if len(sizes) == len(axes) and sizes[-1] > plain * sizes[0]:
        return basis
    axes = axes[: int((sizes > tol * np.sqrt(len(X))).sum())]
    lost = np.linalg.norm(projected @ axes.T, axis=1) < 0.5 * np.linalg.norm(projected, axis=1)
    return basis if lost.any() else np.asarray(basis @ axes.T)
