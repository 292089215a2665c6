"""What is proven about a candidate: verdicts, bounds on the rows of one hyperplane, and the structural condition."""

from massart.certificate.blocks import packing_bound, sampled_bound
from massart.certificate.certify import certify, certify_relu, noisy_certificate
from massart.certificate.enumeration import exact_count, general_position
from massart.certificate.fourth_moment import fourth_moment_bound
from massart.certificate.span import HyperplaneBound
from massart.certificate.structural import StructuralMargin, structural_margin
from massart.certificate.verdict import Bound, Certificate, Verdict

__all__ = [
    "Bound",
    "Certificate",
    "HyperplaneBound",
    "StructuralMargin",
    "Verdict",
    "certify",
    "certify_relu",
    "noisy_certificate",
    "structural_margin",
    "exact_count",
    "fourth_moment_bound",
    "general_position",
    "packing_bound",
    "sampled_bound",
]
