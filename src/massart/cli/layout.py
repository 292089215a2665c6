"""A result as lines of text, in the order in which a reader asks for it."""

from __future__ import annotations

import math
import shlex
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from massart.cli.terminal import WIDTH, harmless, one_line, table, width_of
from massart.report import cell_of, count, judgement, share
from massart.rules import ESTIMATE_DIGITS, SHOWN_DIGITS, Formula, Rates, Summand, pieces, text_by_level
from massart.tables import Category, Date, Flag, Number, Stream, Table, role_of

if TYPE_CHECKING:
    from massart.audit import Audit, ListAudit

MOST_TERMS = 30
MOST_KINDS = 12
MOST_GROUPS = 10
MOST_WRONG_ROWS = 5
_FIRST_ROWS = 3
_HOLDS: dict[type, str] = {Number: "numbers", Date: "dates", Flag: "yes or no", Category: "categories"}


def is_list(found: Audit) -> TypeGuard[ListAudit]:
    """Return whether several rules were found; a check of one does not load what searches for them."""
    return hasattr(found, "under_rules")


def lines(found: Audit, most_rows: int = MOST_WRONG_ROWS) -> Iterator[str]:
    """Say what was found: the formula, how sure it is, the coefficients, the wrong rows."""
    if is_list(found):
        yield from list_lines(found, most_rows)
        return
    verdict = judgement(found.certificate)
    judged, follow = found.n_judged, found.n_agree
    if not found.is_rule:
        yield from [f"{verdict.word}.", *_wrapped(found.explanation)]
        return
    yield from formula_lines(found.formula, rates=found.rates)
    for each in found.rates:
        listed = "; ".join(f"{levels} {number}" for levels, number in each.listed)
        yield from _wrapped(f"{each.name}: {listed}", "  ", "    ")
    yield ""
    last_place = f", {count(found.n_last_place, 'rows')} off by a last place" if found.n_last_place else ""
    apart = f", {count(found.n_apart, 'rows')} set apart" if found.n_apart else ""
    yield (
        f"{verdict.word}: {follow:,} of {judged:,} rows ({share(follow, judged)}) follow it, "
        f"{found.n_wrong:,} {'does' if found.n_wrong == 1 else 'do'} not{last_place}{apart} ({found.agreement})."
    )
    yield from _wrapped(found.explanation)
    second = [] if found.second_rule is None else _wrapped(found.second_rule.explanation)
    yield from paragraphs(kind_lines(found), second, _coefficients(found), group_lines(found))
    yield from paragraphs(wrong_lines(found, most_rows))


def paragraphs(*blocks: Iterable[str]) -> Iterator[str]:
    """Yield lines, an empty one before each block that has any."""
    for block in blocks:
        if some := list(block):
            yield from ("", *some)


def _wrapped(text: str, first: str = "", others: str = "") -> list[str]:
    """Break a text into lines, but not before a percent sign."""
    unbroken = one_line(text).replace(" %", "\u00a0%")
    broken = textwrap.wrap(unbroken, WIDTH, initial_indent=first, subsequent_indent=others)
    return [line.replace("\u00a0", " ") for line in broken]


def _first(rows: Sequence[Sequence[str]], most: int, more: str = "(--json has them all)") -> Iterator[str]:
    """Lay out the first rows of a table below its header, and say how many more there are."""
    yield from table(rows[: most + 1])
    if len(rows) > most + 1:
        yield f"... and {len(rows) - most - 1} more {more}"


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


def kind_lines(found: Audit) -> Iterator[str]:
    """Show what happened, how often, and a row in which it did; nothing where nothing is explained."""
    if not any(kind.explains for kind in found.kinds.kinds):
        return
    kinds = found.kinds.kinds[:MOST_KINDS]
    index = np.array([kind.examples[0] for kind in kinds], dtype=np.intp)
    if is_list(found):
        example = found.under_rules(index)
        del example[found.column_of(example, "what happened")]
    else:
        example = found.some(index)
        hidden = {found.column_of(example, name) for name in ("residual", "wrong", "kind", "rank")}
        example = {name: cells for name, cells in example.items() if name not in hidden}
    first, *names = example
    rows = zip((kind.label for kind in kinds), (f"{kind.rows:,}" for kind in kinds), *_cells(example), strict=True)
    yield from table([["what happened", "rows", f"for example {first}", *names], *rows])
    if len(found.kinds.kinds) > MOST_KINDS:
        yield f"... and {len(found.kinds.kinds) - MOST_KINDS} more (--json has them all)"


def _coefficients(found: Audit) -> Iterator[str]:
    formula, usage, thin = found.formula, found.usage(), dict(found.certificate.thin)
    terms = [(j, term) for j, term in enumerate(formula.all_terms) if term.is_shown]
    silent = {j: term.label for j, term in terms if formula.has_no_effect(term) and j not in thin}
    by_level = {j for rates in found.rates for j in rates.places}
    amounts = {term.column for term in formula.terms if term.level is not None and term.coef}
    rows = [("term", "coefficient", "rows that use it", "agree")]
    for rates in found.rates:
        n, k = rates.counted([(each.n_rows, each.n_agree) for each in usage])
        rows.append((rates.text, f"{len(rates.rates)} rates", f"{n:,}", share(k, n)))
    for j, term in terms:
        is_base = term.level is not None and term.column not in amounts and not term.coef and term.determined
        if j in silent or j in by_level or (is_base and j not in thin):
            continue
        number = _number(term, formula) if j not in thin else f"left out, on {count(thin[j], 'rows')}"
        rows.append((term.label, number, f"{usage[j].n_rows:,}", share(usage[j].n_agree, usage[j].n_rows)))
    yield from _first(rows, MOST_TERMS + len(found.rates))
    if found.bases:
        listed = "; ".join(f"{name} = {level}" for name, level in found.bases.items())
        yield from _wrapped(f"Levels without a term: {listed}.", "  ", "  ")
    if silent:
        more = f" and {len(silent) - MOST_TERMS} more" if len(silent) > MOST_TERMS else ""
        yield from _wrapped(f"Not in the rule (0): {', '.join([*silent.values()][:MOST_TERMS])}{more}.", "  ", "  ")


def _number(term: Summand, formula: Formula) -> str:
    """Return a coefficient, with its standard error where it is an estimate."""
    if not term.determined:
        return "not determined"
    error = f" ± {term.standard_error:.2g}" if formula.noisy and math.isfinite(term.standard_error) else ""
    return term.number(ESTIMATE_DIGITS if formula.noisy else SHOWN_DIGITS) + error


def group_lines(found: Audit) -> Iterator[str]:
    """Show the wrong rows of each value of the group column, if there is one."""
    if found.plan.group_column is None:
        return
    rows = [(found.plan.group_column, "wrong" if found.certificate.verdict.stands else "off", "rows", "share")]
    rows += [
        (group.name, f"{group.n_wrong:,}", f"{group.n_rows:,}", share(group.n_wrong, group.n_rows))
        for group in found.groups()
    ]
    yield from _first(rows, MOST_GROUPS, "groups")


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
    # All of them are wrong, and in the order of rank.
    hidden = {found.column_of(worst, "wrong"), found.column_of(worst, "rank")}
    chosen = {name: worst[name] for name in [*(name for name in worst if name != kind), kind] if name not in hidden}
    yield from _set(chosen)


def _cells(columns: Mapping[str, Iterable[object]]) -> list[list[str]]:
    return [[cell_of(value) for value in values] for values in columns.values()]


def _set(columns: Mapping[str, Iterable[object]]) -> Iterator[str]:
    """Lay out columns as a table; the last one holds texts."""
    yield from table([[*columns], *zip(*_cells(columns), strict=True)], name=len(columns) - 1)


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


def list_lines(found: ListAudit, most_rows: int) -> Iterator[str]:
    """Say what was found: each rule, the rows of each, the coefficients side by side, rows that follow none."""
    for k, rule in enumerate(found.rules, 1):
        yield from formula_lines(rule.formula, f"Rule {k}: ")
    yield ""
    yield from _wrapped(f"{judgement(found.certificate).word}: {found.explanation}")
    yield from _wrapped(found.when)
    rows = [
        ("", *(f"rule {k}" for k in range(1, len(found.rules) + 1))),
        ("rows", *(f"{rule.n_rows:,}" for rule in found.rules)),
        ("rows its test asked for", *(f"{rule.listed.test.needed:,}" for rule in found.rules)),
        *((term, *numbers) for term, numbers in found.coefficients()),
    ]
    yield from paragraphs(_first(rows, MOST_TERMS + 2), kind_lines(found), group_lines(found))
    if found.n_wrong:
        some = found.none_rows(most_rows)
        n = len(next(iter(some.values())))
        which = f"{count(n, 'rows')} {'follows' if n == 1 else 'follow'} none; what each rule gives:"
        if found.n_wrong > n:
            which = f"{n} of the {found.n_wrong:,} rows that follow none, and what each rule gives:"
        yield from ("", which, *_set(some))
