"""Files and data frames to numbers, with the rows they come from, and back."""

from massart.tables.errors import MissingLibrary, TableError, counted, quote

try:
    import pyarrow  # noqa: F401
except ModuleNotFoundError:
    raise MissingLibrary("reading tables needs pyarrow: pip install 'massart[io]'") from None

from massart.tables.design import Design, Gap, category_codes, column_values, encode, left_out, precision_of_columns
from massart.tables.encoding import Category, Date, Encoding, Flag, Input, Number, Target
from massart.tables.frames import assembled, frame_in, frame_like, table_of
from massart.tables.levels import folded, groups_of
from massart.tables.meaning import NO, YES, role_of
from massart.tables.numbers import date_texts
from massart.tables.plan import Plan, make_plan, names_rows
from massart.tables.sample import Gathered, Piece, gather, gather_some, join, limit_of, pieces_of
from massart.tables.stream import Stream, default_memory, read_table, stream_table
from massart.tables.table import Table, free_name, require_column
from massart.tables.text import TOTAL
from massart.tables.writing import (
    Notes,
    check_output,
    csv_text,
    replaced,
    table_writer,
    write_columns,
    write_table,
)

__all__ = [
    "NO",
    "TOTAL",
    "YES",
    "Category",
    "Date",
    "Design",
    "Encoding",
    "Flag",
    "Gap",
    "Gathered",
    "Input",
    "MissingLibrary",
    "Notes",
    "Number",
    "Piece",
    "Plan",
    "Stream",
    "Table",
    "TableError",
    "Target",
    "assembled",
    "category_codes",
    "check_output",
    "column_values",
    "counted",
    "csv_text",
    "date_texts",
    "default_memory",
    "encode",
    "folded",
    "frame_in",
    "frame_like",
    "free_name",
    "gather",
    "gather_some",
    "groups_of",
    "join",
    "left_out",
    "limit_of",
    "make_plan",
    "names_rows",
    "pieces_of",
    "precision_of_columns",
    "quote",
    "read_table",
    "replaced",
    "require_column",
    "role_of",
    "stream_table",
    "table_of",
    "table_writer",
    "write_columns",
    "write_table",
]
