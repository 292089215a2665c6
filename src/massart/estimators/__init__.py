"""scikit-learn estimators: adapters around the solvers."""

from massart.estimators.linear import MassartRegressor
from massart.estimators.pac import MassartPACRegressor
from massart.estimators.relu import MassartReLURegressor
from massart.estimators.terms import TermFeatures

__all__ = ["MassartPACRegressor", "MassartReLURegressor", "MassartRegressor", "TermFeatures"]
