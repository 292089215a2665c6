"""The columns of a fixed table that say what was done."""

import pyarrow as pa

from massart.table import free_name


def with_flags(arrow: pa.Table, wrong: pa.Array, kind: pa.Array) -> pa.Table:
    """Put behind the columns of a table which rows were wrong, and what happened in them."""
    for name, values in (("wrong", wrong), ("kind", kind)):
        arrow = arrow.append_column(free_name(name, arrow.column_names), values)
    return arrow
