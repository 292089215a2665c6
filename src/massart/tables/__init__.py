"""Files and data frames to numbers, with the rows they come from, and back."""

from massart.tables.errors import MissingLibrary, TableError, counted, on_one_line, quote

try:
    import pyarrow  # noqa: F401
except ModuleNotFoundError:
    raise MissingLibrary("reading tables needs pyarrow: pip install 'massart[io]'") from None

from massart.tables.design import (
    NO,
    YES,
    Category,
    Date,
    Design,
    Encoding,
    Flag,
    Gap,
    Input,
    Number,
    Target,
    category_codes,
    column_values,
    encode,
    folded,
    left_out,
    precision_of_columns,
)
from massart.tables.meaning import Plan, make_plan, names_rows, role_of
from massart.tables.numbers import TOTAL, date_texts
from massart.tables.sample import Gathered, RowGroups, gather, gather_some, join, limit_of, row_groups_of
from massart.tables.source import files_of
from massart.tables.stream import Stream, default_memory, read_table, stream_table, table_of
from massart.tables.table import Table, assembled, free_name, groups_of, require_column
from massart.tables.writing import (
    Notes,
    check_output,
    csv_text,
    frame_in,
    frame_like,
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
    "RowGroups",
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
    "files_of",
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
    "on_one_line",
    "row_groups_of",
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
