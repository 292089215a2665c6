"""scikit-learn estimators: adapters around the solvers."""

from massart.estimators.linear import MassartRegressor

__all__ = ["MassartRegressor"]
