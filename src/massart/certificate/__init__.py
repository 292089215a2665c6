"""What is known about a candidate, in numbers: support, and bounds on the rows that another formula shares."""

from massart.certificate.blocks import packing_bound, sampled_bound
from massart.certificate.enumeration import slab_count
from massart.certificate.fourth_moment import fourth_moment_bound
from massart.certificate.geometry import geometry_of
from massart.certificate.independent_errors import IndependentErrors, certify_independent
from massart.certificate.mechanisms import FurtherRule, Width, explained_by_chance, judge_further_rule, rows_needed
from massart.certificate.segments import Breach, Segment, SegmentScan
from massart.certificate.sharing import Decisive, Sharing, bound_sharing, sample_sharing
from massart.certificate.span import EXACT_REACH, SLAB_REACH, HyperplaneBound, Span, span_of
from massart.certificate.support import CONFIDENCE, Support, measure_support
from massart.certificate.verdict import Bound, Certificate, Reason, Verdict, noisy_certificate

__all__ = [
    "Bound",
    "Breach",
    "CONFIDENCE",
    "Certificate",
    "Decisive",
    "EXACT_REACH",
    "FurtherRule",
    "HyperplaneBound",
    "IndependentErrors",
    "Reason",
    "SLAB_REACH",
    "SegmentScan",
    "Segment",
    "Sharing",
    "Span",
    "Support",
    "Verdict",
    "Width",
    "bound_sharing",
    "certify_independent",
    "explained_by_chance",
    "fourth_moment_bound",
    "geometry_of",
    "judge_further_rule",
    "measure_support",
    "noisy_certificate",
    "packing_bound",
    "rows_needed",
    "sample_sharing",
    "sampled_bound",
    "slab_count",
    "span_of",
]
