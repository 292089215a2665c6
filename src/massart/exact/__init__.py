"""Exact numbers: coefficients as short decimals and small fractions, rational solutions."""

from massart.exact.rational import RationalSolution, RationalStatus, solve_rational
from massart.exact.rounded import guess_formula
from massart.exact.snap import ExactCoefficients, Fractions, exact_coefficients
from massart.exact.sparsest import Brevity, shortest_decimals, sparser_formulas

__all__ = [
    "Brevity",
    "ExactCoefficients",
    "Fractions",
    "RationalSolution",
    "RationalStatus",
    "exact_coefficients",
    "guess_formula",
    "shortest_decimals",
    "solve_rational",
    "sparser_formulas",
]
