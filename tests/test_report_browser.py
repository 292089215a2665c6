"""What a browser makes of the report: it runs nothing of the data, asks for nothing, sorts, filters, prints."""

from __future__ import annotations

import csv
import dataclasses
import io
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="no browser tests: playwright is not installed")
pytest.importorskip("plotly", reason="no browser tests: plotly is not installed")
pytest.importorskip("jinja2", reason="no browser tests: jinja2 is not installed")

from test_report import WORDS, certificate, ledger, scattered, with_kinds

from massart.certificate import Verdict
from massart.report import JudgedRows, Report
from massart.report.wrong_rows import wrong_residuals

FLAGS = (
    "--no-sandbox --disable-gpu --disable-background-networking "
    "--disable-component-update --disable-sync --no-first-run"
)
MANY = 1_000_000 if os.environ.get("MASSART_FULL") else 200_000
PHONE = 375


def find_chromium():
    """Return a browser of the system, else the one that playwright has fetched, if there is one."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if (system := shutil.which(name)) is not None:
            return system
    with sync_api.sync_playwright() as playwright:
        fetched = Path(playwright.chromium.executable_path)
    return str(fetched) if fetched.exists() else None


CHROMIUM = find_chromium()
if CHROMIUM is None:
    pytest.skip("no Chromium: the report is not tried in a browser", allow_module_level=True)


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split())
        yield browser
        browser.close()


class Opened:
    """A page in a browser, with all that it complained about and asked for."""

    def __init__(self, browser, path, **context):
        self.complaints, self.requests = [], []
        self.context = browser.new_context(reduced_motion="reduce", **context)
        self.context.route(lambda url: not url.startswith(("file:", "blob:")), self._refuse)
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ready]")

    def _refuse(self, route):
        self.requests.append(route.request.url)
        route.abort()

    def column(self, place):
        return self.page.eval_on_selector_all(
            f"#table tbody tr td:nth-child({place + 1})", "cells => cells.map(cell => cell.textContent)"
        )

    def numbers(self, place):
        return [float(text.replace(",", "")) for text in self.column(place)]

    def status(self):
        return self.page.inner_text("#status")

    def sorting(self):
        return self.page.eval_on_selector_all(
            "#table th", "headers => headers.map(header => header.getAttribute('aria-sort'))"
        )

    def wait_for_status(self, text):
        self.page.wait_for_function("text => document.getElementById('status').textContent.includes(text)", arg=text)


@pytest.fixture(scope="module")
def opened(browser, tmp_path_factory):
    """Open a page of findings; when the test is over, nothing may have gone wrong."""
    folder = tmp_path_factory.mktemp("pages")
    contexts = []

    def open_page(findings, **context):
        key = len(contexts)
        path = findings if hasattr(findings, "as_uri") else Report(findings).save(folder / f"{key}.html")
        contexts.append(Opened(browser, path, **context))
        return contexts[-1]

    yield open_page
    for each in contexts:
        each.context.close()
    assert [each.complaints for each in contexts if each.complaints] == []
    assert [each.requests for each in contexts if each.requests] == []


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return Report(ledger()).save(tmp_path_factory.mktemp("ledger") / "report.html")


@pytest.fixture(scope="module")
def shared(opened, saved):
    return opened(saved, permissions=["clipboard-read", "clipboard-write"])


@pytest.fixture
def view(shared):
    """The page of the ledger as it was when it was opened, without opening it again."""
    page = shared.page
    page.fill("#query", "")
    page.fill("#least", "")
    page.click("#table th:nth-child(5) button")
    page.click("#table th:nth-child(1) button")
    shared.wait_for_status(f"Rows 1–50 of {ledger().n_wrong:,}")
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    return shared


RANK, IDENTITY, GIVEN, IMPLIED, RESIDUAL, CUSTOMER, HOURS = range(7)


def test_the_page_starts_without_complaints_and_asks_for_nothing(view):
    assert view.page.evaluate("document.documentElement.dataset.ready") == "true"
    assert view.complaints == []
    assert view.requests == []
    assert view.page.locator("#points-picture .point").count() > 1000
    assert view.page.locator("#sizes-picture .point").count() > 5
    assert view.page.evaluate("document.querySelectorAll('h1').length") == 1


def test_the_script_writes_the_rows_as_the_page_had_them(opened, view):
    rng = np.random.default_rng(5)
    values = rng.standard_normal(40) * 10.0 ** rng.integers(-12, 25, 40)
    values[:6] = [0.1 + 0.2, -1e-7, 1e21, 123456.785, 1e-6, -0.0]

    def cells(index):
        return {"id": list(index), "a": values[index], "b": [None if i % 3 else f"  {i}" for i in index]}

    wrong = np.ones(40, dtype=bool)
    rows = JudgedRows(values, values[::-1].copy(), ~wrong, wrong, cells)
    awkward = dataclasses.replace(ledger(300), rows=rows, n_rows=40, n_wrong=40)
    texts = "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    for findings, script in ((ledger(), view), (awkward, opened(awkward))):
        static = script.context.new_page()
        static.set_content(Report(findings).to_html().replace("<script>", "<script type='text/plain'>"))
        before = static.eval_on_selector_all("#table tbody tr", texts)
        static.close()
        assert script.page.eval_on_selector_all("#table tbody tr", texts) == before
        assert len(before) == min(50, findings.n_wrong)


def test_headers_sort(view):
    assert view.sorting()[RANK] == "ascending"
    assert view.numbers(RANK) == list(range(1, 51))
    sizes = [abs(value) for value in view.numbers(RESIDUAL)]
    assert sizes == sorted(sizes, reverse=True)
    findings = ledger()
    rows = findings.rows
    totals = np.sort(rows.given[rows.wrong])
    view.page.click("#table th:nth-child(3) button")
    assert view.sorting()[GIVEN] == "ascending"
    assert view.sorting()[RANK] is None
    assert view.numbers(GIVEN) == totals[:50].tolist()
    view.page.click("#table th:nth-child(3) button")
    assert view.sorting()[GIVEN] == "descending"
    assert view.numbers(GIVEN) == totals[::-1][:50].tolist()
    view.page.click("#table th:nth-child(6) button")
    customers = sorted(rows.cells(np.flatnonzero(rows.wrong))["customer"])
    assert view.column(CUSTOMER) == customers[:50]
    view.page.click("#table th:nth-child(2) button")
    assert view.column(IDENTITY) == sorted(rows.cells(np.flatnonzero(rows.wrong))["invoice"])[:50]


def test_filters_keep_what_fits(view):
    rows = ledger().rows
    index = np.flatnonzero(rows.wrong)
    customers = np.array(rows.cells(index)["customer"])
    total = f"(filtered from {len(index):,})"
    view.page.fill("#query", "CUSTOMER 07")
    view.wait_for_status(f"of {(customers == 'customer 07').sum()} {total}")
    assert set(view.column(CUSTOMER)) == {"customer 07"}
    view.page.fill("#least", "500")
    size = np.abs(rows.given - rows.implied)[index]
    view.wait_for_status(f"of {((customers == 'customer 07') & (size >= 500)).sum()} {total}")
    assert min(abs(value) for value in view.numbers(RESIDUAL)) >= 500
    view.page.fill("#query", "")
    view.wait_for_status(f"of {(size >= 500).sum():,} {total}")
    view.page.fill("#least", "")
    view.wait_for_status(f"Rows 1–50 of {len(index):,}")
    largest = view.column(GIVEN)[0]
    view.page.fill("#query", largest)
    view.wait_for_status(f"of 1 {total}")
    view.page.fill("#query", largest.replace(",", ""))
    view.wait_for_status(f"of 1 {total}")
    view.page.fill("#query", "no such thing")
    view.wait_for_status("No row fits")
    assert view.page.is_disabled("#download")


def test_rows_of_a_kind_can_be_shown(opened):
    findings = with_kinds(ledger(2000), WORDS)
    view = opened(findings)
    codes = findings.rows.kinds.codes
    view.page.select_option("#kind", WORDS[1])
    view.wait_for_status(f"of {np.count_nonzero(codes == 2):,} (filtered")
    assert set(view.column(RESIDUAL + 1)) == {WORDS[1]}
    symbols = "data => data.map(trace => new Set([trace.marker?.symbol].flat()).size)"
    drawn = view.page.evaluate(f"({symbols})(document.getElementById('points-picture').data)")
    assert max(drawn) == 8
    assert len(view.page.evaluate("document.getElementById('sizes-picture').data")) == 8
    assert_contrast(view.page, least=50)
    phone = opened(findings, viewport={"width": PHONE, "height": 700})
    assert phone.page.evaluate("document.documentElement.scrollWidth") <= PHONE


def test_pages_turn(view):
    n = ledger().n_wrong
    view.page.click("text=Next")
    assert view.status() == f"Rows 51–100 of {n:,}"
    assert view.numbers(RANK) == list(range(51, 101))
    view.page.click("text=Last")
    assert view.numbers(RANK)[-1] == n
    assert view.page.is_disabled("[data-page=next]")
    assert view.page.evaluate("document.activeElement.dataset.page") == "first"
    view.page.click("text=Previous")
    view.page.click("text=First")
    assert view.status() == f"Rows 1–50 of {n:,}"


def test_the_keyboard_reaches_everything(view):
    view.page.focus(".skip")
    view.page.keyboard.press("Enter")
    assert view.page.evaluate("document.activeElement.id") == "main"
    seen = set()
    for _ in range(40):
        view.page.keyboard.press("Tab")
        seen.add(
            view.page.evaluate(
                "(e => e.id || e.dataset.page || e.dataset.copy || e.textContent)(document.activeElement)"
            )
        )
        if view.page.evaluate("document.activeElement.textContent") == "Off by":
            break
    assert {"formula-text", "query", "least", "download"} <= seen
    view.page.keyboard.press("Enter")
    assert view.sorting()[RESIDUAL] == "ascending"
    view.page.keyboard.press("Space")
    assert view.sorting()[RESIDUAL] == "descending"
    assert view.page.evaluate("document.activeElement.textContent") == "Off by"


CONTRAST = """selector => {
  const parse = text => text.match(/[\\d.]+/g).map(Number)
    .map((v, i) => text.startsWith('color(srgb') && i < 3 ? 255 * v : v);
  const linear = v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => [r, g, b].map(v => linear(v / 255))
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  return [...document.querySelectorAll(selector)].filter(e => e.offsetParent !== null).map(element => {
    let back = element;
    while (back.parentElement && parse(getComputedStyle(back).backgroundColor)[3] === 0) back = back.parentElement;
    const pair = [getComputedStyle(element).color, getComputedStyle(back).backgroundColor].map(parse).map(light);
    return [(Math.max(...pair) + .05) / (Math.min(...pair) + .05), element.className, element.tagName];
  });
}"""
READ = "p, h1, h2, h3, li, dt, dd, dd span, td, th, a, button:enabled, code, figcaption, label, em, strong, th button"


def assert_contrast(page, least):
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        found = page.evaluate(CONTRAST, READ)
        assert len(found) > least
        assert min(found)[0] >= 4.5, min(found)
        back = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (back == "rgb(13, 17, 23)") == (scheme == "dark")
    page.emulate_media(color_scheme="light")


def test_text_has_contrast_in_light_and_dark(view):
    assert_contrast(view.page, least=500)


@pytest.mark.parametrize("verdict", list(Verdict))
def test_every_verdict_has_contrast_in_light_and_dark(opened, verdict):
    least = 25 if verdict is Verdict.NONE else 50  # without a rule there are no coefficients to show
    assert_contrast(opened(dataclasses.replace(ledger(300, verdict=verdict), rows=None)).page, least=least)


def test_the_button_changes_the_colours_and_is_remembered(view):
    colours = "['body', '#points-picture .point'].map(s => getComputedStyle(document.querySelector(s)))"
    colours += ".map(style => [style.color, style.fill])"
    before = view.page.evaluate(colours)
    view.page.click("#theme")
    after = view.page.evaluate(colours)
    assert before[0][0] != after[0][0]
    assert before[1][1] != after[1][1]
    assert view.page.evaluate("localStorage.getItem('massart-theme')") == "dark"
    view.page.click("#theme")
    assert view.page.evaluate(colours) == before


def test_a_phone_does_not_scroll_sideways(view):
    view.page.set_viewport_size({"width": PHONE, "height": 700})
    view.page.wait_for_function(f"() => document.querySelector('#points-picture .main-svg').clientWidth < {PHONE}")
    assert view.page.evaluate("document.scrollingElement.scrollWidth") <= PHONE
    view.page.set_viewport_size({"width": 1280, "height": 720})


def test_long_names_do_not_make_a_phone_scroll_sideways(opened):
    name = "which-is-a-very-long-name-without-any-space-in-it" * 3
    findings = ledger(200, rename=lambda text: f"{text}{name}")
    view = opened(findings, viewport={"width": PHONE, "height": 700})
    assert view.page.evaluate("document.scrollingElement.scrollWidth") <= PHONE


HOSTILE = (
    "<img src=x onerror='window.pwned=1'><svg onload=window.pwned=1></script><script>window.pwned=1</script>",
    "<a href='javascript:window.pwned=1'>x</a><b>y</b>&lt;",
)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_nothing_of_the_data_runs(opened, hostile):
    view = opened(ledger(60, rename=lambda text: f"{hostile} {text}"))
    page = view.page
    for selector in (
        "h1",
        "#table tbody",
        "#table thead",
        ".groups",
        ".formula",
        ".coefficients",
        "#about >> xpath=..",
    ):
        assert hostile in page.locator(selector).first.text_content()
    assert hostile in page.title()
    # A long text is cut in the box, and what is left must still be text.
    assert hostile[:40] in hover(page, trace=2)
    assert page.locator("#points-picture .hoverlayer a, #points-picture .hoverlayer img").count() == 0
    page.click("#table th:nth-child(2) button")
    assert hostile in page.locator("#table tbody").text_content()
    page.fill("#query", hostile)
    view.wait_for_status("Rows 1–")
    assert page.evaluate("window.pwned") is None
    assert page.locator("main img, main script, main iframe").count() == 0


def hover(page, trace):
    """Point at a row of the picture and return what it says."""
    page.locator("#points-picture").scroll_into_view_if_needed()
    box = page.locator("#points-picture .scatterlayer .trace").nth(trace).locator(".point").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2 + 40, box["y"] + box["height"] / 2)
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=3)
    page.wait_for_selector("#points-picture .hoverlayer text")
    return "\n".join(page.locator("#points-picture .hoverlayer text").all_text_contents())


def test_pointing_at_a_row_shows_its_cells(view):
    text = hover(view.page, trace=1)
    for part in ("invoice: INV-", "given ", "implied ", "off by ", "hours: ", "region: "):
        assert part in text


def test_the_scale_can_be_changed(view):
    ticks = "[...document.querySelectorAll('#points-picture .ytick text')].map(tick => tick.textContent)"
    before = view.page.evaluate(ticks)
    assert view.page.get_attribute("[data-scale=compressed]", "aria-pressed") == "true"
    view.page.click("[data-scale=linear]")
    assert view.page.get_attribute("[data-scale=linear]", "aria-pressed") == "true"
    assert view.page.evaluate(ticks) != before
    view.page.click("[data-scale=compressed]")
    assert view.page.evaluate(ticks) == before


def test_shown_rows_can_be_downloaded(opened):
    def risky(text):
        return f"={text}" if text.startswith("INV") else text

    view = opened(ledger(300, rename=risky))
    view.page.fill("#query", "islands")
    view.wait_for_status("filtered")
    with view.page.expect_download() as download:
        view.page.click("#download")
    text = Path(download.value.path()).read_text("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {row["region"] for row in rows} == {"islands"}
    assert all(row["invoice"].startswith("'=INV-") for row in rows)
    findings = ledger(300, rename=risky).rows
    cells = findings.cells(np.arange(300))
    given = {f"'{name}": value for name, value in zip(cells["invoice"], findings.given.tolist(), strict=True)}
    assert all(float(row["given"]) == given[row["invoice"]] for row in rows)
    assert any(float(row["off by"]) < 0 for row in rows)


def test_copying_gives_the_formula(view):
    view.page.click("[data-copy=formula-text]")
    view.page.wait_for_selector("text=Copied")
    assert view.page.evaluate("navigator.clipboard.readText()") == ledger().formula.text()


def test_the_page_prints_on_white_paper(opened, saved):
    view = opened(saved, color_scheme="dark")
    assert view.page.pdf(format="A4").startswith(b"%PDF")
    view.page.emulate_media(media="print", color_scheme="dark")
    assert view.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not view.page.is_visible("#theme")
    assert view.page.is_visible("#points-picture .main-svg")
    assert view.page.is_visible("#table thead")


def test_without_a_script_the_page_can_be_read(browser, saved):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(saved.as_uri())
    assert "No other formula fits as many rows" in page.inner_text("main")
    assert page.locator("#table tbody tr").count() == 50
    assert not page.is_visible("#filters")
    context.close()


@pytest.mark.parametrize("n_wrong", [0, 1])
def test_few_wrong_rows(opened, n_wrong):
    findings = ledger(400)
    rows = findings.rows
    wrong = np.zeros(400, dtype=bool)
    wrong[wrong_residuals(rows).index[:n_wrong]] = True
    rows = dataclasses.replace(rows, wrong=wrong, groups=(), group_column=None)
    findings = dataclasses.replace(findings, rows=rows, n_wrong=n_wrong, certificate=certificate(400, 400 - n_wrong))
    view = opened(findings)
    assert view.page.locator("#table tbody tr").count() == n_wrong
    assert view.page.evaluate("document.documentElement.dataset.ready") == "true"


def test_findings_without_rows_open(opened):
    view = opened(dataclasses.replace(ledger(400), rows=None))
    assert view.page.evaluate("document.documentElement.dataset.ready") == "true"


def test_many_rows_stay_usable(opened):
    findings = scattered(MANY)
    view = opened(findings)
    shown = min(100_000, findings.n_wrong)
    assert view.status() == f"Rows 1–50 of {shown:,}"
    view.page.click("#table th:nth-child(4) button")
    implied = view.numbers(IMPLIED)
    assert implied == sorted(implied)
    view.page.click("#table th:nth-child(2) button")
    assert view.sorting()[IDENTITY] == "ascending"
    view.page.fill("#least", "100")
    large = np.abs(findings.rows.given - findings.rows.implied)[findings.rows.wrong] >= 100
    view.wait_for_status(f"of {large.sum():,} (filtered from {shown:,})")
    view.page.fill("#least", "")
    view.page.fill("#query", view.column(IDENTITY)[0])
    view.wait_for_status(f"(filtered from {shown:,})")
