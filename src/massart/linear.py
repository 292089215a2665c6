r"""Linear recovery: Algorithms 1 and 2, and the search beyond them.

Given rows with labels of which more than half satisfy :math:`y = w^* \cdot x`, find :math:`w^*` exactly. On each piece
of the decomposition of the rows (:func:`massart.isotropy.decompose`), in its radial-isotropic position, the L1 answer

.. math::
    \hat w = \arg\min_w \sum_i \left| \frac{y_i}{|A x_i|} - w \cdot \frac{A x_i}{|A x_i|} \right| ,
    \qquad w = A^\top \hat w,

is the truth where the structural condition holds (Lemma 2.3); the next piece sees the labels less what is explained.
Algorithm 1 is the case of one piece. Where few rows agree, :mod:`massart.search` proposes more. Any answer is polished
by least squares on the rows that agree with it, and then counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from massart.agreement import Agreement
from massart.certificate import StructuralMargin, structural_margin
from massart.isotropy import RadialIsotropy, decompose
from massart.link import IDENTITY
from massart.progress import Callback, silent
from massart.recover import ArrayRecovery, Options, propose, recover_arrays
from massart.rows import BoolArray, FloatArray, Sample

_DEFAULT_SEED = 0


def recover_linear(
    X: ArrayLike,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    tolerance: float | Literal["auto"] = "auto",
    search: bool = True,
    gamma: float = 0.5,
    margin: bool = False,
    rng: np.random.Generator | None = None,
    callback: Callback = silent,
) -> ArrayRecovery:
    """Recover w with y = w.x on more than half of the rows, which are all in memory.

    Parameters
    ----------
    X : (n, d) array
    y : (n,) array
    sample_weight : (n,) array, optional
        A row of weight c counts c times.
    tolerance : "auto" or float
        See :func:`massart.agreement.levels`.
    search : bool
        False for Algorithm 2 and nothing else.
    gamma : float
        Of the radial-isotropic transforms.
    margin : bool
        Put the margin of the structural condition (Lemma 2.3) in the certificate, for the rows that agree and the
        others in the position that L1 regression saw. It takes longer than the recovery.
    rng : numpy.random.Generator, optional
        For the search and the certificate; a fixed one by default.
    callback : callable

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 5))
    >>> y = X @ [3, 0, -1, 0.5, 2]
    >>> y[:60] = rng.standard_normal(60)
    >>> found = recover_linear(X, y)
    >>> np.round(found.coef, 12) + 0.0
    array([ 3. ,  0. , -1. ,  0.5,  2. ])
    >>> found.certificate.verdict.name
    'PROVEN'
    """
    pieces: list[RadialIsotropy] = []

    def solve(sample: Sample, levels: Sequence[Agreement], options: Options) -> tuple[FloatArray, Agreement]:
        pieces.extend(decompose(sample.X, gamma, sample_weight=sample.weights, callback=callback))
        found = propose(sample, levels, IDENTITY, options, pieces)
        return found.coef, found.agreement

    rng = np.random.default_rng(_DEFAULT_SEED) if rng is None else rng
    options = Options(rng, None if search else 0, callback)
    found = recover_arrays(X, y, sample_weight, tolerance, IDENTITY, options, solve)
    if margin and found.agree.any():
        known = _margin(np.asarray(X, dtype=np.float64), found.agree, pieces[0], rng)
        found = replace(found, certificate=replace(found.certificate, margin=known))
    return found


def _margin(X: FloatArray, agree: BoolArray, first: RadialIsotropy, rng: np.random.Generator) -> StructuralMargin:
    """Return the margin of the first piece: that of Algorithm 1, or of the first step of Algorithm 2."""
    Z = X[first.members] @ first.subspace @ first.matrix.T
    Z /= np.linalg.norm(Z, axis=1)[:, None]
    fitted = agree[first.members]
    return structural_margin(Z[fitted] if fitted.any() else np.zeros((1, Z.shape[1])), Z[~fitted], rng=rng)
