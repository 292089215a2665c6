"""The numbers of the search, each in one place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """How a rule is grown. The defaults serve the tables of ``benchmarks/auditor.py`` and ``benchmarks/rules.py``.

    Attributes
    ----------
    number_bits : float
        The price of a coefficient, threshold or limit: about seven decimal digits. With 12, rows that are wrong alike
        become terms; with 40, a rate that one row in twenty has is missed (``rules.py``, families with rare rates).
    miss_bits : float
        The price of a row that does not agree, however near it is: else a term that brings rows nearer beats one that
        explains fewer rows exactly, where labels are coarse (dates).
    rows, share, whole : int, float, int
        The search rows: a share of them, at most `rows`; all of a table with at most `whole` rows, which cannot
        spare any to confirm.
    beam, steps : int
        Rules that are kept from step to step, and most steps.
    tests, votes, pairs : int
        Candidates that are refitted because of the score test, because of votes, and pairs of rows that vote: without
        votes, ``cost * age / life`` is missed where few rows need it.
    focus : int
        Columns, those that go with the labels, of which products are tried.
    levels : int
        Most levels of a category that may have rates of its own. With 0 a rule says the same of all rows: it has no
        conditions, hinges or steps.
    windows : int
        Columns, those along which rows agree least evenly, in which other coefficients are looked for. With 0 no part
        of the rows has a rule of its own.
    effort : int
        Fits in all.
    start : int
        Fits from one start.
    known : float
        The share of the rows from which on a rule is known; and of the fits that another start has then.
    clear : float
        In standard deviations, how many more rows an interval that was chosen by labels has to win than it loses:
        wrong values that are alike crowd somewhere.
    short : float
        The price of a rule's numbers, as a share of the bits that it saves, up to which no other start is tried once
        most rows agree: another form could save no more than that (``33-kindergarten``, 24 prices).
    few : int
        Of anything that is few: terms of a rule that is fitted from nothing, or next to which a second rule is looked
        for; levels of a category in a start.
    each : int
        Levels of a category each of which is a candidate, columns each of which may have rates by level, and terms
        that are grown. With 12, months are (``rule-by-month`` of the golden files is found in a longer form).
    tries : int
        Candidates of each kind of evidence that are followed up.
    cells : int
        Levels of two categories together that may have rates.
    part : int
        Rows of a part of the table, or pairs of rows, at least.
    sure : int
        Rows that a second rule wins at least.
    uneven : float
        The share of the rows of a part that agree at most, before another rule is looked for there.
    branches : int
        Rules for parts of the rows.
    word_bits, table_words : float
        The price of a column, operation or level as it is written, one of thirty-two, and the words of a table besides
        its names (``16-telecom-allowance``, a fee by plan; ``31-trades-weekend``, a surcharge).
    cut_bits : float
        The price of a row on the wrong side of a cut: one in thirty has the value of the other side by mistake. At the
        price of any other row, one such row makes 9.98 of 10 (``05-parcel-price-list``).
    tie : float
        Half-widths by which labels in the middle of two roundings may have moved a coefficient
        (``02-payroll-overtime``: 1.000001 * hourly_rate).
    loose : float
        Share of the rows that coefficients in few digits may lose.
    """

    number_bits: float = 24.0
    miss_bits: float = 2.0
    rows: int = 1200
    share: float = 0.6
    whole: int = 150
    beam: int = 2
    steps: int = 14
    tests: int = 10
    votes: int = 5
    pairs: int = 400
    focus: int = 8
    levels: int = 40
    windows: int = 6
    effort: int = 1500
    start: int = 700
    known: float = 0.2
    clear: float = 5.0
    short: float = 0.08
    few: int = 12
    each: int = 8
    tries: int = 4
    cells: int = 60
    part: int = 20
    sure: int = 8
    uneven: float = 0.4
    branches: int = 3
    word_bits: float = 5.0
    table_words: float = 3.0
    cut_bits: float = 5.0
    tie: float = 0.25
    loose: float = 0.01
