"""``massart scan``: which columns of a file follow a rule of which others."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from massart.audit import Audit, Scan, columns_of, scan_table
from massart.cli.files import check_outputs, digest, typed, write
from massart.cli.fit import names_of
from massart.cli.layout import formula_lines
from massart.cli.options import File, Page, with_options
from massart.cli.terminal import bars, harmless, json_text, one_line, say
from massart.options import Option, OptionGroup, Reading
from massart.rules import quoted
from massart.tables import read_table

_MOST_NAMES = 30


@dataclass(frozen=True)
class ScanOptions(OptionGroup):
    """What is asked of a scan, as :func:`massart.scan_table` takes it."""

    exclude: Annotated[
        Sequence[str], Option("Columns to leave out, a,b,c or one by one.", "Rule", metavar="COLUMN")
    ] = ()
    most_terms: Annotated[int, Option("Largest number of terms of a rule.", "Rule", least=1)] = 8
    wrong_at_most: Annotated[
        float,
        Option("Largest probability that a value is wrong, as far as you know: CONFIRMED assumes it.", "Errors"),
    ] = 0.5
    budget: Annotated[float, Option("Processor seconds for the whole scan.", "Rule")] = 60.0
    seed: Annotated[int, Option("Random seed.", "Rule", least=0)] = 0


@with_options(options=ScanOptions, page=Page, reading=Reading)
def scan(*, context: typer.Context, file: File, options: ScanOptions, page: Page, reading: Reading) -> None:
    """Find the rules among the columns of a table: each column of numbers is tried as a target.

    Exit status 0 if it ran, 2 for bad input.
    """
    check_outputs([file], {"--report": page.report})
    with bars(in_bytes=True) as draw:
        table = read_table(file, **reading.of_file, callback=draw)
    with bars() as draw:
        options = options.having({"exclude": names_of(options.exclude, table)})
        found = scan_table(table, **vars(options), callback=draw)
    say(found.notices, err=True)
    if page.report is not None:
        write(page.report, found.to_html({"command": typed(context), **digest(file)}))
        typer.echo(f"Wrote the report to {page.report}.", err=True)
    if page.json:
        typer.echo(json_text(found.summary()))
        return
    say(_lines(found, file))


def _lines(found: Scan, file: str) -> Iterator[str]:
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
        target, *others = columns_of(broken[0])
        lists = others if any("," in name for name in others) else [",".join(others)]
        features = [part for each in lists for part in ("--features", each)]
        terms = [summand.term for summand in broken[0].formula.terms if summand.coef and summand.term]
        asked = [] if all(term.is_column for term in terms) else ["--terms", ", ".join(map(str, terms))]
        command = shlex.join(["massart", "fit", file, "--target", target, *features, *asked])
        yield from ("", f"The wrong rows: {harmless(command)}")


def _rules(audits: Sequence[Audit]) -> Iterator[str]:
    """Write the verdict, the wrong rows and the rule of each, in columns."""
    wrong = [f"{audit.n_wrong:,} of {len(audit.agree):,} wrong" for audit in audits]
    width = max(map(len, wrong))
    for audit, counts in zip(audits, wrong, strict=True):
        yield from formula_lines(audit.formula, f"{audit.certificate.verdict.name:<9}  {counts:>{width}}  ")


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(one_line(quoted(name)) for name in names[:_MOST_NAMES])
    return shown + (f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else "")
