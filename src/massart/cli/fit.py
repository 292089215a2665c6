"""``massart fit``: the formula behind a column of a file, and the rows to fix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from massart.audit import TOO_MANY_WRONG, Audit, Contract, audit_table, summary, worst_status
from massart.cli.files import check_outputs, cluster, named_after, opened, typed, write_outputs
from massart.cli.layout import MOST_WRONG_ROWS, column_lines, lines
from massart.cli.options import File, Results, with_options
from massart.cli.terminal import bars, json_text, one_line, say
from massart.options import BlockReading, CheckLimits, FitOptions, Option, Outputs
from massart.tables import Stream, Table, require_column


@dataclass(frozen=True)
class FitCommand(Results):
    """Options that only the command line has."""

    target: Annotated[
        Sequence[str],
        Option(
            "Column that should follow a rule of the others; again for another. Without it columns are shown.",
            "Rule",
            metavar="COLUMN",
        ),
    ] = ()
    save: Annotated[Path | None, Option("Write the model (JSON) for massart check and predict.", "Output")] = None
    dask: Annotated[
        str | None,
        Option(
            "Let a Dask cluster read Parquet files: tcp://...; one on this machine by default.", metavar="[ADDRESS]"
        ),
    ] = None


@with_options(asked=FitCommand, options=FitOptions, reading=BlockReading, limits=CheckLimits, outputs=Outputs)
def fit(
    *,
    context: typer.Context,
    file: File,
    asked: FitCommand,
    options: FitOptions,
    reading: BlockReading,
    limits: CheckLimits,
    outputs: Outputs,
) -> None:
    """Find the rule behind a column of a table, and list the rows that do not follow it.

    With several targets each has outputs of its own, named after it, and the worst exit status counts.

    Exit status 0 if the verdict is PROVEN, CONFIRMED or MAJORITY (or what --require asks for), 1 if it is less or
    more rows are not judged than --max-unjudged, 2 for bad input, and 3 if more rows are wrong than --max-wrong.
    """
    if options.rules is not None and asked.save is not None:
        raise ValueError("--save: a model has one rule, and --rules asks for several")
    targets: list[str | None] = [*asked.target] or [None]
    audit, fixed = (None if path is None else Path(path) for path in (outputs.audit, outputs.fixed))
    places = {"report": asked.report, "audit": audit, "fixed": fixed, "save": asked.save}
    paths = {one: named_after(places, str(one)) if len(targets) > 1 else places for one in targets}
    for each in paths.values():
        check_outputs([file], {f"--{option}": path for option, path in each.items()})
    contract = Contract.of(limits)
    statuses, results = [], []
    with opened(file, reading, as_stream=asked.dask is not None) as table, cluster(asked.dask) as client:
        own = _about(options, asked.target, table, file, asked.json)
        for one, written in paths.items():
            with bars("Fitting") as draw:
                found = audit_table(
                    table,
                    **vars(own.having({"target": one, "hypotheses": len(targets)})),
                    **vars(outputs.having(written)),
                    read_from=file if Path(file).is_file() else None,
                    announce=None if asked.json else _announce,
                    client=client,
                    callback=draw,
                )
            say(found.notices, err=True)
            refused = not outputs.force and _is_refused(found, written)
            write_outputs(found, typed(context), file, **written)
            results.append(found)
            if not asked.json:
                if len(results) > 1:
                    typer.echo("")
                tell(found, all_rows=asked.all_rows)
            outcome = contract.outcome(found)
            if outcome.status == TOO_MANY_WRONG or outcome.is_blind:
                typer.echo(f"massart: {outcome.reason}", err=True)
            statuses.append(outcome.status or int(refused))
    if asked.json:
        plain = [summary(one, contract, all_rows=asked.all_rows) for one in results]
        typer.echo(json_text(plain[0] if len(plain) == 1 else plain))
    if status := worst_status(statuses):
        raise typer.Exit(status)


def _is_refused(found: Audit, outputs: dict[str, Path | None]) -> bool:
    """Return whether a fixed table was asked for and the rule is not certain; then say so, and drop that output."""
    if outputs["fixed"] is None or not found.is_rule or found.is_certain:
        return False
    verdict = found.certificate.verdict.name
    typer.echo(f"The rule is {verdict}, not certain: no fixed table is written without --force.", err=True)
    outputs["fixed"] = None
    return True


def _about(options: FitOptions, targets: Sequence[str], table: Table | Stream, file: str, as_json: bool) -> FitOptions:
    """Return the options with columns by name, once the targets are found; without a target show the columns."""
    if not targets and options.formula is None:
        say(() if as_json else column_lines(table, file))
        raise ValueError("--target must name the column that should follow a rule (or --formula)")
    for name in targets:
        require_column(table, name)  # a wrong name is reported before any work
    lists = ("features", "exclude", "category", "number")
    return options.having({name: names_of(given, table) for name in lists if (given := getattr(options, name))})


def _announce(plain: Audit | None) -> None:
    """Say what the plain columns give, before other terms are looked at."""
    if plain is None:
        typer.echo("No rule of the plain columns at first sight; looking for products, rates, tiers ...", err=True)
        return
    n, agree = plain.n_judged, plain.n_agree
    text = one_line(plain.formula.text(10))
    typer.echo(f"Plain columns: {text} ({agree:,} of {n:,} rows). Looking for more ...", err=True)


def tell(found: Audit, *, all_rows: bool = False) -> None:
    """Print the result."""
    say(lines(found, found.n_wrong if all_rows else MOST_WRONG_ROWS))


def names_of(given: Sequence[str], table: Table | Stream) -> list[str]:
    """Return the columns named one by one or, where no column has that name, with commas between them."""
    known = set(table.column_names)
    return [name for text in given for name in ([text] if text in known else map(str.strip, text.split(",")))]
