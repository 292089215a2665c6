"""A result as lines of text, in the order in which a reader asks for it."""

from __future__ import annotations

import math
import shlex
import textwrap
from collections.abc import Iterator, Sequence

import numpy as np

from massart.audit import Audit, ListAudit
from massart.cli.text import WIDTH, harmless, one_line, table, width_of
from massart.report.words import count, judgement, share
from massart.rules.formula import ESTIMATE_DIGITS, SHOWN_DIGITS, Formula, pieces
from massart.rules.rates import Rates, text_by_level
from massart.tables import Category, Date, Flag, Number, Stream, Table, role_of

MOST_TERMS = 30
MOST_KINDS = 12
MOST_GROUPS = 10
MOST_WRONG_ROWS = 5
_FIRST_ROWS = 3
_HOLDS: dict[type, str] = {Number: "numbers", Date: "dates", Flag: "yes or no", Category: "categories"}


def lines(found: Audit, most_rows: int = MOST_WRONG_ROWS) -> Iterator[str]:
    """Say what was found: the formula, how sure it is, the coefficients, the wrong rows."""
    if isinstance(found, ListAudit):
        from massart.cli.layout import list_lines

        yield from list_lines(found, most_rows)
        return
    verdict = judgement(found.certificate)
    judged, follow = found.n_judged, found.n_agree
    unbroken = one_line(found.explanation).replace(" %", "\u00a0%")
    explanation = [line.replace("\u00a0", " ") for line in textwrap.wrap(unbroken, WIDTH)]
    if not found.is_rule:
        yield from [f"{verdict.word}.", *explanation]
        return
    yield from formula_lines(found.formula, rates=found.rates)
    yield from rate_lines(found.rates)
    yield ""
    last_place = f", {count(found.n_last_place, 'rows')} off by a last place" if found.n_last_place else ""
    apart = f", {count(found.n_apart, 'rows')} set apart" if found.n_apart else ""
    yield (
        f"{verdict.word}: {follow:,} of {judged:,} rows ({share(follow, judged)}) follow it, "
        f"{found.n_wrong:,} {'does' if found.n_wrong == 1 else 'do'} not{last_place}{apart} ({found.agreement})."
    )
    yield from explanation
    if some := list(kind_lines(found)):
        yield from ("", *some)
    if found.second_rule is not None:
        yield from ("", *textwrap.wrap(one_line(found.second_rule.explanation), WIDTH))
    yield ""
    yield from _coefficients(found)
    if found.plan.group_column is not None:
        yield ""
        yield from group_lines(found)
    if some := list(wrong_lines(found, most_rows)):
        yield from ("", *some)


def formula_lines(formula: Formula, start: str = "", rates: Sequence[Rates] = ()) -> Iterator[str]:
    """Break the formula into lines, each of whole terms with their signs; behind a `start`, if there is one."""
    first, *others = pieces(one_line(text_by_level(formula, rates, MOST_TERMS)))
    line, indent = start + first, " " * (len(start) + 2 if start else 4)
    for piece in others:
        if width_of(f"{line} {piece}") > WIDTH + len(start) // 2:
            yield line
            line = indent + piece
        else:
            line += f" {piece}"
    yield line


def rate_lines(rates: Sequence[Rates]) -> Iterator[str]:
    """List rates by level below the formula that has them."""
    for each in rates:
        listed = "; ".join(f"{levels} {number}" for levels, number in each.listed)
        yield from textwrap.wrap(
            one_line(f"{each.name}: {listed}"), WIDTH, initial_indent="  ", subsequent_indent="    "
        )


def kind_lines(found: Audit) -> Iterator[str]:
    """Show what happened, how often, and a row in which it did; nothing where nothing is explained."""
    if not any(kind.explains for kind in found.kinds.kinds):
        return
    kinds = found.kinds.kinds[:MOST_KINDS]
    example = found.some(np.array([kind.examples[0] for kind in kinds]))
    hidden = {found.column_of(example, name) for name in ("residual", "wrong", "kind", "rank")}
    names = [name for name in example if name not in hidden]
    head = ["what happened", "rows", f"for example {names[0]}", *names[1:]]
    cells = ([cell_of(value) for value in example[name]] for name in names)
    rows = zip((kind.label for kind in kinds), (f"{kind.rows:,}" for kind in kinds), *cells, strict=True)
    yield from table([head, *rows])
    if len(found.kinds.kinds) > MOST_KINDS:
        yield f"... and {len(found.kinds.kinds) - MOST_KINDS} more (--json has them all)"


def _coefficients(found: Audit) -> Iterator[str]:
    formula, thin = found.formula, dict(found.certificate.thin)
    rows = [("term", "coefficient", "rows that use it", "agree")]
    known = [each for each in enumerate(zip(formula.all_terms, found.usage(), strict=True)) if each[1][0].is_shown]
    unused = [term.label for j, (term, _) in known if formula.has_no_effect(term) and j not in thin]
    taken = {place for rates in found.rates for place in rates.places}
    amounts = {term.column for term in formula.terms if term.level is not None and term.coef}
    shown = [
        (j, (term, usage))
        for j, (term, usage) in known
        if term.label not in unused
        and j not in taken
        and (term.coef or term.level is None or term.column in amounts or not term.determined or j in thin)
    ]
    for rates in found.rates:
        n, k = rates.counted([(usage.n_rows, usage.n_agree) for usage in found.usage()])
        rows.append((rates.text, f"{len(rates.rates)} rates", f"{n:,}", share(k, n)))
    for column, (term, usage) in shown[:MOST_TERMS]:
        number = term.number(ESTIMATE_DIGITS if formula.noisy else SHOWN_DIGITS)
        if column in thin:
            number = f"left out, on {count(thin[column], 'rows')}"
        elif not term.determined:
            number = "not determined"
        elif formula.noisy and math.isfinite(term.standard_error):
            number += f" ± {term.standard_error:.2g}"
        rows.append((term.label, number, f"{usage.n_rows:,}", share(usage.n_agree, usage.n_rows)))
    yield from table(rows)
    if len(shown) > MOST_TERMS:
        yield f"... and {len(shown) - MOST_TERMS} more (--json has them all)"
    if found.bases:
        listed = one_line("; ".join(f"{name} = {level}" for name, level in found.bases.items()))
        yield from textwrap.wrap(
            f"Levels without a term: {listed}.", WIDTH, initial_indent="  ", subsequent_indent="  "
        )
    if unused:
        more = f" and {len(unused) - MOST_TERMS} more" if len(unused) > MOST_TERMS else ""
        names = one_line(", ".join(unused[:MOST_TERMS]))
        yield from textwrap.wrap(
            f"Not in the rule (0): {names}{more}.", WIDTH, initial_indent="  ", subsequent_indent="  "
        )


def group_lines(found: Audit) -> Iterator[str]:
    """Show the wrong rows of each value of the group column."""
    groups = found.groups()
    rows = [(found.plan.group_column or "", "wrong" if found.certificate.verdict.stands else "off", "rows", "share")]
    rows += [
        (group.name, f"{group.n_wrong:,}", f"{group.n_rows:,}", share(group.n_wrong, group.n_rows))
        for group in groups[:MOST_GROUPS]
    ]
    yield from table(rows)
    if len(groups) > MOST_GROUPS:
        yield f"... and {len(groups) - MOST_GROUPS} more groups"


def wrong_lines(found: Audit, most: int) -> Iterator[str]:
    """Show the worst rows; nothing where none is wrong."""
    if not found.n_wrong:
        return
    worst = found.worst(most)
    shown = len(worst[next(iter(worst))])
    if not found.certificate.verdict.stands:  # then the formula may be wrong, and not the rows
        yield f"The {shown} of {found.n_wrong:,} rows that are farthest from it:"
    else:
        yield "The wrong row:" if found.n_wrong == 1 else f"The {shown} worst of {found.n_wrong:,} wrong rows:"
    kind = found.column_of(worst, "kind")
    hidden = {
        kind,
        found.column_of(worst, "wrong"),
        found.column_of(worst, "rank"),
    }  # all are wrong, and in the order of rank
    chosen = [*(name for name in worst if name not in hidden), kind]
    cells = ([cell_of(value) for value in worst[name]] for name in chosen)
    yield from table([chosen, *zip(*cells, strict=True)], name=len(chosen) - 1)


def column_lines(read: Table | Stream, file: str) -> Iterator[str]:
    """Show the columns of a file, what they hold and their first values, and which command could come next."""
    some = read if isinstance(read, Table) else next(iter(read.blocks()))
    names = some.column_names
    cells = some.cells(names, np.arange(min(_FIRST_ROWS, some.n_rows)))
    holds = [_HOLDS.get(type(role_of(some, name).entry), "texts") for name in names]
    values = [", ".join(one_line(cell_of(value)) for value in cells[name]) for name in names]
    yield from table([("column", "holds", "first values"), *zip(map(one_line, names), holds, values, strict=True)])
    yield ""
    numbers = [name for name, kind in zip(names, holds, strict=True) if kind == "numbers"]
    if numbers:
        yield f"Name one: {harmless(shlex.join(['massart', 'fit', file, '--target', numbers[-1]]))}"
    yield f"Try all:  {harmless(shlex.join(['massart', 'scan', file]))}"


def cell_of(value: object) -> str:
    """Return a cell of a table as text."""
    if isinstance(value, float):
        return f"{value:.10g}"
    return "" if value is None else str(value)


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
    example = found.under_rules(np.array([kind.examples[0] for kind in kinds], dtype=np.intp))
    del example[found.column_of(example, "what happened")]
    cells = ([cell_of(value) for value in values] for values in example.values())
    first, *names = example
    rows = zip((kind.label for kind in kinds), (f"{kind.rows:,}" for kind in kinds), *cells, strict=True)
    yield from table([["what happened", "rows", f"for example {first}", *names], *rows])
