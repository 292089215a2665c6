"""More candidates when L1 regression is not certified: a portfolio of searches, every candidate counted."""

from massart.search.alternation import active_rows, alternate
from massart.search.concentration import concentrate
from massart.search.consensus import Candidate, Consensus, Limits, is_clear_majority
from massart.search.coordinates import improve_coordinates
from massart.search.portfolio import search
from massart.search.reweighting import reweighted

__all__ = [
    "Candidate",
    "Consensus",
    "Limits",
    "active_rows",
    "alternate",
    "concentrate",
    "improve_coordinates",
    "is_clear_majority",
    "reweighted",
    "search",
]
