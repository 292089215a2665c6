"""Tables larger than memory: one file, a folder of files or a pattern, read block by block, any number of times.

A stream has the columns, types and rows of the table that `read_table` returns, cut into blocks. All its files have the
same columns; where their types differ, the wider one holds for all.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate, chain
from pathlib import Path

import numpy as np
import pyarrow as pa

from massart.progress import Callback, Progress, silent
from massart.table.delimited import joined
from massart.table.errors import TableError, on_one_line, quote
from massart.table.gaps import with_gaps
from massart.table.parts import ArrowPart, ParquetPart, TextPart
from massart.table.reading import in_plain_words, kind_of, known_of, open_text, without_strays
from massart.table.sources import Format, Source, open_source
from massart.table.table import Table, require_column

_LARGEST_BLOCK = 1 << 25  # judging is quicker than in smaller ones, and four of them are under way at most
_COPIES = 3  # what a table in memory and its numbers take at most: benchmarks/bench_fit.py
_LEAST_MEMORY = 1 << 29
_MOST_HELD = 1 << 27  # of parsed text; a file is read nearly as fast

_Part = TextPart | ParquetPart | ArrowPart


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
        A file as `read_table` reads it, a folder of such files, or a pattern such as ``data/*.parquet``; files are read
        in the order of their names.
    delimiter, encoding, decimal : str, optional
        Of text files; by default they are found from the first lines of each.
    sheet, skip, na
        As `read_table` takes them.
    max_memory : int
        Bytes that blocks, and what is kept of parsed text, may take.
    callback : callable
        Called with a `Progress` while text is parsed.

    Raises
    ------
    TableError
        One line that names the file and what is wrong with it.
    """
    known = known_of(delimiter, encoding, decimal, sheet, skip, na)
    name, sources = _sources_of(path)
    limit = min(max_memory // 4, _MOST_HELD) // len(sources)
    parts: list[_Part] = []
    try:
        for source in sources:
            with in_plain_words(source):
                kind, head = kind_of(source)
                if kind is Format.PARQUET:
                    parts.append(ParquetPart(source))
                elif kind is Format.ARROW:
                    parts.append(ArrowPart(source, head))
                else:
                    text = open_text(source, kind, head, known, callback)
                    parts.append(TextPart(source, text, limit))
    except BaseException:
        for part in parts:
            part.close()
        raise
    return Stream(name, parts, min(max(max_memory // 16, 1), _LARGEST_BLOCK), known.na)


def default_memory() -> int:
    """Return the bytes that massart takes unless told otherwise: an eighth of the machine's memory."""
    return max(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 8, _LEAST_MEMORY)


class Stream:
    """The rows of one file or of several; made by `stream_table`, closed by `with` or `close`.

    Text is parsed when `schema`, `n_rows` or `blocks` is first asked for.

    Attributes
    ----------
    name : str
        Of the file, the folder or the pattern, for messages.
    parts : sequence of TextPart, ParquetPart and ArrowPart
        Its files.
    block_bytes : int
        About the size of a block.
    na : sequence of str
        Values that mean that there is none.
    """

    def __init__(self, name: str, parts: Sequence[_Part], block_bytes: int, na: Sequence[str] = ()) -> None:
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

    @cached_property
    def schema(self) -> pa.Schema:
        """Names and types of the columns, the same in every block."""
        common = joined if all(isinstance(part, TextPart) for part in self.parts) else _promoted
        types: dict[str, pa.DataType] = {}
        while True:  # types only become wider, so this ends
            for part in self.parts:
                part.settle(types)
                if not part.schema.names:
                    raise TableError(f"{part.source.name}: there are no columns")
                if types:
                    self._check_columns(part)
                for field in part.schema:
                    kind = common(types.get(field.name, pa.null()), field.type)
                    if kind is None:
                        raise TableError(
                            f"{part.source.name}: column {quote(field.name)} holds {field.type}, "
                            f"but {types[field.name]} in {self.parts[0].source.name}"
                        )
                    types[field.name] = kind
            if common is _promoted or all(
                kind in (types[name], pa.null()) for part in self.parts for name, kind in _types(part)
            ):
                break
        if not any(part.n_rows for part in self.parts):
            raise TableError(f"{self.name}: there are no rows below the column names")
        return pa.schema(types)

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
        """Tell whether the whole table, and what is made of it, would take more than so many bytes."""
        return _COPIES * self.nbytes > max_memory

    @property
    def decimal(self) -> str | None:
        """The decimal mark that the text as a whole speaks for; None where it does not tell."""
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
        for batches in _gathered(self._batches(schema), self.block_bytes):
            block = pa.Table.from_batches(batches, schema)
            block = with_gaps(block, self._na) if self._na else block
            done += block.num_rows
            callback(Progress(f"reading {self.name}", done, float(n_rows - done), 0.0))
            yield Table(block, self.name, self.decimal, self.spellings, np.arange(done - block.num_rows, done), files)

    def whole(self, callback: Callback = silent) -> Table:
        """Return the whole table in memory, without rows that are no part of it."""
        blocks = [*self.blocks(callback=callback)]
        arrow = pa.concat_tables([block.arrow for block in blocks])
        table = replace(blocks[0], arrow=arrow, numbers=np.arange(arrow.num_rows) if self.files else None)
        said = [part.remarks for part in self.parts if part.remarks is not None]
        return without_strays(table, tuple(chain(*said))) if said else table

    def _batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for part in self.parts:
            part.source.check_unchanged()
            for batch in part.batches(schema.names, self.block_bytes):
                part.source.check_unchanged()
                with in_plain_words(part.source):
                    yield cast(batch, schema)
            part.source.check_unchanged()

    def _check_columns(self, part: _Part) -> None:
        first = self.parts[0]
        for one, other in ((first, part), (part, first)):
            for name in one.schema.names:
                if name not in other.schema.names:
                    raise TableError(
                        f"{other.source.name}: there is no column {quote(name)}, but there is one in {one.source.name}"
                    )


def _sources_of(path: str | Path) -> tuple[str, list[Source]]:
    """Return the name of a file, a folder or a pattern, with the files meant."""
    written, place = str(path), Path(path)
    if place.is_dir():
        paths = [file for file in place.iterdir() if file.is_file() and not file.name.startswith((".", "_"))]
        if not paths:
            raise TableError(f"{on_one_line(place.name or written)}: there are no files in this folder")
    elif glob.has_magic(written) and not place.exists():
        paths = [file for file in map(Path, glob.glob(written, recursive=True)) if file.is_file()]  # noqa: PTH207
        if not paths:
            raise TableError(f"{on_one_line(written)}: no file has such a name")
    else:
        source = open_source(path)
        return source.name, [source]
    return on_one_line(place.name or written), [open_source(file) for file in sorted(paths)]


def _types(part: _Part) -> Iterator[tuple[str, pa.DataType]]:
    return zip(part.schema.names, part.schema.types, strict=True)


def _promoted(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the type that holds the values of two others; None if there is none."""
    try:
        pair = [pa.schema([("", kind)]) for kind in (one, other)]
        return pa.unify_schemas(pair, promote_options="permissive").types[0]
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return None


def cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with the types of a schema of the same columns."""
    if batch.schema.equals(schema):
        return batch
    return pa.RecordBatch.from_arrays(
        [column.cast(kind) for column, kind in zip(batch.columns, schema.types, strict=True)], schema=schema
    )


def _gathered(batches: Iterator[pa.RecordBatch], size: int) -> Iterator[list[pa.RecordBatch]]:
    """Yield batches in lists of about `size` bytes; much larger ones are cut.

    One that is large enough stays alone, for columns that are in one piece need not be copied.
    """
    gathered: list[pa.RecordBatch] = []
    total = 0
    for batch in batches:
        nbytes = max(batch.nbytes, 1)
        n_rows = batch.num_rows if 2 * nbytes <= 3 * size else max(batch.num_rows * size // nbytes, 1)
        for start in range(0, batch.num_rows, n_rows):
            piece = batch.slice(start, n_rows)
            if gathered and 2 * (total + piece.nbytes) > 3 * size:
                yield gathered
                gathered, total = [], 0
            gathered.append(piece)
            total += piece.nbytes
            if 2 * total > size:
                yield gathered
                gathered, total = [], 0
    if gathered:
        yield gathered
