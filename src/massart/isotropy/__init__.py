"""Radial-isotropic position: the gamma-approximate transform, heavy subspaces, and the whole decomposition."""

from massart.isotropy.decomposition import decompose
from massart.isotropy.moments import RadialMoments, radial_moments
from massart.isotropy.transform import (
    RadialIsotropy,
    Status,
    generalized_forster,
    position_weights,
    radial_isotropy,
    radial_isotropy_of,
)

__all__ = [
    "RadialIsotropy",
    "RadialMoments",
    "Status",
    "decompose",
    "generalized_forster",
    "position_weights",
    "radial_isotropy",
    "radial_isotropy_of",
    "radial_moments",
]
