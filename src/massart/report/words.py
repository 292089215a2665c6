"""What a certificate says, in words that are literally true: for terminal, JSON, notebook and page alike."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from massart.certificate.assumption import CONFIDENCE
from massart.certificate.mechanisms import FurtherRule
from massart.certificate.segments import Breach, Segment
from massart.certificate.support import PieceSupport
from massart.certificate.verdict import Bound, Certificate, Reason, Verdict
from massart.rules.formula import INTERCEPT

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
_MOST_NAMES = 8
_MOST_IN_DIRECTION = 3
_SMALL_ENTRY, _ROUNDING = 0.1, 1e-9  # of the largest entry of a direction: not worth a name, and nothing at all
_TIE_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict for the eye.

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
    """A segment of a table for the eye.

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


def judgement(certificate: Certificate, where: str = "") -> Judgement:
    """Say in short what a verdict means; `where` names the segment in which the formula breaks, if it is known."""
    verdict = certificate.verdict
    meaning = MEANINGS[verdict] + (_apart(certificate) if verdict is Verdict.PROVEN else "")
    if where and certificate.reason is Reason.PART:
        meaning = f"the rule does not hold for {where}: another rule may hold there, or none"
    if certificate.declared:
        meaning = "it is the formula if errors depend neither on the columns nor on each other, as declared"
    off = "wrong rows" if verdict.stands else "rows that do not follow"
    return Judgement(verdict.name, _SIGNS[verdict], f"{meaning[0].upper()}{meaning[1:]}.", off)


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


def _fits(c: Certificate) -> Iterator[str]:
    possible = "" if c.n_active is None else " with a possible label"
    yield (
        f"The formula fits {number(c.n_agree)} of {count(c.n_rows, 'rows')}{possible} {c.agreement} "
        f"({share(c.n_agree, c.n_rows)})."
    )
    if c.n_active is not None:
        off = c.n_active - c.n_decisive
        yield (
            f"Where it is between its limits, {count(c.n_decisive, 'rows')} {_verb(c.n_decisive, 'agree')} and "
            f"{number(off)} {_verb(off, 'do')} not."
        )


def _proven(c: Certificate) -> Iterator[str]:
    fits, *others = _fits(c)
    yield (
        f"Proven by counting rows: {fits[0].lower()}{fits[1:-1]}, and no other formula{_without(c)} fits as many"
        f"{_apart(c)}."
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


def _without(c: Certificate) -> str:
    return " without the columns left out" if c.thin else ""


def _same(c: Certificate) -> Iterator[str]:
    """Say which formulas are not distinguished."""
    near = (
        f"{up(c.resolution)} times what a row that agrees may be off"
        if c.agreement.rounded
        else f"{up(c.resolution * c.agreement.relative)} of the size of a row"
    )
    where = "the rows that prove it" if c.verdict is Verdict.PROVEN else "every row that judges it"
    yield f"Formulas that differ from it by at most {near} on {where} count as the same."


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
    """Say that labels had a say in the terms, and what that costs."""
    if c.n_seen == 0:
        yield "Its terms were chosen on these rows: what may fail is shared by all terms that could have been chosen."
    elif c.n_seen is not None:
        # How many others judge is another matter: of many rows, and of a stream, a part does.
        yield f"Its terms were chosen with the labels of {count(c.n_seen, 'rows')}: only other rows can confirm it."


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
    if c.chance:
        yield (
            f"When labels are shuffled over the rows, some formula fits about {number(c.chance)}, not counting those "
            "with the most frequent value."
        )
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
    why = _REASONS.get(c.reason, "")
    if c.reason is Reason.MODE:
        why = "the best formula found explains hardly more rows than the most frequent value does"
    elif c.reason is Reason.CHANCE:
        between = "" if c.n_active is None else " between its limits"
        why = (
            f"{number(c.n_decisive)} of {count(c.n_rows, 'rows')} {_verb(c.n_decisive, 'agree')} with the best formula "
            f"found{between}; but not counting rows with the most frequent value, these are not clearly more than the "
            f"{number(c.chance)} or so with which some formula agrees when the labels are shuffled over the rows"
        )
    elif c.reason is Reason.FEW and c.n_decisive > c.rank:
        inside = "" if c.n_active is None else " between its limits"
        agree = f"{number(c.n_decisive)} of {count(c.n_rows, 'rows')}"
        why = f"no more than {agree} agree with the best formula found{inside}"
    elif c.reason is Reason.FEW:
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
        f"{_DECLARED}. If so, the coefficient{s} of {listed([name_of(j, names) for j in known.slopes])} {are} right "
        f"({_percent(c.confidence)}), up to what changes the label by a standard deviation of {up(known.deviation)}: "
        f"were {they} not, {share(known.share, 1)} of the rows would have to lie near one plane, and none has as many."
    )
    if known.rest:
        yield f"Not confirmed: {listed([name_of(j, names) for j in known.rest])}."
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
    up_to += ", up to what no row tells" if c.undetermined_columns else ""
    return f" (among formulas in these terms{' but those left out' if c.thin else ''}{up_to})"


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
        tested = f"{few} {_verb(piece.n_rows, 'test')} another ({_direction(piece, names)})"
        yield f"Chance is not excluded, since only {tested}; more of them could settle it."


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
    return f"{'mostly ' if others else ''}{listed([name_of(j, names) for j in columns])}"


def _parts(c: Certificate, names: Sequence[str] | None) -> Iterator[str]:
    """Say which coefficients are confirmed by themselves; of a link that clips nothing of the kind is known."""
    if c.support is None or c.n_active is not None:
        return
    doubtful = c.unconfirmed_columns
    open_columns = {j for group in c.undetermined_columns for j in group}
    sure = [j for j in range(c.n_columns) if j not in doubtful and j not in open_columns]
    if sure and doubtful:
        yield (
            f"Confirmed by themselves: {listed([name_of(j, names) for j in sure])}. "
            f"Not confirmed: {listed([name_of(j, names) for j in doubtful])}."
        )


def _also(c: Certificate, names: Sequence[str] | None) -> Iterator[str]:
    """Say what is so whatever the verdict: what is open, left out, constant, or off by a last place."""
    if c.verdict is Verdict.NONE:
        return
    thin = {column for column, _ in c.thin}
    alone = [group[0] for group in c.undetermined_columns if len(group) == 1]
    unused = [name_of(column, names) for column in alone if column not in thin]
    linked = [listed([name_of(j, names) for j in group]) for group in c.undetermined_columns if len(group) > 1]
    if unused:
        s, them = ("", "it") if len(unused) == 1 else ("s", "them")
        yield f"Nothing determines the coefficient{s} of {listed(unused)}: no row that agrees uses {them}."
    if linked:
        more = f", and so do {len(linked) - 2} more groups of columns" if len(linked) > 2 else ""
        yield (
            f"In the rows that agree, {'; '.join(linked[:2])} always move together{more}: only combinations of their "
            "coefficients are determined."
        )
    for column, rows in c.thin[:_MOST_NAMES]:
        yield f"{name_of(column, names)} rests on {count(rows, 'rows')} and was left out."
    if len(c.thin) > _MOST_NAMES:
        yield f"So were {len(c.thin) - _MOST_NAMES} more columns."
    if c.constant:
        always = "The column is constant: e" if c.n_agree == c.n_rows else "E"
        yield f"{always}very row that agrees has the same value."
    if c.n_last_place:
        yield f"{count(c.n_last_place, 'rows')} {_verb(c.n_last_place, 'are')} off by one unit of the last place."


def beyond_chance(test: FurtherRule) -> str:
    """Say what the test of one more rule claims.

    Examples
    --------
    >>> print(beyond_chance(FurtherRule(rows=474, needed=64, share=0.01, confidence=0.9995))[54:])
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
