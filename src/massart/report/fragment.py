"""A report in a notebook and in a terminal: short, and without a script; and its table of coefficients."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from itertools import islice

from massart.report.findings import MOST_TERMS, Findings, ReportRows
from massart.report.pictures import MARKS, legend, scatter, shown_kinds
from massart.report.rows import clean, columns_of, wrong_residuals
from massart.report.words import count, listed, name_of, share
from massart.rules import ESTIMATE_DIGITS, SHOWN_DIGITS, Summand, pieces

MOST_ROWS = 10  # wrong rows in a notebook


@dataclass(frozen=True, slots=True)
class Coefficient:
    """One row of the table of coefficients, in words."""

    label: str
    number: str
    certainty: str
    evidence: str
    determined: bool  # whether the rows that agree determine it
    silent: bool  # whether it is zero, and not just left out or open


def coefficients(findings: Findings) -> Iterator[Coefficient]:
    """Describe each coefficient, the constant last."""
    formula, certificate = findings.formula, findings.certificate
    groups = {column: group for group in certificate.undetermined_columns for column in group}
    thin, names = dict(certificate.thin), formula.names
    digits = ESTIMATE_DIGITS if formula.noisy else SHOWN_DIGITS
    for column, term in enumerate(formula.all_terms):
        is_constant = column == len(formula.terms)
        if not term.is_shown:
            continue
        evidence = ""
        if column in thin:
            evidence = f"left out: it rests on {count(thin[column], 'rows')}"
        elif not term.determined:
            evidence = _open(column, groups.get(column, ()), names)
        elif findings.usage:
            n, k = findings.usage[column].n_rows, findings.usage[column].n_agree
            evidence = f"{k:,} of {n:,} {'rows' if is_constant else 'rows that use it'} agree ({share(k, n)})"
        yield Coefficient(
            clean(term.label),
            term.number(digits),
            _certainty(term, digits, column in thin),
            evidence,
            term.determined,
            silent=formula.has_no_effect(term) and column not in thin,
        )


def _certainty(term: Summand, digits: int, thin: bool) -> str:
    if not term.determined:
        return "open"
    if thin:
        return "not known"
    if term.exact is not None:
        return "exact"
    if term.standard_error > 0:
        return f"± {term.standard_error:.2g}"
    return "not known" if math.isnan(term.standard_error) else f"rounded to {digits} digits"


def _open(column: int, group: tuple[int, ...], names: tuple[str, ...]) -> str:
    if len(group) == 1:
        return "not determined: no agreeing row uses it"
    partners = [clean(name_of(other, names)) for other in group if other != column]
    return f"not determined: moves together with {listed(partners)}" if partners else "not determined"


def fragment(findings: Findings) -> str:
    """Return the formula, the verdict, what happened, a picture and the first wrong rows as HTML for a notebook."""
    judgement = findings.judgement
    claim = judgement.meaning if findings.is_rule else findings.explanation
    parts = [
        f"<p class='massart-title'>{escape(clean(findings.title))}</p>",
        f"<p class='massart-verdict massart-{judgement.word.lower()}'><strong>{judgement.sign} "
        f"{judgement.word}</strong> {escape(claim)}</p>",
    ]
    if findings.is_rule:
        formula = " ".join(f"<span>{escape(piece)}</span>" for piece in pieces(findings.formula_text))
        parts.insert(1, f"<p class='massart-formula'><code>{formula}</code></p>")
        parts.append(_bar(findings, judgement.off))
    if findings.rows is not None:
        parts += [_kinds(findings.rows, findings.n_wrong), _picture(findings.rows)]
    if findings.is_rule:
        parts.append(_coefficients(findings))
    if findings.rows is not None and findings.n_wrong:
        parts.append(_first_rows(findings.rows, judgement.off))
    return enclosed(parts)


def enclosed(parts: Iterable[str]) -> str:
    """Return parts of HTML in the style of notebooks."""
    style = files("massart.report").joinpath("assets/fragment.css").read_text("utf-8")
    return f"<div class='massart-report mathjax_ignore tex2jax_ignore'><style>{style}</style>{''.join(parts)}</div>"


def plain_text(findings: Findings) -> str:
    """Return the verdict, the formula, the counts and what they say as lines of text."""
    judgement = findings.judgement
    lines = [f"{judgement.word}. {judgement.meaning}"]
    if findings.is_rule:
        lines += [findings.formula_text, _counts(findings, judgement.off)]
    return "\n".join([*lines, findings.explanation])


def _counts(findings: Findings, off: str) -> str:
    n = findings.n_rows
    text = (
        f"{findings.n_agree:,} of {n:,} rows follow the formula ({share(findings.n_agree, n)}); "
        f"{count(findings.n_wrong, off)} ({share(findings.n_wrong, n)})"
    )
    if findings.n_last_place:
        text += f"; {count(findings.n_last_place, 'rows')} off by one unit of the last place"
    if findings.n_apart:
        text += f"; {count(findings.n_apart, 'rows')} set apart"
    return text + "."


def _bar(findings: Findings, off: str) -> str:
    width = 100 * findings.n_agree / findings.n_rows if findings.n_rows else 0
    return (
        f"<div class='massart-bar' aria-hidden='true'><span style='width:{width:.2f}%'></span></div>"
        f"<p>{_counts(findings, off)}</p>"
    )


def _kinds(rows: ReportRows, n_wrong: int) -> str:
    found = [(kind.label, f"{kind.n_rows:,}", share(kind.n_rows, n_wrong), *kind.example) for kind in shown_kinds(rows)]
    names = ("what happened", "rows", "share", "for example", "given", "implied")
    return table("", names, found[:MOST_ROWS], {1, 2, 4, 5}) if found else ""


def _picture(rows: ReportRows) -> str:
    drawn = scatter(rows, "Given against implied values; rows that agree are on the line.")
    marks = [(f"tone-{tone}", mark, label) for tone, mark, label in legend(shown_kinds(rows))]
    if not marks and rows.n_wrong:
        marks = [("tone-0", MARKS[0], "does not follow the formula")]
    entries = (
        f"<span><i class='{name}' aria-hidden='true'>{mark}</i> {escape(label)}</span>"
        for name, mark, label in [("right", "●", "agrees"), *marks]
    )
    return f"<div class='massart-picture'>{drawn}<p>{' '.join(entries)}</p></div>" if drawn else ""


def _coefficients(findings: Findings) -> str:
    rows = [(c.label, c.number, c.certainty, c.evidence) for c in islice(coefficients(findings), MOST_TERMS)]
    more = sum(term.is_shown for term in findings.formula.all_terms) - len(rows)
    note = f"<p>and {more:,} more</p>" if more > 0 else ""
    return table("Coefficients", ("term", "coefficient", "precision", "what determines it"), rows, {1}) + note


def _first_rows(rows: ReportRows, off: str) -> str:
    first = wrong_residuals(rows).index[:MOST_ROWS]
    columns = columns_of(rows, first)
    shown = ([column.shown(i) for column in columns] for i in range(len(first)))
    numeric = {place for place, column in enumerate(columns) if column.numeric}
    few = len(first) < rows.n_wrong
    caption = f"The {len(first)} largest of {rows.n_wrong:,} {off}" if few else off.capitalize()
    return table(caption, [column.name for column in columns], shown, numeric)


def table(caption: str, names: Sequence[str], rows: Iterable[Sequence[str]], numeric: set[int]) -> str:
    """Return texts as a table; numeric columns are set to the right."""

    def cells(tag: str, texts: Sequence[str]) -> Iterator[str]:
        for place, text in enumerate(texts):
            aligned = " class='massart-number'" if place in numeric else ""
            yield f"<{tag}{aligned}>{escape(text)}</{tag}>"

    head = "".join(cells("th", names))
    body = "".join(f"<tr>{''.join(cells('td', row))}</tr>" for row in rows)
    return (
        f"<div class='massart-scroll'><table>{f'<caption>{escape(caption)}</caption>' if caption else ''}"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
