"""Dates as numbers: days since 1970-01-01, exactly or not at all.

A text is a date where its year has four digits and all three parts are numbers with one sign between them: 2024-05-01,
1.5.2024, 5/1/2024; a time of the day behind it has to be midnight, in no time zone or UTC. Whether the day or the month
comes first is for the column to tell.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from massart.rows import FloatArray
from massart.table.errors import quote
from massart.table.levels import decoded
from massart.table.views import flags, view

Order: TypeAlias = Literal["ymd", "dmy", "mdy"]
ORDERS: tuple[Order, ...] = get_args(Order)
_SIGNS = ("-", "/", r"\.")
_PARTS = {"y": r"(?P<y>\d{4})", "m": r"(?P<m>\d{1,2})", "d": r"(?P<d>\d{1,2})"}
_MIDNIGHT = r"(?:[T ]00?:00(?::00(?:[.,]0+)?)?\s*(?:Z|UTC|[-+]00:?00)?)?"
_UTC = ("UTC", "Etc/UTC", "Z", "+00:00", "GMT")
_UNITS_A_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
# 0001-01-01 and 9999-12-31, the years that have four digits.
_FIRST, _LAST = -719_162, 2_932_896


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
    a_day = 1 if pa.types.is_date32(kind) else _UNITS_A_DAY["ms" if pa.types.is_date64(kind) else kind.unit]
    # A day has 2**k times an odd number of these units, and a fraction is exact where only 2**k is left below it.
    odd = a_day // (a_day & -a_day)
    days, start = np.empty(len(column)), 0
    for chunk in column.cast(pa.int32() if a_day == 1 else pa.int64()).chunks:
        units = view(pc.fill_null(chunk, 0)).astype(np.int64)
        if (units % odd).any():
            return np.empty(0), "it holds dates with times of the day"
        part = days[start : start + len(chunk)]
        part[:] = units // a_day
        part += units % a_day / a_day
        part[flags(pc.is_null(chunk))] = np.nan
        start += len(chunk)
    return days, ""


def read_dates(texts: pa.Array, order: Order) -> FloatArray:
    """Return texts as days, NaN where one is no date; those that begin with the year are, whatever the order."""
    days = np.full(len(texts), np.nan)
    for sign in _SIGNS:
        for form in dict.fromkeys(("ymd", order)):
            found = _read(texts, form, sign)
            days = np.where(np.isnan(days), found, days)
    return days


def order_of(texts: pa.Array) -> tuple[Order | None, str]:
    """Return the order of day, month and year that all texts are dates in, and what is in doubt.

    Without an order the doubt is why; with one it is that the day was only assumed to come first.
    """
    if not np.isnan(read_dates(texts, "ymd")).any():
        return "ymd", ""
    strange = np.isnan([read_dates(texts, order) for order in ORDERS]).all(axis=0)
    if strange.any():
        example = texts[int(np.argmax(strange))].as_py()
        return None, f"it holds dates or times, and {quote(example)} is none that can be read for sure"
    for sign in _SIGNS:
        day_first, month_first = _read(texts, "dmy", sign), _read(texts, "mdy", sign)
        by_day, by_month = (not np.isnan(days).any() for days in (day_first, month_first))
        if by_day and by_month and (differ := day_first != month_first).any():
            example = quote(texts[int(np.argmax(differ))].as_py())
            doubt = f"nothing tells whether {example} begins with the day or the month"
            return ("dmy", doubt) if sign == r"\." else (None, f"it holds dates, and {doubt}")
        if by_day or by_month:
            return "dmy" if by_day else "mdy", ""
    return None, "it holds dates in different forms"


def date_texts(days: FloatArray) -> NDArray[np.str_]:
    """Return days as ISO dates, with the time where they are not whole; as numbers beyond the years 1 to 9999."""
    readable = (days >= _FIRST) & (days < _LAST + 1)
    seconds = np.round(np.where(readable, days, 0.0) * _UNITS_A_DAY["s"]).astype("datetime64[s]")
    texts = np.datetime_as_string(seconds.astype("datetime64[D]")).astype("U32")
    timed = readable & (days != np.floor(days))
    texts[timed] = np.datetime_as_string(seconds[timed])
    texts[~readable] = [f"{day:.15g}" for day in days[~readable]]
    return texts


def as_dates(days: FloatArray) -> pa.Array:
    """Return days as Arrow's dates, NaN as null; as `date_texts` where some are no dates."""
    missing = np.isnan(days)
    present = days[~missing]
    if ((present >= _FIRST) & (present <= _LAST) & (present == np.floor(present))).all():
        return pa.array(np.where(missing, 0, days).astype(np.int32), mask=missing).cast(pa.date32())
    return pa.array(date_texts(days), mask=missing)


def _read(texts: pa.Array, order: str, sign: str) -> FloatArray:
    found = pc.extract_regex(texts, f"^{sign.join(_PARTS[part] for part in order)}{_MIDNIGHT}$")
    year, month, day = (view(pc.fill_null(pc.struct_field(found, part), "0").cast(pa.int64())) for part in "ymd")
    first = (12 * (year - 1970) + month - 1).astype("datetime64[M]")
    days = first.astype("datetime64[D]").astype(np.int64)
    length = (first + np.timedelta64(1, "M")).astype("datetime64[D]").astype(np.int64) - days
    real = (year > 0) & (month > 0) & (month <= 12) & (day > 0) & (day <= length)
    return np.where(real, days + day - 1, np.nan)
