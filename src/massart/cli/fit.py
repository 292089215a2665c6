"""``massart fit``: the formula behind a column of a file, and the rows to fix."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from massart.cli.bars import spinner
from massart.cli.config import Requirement
from massart.cli.inputs import BlockReading, cluster, opened, with_reading
from massart.cli.options import AllRows, AsJson, File, Group, IdColumn, MaxUnjudged, MaxWrong, Report, Seed, Strict
from massart.cli.outputs import check_outputs, typed, write_outputs
from massart.cli.text import json_text

if TYPE_CHECKING:
    from massart.audit import Audit, Contract
    from massart.tables import Stream, Table


class Inliers(StrEnum):
    """What right rows are."""

    auto = "auto"
    exact = "exact"
    noisy = "noisy"


class Errors(StrEnum):
    """What is declared of errors."""

    arbitrary = "arbitrary"
    independent = "independent"


class Kind(StrEnum):
    """Kinds of formula."""

    auto = "auto"
    linear = "linear"
    relu = "relu"


@with_reading
def fit(
    *,
    context: typer.Context,
    file: File,
    target: Annotated[
        list[str] | None, typer.Option(help="The column that should follow a rule of the others; again for another.")
    ] = None,
    terms: Annotated[
        str,
        typer.Option(
            help='What the rule is made of: auto looks beyond the columns, "columns" does not, or terms such as '
            '"qty*price, hours:service, max(0, kwh-200)".'
        ),
    ] = "auto",
    formula: Annotated[
        str | None, typer.Option(help='The same in the words of R: "total ~ qty:price + hours:C(service)".')
    ] = None,
    budget: Annotated[float, typer.Option(min=0, help="Processor seconds for the search beyond the columns.")] = 20.0,
    model: Annotated[
        Kind, typer.Option(help="A sum of terms, or one that is 0 where it is negative; auto takes what is surer.")
    ] = Kind.auto,
    features: Annotated[
        list[str] | None, typer.Option(help="Columns that the formula may use, a,b,c or one by one; all by default.")
    ] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="Columns that it may not use.")] = None,
    category: Annotated[list[str] | None, typer.Option(help="Columns whose numbers are codes.")] = None,
    number: Annotated[
        list[str] | None, typer.Option(help="Columns of numbers: rows with anything else there are left out.")
    ] = None,
    id_column: IdColumn = None,
    group: Group = None,
    error_unit: Annotated[
        str | None, typer.Option(help="Rows with the same value in this column may be wrong together.")
    ] = None,
    wrong_at_most: Annotated[
        float,
        typer.Option(help="No label is wrong with a larger probability, as far as you know: CONFIRMED assumes it."),
    ] = 0.5,
    errors: Annotated[
        Errors,
        typer.Option(
            help="Declare that errors depend neither on the columns nor on each other, and that no wrong amount is as "
            "frequent as right labels: then a rule may be CONFIRMED though most rows break it."
        ),
    ] = Errors.arbitrary,
    tolerance: Annotated[
        str, typer.Option(help="Largest residual of a right row, such as 0.005; auto is rounding error.")
    ] = "auto",
    rules: Annotated[
        str | None,
        typer.Option(
            metavar="auto|N",
            help="Several rules, each followed by some of the rows: at most N, or until one fails its test.",
        ),
    ] = None,
    inliers: Annotated[
        Inliers, typer.Option(help="Right rows follow the rule exactly, or up to noise; auto asks the rows.")
    ] = Inliers.auto,
    intercept: Annotated[bool, typer.Option(help="Whether the formula has a constant.")] = True,
    strict: Strict = False,
    max_wrong: MaxWrong = None,
    max_unjudged: MaxUnjudged = None,
    require: Annotated[Requirement, typer.Option(help="Exit with 1 if the verdict is less.")] = Requirement.majority,
    report: Report = None,
    audit: Annotated[
        Path | None, typer.Option(help="Write all rows, worst first: given, implied, residual (CSV, Parquet).")
    ] = None,
    fixed: Annotated[
        Path | None, typer.Option(help="Write the table with its wrong targets replaced, the given ones beside.")
    ] = None,
    fill: Annotated[bool, typer.Option("--fill", help="Fill in missing targets in the fixed table, too.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Write the fixed table though the rule is not certain.")
    ] = False,
    save: Annotated[Path | None, typer.Option(help="Write the model (JSON) for massart check and predict.")] = None,
    as_json: AsJson = False,
    all_rows: AllRows = False,
    reading: BlockReading,
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="[ADDRESS]",
            help="Let a Dask cluster read Parquet files: tcp://...; one on this machine by default.",
        ),
    ] = None,
    seed: Seed = 0,
) -> None:
    """Find the rule behind a column of a table, and list the rows that do not follow it.

    With several targets each has outputs of its own, named after it, and the worst exit status counts.

    Exit status 0 if the verdict is PROVEN, CONFIRMED or MAJORITY (or what --require asks for), 1 if it is less or
    more rows are not judged than --max-unjudged, 2 for bad input, and 3 if more rows are wrong than --max-wrong.
    """
    from massart.audit import TOO_MANY_WRONG, Contract, audit_table, worst_status
    from massart.certificate import Verdict
    from massart.tables import require_column

    level, most_rules = _tolerance(tolerance), _rules(rules)
    if most_rules is not None and save is not None:
        raise ValueError("--save: a model has one rule, and --rules asks for several")
    targets: list[str | None] = [*(target or [])] or [None]
    if targets == [None] and formula is None:
        raise ValueError("--target must name the column that should follow a rule (or --formula)")
    all_of = [("--report", report), ("--audit", audit), ("--fixed", fixed), ("--save", save)]
    named = {
        one: {option: path and named_after(path, one) if one and len(targets) > 1 else path for option, path in all_of}
        for one in targets
    }
    for paths in named.values():
        check_outputs([file], paths)
    contract = Contract(max_wrong, Verdict[require.name.upper()], max_unjudged)
    statuses, results = [], []
    with opened(file, reading, as_stream=dask is not None) as table, cluster(dask) as client:
        for name in target or []:
            require_column(table, name)  # a wrong name is told before any work
        for one, paths in named.items():
            with spinner("Fitting") as draw:
                found = audit_table(
                    table,
                    one,
                    terms=terms,
                    formula=formula,
                    model=model.value,
                    features=None if features is None else names_of(features, table),
                    exclude=names_of(exclude or [], table),
                    category=names_of(category or [], table),
                    number=names_of(number or [], table),
                    id_column=id_column,
                    group_column=group,
                    error_unit=error_unit,
                    wrong_at_most=wrong_at_most,
                    errors=errors.value,
                    looks=len(targets),
                    tolerance=level,
                    rules=most_rules,
                    inliers=inliers.value,
                    intercept=intercept,
                    strict=strict,
                    budget=budget,
                    seed=seed,
                    audit=paths["--audit"],
                    fixed=paths["--fixed"],
                    fill=fill,
                    force=force,
                    read_from=file if Path(file).is_file() else None,
                    announce=None if as_json else _announce,
                    client=client,
                    callback=draw,
                )
            tell_notices(found)
            refused = paths["--fixed"] is not None and found.is_rule and not found.is_certain and not force
            if refused:
                verdict = found.certificate.verdict.name
                typer.echo(f"The rule is {verdict}, not certain: no fixed table is written without --force.", err=True)
                paths = {**paths, "--fixed": None}
            write_outputs(found, typed(context), file, **{option[2:]: path for option, path in paths.items()})
            results.append(found)
            if not as_json:
                if len(results) > 1:
                    typer.echo("")
                tell(found, all_rows=all_rows)
            outcome = contract.outcome(found)
            if outcome.status == TOO_MANY_WRONG or outcome.is_blind:
                typer.echo(f"massart: {outcome.reason}", err=True)
            statuses.append(outcome.status or int(refused))
    if as_json:
        tell_json(results, contract, all_rows=all_rows)
    if status := worst_status(statuses):
        raise typer.Exit(status)


def named_after(path: Path, what: str) -> Path:
    """Return the name of one output of several: report.html becomes report-total.html."""
    name = re.sub(r"\W+", "-", what).strip("-") or "target"
    return path.with_name(f"{path.stem}-{name}{path.suffix}") if path.name else path  # a folder, which is refused later


def _announce(plain: Audit | None) -> None:
    """Say what the plain columns give, before other terms are looked at."""
    if plain is None:
        typer.echo("No rule of the plain columns at first sight; looking for products, rates, tiers ...", err=True)
        return
    from massart.cli.text import one_line

    n, agree = plain.n_judged, plain.n_agree
    text = one_line(plain.formula.text(10))
    typer.echo(f"Plain columns: {text} ({agree:,} of {n:,} rows). Looking for more ...", err=True)


def tell_notices(found: Audit) -> None:
    """Say what was left out or interpreted, on stderr."""
    for notice in found.notices:
        typer.echo(notice, err=True)


def tell(found: Audit, *, all_rows: bool = False) -> None:
    """Print the result."""
    from massart.cli.layout import MOST_WRONG_ROWS, lines

    for line in lines(found, found.n_wrong if all_rows else MOST_WRONG_ROWS):
        typer.echo(line)


def tell_json(results: Sequence[Audit], contract: Contract, *, all_rows: bool) -> None:
    """Print the result as JSON, several in a list."""
    from massart.audit import summary

    found = [summary(one, contract, all_rows=all_rows) for one in results]
    typer.echo(json_text(found[0] if len(found) == 1 else found))


def _tolerance(text: str) -> float | Literal["auto"]:
    if text == "auto":
        return "auto"
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--tolerance must be auto or a number, got {text!r}") from None


def _rules(text: str | None) -> int | Literal["auto"] | None:
    if text is None or text == "auto":
        return None if text is None else "auto"
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"--rules must be auto or a whole number of at least 1, got {text!r}")
    return int(text)


def names_of(given: Sequence[str], table: Table | Stream) -> list[str]:
    """Return the columns named one by one or, where no column has that name, with commas between them."""
    known = set(table.column_names)
    return [name for text in given for name in ([text] if text in known else map(str.strip, text.split(",")))]
