"""Files that are never half written: each is made beside its place and then renamed."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def check_place(path: Path) -> None:
    """Raise ValueError if no file can be written to `path`: it is a folder, or there is none, or no permission."""
    if path.is_dir():
        raise ValueError(f'"{path}": this is a folder, not a file')
    if not path.parent.is_dir():
        raise ValueError(f'"{path}": there is no folder "{path.parent}"')
    if not os.access(path.parent, os.W_OK):
        raise ValueError(f'"{path}": no permission to write into the folder "{path.parent}"')


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file that takes the place of `path` when the block ends, whole; if it fails, nothing has happened."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def write(path: Path, content: bytes) -> None:
    """Write a file so that a reader, or a kill, finds the old one or the new one."""
    with replacing(path) as file:
        file.write(content)


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> None:
    """Write rows as CSV; floats have all their digits."""
    text = io.StringIO(newline="")
    table = csv.DictWriter(text, columns, lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    write(path, text.getvalue().encode())


def read_csv(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file as text; none if there is no file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
