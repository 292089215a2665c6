"""Noise: Massart noise with any adversary, oblivious noise, and samplers of rows and parameters.

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
    oppose,
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
    constant_errors,
    massart_rate,
    simulate_oblivious,
    uniform_errors,
)
from massart.noise.planted import PlantedFlag, PlantedSubspace, integers_on_subspace, planted_flag, planted_subspace
from massart.noise.samplers import (
    binary,
    cauchy,
    column_scales,
    dummy_table,
    elliptical_cauchy,
    gaussian,
    gaussian_with_intercept,
    ill_conditioned,
    integers,
    one_hot,
    paper_mixture,
    scaled_columns,
    sparse_gaussian,
    student_t,
)
from massart.noise.weights import (
    displaced_weights,
    integer_weights,
    intercept_weights,
    paper_weights,
    permuted_weights,
    rescaled_weights,
)

__all__ = [
    "Adversary",
    "Concept",
    "Corruption",
    "ErrorVector",
    "MassartNoise",
    "ObliviousNoise",
    "PlantedFlag",
    "PlantedSubspace",
    "Predicate",
    "Simulation",
    "binary",
    "cauchy",
    "column_scales",
    "constant",
    "constant_errors",
    "decoy",
    "displaced_weights",
    "dummy_table",
    "elliptical_cauchy",
    "far_constant",
    "flip",
    "gaussian",
    "gaussian_with_intercept",
    "gross",
    "high_leverage",
    "idle",
    "ill_conditioned",
    "integer_weights",
    "integers",
    "integers_on_subspace",
    "intercept_weights",
    "linear",
    "massart_rate",
    "negate",
    "one_hot",
    "oppose",
    "paper_adversary",
    "paper_mixture",
    "paper_weights",
    "permuted_weights",
    "planted_flag",
    "planted_subspace",
    "relu",
    "rescaled_weights",
    "scale",
    "scaled_columns",
    "simulate_oblivious",
    "sparse_gaussian",
    "student_t",
    "uniform_errors",
    "where",
    "zero",
]
