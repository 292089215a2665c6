"""scikit-learn estimators: adapters around the solvers."""

from massart.estimators.linear import MassartRegressor
from massart.estimators.relu import MassartReLURegressor

__all__ = ["MassartReLURegressor", "MassartRegressor"]
