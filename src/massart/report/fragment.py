"""The report in a notebook and in a terminal: what fits beside the work, without a script."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib.resources import files
from itertools import islice

from massart.certificate.words import count, share
from massart.report.coefficients import coefficients
from massart.report.columns import Numbers, clean
from massart.report.findings import Findings, JudgedRows
from massart.report.wrong_rows import columns_of, wrong_residuals
from massart.rules.formula import pieces

MOST_ROWS = 10
MOST_TERMS = 40


def fragment(findings: Findings) -> str:
    """Return the verdict, the formula, the coefficients and the first wrong rows as HTML for a notebook."""
    judgement = findings.judgement
    style = files("massart.report").joinpath("assets/fragment.css").read_text("utf-8")
    claim = judgement.meaning if findings.is_rule else findings.explanation
    parts = [
        f"<p class='massart-title'>{escape(clean(findings.title))}</p>",
        f"<p class='massart-verdict massart-{judgement.word.lower()}'><strong>{judgement.sign} "
        f"{judgement.word.capitalize()}</strong> {escape(claim)}</p>",
    ]
    if findings.is_rule:
        parts += [
            _bar(findings, judgement.off),
            f"<p class='massart-formula'><code>{_breakable(findings.formula.text(MOST_TERMS))}</code></p>",
            _coefficients(findings),
        ]
    if findings.rows is not None and findings.n_wrong:
        parts.append(_first_rows(findings.rows, judgement.off))
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
    return text + "."


def _breakable(formula: str) -> str:
    return " ".join(f"<span>{escape(piece)}</span>" for piece in pieces(formula))


def _bar(findings: Findings, off: str) -> str:
    width = 100 * findings.n_agree / findings.n_rows if findings.n_rows else 0
    return (
        f"<div class='massart-bar' aria-hidden='true'><span style='width:{width:.2f}%'></span></div>"
        f"<p>{_counts(findings, off)}</p>"
    )


def _coefficients(findings: Findings) -> str:
    rows = [(c.label, c.number, c.certainty, c.evidence) for c in islice(coefficients(findings), MOST_TERMS)]
    more = len(findings.formula.all_terms) - len(rows)
    note = f"<p>and {more:,} more</p>" if more > 0 else ""
    return _table("Coefficients", ("term", "coefficient", "precision", "what determines it"), rows, {1}) + note


def _first_rows(rows: JudgedRows, off: str) -> str:
    wrong = wrong_residuals(rows)
    first = wrong.first(MOST_ROWS)
    columns = columns_of(rows, first)
    shown = ([column.shown(i) for column in columns] for i in range(len(first.index)))
    numeric = {place for place, column in enumerate(columns) if isinstance(column, Numbers)}
    few = len(first.index) < rows.n_wrong
    caption = f"The {len(first.index)} largest of {rows.n_wrong:,} {off}" if few else off.capitalize()
    return _table(caption, [column.name for column in columns], shown, numeric)


def _table(caption: str, names: Sequence[str], rows: Iterable[Sequence[str]], numeric: set[int]) -> str:
    def cells(tag: str, texts: Sequence[str]) -> Iterator[str]:
        for place, text in enumerate(texts):
            aligned = " class='massart-number'" if place in numeric else ""
            yield f"<{tag}{aligned}>{escape(text)}</{tag}>"

    head = "".join(cells("th", names))
    body = "".join(f"<tr>{''.join(cells('td', row))}</tr>" for row in rows)
    return (
        f"<div class='massart-scroll'><table><caption>{escape(caption)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
