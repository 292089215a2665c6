"""What is known about a candidate, in numbers: support, and bounds on the rows that another formula shares."""

from massart.certificate.blocks import packing_bound, sampled_bound
from massart.certificate.enumeration import slab_count
from massart.certificate.fourth_moment import fourth_moment_bound
from massart.certificate.geometry import geometry_of
from massart.certificate.sharing import Decisive, Sharing, bound_sharing, sample_sharing
from massart.certificate.span import EXACT_REACH, SLAB_REACH, HyperplaneBound, Span, span_of
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
]
