"""Commands that use a saved rule: ``massart predict`` and ``massart export``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from massart.audit import Prediction, check_table, held, load_model, notices_of, predicted
from massart.cli.check import Result, tell_json
from massart.cli.config import CheckTask
from massart.cli.files import check_outputs, opened, typed, write, write_outputs
from massart.cli.options import File, Page, with_options
from massart.cli.terminal import bars, harmless, say
from massart.options import BlockReading, Names, Option, OptionGroup, Shares
from massart.tables import Stream, Table, assembled, csv_text, default_memory, stream_table, table_writer


@dataclass(frozen=True)
class PredictCommand(Page):
    """Options that only the command line has."""

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
    out, report = asked.out, asked.report
    check_outputs([model, file], {"--out": out, "--report": report})
    if asked.json and out is None:
        raise ValueError("--json prints what was found: --out has to say where the predictions go")
    saved, is_limited = load_model(model).weighed, bool(limits.chosen)
    most = default_memory() if reading.most_bytes is None else reading.most_bytes
    check = None
    with (
        opened(file, reading, as_stream=True) as table,
        bars("Predicting") as draw,
        _writing(out) as (parts, write),
    ):
        rows, target = held(saved, table, most, draw), saved.encoding.target.column
        if _has_values(rows, target):
            check = check_table(
                saved,
                rows,
                **vars(limits),  # by default none: targets that are not there yet are no fault here
                id=names.id,
                in_full=report is not None,
                max_memory=most,
                predictions=write,
                callback=draw,
            )
        elif is_limited or report is not None or asked.json:
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
    result = Result(CheckTask(file=file, model=model), check)
    status = check.outcome.status if is_limited else 0
    if asked.json:
        tell_json([result], status)
    else:
        typer.echo(result.line, err=True)
    if status:
        raise typer.Exit(status)


def _has_values(rows: Table | Stream, target: str) -> bool:
    """Return whether the column is there; one of a table that nobody has filled in yet is not."""
    if target not in rows.column_names:
        return False
    return not isinstance(rows, Table) or rows.column(target).null_count < rows.n_rows


@contextmanager
def _writing(out: Path | None) -> Iterator[tuple[list[Prediction], Callable[[Prediction], None]]]:
    """Yield what was written so far, and what writes the next predictions to a file or to stdout."""
    parts: list[Prediction] = []
    with nullcontext() if out is None else table_writer(out, harmless=True) as write_table:

        def write(part: Prediction) -> None:
            if write_table is None:
                head = csv_text({name: values[:0] for name, values in part.columns.items()}) if parts else ""
                typer.echo(csv_text(part.columns).removeprefix(head), nl=False)
            else:
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
    from massart.export import dbt_properties
    from massart.export import export as exported

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
    write(output, text)
    if properties is not None:
        write(properties, dbt_properties(saved, output.stem, max_unjudged=limit))
    for path in filter(None, (output, properties)):
        typer.echo(f"Wrote {path}.", err=True)
