"""The page of a folder: all its figures with captions, numbers, times, and how they were made.

It is made from the files of the folder. It is plain HTML without scripts: it reads well on paper, on a phone and aloud.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from massart.experiments import drawing
from massart.rows import files

_STATISTICS = ("method", "trials", "mean", "two_standard_deviations")

_STYLE = """
:root { color-scheme: light; }
body { margin: 0 auto; max-width: 72rem; padding: 1.5rem; font: 1rem/1.55 system-ui, sans-serif; color: #1b1b1b;
  background: #fff; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.25rem; margin-top: 3rem; border-top: 1px solid #ccc; padding-top: 1.5rem; }
figure { margin: 1rem 0; } img { width: 100%; height: auto; } figcaption, p { max-width: 48rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .7rem; text-align: right; border-bottom: 1px solid #e2e2e2; white-space: nowrap; }
thead th { border-bottom: 2px solid #888; } caption { text-align: left; padding: .5rem 0; color: #444; }
code, pre { background: #f4f4f4; padding: .1rem .3rem; border-radius: .2rem; } pre { padding: .7rem; overflow-x: auto; }
summary { cursor: pointer; padding: .3rem 0; } a { color: #0b5394; } :focus-visible { outline: 3px solid #0b5394; }
"""


def write_page(folder: Path, figures: Mapping[str, Any]) -> None:
    """Write ``index.html`` for the figures of a folder, as its manifest has them."""
    times = files.read_csv(folder / "times.csv")
    sections = [_section(folder, name, facts, times) for name, facts in figures.items()]
    contents = "".join(f'<li><a href="#{name}">{escape(facts["title"])}</a></li>' for name, facts in figures.items())
    files.write(folder / "index.html", _document(contents, "\n".join(sections)).encode())


def _document(contents: str, sections: str) -> str:
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>ReLU Regression with Massart Noise: the experiments</title>
<style>{_STYLE}</style>
</head>
<body>
<header>
<h1>ReLU Regression with Massart Noise: the experiments</h1>
<p>The figures of Section 4 of Diakonikolas, Park and Tzamos, made again. Panels "as published" have the
paper's methods; the others have what goes beyond it: ours, and what a reader would compare with.</p>
<nav aria-label="Figures"><ul>{contents}</ul></nav>
</header>
<main>
{sections}
</main>
<footer><p>Settings, seeds and versions: <a href="manifest.json">manifest.json</a>; all times:
<a href="times.csv">times.csv</a>.</p></footer>
</body>
</html>
"""


def _section(folder: Path, name: str, facts: Mapping[str, Any], times: Sequence[Mapping[str, str]]) -> str:
    summary = files.read_csv(folder / f"{name}-summary.csv")
    links = (f"{name}.csv", f"{name}-summary.csv", f"{name}.svg", f"{name}.png")
    listed = ", ".join(f'<a href="{link}">{link}</a>' for link in links)
    trials = "; ".join(f"{escape(drawing.name_of(key))}: {number}" for key, number in facts["trials"].items())
    left_out = "".join(f"<p>Left out: {escape(need)}</p>" for need in facts["left_out"].values())
    shown = {key: facts[key] for key in ("seed", "versions", "config")}
    alt = f"{facts['alt']} {describe(summary)}"
    return f"""<section id="{name}">
<h2>{escape(facts["title"])}</h2>
<figure>
<img src="{name}.svg" alt="{escape(alt)}">
<figcaption>{escape(facts["caption"])}</figcaption>
</figure>
<p>{escape(facts.get("comparison", ""))}</p>
{left_out}
<details><summary>Numbers</summary>{_table(_means(summary), "Mean, and two standard deviations.")}</details>
<details><summary>Time to solution</summary>{_table(_medians(name, times), "Median seconds of one fit.")}</details>
<details><summary>How it was made</summary>
<pre>{escape(facts["command"])}</pre>
<p>Trials of each cell: {trials}.</p>
<pre>{escape(json.dumps(shown, indent=1, ensure_ascii=False))}</pre>
</details>
<p>Files: {listed}</p>
</section>"""


def describe(summary: Sequence[Mapping[str, str]]) -> str:
    """Return the means of the last cell in words, for those who do not see the picture."""
    if not summary:
        return ""
    cell = _cell(summary[-1])
    means = [f"{drawing.name_of(row['method'])} {float(row['mean']):.3g}" for row in summary if _cell(row) == cell]
    return f"At {cell}: {', '.join(means)}."


def _cell(row: Mapping[str, str]) -> str:
    return ", ".join(f"{key} {value}" for key, value in row.items() if key not in _STATISTICS)


def _means(summary: Sequence[Mapping[str, str]]) -> Iterator[tuple[str, str, str]]:
    for row in summary:
        yield _cell(row), row["method"], f"{float(row['mean']):.3g} ± {float(row['two_standard_deviations']):.2g}"


def _medians(name: str, times: Sequence[Mapping[str, str]]) -> Iterator[tuple[str, str, str]]:
    for row in times:
        if row["figure"] == name:
            yield row["cell"].replace("=", " "), row["method"], f"{float(row['median_seconds']):.3g}"


def _table(entries: Iterator[tuple[str, str, str]], caption: str) -> str:
    """Return an HTML table: one row for each cell, one column for each method."""
    cells: dict[str, dict[str, str]] = {}
    for cell, method, text in entries:
        cells.setdefault(cell, {})[method] = text
    methods = list(dict.fromkeys(method for row in cells.values() for method in row))
    head = "".join(f'<th scope="col">{escape(drawing.name_of(method))}</th>' for method in methods)
    body = "\n".join(
        f'<tr><th scope="row">{escape(cell)}</th>'
        + "".join(f"<td>{row.get(key, '–')}</td>" for key in methods)
        + "</tr>"
        for cell, row in cells.items()
    )
    words = escape(caption)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{words}"><table><caption>{words}</caption>'
        f'<thead><tr><th scope="col">cell</th>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )
