"""What is known about a candidate, in numbers: support, bounds on the rows another formula shares, and the margin."""

from massart.certificate.blocks import packing_bound, sampled_bound
from massart.certificate.enumeration import slab_count
from massart.certificate.fourth_moment import fourth_moment_bound
from massart.certificate.geometry import geometry_of
from massart.certificate.sharing import Decisive, Sharing, bound_sharing, sample_sharing
from massart.certificate.span import EXACT_REACH, SLAB_REACH, HyperplaneBound, Span, span_of
from massart.certificate.structural import StructuralMargin, structural_margin
from massart.certificate.support import CONFIDENCE, Support, measure_support
from massart.certificate.verdict import Bound, Certificate, Reason, Verdict, noisy_certificate

__all__ = [
    "Bound",
    "CONFIDENCE",
    "Certificate",
    "Decisive",
    "EXACT_REACH",
    "HyperplaneBound",
    "Reason",
    "SLAB_REACH",
    "Sharing",
    "Span",
    "StructuralMargin",
    "Support",
    "Verdict",
    "bound_sharing",
    "fourth_moment_bound",
    "geometry_of",
    "measure_support",
    "noisy_certificate",
    "packing_bound",
    "sample_sharing",
    "sampled_bound",
    "slab_count",
    "span_of",
    "structural_margin",
]
