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

from massart.isotropy.transform import RadialIsotropy, radial_isotropy
from massart.progress import Callback, silent
from massart.rows import FloatArray, check_matrix, check_weights, precision_of


def decompose(
    X: ArrayLike,
    gamma: float = 0.5,
    *,
    sample_weight: ArrayLike | None = None,
    tol: float | None = None,
    max_iter: int = 500,
    callback: Callback = silent,
) -> list[RadialIsotropy]:
    """Split the span of the rows into orthogonal pieces, each with a transform for the rows that belong to it.

    Parameters
    ----------
    X, gamma, sample_weight, tol, max_iter, callback
        As for :func:`radial_isotropy`.

    Returns
    -------
    list of RadialIsotropy
        In the order of the recursion. ``subspace`` is in the coordinates of X, ``members`` are the rows that
        belong to the piece: later pieces see them projected on their own subspace. Empty when X is zero.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0, 0], [2, 0, 0], [3, 0, 0], [1, 1, 0], [1, 2, 1], [0, 1, 3]])
    >>> [(piece.subspace.shape[1], int(piece.members.sum())) for piece in decompose(X)]
    [(1, 3), (2, 3)]
    """
    matrix = check_matrix(X)
    weights = check_weights(sample_weight, len(matrix))
    tol = precision_of(X) ** (5 / 6) if tol is None else tol
    left = matrix.any(axis=1)
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
            max_iter=max_iter,
            callback=callback,
        )
        members = np.zeros(len(matrix), dtype=bool)
        members[left] = piece.members
        complete = np.linalg.qr(piece.subspace, mode="complete")[0][:, piece.subspace.shape[1] :]
        subspace = piece.subspace if ambient is None else ambient @ piece.subspace
        ambient = complete if ambient is None else ambient @ complete
        left &= ~members
        pieces.append(replace(piece, subspace=subspace, members=members))
    return pieces
