"""The distinct texts of a column, how often each occurs, and which row has which."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from massart.rows import BoolArray
from massart.table.views import view


@dataclass(frozen=True, slots=True)
class Levels:
    """A column of text, coded."""

    texts: pa.Array  # (k,), all different, none empty, without surrounding blanks, by first occurrence
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


def is_text(kind: pa.DataType) -> bool:
    """Whether a type holds text, possibly coded already."""
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or _is_view(kind))


def is_plain_text(kind: pa.DataType) -> bool:
    """Whether a type holds text that is not coded."""
    return is_text(kind) and not pa.types.is_dictionary(kind)


def decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column, which may be coded, as values."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


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
    return _without_blanks(texts, codes)


def _without_blanks(texts: pa.Array, codes: NDArray[np.int32]) -> Levels:
    trimmed = pc.utf8_trim_whitespace(texts)
    if not trimmed.equals(texts) or pc.any(pc.equal(trimmed, "")).as_py():
        merged = pc.dictionary_encode(pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, trimmed.type), trimmed))
        renamed = np.append(view(pc.fill_null(merged.indices, -1)), -1).astype(np.int32)
        texts, codes = merged.dictionary, renamed[codes]
    counts = np.bincount(codes + 1, minlength=len(texts) + 1)[1:].astype(np.int64)
    return Levels(texts, codes, counts)


def _is_view(kind: pa.DataType) -> bool:
    return hasattr(pa.types, "is_string_view") and pa.types.is_string_view(kind)
