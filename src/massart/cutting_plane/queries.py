r"""Asking a separation oracle, one query after another: what every cutting-plane method shares.

The target T is an unknown convex set inside the ball of radius R about a start. The oracle is asked about a point q.
It accepts q, or answers a half-space that holds T and of which q is not an inner point:

.. math:: T \subset \{v : a \cdot v \le b\}, \qquad a \cdot q \ge b .

The cut is central where a.q = b and deep where a.q > b. A method keeps a region that holds T, asks about its centre,
and replaces the region by one that holds what the cut left of it. Its volume falls by a constant factor each time (by
:math:`e^{-1/(2d+2)}` or better for the ellipsoid, by about one half for the analytic centre), so that after
finitely many queries one is accepted or no ball of radius ``tol * R`` fits in what is left [1]_. This is how
Theorem 1.3 finds a ReLU from the oracle of Algorithm 3; nothing here knows about data.

Regions live in coordinates in which the start is 0 and R is 1, and normals are unit vectors: no method sees a scale.

References
----------
.. [1] M. Grötschel, L. Lovász and A. Schrijver, Geometric Algorithms and Combinatorial Optimization, Springer 1988,
   chapter 3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, TypeAlias

import numpy as np

from massart.rows import Callback, FloatArray, Progress, scaled

_ROUNDING = 64 * float(np.finfo(np.float64).eps)  # times d: of one inner product, with room for the oracle's own order


@dataclass(frozen=True, slots=True)
class Halfspace:
    """All v with ``normal @ v <= offset``: what an oracle answers when its query is not accepted.

    Attributes
    ----------
    normal : (d,) array
        Not zero; its length does not matter.
    offset : float
        ``normal @ query`` for a central cut, less for a deep one.
    """

    normal: FloatArray
    offset: float


Oracle: TypeAlias = Callable[[FloatArray], Halfspace | None]
"""Maps a query to a half-space that holds the target, or to None where the query is accepted."""


class Status(Enum):
    """How a search ended; the value says it in words."""

    ACCEPTED = "the oracle accepted the last query"
    EMPTY = "the cuts contradict each other, or leave less than tol or than floating point resolves"
    QUERY_LIMIT = "max_queries queries were asked and none was accepted"


@dataclass(frozen=True, slots=True)
class Cuts:
    """Where a search ended.

    Attributes
    ----------
    point : (d,) array
        The last query; accepted if the status is ACCEPTED.
    n_queries : int
    log_volume : float
        Logarithm of a bound on the volume that the cuts leave, in units of the volume of the first ball. It is
        computed from the last region alone.
    status : Status
    """

    point: FloatArray
    n_queries: int
    log_volume: float
    status: Status


class Method(Protocol):
    """The one signature of all methods, so that a caller passes the function itself."""

    def __call__(
        self,
        oracle: Oracle,
        d: int,
        radius: float,
        *,
        start: FloatArray | None = None,
        max_queries: int = ...,
        tol: float = ...,
        callback: Callback = ...,
    ) -> Cuts:
        """Search the ball of `radius` about `start`."""


class Region(Protocol):
    """A convex set that holds the target, and a centre of it."""

    @property
    def center(self) -> FloatArray:
        """The next query."""

    def log_volume(self) -> float:
        """Return the logarithm of a bound on the volume, in units of the volume of the unit ball."""

    def cut(self, normal: FloatArray, depth: float) -> Region | None:
        """Return a region around what ``normal . (v - center) <= -depth`` leaves; None if that has no inner point.

        The normal has length one and the depth is not negative.
        """


def search(
    task: str,
    unit_ball: Callable[[int], Region],
    oracle: Oracle,
    d: int,
    radius: float,
    start: FloatArray | None,
    max_queries: int,
    tol: float,
    callback: Callback,
) -> Cuts:
    """Ask about the centre of a region and cut it, until the oracle accepts or nothing is left."""
    origin = _check_arguments(d, radius, start, max_queries, tol)
    region, status, n_queries = unit_ball(d), Status.QUERY_LIMIT, 0
    while status is Status.QUERY_LIMIT and n_queries < max_queries:
        query = origin + radius * region.center
        answer = oracle(query.copy())
        n_queries += 1
        if answer is None:
            status = Status.ACCEPTED
        else:
            normal, depth = _unit_cut(answer, query)
            rest = region.cut(normal, depth / float(radius))
            region = region if rest is None else rest
            # A region smaller than the spacing of numbers at the query has the same centre.
            same = np.array_equal(origin + radius * region.center, query)
            if rest is None or same or region.log_volume() < d * np.log(tol):
                status = Status.EMPTY
        callback(Progress(task, n_queries, float(np.exp(region.log_volume() / d)), tol))
    return Cuts(query, n_queries, region.log_volume(), status)


def _unit_cut(answer: Halfspace, query: FloatArray) -> tuple[FloatArray, float]:
    """Return the unit normal of an answer and how far the query lies beyond its boundary."""
    d = len(query)
    normal = np.asarray(answer.normal, dtype=np.float64)
    if normal.shape != (d,):
        raise ValueError(f"oracle must return a normal of shape ({d},), got {normal.shape}")
    if not np.isfinite(normal).all() or not np.isfinite(answer.offset):
        raise ValueError(f"oracle must return finite numbers, got normal {normal} and offset {answer.offset}")
    if not normal.any():
        raise ValueError("oracle must return a normal that is not zero")
    # A power of two keeps every product exact, so that the offset of a central cut cancels to the last bit.
    normal, exponent = scaled(normal)
    with np.errstate(over="ignore"):  # an infinite depth leaves nothing, as it should
        depth = float(normal @ query) - float(np.ldexp(answer.offset, -exponent))
    length = float(np.linalg.norm(normal))
    if depth < -_ROUNDING * d * length * float(np.linalg.norm(query)):
        raise ValueError(
            f"oracle must return a half-space that does not hold its query in the interior, "
            f"got one whose boundary is {-depth / length:g} beyond"
        )
    return normal / length, max(depth / length, 0.0)


def _check_arguments(d: int, radius: float, start: FloatArray | None, max_queries: int, tol: float) -> FloatArray:
    """Return the start as an array."""
    if d < 1:
        raise ValueError(f"d must be at least 1, got {d}")
    if not (np.isfinite(radius) and radius > 0):
        raise ValueError(f"radius must be positive and finite, got {radius}")
    if max_queries < 1:
        raise ValueError(f"max_queries must be at least 1, got {max_queries}")
    if not 0 < tol < 1:
        raise ValueError(f"tol must be between 0 and 1, got {tol}")
    origin = np.zeros(d) if start is None else np.array(start, dtype=np.float64)
    if origin.shape != (d,) or not np.isfinite(origin).all():
        raise ValueError(f"start must be {d} finite numbers, got {start}")
    return origin
