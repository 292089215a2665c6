"""What long benchmarks share: records that survive a kill, and workers that end with their parent."""

from __future__ import annotations

import json
import multiprocessing
import os
import threading
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

Line = TypeVar("Line")


class Journal:
    """A file to which records are added; a torn last line is ended first. Without a path it keeps nothing."""

    def __init__(self, path: Path | None) -> None:
        self._file = None if path is None else path.open("ab+")
        if self._file is not None and self._file.tell():
            self._file.seek(-1, os.SEEK_END)
            if self._file.read(1) != b"\n":
                self._file.write(b"\n")

    def append(self, records: Iterable[Any]) -> None:
        """Write records; when this returns, a kill of this process does not lose them."""
        if self._file is not None:
            self._file.write(b"".join(json.dumps(asdict(record)).encode() + b"\n" for record in records))
            self._file.flush()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()


def read_records(path: Path | None, kind: type[Line]) -> list[Line]:
    """Return the records of a kind that a journal holds; lines that a kill tore are skipped."""
    found: list[Line] = []
    if path is not None and path.exists():
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                found.append(kind(**json.loads(line)))
            except (ValueError, TypeError):
                continue
    return found


def watch() -> None:
    """End this worker when its parent is gone, however that ended."""
    parent = multiprocessing.parent_process()
    if parent is not None:

        def follow() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=follow, daemon=True).start()
