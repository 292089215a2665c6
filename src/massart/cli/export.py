"""``massart export``: a saved formula in the words of another tool, which then finds wrong rows without massart."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from massart.cli.options import share_of


def export(
    model: Annotated[Path, typer.Argument(help="Written by massart fit --save.")],
    to: Annotated[
        str,
        typer.Option(help="What finds the wrong rows: sql, python, excel, pandera, dbt or great-expectations."),
    ],
    output: Annotated[Path | None, typer.Option(help="Write to this file instead of stdout.")] = None,
    table: Annotated[
        str | None,
        typer.Option(
            help="What is checked: a table of the database, a model of dbt, for excel a file with the same header; "
            "by default the name of the model's file."
        ),
    ] = None,
    max_unjudged: Annotated[
        float,
        typer.Option(
            parser=share_of,
            metavar="SHARE",
            help="Checks fail if the share of rows that are not judged is larger; SQL lists them, too.",
        ),
    ] = 0.05,
) -> None:
    """Write a saved formula as SQL, a Python function, cell formulas, or a check for pandera, dbt, Great Expectations.

    What is written finds the rows that massart finds, and needs no massart.
    """
    from massart.audit import load_model
    from massart.cli.outputs import check_outputs
    from massart.export import dbt_properties
    from massart.export import export as exported
    from massart.rows.files import write
    from massart.tables import stream_table

    properties = output.with_suffix(".yml") if output is not None and output.name and to == "dbt" else None
    check_outputs([model], {"--output": output, "the properties next to --output": properties})
    saved, header = load_model(model), None
    if to == "excel" and table is not None:
        with stream_table(table) as stream:
            header = stream.column_names
    text = exported(saved, to, table or model.stem, header, max_unjudged=max_unjudged)
    if output is None:
        typer.echo(text, nl=False)
        return
    write(output, text.encode())
    if properties is not None:
        write(properties, dbt_properties(saved, output.stem, max_unjudged=max_unjudged).encode())
    for path in filter(None, (output, properties)):
        typer.echo(f"Wrote {path}.", err=True)
