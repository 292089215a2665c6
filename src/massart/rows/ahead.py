"""Blocks by threads: the next one is read while this one is worked on, or several are worked on at a time."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_END = object()


def ahead(items: Iterable[Item]) -> Iterator[Item]:
    """Yield items that another thread makes, one ahead; what fails there is raised here."""
    iterator = iter(items)
    with ThreadPoolExecutor(1) as pool:
        following: Future[object] = pool.submit(next, iterator, _END)
        while (item := following.result()) is not _END:
            following = pool.submit(next, iterator, _END)
            yield item  # type: ignore[misc]


def in_order(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Yield the results of a function on items, in their order, computed by threads a few items ahead.

    Items are taken in the caller's thread. The function must let go of the interpreter, as Arrow's parsers and numpy's
    loops do.
    """
    items = iter(items)
    first = list(islice(items, 2))
    if len(first) < 2:  # a small table needs no threads
        yield from map(function, first)
        return
    workers = _n_cores()
    ahead: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        try:
            for item in chain(first, items):
                ahead.append(pool.submit(function, item))
                if len(ahead) > workers:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            for future in ahead:
                future.cancel()


def _n_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
