"""Draw report-light.png and report-dark.png: the page of ``massart demo``, seen in the system's Chromium.

``python docs/make_screenshots.py`` after a change of the page; it needs playwright and Chromium.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from massart.cli import run
from massart.cli.demo import REPORT

HERE = Path(__file__).parent
WIDTH, HEIGHT = 1000, 900
SECTIONS = "section:has(#groups), section:has(#coefficients), section:has(#rows), section:has(#about), footer"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        run(["demo", "--out", folder])
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=scheme)
            page.goto((Path(folder) / REPORT).as_uri())
            page.wait_for_selector("[data-ready]")
            # The rule, its verdict, what happened and the pictures: what a reader sees first.
            page.add_style_tag(content=f"{SECTIONS} {{ display: none }} body {{ padding-bottom: 2rem }}")
            page.screenshot(path=HERE / f"report-{scheme}.png", full_page=True)
        browser.close()


if __name__ == "__main__":
    main()
