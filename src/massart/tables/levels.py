"""The distinct texts of a column: how often each occurs, which row has which, and which of them mean the same.

Spellings that differ only by capitals and spaces are one level: ``north`` is ``North``. A rare one that is a slip of
the pen away from a frequent one is not: ``Suoth`` may be ``South``, or a name of its own. Its rows are left out, and a
notice asks. So are those of a rare ``N/A``, which is the level of no row.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from massart.rows import BoolArray
from massart.tables.errors import counted, listed, quote
from massart.tables.numbers import MISSING, Numbers, read_numbers
from massart.tables.table import Table, as_text, decoded, is_text, view

NO_GROUP = "(missing)"
"""The name of the group of rows without a value."""

# What is misspelt: benchmarks/messy.py, misspelt_category.
_SHORTEST = 4  # letters
_RARE, _RARE_SHARE = 2, 1e-3  # rows of a slip at most, or this share of all
_TIMES = 20  # as many rows have what was meant
_MOST_SHOWN = 5
_MOST_MISSING = 0.05  # share of the rows: N/A in more of them may be an answer
_MISSING = frozenset(spelling.lower() for spelling in MISSING) - {"none"}  # no discount is one


@dataclass(frozen=True, slots=True)
class Levels:
    """A column of text, coded."""

    texts: pa.Array  # (k,), all different, none empty, stripped, by first occurrence
    codes: NDArray[np.int32]  # (n,), the text of each row, -1 where there is none
    counts: NDArray[np.int64]  # (k,)

    @property
    def n_present(self) -> int:
        """Number of rows that have a text."""
        return int(self.counts.sum())

    def first_row(self, which: BoolArray) -> int:
        """Return the first row, from 0, whose text is among those marked."""
        return int(np.argmax(np.append(which, False)[self.codes]))

    def text(self, row: int) -> str:
        """Return the text of a row."""
        return str(self.texts[int(self.codes[row])].as_py())


def levels_of(column: pa.ChunkedArray) -> Levels:
    """Return a column of text, or of any type that can be written as text, coded."""
    if column.type != pa.string() and column.type != pa.large_string():
        column = decoded(column).cast(pa.large_string())
    coded = column.dictionary_encode()
    codes = np.empty(len(column), dtype=np.int32)
    start = 0
    for chunk in coded.chunks:
        codes[start : start + len(chunk)] = view(pc.fill_null(chunk.indices, -1))
        start += len(chunk)
    texts = coded.chunks[0].dictionary if coded.num_chunks else pa.array([], pa.string())
    return _stripped(texts, codes)


def _stripped(texts: pa.Array, codes: NDArray[np.int32]) -> Levels:
    trimmed = pc.utf8_trim_whitespace(texts)
    if not trimmed.equals(texts) or pc.any(pc.equal(trimmed, "")).as_py():
        merged = pc.dictionary_encode(pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, trimmed.type), trimmed))
        renamed = np.append(view(pc.fill_null(merged.indices, -1)), -1).astype(np.int32)
        texts, codes = merged.dictionary, renamed[codes]
    counts = np.bincount(codes + 1, minlength=len(texts) + 1)[1:].astype(np.int64)
    return Levels(texts, codes, counts)


def levels_in(table: Table, name: str) -> Levels:
    """Return a column, whatever it holds, coded by its values as text: 101 for 101.0, dates in ISO form.

    A column is coded once for all who ask.
    """
    return table.once(("levels", name), lambda: levels_of(_as_written(table.column(name))))


def _as_written(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if is_text(column.type):
        return column
    column = decoded(column)
    if pa.types.is_floating(column.type):
        column = column.cast(pa.float64()) if pa.types.is_float16(column.type) else column
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
        with suppress(pa.ArrowInvalid):  # unless all are whole
            column = column.cast(pa.int64())
    return as_text(column)


def numbers_in(table: Table, name: str, *, decimal: str | None = None, unit: str | None = None) -> Numbers:
    """Return the texts of a column as numbers, in the order of its levels; read once for all who ask.

    Without a decimal mark the column decides, and where it does not, the table.
    """
    levels = levels_in(table, name)
    hint = table.decimal if decimal is None else None
    read = partial(read_numbers, levels.texts, levels.counts, decimal=decimal, hint=hint, unit=unit)
    found = table.once(("numbers", name, decimal, unit), read)
    return table.once(("numbers", name, found.decimal, unit), lambda: found)


def groups_of(table: Table, column: str) -> tuple[NDArray[np.intp], list[str]]:
    """Return the group of each row by the value of a column, whatever it holds, and the names of the groups.

    Rows without a value are a group, too, the last one.
    """
    levels = levels_in(table, column)
    names = levels.texts.to_pylist()
    codes = levels.codes.astype(np.intp)
    codes[codes < 0] = len(names)
    return codes, [*names, NO_GROUP]


def folded(text: str) -> str:
    """Return a text in small letters, with single spaces between words.

    Examples
    --------
    >>> folded("New  York ") == folded("new york")
    True
    """
    return " ".join(text.casefold().split())


def spellings_of(counts: Mapping[str, int], *, asked: bool = False) -> tuple[dict[str, int], str]:
    """Return the levels that texts mean, with their numbers of rows, and what was assumed, as sentences.

    A level has its most frequent spelling. If levels were `asked` for, ``N/A`` is one, too.

    Examples
    --------
    >>> found, words = spellings_of({"South": 80, "North": 90, "north": 2, "Suoth": 1})
    >>> found
    {'North': 92, 'South': 80}
    >>> print(words)
     Took "north" (2 rows) for "North". "Suoth" (1 row): did you mean "South"? Such rows are left out.
    """
    meant: dict[str, str] = {}
    total: dict[str, int] = {}
    merged: list[str] = []
    for text in sorted(counts, key=lambda text: (-counts[text], text)):
        level = meant.setdefault(folded(text), text)
        total[level] = total.get(level, 0) + counts[text]
        if level != text:
            merged.append(f"{_with_rows(text, counts)} for {quote(level)}")
    slips = _slips(total)
    words = f" Took {listed(merged, len(merged), _MOST_SHOWN)}." if merged else ""
    if slips:
        doubts = [f"{_with_rows(slip, total)}: did you mean {quote(own)}?" for slip, own in slips.items()]
        words += f" {' '.join(doubts[:_MOST_SHOWN])} Such rows are left out."
    missing = {level: count for level, count in total.items() if level.lower() in _MISSING and not asked}
    if missing and sum(missing.values()) <= _MOST_MISSING * sum(total.values()):
        named = listed((_with_rows(level, total) for level in missing), len(missing), _MOST_SHOWN)
        words += f" Took {named} as missing: such rows are left out (--category makes it a level)."
        slips |= dict.fromkeys(missing, "")
    return {level: count for level, count in total.items() if level not in slips}, words


def _slips(counts: Mapping[str, int]) -> dict[str, str]:
    """Return rare levels that are one slip away from a frequent one, with that one."""
    most = max(_RARE, int(_RARE_SHARE * sum(counts.values())))
    rare = [level for level, count in counts.items() if count <= most and _is_word(level)]
    found = {}
    for slip in rare:
        for level, count in counts.items():
            if count >= _TIMES * counts[slip] and _is_word(level) and _is_slip(folded(slip), folded(level)):
                found[slip] = level
                break
    return found


def _is_word(text: str) -> bool:
    """Whether a text may be misspelt: codes and numbers differ by one character on purpose."""
    return len(text) >= _SHORTEST and not any(sign.isdigit() for sign in text)


def _is_slip(one: str, other: str) -> bool:
    """Whether two texts differ by one character: another one, one more, or two neighbours that changed places."""
    if abs(len(one) - len(other)) > 1:
        return False
    start = next((k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    a, b = one[start:], other[start:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])


def _with_rows(text: str, counts: Mapping[str, int]) -> str:
    return f"{quote(text)} ({counted(counts[text], 'row')})"
