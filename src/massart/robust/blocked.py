"""Noisy rows of a table that need not be in memory: the efficient steps on all of them, from the fit of a sample.

A high-breakdown start takes a sample; to be efficient takes all rows. Each re-weighted least-squares step is two reads
of the table: residuals, a number a row, and the weighted normal equations, a sum over blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from massart.progress import Callback, silent
from massart.robust.biweight import TUNING, weight
from massart.robust.mm_estimator import Status, half_of
from massart.robust.modes import separate
from massart.robust.position import place
from massart.robust.refinement import MOST_STEPS, Estimate, m_and_d_steps
from massart.robust.regression import CUTOFF, RobustFit
from massart.robust.uncertainty import uncertainty_of
from massart.rows import ArrayValues, Block, FloatArray, Rows, is_elsewhere, like, namespace_of, to_numpy

AT_REST = 1e-7
"""`tol` of :func:`massart.robust.robust_regression`."""


def refine_on_table(rows: Rows, X: FloatArray, start: RobustFit, *, callback: Callback = silent) -> RobustFit:
    """Take a robust fit of a sample to the rows of a whole table: its M-steps, scale and errors are those of all rows.

    Parameters
    ----------
    rows : Rows
        With one label each, and with their weights, if they have any.
    X : (m, d) array
        The sample: it gives the coordinates in which the steps are well conditioned.
    start : RobustFit
        Its fit, of a scale that is not 0 and without a ridge.
    """
    if not start.scale > 0.0 or start.ridge:
        raise ValueError(f"start must have a positive scale and no ridge, got {start.scale} and {start.ridge}")
    position = place(X, callback)
    weights = np.ones(rows.n_rows) if rows.weights is None else rows.weights.to_numpy()
    present = int(np.count_nonzero(weights))
    counts = weights * (present / weights.sum())
    y = rows.map(_label).to_numpy()
    placed = TablePlaced(rows, position.back, y, counts / present)
    first = Estimate(position.to_coordinates(start.coef), start.scale)
    modes = None
    if start.separated:
        width = float(np.ptp(placed.residuals(first.coef[None])))
        modes = separate(
            placed, first.coef, first.scale, width=width, least=0.0, ridge=0.0, max_iter=MOST_STEPS, tol=AT_REST
        )
        found = Estimate(modes.coef, modes.scale, 0.0, modes.n_iter, modes.converged)
    else:
        half = half_of(present, position.rank)
        found = m_and_d_steps(placed, first, half, tol=AT_REST, callback=callback)
    residuals = placed.residuals(found.coef[None])[0]
    covariance, errors = uncertainty_of(position.back, placed, found, modes)
    return RobustFit(
        coef=position.back @ found.coef,
        scale=found.scale,
        weights=weight(residuals / found.scale, TUNING) if modes is None else modes.trust,
        inliers=np.abs(residuals) <= CUTOFF * found.scale,
        covariance=covariance,
        standard_errors=errors,
        ridge=0.0,
        rank=position.rank,
        n_iter=found.n_iter,
        status=Status.CONVERGED if found.converged else Status.ITERATION_LIMIT,
        separated=start.separated,
    )


@dataclass(frozen=True, slots=True)
class TablePlaced:
    """Rows of a table in position, as :class:`massart.robust.refinement.Placed`: a row x has the coordinates M'x."""

    rows: Rows
    back: FloatArray  # M, (d, r)
    y: FloatArray
    shares: FloatArray

    def residuals(self, C: FloatArray) -> FloatArray:
        """Return the residuals of every row of coefficients `C`, shape (b, n)."""
        return np.asarray(self.y - self.rows.map(_Times(self.back @ C.T)).to_numpy().T)

    def fitted(self, coef: FloatArray) -> FloatArray:
        """Return the fit of each row."""
        return np.asarray(self.rows.map(_Times(self.back @ coef[:, None])).to_numpy()[:, 0])

    def normal_equations(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the matrix and the right side of weighted least squares."""
        total = self.rows.reduce(_NormalEquations(self.back), ArrayValues(np.stack([weights, weights * self.y], 1)))
        return total[:, :-1], total[:, -1]

    def quadratic(self, form: FloatArray) -> FloatArray:
        """Return the value of a quadratic form, a symmetric matrix, at each row."""
        return self.rows.map(_Quadratic(self.back, form)).to_numpy()


def _label(block: Block) -> Any:
    return block.y[:, 0]


@dataclass(frozen=True, slots=True)
class _Times:
    W: FloatArray

    def __call__(self, block: Block) -> Any:
        return block.times(self.W)


@dataclass(frozen=True, slots=True)
class _NormalEquations:
    """The sum of q z z', and beside it that of q y z: the values of a row are q and q y."""

    back: FloatArray

    def __call__(self, block: Block, values: Any) -> FloatArray:
        Z = block.times(self.back)
        values = like(values, Z) if is_elsewhere(Z) and not is_elsewhere(values) else values
        return to_numpy(namespace_of(Z).concat([Z.T @ (Z * values[:, :1]), Z.T @ values[:, 1:]], axis=1))


@dataclass(frozen=True, slots=True)
class _Quadratic:
    back: FloatArray
    form: FloatArray

    def __call__(self, block: Block) -> Any:
        Z = block.times(self.back)
        return namespace_of(Z).sum((Z @ like(self.form, Z)) * Z, axis=1)
