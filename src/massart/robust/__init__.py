"""Noisy inliers: robust regression with high breakdown and high efficiency, and whether it is called for."""

from massart.robust.evidence import Evidence, Inliers, judge_inliers
from massart.robust.exactness import looks_exact
from massart.robust.regression import RobustFit, Status, robust_regression

__all__ = ["Evidence", "Inliers", "RobustFit", "Status", "judge_inliers", "looks_exact", "robust_regression"]
