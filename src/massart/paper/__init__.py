"""*ReLU Regression with Massart Noise* in its own words: every algorithm and lemma by its name, and nothing else."""

from massart.paper.descent import Descent, DescentStatus, Scale, Transformation, descend

__all__ = [
    "Descent",
    "DescentStatus",
    "Scale",
    "Transformation",
    "descend",
]
