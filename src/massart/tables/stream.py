"""Tables from files and frames: read block by block, any number of times, or as a whole.

A table is a stream that was read as a whole. All files of a stream have the same columns; where their types differ, the
wider one holds for all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from massart.rows import Callback, Progress, silent
from massart.tables import delimited, json_lines, workbook
from massart.tables.errors import TableError, library, quote
from massart.tables.parts import ARROW, PARQUET, FilePart, ParsedPart, Part
from massart.tables.source import (
    ReadOptions,
    Source,
    format_of,
    in_plain_words,
    sources_of,
)
from massart.tables.table import (
    REFUSALS,
    Table,
    assembled,
    joined_type,
    named,
    require_column,
    with_missing,
)
from massart.tables.tidy import tidied

FORMATS = (PARQUET, ARROW, workbook.FORMAT, json_lines.FORMAT, delimited.FORMAT)
"""The formats of files that are read; each says by which bytes it is known, and the last is that of any other text."""

INDEX = "index label"
"""The column that an index of pandas without a name becomes."""

_COPIES = 3  # what a table in memory and its numbers take at most: benchmarks/bench_fit.py


def stream_table(
    path: str | Path,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    sheet: str | int | None = None,
    skip: int | None = None,
    na: Sequence[str] = (),
    max_memory: int = 1 << 29,
    callback: Callback = silent,
) -> Stream:
    """Open a table that may be larger than memory.

    Parameters
    ----------
    path : str or Path
        CSV, TSV, JSON lines, Parquet or Arrow (Feather), each also compressed by gzip, zstd or bz2; or a workbook
        (.xlsx, .ods, .xls). A folder of such files, or a pattern such as ``data/*.parquet``, is one table: its files
        are read in the order of their names. "-" is standard input.
    delimiter, encoding, decimal : str, optional
        Of a text file: what separates its cells, its encoding and its decimal mark. By default they are found from its
        first lines.
    sheet : str or int, optional
        Of a workbook: its name or its number, from 1. By default the largest that can be seen.
    skip : int, optional
        Number of lines above the column names; found by default.
    na : sequence of str
        Texts that mean that a value is missing, besides "", "-", "NA" and the like.
    max_memory : int
        Bytes that blocks, and what is kept of parsed text, may take.
    callback : callable
        Called with a `Progress` as text is parsed.

    Raises
    ------
    TableError
        One line that names the file and what is wrong with it.
    """
    if skip is not None and skip < 0:
        raise ValueError(f"skip must be a number of lines, got {skip}")
    na = (na,) if isinstance(na, str) else tuple(map(str, na))
    # Judging is quicker than in smaller blocks, and four of them are under way at most.
    block_bytes = min(max(max_memory // 16, 1), 1 << 25)
    sheet = None if sheet is None else str(sheet)
    chunk_bytes = max(block_bytes // 16, 1 << 12)
    name, sources = sources_of(path)
    most_kept = min(max_memory // 4, 1 << 27) // len(sources)  # from a file it is read nearly as fast
    options = ReadOptions(delimiter, encoding, decimal, sheet, skip, chunk_bytes, most_kept, callback)
    parts: list[Part] = []
    try:
        parts.extend(_opened(source, options) for source in sources)
    except BaseException:
        opened: list[Part | Source] = [*parts, *sources]
        for one in opened:
            one.close()
        raise
    return Stream(name, parts, block_bytes, na)


def _opened(source: Source, options: ReadOptions) -> Part:
    """Return a file as a part of a stream: its beginning is read, which says what it holds and how it is written."""
    with in_plain_words(source):
        beginning = source.beginning()
        return format_of(source, beginning.data[: 1 << 12], FORMATS).read(source, beginning, options)


def read_table(path: str | Path, *, callback: Callback = silent, **options: Any) -> Table:
    """Read a table from a file, or from several, into memory; parameters and errors are those of `stream_table`."""
    with stream_table(path, callback=callback, **options) as stream:
        return stream.whole(callback)


def table_of(
    frame: object,
    name: str = "the table",
    *,
    na: Sequence[str] = (),
    **options: Any,
) -> Table:
    """Return a data frame as a table, sharing its memory where that is possible.

    Parameters
    ----------
    frame : data frame, mapping of column names to sequences, str or Path
        pandas, polars, pyarrow or anything else that narwhals reads; a lazy frame is collected, a path is read.
        The index of a pandas frame is a column if it has a name; else its labels name the rows, unless they count them.
    name : str
        For messages.
    na : sequence of str
        Texts that mean that a value is missing.
    **options
        Of a file, as `stream_table` takes them.

    Raises
    ------
    TableError
        If it is not a table, or two columns have the same name.
    """
    if isinstance(frame, Table):
        return frame
    if isinstance(frame, str | Path):
        return read_table(frame, na=na, **options)
    if isinstance(frame, pa.RecordBatch):
        frame = pa.Table.from_batches([frame])
    arrow: Any = frame
    if not isinstance(frame, pa.Table):
        arrow = assembled(frame, name) if isinstance(frame, Mapping) else _of_frame(frame, name)
    names = named(arrow.column_names, name)
    if not names:
        raise TableError(f"{name}: there are no columns")
    if arrow.num_rows == 0:
        raise TableError(f"{name}: there are no rows below the column names")
    return Table(with_missing(arrow.rename_columns(names), na), name)


def _of_frame(frame: Any, name: str) -> pa.Table:
    nw = narwhals()
    if not hasattr(frame, "collect_schema"):  # a lazy frame warns, and pandas alone allows twins
        named(map(str, getattr(frame, "columns", ())), name)
    try:
        wrapped: Any = nw.from_native(frame)
    except TypeError:
        raise TableError(
            f"{name}: cannot read a table from {type(frame).__name__}: "
            "give a path, a data frame or a mapping of columns"
        ) from None
    if isinstance(wrapped, nw.LazyFrame):
        wrapped = wrapped.collect()
    try:
        arrow = wrapped.to_arrow()
    except REFUSALS:  # a column of objects of several types
        arrow = assembled({str(column.name): column.to_list() for column in wrapped.iter_columns()}, name)
    return arrow.rename_columns([INDEX if c == "__index_level_0__" else c for c in arrow.column_names])


def narwhals() -> Any:
    """Return the library that knows data frames."""
    return library("narwhals", "reading and returning data frames", "io")


def default_memory() -> int:
    """Return the bytes that massart takes by default: an eighth of the machine's memory, and 512 MiB at least."""
    return max(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 8, 1 << 29)


class Stream:
    """The rows of one file or of several; made by `stream_table`, closed by `with` or `close`.

    Text is parsed when `schema`, `n_rows` or `blocks` is first asked for.

    Attributes
    ----------
    name : str
        Of the file, the folder or the pattern, for messages.
    parts : sequence of Part
        Its files.
    block_bytes : int
        About the size of a block.
    """

    def __init__(self, name: str, parts: Sequence[Part], block_bytes: int, na: Sequence[str] = ()) -> None:
        self.name, self._na = name, na
        self.parts, self.block_bytes = parts, block_bytes

    def __enter__(self) -> Stream:
        """Return the stream."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the stream."""
        self.close()

    def close(self) -> None:
        """Remove temporary files."""
        for part in self.parts:
            part.close()
            part.source.close()

    @cached_property
    def schema(self) -> pa.Schema:
        """Names and types of the columns, the same in every block."""
        is_text = all(isinstance(part, ParsedPart) for part in self.parts)
        types: dict[str, pa.DataType] = {}
        before = None
        while before != types and (is_text or not types):  # types only become wider, so this ends
            before = types
            for part in self.parts:
                part.settle(types)
                types = self._joined(types, part, is_text)
        if not any(part.n_rows for part in self.parts):
            raise TableError(f"{self.name}: there are no rows below the column names")
        return pa.schema(types)

    def _joined(self, types: Mapping[str, pa.DataType], part: Part, is_text: bool) -> dict[str, pa.DataType]:
        """Return the types of columns that hold for one more file as well."""
        name, first = part.source.name, self.parts[0].source.name
        schema = part.schema
        if not schema.names:
            raise TableError(f"{name}: there are no columns")
        if types and types.keys() != {*schema.names}:
            column = next(one for one in (*types, *schema.names) if one not in types or one not in schema.names)
            lacks, has = (name, first) if column in types else (first, name)
            raise TableError(f"{lacks}: there is no column {quote(column)}, but there is one in {has}")
        found = dict(types)
        for field in schema:
            before = found.get(field.name, pa.null())
            if is_text:
                found[field.name] = joined_type(before, field.type)
                continue
            pair = [pa.schema([(field.name, kind)]) for kind in (before, field.type)]
            try:
                found[field.name] = pa.unify_schemas(pair, promote_options="permissive").types[0]
            except (pa.ArrowInvalid, pa.ArrowTypeError):
                raise TableError(
                    f"{name}: column {quote(field.name)} holds {field.type}, but {before} in {first}"
                ) from None
        return found

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the columns, in their order."""
        return tuple(self.schema.names)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(part.n_rows for part in self.parts) if self.schema else 0

    @property
    def files(self) -> tuple[tuple[int, str], ...]:
        """The number of the first row of each file, and its name; nothing where there is one file."""
        starts = accumulate((part.n_rows for part in self.parts[:-1]), initial=0)
        names = (part.source.name for part in self.parts)
        return tuple(zip(starts, names, strict=True)) if len(self.parts) > 1 else ()

    @property
    def nbytes(self) -> int:
        """About what the whole table would take in memory; no text is parsed to know it."""
        return sum(part.nbytes for part in self.parts)

    def is_larger_than(self, max_memory: int) -> bool:
        """Whether the whole table, and what is made of it, would take more than that number of bytes."""
        return _COPIES * self.nbytes > max_memory

    @property
    def decimal(self) -> str | None:
        """The decimal mark that the text as a whole suggests, if it suggests one."""
        return next((part.decimal for part in self.parts if part.decimal is not None), None)

    @property
    def spellings(self) -> dict[str, str]:
        """What a text writes in a column, if not nothing, where a value is missing."""
        return {name: spelling for part in reversed(self.parts) for name, spelling in part.spellings.items()}

    def blocks(self, columns: Sequence[str] | None = None, callback: Callback = silent) -> Iterator[Table]:
        """Yield the table in blocks of whole rows, from its start; of some columns, which alone are read, or of all."""
        names = list(self.schema.names if columns is None else columns)
        for name in names:
            require_column(self, name)
        schema = pa.schema([self.schema.field(name) for name in names])
        n_rows, done, files = self.n_rows, 0, self.files
        for batches in _gathered(self._batches(schema, self.block_bytes), self.block_bytes):
            block = with_missing(pa.Table.from_batches(batches, schema), self._na)
            done += block.num_rows
            callback(Progress(f"reading {self.name}", done, float(n_rows - done), 0.0))
            yield Table(block, self.name, self.decimal, self.spellings, np.arange(done - block.num_rows, done), files)

    def whole(self, callback: Callback = silent) -> Table:
        """Return the whole table in memory, without rows that are not part of it.

        The callback is called as Parquet and Arrow files are read, in bytes, as that of `stream_table` is for text.
        """
        for part in self.parts:
            if isinstance(part, ParsedPart):
                part.most_kept = np.inf
        batches = [*self._batches(self.schema, 1 << 62, callback)]
        arrow = with_missing(pa.Table.from_batches(batches, self.schema), self._na)
        numbers = np.arange(arrow.num_rows) if self.files else None
        table = Table(arrow, self.name, self.decimal, self.spellings, numbers, self.files)
        said = [part.remarks for part in self.parts if part.remarks is not None]
        return tidied(replace(table, remarks=tuple(chain(*said)))) if said else table

    def _batches(self, schema: pa.Schema, block_bytes: int, callback: Callback = silent) -> Iterator[pa.RecordBatch]:
        for part in self.parts:
            part.source.check_unchanged()
            size, n_done = part.source.size, 0
            for batch in part.batches(schema.names, block_bytes):
                part.source.check_unchanged()
                n_done += batch.num_rows
                if isinstance(part, FilePart):
                    done = size * n_done // max(part.n_rows, 1)
                    callback(Progress(f"reading {part.source.name}", done, float(size - done), 0.0))
                with in_plain_words(part.source):
                    yield cast(batch, schema)
            part.source.check_unchanged()


def cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with the types of a schema of the same columns."""
    if batch.schema.equals(schema):
        return batch
    return pa.RecordBatch.from_arrays(
        [column.cast(kind) for column, kind in zip(batch.columns, schema.types, strict=True)], schema=schema
    )


def _gathered(batches: Iterator[pa.RecordBatch], size: int) -> Iterator[list[pa.RecordBatch]]:
    """Yield batches in lists of about `size` bytes; larger ones are cut, each into equal pieces.

    One of more than half the size is the last of its list, for columns that are in one piece need not be copied.
    """
    gathered: list[pa.RecordBatch] = []
    total = 0
    for batch in batches:
        n_pieces = batch.nbytes // size + 1
        n_rows = batch.num_rows // n_pieces + 1
        for start in range(0, batch.num_rows, n_rows):
            gathered.append(batch.slice(start, n_rows))
            total += gathered[-1].nbytes
            if 2 * total > size:
                yield gathered
                gathered, total = [], 0
    if gathered:
        yield gathered
