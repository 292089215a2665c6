"""ReLU recovery (Section 3), and recovery through other monotone links."""

from massart.relu.link import RELU, Link
from massart.relu.recovery import ReLURecovery, recover_relu

__all__ = ["Link", "RELU", "ReLURecovery", "recover_relu"]
