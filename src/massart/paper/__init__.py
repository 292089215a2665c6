"""*ReLU Regression with Massart Noise* in its own words: every algorithm and lemma by its name, and nothing else.

The documentation's page on the paper goes through it in its order, and lists every numbered statement with its name.
"""

from massart.cutting_plane import analytic_center, ellipsoid
from massart.isotropy import RadialIsotropy, decompose, generalized_forster, radial_isotropy
from massart.l1 import L1Solution, l1_regression
from massart.paper import noise
from massart.paper.descent import Descent, DescentStatus, Scale, Transformation, descend
from massart.paper.linear import (
    LinearRecovery,
    LinearStatus,
    algorithm_1,
    algorithm_2,
)
from massart.paper.margin import StructuralMargin, structural_margin
from massart.paper.noise import *  # noqa: F403 - what __all__ lists there
from massart.paper.pac import OutlierRemoval, OutlierStatus, PACLearning, PACLearningStatus, pac_learn, remove_outliers
from massart.paper.position import EffectivePosition, effective_number, failure_probability, most_effective_position
from massart.paper.relu import (
    Answer,
    ReLURecovery,
    ReLUStatus,
    Separation,
    l1_gradient,
    recover_relu,
    separation_margin,
    separation_oracle,
)

# fmt: off
__all__ = [
    "RadialIsotropy", "decompose", "generalized_forster", "radial_isotropy", "L1Solution", "l1_regression",
    "analytic_center", "ellipsoid",
    "LinearRecovery", "LinearStatus", "StructuralMargin", "algorithm_1", "algorithm_2", "structural_margin",
    "EffectivePosition", "effective_number", "failure_probability", "most_effective_position",
    "Answer", "ReLURecovery", "ReLUStatus", "Separation", "l1_gradient", "recover_relu", "separation_margin",
    "separation_oracle", "Descent", "DescentStatus", "Scale", "Transformation", "descend",
    "OutlierRemoval", "OutlierStatus", "PACLearning", "PACLearningStatus", "pac_learn", "remove_outliers",
]
# fmt: on
__all__ += noise.__all__
