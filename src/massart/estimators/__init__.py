"""scikit-learn estimators: adapters around the solvers; and scores for labels of which some are wrong."""

from massart.estimators.linear import MassartRegressor
from massart.estimators.pac import MassartPACRegressor
from massart.estimators.relu import MassartReLURegressor
from massart.estimators.scorers import agreement_scorer, robust_r2_score, robust_r2_scorer
from massart.estimators.summary import Summary
from massart.estimators.terms import TermFeatures

__all__ = [
    "MassartPACRegressor",
    "MassartReLURegressor",
    "MassartRegressor",
    "Summary",
    "TermFeatures",
    "agreement_scorer",
    "robust_r2_score",
    "robust_r2_scorer",
]
