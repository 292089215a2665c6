"""Noisy inliers: robust regression with high breakdown and high efficiency, and whether it is called for."""

from massart.robust.judgement import Inliers, Judgement, judge_inliers
from massart.robust.mm_estimator import Status
from massart.robust.regression import RobustFit, robust_regression

__all__ = [
    "Inliers",
    "Judgement",
    "RobustFit",
    "Status",
    "judge_inliers",
    "robust_regression",
]
