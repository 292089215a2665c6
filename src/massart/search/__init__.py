"""More candidates when L1 regression is not certified: a portfolio of searches, every candidate counted."""

from massart.search.consensus import (
    Consensus,
    FittedParameter,
    Limits,
    accidental_agreement,
    alternate,
)
from massart.search.fast_lts import LeastSquares, quantile, random_subsets, reweighted, smallest
from massart.search.portfolio import ROUNDS, search

__all__ = [
    "FittedParameter",
    "Consensus",
    "LeastSquares",
    "Limits",
    "ROUNDS",
    "accidental_agreement",
    "alternate",
    "quantile",
    "random_subsets",
    "reweighted",
    "search",
    "smallest",
]
