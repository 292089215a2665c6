"""``massart scan``: which columns of a file follow a rule of which others."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from massart.cli.bars import bars
from massart.cli.inputs import whole_table
from massart.cli.options import AsJson, File, Seed, with_options
from massart.cli.outputs import check_outputs, digest, typed, write
from massart.cli.text import json_text
from massart.options import Reading

if TYPE_CHECKING:
    from massart.audit import Audit, Scan

_MOST_NAMES = 30


@with_options(reading=Reading)
def scan(
    *,
    context: typer.Context,
    file: File,
    exclude: Annotated[list[str] | None, typer.Option(help="Columns not to look at, a,b,c or one by one.")] = None,
    most_terms: Annotated[int, typer.Option(min=1, help="Longer rules are not looked for.")] = 8,
    wrong_at_most: Annotated[
        float,
        typer.Option(help="No value is wrong with a larger probability, as far as you know: CONFIRMED assumes it."),
    ] = 0.5,
    budget: Annotated[float, typer.Option(help="Processor seconds for the whole scan.")] = 60.0,
    report: Annotated[Path | None, typer.Option(help="Write a page (HTML) that shows the rules.")] = None,
    as_json: AsJson = False,
    reading: Reading,
    seed: Seed = 0,
) -> None:
    """Find the rules among the columns of a table: each column of numbers is tried as a target.

    Exit status 0 if it ran, 2 for bad input.
    """
    from massart.audit import scan_table
    from massart.cli.fit import names_of

    check_outputs([file], {"--report": report})
    table = whole_table(file, reading)
    with bars() as draw:
        found = scan_table(
            table,
            exclude=names_of(exclude or [], table),
            most_terms=most_terms,
            wrong_at_most=wrong_at_most,
            budget=budget,
            seed=seed,
            callback=draw,
        )
    for notice in found.notices:
        typer.echo(notice, err=True)
    if report is not None:
        write(report, found.to_html({"command": typed(context), **digest(file)}))
        typer.echo(f"Wrote the report to {report}.", err=True)
    if as_json:
        typer.echo(json_text(found.summary()))
        return
    for line in _lines(found, file):
        typer.echo(line)


def _lines(found: Scan, file: str) -> Iterator[str]:
    from massart.audit.scan import columns_of
    from massart.cli.text import harmless, one_line

    if found.identities:
        yield from _rules(found.identities)
    else:
        yield "No rule was found among the sums, products and ratios that were tried."
    if found.copies:
        yield from ("", "Copies:")
        yield from _rules(found.copies)
    if found.constants:
        yield from ("", "The same in every row: " + _listed([name for name, _ in found.constants]))
    for names in found.codes:
        yield from ("", f"One-to-one: {_listed(names)}")
    if found.without_rule:
        yield from ("", "In no rule: " + _listed(found.without_rule))
    if broken := [audit for audit in (*found.identities, *found.copies) if audit.n_wrong]:
        target, *others = (one_line(name) for name in columns_of(broken[0]))
        features = ",".join(others)
        terms = [summand.term for summand in broken[0].formula.terms if summand.coef and summand.term]
        asked = [] if all(term.is_column for term in terms) else ["--terms", ", ".join(map(str, terms))]
        command = shlex.join(
            ["massart", "fit", file, "--target", target, "--features", features, *map(one_line, asked)]
        )
        yield from ("", f"The wrong rows: {harmless(command)}")


def _rules(audits: Sequence[Audit]) -> Iterator[str]:
    """Write the verdict, the wrong rows and the rule of each, in columns."""
    from massart.cli.layout import formula_lines

    wrong = [f"{audit.n_wrong:,} of {len(audit.agree):,} wrong" for audit in audits]
    width = max(map(len, wrong))
    for audit, counts in zip(audits, wrong, strict=True):
        yield from formula_lines(audit.formula, f"{audit.certificate.verdict.name:<9}  {counts:>{width}}  ")


def _listed(names: Sequence[str]) -> str:
    from massart.cli.text import one_line
    from massart.rules.terms import quoted

    shown = ", ".join(one_line(quoted(name)) for name in names[:_MOST_NAMES])
    return shown + (f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else "")
