"""When a row agrees with a formula: one definition, for every row, every door and any cutting into blocks."""

from massart.agreement.agreement import Agreement, Level, Verified, verify
from massart.agreement.levels import levels
from massart.agreement.marks import (
    ACTIVE,
    AGREES,
    DECISIVE,
    IMPOSSIBLE,
    KINDS,
    LAST_PLACE,
    Has,
    Mark,
    Marks,
    speaks,
    tally,
    tally_of,
)

__all__ = [
    "ACTIVE",
    "AGREES",
    "Agreement",
    "DECISIVE",
    "Has",
    "IMPOSSIBLE",
    "KINDS",
    "LAST_PLACE",
    "Level",
    "Mark",
    "Marks",
    "Verified",
    "levels",
    "speaks",
    "tally",
    "tally_of",
    "verify",
]
