"""Options that several commands share."""

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
Delimiter: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Between the fields of a CSV file, tab or one character; found out by default.",
        parser=lambda text: "\t" if text in ("tab", r"\t") else text,
    ),
]
Decimal: TypeAlias = Annotated[str | None, typer.Option(help="The decimal mark, . or ,; found out by default.")]
Sheet: TypeAlias = Annotated[
    str | None, typer.Option(help="Of a workbook: the name or the number of a sheet; the largest by default.")
]
Skip: TypeAlias = Annotated[int | None, typer.Option(min=0, help="Lines above the column names; found out by default.")]
Na: TypeAlias = Annotated[
    list[str] | None, typer.Option(help="A text or number that means that a value is missing; again for another.")
]
MaxMemory: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Larger tables are read in blocks: 2GB, 500MB; an eighth of the machine's memory by default."),
]
Encoding: TypeAlias = Annotated[str | None, typer.Option(help="Of a text file, such as latin-1; UTF-8 by default.")]

Group: TypeAlias = Annotated[str | None, typer.Option(help="Count the wrong rows for each value of this column.")]
Strict: TypeAlias = Annotated[
    bool, typer.Option("--strict", help="Refuse missing values; else their rows are left out.")
]
MaxWrong: TypeAlias = Annotated[
    float | None, typer.Option(min=0, max=1, help="Exit with 3 if the share of wrong rows is larger.")
]
Report: TypeAlias = Annotated[Path | None, typer.Option(help="Write a page (HTML) that shows it all.")]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]
AllRows: TypeAlias = Annotated[bool, typer.Option("--all-rows", help="List all wrong rows, not only the worst.")]
