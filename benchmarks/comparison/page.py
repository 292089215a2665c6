"""What came out: a summary of rows, and one page, cells where a peer wins first.

The page is plain HTML and SVG without scripts; its colours follow the reader's, and it fits a phone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import groupby
from statistics import median
from typing import Any

from comparison.methods import METHODS
from comparison.tables import CELLS
from massart.experiments.experiment import Row

OURS = "massart"
MARGIN = 0.01
"""A peer wins where its number is better by more than this share."""

SCORES = {
    "linear": "share of tables whose coefficients are found exactly (relative error below 1e-5)",
    "relu": "share of tables whose coefficients are found exactly (relative error below 1e-5)",
    "noisy": "error of least squares that knows the wrong rows, over the error of the method (root mean squares)",
    "rule": "share of tables whose rule is found: right to the last place in 99 % of rows",
    "rows": "F1 of the rows that are called wrong",
}
"""What the score of a cell is, by group; 1 is the best."""

_ABOUT = {cell.name: cell.about for cell in CELLS}
_MORE, _LESS = ("score", "precision", "recall"), ("false_alarms", "cpu_seconds", "peak_mb")
_FORMS = dict.fromkeys(_MORE, ".3f")
_RANK = ("score", "wrong rows", "time", "memory", "")


def summarize(rows: Sequence[Row]) -> list[Row]:
    """Return one row for each cell and method; cells that massart loses first, and what it loses by."""
    key = lambda row: (row["cell"], row["method"])  # noqa: E731
    found = [_summary(list(group)) for _, group in groupby(sorted(rows, key=key), key)]
    order = {cell.name: place for place, cell in enumerate(CELLS)}
    lost = {name: losses([row for row in found if row["cell"] == name]) for name in {str(row["cell"]) for row in found}}
    named = [{**row, "peer_wins": ", ".join(lost[str(row["cell"])])} for row in found]
    methods = {name: list(group) for name, group in METHODS.items()}
    return sorted(
        named,
        key=lambda row: (
            _RANK.index(next(iter(lost[str(row["cell"])]), "")),
            order[str(row["cell"])],
            methods[row["group"]].index(str(row["method"])),  # type: ignore[index]
        ),
    )


def _summary(rows: list[Any]) -> Row:
    first = rows[0]
    hits, called, wrong = (sum(row[name] for row in rows) for name in ("hits", "called", "wrong"))
    f1 = 2 * hits / (called + wrong) if wrong else math.nan
    if first["group"] == "rows":
        score = f1
    elif first["group"] == "noisy":
        answered = all(math.isfinite(row["error"]) for row in rows)
        size = {name: math.hypot(*(row[name] for row in rows)) for name in ("oracle", "error")}
        score = size["oracle"] / size["error"] if answered else 0.0
    else:
        score = sum(row["recovered"] for row in rows) / len(rows)
    peaks = [row["peak_mb"] for row in rows if math.isfinite(row["peak_mb"])]
    return {
        **{name: first[name] for name in ("group", "cell", "method")},
        "tables": len(rows),
        "answers": sum(row["status"] == "ok" for row in rows),
        "score": round(score, 4),
        "precision": round(hits / called, 4) if called and wrong else math.nan,
        "recall": round(hits / wrong, 4) if wrong else math.nan,
        "f1": round(f1, 4),
        "false_alarms": called - hits,
        "cpu_seconds": float(f"{median(row['cpu_seconds'] for row in rows):.3g}"),
        "peak_mb": max(peaks, default=math.nan),
        "certain": sum(row["verdict"] in ("PROVEN", "CONFIRMED") for row in rows),
        "false_claims": sum(row["false_claim"] for row in rows),
    }


def losses(rows: Sequence[Row]) -> dict[str, Row]:
    """Return what a peer does better than massart in a cell, with the best of them.

    For time and memory only peers whose score and wrong rows are as good count: no answer is had in no time.
    """
    ours: Any = next((row for row in rows if row["method"] == OURS), None)
    peers: list[Any] = [row for row in rows if not str(row["method"]).startswith(OURS) and row["answers"]]
    if ours is None or not peers:
        return {}
    found: dict[str, Row] = {}
    for name, column in (("score", "score"), ("wrong rows", "f1")):
        best = max(peers, key=lambda row: row[column] if math.isfinite(row[column]) else -1.0)
        if best[column] > ours[column] * (1 + MARGIN) + 1e-12:
            found[name] = best
    as_good = _as_good(ours, peers)
    for name, column in (("time", "cpu_seconds"), ("memory", "peak_mb")):
        best = min(as_good, key=lambda row: row[column], default=None)
        if best is not None and best[column] < ours[column] * (1 - MARGIN):
            found[name] = best
    return found


def _as_good(ours: Any, peers: list[Any]) -> list[Any]:
    """Return the peers that find as much: their score, and the rows that they call wrong, are as good as ours."""
    return [
        row
        for row in peers
        if row["score"] >= ours["score"] * (1 - MARGIN)
        and row["score"] > 0
        and not row["f1"] < ours["f1"] * (1 - MARGIN)
    ]


def overview(summary: Sequence[Row]) -> list[Row]:
    """Return one row for each cell, in the order of the summary: massart, and the best and the fastest of its peers.

    The fastest is one that finds as much as massart.
    """
    return [_at_a_glance(str(name), list(rows)) for name, rows in groupby(summary, lambda row: row["cell"])]


def _at_a_glance(name: str, rows: list[Any]) -> Row:
    known = METHODS[rows[0]["group"]]
    ours = next(row for row in rows if row["method"] == OURS)
    peers = [row for row in rows if not str(row["method"]).startswith(OURS)]
    best = max(peers, key=lambda row: (row["score"], -row["cpu_seconds"]), default=None)
    fastest = min(_as_good(ours, peers), key=lambda row: row["cpu_seconds"], default=None)
    return {
        "cell": name,
        "table": _ABOUT[name],
        "tables": ours["tables"],
        "a peer wins on": ours["peer_wins"],
        "massart": f"{ours['score']:.3f}",
        "best peer": "" if best is None else f"{best['score']:.3f} {known[best['method']].name}",
        "massart, s": _seconds(ours["cpu_seconds"]),
        "as good, s": "" if fastest is None else f"{_seconds(fastest['cpu_seconds'])} {known[fastest['method']].name}",
    }


def _seconds(value: float) -> str:
    return f"{value:.3g}" if value >= 1e-3 else "<0.001"  # shorter than the tick of some clocks


# The page.

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --soft: #5c5c5c; --line: #ddd; --paper: #fff; --card: #f7f7f5;
  --ours: #c2410c; --peer: #2563a8; --bar: #cfe0f3; --ourbar: #f8d3bf; }
@media (prefers-color-scheme: dark) { :root { --ink: #ececec; --soft: #a8a8a8; --line: #3a3a3a; --paper: #161616;
  --card: #1f1f1f; --ours: #fb923c; --peer: #7cb3ec; --bar: #23405e; --ourbar: #5c2f17; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 1.25rem; font: 1rem/1.55 system-ui, sans-serif; color: var(--ink);
  background: var(--paper); }
h1 { font-size: 1.6rem; line-height: 1.2; } h2 { margin-top: 2.5rem; font-size: 1.25rem; }
h3 { margin: 0; font-size: 1rem; }
p { max-width: 46rem; } a { color: var(--peer); } .soft { color: var(--soft); }
section.cell { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: 1rem;
  margin: 1rem 0; }
section.cell p { margin: .2rem 0 .6rem; }
.lost { color: var(--peer); font-weight: 600; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .875rem; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .6rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; } thead th { color: var(--soft); font-weight: 500; }
tr.ours { color: var(--ours); font-weight: 600; } td b { text-decoration: underline; text-underline-offset: .2em; }
td.bar { min-width: 7rem; background: linear-gradient(90deg, var(--bar) var(--share), transparent 0) no-repeat; }
tr.ours td.bar { background-image: linear-gradient(90deg, var(--ourbar) var(--share), transparent 0); }
pre { background: var(--card); border: 1px solid var(--line); padding: .7rem; border-radius: .4rem; overflow-x: auto; }
svg { width: 100%; height: auto; font: 11px system-ui, sans-serif; } svg text { fill: var(--ink); }
svg line { stroke: var(--line); } .dot { fill: none; stroke: var(--peer); stroke-width: 1.5; }
.good { fill: var(--peer); }
.dot.us { stroke: var(--ours); fill: var(--ours); }
:focus-visible { outline: 3px solid var(--peer); }
"""


def html(summary: Sequence[Row], facts: Mapping[str, Any]) -> str:
    """Return the page."""
    cells = {str(name): list(rows) for name, rows in groupby(summary, lambda row: row["cell"])}
    lost = {name: losses(rows) for name, rows in cells.items()}
    worse = [name for name in cells if {"score", "wrong rows"} & lost[name].keys()]
    slower = [name for name in cells if lost[name] and name not in worse]
    rest = [name for name in cells if not lost[name]]
    ours: list[Any] = [row for row in summary if row["method"] == OURS]
    certain, false = (sum(row[name] for row in ours) for name in ("certain", "false_claims"))
    tables = sum(row["tables"] for row in ours)
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>massart beside other libraries</title>
<style>{_STYLE}</style>
</head>
<body>
<header>
<h1>massart beside other libraries</h1>
<p>{len(cells)} cells of tables whose truth is known, {tables} tables. A peer finds more in {len(worse)} cells; in
{len(slower)} a peer finds as much and takes less time or memory; in {len(rest)} none does. massart called {certain} of
its answers certain (PROVEN or CONFIRMED), and {false} of them were false; peers make no such claim, and none is
read into their answers.</p>
<pre>{escape(str(facts["command"]))}</pre>
<p class="soft">A peer wins where its number is better by more than 1 %. Time is the processor's, of the fit alone
(median); memory the most that its process held, libraries included. No method may take more than
{facts["limit"]} s for a table.
{escape(" ".join(f"Left out: {line}." for line in facts["left_out"]))}</p>
</header>
<main>
<h2>All cells, where a peer wins first</h2>
<p>1 is the best score; what it is depends on the kind of table, and is said below. <i>As good</i> is the fastest peer
that finds as much as massart: its score, and the rows that it calls wrong, are as good.</p>
{_overview(summary)}
{_section("A peer finds more", worse, cells, lost)}
{_section("A peer finds as much in less time or memory", slower, cells, lost)}
{_section("No peer does better", rest, cells, lost)}
<h2>Time at a glance</h2>
<p>Each line is a cell, each dot a method: filled where its score is at least massart's (orange).</p>
{_times(cells)}
</main>
<footer><p class="soft">Numbers: <a href="bench.csv">bench.csv</a>, <a href="bench-summary.csv">bench-summary.csv</a>.
Seed {facts["seed"]}. {escape(versions)}.</p></footer>
</body>
</html>
"""


def _overview(summary: Sequence[Row]) -> str:
    rows = overview(summary)
    head = "".join(f'<th scope="col">{title}</th>' for title in rows[0] if title != "table")
    body = "\n".join(
        f'<tr><td><a href="#{row["cell"]}">{row["cell"]}</a></td>'
        + "".join(f"<td>{escape(str(value))}</td>" for name, value in row.items() if name not in ("cell", "table"))
        + "</tr>"
        for row in rows
    )
    return (
        '<div class="scroll" role="region" tabindex="0" aria-label="All cells"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _section(
    title: str, names: Sequence[str], cells: Mapping[str, Sequence[Any]], lost: Mapping[str, Mapping[str, Any]]
) -> str:
    if not names:
        return f"<h2>{title}</h2><p>In no cell.</p>"
    return f"<h2>{title}</h2>" + "\n".join(_card(name, cells[name], lost[name]) for name in names)


def _card(name: str, rows: Sequence[Any], lost: Mapping[str, Any]) -> str:
    group = rows[0]["group"]
    known = METHODS[group]
    wins = "; ".join(f"{what}: {known[str(row['method'])].name}" for what, row in lost.items())
    head = ("method", "score", "precision", "recall", "false alarms", "CPU s", "peak MB", "answers")
    best = {
        column: choose((row[column] for row in rows if math.isfinite(row[column])), default=None)
        for choose, columns in ((max, _MORE), (min, _LESS))
        for column in columns
    }
    body = "\n".join(_line(row, best) for row in rows)
    return f"""<section class="cell" id="{name}">
<h3>{name}</h3>
<p>{escape(_ABOUT[name])}. Score: {escape(SCORES[group])}.</p>
{f'<p class="lost">A peer wins on {escape(wins)}.</p>' if wins else ""}
<div class="scroll" role="region" tabindex="0" aria-label="{name}"><table>
<thead><tr>{"".join(f'<th scope="col">{title}</th>' for title in head)}</tr></thead>
<tbody>
{body}
</tbody></table></div>
</section>"""


def _line(row: Any, best: Mapping[str, Any]) -> str:
    method = METHODS[row["group"]][str(row["method"])]

    def number(column: str) -> str:
        value = row[column]
        if not math.isfinite(value):
            return "–"
        text = escape(_seconds(value)) if column == "cpu_seconds" else f"{value:{_FORMS.get(column, '.0f')}}"
        return f"<b>{text}</b>" if value == best[column] else text

    share = 100 * min(max(row["score"], 0.0), 1.0) if math.isfinite(row["score"]) else 0.0
    others = "".join(f"<td>{number(column)}</td>" for column in (*_MORE[1:], *_LESS))
    ours = ' class="ours"' if str(row["method"]).startswith(OURS) else ""
    return (
        f'<tr{ours}><td>{escape(method.name)} <span class="soft">{escape(method.library)}</span></td>'
        f'<td class="bar" style="--share: {share:.0f}%">{number("score")}</td>{others}'
        f"<td>{row['answers']}/{row['tables']}</td></tr>"
    )


def _times(cells: Mapping[str, Sequence[Any]]) -> str:
    """Return a picture of the times of all methods in all cells, on a logarithmic axis."""
    left, width, step, top = 130, 500, 18, 24
    low, high = -3.5, 1.7

    def at(seconds: float) -> float:
        return left + width * (math.log10(max(seconds, 10**low)) - low) / (high - low)

    height = top + step * len(cells) + 6
    parts = [
        f'<line x1="{at(10.0**power):.1f}" x2="{at(10.0**power):.1f}" y1="{top - 6}" y2="{height}"/>'
        f'<text x="{at(10.0**power):.1f}" y="12" text-anchor="middle">{10.0**power:g} s</text>'
        for power in range(-3, 2)
    ]
    for place, (name, rows) in enumerate(sorted(cells.items(), key=lambda item: list(_ABOUT).index(item[0]))):
        y = top + step * place + step / 2
        parts.append(f'<text x="{left - 12}" y="{y + 4:.1f}" text-anchor="end">{name}</text>')
        parts += _dots(rows, y, at)
    label = "Seconds of the processor of each method in each cell; the tables above have the numbers."
    return f'<svg viewBox="0 0 {left + width + 10} {height:.0f}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _dots(rows: Sequence[Any], y: float, at: Any) -> Iterable[str]:
    ours = next((row["score"] for row in rows if row["method"] == OURS), math.inf)
    for row in sorted(rows, key=lambda row: row["method"] == OURS):
        kind = " us" if row["method"] == OURS else " good" if row["score"] >= ours else ""
        method = METHODS[row["group"]][str(row["method"])]
        title = f"<title>{escape(method.name)}: {row['cpu_seconds']:.3g} s, score {row['score']:.3f}</title>"
        yield f'<circle class="dot{kind}" cx="{at(row["cpu_seconds"]):.1f}" cy="{y:.1f}" r="4">{title}</circle>'
