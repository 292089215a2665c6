"""A table put right: the wrong targets replaced, what was given next to them, and what happened in each row.

Where a text file is fixed into a text file, every other cell stays as it is, byte for byte (15.00 does not become 15),
and new numbers are written as the old ones are: with their decimals, their decimal mark and their currency.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from massart.audit.error_types import RowErrorTypes, columns_at_fault
from massart.audit.explanations import Labels
from massart.audit.implied import are_open, loose_of, places_of, settle_ties
from massart.audit.prediction import apply_model
from massart.audit.table_audit import Audit
from massart.report import Notice
from massart.rows import BoolArray, FloatArray, files
from massart.rules.formula import Formula
from massart.rules.matrix import Matrix, TermMatrix
from massart.tables import Date, Notes, Number, Table, Target, column_values, encode, free_name, replaced, write_table

FILLED = "filled in"
"""What happened in a row whose target was missing."""

LEFT_OPEN = "left open"
"""What is said of a row that has something which no row that agrees has: it may be right, and stays as it is."""

RESTS_ON_OTHERS = "rests on rows that may be wrong"
"""What is said of a row for which other rows that may be wrong imply something: it stays as it is, too."""

_TEXTS = (".csv", ".tsv", ".txt")
_DELIMITERS = (",", ";", "\t", "|")
_ENCODINGS = ("utf-8-sig", "cp1252", "latin-1")  # the last one reads any bytes
_MOST_BYTES = 1 << 28
_MOST_TITLES = 60  # lines above the names
_ASIDE = "not every line of the file is a row of the table, or it is UTF-16"
_AMOUNT = re.compile(r"(?P<before>[^\d+-]*)[+-]?\d(?P<number>[\d.,' \u00a0\u202f]*)(?P<after>\D*)")


@dataclass(frozen=True, slots=True, eq=False)
class Corrections:
    """What is changed: rows of the table and their new targets.

    For each row of the table, `wrong` is null where it was not judged, or is left open, and `kind` says what happened,
    "" where it agrees.
    """

    rows: NDArray[np.intp]
    values: FloatArray
    wrong: pa.Array
    kind: pa.Array

    @classmethod
    def of(
        cls,
        n_rows: int,
        kept: NDArray[np.intp],
        X: Matrix,
        left_open: FloatArray,
        labels: Labels,
        kinds: RowErrorTypes,
        rule: tuple[Formula, int | None, tuple[int, ...], float],
        rests: BoolArray | None = None,
        at_fault: Mapping[str, NDArray[np.intp]] | None = None,
    ) -> Corrections:
        """Take the wrong rows among those `kept` of `n_rows`, without those that are left open.

        The formula, to how many places what it gives is rounded, and how, and how far the rounding of columns may move
        it, are the `rule`; what is implied for rows that `rests` names rests on other rows, which may be wrong. Rows
        that are `at_fault`, by what is said of them, may have a wrong column.
        """
        index = np.flatnonzero(labels.wrong)
        formula, places, ways, loose = rule
        implied, unsettled = settle_ties(X, formula, places, index, ways, loose)
        is_open = are_open(X[index], left_open) | unsettled
        on_others = np.zeros(len(index), dtype=bool) if rests is None else rests[index]
        doubts = at_fault or {}
        doubtful = np.isin(index, np.concatenate([index[:0], *doubts.values()]))
        is_changed = ~is_open & ~on_others & ~doubtful
        changed, left_open_rows = index[is_changed], kept[index[is_open]]
        known, wrong, codes = (
            np.zeros(n_rows, dtype=bool),
            np.zeros(n_rows, dtype=bool),
            np.zeros(n_rows, dtype=np.intp),
        )
        known[kept], wrong[kept], codes[kept] = True, labels.wrong, kinds.codes
        known[left_open_rows], codes[left_open_rows] = False, len(kinds.words)
        known[kept[index[on_others]]], codes[kept[index[on_others]]] = False, len(kinds.words) + 1
        for code, rows in enumerate(doubts.values(), len(kinds.words) + 2):
            known[kept[rows]], codes[kept[rows]] = False, code
        kind = pa.array([*kinds.words, LEFT_OPEN, RESTS_ON_OTHERS, *doubts]).take(pa.array(codes))
        return cls(kept[changed], implied[is_changed], pa.array(wrong, mask=~known), kind)

    @classmethod
    def of_audit(cls, audit: Audit, fill: bool) -> Corrections:
        """Take those of an audit, and rows without a target if these are to be filled in."""
        rests = None if audit.chains is None else audit.chains.open
        kept, labels = audit.design.kept, audit.labels
        X = audit.X if audit.chains is None else audit.chains.X
        places, ways = places_of(audit.X, audit.formula, audit.agreement), audit.ways_to_round
        rule = audit.formula, places, ways, loose_of(audit.formula, audit.agreement)
        faults = columns_at_fault(X, audit.rule, labels, audit.kinds, audit.columns)
        found = cls.of(audit.table.n_rows, kept, X, audit.left_open, labels, audit.kinds, rule, rests, faults)
        if not fill:
            return found
        model = audit.model()
        implied = np.ma.MaskedArray(apply_model(model, audit.table).implied)
        blank = np.isnan(column_values(audit.table, model.encoding.target)) & ~np.ma.getmaskarray(implied)
        blank[blank] &= ~_are_open(audit, np.flatnonzero(blank))
        rows, values = np.flatnonzero(blank), implied.data[blank]
        kind = pc.if_else(pa.array(blank), FILLED, found.kind)
        return cls(np.append(found.rows, rows), np.append(found.values, values), found.wrong, kind)

    def applied(self, table: Table, target: Target, whole: bool | None = None) -> Table:
        """Return a table with its wrong targets replaced: the given ones stand next to them, what happened last."""
        given = free_name(f"{target.column}_given", table.column_names)
        found = replaced(table, target, self.rows, self.values, given, whole=whole)
        arrow = found.arrow
        for name, values in (("wrong", self.wrong), ("kind", self.kind)):
            arrow = arrow.append_column(free_name(name, arrow.column_names), values)
        return replace(found, arrow=arrow)


def _are_open(audit: Audit, rows: NDArray[np.intp]) -> BoolArray:
    """Return of which rows of the table, judged or not, the rule says nothing."""
    if not len(rows) or not audit.left_open.size:
        return np.zeros(len(rows), dtype=bool)
    some = replace(audit.table, arrow=audit.table.arrow.take(pa.array(rows)))
    design = encode(some, audit.plan.encoding, with_target=False, is_part=True)
    terms = [term.term for term in audit.formula.terms if term.term is not None]
    found = np.ones(len(rows), dtype=bool)
    found[design.kept] = are_open(TermMatrix(design.columns, terms)[np.arange(len(design.kept))], audit.left_open)
    return found


def fixed_table(audit: Audit, *, fill: bool = False) -> Table:
    """Return the table of an audit with its wrong targets replaced; the given ones stand next to them."""
    return Corrections.of_audit(audit, fill).applied(audit.table, audit.plan.encoding.target)


def write_fixed(path: str | Path, audit: Audit, source: object, *, fill: bool = False) -> tuple[str, ...]:
    """Write the table of an audit with its wrong targets replaced, as text where it was read from `source` as text.

    Return what a reader should know: where cells of a text could not be left as they are.
    """
    content: bytes | str = ""
    if isinstance(source, str | Path) and Path(source).is_file():
        content = _patched(Path(source), Path(path), audit, fill)
    if isinstance(content, bytes):
        files.write(Path(path), content)
        return ()
    table = fixed_table(audit, fill=fill)
    write_table(path, table, notes_on_table(audit, table))
    return rewritten(source, path, content)


def rewritten(source: object, path: str | Path, why: str) -> tuple[str, ...]:
    """Say that cells of a text were written anew, and why; in other files cells have no spelling to keep."""
    if not isinstance(source, str | Path) or not _is_text(Path(source)) or not _is_text(Path(path)):
        return ()
    return (Notice("rewritten", why=why),)


def _is_text(path: Path) -> bool:
    return any(suffix.lower() in _TEXTS for suffix in path.suffixes[-2:])


def _patched(source: Path, path: Path, audit: Audit, fill: bool) -> bytes | str:
    """Return the text of a file with some cells replaced, or why that cannot be."""
    if path.suffix.lower() != source.suffix.lower() or source.suffix.lower() not in _TEXTS:
        return "the file that was read is compressed or of another kind"
    if source.stat().st_size > _MOST_BYTES:
        return f"the file is larger than {_MOST_BYTES >> 20} MB"
    if isinstance(audit.plan.encoding.target, Date):
        return "the target holds dates"
    raw, names = source.read_bytes(), [*audit.table.column_names]
    for encoding in _ENCODINGS:
        try:
            text = raw.decode(encoding)
        except UnicodeDecodeError:
            continue
        records = _records(text)
        mark = raw[:3] if raw.startswith(codecs.BOM_UTF8) else b""
        for header, record in enumerate(records[:_MOST_TITLES]):
            for delimiter in _DELIMITERS:
                if [cell.strip() for cell in _cells(record, delimiter)] == names:
                    rows = _rows_of(records, header, delimiter, audit.table)
                    fixed = None if rows is None else _with_changes(records, header, rows, delimiter, audit, fill)
                    return _ASIDE if fixed is None else mark + fixed.encode(encoding.removesuffix("-sig"))
    return _ASIDE


def _rows_of(records: list[str], header: int, delimiter: str, table: Table) -> dict[int, int] | None:
    """Return the row in each record that is one, not a title, a total or a note; None if that is not clear."""
    lines = [place for place, record in enumerate(records) if place > header and record.strip("\r\n")]
    if header == 0 and len(lines) == table.n_rows:
        return dict(zip(lines, range(table.n_rows), strict=True))
    texts = {
        place: [None if cell is None else str(cell).strip() for cell in column.to_pylist()]
        for place, column in enumerate(table.arrow.columns)
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    }
    found: dict[int, int] = {}
    for line in lines:
        cells, row = _cells(records[line], delimiter), len(found)
        if row == table.n_rows:
            break
        if len(cells) == len(table.column_names) and all(
            column[row] in (None, cells[place].strip()) for place, column in texts.items()
        ):
            found[line] = row
    return found if texts and len(found) == table.n_rows else None


def _with_changes(
    records: list[str], header: int, rows: dict[int, int], delimiter: str, audit: Audit, fill: bool
) -> str | None:
    """Return a text, one record of which has the names, with some cells replaced; None if cells of a row are lacking.

    Other lines stay as they are: those with as many cells as a row get empty ones for the new columns.
    """
    names = [*audit.table.column_names]
    changes, place = Corrections.of_audit(audit, fill), names.index(audit.formula.target)
    known, happened = changes.wrong.to_pylist(), changes.kind.to_pylist()
    new = dict(zip(changes.rows.tolist(), changes.values.tolist(), strict=True))
    mark = audit.table.decimal or _mark_of(audit) or "."
    given = free_name(f"{audit.formula.target}_given", names)
    wrong = free_name("wrong", [*names, given])
    kind = free_name("kind", [*names, given, wrong])
    for k, record in enumerate(records):
        body = record.rstrip("\r\n")
        end = record[len(body) :]
        fields = _raw(body, delimiter)
        if k < header or not body or (k != header and k not in rows and len(fields) != len(names)):
            continue
        if len(fields) != len(names):
            return None
        old, flags = fields[place], ["", ""]
        if k == header:
            old, flags = _quoted(given, delimiter), [wrong, kind]
        elif k in rows:
            row = rows[k]
            if row in new:
                fields[place] = _quoted(_written(new[row], _plain(old), mark), delimiter)
            flags = ["" if known[row] is None else str(known[row]).lower(), _quoted(happened[row], delimiter)]
        elif _cells(body, delimiter) == names:  # the header once more
            old, flags = _quoted(given, delimiter), [wrong, kind]
        records[k] = delimiter.join([*fields[: place + 1], old, *fields[place + 1 :], *flags]) + end
    return "".join(records)


def _mark_of(audit: Audit) -> str | None:
    """Return the decimal mark with which the target was read."""
    entry = audit.plan.encoding.target
    return entry.decimal if isinstance(entry, Number) else None


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
    return next(csv.reader([record.rstrip("\r\n")], delimiter=delimiter), [])


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


def _quoted(text: str, delimiter: str) -> str:
    return '"' + text.replace('"', '""') + '"' if delimiter in text or '"' in text else text


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


def notes_on_rows(audit: Audit, columns: dict[str, object]) -> Notes:
    """Return the notes on `Audit.rows`: the given values that are wrong are marked."""
    wrong = np.ma.filled(np.ma.asarray(columns[audit.column_of(columns, "wrong")]), False).astype(bool)
    return Notes({audit.column_of(columns, "given"): wrong}, findings(audit), _decimals(audit))


def notes_on_table(audit: Audit, table: Table) -> Notes:
    """Return the notes on `Audit.fixed`: what was replaced is marked, and what was given next to it."""
    target, names = audit.formula.target, audit.table.column_names
    old = free_name(f"{target}_given", names)
    wrong = table.column(free_name("wrong", [*names, old])).fill_null(False).to_numpy()
    decimals = _decimals(audit)
    if target in decimals:
        decimals[old] = decimals[target]
    return Notes({target: wrong, old: wrong}, findings(audit), decimals)  # what was left as it is has no colour


def _decimals(audit: Audit) -> dict[str, str]:
    """Return the decimal mark of each column of numbers."""
    encoding = audit.plan.encoding
    return {entry.column: entry.decimal for entry in (encoding.target, *encoding.inputs) if isinstance(entry, Number)}


def findings(audit: Audit) -> list[list[object]]:
    """Return the rule, the verdict, the counts, the kinds of errors and the notices as rows of a sheet."""
    rows: list[list[object]] = [
        ["table", audit.table.name],
        ["target", audit.formula.target],
        ["rule", str(audit.formula) if audit.is_rule else "none"],
        ["verdict", audit.certificate.verdict.name],
        ["meaning", audit.explanation],
        ["rows", audit.n_total],
        ["rows judged", audit.n_judged],
        ["rows wrong", audit.n_wrong],
        ["rows off by a last place", audit.n_last_place],
    ]
    if audit.n_apart:
        rows.append(["rows set apart", audit.n_apart])
    if audit.is_rule and audit.kinds.kinds:
        rows += [[], ["what happened", "", "rows"], *(["", kind.label, kind.rows] for kind in audit.kinds.kinds)]
    if audit.notices:
        rows.append([])
        rows.extend(["notice", notice] for notice in audit.notices)
    return rows
