"""Exact numbers: coefficients as short decimals and small fractions, rational solutions."""

from massart.exact.rational import RationalSolution, RationalStatus, solve_rational
from massart.exact.rounded import guess_formula
from massart.exact.snap import ExactCoefficients, Fractions, exact_coefficients

__all__ = [
    "ExactCoefficients",
    "Fractions",
    "RationalSolution",
    "RationalStatus",
    "exact_coefficients",
    "guess_formula",
    "solve_rational",
]
