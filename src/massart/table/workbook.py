"""What a workbook says about itself before it is read: sizes, sheets, cells with errors, formulas without values.

A workbook is a ZIP archive of XML that a stranger wrote. A few kilobytes may unpack to terabytes, and two cells at the
corners of a sheet span seventeen billion; the reader believes both. So sizes are checked in the archive's directory and
the extent of a sheet in its cells, in one pass over its text, which also finds what the reader does not tell.
"""

from __future__ import annotations

import lzma
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape
from posixpath import join, normpath
from typing import IO, BinaryIO

from massart.table.errors import TableError

MOST_BYTES = 1 << 31
MOST_CELLS = 1 << 25
MOST_TIMES = 250
"""A workbook that unpacks to so many times its size is a bomb; sheets of one number in all cells reach 120."""

_SMALL_BYTES = 1 << 27
_CHUNK_BYTES = 1 << 24
_OVERLAP_BYTES = 1 << 12
_MOST_PARTS = 10_000
_DIRECTORY_BYTES = 1 << 22
_SHEET = re.compile(rb"<(?:\w+:)?sheet\s[^>]*>")
_RELATION = re.compile(rb"<(?:\w+:)?Relationship\s[^>]*>")
_BEYOND_Z = re.compile(rb"""r="[A-Za-z]{2,}\d""")
_WIDE = re.compile(rb"""\sr=["']([A-Za-z]{2,})(\d+)["']""")
_FORMULA = re.compile(
    rb"""<c\s[^>]*\br=["']([A-Z]+\d+)["'][^>]*>\s*<f(?:[^>]*/>|[^>]*>[^<]*</f>)\s*(?:</c>|<v\s*/>|<v>\s*</v>)"""
)
_ERROR = re.compile(rb"""<c\s(?=[^>]*\bt=["']e["'])[^>]*\br=["']([A-Z]+\d+)["'][^>]*>(?:<f.*?)??<v>(#[^<]*)</v>""")


@dataclass(frozen=True, slots=True)
class Oddities:
    """Cells whose value the reader leaves empty without a word, by their references such as B7."""

    errors: dict[str, str]  # what is written there: "#REF!"
    formulas: tuple[str, ...]  # those without a value, because no spreadsheet program has computed them


def check_size(file: BinaryIO, name: str, stored: int) -> int:
    """Return how many bytes of XML an archive unpacks to; TableError if they are too many."""
    with _opened(file, name) as archive:
        parts = archive.infolist()
        if len(parts) > _MOST_PARTS:
            raise TableError(f"{name}: the workbook has {len(parts):,} parts, more than {_MOST_PARTS:,}")
        total = sum(part.file_size for part in parts if part.filename.endswith((".xml", ".rels")))
    if total > MOST_BYTES or (total > _SMALL_BYTES and total > MOST_TIMES * stored):
        raise TableError(
            f"{name}: the workbook unpacks to {total / 2**20:,.0f} MiB, {total / max(stored, 1):,.0f} times its size: "
            "it is not read (save the sheet as CSV if you trust it)"
        )
    return total


def sheet_parts(file: BinaryIO, name: str) -> dict[str, tuple[str, int]]:
    """Return for each sheet of an .xlsx file the part of the archive that holds it, and its size in bytes."""
    with _opened(file, name) as archive:
        sizes = {part.filename: part.file_size for part in archive.infolist()}
        book = _small(archive, sizes, "xl/workbook.xml", name)
        relations = _small(archive, sizes, "xl/_rels/workbook.xml.rels", name)
    targets = {}
    for tag in _RELATION.findall(relations):
        found = _attributes(tag)
        place = found.get("Target", "")
        targets[found.get("Id", "")] = place[1:] if place.startswith("/") else normpath(join("xl", place))
    parts = {}
    for tag in _SHEET.findall(book):
        found = _attributes(tag)
        relation = next((value for key, value in found.items() if key.endswith(":id")), "")
        part = targets.get(relation, "")
        if part in sizes and "worksheets" in part:
            parts[unescape(found.get("name", ""))] = (part, sizes[part])
    return parts


def look_at(file: BinaryIO, part: str, name: str) -> Oddities:
    """Look through the XML of a sheet before the reader does; TableError if it spans too many cells."""
    width, height = 0, 0
    errors: dict[str, str] = {}
    formulas: dict[str, None] = {}
    with _opened(file, name) as archive, archive.open(part) as stream:
        for chunk in _chunks(stream):
            # Sheets of up to 26 columns span no more than a few million cells.
            if _BEYOND_Z.search(chunk) or (b"'" in chunk and _WIDE.search(chunk)):
                for letters, digits in set(_WIDE.findall(chunk)):
                    width, height = max(width, _number(letters)), max(height, int(digits))
                if width * height > MOST_CELLS:
                    raise TableError(
                        f"{name}: the sheet spans {height:,} rows and {width:,} columns, more than {MOST_CELLS:,} "
                        "cells: it is not read (copy what is needed to a new sheet)"
                    )
            if b"<f" in chunk:
                formulas |= dict.fromkeys(found.decode() for found in _FORMULA.findall(chunk))
            if b't="e"' in chunk or (b"'" in chunk and b"t='e'" in chunk):
                errors |= {cell.decode(): words.decode(errors="replace") for cell, words in _ERROR.findall(chunk)}
    return Oddities(errors, tuple(formulas))


def place_of(cell: str) -> tuple[int, int]:
    """Return row and column, from 0, of a reference.

    Examples
    --------
    >>> place_of("AB12")
    (11, 27)
    """
    letters = cell.rstrip("0123456789")
    return int(cell[len(letters) :]) - 1, _number(letters.encode()) - 1


def _number(letters: bytes) -> int:
    number = 0
    for letter in letters.upper():
        number = 26 * number + letter - 64
    return number


@contextmanager
def _opened(file: BinaryIO, name: str) -> Iterator[zipfile.ZipFile]:
    """Open an archive; whatever is wrong with it or with a part that is read is one TableError."""
    try:
        with zipfile.ZipFile(file) as archive:
            yield archive
    except TableError:
        raise
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, RuntimeError, EOFError, OSError, ValueError):
        raise damaged(name) from None


def damaged(name: str) -> TableError:
    """Return the error for a workbook that cannot be read."""
    return TableError(f"{name}: the workbook is damaged or cut short: copy or download it again, or save it as CSV")


def _small(archive: zipfile.ZipFile, sizes: dict[str, int], part: str, name: str) -> bytes:
    if sizes.get(part, _DIRECTORY_BYTES + 1) > _DIRECTORY_BYTES:
        raise damaged(name)
    return archive.read(part)


def _chunks(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield a text in chunks; what may have been cut at the end of one is in the next as well."""
    rest = b""
    while data := stream.read(_CHUNK_BYTES):
        yield rest + data
        rest = data[-_OVERLAP_BYTES:]


def _attributes(tag: bytes) -> dict[str, str]:
    found = re.findall(rb"""([\w:]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""", tag)
    return {key.decode(): (one or other).decode(errors="replace") for key, one, other in found}
