"""What is known about a candidate, in numbers: support, and bounds on the rows that another formula shares."""

from massart.certificate.assumption import CONFIDENCE, PLAIN, SECOND_LOOK, Assumption, Errors
from massart.certificate.counting import Decisive, Sharing, bound_sharing, is_affordable, sample_sharing
from massart.certificate.geometry import geometry_of
from massart.certificate.independent_errors import IndependentErrors, certify_independent
from massart.certificate.judge import PLURALITY, Declared, Evidence, certify_counts, certify_noisy, judge
from massart.certificate.mechanisms import FurtherRule, Width, explained_by_chance, judge_further_rule, rows_needed
from massart.certificate.segments import Breach, Segment, SegmentScan
from massart.certificate.span import EXACT_REACH, SLAB_REACH, HyperplaneBound, Span, span_of
from massart.certificate.support import Support, held_out_support, measure_support
from massart.certificate.tails import counting_eta_max, largest_share_outside, most_wrong
from massart.certificate.verdict import Bound, Certificate, Reason, Verdict

__all__ = [
    "Assumption",
    "Bound",
    "bound_sharing",
    "Breach",
    "Certificate",
    "certify_independent",
    "certify_counts",
    "certify_noisy",
    "CONFIDENCE",
    "counting_eta_max",
    "Decisive",
    "Declared",
    "Errors",
    "Evidence",
    "EXACT_REACH",
    "explained_by_chance",
    "FurtherRule",
    "geometry_of",
    "held_out_support",
    "HyperplaneBound",
    "IndependentErrors",
    "is_affordable",
    "judge",
    "judge_further_rule",
    "largest_share_outside",
    "measure_support",
    "most_wrong",
    "PLAIN",
    "PLURALITY",
    "Reason",
    "rows_needed",
    "sample_sharing",
    "SECOND_LOOK",
    "Segment",
    "SegmentScan",
    "Sharing",
    "SLAB_REACH",
    "Span",
    "span_of",
    "Support",
    "Verdict",
    "Width",
]
