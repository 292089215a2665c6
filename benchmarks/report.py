"""How large a report is, and how long a browser takes until it can be worked with.

    python benchmarks/report.py
    python benchmarks/report.py --small       # 5,000 and 50,000 rows

Two tables: the ledger of ``massart demo``, whose numbers are short, and random floats, which nothing makes small. Each
page is opened in headless Chromium some times: *ready* is when the script has started everything, from the
beginning of the navigation and in the page's own clock; *busy* is what its main thread computed until then, which does
not depend on what else the machine does; *sort*, *filter* and *what-if* are what one action takes until the page has
changed. An empty page, opened in turn, says what the browser itself takes. It prints and never fails; it needs
playwright and Chromium.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from massart import audit_table
from massart.demo import GROUP, ID, TARGET, make_ledger
from massart.report import Findings, Report

OPENINGS = 5
EMPTY = "<!doctype html><title>empty</title><script>document.documentElement.dataset.ready = 'true'</script>"
CLOCK = """new MutationObserver((_, observer) => {
  if (!document.documentElement?.dataset.ready) return;
  window.ready = performance.now();
  observer.disconnect();
}).observe(document, { attributes: true, childList: true, subtree: true })"""
ACTIONS = {
    "sort": "document.querySelector('#table th:nth-child(4) button').click()",
    "filter": "document.querySelector('button[data-place]')?.click()",
    "what-if": """(input => { if (!input) return; input.value = '8.25'; input.dispatchEvent(new Event('input')) })(
        document.querySelector('input[data-term]'))""",
}


def ledger(n: int, seed: int) -> Findings:
    """Return what the report of the demo shows, with so many rows."""
    audit = audit_table(make_ledger(np.random.default_rng(seed), n), TARGET, id=ID, group=GROUP)
    return _with_terms(audit)


def floats(n: int, seed: int) -> Findings:
    """Return the findings of a table of 20 columns of random floats, three rows in ten wrong."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 20))
    y = X @ np.arange(1.0, 21)
    wrong = rng.random(n) < 0.3
    y[wrong] += rng.standard_cauchy(np.count_nonzero(wrong))
    return _with_terms(audit_table({f"x{j}": X[:, j] for j in range(20)} | {"y": y}, "y", terms="columns"))


def _with_terms(audit: Any) -> Findings:
    found = audit.findings({"date of the data": "2026-01-01 00:00"})
    return replace(found, rows=replace(found.rows, terms=audit.X))


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the pages, open them, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args(arguments)
    from playwright.sync_api import sync_playwright

    sizes = (5_000, 50_000) if options.small else (5_000, 1_000_000)
    print(
        f"{'table':8} {'rows':>9} {'page MB':>8} {'made s':>7} {'empty ms':>9} {'ready ms':>9} {'busy ms':>8}", end=""
    )
    print("".join(f"{f'{name} ms':>12}" for name in ACTIONS))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        empty = Path(folder) / "empty.html"
        empty.write_text(EMPTY)
        for make in (ledger, floats):
            for n in sizes:
                found = make(n, options.seed)
                begun = time.perf_counter()
                path = Report(found).save(Path(folder) / "report.html")
                made = time.perf_counter() - begun
                pairs = [(_open(browser, empty)[0], *_open(browser, path)) for _ in range(OPENINGS)]
                nothing, ready, busy = (statistics.median(times) for times in zip(*pairs, strict=True))
                print(f"{make.__name__:8} {n:9,} {path.stat().st_size / 1e6:8.2f} {made:7.2f}", end="")
                print(f" {nothing:9.0f} {ready:9.0f} {busy:8.0f}", end="")
                print("".join(f"{_act(browser, path, script):12.0f}" for script in ACTIONS.values()), flush=True)
        browser.close()
    return 0


def _open(browser: Any, path: Path) -> tuple[float, float]:
    """Return the milliseconds until a page is ready, and those that its main thread computed."""
    page = browser.new_page()
    page.add_init_script(CLOCK)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]")
    metrics = {metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]}
    taken: float = page.evaluate("window.ready")
    page.close()
    return taken, 1000 * metrics["TaskDuration"]


def _act(browser: Any, path: Path, script: str) -> float:
    """Return the milliseconds that an action takes, what it draws included."""
    page = browser.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]")
    taken: float = page.evaluate(
        f"""async () => {{
          const start = performance.now();
          {script};
          document.body.getBoundingClientRect();
          await new Promise((done) => requestAnimationFrame(done));
          return performance.now() - start;
        }}"""
    )
    page.close()
    return taken


if __name__ == "__main__":
    raise SystemExit(main())
