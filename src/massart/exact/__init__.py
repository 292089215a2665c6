"""What counts as exact: the tolerance of the data, coefficients as short decimals and fractions, rational solutions."""

from massart.exact.coefficients import ExactCoefficients, Status, exact_coefficients
from massart.exact.rational import RationalSolution, RationalStatus, solve_rational
from massart.exact.tolerance import Tolerance, resolve_tolerance, tolerances

__all__ = [
    "ExactCoefficients",
    "RationalSolution",
    "RationalStatus",
    "Status",
    "Tolerance",
    "exact_coefficients",
    "resolve_tolerance",
    "solve_rational",
    "tolerances",
]
