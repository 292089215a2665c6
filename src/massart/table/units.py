"""Units behind numbers: ``2.7 mg/L``, ``12 kg``, ``5h``.

After a blank any short word may be a unit, for what tells a unit from other words is that all cells of a column have
the same. Without a blank only known units count, for ``12B`` and ``3rd`` have none.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from massart.table.views import view

LONGEST_UNIT = 24

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


@dataclass(frozen=True, slots=True)
class Units:
    """Texts parted into numbers and units."""

    numbers: pa.Array  # (k,), what is before the unit, which may be no number after all; null where there is no unit
    codes: NDArray[np.intp]  # (k,), places in `names`, -1 where there is no unit
    names: tuple[str, ...]  # the units, all different


def units_of(texts: pa.Array) -> Units:
    """Part texts, without blanks around them and with the minus signs and blanks of ASCII, into numbers and units.

    Examples
    --------
    >>> found = units_of(pa.array(["2.7 mg/L", "5h", "12B", "7"]))
    >>> found.numbers.to_pylist(), found.names
    (['2.7', '5', None, None], ('mg/L', 'h'))
    """
    parts = pc.extract_regex(texts, _SPLIT)
    coded = pc.dictionary_encode(pc.struct_field(parts, "unit"))
    units = [_judged(text) for text in coded.dictionary.to_pylist()]
    present = set(units)
    units = [f"{unit}s" if same_unit(unit, f"{unit}s") and f"{unit}s" in present else unit for unit in units]
    names = tuple(dict.fromkeys(unit for unit in units if unit))
    places = {unit: place for place, unit in enumerate(names)}
    renamed = np.array([places.get(unit, -1) for unit in units] + [-1], dtype=np.intp)
    codes = renamed[view(pc.fill_null(coded.indices, -1))]
    numbers = pc.if_else(pa.array(codes >= 0), pc.struct_field(parts, "number"), pa.scalar(None, texts.type))
    return Units(numbers, codes, names)


def same_unit(one: str, other: str) -> bool:
    """Whether two units are the same, or one is the plural of the other: "1 day" and "2 days"."""
    short, long = sorted((one, other), key=len)
    return short == long or (len(short) > 2 and short.isalpha() and f"{short}s" == long)


def _judged(text: str) -> str:
    """Return the unit that follows a number, "" if it is none."""
    name = unicodedata.normalize("NFKC", text).strip().removesuffix(".")
    if len(name) > LONGEST_UNIT or _NO_UNITS.fullmatch(name.lower().replace(".", "")):
        return ""
    return name if text.startswith(" ") or _KNOWN.fullmatch(name) else ""
