"""Options that several commands share; those of how a file is read are in :mod:`massart.cli.inputs`."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

File: TypeAlias = Annotated[
    str,
    typer.Argument(
        help="CSV, TSV, Excel (.xlsx, .ods, .xls), Parquet, Arrow or JSON lines, also .gz or .zst; a folder or "
        "'dir/*.parquet'; - is stdin."
    ),
]
IdColumn: TypeAlias = Annotated[str | None, typer.Option("--id", help="The column that names the rows.")]
Group: TypeAlias = Annotated[str | None, typer.Option(help="Count the wrong rows for each value of this column.")]
Strict: TypeAlias = Annotated[
    bool, typer.Option("--strict", help="Refuse missing values; else their rows are left out.")
]
MaxWrong: TypeAlias = Annotated[
    float | None, typer.Option(min=0, max=1, help="Exit with 3 if the share of wrong rows is larger.")
]
MaxUnjudged: TypeAlias = Annotated[
    float | None,
    typer.Option(min=0, max=1, help="Exit with 1 if the share of rows that are not judged is larger; check: 0.05."),
]
Report: TypeAlias = Annotated[Path | None, typer.Option(help="Write a page (HTML) that shows it all.")]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]
AllRows: TypeAlias = Annotated[bool, typer.Option("--all-rows", help="List all wrong rows, not only the worst.")]
Seed: TypeAlias = Annotated[int, typer.Option(min=0, help="Of all random choices.")]
