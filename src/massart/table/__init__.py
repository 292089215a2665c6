"""Files and data frames to numbers, with the rows they come from, and back."""

from massart.table.errors import MissingLibrary, TableError

try:
    import pyarrow  # noqa: F401
except ModuleNotFoundError:
    raise MissingLibrary("reading tables needs pyarrow: pip install 'massart[io]'") from None

from massart.table.corrections import replaced
from massart.table.dates import date_texts
from massart.table.design import Design, column_values, encode, left_out
from massart.table.encoding import Category, Date, Encoding, Flag, Number
from massart.table.frames import frame_in, frame_like, table_of
from massart.table.gathering import Gathered, gather, join, limit_of
from massart.table.grouping import groups_of, precision_of_columns
from massart.table.pieces import Piece, gather_some, pieces_of
from massart.table.plan import Plan, make_plan
from massart.table.reading import read_table
from massart.table.sheets import Notes
from massart.table.streams import Stream, default_memory, stream_table
from massart.table.table import Table, free_name, require_column
from massart.table.writing import check_output, csv_text, table_writer, write_columns, write_table

__all__ = [
    "Category",
    "Date",
    "Design",
    "Encoding",
    "Flag",
    "Gathered",
    "MissingLibrary",
    "Notes",
    "Number",
    "Piece",
    "Plan",
    "Stream",
    "Table",
    "TableError",
    "check_output",
    "column_values",
    "csv_text",
    "date_texts",
    "default_memory",
    "encode",
    "frame_in",
    "frame_like",
    "free_name",
    "gather",
    "gather_some",
    "groups_of",
    "left_out",
    "limit_of",
    "join",
    "make_plan",
    "pieces_of",
    "precision_of_columns",
    "read_table",
    "replaced",
    "require_column",
    "stream_table",
    "table_of",
    "table_writer",
    "write_columns",
    "write_table",
]
