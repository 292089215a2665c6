"""scikit-learn estimators: adapters around the solvers; and scores for labels of which some are wrong."""

from massart.estimators.inference import Summary
from massart.estimators.regressors import MassartPACRegressor, MassartRegressor, MassartReLURegressor
from massart.estimators.scorers import agreement_scorer, robust_r2_score, robust_r2_scorer
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
