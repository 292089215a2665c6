"""Noise: Massart noise with any adversary, oblivious noise, and the paper's data.

Definition 1.1, Section 4 and Appendix C of the paper. Solvers never import this package, so the truth cannot leak into
recovery; experiments, benchmarks and tests do.

>>> import numpy as np
>>> from massart.noise import MassartNoise, linear, paper_adversary, paper_mixture, paper_weights
>>> rng = np.random.default_rng(0)
>>> X, w = paper_mixture(120, 30, rng), paper_weights(30)
>>> corruption = MassartNoise(0.25, paper_adversary(w)).corrupt(X, linear(X, w), rng)
>>> corruption.labels.shape
(120,)
"""

from massart.noise.adversaries import (
    Predicate,
    constant,
    decoy,
    far_constant,
    flip,
    gross,
    high_leverage,
    idle,
    negate,
    paper_adversary,
    scale,
    where,
    zero,
)
from massart.noise.concepts import Concept, linear, relu
from massart.noise.model import Adversary, Corruption, MassartNoise
from massart.noise.oblivious import (
    ErrorVector,
    ObliviousNoise,
    Simulation,
    massart_rate,
    simulate_oblivious,
)
from massart.noise.samplers import gaussian, paper_mixture, paper_weights

__all__ = [
    "Adversary",
    "Concept",
    "Corruption",
    "ErrorVector",
    "MassartNoise",
    "ObliviousNoise",
    "Predicate",
    "Simulation",
    "constant",
    "decoy",
    "far_constant",
    "flip",
    "gaussian",
    "gross",
    "high_leverage",
    "idle",
    "linear",
    "massart_rate",
    "negate",
    "paper_adversary",
    "paper_mixture",
    "paper_weights",
    "relu",
    "scale",
    "simulate_oblivious",
    "where",
    "zero",
]
