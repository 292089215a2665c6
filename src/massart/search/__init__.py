"""More candidates when L1 regression is not certified: a portfolio of searches, every candidate counted."""

from massart.search.concentration import concentrate
from massart.search.coordinates import improve_coordinates
from massart.search.portfolio import search
from massart.search.problem import Candidate, Consensus

__all__ = ["Candidate", "Consensus", "concentrate", "improve_coordinates", "search"]
