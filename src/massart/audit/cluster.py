"""Both reads of a table on the workers of a Dask cluster: each reads row groups of Parquet files, and sends totals.

A task is a piece of a file and a small judge, and has no other input: what a lost worker had is done again by another.
Few tasks are under way at a time, and their results come in order, so that what the client holds is bounded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from massart.audit.explanations import NO_ROWS
from massart.audit.finding import Request
from massart.audit.judging import Judge, Writer, numbered
from massart.audit.totals import Totals
from massart.rows import Callback, Progress
from massart.tables import Gathered, Piece, Stream, Table, gather, join, limit_of, pieces_of

_JOINED = 8  # what pieces gather is joined when there is so much of it
_AHEAD = 2  # tasks for each thread of a worker: one is worked on, and one is ready


@dataclass(frozen=True, slots=True)
class OnCluster:
    """The workers of a Dask cluster, by its `distributed.Client`."""

    client: Any

    def gather(self, stream: Stream, request: Request) -> Gathered:
        """Read a stream once, for the rows to look at closely."""
        pieces = pieces_of(stream)
        parts: list[Gathered] = []
        limit = np.inf
        # Which rows are drawn is known better the more pieces are done.
        tasks = ((_gathered, piece, request.seed, limit) for piece in pieces)
        for part in self._results(tasks, len(pieces), request.callback):
            parts.append(part)
            if len(parts) == _JOINED:
                parts = [join(parts, request.seed)]
                limit = limit_of(parts[0], request.seed)
        return join(parts, request.seed)

    def totals(
        self, stream: Stream, judge: Judge, request: Request, write_audit: Writer | None, write_fixed: Writer | None
    ) -> Totals:
        """Read it once more, and judge all rows; parts of files are written in order, here."""
        totals = judge.nothing
        pieces = pieces_of(stream)
        starts = [*(piece.start for piece in pieces), stream.n_rows]
        ends = NO_ROWS
        if judge.looks_around:
            asked = judge.within(0, 0)
            found = self._results(((_ends, piece, asked) for piece in pieces), len(pieces), request.callback)
            ends = np.concatenate([NO_ROWS, *found])
        # What the largest residuals are is known better the more pieces are done.
        tasks = (
            (
                _judged,
                piece,
                judge.within(start, stop),
                ends[np.isin(ends["number"], [start - 1, stop])],
                totals.worst.least,
                write_audit is not None,
                write_fixed is not None,
            )
            for piece, (start, stop) in zip(pieces, pairwise(starts), strict=True)
        )
        for found, rows, fixed in self._results(tasks, len(pieces), request.callback):
            totals += found
            for write, tables in ((write_audit, rows), (write_fixed, fixed)):
                for table in tables:
                    if write is not None:
                        write(table)
        return totals

    def _results(self, tasks: Iterator[tuple[Any, ...]], n_tasks: int, callback: Callback) -> Iterator[Any]:
        """Yield the results of tasks in their order; few of them are under way at a time."""
        waiting: deque[Any] = deque()
        most = _AHEAD * max(sum(self.client.ncores().values()), 1)
        for done in range(n_tasks):
            while len(waiting) < most and (task := next(tasks, None)) is not None:
                waiting.append(self.client.submit(*task, pure=False))
            try:
                yield waiting.popleft().result()
            except Exception as error:
                if type(error).__name__ != "KilledWorker":
                    raise
                raise ConnectionError(
                    "workers of the Dask cluster died, one after the other, at the same piece of a file: "
                    "its row groups may be too large for their memory"
                ) from None
            callback(Progress("reading on the cluster", done + 1, float(n_tasks - done - 1), 0.0))


def _gathered(piece: Piece, seed: int, limit: float) -> Gathered:
    return gather(piece.blocks(), seed, piece.start, limit)


def _ends(piece: Piece, judge: Judge) -> NDArray[np.void]:
    """Return the rows at the ends of a piece, as the rows next to them ask for them."""
    blocks = [judge.ends(block) for block in numbered(piece.blocks(judge.columns), piece.start)]
    return np.concatenate([NO_ROWS, *blocks[:1], *blocks[1:][-1:]])


def _judged(
    piece: Piece, judge: Judge, around: NDArray[np.void], least: float, with_audit: bool, with_fixed: bool
) -> tuple[Totals, Sequence[pa.Table], Sequence[pa.Table]]:
    rows: list[pa.Table] = []
    fixed: list[pa.Table] = []
    blocks: Iterator[Table] = piece.blocks(None if with_audit or with_fixed else judge.columns)

    def kept(tables: list[pa.Table], wanted: bool) -> Callable[[pa.Table], None] | None:
        return tables.append if wanted else None

    totals = judge.totals(blocks, piece.start, least, kept(rows, with_audit), kept(fixed, with_fixed), around)
    return totals, rows, fixed
