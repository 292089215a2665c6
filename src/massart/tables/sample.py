"""The rows of a stream that are looked at closely: a random sample, and some rows of every kind that is rare.

One read of the stream chooses them, by the columns alone and by the numbers of the rows, so that how the stream is cut
does not matter. A sample misses a level that ten rows of a billion have, and a charge that hardly any row pays; so for
each text of a column the first rows that have it are kept, too, and for each column the first rows that differ from the
rest of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from massart.rows import RUN, BoolArray, Draw, Reservoir
from massart.tables.errors import TableError
from massart.tables.parts import ParquetPart
from massart.tables.source import Beginning, ReadOptions, file_source
from massart.tables.stream import Stream, cast
from massart.tables.table import Table, floats, is_text, levels_of

DRAWN_ROWS, RARE_ROWS = 32_000, 8_000
"""Rows drawn at random, and rare rows at most: together no more than judge a formula."""

_FIRST_ROWS, _MOST_TEXTS = 64, 1_000
"""Number of first rows that are kept of a level, and of levels beyond which a column is not a category."""

_NO_ROWS: NDArray[np.intp] = np.empty(0, dtype=np.intp)

ROWS_A_PIECE = 250_000
"""Small row groups are read together, so that a task is worth its message."""

FEWEST_PIECES, SHARE_READ = 6, 8
"""Number of pieces that are read to know what the others are like: at least the first, and one of the second number."""


@dataclass(frozen=True, slots=True, eq=False)
class Gathered:
    """Some rows of a stream, in their order."""

    table: Table
    drawn: BoolArray  # (n,), those that were drawn at random
    n_total: int  # rows of the stream
    gappy: frozenset[str]  # columns that have cells without a value, or may have
    varied: bool = False  # whether every column has many rows that differ from its first value: then nothing is rare

    @property
    def numbers(self) -> NDArray[np.intp]:
        """Their numbers in the stream, from 0."""
        assert self.table.numbers is not None
        return self.table.numbers

    def take(self, places: NDArray[np.intp]) -> Gathered:
        """Return some of the rows."""
        arrow = self.table.arrow.take(pa.array(places)).combine_chunks()
        return replace(
            self, table=replace(self.table, arrow=arrow, numbers=self.numbers[places]), drawn=self.drawn[places]
        )


def gather(blocks: Iterable[Table], seed: int, start: int = 0, limit: float = np.inf) -> Gathered:
    """Read the blocks of a table once, and return the rows to look at closely.

    Where these are a part of a table, `start` is the number of their first row, and keys above `limit` are not drawn,
    as far as is known from other parts.
    """
    draw, begin = _draw(seed), start
    drawn, reservoir, rare = _Pile(), Reservoir(draw, limit), _Pile()
    columns: dict[str, _Watch] = {}
    gappy: set[str] = set()
    first = None
    for block in blocks:
        arrow = block.arrow
        first = block if first is None else first
        start = start if block.numbers is None or not block.n_rows else int(block.numbers[0])
        drawn.add(arrow, start, reservoir.offer(start, block.n_rows))
        if reservoir.is_crowded:
            drawn.keep(reservoir.prune())
        seen = _NO_ROWS
        for name, column in zip(arrow.column_names, arrow.columns, strict=True):
            gappy.update([name] * _has_gaps(column))
            watch = columns.setdefault(name, _Watch())
            rows = watch.rows(column)
            watch.kept.append(start + rows)
            seen = np.union1d(seen, rows)
        rare.add(arrow, start, seen)
        start += block.n_rows
    assert first is not None, "a stream has rows"
    drawn.keep(reservoir.prune())
    # The first blocks may have left rows of columns that are not categories after all: drop them, for the result must
    # not depend on how the stream is cut.
    wanted = np.concatenate([_NO_ROWS, *(rows for watch in columns.values() for rows in watch.kept)])
    rare.keep(np.flatnonzero(np.isin(rare.numbers, wanted) & ~np.isin(rare.numbers, drawn.numbers)))
    numbers = np.concatenate([drawn.numbers, rare.numbers])
    found = Gathered(
        replace(
            first,
            arrow=pa.concat_tables([*drawn.tables, *rare.tables]),
            numbers=numbers,
            frequencies={name: watch.counts for name, watch in columns.items() if watch.counts},
        ),
        np.arange(len(numbers)) < len(drawn.numbers),
        start - begin,
        frozenset(gappy),
        not any(watch.left for watch in columns.values()),
    )
    return found.take(_enough(found, draw))


def join(parts: Sequence[Gathered], seed: int) -> Gathered:
    """Return what was gathered of the parts of a table, in their order, as if it had been gathered of the whole.

    Of each text, and of the rows that differ from others, parts have the first ones each; the first of these are taken.
    """
    draw, n_total = _draw(seed), sum(part.n_total for part in parts)
    table = replace(parts[0].table, arrow=pa.concat_tables([part.table.arrow for part in parts]))
    numbers = np.concatenate([part.numbers for part in parts])
    frequencies: dict[str, Counter[str]] = {}
    wanted = draw.index(n_total)
    rare = [_NO_ROWS]
    for name, column in zip(table.column_names, table.arrow.columns, strict=True):
        if is_text(column.type):
            counts = Counter[str]()
            for part in parts:
                counts.update(part.table.frequencies.get(name, {}))
            if len(counts) > _MOST_TEXTS or not all(name in part.table.frequencies for part in parts):
                continue  # no category
            frequencies[name] = counts
        rare.append(_Watch().rows(column))
    drawn = np.isin(numbers, wanted)
    chosen = drawn.copy()
    chosen[np.concatenate(rare)] = True
    gappy = frozenset[str]().union(*(part.gappy for part in parts))
    found = Gathered(replace(table, numbers=numbers, frequencies=frequencies), drawn, n_total, gappy)
    found = found.take(np.flatnonzero(chosen))
    return found.take(_enough(found, draw))


def limit_of(found: Gathered, seed: int) -> float:
    """Return the largest key of the rows drawn if these are enough, else infinity: rows beyond it are not needed."""
    draw = _draw(seed)
    runs = np.unique(found.numbers[found.drawn] // RUN)
    if len(runs) < draw.n_runs:
        return float(np.inf)
    return float(draw.keys_of(runs).max())


def _draw(seed: int) -> Draw:
    return Draw.of(DRAWN_ROWS, np.random.default_rng(seed))


def _enough(found: Gathered, draw: Draw) -> NDArray[np.intp]:
    """Return the places of the rows drawn and of at most `RARE_ROWS` others, in order."""
    rare = np.flatnonzero(~found.drawn)
    if len(rare) > RARE_ROWS:
        keys = draw.weighted_keys(found.numbers[rare], np.ones(len(rare)))
        rare = rare[np.argsort(keys, kind="stable")[:RARE_ROWS]]
    places = np.concatenate([np.flatnonzero(found.drawn), rare])
    return np.asarray(places[np.argsort(found.numbers[places])])


def _has_gaps(column: pa.ChunkedArray) -> bool:
    """Return whether values of a column are missing, or may be: in text they may be spelled out."""
    if column.null_count or is_text(column.type):
        return True
    return pa.types.is_floating(column.type) and bool(np.isnan(floats(column)).any())


@dataclass
class _Pile:
    """Rows that are kept, with their numbers."""

    tables: list[pa.Table] = field(default_factory=list)
    parts: list[NDArray[np.intp]] = field(default_factory=list)

    @property
    def numbers(self) -> NDArray[np.intp]:
        return np.concatenate([_NO_ROWS, *self.parts])

    def add(self, arrow: pa.Table, start: int, chosen: NDArray[np.intp]) -> None:
        if len(chosen) or not self.tables:
            self.tables.append(arrow.take(pa.array(chosen)))
            self.parts.append(start + chosen)

    def keep(self, places: NDArray[np.intp]) -> None:
        numbers = self.numbers[places]
        self.tables = [pa.concat_tables(self.tables).take(pa.array(places)).combine_chunks()]
        self.parts = [numbers]


class _Watch:
    """The first rows of a column that have each of its texts, or that differ from its first value."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.kept: list[NDArray[np.intp]] = []  # their numbers in the stream
        self.left = _FIRST_ROWS  # how many more of those that differ are looked for
        self._many, self._usual = False, None

    def rows(self, column: pa.ChunkedArray) -> NDArray[np.intp]:
        """Return the rows of a block of the column to keep."""
        if is_text(column.type):
            return _NO_ROWS if self._many else self._of_texts(column)
        if not self.left or pa.types.is_nested(column.type):
            return _NO_ROWS
        if self._usual is None:
            present = column.drop_null()
            if not len(present):
                return _NO_ROWS
            self._usual = present[0]
        try:
            differs = pc.fill_null(pc.not_equal(column, self._usual), False)
        except pa.ArrowNotImplementedError:  # of a type that cannot be an input either
            self.left = 0
            return _NO_ROWS
        found = np.flatnonzero(np.asarray(differs))[: self.left]
        self.left -= len(found)
        return found

    def _of_texts(self, column: pa.ChunkedArray) -> NDArray[np.intp]:
        levels = levels_of(column)
        kept = [_NO_ROWS]
        for code, (text, count) in enumerate(zip(levels.texts.to_pylist(), levels.counts.tolist(), strict=True)):
            before = self.counts.get(text, 0)
            if before < _FIRST_ROWS:
                kept.append(np.flatnonzero(levels.codes == code)[: _FIRST_ROWS - before])
            self.counts[text] = before + count
            if len(self.counts) > _MOST_TEXTS:
                self._many, self.counts, self.kept = True, {}, []
                return kept[0]
        return np.concatenate(kept)


@dataclass(frozen=True, slots=True, eq=False)
class RowGroups:
    """Some row groups of a Parquet file: small, and it can be sent."""

    path: str  # of the file, as all workers see it
    name: str  # of the whole table, for messages
    groups: tuple[int, ...]
    start: int  # the number of its first row in the whole table
    schema: pa.Schema  # of the whole table
    size: int  # bytes of a block
    files: tuple[tuple[int, str], ...]  # the number of the first row of its file, and the name, if there are several

    def blocks(self, columns: Sequence[str] | None = None) -> Iterator[Table]:
        """Yield its rows in blocks."""
        names = list(self.schema.names if columns is None else columns)
        schema = pa.schema([self.schema.field(name) for name in names])
        part = ParquetPart(file_source(Path(self.path)), Beginning(b"PAR1", 1, False), ReadOptions())
        try:
            start = self.start
            for batch in part.batches(names, self.size, self.groups):
                numbers = np.arange(start, start + batch.num_rows)
                start += batch.num_rows
                yield Table(pa.Table.from_batches([cast(batch, schema)]), self.name, numbers=numbers, files=self.files)
        finally:
            part.close()
            part.source.check_unchanged()


def row_groups_of(stream: Stream) -> list[RowGroups]:
    """Cut a stream of Parquet files into pieces, in order.

    Raises
    ------
    TableError
        Naming a file that is not Parquet, or not where workers could read it.
    """
    found: list[RowGroups] = []
    start = 0
    for k, part in enumerate(stream.parts):
        if not isinstance(part, ParquetPart) or part.path is None:
            raise TableError(f"{part.source.name}: a cluster reads Parquet files that are not compressed as a whole")
        ends = start + np.cumsum(part.group_sizes)
        starts = ends - part.group_sizes
        for number in np.unique(starts // ROWS_A_PIECE):
            groups = np.flatnonzero(starts // ROWS_A_PIECE == number).tolist()
            first, own = int(starts[groups[0]]), stream.files[k : k + 1]
            found.append(
                RowGroups(part.path, stream.name, tuple(groups), first, stream.schema, stream.block_bytes, own)
            )
        start += part.n_rows
    return found


def gather_some(stream: Stream, seed: int) -> Gathered | None:
    """Gather rows of some pieces of Parquet files, drawn at random, if these are enough; None otherwise.

    They are where all columns hold numbers and none is missing, as the statistics of the files say, and each column has
    many values in the pieces that are read: then there is nothing rare to look for in the others.
    """
    kinds = stream.schema.types
    if not all(pa.types.is_floating(kind) or pa.types.is_integer(kind) for kind in kinds):
        return None
    if not all(isinstance(part, ParquetPart) and part.path is not None and part.is_full for part in stream.parts):
        return None
    pieces = row_groups_of(stream)
    n_read = max(FEWEST_PIECES, len(pieces) // SHARE_READ)
    if 2 * n_read > len(pieces):
        return None
    chosen = np.sort(np.random.default_rng(seed).choice(len(pieces), n_read, replace=False))
    found = gather(chain.from_iterable(pieces[k].blocks() for k in chosen), seed)
    floats = frozenset(
        name for name, kind in zip(stream.schema.names, kinds, strict=True) if pa.types.is_floating(kind)
    )
    return replace(found, n_total=stream.n_rows, gappy=floats) if found.varied else None
