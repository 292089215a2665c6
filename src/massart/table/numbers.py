"""Numbers as people write them: ``1,234.50``, ``1.234,50 €``, ``(1 234)``, ``CHF 5.-``, ``12 %``.

A text is stripped of what surrounds a number, then matched against two grammars, one with a decimal point and one with
a decimal comma. A column speaks for the grammar that more of its cells fit; cells such as ``1,234`` fit both, and where
nothing else decides, the comma parts thousands. Everything works on the distinct texts of a column.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from massart.rows import BoolArray, FloatArray
from massart.table.units import same_unit, units_of
from massart.table.views import flags, view

LARGEST_EXACT = 2**53
"""Integers beyond it have no exact float64."""

_ABBREVIATIONS = ("na", "n/a", "n.a.", "n.a", "#n/a", "#n/a n/a", "#na", "<na>", "nan", "-nan", "nat", "null", "none")
MISSING = (
    *("", "-", "--", "---", "?", "\u2013", "\u2014"),
    *("#REF!", "#DIV/0!", "#VALUE!", "#NUM!", "#NAME?", "#NULL!", "NaN", "-NaN", "NaT"),
    *(form for word in _ABBREVIATIONS for form in dict.fromkeys((word, word.upper(), word.capitalize()))),
)
"""Spellings of a value that is not there; `is_missing` knows them in any case."""

WORDS_FOR_MISSING = ("nil", "missing", "unknown")
"""Words that mean the same among numbers, but may be an answer among others."""

_CODES = (
    "USD|EUR|GBP|CHF|JPY|CNY|RMB|INR|CAD|AUD|NZD|SGD|HKD|TWD|KRW|SEK|NOK|DKK|ISK|PLN|CZK|HUF|RON|BGN|RUB|UAH|TRY|ILS|"
    "BRL|MXN|ARS|CLP|COP|PEN|ZAR|NGN|KES|EGP|AED|SAR|THB|IDR|MYR|PHP|VND|PKR|BDT|LKR"
)
_CURRENCY = rf"(?:[A-Z]{{0,3}}\p{{Sc}}|(?i:{_CODES}|kr\.?|s?fr\.|rs\.?|zł|kč|ft|lei|euros?|dollars?))"
_SAME_CURRENCY = {
    **dict.fromkeys(("€", "EURO", "EUROS"), "EUR"),
    **dict.fromkeys(("$", "US$", "DOLLAR", "DOLLARS"), "USD"),
    **dict.fromkeys(("£",), "GBP"),
    **dict.fromkeys(("FR", "SFR"), "CHF"),
    **dict.fromkeys(("₹", "RS"), "INR"),
    "ZŁ": "PLN",
    "KČ": "CZK",
    "FT": "HUF",
    "LEI": "RON",
    "₽": "RUB",
    "₺": "TRY",
    "₪": "ILS",
}
# Each step needs a sign that few texts hold, so that most steps need not look at them closely; "" is in all.
_TYPOGRAPHY = (
    ("", "[\u2212\u2012\u2013\u2014\ufe63\uff0d]", "-"),
    ("", "[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]", " "),
    ("", "[\u2018\u2019\u02bc\u00b4]", "'"),
    ("\u221e", "^([-+]?)\u221e$", r"\1inf"),
)
_FOOTNOTE = ("", "([0-9][.,]?)[ ]*(?:[*\u2020\u2021]+|[\u00b9\u00b2\u00b3\u2074-\u2079]+)$", r"\1")  # 12.5*
_STEPS = (
    _FOOTNOTE,
    ("(", r"^([^()\-]*)\(\s*([^()\-]*?)\s*\)([^()\-]*)$", r"-\1\2\3"),  # accountants write -5 as (5)
    ("-", r"[.,]-{1,2}(\D*)$", r"\1"),  # CHF 5.- has no cents
    ("", rf"^([-+]?)\s*{_CURRENCY}\s*", r"\1"),
    ("", rf"\s*{_CURRENCY}\s*([-+]?)$", r"\1"),
    (" ", r"^([-+])\s+", r"\1"),
    ("%", r"\s*%$", ""),
    ("-", r"^([^-+]*?)\s*-$", r"-\1"),
)
_SIGNS = tuple(step for step in _STEPS if "Sc" not in step[1] and step[0] != "%")
_CLOCK = r"^[-+]?\d+:[0-5]\d(?::[0-5]\d)?$"
_INFINITE = r"^[-+]?(?i:inf|infinity)$"
_PLAIN = r"^[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?$"
_INTEGER = r"^[-+]?\d{16,}$"


@dataclass(frozen=True, slots=True)
class Numbers:
    """Distinct texts read as numbers."""

    values: FloatArray  # (k,), NaN where a text is missing or no number
    # (k,), a text that is neither is a fault in a column of numbers; infinity counts as a number here
    missing: BoolArray
    is_number: BoolArray
    inexact: BoolArray  # (k,), integers that float64 does not hold
    plain: BoolArray  # (k,), texts that any program would read in the same way
    decimal: str  # the decimal mark, "." or ","
    ambiguous: bool  # whether commas were taken to part thousands for want of evidence
    percent: bool  # whether there were percent signs, which are dropped
    bare: BoolArray  # (k,), numbers without the unit that was asked for


def read_numbers(
    texts: pa.Array,
    counts: NDArray[np.int64],
    decimal: str | None = None,
    hint: str | None = None,
    unit: str | None = None,
) -> Numbers:
    """Read distinct texts, without blanks around them, as numbers, given how often each occurs.

    The texts decide on the decimal mark if it is not given, and where they do not, the hint does. Numbers that a unit
    may follow have no currencies and percent signs.

    Examples
    --------
    >>> found = read_numbers(pa.array(["1.234,50 €", "(12)", "-"]), np.ones(3, dtype=np.int64))
    >>> found.values.tolist(), found.decimal
    ([1234.5, -12.0, nan], ',')
    """
    missing = is_missing(texts, words=True)
    plain = flags(pc.match_substring_regex(texts, _PLAIN))
    clean, has_unit = texts, np.zeros(len(texts), dtype=bool)
    if not plain.all():
        clean = in_ascii(texts)
        if unit is not None:
            clean, has_unit = _without_unit(clean, unit)
        clean = _without_surroundings(clean, _SIGNS if unit is not None else _STEPS)
    fits = {mark: flags(pc.match_substring_regex(clean, _grammar(mark))) & ~missing for mark in ".,"}
    support = {mark: int(counts[fits[mark]].sum()) for mark in ".,"}
    tie = support["."] == support[","]
    chosen = decimal or (hint or "." if tie else max(support, key=lambda mark: support[mark]))
    is_number = fits[chosen]
    if not (is_number | missing).all():
        is_number = is_number | (flags(pc.match_substring_regex(clean, _INFINITE)) & ~missing)
    clocks = flags(pc.match_substring_regex(clean, _CLOCK))
    bare = pc.replace_substring_regex(clean, "[ ',]" if chosen == "." else "[ '.]", "")
    if chosen == ",":
        bare = pc.replace_substring(bare, ",", ".")
    values = _cast(bare, is_number)
    if clocks.any():  # 7:45 is 7.75
        values[clocks], is_number = (
            [_of_clock(text) for text in clean.filter(pa.array(clocks)).to_pylist()],
            is_number | clocks,
        )
    return Numbers(
        values=values,
        missing=missing,
        is_number=is_number,
        inexact=_inexact(bare, is_number & (np.abs(values) >= LARGEST_EXACT)),
        plain=plain,
        decimal=chosen,
        ambiguous=decimal is None and hint is None and tie and _holds(clean, ",", is_number),
        percent=unit is None and _holds(texts, "%", is_number),
        bare=is_number & ~has_unit if unit is not None else has_unit,
    )


def currencies_in(texts: pa.Array, counts: NDArray[np.int64]) -> dict[str, int]:
    """Return the currencies that texts name, one name for each, with how many rows have it, the most frequent first.

    Examples
    --------
    >>> currencies_in(pa.array(["5 €", "EUR 7", "$3", "12"]), np.array([4, 1, 2, 9]))
    {'EUR': 5, 'USD': 2}
    """
    clean = in_ascii(texts)
    found = pc.extract_regex(clean, rf"^[^\d]*?(?P<a>{_CURRENCY})?[^\p{{L}}\p{{Sc}}]*(?P<b>{_CURRENCY})?[-+)]*$")
    totals: dict[str, int] = {}
    for part in ("a", "b"):
        coded = pc.dictionary_encode(pc.struct_field(found, part))
        codes = view(pc.fill_null(coded.indices, -1))
        for place, text in enumerate(coded.dictionary.to_pylist()):
            if text:
                name = text.strip().upper().rstrip(".")
                name = _SAME_CURRENCY.get(name, name)
                totals[name] = totals.get(name, 0) + int(counts[codes == place].sum())
    return dict(sorted(totals.items(), key=lambda pair: (-pair[1], pair[0])))


def is_missing(texts: pa.Array, words: bool = False) -> BoolArray:
    """Mark the texts that mean that there is no value, in any case; with `words` those of `WORDS_FOR_MISSING`, too."""
    spellings = {spelling.lower() for spelling in MISSING + (WORDS_FOR_MISSING if words else ())}
    return flags(pc.is_in(pc.utf8_lower(texts), value_set=pa.array(sorted(spellings), texts.type)))


def in_ascii(texts: pa.Array) -> pa.Array:
    """Return texts with minus signs, blanks, apostrophes and infinity as ASCII has them."""
    return texts if pc.all(pc.string_is_ascii(texts)).as_py() else _without_surroundings(texts, _TYPOGRAPHY)


def _without_unit(texts: pa.Array, unit: str) -> tuple[pa.Array, BoolArray]:
    """Return texts without a unit, and which of them had it."""
    found = units_of(texts)
    wanted = np.array([*(same_unit(name, unit) for name in found.names), False], dtype=bool)
    has_unit = wanted[found.codes]
    return pc.if_else(pa.array(has_unit), found.numbers, texts), has_unit


def _without_surroundings(texts: pa.Array, steps: tuple[tuple[str, str, str], ...]) -> pa.Array:
    """Return texts without what the steps take away: a plain minus is in front where there is one."""
    for sign, pattern, replacement in steps:
        if not sign or pc.any(pc.match_substring(texts, sign)).as_py():
            texts = pc.replace_substring_regex(texts, pattern, replacement)
    return texts


def _holds(texts: pa.Array, sign: str, which: BoolArray) -> bool:
    return bool((flags(pc.match_substring(texts, sign)) & which).any())


def _grammar(decimal: str) -> str:
    """Return the pattern of a number with that decimal mark."""
    mark, other = ("\\.", ",") if decimal == "." else (",", "\\.")
    parted = "|".join(rf"\d{{1,3}}(?:{part}\d{{3}})+" for part in (other, " ", "'"))
    indian = rf"\d{{1,2}}(?:{other}\d{{2}})+{other}\d{{3}}"
    return rf"^[-+]?(?:(?:\d+|{parted}|{indian})(?:{mark}\d*)?|{mark}\d+)(?:[eE][-+]?\d+)?$"


def _inexact(texts: pa.Array, large: BoolArray) -> BoolArray:
    """Mark the integers beyond 2**53 among large numbers."""
    if not large.any():
        return large
    marked = flags(pc.match_substring_regex(texts, _INTEGER)) & large
    for place in np.flatnonzero(marked):
        marked[place] = abs(Decimal(texts[int(place)].as_py())) > LARGEST_EXACT
    return marked


def _of_clock(text: str) -> float:
    """Return how many hours, or minutes, a clock shows: what stands first counts.

    Examples
    --------
    >>> _of_clock("7:45"), _of_clock("-0:30:00")
    (7.75, -0.5)
    """
    parts = [int(part) for part in text.lstrip("+-").split(":")]
    value = sum(part * 60.0**-place for place, part in enumerate(parts))
    return -value if text.startswith("-") else value


def _cast(texts: pa.Array, which: BoolArray) -> FloatArray:
    values = np.full(len(texts), np.nan)
    if which.any():
        # Arrow reads decimals as Python does: the nearest float64.
        numbers = pc.cast(texts.filter(pa.array(which)), pa.float64())
        values[which] = view(numbers)
    return values
