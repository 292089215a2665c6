"""What is known about a candidate, in numbers: support, and bounds on the rows that another formula shares."""

from massart.certificate.assumption import CONFIDENCE, PLAIN, SECOND_LOOK, Assumption
from massart.certificate.counting import Decisive, Sharing, bound_sharing, is_affordable
from massart.certificate.geometry import Geometry, geometry_of
from massart.certificate.independent_errors import IndependentErrors, certify_independent
from massart.certificate.judge import PLURALITY, Declared, Evidence, certify_counts, judge
from massart.certificate.mechanisms import (
    Explained,
    FurtherRule,
    Width,
    explained_by_chance,
    failure_of,
    fullest_window,
    rows_needed,
)
from massart.certificate.segments import Breach, Segment, SegmentScan
from massart.certificate.span import EXACT_REACH, SLAB_REACH, Span, span_of
from massart.certificate.support import (
    PieceSupport,
    Support,
    held_out_support,
    is_weak_by_chance,
    measure_support,
    weak_row_weights,
)
from massart.certificate.tails import largest_share_outside, most_wrong
from massart.certificate.verdict import Bound, Certificate, Reason, Verdict
from massart.certificate.wide import COLUMNS as WIDE_COLUMNS

__all__ = [
    "Explained",
    "Geometry",
    "PieceSupport",
    "failure_of",
    "fullest_window",
    "is_weak_by_chance",
    "weak_row_weights",
    "Assumption",
    "Bound",
    "bound_sharing",
    "Breach",
    "Certificate",
    "certify_independent",
    "certify_counts",
    "CONFIDENCE",
    "Decisive",
    "Declared",
    "Evidence",
    "EXACT_REACH",
    "explained_by_chance",
    "FurtherRule",
    "geometry_of",
    "held_out_support",
    "IndependentErrors",
    "is_affordable",
    "judge",
    "largest_share_outside",
    "measure_support",
    "most_wrong",
    "PLAIN",
    "PLURALITY",
    "Reason",
    "rows_needed",
    "SECOND_LOOK",
    "Segment",
    "SegmentScan",
    "Sharing",
    "SLAB_REACH",
    "Span",
    "span_of",
    "Support",
    "Verdict",
    "WIDE_COLUMNS",
    "Width",
]
