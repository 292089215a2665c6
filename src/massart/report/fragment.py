"""The report in a notebook and in a terminal: short, and without a script."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib.resources import files
from itertools import islice

from massart.report.carried import columns_of, wrong_residuals
from massart.report.coefficients import coefficients
from massart.report.columns import Numbers, clean
from massart.report.findings import Findings, JudgedRows
from massart.report.legend import MARKS, legend, shown_kinds
from massart.report.pictures import scatter
from massart.report.words import count, share
from massart.rules.formula import pieces

MOST_ROWS = 10
MOST_TERMS = 40


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
        formula = " ".join(f"<span>{escape(piece)}</span>" for piece in pieces(findings.formula.text(MOST_TERMS)))
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
        lines += [findings.formula.text(MOST_TERMS), _counts(findings, judgement.off)]
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


def _kinds(rows: JudgedRows, n_wrong: int) -> str:
    found = [(kind.label, f"{kind.n_rows:,}", share(kind.n_rows, n_wrong), *kind.example) for kind in shown_kinds(rows)]
    names = ("what happened", "rows", "share", "for example", "given", "implied")
    return table("", names, found[:MOST_ROWS], {1, 2, 4, 5}) if found else ""


def _picture(rows: JudgedRows) -> str:
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


def _first_rows(rows: JudgedRows, off: str) -> str:
    wrong = wrong_residuals(rows)
    first = wrong.first(MOST_ROWS)
    columns = columns_of(rows, first.index)
    shown = ([column.shown(i) for column in columns] for i in range(len(first.index)))
    numeric = {place for place, column in enumerate(columns) if isinstance(column, Numbers)}
    few = len(first.index) < rows.n_wrong
    caption = f"The {len(first.index)} largest of {rows.n_wrong:,} {off}" if few else off.capitalize()
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
