"""ReLU recovery (Sections 3 and 4), and recovery through other monotone links."""

from massart.link import IDENTITY, RELU, Link
from massart.paper.descent import Descent, Scale, Transformation, descend
from massart.relu.oracle import SeparationOracle, radius_of, separation_oracle
from massart.relu.recovery import ReLURecovery, recover_relu
from massart.relu.separation import Answer, Separation, separation_margin

__all__ = [
    "Answer",
    "Descent",
    "IDENTITY",
    "Link",
    "RELU",
    "ReLURecovery",
    "Scale",
    "Separation",
    "SeparationOracle",
    "Transformation",
    "descend",
    "radius_of",
    "recover_relu",
    "separation_margin",
    "separation_oracle",
]
