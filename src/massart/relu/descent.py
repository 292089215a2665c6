r"""Gradient descent on the L1 loss of a ReLU, in four positions of the rows (Section 4, Figure 2(a)).

For the current w let S be its active rows and A a symmetric map. With rows :math:`\tilde x_i = A x_i / c_i`, labels
:math:`y_i / c_i` and :math:`w' = A^{-1} w`, one step of size alpha is

.. math::
    w \gets w - \alpha \, A \, \nabla_{w'} L' , \qquad
    L'(w') = \frac{1}{|S|} \sum_{i \in S} \left| \frac{y_i - f(w \cdot x_i)}{c_i} \right| ,

that is, :math:`w \gets w - \alpha A^2 g` with :math:`g = \frac{1}{|S|} \sum_S s_i f'(w \cdot x_i) x_i / c_i` and the
sides s of :mod:`massart.relu.separation`. Only :math:`A^2` is needed, so any A will do: its polar factor is symmetric
and has the same :math:`A^\top A`.

- *Original*: A = I, c = 1: descent on the loss itself, the mean over all rows.
- *Normalized*: A = I, :math:`c_i = |x_i|`, the mean over all rows.
- *Isotropic*: :math:`A^{-2} = \Sigma = \frac{1}{|S|} \sum_S x_i x_i^\top`, c = 1.
- *Radial-isotropic*: A puts S in radial-isotropic position, :math:`c_i = |A x_i|`. Where S has a heavy subspace, or
  does not span, each level of its decomposition has a map of its own and all take their step together.

Radial isotropy determines A up to a factor, which the paper leaves open and which the step is proportional to:
:class:`Scale` names three choices. Descent with a constant step ends near the truth, not at it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import ArrayLike

from massart.link import RELU, Link
from massart.progress import Callback, Progress, silent
from massart.relu.separation import Position, check_vector, sides
from massart.rows import BoolArray, FloatArray, check_matrix

STEP_SIZE = 1.0
ORIGINAL_STEP_SIZE = 1 / 465
"""The paper's step sizes for its mixture in 30 dimensions: the second for rows as they are, which are long."""

_NO_DIRECTION = 1e-12  # relative size of an eigenvalue of Sigma below which there are no rows


class Transformation(Enum):
    """The position in which a gradient is taken; the value says it in words."""

    ORIGINAL = "the rows as they are"
    NORMALIZED = "all rows divided by their length"
    ISOTROPIC = "the active rows with second moment one in every direction"
    RADIAL_ISOTROPIC = "the active rows in radial-isotropic position"


class Scale(Enum):
    """The factor of a radial-isotropic map A, by a property of Sigma = A^(-2) on each level of dimension k."""

    DETERMINANT = "det Sigma = 1"
    TRACE = "tr Sigma = k"
    LARGEST = "the largest eigenvalue of Sigma is 1"


class Status(Enum):
    """How a descent ended; the value says it in words."""

    COMPLETED = "all steps were taken"
    INACTIVE = "no row is active, so the loss has no slope; the last point is repeated"


@dataclass(frozen=True, slots=True)
class Descent:
    """The points of a descent.

    Attributes
    ----------
    trajectory : (steps + 1, d) array
        From the start on.
    losses : (steps + 1,) array
        The mean of ``|y - f(w.x)|`` over all rows, untransformed, at each point.
    n_isotropy : int
        Iterations towards radial isotropy.
    status : Status
    """

    trajectory: FloatArray
    losses: FloatArray
    n_isotropy: int
    status: Status

    @property
    def coef(self) -> FloatArray:
        """The last point."""
        return np.asarray(self.trajectory[-1])

    def distances(self, w: ArrayLike) -> FloatArray:
        """Return how far each point is from `w`."""
        target = check_vector(w, self.trajectory.shape[1], "w")
        return np.asarray(np.linalg.norm(self.trajectory - target, axis=1))


def descend(
    X: ArrayLike,
    y: ArrayLike,
    transformation: Transformation,
    *,
    steps: int = 1000,
    step_size: float | None = None,
    start: ArrayLike | None = None,
    scale: Scale = Scale.DETERMINANT,
    gamma: float = 0.5,
    link: Link = RELU,
    callback: Callback = silent,
) -> Descent:
    """Descend on the L1 loss with a constant step size.

    Parameters
    ----------
    X : (n, d) array
    y : (n,) array
        Impossible labels stay, as in the paper.
    transformation : Transformation
    steps : int
    step_size : float, optional
        alpha; by default the paper's.
    start : (d,) array, optional
        Zero by default, as in the paper.
    scale : Scale
        For RADIAL_ISOTROPIC.
    gamma : float
        For RADIAL_ISOTROPIC; a small one makes A unique.
    link : Link
    callback : callable
        Called after each step with the loss.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((200, 2))
    >>> y = np.maximum(X @ [1.0, 2.0], 0)
    >>> found = descend(X, y, Transformation.RADIAL_ISOTROPIC, steps=50, step_size=0.1)
    >>> bool(found.distances([1.0, 2.0])[-1] < 0.1)
    True
    """
    rows = check_matrix(X)
    labels = check_vector(y, len(rows), "y")
    if steps < 0:
        raise ValueError(f"steps must not be negative, got {steps}")
    if step_size is None:
        step_size = ORIGINAL_STEP_SIZE if transformation is Transformation.ORIGINAL else STEP_SIZE
    if not 0 < step_size < np.inf:
        raise ValueError(f"step_size must be positive and finite, got {step_size}")
    gradients = _Gradients(rows, labels, transformation, scale, gamma, link)
    trajectory = np.empty((steps + 1, rows.shape[1]))
    trajectory[0] = 0.0 if start is None else check_vector(start, rows.shape[1], "start")
    losses = np.empty(steps + 1)
    status = Status.COMPLETED
    for t in range(steps + 1):
        losses[t] = gradients.loss(trajectory[t])
        callback(Progress("gradient descent", t, losses[t], 0.0))
        if t == steps:
            break
        direction = gradients.direction(trajectory[t])
        if direction is None:
            trajectory[t + 1 :], losses[t + 1 :] = trajectory[t], losses[t]
            status = Status.INACTIVE
            break
        trajectory[t + 1] = trajectory[t] - step_size * direction
    return Descent(trajectory, losses, gradients.n_isotropy, status)


class _Gradients:
    """Directions ``A grad L'`` of one table in one position."""

    def __init__(
        self, X: FloatArray, y: FloatArray, transformation: Transformation, scale: Scale, gamma: float, link: Link
    ) -> None:
        self._X, self._y = X, y
        self._link = link
        self._transformation = transformation
        self._scale = scale
        self._lengths = np.linalg.norm(X, axis=1)
        self._position = Position(X, gamma)
        self._sizes = np.abs(X)

    @property
    def n_isotropy(self) -> int:
        """Iterations towards radial isotropy so far."""
        return self._position.n_iter

    def loss(self, w: FloatArray) -> float:
        """Return the mean of ``|y - f(w.x)|`` over all rows."""
        return float(np.abs(self._y - self._link(self._X @ w)).mean())

    def direction(self, w: FloatArray) -> FloatArray | None:
        """Return A times the gradient of L' at w; None where no row is active."""
        z = self._X @ w
        told = sides(z, self._y, self._sizes @ np.abs(w), link=self._link)
        active = told.active & (self._lengths > 0)
        if not active.any():
            return None
        pull = told.sign * self._link.derivative(z)
        match self._transformation:
            case Transformation.ORIGINAL:
                return np.asarray(pull[active] @ self._X[active] / len(z))
            case Transformation.NORMALIZED:
                return np.asarray((pull[active] / self._lengths[active]) @ self._X[active] / len(z))
            case Transformation.ISOTROPIC:
                return self._isotropic(active, pull)
            case Transformation.RADIAL_ISOTROPIC:
                return self._radial_isotropic(active, pull)

    def _isotropic(self, active: BoolArray, pull: FloatArray) -> FloatArray:
        """Return the pseudo-inverse of Sigma times g."""
        rows = self._X[active]
        return np.asarray(np.linalg.pinv(rows.T @ rows, rcond=_NO_DIRECTION, hermitian=True) @ (pull[active] @ rows))

    def _radial_isotropic(self, active: BoolArray, pull: FloatArray) -> FloatArray:
        """Return the sum over the levels of c V A'A V' g, c being the factor of A."""
        direction = np.zeros(self._X.shape[1])
        for piece in self._position.pieces(active):
            members, V, A = piece.members, piece.subspace, piece.matrix
            g = (pull[members] / self._position.lengths(piece)) @ (self._X[members] @ V)
            direction += self._factor(A) * (V @ (A.T @ (A @ g)))
        return direction / np.count_nonzero(active)

    def _factor(self, A: FloatArray) -> float:
        """Return what a map of determinant 1 is multiplied by."""
        deviations = 1 / np.linalg.svd(A, compute_uv=False)  # square roots of the eigenvalues of Sigma
        match self._scale:
            case Scale.DETERMINANT:
                return 1.0
            case Scale.TRACE:
                return float(np.sqrt(np.mean(deviations**2)))
            case Scale.LARGEST:
                return float(deviations.max())
