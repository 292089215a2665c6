"""Exact L1 regression, also with one-sided costs: interior point, vertex, proof."""

from massart.l1.regression import L1Solution, Status, l1_regression, l1_regression_of

__all__ = ["L1Solution", "Status", "l1_regression", "l1_regression_of"]
