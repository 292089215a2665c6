"""Parquet files cut into pieces of some row groups: the workers of a cluster read them, and some may tell of all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pyarrow as pa

from massart.table.errors import TableError
from massart.table.gathering import Gathered, gather
from massart.table.parts import ParquetPart
from massart.table.sources import open_source
from massart.table.streams import Stream, cast
from massart.table.table import Table

ROWS_A_PIECE = 250_000
"""Small row groups are read together, so that a task is worth its message."""

FEWEST_PIECES, SHARE_READ = 6, 8
"""Pieces that tell what the others are like: so many at least, and this part of them."""


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
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
        part = ParquetPart(open_source(self.path))
        try:
            start = self.start
            for batch in part.batches(names, self.size, self.groups):
                numbers = np.arange(start, start + batch.num_rows)
                start += batch.num_rows
                yield Table(pa.Table.from_batches([cast(batch, schema)]), self.name, numbers=numbers, files=self.files)
        finally:
            part.close()
            part.source.check_unchanged()


def pieces_of(stream: Stream) -> list[Piece]:
    """Cut a stream of Parquet files into pieces, in order.

    Raises
    ------
    TableError
        Naming a file that is no Parquet, or not where workers could read it.
    """
    found: list[Piece] = []
    start = 0
    for k, part in enumerate(stream.parts):
        own = stream.files[k : k + 1]
        if not isinstance(part, ParquetPart) or part.path is None:
            raise TableError(f"{part.source.name}: a cluster reads Parquet files that are not compressed as a whole")
        groups: list[int] = []
        rows = 0
        sizes = part.group_sizes
        for group, n_rows in enumerate(sizes):
            groups.append(group)
            rows += n_rows
            if rows >= ROWS_A_PIECE or group == len(sizes) - 1:
                found.append(
                    Piece(part.path, stream.name, tuple(groups), start, stream.schema, stream.block_bytes, own)
                )
                start += rows
                groups, rows = [], 0
    return found


def gather_some(stream: Stream, seed: int) -> Gathered | None:
    """Gather rows of some pieces of Parquet files, drawn at random, if these tell as much as all; None otherwise.

    They do where all columns hold numbers without gaps, as the statistics of the files say, and each column has many
    values in the pieces that are read: then there is nothing rare to look for in the others.
    """
    kinds = stream.schema.types
    if not all(pa.types.is_floating(kind) or pa.types.is_integer(kind) for kind in kinds):
        return None
    if not all(isinstance(part, ParquetPart) and part.path is not None and part.is_full for part in stream.parts):
        return None
    pieces = pieces_of(stream)
    n_read = max(FEWEST_PIECES, len(pieces) // SHARE_READ)
    if 2 * n_read > len(pieces):
        return None
    chosen = np.sort(np.random.default_rng(seed).choice(len(pieces), n_read, replace=False))
    found = gather(chain.from_iterable(pieces[k].blocks() for k in chosen), seed)
    floats = frozenset(
        name for name, kind in zip(stream.schema.names, kinds, strict=True) if pa.types.is_floating(kind)
    )
    return replace(found, n_total=stream.n_rows, gappy=floats) if found.varied else None
