"""What a report is made of: an answer, and the rows it was verified on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from massart.certificate import Certificate, Verdict
from massart.report.words import SegmentFacts, VerdictWords, count, judgement
from massart.rows import BoolArray, FloatArray
from massart.rules import Formula, Rates

DATED = "date of the data"
"""The fact that says when the table was last changed."""

MOST_TERMS = 40
"""Terms of a formula in one paragraph, and of a short table."""

Cells: TypeAlias = Callable[[NDArray[np.intp]], Mapping[str, Sequence[object]]]
"""Returns columns of the table, by name, for the rows asked for: texts, numbers, booleans or None."""


@dataclass(frozen=True, slots=True)
class Usage:
    """How many rows use one coefficient: what it multiplies is not zero; and how many of these follow the formula."""

    n_rows: int
    n_agree: int


@dataclass(frozen=True, slots=True)
class GroupCount:
    """Rows with the same value in the column that groups them."""

    name: str
    n_rows: int
    n_wrong: int


@dataclass(frozen=True, slots=True)
class RowKinds:
    """What happened in each row."""

    words: tuple[str, ...]  # the most frequent first, after an empty word for rows that agree
    codes: NDArray[np.intp]  # the place of the word of each row
    unexplained: int  # the place of the word for rows that nothing explains


@dataclass(frozen=True, slots=True)
class Rest:
    """What is known of a table of which only some rows were kept: its worst, and others drawn at random."""

    drawn: BoolArray  # kept rows that were drawn at random
    n_wrong: int  # of the whole table
    kinds: tuple[int, ...]  # rows of the whole table with each code of a kind


@dataclass(frozen=True, slots=True)
class ReportRows:
    """All rows that were judged, or those of them that were kept."""

    given: FloatArray  # the target as it stands in the table
    implied: FloatArray  # what the formula gives
    agree: BoolArray
    wrong: BoolArray  # those that do not agree and are called wrong
    cells: Cells  # the columns to show with them: the first one names the row
    group_column: str | None = None
    groups: tuple[GroupCount, ...] = ()  # by the share of wrong rows, the largest first
    kinds: RowKinds | None = None  # None where nothing was asked but whether rows are wrong
    rest: Rest | None = None  # where only some rows of the table were kept
    terms: Any = None  # their values, (n, d), for those who ask what other coefficients would give

    @property
    def n_wrong(self) -> int:
        """Wrong rows, those that were not kept included."""
        return int(np.count_nonzero(self.wrong)) if self.rest is None else self.rest.n_wrong


@dataclass(frozen=True, slots=True)
class Findings:
    """An answer and all that a report shows of it."""

    title: str  # what was examined: the name of a file, of a table or of an estimator
    formula: Formula
    certificate: Certificate
    n_rows: int  # judged
    n_agree: int
    n_wrong: int  # those of the others that are called wrong
    usage: tuple[Usage, ...] = ()  # for each coefficient, the constant last; empty where rows were not kept
    rows: ReportRows | None = None  # None where they were not kept, or without a rule
    notices: tuple[str, ...] = ()  # columns and rows left out, categories and their base levels
    facts: Mapping[str, str] = field(default_factory=dict)  # the command, the file and its digest, versions
    n_left_out: int = 0  # rows that were not judged, since values are missing
    bases: Mapping[str, str] = field(default_factory=dict)  # of categories, the level to compare with
    rates: tuple[Rates, ...] = ()  # by level, where a category multiplies something
    n_apart: int = 0  # rows that are set apart: they break the formula where most rows do
    segment: SegmentFacts | None = None  # where that is
    is_saved: bool = False  # whether the formula was found in other rows: the verdict is about those

    @property
    def judgement(self) -> VerdictWords:
        """The verdict in short words."""
        known = judgement(self.certificate, "" if self.segment is None else self.segment.where)
        if not self.is_saved:
            return known
        return replace(known, meaning=f"A saved formula on other rows: it was {known.word} where it was found.")

    @property
    def explanation(self) -> str:
        """The certificate in words; of a saved formula, how many rows follow it."""
        if self.is_saved:
            return f"{self.n_agree:,} of {count(self.n_rows, 'rows')} follow the saved formula."
        return self.certificate.explain(self.formula.names, self.segment)

    @property
    def formula_text(self) -> str:
        """The formula in one paragraph."""
        return self.formula.text(MOST_TERMS)

    @property
    def is_rule(self) -> bool:
        """Whether there is a rule at all."""
        return self.certificate.verdict is not Verdict.NONE

    @property
    def n_last_place(self) -> int:
        """Rows that are off by one unit of the last place only."""
        return self.n_rows - self.n_agree - self.n_wrong - self.n_apart if self.is_rule else 0


def called_wrong(
    certificate: Certificate, agree: BoolArray, last_place: BoolArray, apart: BoolArray | bool = False
) -> BoolArray:
    """Return the rows that are called wrong: not those off by one unit of the last place, and none without a rule.

    Nor those that are set `apart`, since another rule may hold for them.
    """
    return np.asarray(~agree & ~last_place & ~np.asarray(apart) & (certificate.verdict is not Verdict.NONE))


def usage_of(X: Any, agree: BoolArray, *, constant: bool) -> tuple[Usage, ...]:
    """Return how many rows use each coefficient; X may be sparse, or made when it is read."""
    if isinstance(X, np.ndarray) or not hasattr(X, "made_when_read"):
        used = X != 0
        counts = np.asarray(used.sum(axis=0)).ravel(), np.asarray(used[agree].sum(axis=0)).ravel()
        found = [Usage(int(n), int(k)) for n, k in zip(*counts, strict=True)]
    else:
        columns = (X[:, j] != 0 for j in range(X.shape[1]))
        found = [Usage(int(np.count_nonzero(used)), int(np.count_nonzero(used & agree))) for used in columns]
    return tuple([*found, Usage(len(agree), int(agree.sum()))] if constant else found)
