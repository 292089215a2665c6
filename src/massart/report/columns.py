"""Columns of the page: read from the table, written for the eye, and packed for the script.

Every number arrives as it is in the table. Where nine digits write all of a column, it travels as decimals, m 10^e with
|m| <= 10^9, which take half the room of a float64 and compress where there are few digits; otherwise as float64. Bytes
are sent by place (all first bytes, then all second ones), since neighbours in a place resemble each other.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from massart.rows import FloatArray

LONGEST_TEXT = 300
"""Characters of a cell that the page shows."""

_DIGITS = 9
_SHOWN_DIGITS = 8
_MOST_PLACES = 4
_DUST, _DUST_OF_PLACE = 1e-9, 1e-3  # of a number, and of its last place: what differences of numbers leave behind
_LARGEST_INTEGER = 2.0**53
_LARGEST_IN_PLACES = 1e15
_SMALLEST_POSITIONAL, _LARGEST_POSITIONAL = 1e-6, 1e21
_EXPONENTS = 100
_NOT_A_NUMBER = -128
_POWERS = np.array([float(f"1e{k}") for k in range(128)])  # rounded once, which pow does not promise

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_THOUSANDS = re.compile(r"\d(?=(?:\d{3})+$)")


@dataclass(frozen=True, slots=True)
class Numbers:
    """A column of numbers, NaN where there is none."""

    name: str
    values: FloatArray
    places: int | None  # decimals that write all of them; None where they differ too much
    grouped: bool = False  # thousands are set apart: in amounts, not in years and identifiers

    def shown(self, index: int) -> str:
        """Return one of them as the page shows it."""
        value = float(self.values[index])
        return "" if np.isnan(value) else write(value, self.places, self.grouped)

    def packed(self) -> dict[str, Any]:
        """Return the column for the script."""
        pairs = _mantissas(self.values)
        if pairs is not None and np.array_equal(_joined(*pairs), self.values, equal_nan=True):
            kind, data = "decimal", _planes(pairs[0]) + pairs[1].tobytes()
        else:
            kind, data = "float", _planes(self.values.astype("<f8"))
        shape = {"places": self.places, "grouped": self.grouped}
        return {"name": self.name, "kind": kind, **shape, "data": compress(data)}


@dataclass(frozen=True, slots=True)
class Texts:
    """A column of texts, each different one stored once."""

    name: str
    words: tuple[str, ...]
    codes: NDArray[np.uint32]

    def shown(self, index: int) -> str:
        """Return one of them as the page shows it."""
        return self.words[int(self.codes[index])]

    def packed(self) -> dict[str, Any]:
        """Return the column for the script."""
        words = json.dumps(self.words, ensure_ascii=False).encode()
        return {"name": self.name, "kind": "text", "data": compress(_planes(self.codes.astype("<u4")) + words)}


Column = Numbers | Texts
Entries = Sequence[object] | NDArray[Any]


def read(name: str, entries: Entries) -> Column:
    """Return the entries of a column as numbers, if they all are, else as texts."""
    name = clean(name)
    if (values := _numbers(entries)) is None:
        texts = [_text(entry) for entry in entries]
        words = {text: code for code, text in enumerate(dict.fromkeys(texts))}
        codes = np.fromiter((words[text] for text in texts), np.uint32, len(texts))
        return Texts(name, tuple(words), codes)
    return Numbers(name, values, decimal_places(values))


def amounts(name: str, values: FloatArray) -> Numbers:
    """Return a column of amounts, whose digits are all kept."""
    return Numbers(name, values, decimal_places(values), grouped=True)


def clean(text: str) -> str:
    """Return a text from the table as the page shows it: not too long, and printable."""
    if len(text) > LONGEST_TEXT:
        text = text[:LONGEST_TEXT] + "…"
    return printable(text)


def printable(text: str) -> str:
    """Return a text with a mark for each character that no page can carry."""
    return _UNPRINTABLE.sub("\ufffd", text)


def decimal_places(values: FloatArray) -> int | None:
    """Return how many decimals write all the numbers, up to rounding dust; None for more than a few."""
    values = values[np.isfinite(values)]
    if not len(values) or (size := np.abs(values)).max() >= _LARGEST_IN_PLACES:
        return None
    dust = _DUST * np.maximum(size, 1e-3)
    for places in range(_MOST_PLACES + 1):
        if (np.abs(values - np.round(values, places)) <= np.minimum(dust, _DUST_OF_PLACE / 10.0**places)).all():
            return places
    return None


def write(value: float, places: int | None = None, grouped: bool = True, digits: int = _SHOWN_DIGITS) -> str:
    """Write a number with a number of decimals, or else rounded to a number of digits; the script writes the same.

    Examples
    --------
    >>> write(1234.5, 2), write(-1e-12, 2), write(2 / 3), write(1.5e-7)
    ('1,234.50', '0.00', '0.66666667', '1.5e-7')
    """
    if not np.isfinite(value):
        return "" if np.isnan(value) else "-∞" if value < 0 else "∞"
    if places is not None:
        text = f"{value:.{places}f}"
    elif value == 0 or _SMALLEST_POSITIONAL <= abs(value) < _LARGEST_POSITIONAL:
        text = np.format_float_positional(value, digits, unique=False, fractional=False, trim="-")
    else:
        return np.format_float_scientific(value, digits - 1, unique=False, trim="-", exp_digits=1)
    if not text.strip("-0."):
        text = text.lstrip("-")
    if not grouped:
        return text
    whole, point, rest = text.partition(".")
    return _THOUSANDS.sub(r"\g<0>,", whole) + point + rest


def compress(data: bytes) -> str:
    """Return data as text for a page; the same data give the same text."""
    return base64.b64encode(gzip.compress(data, 6, mtime=0)).decode()


def _numbers(entries: Entries) -> FloatArray | None:
    if isinstance(entries, np.ndarray) and entries.dtype.kind in "iuf":
        values = entries.astype(float)
    elif _all_numbers(map(type, entries)):
        try:
            values = np.array([np.nan if entry is None else entry for entry in entries], dtype=float)
        except OverflowError:
            return None
    else:
        return None
    # Above 2^53 a float64 is not the integer that it came from.
    large = np.flatnonzero(np.abs(values) > _LARGEST_INTEGER).tolist()
    return None if any(isinstance(entries[i], int | np.integer) for i in large) else values


def _all_numbers(types: Iterable[type]) -> bool:
    different = set(types) - {NoneType}
    return bool(different) and all(
        issubclass(t, int | float | np.integer | np.floating) and t is not bool for t in different
    )


def _text(entry: object) -> str:
    if entry is None or (isinstance(entry, float) and np.isnan(entry)):
        return ""
    if isinstance(entry, bool | np.bool_):
        return "true" if entry else "false"
    return clean(str(entry))


def _planes(values: NDArray[Any]) -> bytes:
    return np.ascontiguousarray(values).view(np.uint8).reshape(len(values), values.itemsize).T.tobytes()


def _mantissas(values: FloatArray) -> tuple[NDArray[np.int32], NDArray[np.int8]] | None:
    """Return the numbers rounded to nine digits, as m and e; None where an exponent is too large."""
    plain = np.isfinite(values) & (values != 0)
    exponents = np.floor(np.log10(np.abs(values), out=np.zeros(len(values)), where=plain)).astype(int)
    if (np.abs(exponents) > _EXPONENTS).any():
        return None
    exponents -= _DIGITS - 1
    mantissas = np.zeros(len(values), dtype=np.int64)
    mantissas[plain] = np.rint(_times_power(values[plain], -exponents[plain]))
    for _ in range(_DIGITS):
        round_ones = plain & (mantissas % 10 == 0)
        mantissas[round_ones] //= 10
        exponents[round_ones] += 1
    exponents[~plain] = np.where(values[~plain] == 0, 0, _NOT_A_NUMBER)
    mantissas[np.isinf(values)] = np.sign(values[np.isinf(values)])
    return mantissas.astype("<i4"), exponents.astype("i1")


def _times_power(values: FloatArray, exponents: NDArray[Any]) -> FloatArray:
    # A division by 10^k is rounded once, a product with 10^-k twice.
    power = _POWERS[np.abs(exponents)]
    return np.asarray(np.where(exponents < 0, values / power, values * power))


def _joined(mantissas: NDArray[np.int32], exponents: NDArray[np.int8]) -> FloatArray:
    special = exponents == _NOT_A_NUMBER
    values = _times_power(mantissas.astype(float), np.where(special, 0, exponents))
    values[special] = np.array([-np.inf, np.nan, np.inf])[mantissas[special] + 1]
    return values
