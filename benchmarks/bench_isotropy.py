"""Radial isotropy against the plain fixed point, pyriemann, statsmodels and one SVD; and 2,200 planted cases."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Iterator

from harness import Case, Goal, Incorrect, MissingPeer, Row, at_least, at_most, count, race, require  # isort: skip

import numpy as np

from drug_discovery import drug_discovery
from heavy_families import FAMILIES, Rows, check_answer
from massart.isotropy import RadialIsotropy, decompose, generalized_forster, radial_isotropy
from massart.paper import paper_mixture
from row_families import cauchy, ill_conditioned

ERROR = 1e-10


def cases(small: bool) -> Iterator[Case]:
    """Yield the cases of the issue, or a tenth of them."""
    for n in (120, 240):
        yield Case(f"paper mixture {n} x 30", lambda n=n: _fixed_point_race(n, small))
    n, d = (2000, 20) if small else (20000, 100)
    yield Case(f"Cauchy {n} x {d}", lambda: _cauchy(n, d, at_least(1 if small else 3)))
    for condition in (1e8, 1e12):
        yield Case(f"condition {condition:.0e}", lambda condition=condition: _ill_conditioned(condition))
    yield Case("heavy subspaces", lambda: _heavy(5 if small else 100))
    yield Case("drug discovery, decomposition", _drug_discovery)


def two_sided_error(X: Rows, T: Rows) -> float:
    """Return the spectral norm of Psi - I for the images ``X @ T``, by definition."""
    U = X @ T
    U /= np.linalg.norm(U, axis=1)[:, None]
    return float(np.abs(np.linalg.eigvalsh(U.T @ U * (U.shape[1] / len(U))) - 1).max())


def _error(X: Rows, answer: RadialIsotropy) -> float:
    return two_sided_error(X[answer.members] @ answer.subspace, answer.matrix.T)


def _ours(X: Rows) -> Callable[[], RadialIsotropy]:
    return lambda: generalized_forster(X, ERROR)


def _judge(X: Rows, peer_error: Callable[[Rows], float]) -> Callable[[RadialIsotropy, Rows], str]:
    def judge(answer: RadialIsotropy, peer: Rows) -> str:
        error = _error(X, answer)
        if error > ERROR:
            raise Incorrect(f"error {error:.1e}")
        return f"errors {error:.0e} and {peer_error(peer):.0e}"

    return judge


def _fixed_point_race(n: int, small: bool) -> Row:
    X = paper_mixture(n, 30, np.random.default_rng(0))
    return race(
        f"paper mixture {n} x 30, error 1e-10",
        _ours(X),
        lambda: plain_fixed_point(X, ERROR),
        peer_name="plain Tyler fixed point",
        wanted=at_least(20),
        judge=_judge(X, lambda T: two_sided_error(X, T)),
        repeats=1 if small else 9,
    )


def plain_fixed_point(X: Rows, error: float) -> Rows:
    """Return T by Tyler's iteration, ``T <- T Psi^(-1/2)`` through a Cholesky factor, until ``|Psi - I| <= error``."""
    n, d = X.shape
    U = X / np.linalg.norm(X, axis=1)[:, None]
    T = np.eye(d)
    for _ in range(100_000):
        psi = U.T @ U * (d / n)
        if np.abs(np.linalg.eigvalsh(psi) - 1).max() <= error:
            return T
        step = np.linalg.inv(np.linalg.cholesky(psi)).T
        T = T @ step
        U = U @ step
        U /= np.linalg.norm(U, axis=1)[:, None]
    raise Incorrect("the fixed point did not converge")


def _cauchy(n: int, d: int, wanted: Goal) -> Iterator[Row]:
    X = cauchy(n, d, np.random.default_rng(0))
    name = f"Cauchy {n} x {d}, error 1e-10"
    yield count(f"{name}: steps", generalized_forster(X, ERROR).n_iter, wanted=at_most(15, ""))
    yield from (_peer_race(name, X, peer, wanted) for peer in (pyriemann_scatter, statsmodels_scatter))


def pyriemann_scatter(X: Rows, tol: float) -> Rows:
    """Return Tyler's scatter matrix by pyriemann."""
    module = require("pyriemann.geometry.covariance")
    return np.asarray(module.covariance_mest(X.T, "tyl", tol=tol, n_iter_max=2000, assume_centered=True))


def statsmodels_scatter(X: Rows, tol: float) -> Rows:
    """Return Tyler's scatter matrix by statsmodels."""
    module = require("statsmodels.robust.covariance")
    return np.asarray(module.cov_tyler(X, eps=tol, maxiter=2000).cov)


def _scatter_error(X: Rows, scatter: Rows) -> float:
    """Return the error of the map Sigma^(-1/2), by the most careful way from Sigma: eigenvectors."""
    sizes, axes = np.linalg.eigh(scatter)
    return two_sided_error(X, axes / np.sqrt(np.maximum(sizes, np.finfo(float).tiny)))


def _peer_race(name: str, X: Rows, peer: Callable[[Rows, float], Rows], wanted: Goal) -> Row:
    # The loosest setting that reaches the error, so that the peer does no needless step.
    for tol in 1e-9 * 2.0 ** -np.arange(14):
        if _scatter_error(X, peer(X, tol)) <= ERROR:
            break
    return race(
        name,
        _ours(X),
        lambda: peer(X, tol),
        peer_name=peer.__name__.removesuffix("_scatter"),
        wanted=wanted,
        judge=_judge(X, lambda scatter: _scatter_error(X, scatter)),
    )


def _ill_conditioned(condition: float) -> Iterator[Row]:
    X = ill_conditioned(2000, 50, np.random.default_rng(0), condition=condition)
    answer = generalized_forster(X, 1e-9)
    if answer.matrix.shape != (50, 50):
        raise Incorrect("a subspace was returned")
    yield count(f"condition {condition:.0e}: error from X", _error(X, answer), wanted=at_most(1e-8, ""))
    for peer in (pyriemann_scatter, statsmodels_scatter):
        name = f"condition {condition:.0e}: {peer.__name__.removesuffix('_scatter')}'s error"
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                error = _scatter_error(X, peer(X, 1e-12))
        except MissingPeer:
            raise
        except Exception as failure:  # how it fails is the result
            yield Row("", name, None, None, "", None, "", None, f"raises {type(failure).__name__}")
            continue
        yield Row("", name, None, None, "", error, "", None, "for comparison")


def _heavy(seeds: int) -> Iterator[Row]:
    """Count verified right answers to `seeds` cases of each family, two-sided 1e-6 and one-sided 1/2."""
    for solve, gamma in ((generalized_forster, 1e-6), (radial_isotropy, 0.5)):
        right = 0
        for name, family in FAMILIES.items():
            for seed in range(seeds):
                X, truth = family(np.random.default_rng([seed, zlib.crc32(name.encode())]))
                answer = solve(X, gamma)
                fault = check_answer(X, truth, answer, gamma, two_sided=solve is generalized_forster)
                if fault:
                    raise Incorrect(f"{name}, seed {seed}, gamma {gamma}: {fault}")
                right += 1
        total = seeds * len(FAMILIES)
        note = f"{right} of {total}, {len(FAMILIES)} families"
        yield count(
            f"heavy subspaces, gamma {gamma:g}: right", 100 * right / total, wanted=at_least(100, " %"), note=note
        )


def _drug_discovery() -> Row:
    X = drug_discovery().X
    rank = int(np.linalg.matrix_rank(X))

    def judge(pieces: list[RadialIsotropy], _: object) -> str:
        dimensions = [piece.subspace.shape[1] for piece in pieces]
        if sum(dimensions) != rank or not sum(piece.members.astype(int) for piece in pieces).all():
            raise Incorrect(f"pieces of dimensions {dimensions} do not cover the span, of dimension {rank}")
        if max(piece.residual for piece in pieces) > 0.5:
            raise Incorrect("a piece misses gamma = 1/2")
        return f"dimensions {dimensions}"

    return race(
        "drug discovery 3085 x 410, decomposition",
        lambda: decompose(X),
        lambda: np.linalg.svd(X, full_matrices=False),
        peer_name="one SVD",
        wanted=at_most(10),
        judge=judge,
    )
