"""A text file with some cells replaced: every other cell stays as it is, byte for byte (15.00 does not become 15).

New numbers are written as the old ones are: with their decimals, their decimal mark and their currency.
"""

from __future__ import annotations

import codecs
import io
import re
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from massart.tables import Date, Number, Table, free_name

if TYPE_CHECKING:
    from massart.audit.fixing import Corrections
    from massart.audit.table_audit import Audit

_TEXTS = (".csv", ".tsv", ".txt")
_DELIMITERS = (",", ";", "\t", "|")
_ENCODINGS = ("utf-8-sig", "cp1252", "latin-1")  # the last one reads any bytes
_MOST_BYTES = 1 << 28  # of a text that is held as a whole
_MOST_TITLES = 60  # lines above the names
_ASIDE = "not every line of the file is a row of the table, or it is UTF-16"
_AMOUNT = re.compile(r"(?P<before>[^\d+-]*)[+-]?\d(?P<number>[\d.,' \u00a0\u202f]*)(?P<after>\D*)")


def is_text(path: Path) -> bool:
    """Return whether a file is a text by its name."""
    return any(suffix.lower() in _TEXTS for suffix in path.suffixes[-2:])


def patched(source: Path, path: Path, audit: Audit, changes: Corrections) -> bytes | str:
    """Return the text of a file with some cells replaced, or why that cannot be."""
    if path.suffix.lower() != source.suffix.lower() or source.suffix.lower() not in _TEXTS:
        return "the file that was read is compressed or of another kind"
    if source.stat().st_size > _MOST_BYTES:
        return f"the file is larger than {_MOST_BYTES >> 20} MB"
    if isinstance(audit.plan.encoding.target, Date):
        return "the target holds dates"
    raw = source.read_bytes()
    mark = raw[:3] if raw.startswith(codecs.BOM_UTF8) else b""
    for encoding in _ENCODINGS:
        try:
            found = _Lines.of(raw.decode(encoding), [*audit.table.column_names])
        except UnicodeDecodeError:
            continue
        if found is not None:
            fixed = found.with_changes(audit, changes)
            return _ASIDE if fixed is None else mark + fixed.encode(encoding.removesuffix("-sig"))
    return _ASIDE


@dataclass(frozen=True, slots=True)
class _Lines:
    """The records of a text, one of which has the names of the columns."""

    records: list[str]  # with their line ends
    header: int
    delimiter: str
    names: list[str]

    @classmethod
    def of(cls, text: str, names: list[str]) -> _Lines | None:
        """Take a text apart; None if none of its first records has these names."""
        records = _records(text)
        for (header, record), delimiter in product(enumerate(records[:_MOST_TITLES]), _DELIMITERS):
            if [cell.strip() for cell in _cells(record, delimiter)] == names:
                return cls(records, header, delimiter, names)
        return None

    def with_changes(self, audit: Audit, changes: Corrections) -> str | None:
        """Return the text with some cells replaced; None if it is not clear which record is which row.

        Other lines stay as they are: those with as many cells as a row get empty ones for the new columns.
        """
        rows = self._rows(audit.table)
        if rows is None:
            return None
        target = audit.plan.encoding.target
        mark = audit.table.decimal or (target.decimal if isinstance(target, Number) else None) or "."
        known, happened = changes.wrong.to_pylist(), changes.kind.to_pylist()
        new = dict(zip(changes.rows.tolist(), changes.values.tolist(), strict=True))
        place, titles = self.names.index(target.column), self._titles(target.column)
        written = [*self.records]
        for k in range(self.header, len(written)):
            body = written[k].rstrip("\r\n")
            fields = _raw(body, self.delimiter)
            if not body or (k != self.header and k not in rows and len(fields) != len(self.names)):
                continue
            if len(fields) != len(self.names):
                return None
            added = [fields[place], "", ""]
            if k == self.header or (k not in rows and _cells(body, self.delimiter) == self.names):  # once more
                added = titles
            elif k in rows:
                row = rows[k]
                added[1:] = "" if known[row] is None else str(known[row]).lower(), self._quoted(happened[row])
                if row in new:
                    fields[place] = self._quoted(_written(new[row], _plain(added[0]), mark))
            cells = [*fields[: place + 1], added[0], *fields[place + 1 :], *added[1:]]
            written[k] = self.delimiter.join(cells) + self.records[k][len(body) :]
        return "".join(written)

    def _titles(self, target: str) -> list[str]:
        """Return the names of the new columns: what was given, whether that is wrong, and what happened."""
        names: list[str] = []
        for name in (f"{target}_given", "wrong", "kind"):
            names.append(free_name(name, [*self.names, *names]))
        return [self._quoted(names[0]), *names[1:]]

    def _rows(self, table: Table) -> dict[int, int] | None:
        """Return the row in each record that is one, not a title, a total or a note; None if that is not clear."""
        lines = [place for place in range(self.header + 1, len(self.records)) if self.records[place].strip("\r\n")]
        if self.header == 0 and len(lines) == table.n_rows:
            return dict(zip(lines, range(table.n_rows), strict=True))
        texts = {
            place: [None if cell is None else str(cell).strip() for cell in column.to_pylist()]
            for place, column in enumerate(table.arrow.columns)
            if pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        }
        found: dict[int, int] = {}
        for line in lines:
            cells, row = _cells(self.records[line], self.delimiter), len(found)
            if row == table.n_rows:
                break
            if len(cells) == len(self.names) and _is_row(cells, {j: column[row] for j, column in texts.items()}):
                found[line] = row
        return found if texts and len(found) == table.n_rows else None

    def _quoted(self, text: str) -> str:
        return '"' + text.replace('"', '""') + '"' if self.delimiter in text or '"' in text else text


def _is_row(cells: list[str], texts: dict[int, str | None]) -> bool:
    """Return whether a record has the texts of a row."""
    return all(text in (None, cells[place].strip()) for place, text in texts.items())


def _records(text: str) -> list[str]:
    """Return the rows of a text with their line ends; a quoted cell may have several lines."""
    records: list[str] = []
    is_open = False
    for line in io.StringIO(text, newline=""):
        if is_open:
            records[-1] += line
        else:
            records.append(line)
        is_open ^= line.count('"') % 2 == 1
    return records or [""]


def _cells(record: str, delimiter: str) -> list[str]:
    return [_plain(field) for field in _raw(record.rstrip("\r\n"), delimiter)]


def _raw(record: str, delimiter: str) -> list[str]:
    """Return the cells of a row as they are written, quotation marks included."""
    if '"' not in record:
        return record.split(delimiter)
    cell = re.compile(rf'(?:"(?:[^"]|"")*"|[^{re.escape(delimiter)}])*')
    fields: list[str] = []
    place = -1
    while place < len(record):
        found = cell.match(record, place + 1)
        assert found is not None  # it may be empty
        fields.append(found[0])
        place = found.end()
    return fields


def _plain(field: str) -> str:
    return field[1:-1].replace('""', '"') if len(field) > 1 and field[0] == field[-1] == '"' else field


def _written(value: float, given: str, mark: str) -> str:
    """Write a number as another one is written: its decimals at least, its currency or unit.

    Examples
    --------
    >>> _written(15.0, "150.00", "."), _written(1.5, "$12,300.00", "."), _written(-2.25, "3,0 kg", ",")
    ('15.00', '$1.50', '-2,25 kg')
    >>> _written(1039.25, "10.392,50 €", ",")
    '1.039,25 €'
    """
    text = np.format_float_positional(value, trim="-")
    found = _AMOUNT.fullmatch(given.strip())
    if found is None:
        return text.replace(".", mark)
    places = len(found["number"].rpartition(mark)[2].strip()) if mark in found["number"] else 0
    whole, _, digits = text.lstrip("-").partition(".")
    digits = digits.ljust(places, "0")
    marks = re.findall(
        r"[.,' \u00a0\u202f](?=\d{3})", found["number"].rpartition(mark)[0] if places else found["number"]
    )
    if marks and marks[0] != mark:
        whole = f"{int(whole):,}".replace(",", marks[0])
    sign = "-" if value < 0 else ""
    gap = " " if given.rstrip()[-1:] and found["number"].endswith((" ", "\u00a0")) else ""
    return f"{sign}{found['before']}{whole}{mark + digits if digits else ''}{gap}{found['after']}"
