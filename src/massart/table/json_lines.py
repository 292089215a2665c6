"""JSON with one object a line, or an array of objects.

Arrow reads the usual file quickly. What it refuses (a column of numbers and texts, numbers that no float holds, an
array) is read again object by object, which either works or finds the line at fault.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from massart.progress import Callback
from massart.table.errors import TableError, quote
from massart.table.numbers import LARGEST_EXACT
from massart.table.sources import Source
from massart.table.table import Table, checked, named
from massart.table.text import Text, check_utf_8, encoding_of, lines_of

_BLOCK_BYTES = 1 << 22
_INT64 = 2**63


def read_json(source: Source, head: bytes, encoding: str | None, callback: Callback) -> Table:
    """Read JSON lines, or an array of objects.

    Parameters
    ----------
    source : Source
    head : bytes
        Its first bytes, decompressed.
    encoding : str or None
    callback : callable
    """
    found = encoding_of(source, head, encoding)
    arrow = None
    if not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
        arrow = _read_by_arrow(source, found, callback)
    if arrow is None or any(_may_have_lost(column) for column in arrow.columns):
        arrow = _read_objects(source, found)
    return checked(arrow.rename_columns(named(arrow.column_names)), source.name)


def _read_by_arrow(source: Source, encoding: str, callback: Callback, texts: tuple[str, ...] = ()) -> pa.Table | None:
    with Text(source, encoding, callback) as text:
        try:
            options = pa.json.ParseOptions(explicit_schema=pa.schema([(name, pa.string()) for name in texts]))
            table = pa.json.read_json(text, pa.json.ReadOptions(block_size=_BLOCK_BYTES), options)
            table.validate(full=True)  # its texts may be no UTF-8
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
            return None
    dates = tuple(field.name for field in table.schema if pa.types.is_temporal(field.type))
    # Dates stay as they are written, for nothing is computed with them.
    return _read_by_arrow(source, encoding, callback, dates) if dates else table


def _may_have_lost(column: pa.ChunkedArray) -> bool:
    """Whether a column of floats may come from integers that they do not hold."""
    if not pa.types.is_float64(column.type):
        return False
    limits = pc.min_max(column)
    return bool(max(abs(limits["min"].as_py() or 0.0), abs(limits["max"].as_py() or 0.0)) >= LARGEST_EXACT)


def _read_objects(source: Source, encoding: str) -> pa.Table:
    columns: dict[str, list[object]] = {}
    for n_rows, (where, content) in enumerate(_objects(source, encoding)):
        if not isinstance(content, Mapping):
            raise TableError(f"{source.name}: {where} is not a JSON object with a value for each column")
        for name, value in content.items():
            if name not in columns:
                columns[name] = [None] * n_rows
            columns[name].append(value)
        for column in columns.values():
            if len(column) == n_rows:
                column.append(None)
    return pa.table({name: column_of(values) for name, values in columns.items()})


def _objects(source: Source, encoding: str) -> Iterator[tuple[str, object]]:
    """Yield the objects of a file, each with the words for where it is."""
    check_utf_8(source, encoding)
    with lines_of(source, encoding) as lines:
        first = next((line for line in lines if line.strip("\ufeff \t\r\n")), "").lstrip("\ufeff \t")
        if first.startswith("["):
            content = _parsed(source, first + lines.read(), "the array")
            listed = content if isinstance(content, list) else [content]
            yield from ((f"item {number:,} of the array", item) for number, item in enumerate(listed, 1))
            return
    with lines_of(source, encoding) as lines:
        for number, line in enumerate(lines, 1):
            stripped = line.strip("\ufeff \t\r\n")
            if stripped:
                yield f"line {number:,}", _parsed(source, stripped, f"line {number:,}")


def _parsed(source: Source, text: str, where: str) -> object:
    try:
        return json.loads(
            text,
            object_pairs_hook=lambda pairs: _without_twins(source, pairs, where),
            parse_float=_finite_or_text,
            parse_constant=_finite_or_text,
        )
    except TableError:
        raise
    except json.JSONDecodeError as error:
        raise TableError(
            f"{source.name}: {where} is not valid JSON ({error.msg}, character {error.pos + 1:,})"
        ) from None
    except RecursionError:
        raise TableError(f"{source.name}: {where} is nested too deeply to be a row of a table") from None
    except ValueError:  # Python refuses integers of more than 4,300 digits
        raise TableError(f"{source.name}: {where} holds a number that is too long") from None


def _finite_or_text(written: str) -> float | str:
    """Return a number, or what is written if it is too large for one: it is quoted where it does harm."""
    value = float(written)
    return written if math.isinf(value) else value


def _without_twins(source: Source, pairs: list[tuple[str, object]], where: str) -> dict[str, object]:
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise TableError(f"{source.name}: {where} has two values for {quote(twice)}")
    return content


def column_of(values: list[object]) -> pa.Array:
    """Return plain Python values as a column; text where their types do not go together."""
    kinds = {type(value) for value in values if value is not None}
    beyond = any(isinstance(value, int) and not -_INT64 <= value < _INT64 for value in values) or (
        kinds == {int, float} and any(isinstance(value, int) and abs(value) > LARGEST_EXACT for value in values)
    )
    if not beyond:
        try:
            return pa.array(values, from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
            pass
    return pa.array([_text(value) for value in values], pa.string())


def _text(value: object) -> str | None:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    return value if isinstance(value, str) else json.dumps(value, default=str)
