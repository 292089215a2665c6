"""Tables in a file whose rule and whose wrong rows are known, and the form in which their author wrote the rule.

A table is made from a seed: its columns, what the rule gives, and what goes wrong. Each value goes wrong with the same
probability, independently, in one of the ways that the table names. The file is written as people export it: with
titles, currency signs, decimal commas, as a workbook, as Parquet or as JSON lines.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Generator = np.random.Generator
Columns = Mapping[str, NDArray[Any]]

TIE = 1e-9
"""A value this close to the middle of two roundings, as a share of itself, is rounded up."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A number of the rule that the rows leave open: a threshold, between two values of a column."""

    low: float
    high: float

    @staticmethod
    def of(values: NDArray[Any], at: float) -> Cut:
        """Return the threshold `at`; any number that parts the rows in the same way is as good."""
        below, above = values[values < at], values[values >= at]
        beyond = values[values > at]
        # x >= at, written also as x > (the value before); x > at, written also as x >= (the value behind)
        high = float(beyond.min()) if at in above and len(beyond) else float(above.min()) if len(above) else at
        return Cut(float(below.max()) if len(below) else at, high)


@dataclass(frozen=True, slots=True)
class Form:
    """How an author writes the rule: its terms, and its numbers.

    Attributes
    ----------
    terms : str
        The rule as terms of ``massart fit --terms``, or in words where that has none.
    columns : tuple of str
        What it reads.
    numbers : tuple
        Its coefficients, rates, thresholds and limits. 0, 1 and 100 are not counted.
    others : tuple of tuples
        The numbers of other ways to write the same, none of them longer.
    free_scale : bool
        Whether only the count of the numbers is compared: factors of a product may be scaled at will.
    """

    terms: str
    columns: tuple[str, ...]
    numbers: tuple[float | Cut, ...] = ()
    others: tuple[tuple[float | Cut, ...], ...] = ()
    free_scale: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """A table before anything goes wrong.

    Attributes
    ----------
    columns : mapping of str to array
        All but the target, as the file has them.
    target : str
    exact : (n,) array
        What the rule gives, before it is rounded.
    form : Form
    share : float
        The probability with which a value is wrong.
    errors : mapping of str to array
        For each way to go wrong, the values that it leads to; each row that goes wrong takes one of them at random.
    places : int
        After the decimal point.
    rounding : "nearest", "down" or "none"
        "none": `exact` is what stands in a right row.
    id : str or None
        The column that names the rows.
    layout : str
        Of the file; see `LAYOUTS`.
    given : (n,) array or None
        What stands in rows that follow another rule throughout; NaN for all others.
    """

    columns: Columns
    target: str
    exact: FloatArray
    form: Form
    share: float
    errors: Mapping[str, FloatArray]
    places: int = 2
    rounding: str = "nearest"
    id: str | None = None
    layout: str = "csv"
    given: FloatArray | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Planted:
    """A table with its wrong values."""

    name: str
    made: Made
    labels: FloatArray
    clean: FloatArray
    kinds: NDArray[Any] = field(repr=False)

    @property
    def wrong(self) -> BoolArray:
        """Rows whose target is not the right one."""
        return np.asarray(np.abs(self.labels - self.clean) > 0.4 * 10.0**-self.made.places, dtype=np.bool_)

    @property
    def frame(self) -> dict[str, NDArray[Any]]:
        """The columns, the target last."""
        return {**self.made.columns, self.made.target: self.labels}

    def write(self, folder: Path) -> Path:
        """Write the file, and return its path."""
        return LAYOUTS[self.made.layout](self, folder / self.name)


Make = Callable[[Generator], Made]


def plant(name: str, make: Make, seed: int) -> Planted:
    """Return a table; the same name and seed give the same one."""
    made = make(np.random.default_rng([seed, zlib.crc32(name.encode())]))
    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), 1])
    clean = rounded(made.exact, made.places, made.rounding)
    n = len(clean)
    names = list(made.errors)
    every = np.stack([rounded(np.asarray(made.errors[way], float), made.places, made.rounding) for way in names])
    way = rng.integers(len(names), size=n)
    found = every[way, np.arange(n)]
    amount = max(round(0.1 * float(np.median(np.abs(clean))), made.places), 3 * 10.0**-made.places)
    found = np.where(np.abs(found - clean) < 0.5 * 10.0**-made.places, clean + amount, found)
    spoiled = rng.random(n) < made.share
    labels = np.round(np.where(spoiled, found, clean), made.places)
    kinds = np.where(spoiled, np.array(names, dtype=object)[way], "")
    if made.given is not None:
        other = ~spoiled & np.isfinite(made.given)
        labels = np.where(other, rounded(made.given, made.places, made.rounding), labels)
        kinds = np.where(other, "another rule", kinds)
    return Planted(name, made, labels, clean, kinds)


def rounded(values: FloatArray, places: int, how: str = "nearest") -> FloatArray:
    """Round half up, also where a float is a hair below the half; or down."""
    if how == "none":
        return np.round(values, places)
    scaled = values * 10.0**places
    slack = TIE * np.maximum(1, np.abs(scaled))
    return np.floor(scaled + (0.5 if how == "nearest" else 0.0) + slack) / 10.0**places


# What goes wrong.


def swapped(rng: Generator, values: FloatArray, places: int = 2) -> FloatArray:
    """Return values in which two digits beside each other are swapped."""
    found = []
    for value in np.rint(np.asarray(values) * 10**places).astype(np.int64).tolist():
        digits = list(str(abs(value)))
        different = [k for k in range(len(digits) - 1) if digits[k] != digits[k + 1]]
        if different:
            k = different[int(rng.integers(len(different)))]
            digits[k], digits[k + 1] = digits[k + 1], digits[k]
        found.append((-1 if value < 0 else 1) * int("".join(digits)))
    return np.array(found, dtype=float) / 10**places


def one_digit(rng: Generator, values: FloatArray, places: int = 2) -> FloatArray:
    """Return values in which one digit is another one."""
    found = []
    for value in np.rint(np.asarray(values) * 10**places).astype(np.int64).tolist():
        digits = list(str(abs(value)))
        k = int(rng.integers(len(digits)))
        digits[k] = str((int(digits[k]) + int(rng.integers(1, 10))) % 10)
        found.append((-1 if value < 0 else 1) * int("".join(digits)))
    return np.array(found, dtype=float) / 10**places


def another_row(rng: Generator, values: FloatArray) -> FloatArray:
    """Return values of other rows."""
    return np.asarray(rng.permutation(values))


def junk(rng: Generator, values: FloatArray, places: int = 2) -> FloatArray:
    """Return numbers that mean nothing, in the range of the values."""
    return np.round(rng.uniform(values.min(), values.max(), len(values)), places)


def scaled(rng: Generator, values: FloatArray, factors: Sequence[float] = (0.1, 10.0)) -> FloatArray:
    """Return values that are ten times too small or too large."""
    return np.asarray(values * rng.choice(np.array(factors), len(values)))


# Columns.


def money(rng: Generator, low: float, high: float, n: int, places: int = 2) -> FloatArray:
    """Return amounts, as many below the geometric mean as above."""
    return np.round(np.exp(rng.uniform(np.log(low), np.log(high), n)), places)


def uniform(rng: Generator, low: float, high: float, n: int, places: int = 1) -> FloatArray:
    """Return measured numbers."""
    return np.round(rng.uniform(low, high, n), places)


def days(rng: Generator, n: int, start: str = "2023-01-01", length: int = 365) -> NDArray[np.int64]:
    """Return days since 1970."""
    return int(np.datetime64(start, "D").astype(np.int64)) + rng.integers(length, size=n)


def iso(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return days since 1970 as texts, 2024-02-29."""
    return np.datetime_as_string(numbers.astype(np.int64).astype("datetime64[D]"))


def day_month(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return days since 1970 as texts, 29/02/2024."""
    return np.array(["/".join(reversed(text.split("-"))) for text in iso(numbers).tolist()])


def pick(rng: Generator, table: Mapping[Any, Any], n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return a level for each row, none of them rare, and what the table has for it."""
    names = list(table)
    code = rng.choice(len(names), n, p=rng.dirichlet(np.full(len(names), 15.0)))
    return np.array(names)[code], np.array(list(table.values()))[code]


def dotted(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return days since 1970 as texts, 29.02.2024."""
    return np.array([".".join(reversed(text.split("-"))) for text in iso(numbers).tolist()])


def codes(prefix: str, n: int, start: int = 1) -> NDArray[Any]:
    """Return names of rows."""
    return np.array([f"{prefix}{k:05d}" for k in range(start, start + n)])


# Files.


def _cells(frame: Columns, number: Callable[[float], str], special: Mapping[str, Callable[[float], str]]) -> list[str]:
    columns = []
    for name, values in frame.items():
        if values.dtype.kind == "f":
            write = special.get(name, number)
            columns.append(["" if np.isnan(value) else write(value) for value in values.tolist()])
        else:
            columns.append([str(value) for value in values.tolist()])
    return [list(row) for row in zip(*columns, strict=True)]  # type: ignore[misc]


def _plain(value: float) -> str:
    return f"{value:.10g}"


def _write(path: Path, lines: Sequence[Sequence[str]], delimiter: str, encoding: str = "utf-8") -> Path:
    quoted = ([f'"{cell}"' if delimiter in cell else cell for cell in line] for line in lines)
    path.write_bytes(("\n".join(map(delimiter.join, quoted)) + "\n").encode(encoding))
    return path


def _csv(table: Planted, path: Path) -> Path:
    return _write(path.with_suffix(".csv"), [list(table.frame), *_cells(table.frame, _plain, {})], ",")


def _tsv(table: Planted, path: Path) -> Path:
    return _write(path.with_suffix(".tsv"), [list(table.frame), *_cells(table.frame, _plain, {})], "\t")


def _german(value: float, places: int) -> str:
    return f"{value:,.{places}f}".replace(",", " ").replace(".", ",").replace(" ", ".")


def _decimal_comma(table: Planted, path: Path) -> Path:
    target = table.made.target
    cells = _cells(
        table.frame, lambda v: _plain(v).replace(".", ","), {target: lambda v: _german(v, table.made.places)}
    )
    return _write(path.with_suffix(".csv"), [list(table.frame), *cells], ";", "cp1252")


def _semicolons(table: Planted, path: Path) -> Path:
    cells = _cells(table.frame, lambda v: _plain(v).replace(".", ","), {})
    return _write(path.with_suffix(".csv"), [list(table.frame), *cells], ";", "utf-8-sig")


def _titles(table: Planted, path: Path) -> Path:
    target = table.made.target
    cells = _cells(
        table.frame, lambda v: _plain(v).replace(".", ","), {target: lambda v: _german(v, table.made.places)}
    )
    width = len(table.frame)
    titles = [[text] + [""] * (width - 1) for text in ("Umsätze", "Gedruckt am 31.12.2023", "Seite 1")]
    total = ["Summe"] + [""] * (width - 2) + [_german(float(table.labels.sum()), table.made.places)]
    return _write(path.with_suffix(".csv"), [*titles, list(table.frame), *cells, total], ";", "cp1252")


def _dollars(table: Planted, path: Path) -> Path:
    cells = _cells(table.frame, _plain, {table.made.target: lambda v: f"${v:,.{table.made.places}f}"})
    width = len(table.frame)
    titles = [[text] + [""] * (width - 1) for text in ("Report", "Week 1 to 12")]
    return _write(path.with_suffix(".csv"), [*titles, list(table.frame), *cells], ",")


def _total(table: Planted, path: Path) -> Path:
    cells = _cells(table.frame, _plain, {})
    total = ["TOTAL"] + [""] * (len(table.frame) - 2) + [_plain(float(table.labels.sum()))]
    return _write(path.with_suffix(".csv"), [list(table.frame), *cells, total], ",")


def _euros(table: Planted, path: Path) -> Path:
    def french(value: float) -> str:
        return f"{value:,.{table.made.places}f}".replace(",", "\u202f").replace(".", ",") + " €"

    cells = _cells(table.frame, lambda v: _plain(v).replace(".", ","), {table.made.target: french})
    return _write(path.with_suffix(".csv"), [list(table.frame), *cells], ";")


def _swiss(table: Planted, path: Path) -> Path:
    target = table.made.target
    cells = _cells(table.frame, _plain, {target: lambda v: f"{v:,.{table.made.places}f}".replace(",", "'")})
    return _write(path.with_suffix(".csv"), [list(table.frame), *cells], ";", "cp1252")


def _workbook(table: Planted, path: Path) -> Path:
    import xlsxwriter

    path = path.with_suffix(".xlsx")
    with xlsxwriter.Workbook(str(path), {"nan_inf_to_errors": False}) as book:
        sheet = book.add_worksheet("Data")
        sheet.write(0, 0, "Export")
        for column, (name, values) in enumerate(table.frame.items()):
            cells = [None if value in ("", None) or value != value else value for value in values.tolist()]
            sheet.write_column(2, column, [name, *cells])
    return path


def _percent(table: Planted, path: Path) -> Path:
    cells = _cells(table.frame, _plain, {table.made.target: lambda v: f"{v:.{table.made.places}f}%"})
    return _write(path.with_suffix(".csv"), [list(table.frame), *cells], ",")


def _parquet(table: Planted, path: Path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(table.frame), path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


def _jsonl(table: Planted, path: Path) -> Path:
    names, rows = list(table.frame), zip(*(values.tolist() for values in table.frame.values()), strict=True)
    path = path.with_suffix(".jsonl")
    path.write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows))
    return path


LAYOUTS: Mapping[str, Callable[[Planted, Path], Path]] = {
    "csv": _csv,
    "tsv": _tsv,
    "decimal comma": _decimal_comma,
    "semicolons": _semicolons,
    "titles": _titles,
    "dollars": _dollars,
    "total": _total,
    "euros": _euros,
    "swiss": _swiss,
    "workbook": _workbook,
    "percent": _percent,
    "parquet": _parquet,
    "jsonl": _jsonl,
}
"""How a file is written."""
