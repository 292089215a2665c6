"""PAC learning without any assumption on the rows: outlier removal and the learner (Appendix B)."""

from massart.pac.learner import PACFormula, PACPiece, PACStatus, learn_pac
from massart.pac.outliers import OutlierRemoval, OutlierStatus, remove_outliers

__all__ = [
    "OutlierRemoval",
    "OutlierStatus",
    "PACFormula",
    "PACPiece",
    "PACStatus",
    "learn_pac",
    "remove_outliers",
]
