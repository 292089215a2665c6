"""What the user takes for granted: the one object that carries it from the doors to the judge."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import get_args

from massart.options import Errors as Errors

CONFIDENCE = 0.999
"""1 - delta: how sure a confirmed rule is. The only place where it is written."""

SECOND_LOOK = 100.0
"""A second set of hypotheses has one part in a hundred of delta, so that 99.9 % stays true to its last digit."""

LEAST_DELTA = 1e-12
"""Confidences nearer to one lose their digits."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """What CONFIRMED takes for granted.

    Attributes
    ----------
    wrong_at_most : float
        No label is wrong with a larger probability.
    confidence : float
    errors : {"arbitrary", "independent"}
        Whether the user declares that errors depend neither on the columns nor on each other, and that no wrong amount
        is as frequent as right labels: then a rule that most rows break may be CONFIRMED
        (:mod:`massart.certificate.independent_errors`).
    hypotheses : float
        Number of hypotheses that share delta: rules of several kinds that are judged on the same rows, of which the
        more certain one is taken (Bonferroni).
    """

    wrong_at_most: float = 0.5
    confidence: float = CONFIDENCE
    hypotheses: float = 1.0
    errors: Errors = "arbitrary"

    def __post_init__(self) -> None:
        if not 0 < self.wrong_at_most < 1:
            raise ValueError(f"wrong_at_most must be between 0 and 1, got {self.wrong_at_most}")
        if not 0 < self.confidence < 1:
            raise ValueError(f"confidence must be between 0 and 1, got {self.confidence}")
        if self.errors not in get_args(Errors):
            raise ValueError(f'errors must be "arbitrary" or "independent", got {self.errors!r}')

    @classmethod
    def of(cls, options: object) -> Assumption:
        """Take what the user asked for: an option of the same name as one of the fields."""
        return cls(**{one.name: getattr(options, one.name) for one in fields(cls) if hasattr(options, one.name)})

    @property
    def delta(self) -> float:
        """What one hypothesis may fail with."""
        return max((1 - self.confidence) / self.hypotheses, LEAST_DELTA)

    @property
    def each(self) -> float:
        """The confidence of one hypothesis."""
        return 1 - self.delta

    @property
    def excludes(self) -> bool:
        """Whether chance can exclude anything: False where floats cannot hold the delta of one hypothesis."""
        return (1 - self.confidence) / self.hypotheses >= LEAST_DELTA


PLAIN = Assumption()
"""Labels are wrong with a probability of at most one half, in whatever way, and 99.9 % are sure enough."""
