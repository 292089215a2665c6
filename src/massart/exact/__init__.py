"""Exact numbers: short decimals, fractions and sparse formulas behind coefficients in floats."""

from massart.exact.numbers import ExactNumbers, Fractions, exact_numbers
from massart.exact.sparsest import Brevity, sparser_formulas

__all__ = [
    "Brevity",
    "ExactNumbers",
    "Fractions",
    "exact_numbers",
    "sparser_formulas",
]
