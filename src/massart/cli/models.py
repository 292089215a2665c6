"""Commands that use a saved rule: ``massart predict`` and ``massart export``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from massart.cli.check import Result, tell_json
from massart.cli.config import CheckTask
from massart.cli.files import check_outputs, opened, typed, write_outputs
from massart.cli.options import File, Page, with_options
from massart.cli.terminal import bars, harmless, say
from massart.options import BlockReading, Names, Option, OptionGroup, Shares

if TYPE_CHECKING:
    from massart.audit import Prediction


@dataclass(frozen=True)
class PredictCommand(Page):
    """What only the command line takes."""

    out: Annotated[Path | None, Option("Write to this file (CSV, Parquet) instead of stdout.", "Output")] = None


@with_options(asked=PredictCommand, names=Names, limits=Shares, reading=BlockReading)
def predict(
    *,
    context: typer.Context,
    model: Annotated[Path, typer.Argument(help="Written by massart fit --save.", metavar="MODEL")],
    file: File,
    asked: PredictCommand,
    names: Names,
    limits: Shares,
    reading: BlockReading,
) -> None:
    """Apply a saved formula to the rows of a table.

    Where the table has the target, too, each row is compared with it, as massart check does.

    Exit status 0, 2 for bad input, and with --max-wrong or --max-unjudged that of massart check.
    """
    from massart.audit import check_table, held, load_model, notices_of, predicted
    from massart.tables import Table, default_memory

    out, report = asked.out, asked.report
    check_outputs([model, file], {"--out": out, "--report": report})
    if asked.json and out is None:
        raise ValueError("--json prints what was found: --out has to say where the predictions go")
    saved, max_wrong, max_unjudged = load_model(model).weighed, limits.max_wrong, limits.max_unjudged
    most = default_memory() if reading.most_bytes is None else reading.most_bytes
    check = None
    with (
        opened(file, reading, as_stream=True) as table,
        bars("Predicting") as draw,
        _writing(out) as (parts, write),
    ):
        rows, target = held(saved, table, most, draw), saved.encoding.target.column
        # A target that nobody has filled in yet is none.
        if target in rows.column_names and not (
            isinstance(rows, Table) and rows.column(target).null_count == rows.n_rows
        ):
            check = check_table(
                saved,
                rows,
                max_wrong=max_wrong,
                max_unjudged=max_unjudged,  # by default any: targets that are not there yet are no fault here
                id=names.id,
                in_full=report is not None,
                max_memory=most,
                predictions=write,
                callback=draw,
            )
        elif max_wrong is not None or max_unjudged is not None or report is not None or asked.json:
            raise ValueError(f"{file} has no column {target!r} to compare with the rule")
        else:
            for part in predicted(saved, rows, names.id, callback=draw):
                write(part)
    say(notices_of(parts), err=True)
    if out is not None:
        typer.echo(f"Wrote {sum(part.n_rows for part in parts):,} rows to {harmless(out)}.", err=True)
    if check is None:
        return
    write_outputs(check.audit, typed(context), file, report=report)
    result = Result(CheckTask(file=file, model=model), check.contract, check.outcome, check.audit)
    status = 0 if max_wrong is None and max_unjudged is None else check.outcome.status
    if asked.json:
        tell_json([result], status)
    else:
        typer.echo(result.line, err=True)
    if status:
        raise typer.Exit(status)


@contextmanager
def _writing(out: Path | None) -> Iterator[tuple[list[Prediction], Callable[[Prediction], None]]]:
    """Yield what takes the next predictions and writes them to a file or to stdout, and a list of what was written."""
    from massart.tables import assembled, csv_text, table_writer

    parts: list[Prediction] = []
    if out is None:

        def show(part: Prediction) -> None:
            head = csv_text({name: values[:0] for name, values in part.columns.items()}) if parts else ""
            typer.echo(csv_text(part.columns).removeprefix(head), nl=False)
            parts.append(replace(part, columns={}, implied=None))

        yield parts, show
        return
    with table_writer(out, harmless=True) as write_table:

        def write(part: Prediction) -> None:
            write_table(assembled(part.columns, str(out)))
            parts.append(replace(part, columns={}, implied=None))

        yield parts, write


@dataclass(frozen=True)
class ExportOptions(OptionGroup):
    """What is asked of an export."""

    to: Annotated[
        str,
        Option(
            "What finds the wrong rows: sql, python, excel, pandera, dbt or great-expectations.",
            "Output",
            metavar="TOOL",
        ),
    ] = ""
    output: Annotated[Path | None, Option("Write to this file instead of stdout.", "Output")] = None
    table: Annotated[
        str | None,
        Option(
            "What is checked: a table of the database, a model of dbt, for excel a file with the same header; "
            "by default the name of the model's file.",
            metavar="TABLE",
        ),
    ] = None
    max_unjudged: Annotated[
        float,
        Option(
            "Checks fail if the share of rows that are not judged is larger; SQL lists them, too.",
            "Verdict",
            0,
            1,
            share=True,
            metavar="SHARE",
        ),
    ] = 0.05


@with_options(options=ExportOptions)
def export(
    *,
    model: Annotated[Path, typer.Argument(help="Written by massart fit --save.", metavar="MODEL")],
    options: ExportOptions,
) -> None:
    """Write a saved formula as SQL, a Python function, cell formulas, or a check for pandera, dbt, Great Expectations.

    What is written finds the rows that massart finds, and needs no massart.
    """
    from massart.audit import load_model
    from massart.export import dbt_properties
    from massart.export import export as exported
    from massart.rows import write
    from massart.tables import stream_table

    output, to, limit = options.output, options.to, options.max_unjudged
    properties = output.with_suffix(".yml") if output is not None and output.name and to == "dbt" else None
    check_outputs([model], {"--output": output, "the properties next to --output": properties})
    saved, header = load_model(model), None
    if to == "excel" and options.table is not None:
        with stream_table(options.table) as stream:
            header = stream.column_names
    text = exported(saved, to, options.table or model.stem, header, max_unjudged=limit)
    if output is None:
        typer.echo(text, nl=False)
        return
    write(output, text.encode())
    if properties is not None:
        write(properties, dbt_properties(saved, output.stem, max_unjudged=limit).encode())
    for path in filter(None, (output, properties)):
        typer.echo(f"Wrote {path}.", err=True)
