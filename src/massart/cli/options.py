"""Options that several commands share; those of how a file is read are in :mod:`massart.cli.inputs`."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer


def share_of(text: str | float) -> float:
    """Return a share that is written as 0.05 or 5%."""
    cleaned = str(text).strip()
    try:
        value = float(cleaned.removesuffix("%")) / (100 if cleaned.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise typer.BadParameter(f"a share has to be from 0 to 1, or from 0% to 100%, got {text!r}")
    return value


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
    float | None,
    typer.Option(
        parser=share_of, metavar="SHARE", help="Exit with 3 if the share of wrong rows, 0.05 or 5%, is larger."
    ),
]
MaxUnjudged: TypeAlias = Annotated[
    float | None,
    typer.Option(
        parser=share_of,
        metavar="SHARE",
        help="Exit with 1 if the share of rows that are not judged is larger; check: 5%.",
    ),
]
Report: TypeAlias = Annotated[Path | None, typer.Option(help="Write a page (HTML) that shows it all.")]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]
AllRows: TypeAlias = Annotated[bool, typer.Option("--all-rows", help="List all wrong rows, not only the worst.")]
Seed: TypeAlias = Annotated[int, typer.Option(min=0, help="Of all random choices.")]
