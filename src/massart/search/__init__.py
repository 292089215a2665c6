"""More candidates when L1 regression is not certified: a portfolio of searches, every candidate counted."""

from massart.search.consensus import (
    Consensus,
    FittedParameter,
    Limits,
    accidental_agreement,
    active_rows,
    alternate,
    is_clear_majority,
)
from massart.search.fast_lts import LeastSquares, quantile, random_subsets, reweighted, smallest
from massart.search.portfolio import ROUNDS, concentrate, search

__all__ = [
    "FittedParameter",
    "Consensus",
    "LeastSquares",
    "Limits",
    "ROUNDS",
    "accidental_agreement",
    "active_rows",
    "alternate",
    "concentrate",
    "is_clear_majority",
    "quantile",
    "random_subsets",
    "reweighted",
    "search",
    "smallest",
]
