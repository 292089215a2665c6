"""How far rows lie from the bulk of the rows: the distances of a diagnostic plot."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from massart.rows import FloatArray

MOST_ROWS = 5_000
"""Rows that tell where the bulk is; the others are measured from there."""

_RANK = 1e-10  # of singular values, relative to the largest
_FEWEST = 2  # rows for each column, below which half of them have no spread of their own


def robust_distances(X: Any) -> tuple[FloatArray | None, int]:
    """Return Mahalanobis distances from the minimum covariance determinant's centre, and the rank they are in.

    Columns are brought to size one and to coordinates of their span first. Where half of the rows lie in a subspace,
    as rows of categories do, the determinant tells nothing, and the covariance of all rows takes its place. None where
    the rows are too few, or do not differ.
    """
    from sklearn.covariance import MinCovDet  # which brings a good part of scikit-learn along

    rows = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    spread = rows.std(axis=0)
    varying = spread > _RANK * np.abs(rows).max(axis=0, initial=0.0)
    if not varying.any():
        return None, 0
    centred = (rows - rows.mean(axis=0))[:, varying] / spread[varying]
    some = centred[_spaced(len(centred), MOST_ROWS)]
    _, sizes, axes = np.linalg.svd(some, full_matrices=False)
    rank = int((sizes > _RANK * sizes[0]).sum())
    if len(some) <= _FEWEST * rank:
        return None, rank
    Z = centred @ (axes[:rank].T / sizes[:rank]) * np.sqrt(len(some))
    bulk = MinCovDet(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of singular subsets, which are looked for here
        try:
            bulk.fit(Z[_spaced(len(Z), MOST_ROWS)])
        except ValueError:  # half of the rows are the same
            return np.linalg.norm(Z, axis=1), rank
    if np.linalg.matrix_rank(bulk.covariance_, hermitian=True, tol=_RANK) < rank:
        return np.linalg.norm(Z, axis=1), rank
    return np.sqrt(bulk.mahalanobis(Z)), rank


def _spaced(n: int, most: int) -> slice:
    return slice(None, None, -(-n // most))
