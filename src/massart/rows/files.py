"""Files that are never half written: each is made under another name and then renamed."""

from __future__ import annotations

import csv
import io
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def check_place(path: Path) -> None:
    """Raise ValueError if no file can be written to `path`.

    It is a folder or a device, a link that leads nowhere, or there is no such folder, or no permission.
    """
    folder = _behind(path).parent
    if not folder.is_dir():
        link = f'a link to "{os.path.realpath(path)}", and ' if path.is_symlink() else ""
        raise ValueError(f'"{path}": {link}there is no folder "{folder}"')
    if not os.access(folder, os.W_OK):
        raise ValueError(f'"{path}": no permission to write into the folder "{folder}"')


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file that takes the place of `path` when the block ends, whole; if it fails, nothing has happened.

    A link stays one: what it leads to is replaced. Raises ValueError where something else than a file is.
    """
    place = _behind(path)
    temporary = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(place)
    finally:
        temporary.unlink(missing_ok=True)


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


def _behind(path: Path) -> Path:
    """Return the place that a path leads to, through links, if a regular file is there or nothing."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        mode = stat.S_IFREG
    except OSError as error:  # such as links in a circle
        raise ValueError(f'"{path}": cannot be written ({error.strerror})') from None
    except ValueError:
        raise ValueError(f"{str(path)!r}: no file can have such a name") from None
    if stat.S_ISDIR(mode):
        raise ValueError(f'"{path}": this is a folder, not a file')
    if not stat.S_ISREG(mode):
        raise ValueError(f'"{path}": this is not a regular file')
    return Path(os.path.realpath(path)) if path.is_symlink() else path
