"""Noisy inliers: robust regression with high breakdown and high efficiency, and whether it is called for."""

from massart.robust.judgement import Inliers, Judgement, judge_inliers
from massart.robust.refinement import TUNING, constants, m_scale
from massart.robust.regression import CUTOFF, RobustFit, Status, robust_regression

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
