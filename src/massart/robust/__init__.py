"""Noisy inliers: robust regression with high breakdown and high efficiency, and whether it is called for."""

from massart.robust.biweight import TUNING, constants, m_scale
from massart.robust.judgement import Inliers, Judgement, judge_inliers
from massart.robust.mm_estimator import Status
from massart.robust.regression import CUTOFF, RobustFit, robust_regression

__all__ = [
    "CUTOFF",
    "Inliers",
    "Judgement",
    "RobustFit",
    "Status",
    "TUNING",
    "constants",
    "judge_inliers",
    "m_scale",
    "robust_regression",
]
