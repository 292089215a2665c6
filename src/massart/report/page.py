"""Pages: one file that loads nothing, for a reader with a browser and no Python; of a fit, a list of rules, a scan.

Nothing of the data can run: the template escapes every text, the script writes texts as texts, and a content security
policy admits one script only, the page's own, by its digest.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module, resources
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from massart.report.findings import DATED, Findings, GroupCount, ReportRows
from massart.report.fragment import coefficients, fragment, plain_text
from massart.report.pictures import GLYPHS, ShownKind, legend, measure_sizes, scale_of, scatter, shown_kinds, tones
from massart.report.rows import MOST_LARGEST, Carried, ShownColumn, carry, clean, printable, wrong_residuals
from massart.report.words import MEANINGS, cell_of, count, share
from massart.rows import EDGE, Level, files
from massart.rules import Formula, pieces, text_by_level

PAGE_ROWS = 50
"""Rows of the table that are seen at a time, and those that are there without a script."""

WHAT_IF_TERMS, WHAT_IF_CHARACTERS = 100, 500_000
"""Terms that a reader may change, and packed characters of their values; of more characters, fewer rows are taken."""

_MOST_TERMS = 300  # of the formula
_MOST_COEFFICIENTS = 1_000  # in the table
_MOST_GROUPS = 30  # with a bar; the others are one
_MOST_NAMES = 100  # of coefficients without effect, or of columns left out
_SCRIPTS = ("unpack.js", "filters.js", "rows.js", "table.js", "pictures.js", "what_if.js", "page.js")
_COMPARED = 4  # columns that say which row it is, what was given and implied, and the difference
# What a browser would take for the end of a script, or for a line end in one.
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def _page(template: str, styles: Sequence[str], **context: Any) -> str:
    """Return a page by its template, which escapes every text and makes it printable."""
    environment = _needed("jinja2").Environment(
        loader=_needed("jinja2").FunctionLoader(_asset),
        autoescape=True,
        finalize=lambda value: printable(value) if type(value) is str else value,
        undefined=_needed("jinja2").StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"clean": clean, "embed": _embedded}
    environment.globals |= {"share": share, "count": count, "pieces_of": _pieces}
    style = _raw_text("".join(map(_asset, styles)))
    text: str = environment.get_template(template).render(**context, style=style)
    return text


def _raw_text(text: str) -> Any:
    """Return our own text for a template, which does not escape it."""
    return _needed("markupsafe").Markup(text)


def _pieces(formula: str) -> list[str]:
    """Return a formula, cut where a line may break."""
    return [clean(piece) for piece in pieces(formula)]


def _context(findings: Findings) -> dict[str, Any]:
    formula = findings.formula
    described = list(coefficients(findings))
    return {
        "findings": findings,
        "rows": findings.rows,
        "judgement": findings.judgement,
        "verdicts": MEANINGS,
        "dated": findings.facts.get(DATED),
        "formula": formula.text(),
        "pieces": _pieces(text_by_level(formula, findings.rates, _MOST_TERMS)),
        "silent": [c.label for c in described if c.silent],
        "undetermined": [c.label for c in described if not c.determined],
        "most_names": _MOST_NAMES,
        "coefficients": described[:_MOST_COEFFICIENTS],
        "n_coefficients": len(described),
        **dict.fromkeys(("carried", "table", "sizes", "what_if"), None),
        **dict.fromkeys(("kinds", "groups"), ()),
        **({} if findings.rows is None else _of_rows(findings, findings.rows)),
    }


def _of_rows(findings: Findings, rows: ReportRows) -> dict[str, Any]:
    wrong = wrong_residuals(rows)
    carried = carry(rows, wrong)
    words = (
        f"Scatter plot of the given against the implied {clean(findings.formula.target)}: "
        f"{count(carried.n_right, 'rows')} on the line, {count(carried.n_drawn, 'rows')} off it."
    )
    return {
        "carried": carried,
        "table": carried.n_off > 0,
        "scale": scale_of(np.concatenate([rows.given[carried.index], rows.implied[carried.index]])),
        "picture_words": words,
        "picture": _raw_text(scatter(rows, words)),
        "most_largest": MOST_LARGEST,
        "sizes": measure_sizes(rows, wrong, findings.judgement.off),
        "first_rows": [
            [column.shown(place) for column in carried.columns] for place in range(min(carried.n_off, PAGE_ROWS))
        ],
        "numeric": [column.numeric for column in carried.columns],
        **_of_groups(rows, carried),
        **_of_kinds(rows, carried, shown_kinds(rows) if len(wrong.index) else []),
        "what_if": what_if(findings, carried),
    }


def _of_groups(rows: ReportRows, carried: Carried) -> dict[str, Any]:
    """Return the groups, and the place of their column among those of the script, before which there is the rank."""
    groups, grouped_by = list(_shown_groups(rows.groups)), clean(rows.group_column or "")
    others = [column.name for column in carried.columns[_COMPARED:]]
    return {
        "groups": groups,
        "n_groups": min(len(rows.groups), _MOST_GROUPS),
        "group_place": 1 + _COMPARED + others.index(grouped_by) if grouped_by in others else None,
        "largest_share": max((group.n_wrong / max(1, group.n_rows) for group in groups), default=0.0),
    }


def _of_kinds(rows: ReportRows, carried: Carried, kinds: list[ShownKind]) -> dict[str, Any]:
    """Return what happened, and where the rows that are carried say it, if they do."""
    named = legend(kinds)
    words = rows.kinds.words if rows.kinds and "kind" in [c.name for c in carried.columns[_COMPARED:][:1]] else ()
    return {
        "kinds": kinds,
        "kind_place": 1 + _COMPARED if words else None,
        "most_of_a_kind": max((kind.n_rows for kind in kinds), default=1),
        "legend": named,
        "kind_labels": {tone: label for tone, _, label in named},
        "kind_words": [clean(word) for word in words],
        "tones": tones(rows).tolist(),
        "glyphs": GLYPHS,
    }


def _shown_groups(groups: Sequence[GroupCount]) -> Iterator[GroupCount]:
    for group in groups[:_MOST_GROUPS]:
        yield replace(group, name=clean(group.name))
    if others := groups[_MOST_GROUPS:]:
        named = f"{len(others):,} others" if len(others) > 1 else "1 other"
        yield GroupCount(named, sum(group.n_rows for group in others), sum(group.n_wrong for group in others))


def _embedded(data: object) -> Any:
    return _raw_text(json.dumps(data, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPES))


def _asset(name: str) -> str:
    """Return the text of a file of this package."""
    return resources.files("massart.report").joinpath("assets", name).read_text("utf-8")


def check_installed() -> None:
    """Raise ValueError, before any work, if jinja2, which the page needs, is not installed."""
    _needed("jinja2")


def _needed(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError:
        raise ValueError(f"the report needs {name}: pip install 'massart[report]'") from None


def what_if(findings: Findings, carried: Carried) -> dict[str, Any] | None:
    """Return what the script needs to count the rows that would agree with other coefficients.

    It counts as `massart.rows` does, with compensated sums, over the rows of the picture. None where the values of the
    terms were not kept.
    """
    rows, formula, agreement = findings.rows, findings.formula, findings.certificate.agreement
    shown = [j for j, term in enumerate(formula.all_terms) if term.is_shown]
    if rows is None or rows.terms is None or not 0 < len(shown) <= WHAT_IF_TERMS:
        return None
    stride, terms = 1, [*_packed_terms(rows, formula, shown, carried, 1)]
    if (size := sum(len(term.get("data", "")) for term in terms)) > WHAT_IF_CHARACTERS:
        stride = math.ceil(size / WHAT_IF_CHARACTERS)
        terms = [*_packed_terms(rows, formula, shown, carried, stride)]
    return {
        "stride": stride,
        "terms": terms,
        "coef": [formula.all_terms[j].coef for j in shown],
        "link": [_finite(formula.link.lower), _finite(formula.link.upper), formula.link.slope],
        "label": agreement.label,
        "inputs": [agreement.inputs[j] for j in shown] if agreement.inputs else [],
        "relative": agreement.relative,
        "tight": agreement.tight,
        "unit": agreement.unit,
        "edge": EDGE if agreement.level in (Level.LABEL, Level.INPUTS) else 0,
    }


def _packed_terms(
    rows: ReportRows, formula: Formula, shown: Sequence[int], carried: Carried, stride: int
) -> Iterator[dict[str, Any]]:
    """Yield the values of terms in each `stride`-th row of the picture, or the column of the page that holds them."""
    drawn = carried.packed["drawn"] or range(carried.n_off)
    places = np.array([*drawn, *range(carried.n_off, len(carried.index))], dtype=np.intp)[::stride]
    cells = {c.name: (k, c.values) for k, c in enumerate(carried.columns) if c.numeric and k >= _COMPARED}
    for j in shown:
        if j == len(formula.terms):
            yield {"constant": True}
            continue
        column = rows.terms[carried.index[places], j]
        values = np.asarray(column.toarray().ravel() if hasattr(column, "toarray") else column, dtype=float)
        place, cell = cells.get(clean(formula.terms[j].label), (0, None))
        if cell is not None and np.array_equal(cell[places], values):
            yield {"column": place}  # which the page carries already
        else:
            yield ShownColumn("", values).packed()


def _finite(limit: float) -> float | None:
    return limit if math.isfinite(limit) else None


class Report:
    """What was found, as a page, in a notebook and as text.

    The page needs jinja2 (``pip install 'massart[report]'``); the notebook's view and the text need nothing.

    Parameters
    ----------
    findings : Findings
    """

    def __init__(self, findings: Findings) -> None:
        self.findings = findings

    def to_html(self) -> str:
        """Return the whole page: one file, which loads nothing and is the same for the same findings.

        It stays below 5 MB: of very many wrong rows it carries those with the largest residuals, and some others.

        Raises
        ------
        ValueError
            If jinja2 is not installed.
        """
        script = "(async () => {\n" + "\n".join(_asset(name) for name in _SCRIPTS) + "})();\n"
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        scripts = {"script": _raw_text(script), "policy": _raw_text(f"'sha256-{digest}'")}
        return _page("page.html", ["style.css"], **_context(self.findings), **scripts)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the page to a file, whole or not at all, and return its path."""
        path = Path(path)
        files.write(path, self.to_html().encode())
        return path

    def _repr_html_(self) -> str:
        return fragment(self.findings)

    def __repr__(self) -> str:
        return plain_text(self.findings)


def render_scan(findings: Mapping[str, Any]) -> str:
    """Return the page of a scan, whose template says what it shows; ValueError if jinja2 is not installed."""
    return _page("scan.html", ["style.css", "scan.css"], findings=findings)


class ListReport(Report):
    """The page of a list of rules, whose template says what it shows; a notebook and a terminal get the formulas."""

    def __init__(self, findings: Mapping[str, Any]) -> None:
        self.listed = findings

    def to_html(self) -> str:
        """Return the whole page: one file, which loads nothing and is the same for the same findings."""
        rows = self.listed["rows"]
        numeric = [name for name, cells in rows.items() if all(isinstance(cell, int | float) for cell in cells)]
        cells = [[*zip(rows, map(cell_of, row), strict=True)] for row in zip(*rows.values(), strict=True)]
        styles = ["style.css", "scan.css", "rules.css"]
        return _page("rules.html", styles, findings=self.listed, numeric=numeric, cells=cells)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"

    def __repr__(self) -> str:
        formulas = (f"rule {k}: {clean(rule.formula.text())}" for k, rule in enumerate(self.listed["rules"], 1))
        return "\n".join([*formulas, clean(self.listed["explanation"])])
