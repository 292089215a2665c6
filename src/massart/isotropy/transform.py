r"""The radial-isotropic transform of a point set, or of its heavy subspace (Definition 1.4, Lemmas 2.2, 2.5, 2.6).

Given rows :math:`x_1, \dots, x_n`, find a subspace V of dimension k that holds at least a share k/d of the non-zero
rows, and a map A on V such that :math:`u_i = A V^\top x_i / |A V^\top x_i|` satisfies

.. math::
    \Psi = \frac{k}{n_V} \sum_{x_i \in V} u_i u_i^\top \succeq (1 - \gamma) I ,

with V = R^d where that is possible. This is GeneralizedForster of Diakonikolas, Kane and Tzamos (2021), and Tyler's
M-estimator of scatter with :math:`\Sigma^{-1} = A^2`. A itself is computed, never its square: forming :math:`\Sigma`
would square the condition number. Any map T with :math:`T^\top T = \Sigma^{-1}` puts the rows in that position; A is
the symmetric positive definite one.

**The search.** Whiten the rows; iterate towards the minimizer of a convex function (:mod:`massart.isotropy.descent`);
if the iterates show that a heavy subspace stands in the way (:mod:`massart.isotropy.subspaces`), start again with the
rows in it; recompute Psi from the rows under the map that is returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lapack

from massart.isotropy.descent import Iterate, fixed_point, geodesic_descent, radial_moments
from massart.isotropy.subspaces import Frame, HeavySearch, triangular_factor
from massart.rows import (
    EPS,
    BoolArray,
    Callback,
    FloatArray,
    Progress,
    check_matrix,
    check_weights,
    precision_of,
    scaled,
    silent,
)

_Method = Callable[[FloatArray, FloatArray, FloatArray | None], Iterator[Iterate]]


class Status(Enum):
    """How a search for a transform ended; the value says it in words."""

    WHOLE = "all non-zero rows are in gamma-approximate radial-isotropic position"
    SUBSPACE = "the rows of a heavy subspace are in gamma-approximate radial-isotropic position"
    STALLED = "the iteration ended above gamma; the residual says how far it came"


@dataclass(frozen=True, slots=True)
class RadialIsotropy:
    """A subspace, a map on it, and how well the map does, recomputed from the rows.

    Attributes
    ----------
    subspace : (d, k) array
        V, orthonormal; k = d when the whole set has a transform. It is the identity then, unless A is so
        ill-conditioned that its entries, rounded, would not hold it: then V turns to the axes of A.
    matrix : (k, k) array
        A, acting on V-coordinates: symmetric, positive definite, with determinant 1. Rows become
        ``X @ subspace @ matrix``, and a solution w for these is ``subspace @ matrix @ w`` for X.
    members : (n,) boolean array
        The rows in V that are not zero (nor of weight zero).
    residual : float
        1 - lambda_min(Psi), recomputed from X: at most gamma unless the status is STALLED. It is that of the product
        ``X @ subspace @ matrix`` in float64: where A is so ill-conditioned that this product is rounding in some
        directions (from about 1e8 on), another order of summation gives another Psi.
    error : float
        The two-sided error, the spectral norm of Psi - I, recomputed from X.
    n_iter : int
    status : Status

    Notes
    -----
    Paper: Definition 1.4. Tests: test_isotropy::test_residual_and_error_are_those_of_the_rows, test_isotropy::test_transform_gives_unit_rows_and_zero_for_zero
    """  # noqa: E501 - the table of the documentation reads that line

    subspace: FloatArray
    matrix: FloatArray
    members: BoolArray
    residual: float
    error: float
    n_iter: int
    status: Status

    def transform(self, X: ArrayLike) -> FloatArray:
        """Return the unit vectors along A V' x, a row each; zero where A V' x = 0."""
        rows = check_matrix(X)
        if rows.shape[1] != len(self.subspace):
            raise ValueError(f"X has {rows.shape[1]} columns but the transform has {len(self.subspace)}")
        # Powers of two keep squares finite and change no direction.
        images: FloatArray = scaled(rows, 1)[0] @ self.subspace @ self.matrix
        lengths = np.linalg.norm(images, axis=1)[:, None]
        np.divide(images, lengths, out=images, where=lengths > 0)
        return images


def radial_isotropy(
    X: ArrayLike,
    gamma: float = 0.5,
    *,
    sample_weight: ArrayLike | None = None,
    tol: float | None = None,
    max_iter: int = 500,
    callback: Callback = silent,
) -> RadialIsotropy:
    """Put the rows of `X`, or those of a heavy subspace, in gamma-approximate radial-isotropic position.

    Parameters
    ----------
    X : (n, d) array
    gamma : float in (0, 1)
        Psi shall be at least 1 - gamma in every direction. The paper's algorithms use 1/2.
    sample_weight : (n,) array, optional
        Weights of the rows in Psi and in the shares that make a subspace heavy.
    tol : float, optional
        Largest distance at which a unit row counts as lying in a subspace: a rank decision. By default the 5/6th
        power of the precision of X: 1e-13 for float64 and integers, 2e-6 for float32.
    max_iter : int
        Steps for each subspace that is tried.
    callback : callable
        Called with a :class:`~massart.rows.progress.Progress` after each step.

    Returns
    -------
    RadialIsotropy
        With the status WHOLE, SUBSPACE or STALLED.

    Notes
    -----
    A subspace is returned only where it is heavy, k/d of the rows or more, counted on the rows. A set with a heavy
    subspace may still have a transform for a large gamma; then the whole set is returned. At exactly k/d either
    answer is right.

    Paper: Lemma 2.2. Tests: test_isotropy::test_the_matrix_is_symmetric_and_positive_definite, test_isotropy::test_algorithm_1_as_printed_recovers_from_skewed_tables
    Paper: Appendix A. Tests: test_isotropy::test_the_matrix_is_that_of_appendix_a, test_isotropy::test_the_condition_number_is_below_the_bound_of_appendix_a
    Paper: Lemma 2.5. Tests: test_isotropy::test_every_flat_in_small_dimension, test_isotropy::test_any_small_integer_table_gets_the_right_answer

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((200, 3)) * [1, 10, 1000]
    >>> iso = radial_isotropy(X, gamma=1e-8)
    >>> U = iso.transform(X)
    >>> bool(np.allclose(U.T @ U * 3 / 200, np.eye(3), atol=1e-7))
    True
    """  # noqa: E501 - the table of the documentation reads these lines
    tol = precision_of(X) ** (5 / 6) if tol is None else tol
    return _Descent(gamma, tol, max_iter, callback, two_sided=False).transform(check_matrix(X), sample_weight)


def generalized_forster(
    X: ArrayLike,
    delta: float = 1e-6,
    *,
    sample_weight: ArrayLike | None = None,
    tol: float | None = None,
    max_iter: int = 500,
    callback: Callback = silent,
) -> RadialIsotropy:
    """Put the rows of `X`, or those of a heavy subspace, in radial-isotropic position within `delta` on both sides.

    Parameters
    ----------
    X : (n, d) array
    delta : float in (0, 1)
        Largest spectral norm of Psi - I on the subspace. The smaller it is, the fewer heavy subspaces are passed over
        because a rough transform of all rows exists.
    sample_weight, tol, max_iter, callback
        As for :func:`radial_isotropy`.

    Returns
    -------
    RadialIsotropy
        With ``error`` at most `delta` unless the status is STALLED.

    Notes
    -----
    This is GeneralizedForster of Diakonikolas, Kane and Tzamos (2021, Theorem 1.4). :func:`radial_isotropy` bounds Psi
    from below only, which is all that Algorithms 1 to 3 need; the trace of Psi is k, so that ``gamma`` there bounds
    this error by ``(k - 1) gamma``.

    Paper: Lemma 2.6. Tests: test_isotropy::test_generalized_forster_bounds_both_sides_on_a_heavy_subspace, test_isotropy::test_planted_families_get_verified_right_answers

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((90, 3))
    >>> X[:70, 2] = 0
    >>> found = generalized_forster(X, delta=1e-9)
    >>> found.subspace.shape, int(found.members.sum()), found.error <= 1e-9
    ((3, 2), 70, True)
    """  # noqa: E501 - the table of the documentation reads that line
    tol = precision_of(X) ** (5 / 6) if tol is None else tol
    return _Descent(delta, tol, max_iter, callback, two_sided=True).transform(check_matrix(X), sample_weight)


@dataclass(frozen=True, slots=True)
class _Start:
    """Where a descent starts: ``T = whitening @ relative``, of which the second factor shows what has diverged."""

    frame: Frame
    whitening: FloatArray
    relative: FloatArray

    def turned(self, T: FloatArray, *, representable: float = 1e5) -> _Start:
        """Return the same start in the axes of `T`, if rounding costs less there.

        Parameters
        ----------
        T : (d, k) array
        representable : float
            Condition number up to which rounding the entries of a map costs less than 1e-10.
        """
        if self.frame.condition(T) <= representable:
            return self
        frame, axes = self.frame.turned(T)
        if frame.condition(axes.T @ T) > representable:
            return self
        return replace(self, frame=frame, whitening=axes.T @ self.whitening)


@dataclass(slots=True)
class _Descent:
    """The options of one call, the numbers that were tried on benchmarks/bench_isotropy.py, and the work done so far.

    Attributes
    ----------
    gamma, tol, max_iter, callback, two_sided
        What the map shall reach, and as for :func:`radial_isotropy`.
    large_gamma, fixed_point_steps : float, int
        From this gamma on the fixed point gets there in a few steps, and how many (families of heavy subspaces).
    safe_gram : float
        Smallest ratio of eigenvalues of a Gram matrix that still decides a rank.
    most_turns : int
        Times that a frame is turned to the axes of its map (condition 1e12: three quarters of the passes).
    rounding : float
        Epsilons by which the eigenvalues of Psi may differ when they are computed again (test_decomposition, small
        integers).
    n_iter : int
        Steps so far.
    """

    gamma: float
    tol: float
    max_iter: int
    callback: Callback
    two_sided: bool
    large_gamma: float = 0.1
    fixed_point_steps: int = 15
    safe_gram: float = 1e-10
    most_turns: int = 3
    rounding: float = 64.0
    n_iter: int = 0

    def __post_init__(self) -> None:
        """Raise ValueError for an option that makes no sense, naming it."""
        if not 0 < self.gamma < 1:
            raise ValueError(f"{'delta' if self.two_sided else 'gamma'} must be between 0 and 1, got {self.gamma}")
        if self.max_iter < 1:
            raise ValueError(f"max_iter must be at least 1, got {self.max_iter}")
        if not 0 < self.tol < 1:
            raise ValueError(f"tol must be between 0 and 1, got {self.tol}")

    def transform(self, X: FloatArray, sample_weight: ArrayLike | None) -> RadialIsotropy:
        """Shrink the frame of all rows to heavy subspaces until its rows have a map (Lemma 2.6)."""
        frame = Frame.of(X, check_weights(sample_weight, len(X)))
        if not len(frame.C):
            raise ValueError("X has no non-zero row of positive weight")
        while True:
            start = self._whitened(frame)
            outcome = start if isinstance(start, Frame) else self._descend(start)
            if not isinstance(outcome, Frame):
                return self._result(*outcome)
            frame = outcome

    def _whitened(self, frame: Frame) -> _Start | Frame:
        """Whiten the unit rows; return a smaller frame where they do not span this one or a coordinate is light."""
        light = frame.light_coordinates(self.gamma)
        if light.any():
            return frame.without_coordinates(light)
        equilibrated = frame.equilibrated()
        eigenvalues, axes = np.linalg.eigh(radial_moments(frame.C, equilibrated, frame.weights)[0])
        if eigenvalues[0] > self.safe_gram * eigenvalues[-1]:
            # The symmetric root stays nearest to the caller's coordinates.
            whitening = equilibrated @ (axes / np.sqrt(eigenvalues)) @ axes.T
        else:
            _, sizes, axes = np.linalg.svd(triangular_factor(frame.C, equilibrated))
            rank = int((sizes > self.tol * sizes[0]).sum())
            if not rank:  # products of numbers more than a hundred orders of magnitude apart are lost
                raise ValueError("the columns of X are too far apart to be balanced: write them in other units")
            if rank < len(axes):
                basis = np.linalg.solve(equilibrated.T, axes[:rank].T)
                return frame.restricted(basis, np.ones(len(frame.C), dtype=bool))
            whitening = equilibrated @ axes.T / sizes
        return _Start(frame, whitening, np.eye(len(whitening))).turned(whitening)

    def _descend(self, start: _Start) -> Frame | tuple[Frame, Iterate]:
        """Iterate from `start` to a map that reaches gamma, or to the frame of a heavy subspace."""
        if not self.two_sided and self.gamma >= self.large_gamma:
            reached = self._run(fixed_point, start, min(self.max_iter, self.fixed_point_steps))
            if isinstance(reached, Frame):
                return reached
            if self._measure(reached) <= self._goal:
                return start.frame, reached
            start = replace(start, relative=reached.relative)
        for _ in range(self.most_turns):
            # A turned frame rounds anew: descent recomputes Psi from the rows.
            reached = self._run(geodesic_descent, start, self.max_iter)
            if isinstance(reached, Frame):
                return reached
            answer = start.frame, reached
            turned = replace(start, relative=reached.relative).turned(reached.T)
            if turned.frame is start.frame:
                break
            start = turned
        return answer

    def _run(self, method: _Method, start: _Start, most: int) -> Frame | Iterate:
        """Follow one method until gamma is reached, for `most` steps at most.

        Return the best iterate, or the frame of a heavy subspace.
        """
        frame = start.frame
        search = HeavySearch(frame, start.whitening, self.tol, self.gamma)
        first_magnification = frame.magnification(start.whitening)
        best, best_measure = None, np.inf
        for step, raw in enumerate(method(frame.C, start.whitening @ start.relative, frame.weights)):
            iterate = replace(raw, relative=start.relative @ raw.relative)
            self.n_iter += 1
            measure = self._measure(iterate)
            self.callback(Progress("radial isotropy", self.n_iter, measure, self.gamma))
            if method is fixed_point:
                heavy, trusted = search.stuck(iterate) if measure > self._goal else None, True
            else:
                heavy, trusted = self._examined(search, iterate, first_magnification)
            if heavy is not None:
                return heavy
            if best is None or (measure < best_measure and trusted):
                best, best_measure = iterate, measure
            if (measure <= self._goal and trusted) or step >= most:
                break
        assert best is not None  # every method yields its start
        return best

    def _examined(self, search: HeavySearch, iterate: Iterate, first_magnification: float) -> tuple[Frame | None, bool]:
        """Return a heavy subspace that the iterate gives away, and whether its spectrum is to be trusted."""
        _, sizes, axes = np.linalg.svd(iterate.relative)
        # Beyond 1/tol the images of rows within tol of a subspace fill it up, and look isotropic.
        trusted = bool(first_magnification * sizes[0] * self.tol < sizes[-1])
        trusted = trusted or search.frame.magnification(iterate.T) * self.tol < 1
        if self._measure(iterate) <= self._goal and trusted:
            return None, True
        return search.diverging(iterate, sizes, axes), trusted

    @property
    def _goal(self) -> float:
        """Where the iteration ends: below gamma by what Psi may differ under the symmetric map, through rounding."""
        return self.gamma - min(self.gamma / 2, self.rounding * EPS)

    def _measure(self, iterate: Iterate) -> float:
        return iterate.error if self.two_sided else iterate.residual

    def _result(self, frame: Frame, iterate: Iterate) -> RadialIsotropy:
        """Recompute Psi under the symmetric map where that is not the iterate's map turned, to 12 digits."""
        matrix, graded = _polar_factor(iterate.T.T)
        if graded:
            spectrum, axes = np.linalg.eigh(radial_moments(frame.C, matrix, frame.weights)[0])
            iterate = replace(iterate, eigenvalues=spectrum, eigenvectors=axes)
        status = Status.WHOLE if len(matrix) == frame.X.shape[1] else Status.SUBSPACE
        if self._measure(iterate) > self.gamma:
            status = Status.STALLED
        return RadialIsotropy(
            subspace=frame.basis,
            matrix=matrix,
            members=frame.members,
            residual=iterate.residual,
            error=iterate.error,
            n_iter=self.n_iter,
            status=status,
        )


def _polar_factor(M: FloatArray, *, graded_below: float = 1e-4) -> tuple[FloatArray, bool]:
    """Return the symmetric positive definite ``(M'M)^(1/2)`` of determinant 1, and whether M is graded.

    Up to one factor it maps a vector to one as long as M does. Columns of X in other units make columns of M of other
    sizes, by any number of orders of magnitude; then one-sided Jacobi rotations are needed, whose errors are small
    relative to each column (Demmel and Veselic 1992).

    Parameters
    ----------
    M : (k, k) array
    graded_below : float
        Ratio of singular values down to which squaring M costs no more than a Newton step returns (families of heavy
        subspaces, whose tables have columns of many sizes).
    """
    columns = np.abs(M).max(axis=0)
    M, columns = M / columns.max(), columns / columns.max()
    graded = bool(columns.min() < graded_below)
    if not graded:
        squares, axes = np.linalg.eigh(M.T @ M)
        graded = bool(squares[0] < graded_below**2 * squares[-1])
    if graded:
        # Columns of any size, all singular values, nothing perturbed.
        _, U, V, *_ = lapack.dgejsv(M, joba=0, jobu=0, jobv=0, jobr=0, jobt=0, jobp=0)
        H = V @ (U.T @ M)
    else:
        sizes = np.sqrt(squares)
        N = M @ axes / sizes
        lost = N.T @ N - np.eye(len(N))  # by squaring: a Newton step returns it
        H = axes @ (np.diag(sizes) + lost * sizes / (1 + sizes / sizes[:, None])) @ axes.T
    # Each of two entries is as precise as its column is small.
    H *= columns[:, None] / (columns[:, None] + columns)
    H += H.T
    return H / np.exp(np.linalg.slogdet(H)[1] / len(H)), graded
