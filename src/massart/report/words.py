"""What a certificate says, in words that are literally true: for terminal, JSON, notebook and page alike."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from massart.certificate import (
    CONFIDENCE,
    Bound,
    Breach,
    Certificate,
    FurtherRule,
    PieceSupport,
    Reason,
    Segment,
    Verdict,
)
from massart.rules import INTERCEPT

MEANINGS = {
    Verdict.PROVEN: "no other formula fits as many rows",
    Verdict.CONFIRMED: "it is the formula, or labels are wrong more often or less independently than assumed",
    Verdict.MAJORITY: "more than half of the evidence agrees in every direction; chance is not excluded",
    Verdict.PLURALITY: "the best formula found, far above chance, but not confirmed",
    Verdict.NOISY: "the rows follow the formula up to noise, not exactly",
    Verdict.NONE: "no rule was found",
}
"""What each verdict means, the strongest first."""

_BOUNDS = {
    Bound.PACKING: "the rows it fits contain disjoint blocks of independent rows, and another formula misses a row of "
    "each",
    Bound.FOURTH_MOMENT: "the fourth moments of the rows it fits show how many of these rows another formula can fit "
    "at most",
    Bound.EXACT: "the rows it fits were counted for every other formula",
    Bound.NONE: "nothing bounds how many of the rows it fits another formula could share",
}
_REASONS = {
    Reason.MODE: "the best formula found explains hardly more rows than the most frequent value does",
    Reason.CHANCE: "{some} {agree} with the best formula found{inside}; but rows with the most frequent value aside, "
    "these are not clearly more than the {chance} or so that fit some formula when the labels are shuffled",
    Reason.NEAR: "{some} {agree} with the best formula found; but labels lie about as densely near it as on it, or no "
    "more are on it than chance gives",
    Reason.FEW: "no more than {some} agree with the best formula found{inside}",
    Reason.LIMITS: "too few rows lie between the limits",
    Reason.UNEVEN: "the rows that do not agree depend on the columns, though errors were declared independent of them",
    Reason.SECOND_RULE: "another rule fits many of the other rows, though errors were declared independent of the "
    "columns",
}
_SIGNS = {
    Verdict.PROVEN: "✓",
    Verdict.CONFIRMED: "✓",
    Verdict.MAJORITY: "◐",
    Verdict.PLURALITY: "?",
    Verdict.NOISY: "≈",
    Verdict.NONE: "✗",
}
_MOST_NAMES = 8  # in one sentence
_MOST_IN_DIRECTION = 3  # columns that name a direction
_SMALL_ENTRY, _ROUNDING = 0.1, 1e-9  # of the largest entry of a direction: not worth a name, and nothing at all
_TIE_DIGITS = 6  # of entries that are equal


@dataclass(frozen=True, slots=True)
class VerdictWords:
    """A verdict in short words, with its sign.

    Attributes
    ----------
    word, sign : str
        The name of the verdict, which also names its style, and its sign.
    meaning : str
        One sentence for a reader who is not a mathematician.
    off : str
        What rows are called that do not follow the formula: "wrong" only if the formula can be relied on.
    """

    word: str
    sign: str
    meaning: str
    off: str


@dataclass(frozen=True, slots=True)
class SegmentFacts:
    """A segment of a table, in words and counts.

    Attributes
    ----------
    where : str
        Which rows these are: "kg from 31.5 up".
    n_rows, n_wrong : float
        Its rows, and those of them that break the formula.
    n_others, n_wrong_others : float
        The same of all other rows.
    rule : str
        What the rows of the segment follow instead, and how many of them; "" if that is not known.
    """

    where: str
    n_rows: float
    n_wrong: float
    n_others: float
    n_wrong_others: float
    rule: str = ""

    @classmethod
    def of(cls, segment: Segment, names: Sequence[str] | None) -> SegmentFacts:
        """Describe a segment by the columns of the formula."""
        where = [f"{name_of(column, names)} = {code}" for column, code in segment.levels]
        if segment.column is not None:
            low, high = f"{segment.low:.6g}", f"{segment.high:.6g}"
            name = name_of(segment.column, names)
            if segment.low == segment.high:
                where.append(f"{name} = {low}")
            elif math.isinf(segment.low) or math.isinf(segment.high):
                where.append(f"{name} up to {high}" if math.isinf(segment.low) else f"{name} from {low} up")
            else:
                where.append(f"{name} from {low} to {high}")
        counts = segment.n_rows, segment.n_wrong, segment.n_others, segment.n_wrong_others
        return cls(" and ".join(where), *counts)


def judgement(certificate: Certificate, where: str = "") -> VerdictWords:
    """Say in short what a verdict means; `where` names the segment in which the formula breaks, if it is known."""
    verdict = certificate.verdict
    meaning = MEANINGS[verdict] + (_apart(certificate) if verdict is Verdict.PROVEN else "")
    if where and certificate.reason is Reason.PART:
        meaning = f"the rule does not hold for {where}: another rule may hold there, or none"
    if certificate.declared:
        meaning = "it is the formula if errors depend neither on the columns nor on each other, as declared"
    off = "wrong rows" if verdict.stands else "rows that do not follow"
    return VerdictWords(verdict.name, _SIGNS[verdict], f"{meaning[0].upper()}{meaning[1:]}.", off)


def explain(certificate: Certificate, names: Sequence[str] | None = None, segment: SegmentFacts | None = None) -> str:
    """Say in plain words what holds, under which assumption, and what is not claimed.

    Parameters
    ----------
    certificate : Certificate
    names : sequence of str, optional
        Of the columns; a column beyond them is the constant. Columns have numbers without names.
    segment : SegmentFacts, optional
        The segment in which the formula breaks; by default as the certificate knows it.
    """
    if segment is None and certificate.segment is not None:
        segment = SegmentFacts.of(certificate.segment, names)
    match certificate.verdict:
        case Verdict.NONE:
            claim = _nothing(certificate)
        case Verdict.NOISY:
            claim = _noisy(certificate)
        case Verdict.PROVEN:
            claim = _proven(certificate)
        case Verdict.CONFIRMED:
            claim = _confirmed(certificate)
        case Verdict.MAJORITY:
            claim = _majority(certificate, names)
        case Verdict.PLURALITY:
            claim = _plurality(certificate, names, segment)
    return " ".join([*claim, *_also(certificate, names)])


def explain_saved(n_agree: int, n_judged: int, known: str) -> str:
    """Say how many rows follow a saved formula, and what was known of it before."""
    follow = f"{n_agree:,} of {count(n_judged, 'rows')} follow a saved formula ({share(n_agree, n_judged)})"
    return f"{follow}. Where it was found: {known}"


def counted(n_total: int, n_judged: int, n_wrong: int) -> tuple[str, str]:
    """Say how many rows are wrong, and how many are not judged.

    Examples
    --------
    >>> counted(400, 400, 8)
    ('8 of 400 rows are wrong (2.0 %)', '0 not judged')
    >>> counted(20, 1, 0)
    ('0 of 1 judged row is wrong (0 %)', '19 of 20 rows are not judged (95.0 %)')
    """

    def rows_are(some: int, n: int, things: str, what: str) -> str:
        return f"{some:,} of {count(n, things)} {'is' if 1 in (some, n) else 'are'} {what} ({share(some, n)})"

    if n_judged == n_total:
        return rows_are(n_wrong, n_judged, "rows", "wrong"), "0 not judged"
    return rows_are(n_wrong, n_judged, "judged rows", "wrong"), rows_are(
        n_total - n_judged, n_total, "rows", "not judged"
    )


_LIST_SIZES = ("No rules", "One rule", "Two rules", "Three rules", "Four rules", "Five rules", "Six rules")
_MOST_SHARED = 3  # groups of rules that rows fit together


def explain_list(
    n_rows: Sequence[int],
    shared: Sequence[tuple[Sequence[str], int]],
    branches: Mapping[int, tuple[str, int, int, int, int]],
    left: Sequence[tuple[int, tuple[str, str], str]],
    confirmed: Mapping[int, Sequence[str]],
    deviation: float,
    most_explained: int,
) -> str:
    """State what is known of a list of rules: which rows follow what, and what the test of the rules says.

    Parameters
    ----------
    n_rows : sequence of int
        Rows that follow each rule.
    shared : sequence of (rules, int)
        Rows that fit several rules.
    branches : mapping of int to tuple
        By the number of a rule: the segment that follows it, rows there that do, rows there, and the same elsewhere.
    left : sequence of (int, verbs, str)
        Rows that follow none: how many, the verb for one and for many, and what they are.
    confirmed : mapping of int to sequence of str
        By the number of a rule: terms whose coefficients are those of some rule.
    deviation : float
        Up to what change of a label these are confirmed.
    most_explained : int
        The largest number of rows of a further rule that chance explains.
    """
    heading = _LIST_SIZES[len(n_rows)] if len(n_rows) < len(_LIST_SIZES) else f"{len(n_rows)} rules"
    found = [f"{heading}: {_following(n_rows, shared)}."]
    unless = "errors, or which rule a row follows, depend on the columns or on other rows"
    if branches:
        there = (
            f"{k:,} of {count(n, 'rows')} with {where} follow rule {rule}, {share(k_others, n_others)} elsewhere"
            for rule, (where, k, n, k_others, n_others) in branches.items()
        )
        found.append(f"Which rule a row follows depends on the columns: {'; '.join(there)}.")
        unless = "errors depend on the columns or on each other"
    counts = [f"{k:,} {verb[k != 1]} {what}" for k, verb, what in left]
    found.append(f"{listed([counts[0].replace(' ', ' row ' if left[0][0] == 1 else ' rows ', 1), *counts[1:]])}.")
    found.append(
        f"Unless {unless} ({_percent(CONFIDENCE)} each), there are at least {heading[0].lower()}{heading[1:]}, "
        f"and chance and repeated errors explain at most {count(most_explained, 'rows')} of a further one. "
        f"Of the coefficients {_right_in_lists(confirmed, len(n_rows), deviation)}."
    )
    return " ".join(found)


def _following(n_rows: Sequence[int], shared: Sequence[tuple[Sequence[str], int]]) -> str:
    """Say how many rows follow each rule of a list, and how many fit several."""
    first, *others = [f"{count(n, 'rows')} follow rule {k}" for k, n in enumerate(n_rows, 1)]
    follow = listed([first, *(text.replace(" rows follow", " others") for text in others)])
    fits = [f"{count(n, 'rows')} {'fits' if n == 1 else 'fit'} rules {listed(names)}" for names, n in shared]
    if len(fits) > _MOST_SHARED:
        fits = [f"{count(sum(n for _, n in shared), 'rows')} fit more than one"]
    return "; ".join([follow, *([", ".join(fits)] if fits else [])])


def _right_in_lists(confirmed: Mapping[int, Sequence[str]], n_rules: int, deviation: float) -> str:
    """Say which coefficients of a list of rules are confirmed."""
    if not confirmed:
        return "none is confirmed"
    of_all = [f"{listed(terms)} in rule {k}" for k, terms in confirmed.items()]
    if len(confirmed) == n_rules and len({*map(tuple, confirmed.values())}) == 1:
        of_all = [listed(next(iter(confirmed.values())))]
    within = f"up to what changes a label by a standard deviation of {up(deviation)}"
    return f"those of {listed(of_all)} are right, {within}; the others are not confirmed"


def explain_second(n_rows: int, formula: str, test: FurtherRule, *, is_of_some: bool) -> str:
    """Say what is known of a second rule among the wrong rows, which may have been tested in some of them."""
    tested = f" That is said of the rows looked at closely: {test.rows:,} of these do." if is_of_some else ""
    return f"{count(n_rows, 'rows')} follow another rule: {formula}. {beyond_chance(test)}{tested}"


def _fits(c: Certificate) -> Iterator[str]:
    percent = share(c.n_agree, c.n_rows)
    if c.n_active is None:
        yield f"The formula fits {number(c.n_agree)} of {count(c.n_rows, 'rows')} {c.agreement} ({percent})."
    else:
        rows = f"Of {count(c.n_rows, 'rows')} with a label within its limits"
        yield f"{rows} the formula fits {number(c.n_agree)} {c.agreement} ({percent})."
        off = c.n_active - c.n_decisive
        yield (
            f"Where it is between its limits, {count(c.n_decisive, 'rows')} {_verb(c.n_decisive, 'agree')} and "
            f"{number(off)} {_verb(off, 'do')} not."
        )


def _proven(c: Certificate) -> Iterator[str]:
    fits, *others = _fits(c)
    yield (
        f"Proven by counting rows: {fits[0].lower()}{fits[1:-1]}, and no other formula"
        f"{' without the columns left out' if c.thin else ''} fits as many{_apart(c)}."
    )
    yield from others
    assert c.hyperplane_rows is not None
    most = c.hyperplane_rows + c.n_rows - c.n_decisive
    yield (
        f"Another fits at most {count(most, 'rows')}, since at most {number(c.hyperplane_rows)} of those that this one "
        f"fits can be shared ({_BOUNDS[c.bound]})."
    )
    yield from _same(c)
    yield "Not claimed: that the rows it fits are the right ones, or that other data follow it."


def _same(c: Certificate) -> Iterator[str]:
    """Say which formulas are not distinguished."""
    near = f"{up(c.resolution * c.agreement.relative)} of the size of a row"
    if c.agreement.rounded:
        near = f"{up(c.resolution)} times the rounding error allowed in a row"
    where = "on the rows that prove it" if c.verdict is Verdict.PROVEN else "on every row that judges it"
    yield f"Not distinguished from it: formulas that differ by at most {near} {where}."


def _confirmed(c: Certificate) -> Iterator[str]:
    if c.declared:
        yield f"{_DECLARED}. If so, this is the formula with {_percent(c.confidence)} confidence{_among(c)}."
        yield from _fits(c)
        yield (
            "The rows do not refute it: no other rule was found among those that do not agree, and these lie evenly "
            "over the columns."
        )
    else:
        yield from _fits(c)
        yield _either(c, c.wrong_at_most)
    yield from _chosen(c)
    yield from _same(c)


def _chosen(c: Certificate) -> Iterator[str]:
    """Say that labels chose the terms, and what follows from that."""
    if c.n_seen == 0:
        yield "Its terms were chosen on these rows; the confidence accounts for all terms that could have been chosen."
    elif c.n_seen is not None:
        # Where no row tests the numbers inside of a term, all rows count as seen, though the search read some of them.
        labels = f"the labels of {count(c.n_seen, 'rows')}" if c.n_seen < c.n_rows else "labels"
        yield f"Its terms were chosen with {labels}: only other rows can confirm it."


def _majority(c: Certificate, names: Sequence[str] | None) -> Iterator[str]:
    yield from _fits(c)
    yield "More than half of the evidence agrees in every direction."
    if c.eta_max >= 0.001:
        yield _either(c, c.eta_max)
    else:
        yield f"With {_percent(c.confidence)} confidence nothing is excluded yet."
    yield from _chosen(c)
    yield from _weakest(c, names)
    if c.n_seen is None:
        yield from _settled_by(c, names)
    yield from _parts(c, names)
    yield from _as_declared(c, names)


def _plurality(c: Certificate, names: Sequence[str] | None, segment: SegmentFacts | None) -> Iterator[str]:
    yield from _fits(c)
    if c.reason is Reason.PART and c.segment is not None and segment is not None:
        yield from _known_of(c.segment, segment)
    yield "It is the best formula found, but it is not confirmed: treat it as a hypothesis."
    if 2 * c.n_agree <= c.n_rows:
        yield (
            "At most half of the rows agree. That it is the rule rests on these alone: far more than chance explains, "
            "but no majority, so another rule may hold for the others."
        )
    yield from _weakest(c, names)
    yield from _parts(c, names)
    yield from _as_declared(c, names)
    yield from _could_be_declared(c)


def _known_of(segment: Segment, facts: SegmentFacts) -> Iterator[str]:
    """Name the segment in which the formula breaks, and say how much is known of it."""
    yield broken(facts)
    if segment.breach is Breach.MASSART:
        known = f"There some label breaks it with a probability above one half ({_percent(CONFIDENCE)})"
    else:
        known = f"Rows that break it depend on the columns ({_percent(CONFIDENCE)}), and there most do"
    yield f"{known}, so these rows follow another rule or none; they are not listed as wrong."
    if facts.rule:
        yield f"For these rows: {facts.rule}."


def broken(facts: SegmentFacts) -> str:
    """Name the segment in which a rule breaks.

    Examples
    --------
    >>> print(broken(SegmentFacts("kg from 31.5 up", 38, 38, 2962, 297)))
    The rule does not hold for kg from 31.5 up: 38 of 38 rows break it, 10.0 % elsewhere.
    """
    off, others = (
        f"{number(facts.n_wrong)} of {count(facts.n_rows, 'rows')}",
        share(facts.n_wrong_others, facts.n_others),
    )
    return f"The rule does not hold for {facts.where}: {off} {_verb(facts.n_wrong, 'break')} it, {others} elsewhere."


def uneven(facts: SegmentFacts) -> str:
    """Say that rows that break a formula crowd in a segment, of which it is not known that most do.

    Examples
    --------
    >>> print(uneven(SegmentFacts("kg from 3 to 9", 400, 120, 2600, 130)))
    Of 400 rows with kg from 3 to 9, 30.0 % do not follow it, and 5.0 % elsewhere: these rows are not spread evenly.
    """
    off, others = share(facts.n_wrong, facts.n_rows), share(facts.n_wrong_others, facts.n_others)
    return (
        f"Of {count(facts.n_rows, 'rows')} with {facts.where}, {off} do not follow it, and {others} elsewhere: "
        "these rows are not spread evenly."
    )


def _noisy(c: Certificate) -> Iterator[str]:
    yield (
        f"{number(c.n_agree)} of {count(c.n_rows, 'rows')} ({share(c.n_agree, c.n_rows)}) "
        f"{_verb(c.n_agree, 'follow')} the formula up to noise of scale {c.scale:.4g}."
    )
    yield "Labels carry noise, or the rule has another form: the coefficients are estimates, and nothing is proven."


def _nothing(c: Certificate) -> Iterator[str]:
    why = _REASONS.get(c.reason, "").format(
        some=f"{number(c.n_decisive)} of {count(c.n_rows, 'rows')}",
        agree=_verb(c.n_decisive, "agree"),
        inside="" if c.n_active is None else " between its limits",
        chance=number(c.chance),
    )
    if c.reason is Reason.FEW and c.n_decisive <= c.rank:
        rows = count(c.n_decisive, "rows") if c.n_decisive else "no row"
        why = f"the best formula found rests on {rows}, and any table has a formula for so few"
    yield f"No rule was found: {why}."
    clipped = "" if c.n_active is None else ", clipped at its limits"
    yield f"Searched: a linear formula of these columns{clipped}."


def _as_declared(c: Certificate, names: Sequence[str] | None) -> Iterator[str]:
    """Say what the declaration that errors are independent gives, where it does not confirm the formula."""
    known = c.independent
    if known is None:
        return
    if c.reason in (Reason.UNEVEN, Reason.SECOND_RULE):
        yield f"{_DECLARED}; but {_REASONS[c.reason]}: so nothing is confirmed by it."
        return
    if not known.slopes:
        why = "" if known.n_rows else ", for it is about exact linear rules of rows without weights or clusters"
        yield f"{_DECLARED}: that confirms nothing here{why}."
        return
    they, are = ("it", "is") if len(known.slopes) == 1 else ("they", "are")
    s = "" if len(known.slopes) == 1 else "s"
    yield (
        f"{_DECLARED}. If so, the coefficient{s} of {_named(known.slopes, names)} {are} right "
        f"({_percent(c.confidence)}), up to what changes the label by a standard deviation of {up(known.deviation)}: "
        f"were {they} not, {share(known.share, 1)} of the rows would have to lie near one plane, and none has as many."
    )
    if known.rest:
        yield f"Not confirmed: {_named(known.rest, names)}."
    else:
        yield f"The whole formula is known to within {up(known.within)} on each row only: too little to confirm it."


def _could_be_declared(c: Certificate) -> Iterator[str]:
    """Say which declaration may confirm a formula that most rows break."""
    if c.independent is None and c.n_active is None and c.segment is None and 2 * c.n_agree <= c.n_rows:
        yield (
            "If errors are known to depend neither on the columns nor on each other, declare it (--errors "
            "independent): then it may be confirmed."
        )


_DECLARED = (
    "Declared: errors depend neither on the columns nor on each other, and no wrong amount is as frequent as right "
    "labels"
)


def _among(c: Certificate) -> str:
    """Say among which formulas one is confirmed."""
    up_to = ", up to what rounding leaves open" if c.agreement.rounded else ""
    up_to += ", up to what no row determines" if c.undetermined_columns else ""
    return f" (among formulas in these terms{' except those left out' if c.thin else ''}{up_to})"


def _either(c: Certificate, probability: float) -> str:
    """State what the theorem says for labels that are wrong with at most this probability."""
    above = "one half" if probability == 0.5 else _percent(math.floor(1000 * probability + 1e-9) / 1000)
    # Where labels chose the terms, wrong values of the rows that chose could depend on errors in the rows that confirm.
    dependent = "errors were not independent"
    if c.n_seen is not None:
        dependent = "errors in different rows, or their wrong values, depend on each other"
    return (
        f"With {_percent(c.confidence)} confidence: either this is the formula{_among(c)}, "
        f"or some label was wrong with a probability above {above}, or {dependent}."
    )


def _weakest(c: Certificate, names: Sequence[str] | None) -> Iterator[str]:
    piece = _weakest_piece(c)
    if piece is not None:
        off = share(1 - piece.alpha, 1)
        yield f"In the weakest direction ({_direction(piece, names)}), {off} of the evidence disagrees."


def _settled_by(c: Certificate, names: Sequence[str] | None) -> Iterator[str]:
    """Say what keeps a majority from more: the piece that excludes least, be it the weakest or that of fewest rows."""
    if c.support is None or c.support.weakest is _weakest_piece(c):
        yield "Chance is not excluded; more rows in that direction could settle it."
    else:
        piece, judged = c.support.weakest, c.support.n_rows
        few = count(piece.n_rows, "rows") + (f" of the {number(judged)} that judge" if judged < c.n_rows else "")
        tests = f"{_verb(piece.n_rows, 'test')} one direction ({_direction(piece, names)})"
        yield f"Chance is not excluded: only {few} {tests}; more of them could settle it."


def weakest_columns(certificate: Certificate) -> tuple[int, ...]:
    """Return the columns with the largest entries of the direction in which least of the evidence agrees."""
    piece = _weakest_piece(certificate)
    return () if piece is None else _columns(piece)


def _weakest_piece(c: Certificate) -> PieceSupport | None:
    """Return the piece in which least of the evidence agrees; None where all of it does, in every direction."""
    pieces = () if c.support is None else c.support.pieces
    weak = [piece for piece in pieces if piece.alpha < 1 - _ROUNDING]
    return min(weak, key=lambda piece: piece.alpha, default=None)


def _columns(piece: PieceSupport) -> tuple[int, ...]:
    entries = np.round(piece.involved, _TIE_DIGITS)  # columns that take an equal part stay in their order
    order = np.argsort(-entries, kind="stable")[:_MOST_IN_DIRECTION]
    return tuple(int(j) for j in order if entries[j] > _SMALL_ENTRY * entries.max())


def _direction(piece: PieceSupport, names: Sequence[str] | None) -> str:
    columns = _columns(piece)
    others = np.count_nonzero(piece.involved > _ROUNDING) > len(columns)
    return f"{'mostly ' if others else ''}{_named(columns, names)}"


def _parts(c: Certificate, names: Sequence[str] | None) -> Iterator[str]:
    """Say which coefficients are confirmed by themselves; for a link that clips this is not known."""
    if c.support is None or c.n_active is not None:
        return
    doubtful = c.unconfirmed_columns
    open_columns = {j for group in c.undetermined_columns for j in group}
    sure = [j for j in range(c.n_columns) if j not in doubtful and j not in open_columns]
    if sure and doubtful:
        yield (f"Confirmed by themselves: {_named(sure, names)}. Not confirmed: {_named(doubtful, names)}.")


def _also(c: Certificate, names: Sequence[str] | None) -> Iterator[str]:
    """Say what holds for every verdict: what is open, left out, constant, or off by a last place."""
    if c.verdict is Verdict.NONE:
        return
    yield from _left_open(c, names)
    for column, rows in c.thin[:_MOST_NAMES]:
        name = f"The {INTERCEPT}" if names is not None and column >= len(names) else name_of(column, names)
        yield f"{name} rests on {count(rows, 'rows')} and was left out."
    if len(c.thin) > _MOST_NAMES:
        yield f"So were {len(c.thin) - _MOST_NAMES} more columns."
    if c.constant:
        always = "The column is constant: e" if c.n_agree == c.n_rows else "E"
        yield f"{always}very row that agrees has the same value."
    if c.n_last_place:
        yield f"{count(c.n_last_place, 'rows')} {_verb(c.n_last_place, 'are')} off by one unit of the last place."


def _left_open(c: Certificate, names: Sequence[str] | None) -> Iterator[str]:
    """Say which coefficients no row determines, and which are determined together only."""
    thin = {column for column, _ in c.thin}
    alone = [group[0] for group in c.undetermined_columns if len(group) == 1]
    unused = [column for column in alone if column not in thin]
    linked = [_named(group, names) for group in c.undetermined_columns if len(group) > 1]
    if unused:
        s, them = ("", "it") if len(unused) == 1 else ("s", "them")
        yield f"Nothing determines the coefficient{s} of {_named(unused, names)}: no row that agrees uses {them}."
    if linked:
        more = f", and so do {len(linked) - 2} more groups of columns" if len(linked) > 2 else ""
        yield (
            f"In the rows that agree, {'; '.join(linked[:2])} always move together{more}: only combinations of their "
            "coefficients are determined."
        )


def beyond_chance(test: FurtherRule) -> str:
    """Say what the test of one more rule claims.

    Examples
    --------
    >>> print(beyond_chance(FurtherRule(rows=474, needed=64))[54:])
    chance and repeated errors give no formula as many as 64 rows (99.9 %).
    """
    rows = f"{count(test.needed, 'rows')} ({_percent(CONFIDENCE)})"
    unless = "Unless errors depend on the columns or on each other"
    return f"{unless}, chance and repeated errors give no formula as many as {rows}."


def _apart(c: Certificate) -> str:
    return ", apart from those that differ only in what is left open" if c.undetermined_columns else ""


def name_of(column: int, names: Sequence[str] | None) -> str:
    """Return what a column is called in a sentence."""
    if names is None:
        return f"column {column}"
    return names[column] if column < len(names) else f"the {INTERCEPT}"


def _named(columns: Iterable[int], names: Sequence[str] | None) -> str:
    return listed([name_of(column, names) for column in columns])


def listed(names: Sequence[str]) -> str:
    """Write a few names in a row: "a, b and c"."""
    if len(names) > _MOST_NAMES:
        names = [*names[: _MOST_NAMES - 1], f"{len(names) - _MOST_NAMES + 1} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def share(part: float, whole: float) -> str:
    """Write a share in percent; it reads 0 or 100 only if it is.

    Examples
    --------
    >>> share(1, 3), share(1, 10_000), share(9_999, 10_000), share(0, 0)
    ('33.3 %', '< 0.1 %', '> 99.9 %', '0 %')
    """
    if part == 0 or whole == 0:
        return "0 %"
    if part == whole:
        return "100 %"
    percent = 100 * part / whole
    return "< 0.1 %" if percent < 0.05 else "> 99.9 %" if percent >= 99.95 else f"{percent:.1f} %"


def count(quantity: float, things: str) -> str:
    """Write how many there are of a thing whose first word has a plural: "1 row", "2 rows that do not follow"."""
    if quantity == 1:
        things = re.sub(r"rows\b", "row", things, count=1).replace("that do not follow", "that does not follow")
    return f"{number(quantity)} {things}"


def cell_of(value: object) -> str:
    """Write a cell of a table."""
    if isinstance(value, float):
        return f"{value:.10g}"
    return "" if value is None else str(value)


def number(value: float) -> str:
    """Write a count, or a sum of weights.

    Examples
    --------
    >>> number(12345.0), number(0.5)
    ('12,345', '0.5')
    """
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.6g}" if value < 1e6 else f"{value:,.1f}"


def _verb(quantity: float, verb: str) -> str:
    if quantity != 1:
        return verb
    return {"are": "is", "do": "does"}.get(verb, f"{verb}s")


def _percent(probability: float) -> str:
    return f"{100 * probability:.10g} %"


def up(value: float) -> str:
    """Write a number with two digits, rounded up."""
    if not 0 < value < math.inf:
        return f"{value:g}"
    step = 10.0 ** (math.floor(math.log10(value)) - 1)
    upper = math.ceil(value / step) * step
    return f"{upper:,.0f}" if 100 <= upper < 1e9 else f"{upper:.2g}"


class Notice(str):
    """A sentence for a reader; programs look at its code and its values.

    Attributes
    ----------
    code : str
        A key of `CODES`.
    values : dict
    """

    __slots__ = ("code", "values")
    code: str
    values: dict[str, Any]

    def __new__(cls, code: str, **values: Any) -> Notice:
        """Write the sentence."""
        self = super().__new__(cls, CODES[code](**values))
        self.code, self.values = code, values
        return self

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]:
        return (self.code,), self.values


def _of_rows(n: int, one: str, many: str) -> str:
    return f"{count(n, 'rows')} {one if n == 1 else many}"


def _counted(n_total: int, n_judged: int, n_wrong: int, n_apart: int) -> tuple[str, str]:
    found, left = counted(n_total, n_judged, n_wrong)
    return found + (f", {n_apart:,} set apart" if n_apart else ""), left


def _too_little_known(verdict: str, required: str, is_saved: bool, where: str | None) -> str:
    broken = "" if where is None else f" It does not hold for {where}."
    return f"The rule is {verdict}{' where it was found' if is_saved else ''}, less than {required}.{broken}"


def _too_many_unjudged(max_unjudged: float, **counts: int) -> str:
    found, left = _counted(**counts)
    return f"{left}, more than {_percent(max_unjudged)} (--max-unjudged); {found}."


def _passed(max_wrong: float | None, max_unjudged: float | None, **counts: int) -> str:
    found, left = _counted(**counts)
    if counts["n_judged"] < counts["n_total"] and max_unjudged is not None:
        left += f", at most {_percent(max_unjudged)} allowed"
    if max_wrong is not None:
        return f"{found}, at most {_percent(max_wrong)} allowed; {left}."
    return f"{found}{'; no --max-wrong given: nothing fails' if counts['n_wrong'] else ''}; {left}."


CODES: dict[str, Callable[..., str]] = {
    "after wrong": lambda n: (
        _of_rows(n, "agrees once the row before it is", "agree once the rows before them are")
        + " put right: right rows after wrong ones, and not called wrong."
    ),
    "among": lambda notice: f"Among these: {notice[0].lower()}{notice[1:]}",
    "another table": lambda n_agree, n_judged: (
        f"Only {n_agree:,} of {count(n_judged, 'rows')} follow the saved rule: it may not be the rule of this table."
    ),
    "blank": lambda column, n, n_agree: (
        f'Read missing values of "{column}" as 0: '
        + (f"{n_agree:,} of {n:,} rows without a value follow" if n > 1 else "the row without a value follows")
        + " the rule then."
    ),
    "broken": broken,
    "closely": lambda n, n_rows: f"Looked closely at {n:,} of {n_rows:,} rows, and compared all of them with the rule.",
    "exact only": lambda: "Given terms are looked for in exact rules only: --inliers noisy estimates them up to noise.",
    "first rows": lambda n: _of_rows(n, "left out: it has", "left out: they have") + " no row before.",
    "listed": lambda n: f"Listed are the {n:,} wrong rows that are farthest off.",
    "no value": lambda n: _of_rows(n, "has", "have") + " no implied value: a term cannot be computed there.",
    "not apart": lambda where: f"The rule does not hold for {where}; this table does not show which rows these are.",
    "not followed": lambda: "Most of these rows do not follow the saved rule: no values are replaced",
    "of no rule": lambda: (
        "A list of rules does not say which of them a wrong row should follow: no values are replaced"
    ),
    "one rule": lambda n_found, needed: (
        f"No list of rules: no {'second rule' if n_found else 'rule'} passed the test of a list, which asks for "
        f"{count(needed, 'rows')} or more. This is the fit of one rule."
    ),
    "passed": _passed,
    "rests on others": lambda n: (
        f"{count(n, 'wrong rows')} cannot be put right: what is implied for {'it' if n == 1 else 'them'} rests on "
        "other rows, which may be wrong."
    ),
    "rewritten": lambda why: f"All cells of the fixed table were written anew (15.00 may have become 15), for {why}.",
    "too little known": _too_little_known,
    "too many unjudged": _too_many_unjudged,
    "too many wrong": lambda max_wrong, **counts: "{}, more than {limit}; {}.".format(
        *_counted(**counts), limit=_percent(max_wrong)
    ),
    "total row": lambda place, text: (
        f"Row {place} says {text}, and is read as a row: totals are left out only of tables that fit into memory "
        "(--max-memory)."
    ),
    "uncertain": lambda verdict: f"The rule is {verdict}, not certain: no values are replaced",
    "uneven": uneven,
    "unneeded": lambda columns, rule="the rule does not need": (
        f"Left out {', '.join(f'{chr(34)}{name}{chr(34)}' for name in columns)}: {rule} "
        f"{'it' if len(columns) == 1 else 'them'}, and rows without a value there would not be judged."
    ),
}
"""The sentence for each code, given its values."""
