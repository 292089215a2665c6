"""``massart predict``: a saved formula on another table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from massart.cli.inputs import whole_table
from massart.cli.options import Decimal, Delimiter, Encoding, File, IdColumn, Na, Sheet, Skip


def predict(
    model: Annotated[Path, typer.Argument(help="Written by massart fit --save.")],
    file: File,
    out: Annotated[Path | None, typer.Option(help="Write to this file (CSV, Parquet) instead of stdout.")] = None,
    id_column: IdColumn = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    skip: Skip = None,
    na: Na = None,
) -> None:
    """Apply a saved formula to the rows of a table.

    Where the table has the target, too, each row is compared with it.
    """
    from massart.audit import apply_model, load_model
    from massart.cli.outputs import check_outputs
    from massart.cli.text import harmless
    from massart.table import csv_text, write_columns

    check_outputs([model, file], {"--out": out})
    saved = load_model(model)
    table = whole_table(file, delimiter=delimiter, encoding=encoding, decimal=decimal, sheet=sheet, skip=skip, na=na)
    found = apply_model(saved, table, id_column=id_column)
    for notice in found.notices:
        typer.echo(notice, err=True)
    if out is None:
        typer.echo(csv_text(found.columns), nl=False)
    else:
        write_columns(out, found.columns)
        typer.echo(f"Wrote {table.n_rows:,} rows to {harmless(out)}.", err=True)
