"""The numbers of a recovery that are a choice, each with its unit and the case that notices it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from massart.rows import Callback, silent


@dataclass(frozen=True, slots=True)
class Settings:
    """How many rows certify a rule, how many propose one, and how often to look again.

    Attributes
    ----------
    certify, certify_per_column : int
        Rows that certify, or as many times the number of columns if that is more. Any number is valid, and more
        exclude larger noise rates (`benchmarks/claims.py`: CONFIRMED at 40 % wrong takes some 1,400 rows a column).
    certify_numbers : int
        Numbers that these rows have at most: memory (`benchmarks/bench_large.py`, 20,000 x 1,000).
    rare, most_rare : int
        Of a column that fewer of these rows have, other than zero, as many are looked for in the whole table; and how
        many at most for all columns (`tests/test_recover.py`, dummies at scale).
    search : int
        Rows, of those that certify, that candidates are looked for and counted on; also those that tell rounded
        numbers and estimate noise.
    telling : int
        Rows that tell noise from rounding: a few hundred are plenty.
    most_wrong_at_first : float
        Share of wrong rows up to which as many rows certify first; with more they would not (`speed.py`, "large").
    exact : int
        Rows that tell the numbers of exact labels, and among which a second rule is looked for.
    per_column, smallest : int
        Rows a column of the first sample: what Algorithm 1 needs at 40 % wrong labels in Gaussian position; twice as
        many where a link clips, since about half of the rows tell no more than a side. And rows at least.
    worth_sampling : int
        A table of fewer samples than this is taken whole.
    hold_out, propose_share : int and float
        With as many rows a column, a link that clips is found on this share of the rows and judged by the others.
    looks, looks_whole : int
        Most times that rows are looked at again where support is weak; and where the whole table was looked at
        (`benchmarks/claims.py`, sparse counts: one coefficient is off without it).
    early_rounds : int
        Rounds of search in a sample that can still grow: more rows help more than more search (`linear_cases.py`,
        Gaussian 360 x 30 with 40 % wrong: 5 to 10 s instead of 1 s without).
    quick_numbers : int
        With as many numbers, reweighted least squares looks first: the speed of large tables (`speed.py`).
    quick_per_column, quick_sample : int
        Rows that polish what it finds: with 40 % wrong, more than half of them and one a column agree.
    sure : float
        Bits beyond which a rule is more than chance; below, labels are shuffled and searched.
    """

    certify: int = 40_000
    certify_per_column: int = 1_400
    certify_numbers: int = 20_000_000
    rare: int = 64
    most_rare: int = 20_000
    search: int = 20_000
    telling: int = 1_000
    most_wrong_at_first: float = 0.35
    exact: int = 5_000
    per_column: int = 16
    smallest: int = 400
    worth_sampling: int = 4
    hold_out: int = 200
    propose_share: float = 0.25
    looks: int = 6
    looks_whole: int = 3
    early_rounds: int = 2
    quick_numbers: int = 500_000
    quick_per_column: int = 6
    quick_sample: int = 2_000
    sure: float = 10.0

    def certification_rows(self, d: int) -> int:
        """Return how many rows certify a rule of d columns, if there are as many."""
        most = max(self.certify_numbers // d, 2 * self.per_column * d)
        return min(max(self.certify, self.certify_per_column * d), most)

    def first_sample(self, d: int, clipped: bool) -> int:
        """Return how many rows the first sample of d columns has, of a link that clips or not."""
        return max((1 + clipped) * self.per_column * d, self.smallest)


SETTINGS = Settings()
"""The ones in use."""


@dataclass(frozen=True, slots=True)
class Options:
    """How hard to look.

    Attributes
    ----------
    rng : numpy.random.Generator
    rounds : int or None
        Rounds of search for each piece: 0 for the published algorithm alone, all by default.
    callback : callable
    may_be_noise : bool
        Whether labels that are plainly noisy end the search.
    """

    rng: np.random.Generator
    rounds: int | None = None
    callback: Callback = silent
    may_be_noise: bool = False
