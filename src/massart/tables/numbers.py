"""Numbers and dates as people write them: ``1,234.50``, ``1.234,50 €``, ``(1 234)``, ``2.7 mg/L``, ``1.5.2024``.

A text is stripped of what surrounds a number, then matched against two grammars, one with a decimal point and one with
a decimal comma. A column speaks for the grammar that more of its cells fit; cells such as ``1,234`` fit both, and where
nothing else decides, the comma separates thousands. Everything works on the distinct texts of a column.

Units: after a space any short word may be a unit, for a unit is known by being the same in all cells of a column.
Without a space only known units count, for ``12B`` and ``3rd`` have none.

Dates are days since 1970-01-01, exactly or not at all. A text is a date where its year has four digits and all three
parts are numbers with one sign between them; a time of the day behind it has to be midnight, in no time zone or UTC.
Whether the day or the month comes first is decided by the column.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from massart.rows import BoolArray, FloatArray
from massart.tables.errors import quote
from massart.tables.table import LARGEST_EXACT, Table, decoded, filled, flags, levels_in, matches, view

_ABBREVIATIONS = ("na", "n/a", "n.a.", "n.a", "#n/a", "#n/a n/a", "#na", "<na>", "nan", "-nan", "nat", "null", "none")
MISSING = (
    *("", "-", "--", "---", "?", "\u2013", "\u2014"),
    *("#REF!", "#DIV/0!", "#VALUE!", "#NUM!", "#NAME?", "#NULL!", "NaN", "-NaN", "NaT"),
    *(form for word in _ABBREVIATIONS for form in dict.fromkeys((word, word.upper(), word.capitalize()))),
)
"""Spellings of a value that is not there; `is_missing` knows them in any case."""

NEARLY_ALL = 0.9
"""From this share of numbers on, a text among them is a mistake and not a level: benchmarks/messy.py, odd_cells. And a
row that lacks what this share of the rows have may be a total: sap_bars."""

WORDS_FOR_MISSING = ("nil", "missing", "unknown")
"""Words that mean the same among numbers, but may be an answer among others."""

TOTAL = (
    r"^\s*\W*(?:(?:grand|sub|over ?all|end|zwischen|gesamt|general)[ -]?)?"
    r"(?:totals?|totale[ns]?|totaux|sums?|summen?|somm[ae]|sumas?|gesamt|insgesamt|saldo|balance|kontostand|ensemble|"
    r"average|mean|mittelwert|moyenne|media|promedio|durchschnitt)(?:\W.*)?$"
)
"""What a row that sums up others begins with, in English, German, French, Spanish and Italian."""

_CODES = (
    "USD|EUR|GBP|CHF|JPY|CNY|RMB|INR|CAD|AUD|NZD|SGD|HKD|TWD|KRW|SEK|NOK|DKK|ISK|PLN|CZK|HUF|RON|BGN|RUB|UAH|TRY|ILS|"
    "BRL|MXN|ARS|CLP|COP|PEN|ZAR|NGN|KES|EGP|AED|SAR|THB|IDR|MYR|PHP|VND|PKR|BDT|LKR"
)
_CURRENCY = rf"(?:[A-Z]{{0,3}}\p{{Sc}}|(?i:{_CODES}|kr\.?|s?fr\.|rs\.?|zł|kč|ft|lei|euros?|dollars?))"
_SAME_CURRENCY = {
    sign: code
    for code, signs in (
        *(("EUR", "€ EURO EUROS"), ("USD", "$ US$ DOLLAR DOLLARS"), ("GBP", "£"), ("CHF", "FR SFR"), ("INR", "₹ RS")),
        *(("PLN", "ZŁ"), ("CZK", "KČ"), ("HUF", "FT"), ("RON", "LEI"), ("RUB", "₽"), ("TRY", "₺"), ("ILS", "₪")),
    )
    for sign in signs.split()
}
# Each step needs a sign that few texts hold, so that most steps need not look at them closely; "" is in all.
_TYPOGRAPHY = (
    ("", "[\u2212\u2012\u2013\u2014\ufe63\uff0d]", "-"),
    ("", "[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]", " "),
    ("", "[\u2018\u2019\u02bc\u00b4]", "'"),
    ("\u221e", "^([-+]?)\u221e$", r"\1inf"),
)
_STEPS = (
    ("", "([0-9][.,]?)[ ]*(?:[*\u2020\u2021]+|[\u00b9\u00b2\u00b3\u2074-\u2079]+)$", r"\1"),  # 12.5*
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

_WORD = r"(?:°?\p{L}+|[°‰%]|\p{Sc})(?:\^?-?[1-4]|⁻?[¹²³⁴])?"
_UNIT = rf"{_WORD}(?: ?[/*·⋅×] ?(?:10* ?)?{_WORD}|[ .-]?{_WORD}){{0,3}}"
_SPLIT = rf"^(?P<number>[-+]?[\d.,][\d.,' ]*?(?:[eE][-+]?\d+)?)(?P<unit> *{_UNIT}\.?)$"
_KNOWN = re.compile(
    "(?:[nμmcdk]?m|[nμmk]?g|[nμm]?s|[μmcdh]?[lL]|[mk]?mol|[mkMGT]?(?:W|Wh|Pa|J|N|eV|V|Hz)|hPa|[μmk]A|K|k?cal|[kMGT]i?B"
    "|[kMG]?bit|[kMG]bps|[kM]?Ω|[μm]Sv|m?bar|dB|ha|t|k|h|hrs?|d|mins?|secs?|yrs?|Std|Stk|pcs|lbs?|oz|mi|yd|gal|psi|atm"
    "|mmHg|mph|kmh|rpm|ppm|ppb|px|°[CF]?|‰|[$€£¥](?=/))(?:\\^?-?[1-4])?(?:[/*·⋅×].*)?"
)
# Hours of the day, ordinals, dimensions, credit and debit, and months.
_NO_UNITS = re.compile(
    "am|pm|st|nd|rd|th|x|cr|dr|"
    "jan(uary?)?|feb(ruary?)?|mar(ch)?|mär(z)?|apr(il)?|ma[yi]|june?|jul[yi]?|aug(ust)?|sept?(ember)?|o[ck]t(ober)?|"
    "nov(ember)?|de[cz](ember)?|juni|januar|februar"
)

Order: TypeAlias = Literal["ymd", "dmy", "mdy"]
ORDERS: tuple[Order, ...] = get_args(Order)
_SEPARATORS = ("-", "/", r"\.")
_PARTS = {"y": r"(?P<y>\d{4})", "m": r"(?P<m>\d{1,2})", "d": r"(?P<d>\d{1,2})"}
_MIDNIGHT = r"(?:[T ]00?:00(?::00(?:[.,]0+)?)?\s*(?:Z|UTC|[-+]00:?00)?)?"
_UTC = ("UTC", "Etc/UTC", "Z", "+00:00", "GMT")
_TICKS_A_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_FIRST_DAY, _LAST_DAY = np.array(["0001-01-01", "9999-12-31"], dtype="datetime64[D]").astype(int).tolist()


@dataclass(frozen=True, slots=True)
class TextNumbers:
    """Distinct texts read as numbers."""

    values: FloatArray  # (k,), NaN where a text is missing or no number
    # (k,), a text that is neither is a fault in a column of numbers; infinity counts as a number here
    missing: BoolArray
    is_number: BoolArray
    inexact: BoolArray  # (k,), integers that float64 does not hold
    plain: BoolArray  # (k,), texts that any program would read in the same way
    decimal: str  # the decimal mark, "." or ","
    ambiguous: bool  # whether commas were taken to separate thousands for want of evidence
    percent: bool  # whether there were percent signs, which are dropped
    bare: BoolArray  # (k,), numbers without the unit that was asked for


def read_numbers(
    texts: pa.Array,
    counts: NDArray[np.int64],
    decimal: str | None = None,
    hint: str | None = None,
    unit: str | None = None,
) -> TextNumbers:
    """Read distinct texts, stripped, as numbers, given how often each occurs.

    The texts decide on the decimal mark if it is not given, and where they do not, the hint does. Numbers that a unit
    may follow have no currencies and percent signs.

    Examples
    --------
    >>> found = read_numbers(pa.array(["1.234,50 €", "(12)", "-"]), np.ones(3, dtype=np.int64))
    >>> found.values.tolist(), found.decimal
    ([1234.5, -12.0, nan], ',')
    """
    missing = is_missing(texts, words=True)
    plain = matches(texts, _PLAIN)
    clean, has_unit = _cleaned(texts, unit, plain)
    # 1. The decimal mark.
    fits = {mark: matches(clean, _grammar(mark)) & ~missing for mark in ".,"}
    support = {mark: int(counts[fits[mark]].sum()) for mark in ".,"}
    tie = support["."] == support[","]
    chosen = decimal or (hint or "." if tie else max(support, key=lambda mark: support[mark]))
    # 2. The numbers, infinity and clock times among them.
    is_infinite = matches(clean, _INFINITE) & ~missing
    is_number = fits[chosen] | is_infinite
    bare = pc.replace_substring_regex(clean, {".": "[ ',]", ",": "[ '.]"}[chosen], "")
    bare = pc.replace_substring(bare, ",", ".")
    values = np.full(len(texts), np.nan)
    # Arrow reads decimals as Python does: the nearest float64.
    values[is_number] = view(pc.cast(bare.filter(pa.array(is_number)), pa.float64()))
    clocks = matches(clean, _CLOCK)
    values[clocks] = [_of_clock(text) for text in clean.filter(pa.array(clocks)).to_pylist()]  # 7:45 is 7.75
    is_number |= clocks
    return TextNumbers(
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


def numbers_in(table: Table, name: str, *, decimal: str | None = None, unit: str | None = None) -> TextNumbers:
    """Return the texts of a column as numbers, in the order of its levels; read once for all who ask.

    Without a decimal mark the column decides, and where it does not, the table.
    """
    levels = levels_in(table, name)
    hint = table.decimal if decimal is None else None
    read = partial(read_numbers, levels.texts, levels.counts, decimal=decimal, hint=hint, unit=unit)
    found = table.once(("numbers", name, decimal, unit), read)
    return table.once(("numbers", name, found.decimal, unit), lambda: found)


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
        codes = filled(coded.indices, -1)
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
    """Return texts with minus signs, spaces, apostrophes and infinity as ASCII has them."""
    return texts if pc.all(pc.string_is_ascii(texts)).as_py() else _without_surroundings(texts, _TYPOGRAPHY)


def _cleaned(texts: pa.Array, unit: str | None, plain: BoolArray) -> tuple[pa.Array, BoolArray]:
    """Return texts without what surrounds a number, and which of them had the unit."""
    if plain.all():
        return texts, np.zeros(len(texts), dtype=bool)
    clean = in_ascii(texts)
    if unit is None:
        return _without_surroundings(clean, _STEPS), np.zeros(len(texts), dtype=bool)
    found = units_of(clean)
    wanted = np.array([*(same_unit(name, unit) for name in found.names), False], dtype=bool)
    has_unit = wanted[found.codes]
    return _without_surroundings(pc.if_else(pa.array(has_unit), found.numbers, clean), _SIGNS), has_unit


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
    marked = matches(texts, _INTEGER) & large
    for place in np.flatnonzero(marked):
        marked[place] = abs(Decimal(texts[int(place)].as_py())) > LARGEST_EXACT
    return marked


def _of_clock(text: str) -> float:
    """Return a clock time as a number of its first unit: hours in 7:45:00, minutes in 7:45 of a stopwatch.

    Examples
    --------
    >>> _of_clock("7:45"), _of_clock("-0:30:00")
    (7.75, -0.5)
    """
    parts = [int(part) for part in text.lstrip("+-").split(":")]
    value = sum(part * 60.0**-place for place, part in enumerate(parts))
    return -value if text.startswith("-") else value


@dataclass(frozen=True, slots=True)
class Units:
    """Texts split into numbers and units."""

    numbers: pa.Array  # (k,), what is before the unit, which need not be a number; null where there is no unit
    codes: NDArray[np.intp]  # (k,), places in `names`, -1 where there is no unit
    names: tuple[str, ...]  # the units, all different


def units_of(texts: pa.Array) -> Units:
    """Split texts, stripped and with the minus signs and spaces of ASCII, into numbers and units.

    Examples
    --------
    >>> found = units_of(pa.array(["2.7 mg/L", "5h", "12B", "7"]))
    >>> found.numbers.to_pylist(), found.names
    (['2.7', '5', None, None], ('mg/L', 'h'))
    """
    parts = pc.extract_regex(texts, _SPLIT)
    coded = pc.dictionary_encode(pc.struct_field(parts, "unit"))
    units = [_unit_of(text) for text in coded.dictionary.to_pylist()]
    present = set(units)
    units = [f"{unit}s" if same_unit(unit, f"{unit}s") and f"{unit}s" in present else unit for unit in units]
    names = tuple(dict.fromkeys(unit for unit in units if unit))
    places = {unit: place for place, unit in enumerate(names)}
    renamed = np.array([places.get(unit, -1) for unit in units] + [-1], dtype=np.intp)
    codes = renamed[filled(coded.indices, -1)]
    numbers = pc.if_else(pa.array(codes >= 0), pc.struct_field(parts, "number"), pa.scalar(None, texts.type))
    return Units(numbers, codes, names)


def same_unit(one: str, other: str) -> bool:
    """Whether two units are the same, or one is the plural of the other: "1 day" and "2 days"."""
    short, long = sorted((one, other), key=len)
    return short == long or (len(short) > 2 and short.isalpha() and f"{short}s" == long)


def _unit_of(text: str) -> str:
    """Return the unit that follows a number, "" if it is not a unit."""
    name = unicodedata.normalize("NFKC", text).strip().removesuffix(".")
    if _NO_UNITS.fullmatch(name.lower().replace(".", "")):
        return ""
    return name if text.startswith(" ") or _KNOWN.fullmatch(name) else ""


def is_date(kind: pa.DataType) -> bool:
    """Whether a type holds dates, with or without a time of the day, possibly coded."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def days_of(column: pa.ChunkedArray) -> tuple[FloatArray, str]:
    """Return a column of dates as days, NaN where there is none, and why it cannot be, "" if it can.

    A time of the day is a fraction that float64 holds, such as 06:00 or 11:15, or the column cannot be.
    """
    column = decoded(column)
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.tz is not None and kind.tz not in _UTC:
        return np.empty(0), f"it holds dates with times in the time zone {quote(kind.tz)}"
    a_day = 1 if pa.types.is_date32(kind) else _TICKS_A_DAY["ms" if pa.types.is_date64(kind) else kind.unit]
    ticks = filled(column.cast(pa.int32() if a_day == 1 else pa.int64()), 0)
    # A day has 2**k times an odd number of these ticks, and a fraction is exact where only 2**k is left below it.
    if (ticks % (a_day // (a_day & -a_day))).any():
        return np.empty(0), "it holds dates with times of the day"
    return np.where(flags(pc.is_null(column)), np.nan, ticks // a_day + ticks % a_day / a_day), ""


def read_dates(texts: pa.Array, order: Order) -> FloatArray:
    """Return texts as days, NaN where one is not a date; those that begin with the year are, whatever the order."""
    days = np.full(len(texts), np.nan)
    for sign in _SEPARATORS:
        for form in dict.fromkeys(("ymd", order)):
            found = _days(texts, form, sign)
            days = np.where(np.isnan(days), found, days)
    return days


def order_of(texts: pa.Array) -> tuple[Order | None, str]:
    """Return the order of day, month and year that all texts are dates in, and what is in doubt.

    Without an order the doubt is why; with one it is that the day was only assumed to come first.
    """
    if not np.isnan(read_dates(texts, "ymd")).any():
        return "ymd", ""
    unread = np.isnan([read_dates(texts, order) for order in ORDERS]).all(axis=0)
    if unread.any():
        example = texts[int(np.argmax(unread))].as_py()
        return None, f"it holds dates or times, and {quote(example)} is none that can be read for sure"
    for sign in _SEPARATORS:
        read: dict[Order, FloatArray] = {order: _days(texts, order, sign) for order in ("dmy", "mdy")}
        orders = [order for order, days in read.items() if not np.isnan(days).any()]
        differ = read["dmy"] != read["mdy"]
        if len(orders) == 2 and differ.any():
            example = quote(texts[int(np.argmax(differ))].as_py())
            doubt = f"nothing says whether {example} begins with the day or the month"
            return ("dmy", doubt) if sign == r"\." else (None, f"it holds dates, and {doubt}")
        if orders:
            return orders[0], ""
    return None, "it holds dates in different forms"


def date_texts(days: FloatArray) -> NDArray[np.str_]:
    """Return days as ISO dates, with the time where they are not whole; as numbers beyond the years 1 to 9999."""
    readable = (days >= _FIRST_DAY) & (days < _LAST_DAY + 1)
    seconds = np.round(np.where(readable, days, 0.0) * _TICKS_A_DAY["s"]).astype("datetime64[s]")
    texts = np.datetime_as_string(seconds.astype("datetime64[D]")).astype("U32")
    timed = readable & (days != np.floor(days))
    texts[timed] = np.datetime_as_string(seconds[timed])
    texts[~readable] = [f"{day:.15g}" for day in days[~readable]]
    return texts


def as_dates(days: FloatArray) -> pa.Array:
    """Return days as Arrow's dates, NaN as null; as `date_texts` where some are no dates."""
    missing = np.isnan(days)
    present = days[~missing]
    if ((present >= _FIRST_DAY) & (present <= _LAST_DAY) & (present == np.floor(present))).all():
        return pa.array(np.where(missing, 0, days).astype(np.int32), mask=missing).cast(pa.date32())
    return pa.array(date_texts(days), mask=missing)


def _days(texts: pa.Array, order: str, sign: str) -> FloatArray:
    found = pc.extract_regex(texts, f"^{sign.join(_PARTS[part] for part in order)}{_MIDNIGHT}$")
    year, month, day = (filled(pc.struct_field(found, part).cast(pa.int64()), 0) for part in "ymd")
    first = (12 * (year - 1970) + month - 1).astype("datetime64[M]")
    days = first.astype("datetime64[D]").astype(np.int64)
    length = (first + np.timedelta64(1, "M")).astype("datetime64[D]").astype(np.int64) - days
    real = (year > 0) & (month > 0) & (month <= 12) & (day > 0) & (day <= length)
    return np.where(real, days + day - 1, np.nan)
