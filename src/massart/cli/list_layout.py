"""A list of rules as lines of text: the rules, how many rows follow each, and the rows that follow none."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import numpy as np

from massart.audit import ListAudit
from massart.cli.layout import MOST_KINDS, MOST_TERMS, cell_of, formula_lines, group_lines
from massart.cli.text import WIDTH, one_line, table
from massart.report.words import count, judgement


def list_lines(found: ListAudit, most_rows: int) -> Iterator[str]:
    """Say what was found: each rule, the rows of each, the coefficients side by side, rows that follow none."""
    for k, rule in enumerate(found.rules, 1):
        yield from formula_lines(rule.formula, f"Rule {k}: ")
    yield ""
    unbroken = f"{judgement(found.certificate).word}: {one_line(found.explanation)}".replace(" %", "\u00a0%")
    yield from (line.replace("\u00a0", " ") for line in textwrap.wrap(unbroken, WIDTH))
    yield from textwrap.wrap(found.when, WIDTH)
    yield ""
    yield from _rules(found)
    if any(kind.explains for kind in found.kinds.kinds):
        yield ""
        yield from _kinds(found)
    if found.plan.group_column is not None:
        yield ""
        yield from group_lines(found)
    if found.n_wrong:
        yield ""
        yield from none_lines(found, most_rows)


def _rules(found: ListAudit) -> Iterator[str]:
    """Show the rows and the coefficients of the rules side by side."""
    rules = found.rules
    rows = [("", *(f"rule {k}" for k in range(1, len(rules) + 1)))]
    rows.append(("rows", *(f"{rule.n_rows:,}" for rule in rules)))
    rows.append(("rows its test asked for", *(f"{rule.listed.test.needed:,}" for rule in rules)))
    terms = found.coefficients()
    rows += [(term, *numbers) for term, numbers in terms[:MOST_TERMS]]
    yield from table(rows)
    if len(terms) > MOST_TERMS:
        yield f"... and {len(terms) - MOST_TERMS} more (--json has them all)"


def none_lines(found: ListAudit, most: int) -> Iterator[str]:
    """Show some rows that follow no rule, and what each rule gives there."""
    some = found.none_rows(most)
    n = len(next(iter(some.values())))
    if found.n_wrong > n:
        yield f"{n} of the {found.n_wrong:,} rows that follow none, and what each rule gives:"
    else:
        yield f"{count(n, 'rows')} {'follows' if n == 1 else 'follow'} none; what each rule gives:"
    cells = ([cell_of(value) for value in values] for values in some.values())
    yield from table([[*some], *zip(*cells, strict=True)], name=len(some) - 1)


def _kinds(found: ListAudit) -> Iterator[str]:
    """Show what happened in rows that follow no rule, how often, and one of these rows."""
    kinds = found.kinds.kinds[:MOST_KINDS]
    example = found.beside_rules(np.array([kind.examples[0] for kind in kinds], dtype=np.intp))
    del example[next(reversed(example))]
    cells = ([cell_of(value) for value in values] for values in example.values())
    first, *names = example
    rows = zip((kind.label for kind in kinds), (f"{kind.rows:,}" for kind in kinds), *cells, strict=True)
    yield from table([["what happened", "rows", f"for example {first}", *names], *rows])
