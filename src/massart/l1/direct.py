"""One problem, solved on all of its rows: interior point, vertex, proof; and HiGHS where these do not suffice."""

from __future__ import annotations

from dataclasses import dataclass

from massart.l1.fallback import linear_program
from massart.l1.interior_point import Ending, central_path
from massart.l1.program import Point, Program
from massart.l1.vertex import finish
from massart.progress import Callback


@dataclass(frozen=True, slots=True)
class Answer:
    """A point, the iterations (interior-point steps and pivots) it took, and whether HiGHS had to help."""

    point: Point
    n_iter: int
    fell_back: bool


def solve_directly(problem: Program, max_iter: int, callback: Callback, fall_back: bool) -> Answer:
    """Solve `problem` in at most `max_iter` interior-point steps and as many pivots.

    HiGHS is asked when the path ends unproven before its limit; a caller who sets a low limit asks for bounded work.
    """
    interior = central_path(problem, max_iter, callback)
    point, pivots = finish(problem, interior.w, interior.a, interior.weight, max_iter)
    n_iter = interior.n_iter + pivots
    if point.optimal or not fall_back or interior.ending is Ending.LIMIT:
        return Answer(point, n_iter, False)
    other = linear_program(problem, max_iter)
    if other is None or not (other.optimal or other.gap < point.gap):
        return Answer(point, n_iter, False)
    return Answer(other, n_iter, True)
