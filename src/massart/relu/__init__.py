"""ReLU recovery (Section 3), and recovery through other monotone links."""

from massart.relu.link import RELU, Link

__all__ = ["Link", "RELU"]
