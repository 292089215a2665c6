"""Exact L1 regression, also with one-sided costs: interior point, vertex, proof."""

from massart.l1.regression import L1Solution, Status, l1_regression

__all__ = ["L1Solution", "Status", "l1_regression"]
