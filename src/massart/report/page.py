"""The whole page: one file that loads nothing, for a reader with a browser and no Python.

Nothing of the data can run: the template escapes every text, the script writes texts as texts, and a content security
policy admits two scripts only, the page's own and Plotly, by their digests.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.resources import files
from types import ModuleType
from typing import Any

from massart.certificate.words import count, share
from massart.report.coefficients import coefficients
from massart.report.columns import Numbers, clean, compress, printable
from massart.report.findings import Findings, Group
from massart.report.kinds import ShownKind, legend, shown_kinds
from massart.report.pictures import MOST_LARGEST, Points, Sizes, draw_points, measure_sizes
from massart.report.wrong_rows import WrongTable, wrong_residuals, wrong_table
from massart.rules.formula import pieces

PAGE_ROWS = 50
"""Rows of the table that are seen at a time, and those that are there without a script."""

_MOST_TERMS = 300
_MOST_COEFFICIENTS = 1_000
_MOST_GROUPS = 30
_MOST_NAMES = 100
_SCRIPTS = ("unpack.js", "table.js", "pictures.js", "page.js")
# What a browser would take for the end of a script, or for a line end in one.
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def render(findings: Findings) -> str:
    """Return the page."""
    jinja2 = _needed("jinja2")
    raw = _needed("markupsafe").Markup
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset),
        autoescape=True,
        finalize=lambda value: printable(value) if type(value) is str else value,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"clean": clean, "embed": lambda data: raw(_json(data))}
    environment.globals |= {"share": share, "count": count}
    script = "(async () => {\n" + "\n".join(_asset(name) for name in _SCRIPTS) + "})();\n"
    context = _context(findings)
    plotly, digest = _plotly() if context["points"] else ("", "")
    hashes = [f"'sha256-{value}'" for value in (_digest(script), digest) if value]
    page: str = environment.get_template("page.html").render(
        **context, style=raw(_asset("style.css")), script=raw(script), plotly=raw(plotly), policy=raw(" ".join(hashes))
    )
    return page


def _context(findings: Findings) -> dict[str, Any]:
    judgement = findings.judgement
    formula = findings.formula
    described = list(coefficients(findings))
    silent = [c.label for c in described if c.silent]
    undetermined = [c.label for c in described if not c.determined]
    table: WrongTable | None = None
    points: Points | None = None
    sizes: Sizes | None = None
    groups: list[Group] = []
    kinds: list[ShownKind] = []
    if findings.rows is not None:
        wrong = wrong_residuals(findings.rows)
        points = draw_points(findings.rows, wrong)
        sizes = measure_sizes(findings.rows, wrong, judgement.off)
        kinds = shown_kinds(findings.rows) if len(wrong.index) else []
        table = wrong_table(findings.rows, wrong) if len(wrong.index) else None
        groups = list(_shown_groups(findings.rows.groups))
    return {
        "findings": findings,
        "rows": findings.rows,
        "judgement": judgement,
        "formula": formula.text(),
        "pieces": [clean(piece) for piece in pieces(formula.text(_MOST_TERMS))],
        "silent": silent[:_MOST_NAMES],
        "n_silent": len(silent),
        "undetermined": undetermined[:_MOST_NAMES],
        "n_undetermined": len(undetermined),
        "coefficients": described[:_MOST_COEFFICIENTS],
        "n_coefficients": len(described),
        "points": points,
        "most_largest": MOST_LARGEST,
        "sizes": sizes,
        "table": table,
        "page_rows": PAGE_ROWS,
        "first_rows": [] if table is None else list(_first_rows(table)),
        "numeric": [] if table is None else [isinstance(column, Numbers) for column in table.columns],
        "groups": groups,
        "kinds": kinds,
        "legend": legend(kinds),
        "kind_labels": {tone: label for tone, _, label in legend(kinds)},
        "largest_share": max((group.n_wrong / max(1, group.n_rows) for group in groups), default=0.0),
    }


def _first_rows(table: WrongTable) -> Iterator[list[str]]:
    for place in range(min(table.n_rows, PAGE_ROWS)):
        yield [column.shown(place) for column in table.columns]


def _shown_groups(groups: Sequence[Group]) -> Iterator[Group]:
    for group in groups[:_MOST_GROUPS]:
        yield replace(group, name=clean(group.name))
    if others := groups[_MOST_GROUPS:]:
        named = f"{len(others):,} others" if len(others) > 1 else "1 other"
        yield Group(named, sum(group.n_rows for group in others), sum(group.n_wrong for group in others))


def _json(data: object) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPES)


def _asset(name: str) -> str:
    return files("massart.report").joinpath("assets", name).read_text("utf-8")


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


@cache
def _plotly() -> tuple[str, str]:
    """Return Plotly for the page, and its digest."""
    _needed("plotly")
    source = import_module("plotly.offline").get_plotlyjs()
    return compress(source.encode()), _digest(source)


def check_installed() -> None:
    """Raise ValueError, before any work, if the page could not be made for want of plotly or jinja2."""
    for name in ("jinja2", "plotly"):
        _needed(name)


def _needed(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError:
        raise ValueError(f"the report needs {name}: install massart[report]") from None
