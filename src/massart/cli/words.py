"""A result as lines of text, in the order in which a reader asks for it."""

from __future__ import annotations

import math
import re
import textwrap
import unicodedata
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from massart.audit import Audit

WIDTH = 100
MOST_TERMS = 30
MOST_GROUPS = 10
MOST_WRONG_ROWS = 5

_MOST_CELL = 28
_GLUE = "\0"
_GLUED = re.compile(r"`[^`]*`|\([^()]*\)| \* |(?<= [-+]) ")


def harmless(text: object) -> str:
    """Return a text with what a terminal would take for a command, line ends among them, written out."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


def one_line(text: str) -> str:
    """Return a text of any layout as one harmless line."""
    return harmless(" ".join(text.split()))


def lines(found: Audit) -> Iterator[str]:
    """Say what was found: the formula, how sure it is, the coefficients, the wrong rows."""
    yield from _formula(one_line(found.formula.text(MOST_TERMS)))
    yield ""
    judged = len(found.wrong)
    follow = judged - found.n_wrong
    yield (
        f"{found.certificate.verdict.name}: {follow:,} of {judged:,} rows ({_percent(follow, judged)}) follow it, "
        f"{found.n_wrong:,} {'does' if found.n_wrong == 1 else 'do'} not ({found.tolerance.reason})."
    )
    yield from textwrap.wrap(one_line(found.certificate.explain()), WIDTH)
    yield ""
    yield from _coefficients(found)
    if found.plan.group_column is not None:
        yield ""
        yield from _groups(found)
    if found.n_wrong:
        yield ""
        yield from _wrong_rows(found)


def _formula(text: str) -> Iterator[str]:
    """Break a formula into lines, each of whole terms with their signs."""
    glued = _GLUED.sub(lambda piece: piece[0].replace(" ", _GLUE), text)
    for line in textwrap.wrap(glued, WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False):
        yield line.replace(_GLUE, " ")


def _coefficients(found: Audit) -> Iterator[str]:
    formula = found.formula
    terms = [*formula.terms, *([formula.intercept] if formula.intercept else [])]
    rows = [("term", "coefficient", "rows that use it", "agree")]
    for term, support in list(zip(terms, found.support(), strict=True))[:MOST_TERMS]:
        number = term.number(5 if formula.noisy else 10) if term.determined else "not determined"
        if formula.noisy and term.determined and math.isfinite(term.standard_error):
            number += f" ± {term.standard_error:.2g}"
        rows.append((term.label, number, f"{support.n_rows:,}", _percent(support.n_agree, support.n_rows)))
    yield from table(rows)
    if len(terms) > MOST_TERMS:
        yield f"... and {len(terms) - MOST_TERMS} more (--json has them all)"


def _groups(found: Audit) -> Iterator[str]:
    groups = found.groups()
    rows = [(found.plan.group_column or "", "wrong" if found.is_certain else "off", "rows", "share")]
    rows += [
        (group.name, f"{group.n_wrong:,}", f"{group.n_rows:,}", _percent(group.n_wrong, group.n_rows))
        for group in groups[:MOST_GROUPS]
    ]
    yield from table(rows)
    if len(groups) > MOST_GROUPS:
        yield f"... and {len(groups) - MOST_GROUPS} more groups"


def _wrong_rows(found: Audit) -> Iterator[str]:
    worst = found.worst(MOST_WRONG_ROWS)
    shown = min(MOST_WRONG_ROWS, found.n_wrong)
    if not found.is_certain:  # then the formula may be wrong, and not the rows
        yield f"The {shown} of {found.n_wrong:,} rows that are farthest from it:"
    else:
        yield "The wrong row:" if found.n_wrong == 1 else f"The {shown} worst of {found.n_wrong:,} wrong rows:"
    chosen = list(worst)[:-2]  # all are wrong, and in the order of their rank
    cells = ([_cell(value) for value in worst[name]] for name in chosen)
    yield from table([chosen, *zip(*cells, strict=True)])


def table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Set texts in columns: the first to the left, the others to the right."""
    short = [[_cut(cell) for cell in row] for row in rows]
    widths = [max(width_of(row[j]) for row in short) for j in range(len(short[0]))]
    for row in short:
        first, *others = (
            cell + " " * (width - width_of(cell)) if j == 0 else " " * (width - width_of(cell)) + cell
            for j, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(["  " + first, *others]).rstrip()


def width_of(text: str) -> int:
    """Return how many columns of a terminal a text takes: Chinese letters take two, combining accents none."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide - sum(unicodedata.combining(letter) > 0 for letter in text)


def _cut(text: str) -> str:
    """Return a text that fits into a cell; names that are long differ at their ends, so the middle goes."""
    clean = "".join(letter if letter.isprintable() else " " for letter in text)
    if width_of(clean) <= _MOST_CELL:
        return clean
    kept = len(clean) - 1
    while width_of(shown := f"{clean[: (kept + 1) // 2]}…{clean[len(clean) - kept // 2 :]}") > _MOST_CELL:
        kept -= 1
    return shown


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.10g}"
    return "" if value is None else str(value)


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"
