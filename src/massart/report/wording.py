"""What the page says, in words for those who did not fit the formula; never more than the certificate holds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from massart.certificate import Bound, Certificate, Verdict


class Tone(Enum):
    """How far the reader may rely on the formula; the value names its colour in the style sheet."""

    PROVEN = "proven"
    CONFIRMED = "confirmed"
    ESTIMATED = "estimated"
    UNCONFIRMED = "unconfirmed"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict for the eye.

    Attributes
    ----------
    word, sign : str
        What the badge says, and the sign beside it.
    tone : Tone
    meaning : str
        One or two sentences for a reader who is no mathematician.
    off : str
        What rows are called that do not follow the formula: "wrong" only if the formula can be relied on.
    """

    word: str
    sign: str
    tone: Tone
    meaning: str
    off: str


_WRONG = "wrong rows"
_OFF = "rows that do not follow"
_PIECES = re.compile(r"`[^`]*`|[^`]+|`")
_BETWEEN_TERMS = re.compile(r" (?=[+-] )")


def judge(certificate: Certificate) -> Judgement:
    """Say what a verdict means."""
    match certificate.verdict:
        case Verdict.PROVEN:
            return Judgement("Proven", "✓", Tone.PROVEN, _sentence(_proof(certificate)), _WRONG)
        case Verdict.MAJORITY:
            return Judgement("Majority", "✓", Tone.CONFIRMED, _majority(certificate), _WRONG)
        case Verdict.PLURALITY:
            meaning = (
                "This is the best formula found, but no clear majority of the rows confirms it: "
                "treat it as a hypothesis, and check it before you rely on it."
            )
            return Judgement("Not confirmed", "?", Tone.UNCONFIRMED, meaning, _OFF)
        case Verdict.NOISY:
            return Judgement("Estimate", "≈", Tone.ESTIMATED, _estimate(certificate), _OFF)
        case Verdict.UNIDENTIFIABLE:
            sure = certificate.determined in (Verdict.PROVEN, Verdict.MAJORITY)
            return Judgement("Partly open", "◐", Tone.OPEN, _open(certificate), _WRONG if sure else _OFF)


def _sentence(claim: str) -> str:
    return f"{claim[0].upper()}{claim[1:]}."


def _proof(certificate: Certificate) -> str:
    other = "no other formula"
    if certificate.determined is not certificate.verdict:
        other += ", up to what is open,"
    elif certificate.tolerance:
        other = "no noticeably different formula"
    claim = f"{other} fits as many rows of this table"
    if certificate.bound is Bound.ASSUMED:
        return f"{claim}, provided that its rows are in general position"
    if certificate.confidence < 1:
        return f"{claim}, with a confidence of {100 * certificate.confidence:g} %"
    return claim


def _majority(certificate: Certificate) -> str:
    how = f"to within {certificate.tolerance:g}" if certificate.tolerance else "exactly"
    return (
        f"More than half of the rows follow this formula {how}, and they determine every coefficient. "
        "It is right if fewer than half of the answers are wrong; "
        "it is not proven that no other formula fits as many rows."
    )


def _estimate(certificate: Certificate) -> str:
    meaning = "The rows follow this formula up to noise, not exactly: its numbers are estimates, and none is proven."
    if certificate.rank < certificate.n_columns:
        meaning += " Some of them are not determined at all."
    return meaning


def _open(certificate: Certificate) -> str:
    meaning = "The rows that follow this formula do not determine every coefficient: those named below are open. "
    match certificate.determined:
        case Verdict.PROVEN:
            return f"{meaning}The rest is proven: {_proof(certificate)}."
        case Verdict.MAJORITY:
            return f"{meaning}The rest is confirmed by a majority of the rows, but not proven."
        case Verdict.NOISY:
            return f"{meaning}The rest is an estimate from rows that follow it up to noise."
        case _:
            return f"{meaning}The rest is the best that was found: no clear majority of the rows confirms it."


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


def count(number: int, things: str) -> str:
    """Write how many there are of a thing whose first word has a plural: "1 row", "2 rows that do not follow"."""
    if number == 1:
        things = re.sub(r"rows\b", "row", things, count=1).replace("that do not follow", "that does not follow")
    return f"{number:,} {things}"


def pieces(formula: str) -> list[str]:
    """Cut the text of a formula before each sign, where a line may break; names in backquotes are not cut."""
    parts = [""]
    for token in _PIECES.findall(formula):
        first, *rest = [token] if token.startswith("`") else _BETWEEN_TERMS.split(token)
        parts[-1] += first
        parts += rest
    return parts
