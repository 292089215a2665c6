r"""The two concept classes of the paper: the functions that label a row before anybody corrupts it.

.. math::

    f_w(x) = w \cdot x \qquad\text{and}\qquad f_w(x) = \mathrm{ReLU}(w \cdot x) = \max(0, w \cdot x).

A concept is a plain function ``concept(X, w)``, so ``clean = relu(X, w)`` makes clean labels and
``decoy(other, relu)`` is an adversary that answers with another member of the same class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from massart.noise.arguments import check_vector
from massart.rows import FloatArray, check_matrix

Concept: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]
"""A labelling ``concept(X, w)``: rows (n, d) and a parameter (d,) to labels (n,)."""


def linear(X: ArrayLike, w: ArrayLike) -> FloatArray:
    r"""Return the labels :math:`w \cdot x` of the rows of `X` (Theorem 1.2).

    Parameters
    ----------
    X : array_like, shape (n, d)
    w : array_like, shape (d,)
    """
    rows, parameter = check_matrix(X), check_vector(w, "w")
    if parameter.shape[0] != rows.shape[1]:
        raise ValueError(f"w has {parameter.shape[0]} entries but X has {rows.shape[1]} columns")
    return np.asarray(rows @ parameter, dtype=np.float64)


def relu(X: ArrayLike, w: ArrayLike) -> FloatArray:
    r"""Return the labels :math:`\max(0, w \cdot x)` of the rows of `X` (Theorem 1.3); parameters as in `linear`."""
    return np.maximum(linear(X, w), 0.0)
