"""PAC learning without any assumption on the rows: outlier removal, the learner, and sample sizes (Appendix B)."""

from massart.pac.learner import PACFormula, PACPiece, PACStatus, learn_pac
from massart.pac.outliers import OutlierRemoval, OutlierStatus, dunagan_vempala_bound, remove_outliers
from massart.pac.sizes import linear_sample_size, outlier_sample_size, pac_sample_size, relu_sample_size

__all__ = [
    "OutlierRemoval",
    "OutlierStatus",
    "PACFormula",
    "PACPiece",
    "PACStatus",
    "dunagan_vempala_bound",
    "learn_pac",
    "linear_sample_size",
    "outlier_sample_size",
    "pac_sample_size",
    "relu_sample_size",
    "remove_outliers",
]
