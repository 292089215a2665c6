r"""Section 4: gradient descent on the L1 loss of a ReLU, with four transforms of the rows (Figure 2(a)).

For the current w, S holds the rows with :math:`w \cdot x_i \ge 0` and A is a symmetric map. Rows become
:math:`\tilde x_i = A x_i / c_i`, labels :math:`y_i / c_i`, the parameter :math:`w' = A^{-1} w`, and one step of size
:math:`\alpha` is

.. math::
    w \gets w - \alpha \, A \, \nabla_{w'} L' , \qquad
    \nabla_{w'} L' = \frac{1}{|S|} \sum_{i \in S} \mathrm{sgn}(w \cdot x_i - y_i) \, \tilde x_i .

- *Original*: A = I, c = 1, the mean over all rows: descent on the loss itself.
- *Normalized*: A = I, :math:`c_i = |x_i|`, the mean over all rows.
- *Isotropic*: :math:`A^{-2} = \Sigma = \frac{1}{|S|} \sum_S x_i x_i^\top`, c = 1.
- *Radial-isotropic*: A puts S in radial-isotropic position, :math:`c_i = |A x_i|`.

So ``w -= alpha * mean(sgn_i * moves_i)`` with ``moves_i = A A x_i / c_i``, which depends on the set S and on nothing
else: neither labels nor earlier steps enter the transform. With a constant step size a descent ends near the truth.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from massart.isotropy import Status, decompose
from massart.rows import Callback, FloatArray, Progress, check_matrix, check_vector, silent

_SMALLEST_EIGENVALUE = 1e-12  # of Sigma, relative to the largest: below it there are no rows in that direction


class Transformation(Enum):
    """The position in which a gradient is taken; the value says it in words."""

    ORIGINAL = "the rows as they are"
    NORMALIZED = "all rows divided by their length"
    ISOTROPIC = "the active rows with second moment one in every direction"
    RADIAL_ISOTROPIC = "the active rows in radial-isotropic position"


class Scale(Enum):
    """The factor of a radial-isotropic map A on a subspace of dimension k, which is a step size."""

    DETERMINANT = "det A = 1"
    TRACE = "tr A^(-2) = k"


class DescentStatus(Enum):
    """How a descent ended; the value says it in words."""

    COMPLETED = "all steps were taken"
    INACTIVE = "no row is active, so the loss has no slope; the last point is repeated"
    STALLED = "all steps were taken, some of them with a map that had not come within gamma"
    DIVERGED = "a step led to numbers that are not finite; the last point is repeated"


@dataclass(frozen=True, slots=True)
class Descent:
    """The points of a descent.

    Attributes
    ----------
    trajectory : (steps + 1, d) array
        From the start on.
    losses : (steps + 1,) array
        The mean of ``|y - max(0, w.x)|`` over all rows, untransformed, at each point.
    status : DescentStatus
    """

    trajectory: FloatArray
    losses: FloatArray
    status: DescentStatus

    @property
    def w(self) -> FloatArray:
        """The last point."""
        return np.asarray(self.trajectory[-1])

    def distances(self, w: ArrayLike) -> FloatArray:
        """Return the distance of each point from `w`."""
        return np.asarray(np.linalg.norm(self.trajectory - check_vector(w, self.trajectory.shape[1], "w"), axis=1))


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def descend(
    X: ArrayLike,
    y: ArrayLike,
    transformation: Transformation,
    *,
    steps: int = 1000,
    step_size: float | None = None,
    start: ArrayLike | None = None,
    gamma: float = 0.5,
    scale: Scale = Scale.DETERMINANT,
    reading: Literal["sound", "printed"] = "sound",
    callback: Callback = silent,
) -> Descent:
    """Descend on the L1 loss of a ReLU with a constant step size (Section 4).

    Parameters
    ----------
    X : (m, d) array
    y : (m,) array
        Negative labels, which no ReLU has, stay, as in the paper.
    transformation : Transformation
    steps : int
    step_size : float, optional
        alpha; by default the paper's for its mixture in 30 dimensions: 1, and 1/465 for ORIGINAL, whose rows are long.
    start : (d,) array, optional
        w_0; zero by default, as in the paper.
    gamma : float
        For RADIAL_ISOTROPIC.
    scale : Scale
        For RADIAL_ISOTROPIC: the factor of A, which the paper leaves open.
    reading : {"sound", "printed"}
        sgn(0) of a row with w.x = 0 = y, where the printed sgn(0) = 0 loses a row that Lemma 3.1 counts with +1.
    callback : callable
        Called after each step with the loss.

    Notes
    -----
    Where the active rows have a heavy subspace, or do not span, the text is silent; here each piece of their
    decomposition has a map of its own and all pieces take their step together.

    Paper: Section 4 (descent). Tests: test_paper_descent::test_radial_isotropic_descent_is_the_formula_of_section_4, test_paper_descent::test_a_step_follows_the_finite_differences_of_the_loss, test_paper_descent::test_figure_2a_no_radial_isotropic_descent_diverges

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((200, 2))
    >>> y = np.maximum(X @ [1.0, 2.0], 0)
    >>> result = descend(X, y, Transformation.RADIAL_ISOTROPIC, steps=50, step_size=0.1)
    >>> bool(result.distances([1.0, 2.0])[-1] < 0.1)
    True
    """  # noqa: E501 - the line is read by the table of the documentation
    rows = check_matrix(X)
    labels = check_vector(y, len(rows), "y")
    if steps < 0:
        raise ValueError(f"steps must not be negative, got {steps}")
    if step_size is None:
        step_size = 1 / 465 if transformation is Transformation.ORIGINAL else 1.0
    if not 0 < step_size < np.inf:
        raise ValueError(f"step_size must be positive and finite, got {step_size}")
    if reading not in ("sound", "printed"):
        raise ValueError(f'reading must be "sound" or "printed", got {reading!r}')
    trajectory = np.empty((steps + 1, rows.shape[1]))
    trajectory[0] = 0.0 if start is None else check_vector(start, rows.shape[1], "start")
    losses = np.empty(steps + 1)
    nonzero = rows.any(axis=1)
    over_all_rows = transformation in (Transformation.ORIGINAL, Transformation.NORMALIZED)
    S = np.zeros(len(rows), dtype=bool)
    moves = np.empty((0, rows.shape[1]))
    status = DescentStatus.COMPLETED
    for t in range(steps + 1):
        z = rows @ trajectory[t]
        loss = float(np.abs(labels - np.maximum(z, 0)).mean())
        losses[t] = loss if np.isfinite(loss) else np.inf
        if losses[t] == np.inf:
            status, t = DescentStatus.DIVERGED, max(t - 1, 0)
            break
        callback(Progress("gradient descent", t, losses[t], 0.0))
        active = (z >= 0) & nonzero
        if t == steps:
            break
        if not active.any():
            status = DescentStatus.INACTIVE
            break
        if not np.array_equal(active, S):
            S = active
            moves, within_gamma = _moves(rows[S], transformation, gamma, scale)
            status = status if within_gamma else DescentStatus.STALLED
        sign = np.sign(z - labels)
        if reading == "sound":
            sign[(z == 0) & (labels == 0)] = 1  # third equality of Lemma 3.1: f(w.x) = f(w*.x), but w.x > w*.x
        mean = sign[S] @ moves / (len(rows) if over_all_rows else np.count_nonzero(S))
        trajectory[t + 1] = trajectory[t] - step_size * mean
    trajectory[t + 1 :], losses[t + 1 :] = trajectory[t], losses[t]
    return Descent(trajectory, losses, status)


def _moves(rows: FloatArray, transformation: Transformation, gamma: float, scale: Scale) -> tuple[FloatArray, bool]:
    """Return ``A x~`` of each active row, a function of their set alone, and whether A came within gamma."""
    match transformation:
        case Transformation.ORIGINAL:
            return rows, True
        case Transformation.NORMALIZED:
            unit = rows / np.abs(rows).max(axis=1)[:, None]  # whose squares neither overflow nor vanish
            return unit / np.linalg.norm(unit, axis=1)[:, None], True
        case Transformation.ISOTROPIC:
            size = np.abs(rows).max()
            unit = rows / size
            precision = np.linalg.pinv(unit.T @ unit / len(rows), rcond=_SMALLEST_EIGENVALUE, hermitian=True)
            return np.asarray(unit @ precision / size), True
        case Transformation.RADIAL_ISOTROPIC:
            moves, within_gamma = np.zeros_like(rows), True
            for piece in decompose(rows, gamma):
                V, A = piece.subspace, piece.matrix  # A' u is the same for A and for its polar factor
                moves[piece.members] = _factor(A, scale) * piece.transform(rows[piece.members]) @ A @ V.T
                within_gamma &= piece.status is not Status.STALLED
            return moves, within_gamma


def _factor(A: FloatArray, scale: Scale) -> float:
    """Return what a map of determinant 1 is multiplied by."""
    if scale is Scale.DETERMINANT:
        return 1.0
    sizes = np.linalg.svd(A, compute_uv=False)
    return float(np.sqrt(np.mean(sizes**-2.0)))
