"""Radial-isotropic position: the gamma-approximate transform, heavy subspaces, and the whole decomposition."""

from massart.isotropy.decomposition import decompose
from massart.isotropy.transform import RadialIsotropy, Status, generalized_forster, radial_isotropy

__all__ = ["RadialIsotropy", "Status", "decompose", "generalized_forster", "radial_isotropy"]
