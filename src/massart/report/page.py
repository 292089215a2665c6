"""Pages: one file that loads nothing, for a reader with a browser and no Python; of a fit, and of a scan.

Nothing of the data can run: the template escapes every text, the script writes texts as texts, and a content security
policy admits one script only, the page's own, by its digest.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module, resources
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from massart.report.carried import MOST_LARGEST, carry, wrong_residuals
from massart.report.coefficients import coefficients
from massart.report.columns import Numbers, clean, printable
from massart.report.findings import DATED, Findings, Group, JudgedRows
from massart.report.fragment import fragment, plain_text
from massart.report.legend import GLYPHS, legend, shown_kinds, tones
from massart.report.pictures import measure_sizes, scale_of, scatter
from massart.report.what_if import what_if
from massart.report.words import MEANINGS, count, share
from massart.rows import files
from massart.rules.formula import pieces
from massart.rules.rates import text_by_level

PAGE_ROWS = 50
"""Rows of the table that are seen at a time, and those that are there without a script."""

_MOST_TERMS = 300
_MOST_COEFFICIENTS = 1_000
_MOST_GROUPS = 30
_MOST_NAMES = 100
_SCRIPTS = ("unpack.js", "filters.js", "rows.js", "table.js", "pictures.js", "what_if.js", "page.js")
_KIND_PLACE = 5  # of the script's columns, before which there is the rank
# What a browser would take for the end of a script, or for a line end in one.
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def render(findings: Findings) -> str:
    """Return the page."""
    environment = environment_of_pages()
    environment.filters["embed"] = _embedded
    script = "(async () => {\n" + "\n".join(asset(name) for name in _SCRIPTS) + "})();\n"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page: str = environment.get_template("page.html").render(
        **_context(findings),
        style=raw_text(asset("style.css")),
        script=raw_text(script),
        policy=raw_text(f"'sha256-{digest}'"),
    )
    return page


def environment_of_pages() -> Any:
    """Return what renders templates: every text is escaped, and printable."""
    jinja2 = _needed("jinja2")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(asset),
        autoescape=True,
        finalize=lambda value: printable(value) if type(value) is str else value,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["clean"] = clean
    environment.globals |= {"share": share, "count": count, "pieces_of": _pieces}
    return environment


def raw_text(text: str) -> Any:
    """Return our own text for a template, which does not escape it."""
    return _needed("markupsafe").Markup(text)


def _pieces(formula: str) -> list[str]:
    """Return a formula, cut where a line may break."""
    return [clean(piece) for piece in pieces(formula)]


def _context(findings: Findings) -> dict[str, Any]:
    formula = findings.formula
    described = list(coefficients(findings))
    silent = [c.label for c in described if c.silent]
    undetermined = [c.label for c in described if not c.determined]
    return {
        "findings": findings,
        "rows": findings.rows,
        "judgement": findings.judgement,
        "verdicts": MEANINGS,
        "dated": findings.facts.get(DATED),
        "formula": formula.text(),
        "pieces": _pieces(text_by_level(formula, findings.rates, _MOST_TERMS)),
        "silent": silent[:_MOST_NAMES],
        "n_silent": len(silent),
        "undetermined": undetermined[:_MOST_NAMES],
        "n_undetermined": len(undetermined),
        "coefficients": described[:_MOST_COEFFICIENTS],
        "n_coefficients": len(described),
        **dict.fromkeys(("carried", "table", "sizes", "what_if"), None),
        **dict.fromkeys(("kinds", "groups"), ()),
        **({} if findings.rows is None else _of_rows(findings, findings.rows)),
    }


def _of_rows(findings: Findings, rows: JudgedRows) -> dict[str, Any]:
    off = findings.judgement.off
    wrong = wrong_residuals(rows)
    carried = carry(rows, wrong)
    kinds = shown_kinds(rows) if len(wrong.index) else []
    named = legend(kinds)
    groups = list(_shown_groups(rows.groups))
    names = [column.name for column in carried.columns]
    grouped_by = clean(rows.group_column or "")
    words = (
        f"Scatter plot of the given against the implied {clean(findings.formula.target)}: "
        f"{count(carried.n_right, 'rows')} on the line, {count(carried.n_drawn, 'rows')} off it."
    )
    return {
        "carried": carried,
        "table": carried.n_off > 0,
        "scale": scale_of(np.concatenate([rows.given[carried.index], rows.implied[carried.index]])),
        "picture_words": words,
        "picture": raw_text(scatter(rows, words)),
        "most_largest": MOST_LARGEST,
        "sizes": measure_sizes(rows, wrong, off),
        "first_rows": [
            [column.shown(place) for column in carried.columns] for place in range(min(carried.n_off, PAGE_ROWS))
        ],
        "numeric": [isinstance(column, Numbers) for column in carried.columns],
        "groups": groups,
        "n_groups": min(len(rows.groups), _MOST_GROUPS),
        "group_place": 1 + names.index(grouped_by, 4) if grouped_by in names[4:] else None,
        "largest_share": max((group.n_wrong / max(1, group.n_rows) for group in groups), default=0.0),
        "kinds": kinds,
        "kind_place": _KIND_PLACE if "kind" in names[4:5] else None,
        "most_of_a_kind": max((kind.n_rows for kind in kinds), default=1),
        "legend": named,
        "kind_labels": {tone: label for tone, _, label in named},
        "kind_words": [clean(word) for word in rows.kinds.words] if rows.kinds and "kind" in names[4:5] else [],
        "tones": tones(rows).tolist(),
        "glyphs": GLYPHS,
        "what_if": what_if(findings, carried),
    }


def _shown_groups(groups: Sequence[Group]) -> Iterator[Group]:
    for group in groups[:_MOST_GROUPS]:
        yield replace(group, name=clean(group.name))
    if others := groups[_MOST_GROUPS:]:
        named = f"{len(others):,} others" if len(others) > 1 else "1 other"
        yield Group(named, sum(group.n_rows for group in others), sum(group.n_wrong for group in others))


def _embedded(data: object) -> Any:
    return raw_text(json.dumps(data, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPES))


def asset(name: str) -> str:
    """Return the text of a file of this package."""
    return resources.files("massart.report").joinpath("assets", name).read_text("utf-8")


def check_installed() -> None:
    """Raise ValueError, before any work, if the page could not be made for want of jinja2."""
    _needed("jinja2")


def _needed(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError:
        raise ValueError(f"the report needs {name}: pip install 'massart[report]'") from None


class Report:
    """What was found, for those who were not there.

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
        return render(self.findings)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the page to a file, whole or not at all, and return its path."""
        path = Path(path)
        files.write(path, self.to_html().encode())
        return path

    def _repr_html_(self) -> str:
        return fragment(self.findings)

    def __repr__(self) -> str:
        return plain_text(self.findings)


@dataclass(frozen=True)
class ScanFindings:
    """What the page shows: a scan, and `uses`, the numbers of the rules, from 1, that each column is in."""

    title: str
    n_rows: int
    identities: Sequence[Findings]
    copies: Sequence[Findings]
    uses: Mapping[str, list[int]]
    constants: Sequence[tuple[str, object]]
    codes: Sequence[Sequence[str]]
    without_rule: Sequence[str]
    notices: Sequence[str]
    facts: Mapping[str, str]


def render_scan(findings: ScanFindings) -> str:
    """Return the page; ValueError if jinja2 is not installed."""
    style = raw_text(asset("style.css") + asset("scan.css"))
    page: str = environment_of_pages().get_template("scan.html").render(findings=findings, style=style)
    return page
