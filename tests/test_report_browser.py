"""What a browser makes of the report: it runs nothing of the data, asks for nothing, sorts, filters, links, prints."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="no browser tests: playwright is not installed")
pytest.importorskip("jinja2", reason="no browser tests: jinja2 is not installed")

from test_report import WORDS, certificate, ledger, scattered, unpack, values_of, with_kinds, worst_first

from massart.certificate import Verdict
from massart.report import Findings, Report, ReportRows
from massart.rows import EPS, RELU, Agreement, Level, Link
from massart.rules import Formula, Summand, column

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

    def narrow(self, place, text):
        """Filter a column by what is typed below its name."""
        self.page.fill(f"#table .conditions td:nth-child({place + 1}) input", text)

    def chips(self):
        return self.page.eval_on_selector_all("#chips .chip", "chips => chips.map(chip => chip.firstChild.textContent)")

    def marks(self, selector):
        """Return how many marks the picture draws."""
        return sum(
            self.page.eval_on_selector_all(
                f"#points-picture path{selector}", "paths => paths.map(path => Number(path.dataset.marks))"
            )
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
    if page.is_visible("#clear"):
        page.click("#clear")
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
    assert view.marks(".wrong") == ledger().n_wrong
    assert view.marks(".right") == 2000
    assert view.page.locator("#sizes-picture .bar").count() > 5
    assert view.page.evaluate("document.querySelectorAll('h1').length") == 1


def test_the_script_writes_the_rows_as_the_page_had_them(opened, view):
    rng = np.random.default_rng(5)
    values = rng.standard_normal(40) * 10.0 ** rng.integers(-12, 25, 40)
    values[:6] = [0.1 + 0.2, -1e-7, 1e21, 123456.785, 1e-6, -0.0]

    def cells(index):
        return {"id": list(index), "a": values[index], "b": [None if i % 3 else f"  {i}" for i in index]}

    wrong = np.ones(40, dtype=bool)
    rows = ReportRows(values, values[::-1].copy(), ~wrong, wrong, cells)
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


def test_the_search_looks_in_all_columns(view):
    rows = ledger().rows
    index = np.flatnonzero(rows.wrong)
    customers = np.array(rows.cells(index)["customer"])
    total = f"(filtered from {len(index):,})"
    view.page.fill("#query", "CUSTOMER 07")
    view.wait_for_status(f"of {(customers == 'customer 07').sum()} {total}")
    assert set(view.column(CUSTOMER)) == {"customer 07"}
    view.page.fill("#query", "")
    view.wait_for_status(f"Rows 1–50 of {len(index):,}")
    largest = view.column(GIVEN)[0]
    for text in (largest, largest.replace(",", "")):
        view.page.fill("#query", text)
        view.wait_for_status(f"of 1 {total}")
    view.page.fill("#query", "no such thing")
    view.wait_for_status("No row fits")
    assert view.page.is_disabled("#download")


OFF_BY = "off by"
CONDITIONS = [
    (GIVEN, "> 1000", lambda c: c["given"] > 1000),
    (GIVEN, ">=1,000", lambda c: c["given"] >= 1000),
    (GIVEN, "500..1000", lambda c: (c["given"] >= 500) & (c["given"] <= 1000)),
    (GIVEN, "..20", lambda c: c["given"] <= 20),
    (GIVEN, "2000..", lambda c: c["given"] >= 2000),
    (RESIDUAL, "± >= 500", lambda c: np.abs(c[OFF_BY]) >= 500),
    (RESIDUAL, "±100..<200", lambda c: (np.abs(c[OFF_BY]) >= 100) & (np.abs(c[OFF_BY]) < 200)),
    (RESIDUAL, "< 0", lambda c: c[OFF_BY] < 0),
    (HOURS, "7.25", lambda c: c["hours"] == 7.25),
    (HOURS, "!= 7.25", lambda c: c["hours"] != 7.25),
    (CUSTOMER, "omer 1", lambda c: np.strings.find(c["customer"], "omer 1") >= 0),
    (CUSTOMER, "= customer 11", lambda c: c["customer"] == "customer 11"),
    (CUSTOMER, "= customer 1", lambda c: c["customer"] == "customer 1"),
    (CUSTOMER, "!= customer 11", lambda c: c["customer"] != "customer 11"),
    (
        CUSTOMER,
        "customer 10..customer 19",
        lambda c: (c["customer"] >= "customer 10") & (c["customer"] <= "customer 19"),
    ),
    (CUSTOMER, "> customer 40", lambda c: c["customer"] > "customer 40"),
    (CUSTOMER, "=", lambda c: c["customer"] == ""),
    (GIVEN, ">", lambda c: c["given"] > -np.inf),  # not finished yet
]


@pytest.mark.full(every=2)
@pytest.mark.parametrize(("place", "text", "law"), CONDITIONS, ids=[text for _, text, _ in CONDITIONS])
def test_columns_are_filtered_by_conditions(view, place, text, law):
    rows = ledger().rows
    index = np.flatnonzero(rows.wrong)
    cells = {name: np.array(values) for name, values in rows.cells(index).items()}
    cells |= {"given": rows.given[index], OFF_BY: np.round(rows.given[index] - rows.implied[index], 9)}
    expected = np.count_nonzero(law(cells))
    view.narrow(place, text)
    view.page.wait_for_selector("#chips .chip")
    if expected == len(index):
        view.wait_for_status(f"of {len(index):,}")
    else:
        view.wait_for_status(f"of {expected:,} (filtered from {len(index):,})" if expected else "No row fits")
    assert view.chips() == [f"{view.page.inner_text(f'#table th:nth-child({place + 1})').lower()} {text}"]


def test_filters_work_together_and_chips_take_them_away(view):
    rows = ledger().rows
    index = np.flatnonzero(rows.wrong)
    size = np.abs(rows.given - rows.implied)[index]
    customers = np.array(rows.cells(index)["customer"])
    view.narrow(RESIDUAL, "± >= 500")
    view.narrow(CUSTOMER, "= customer 07")
    both = np.count_nonzero((size >= 500) & (customers == "customer 07"))
    view.wait_for_status(f"of {both} (filtered")
    assert view.chips() == ["off by ± >= 500", "customer = customer 07"]
    view.page.click("[aria-label='Remove the filter off by ± >= 500']")
    view.wait_for_status(f"of {np.count_nonzero(customers == 'customer 07')} (filtered")
    assert view.page.input_value(f"#table .conditions td:nth-child({RESIDUAL + 1}) input") == ""
    view.page.click("#clear")
    view.wait_for_status(f"Rows 1–50 of {len(index):,}")
    assert not view.page.is_visible("#chips")


@pytest.fixture(scope="module")
def of_kinds():
    return with_kinds(ledger(2000), WORDS)


@pytest.fixture
def kinds_view(opened, of_kinds):
    return opened(of_kinds)


def test_a_kind_chooses_its_rows_everywhere(opened, of_kinds, kinds_view):
    view = kinds_view
    codes = of_kinds.rows.kinds.codes
    n = np.count_nonzero(codes == 2)
    button = view.page.locator(".kinds button", has_text=WORDS[1])
    button.click()
    view.wait_for_status(f"of {n:,} (filtered")
    assert set(view.column(RESIDUAL + 1)) == {WORDS[1]}
    assert button.get_attribute("aria-pressed") == "true"
    assert view.chips() == [f"kind = {WORDS[1]}"]
    assert view.marks(".wrong:not(.dim)") == n
    assert view.marks(".tone-2:not(.dim)") == n
    assert view.marks(".dim") == of_kinds.n_wrong - n + min(2000, of_kinds.n_agree)
    assert view.page.locator("#sizes-picture rect.tone-1:not(.dim)").count() == 0
    assert view.page.locator("#sizes-picture rect.tone-2:not(.dim)").count() > 0
    button.click()
    view.wait_for_status(f"Rows 1–50 of {of_kinds.n_wrong:,}")
    classes = "paths => paths.map(path => path.getAttribute('class'))"
    drawn = view.page.eval_on_selector_all("#points-picture path.wrong", classes)
    assert set(drawn) == {f"wrong tone-{k}" for k in range(8)}
    assert_contrast(view.page, least=50)
    phone = opened(of_kinds, viewport={"width": PHONE, "height": 700})
    assert phone.page.evaluate("document.documentElement.scrollWidth") <= PHONE


def test_a_group_chooses_its_rows(view):
    group = ledger().rows.groups[2]
    view.page.click(f".groups button:has-text('{group.name}')")
    view.wait_for_status(f"of {group.n_wrong} (filtered")
    assert set(view.column(CUSTOMER)) == {group.name}
    assert view.marks(".wrong:not(.dim)") == group.n_wrong


def test_a_bar_chooses_its_rows_by_pointer_and_by_keyboard(view):
    bars = view.page.locator("#sizes-picture .bar")
    for choose in ("click", "Enter", " "):
        bar = bars.nth(3)
        count = bar.get_attribute("aria-label").split()[0]
        if choose == "click":
            bar.click()
        else:
            bars.first.focus()
            for _ in range(3):
                view.page.keyboard.press("ArrowRight")
            view.page.keyboard.press(choose)
        view.wait_for_status(f"of {count} (filtered")
        assert bars.nth(3).get_attribute("aria-pressed") == "true"
        assert view.marks(".wrong:not(.dim)") == int(count.replace(",", ""))
        view.page.click("#clear")
        view.wait_for_status("Rows 1–50")


@pytest.mark.full
def test_the_bars_count_the_rows_they_choose(view):
    counted = 0
    for k in range(view.page.locator("#sizes-picture .bar").count()):
        bar = view.page.locator("#sizes-picture .bar").nth(k)
        counted += int(bar.get_attribute("aria-label").split()[0].replace(",", ""))
        bar.dispatch_event("click")
        view.wait_for_status(f"of {bar.get_attribute('aria-label').split()[0]} (filtered")
        view.page.click("#clear")
    assert counted == ledger().n_wrong


def drag(page, start, end):
    """Drag over the picture, from and to shares of its width and height."""
    page.locator("#points-picture").scroll_into_view_if_needed()
    box = page.locator("#points-picture svg").bounding_box()
    at = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in (start, end)]
    page.mouse.move(*at[0])
    page.mouse.down()
    page.mouse.move(*at[1], steps=3)
    page.mouse.up()


TICKS = "[...document.querySelectorAll('#points-picture text:not(.title)')].map(tick => tick.textContent)"


@pytest.mark.parametrize("scale", ["linear", "logarithmic"])
def test_a_region_is_enlarged_with_its_ticks_and_lists_its_rows(view, scale):
    view.page.click(f"[data-scale={scale}]")
    whole = view.page.evaluate(TICKS)
    drag(view.page, (0.3, 0.75), (0.7, 0.35))
    view.page.wait_for_selector("#whole:visible")
    (implied, given) = (chip.split(" ")[1].split("..") for chip in view.chips())
    rows = ledger().rows
    inside = (rows.implied >= float(implied[0])) & (rows.implied <= float(implied[1]))
    inside &= (rows.given >= float(given[0])) & (rows.given <= float(given[1]))
    assert view.page.input_value("#show") == "all"
    assert view.marks(".wrong:not(.dim)") == np.count_nonzero(inside & rows.wrong)
    total = np.count_nonzero(inside & rows.wrong) + view.marks(".right:not(.dim)")
    view.wait_for_status(f"of {total:,} (filtered")
    for _ in range(3):  # however far one goes
        ticks = view.page.evaluate(TICKS)
        assert len(ticks) >= 6
        assert ticks != whole
        drag(view.page, (0.4, 0.6), (0.6, 0.5))
    view.page.click("#whole")
    view.wait_for_status("Rows 1–50 of")
    assert view.page.evaluate(TICKS) == whole
    assert view.chips() == []
    view.page.click("[data-scale=logarithmic]")


WHAT_IF = "[...document.querySelectorAll('#what-if b')].map(part => part.textContent)"


def counted(findings, coef, places):
    """Return how many of the rows that the page carries agree with other coefficients, as massart counts."""
    rows = findings.rows
    X = np.column_stack([rows.terms, np.ones(len(rows.given))])
    agree = findings.certificate.agreement.agree(X, rows.given, coef, findings.formula.link)
    return [f"{np.count_nonzero(agree[part]):,} of {len(part):,}" for part in places]


def carried_rows(view, findings):
    """Return the numbers of the rows in the picture: those that agree, and the wrong ones."""
    packed = json.loads(view.page.text_content("#rows-data"))
    names = unpack(packed["columns"][0])
    every = findings.rows.cells(np.arange(findings.n_rows))["invoice"]
    index = np.array([every.index(name) for name in names])
    return index[findings.rows.agree[index]], index[findings.rows.wrong[index]]


def test_what_if_counts_as_massart_does(view):
    findings = ledger()
    places = carried_rows(view, findings)
    assert [len(part) for part in places] == [2000, findings.n_wrong]
    coef = findings.formula.coef
    assert view.page.evaluate(WHAT_IF) == counted(findings, coef, places)
    for place, text, value in (
        (0, "61", 61.0),
        (3, "80.004", 80.004),
        (8, "24.99", 24.99),
        (1, "17/5", 3.4),
        (2, "", 0.0),
    ):
        view.page.fill(f"[data-term='{place}']", text)
        changed = coef.copy()
        changed[place] = value
        assert view.page.evaluate(WHAT_IF) == counted(findings, changed, places)
        view.page.click("#restore") if view.page.is_enabled("#restore") else None
    view.page.click("[data-drop] >> nth=3")
    changed = coef.copy()
    changed[3] = 0
    assert view.page.evaluate(WHAT_IF) == counted(findings, changed, places)
    assert view.page.get_attribute("[data-drop] >> nth=3", "aria-pressed") == "true"
    assert "implied by your coefficients" in view.page.inner_text("#points-picture")
    view.page.click("[data-drop] >> nth=3")
    assert view.page.evaluate(WHAT_IF) == counted(findings, coef, places)
    assert "implied by the formula" in view.page.inner_text("#points-picture")
    view.page.fill("[data-term='0']", "sixty")
    assert view.page.get_attribute("[data-term='0']", "aria-invalid") == "true"
    view.page.fill("[data-term='0']", "62.5")


LINEAR = Link(lower=-np.inf)
LINKS = (RELU, Link(-3, 40), Link(slope=0.25), Link(slope=3))


@pytest.mark.full(every=3)
@pytest.mark.parametrize(
    ("level", "link"), [*((level, LINEAR) for level in Level), *((Level.INPUTS, link) for link in LINKS)], ids=str
)
def test_what_if_counts_every_agreement_as_massart_does(opened, level, link):
    """Rows at the very edge of agreement, in units of the last digit, for every level and link."""
    rng = np.random.default_rng(7)
    n, d = 400, 4
    X = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-3, 4, (n, d))
    w = np.array([1 / 3, -2.7, 0.1, 4.0])
    agreement = Agreement(
        level,
        label=0.0 if level is Level.EXACT else 0.005,
        inputs=(0.5, 0.0, 0.001, 0.25) if level is Level.INPUTS else (),
        relative=10 * EPS,
        unit=0.01 if level in (Level.LABEL, Level.INPUTS) else None,
    )
    implied = link(X @ w)
    widths = max(1, link.slope) * agreement.half_widths(np.abs(X) @ np.abs(w) + np.abs(implied), w)
    y = implied + widths * rng.choice([-1, 1], n) * rng.choice([0.5, 1 - 1e-9, 1, 1 + 1e-9, 2], n)
    agree = agreement.agree(X, y, w, link)
    assert 0 < agree.sum() < n
    terms = tuple(Summand(column(f"x{j}"), float(w[j]), None, 0.0, True) for j in range(d))
    rows = ReportRows(y, implied, agree, ~agree, lambda index: {"id": index.tolist()}, terms=X)
    findings = Findings(
        "edges",
        Formula("y", terms, None, link, noisy=False),
        dataclasses.replace(certificate(n, int(agree.sum()), columns=d), agreement=agreement),
        n,
        int(agree.sum()),
        int((~agree).sum()),
        rows=rows,
    )
    view = opened(findings)
    right, wrong = int(agree.sum()), int((~agree).sum())
    assert view.page.evaluate(WHAT_IF) == [f"{right} of {right}", f"0 of {wrong}"]
    other = w * (1 + 1e-15)
    for place in range(d):
        view.page.fill(f"[data-term='{place}']", repr(float(other[place])))
    both = agreement.agree(X, y, other, link)
    expected = [f"{(both & agree).sum()} of {right}", f"{(both & ~agree).sum()} of {wrong}"]
    assert view.page.evaluate(WHAT_IF) == expected


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
    for _ in range(120):
        view.page.keyboard.press("Tab")
        what = "(e => e.id || e.dataset.copy || e.dataset.term || e.getAttribute('class') || e.textContent)"
        seen.add(view.page.evaluate(f"{what}(document.activeElement)"))
        if view.page.evaluate("document.activeElement.textContent") == "Off by":
            break
    assert {"formula-text", "query", "show", "download", "choose", "8"} <= seen
    view.page.keyboard.press("Enter")
    assert view.sorting()[RESIDUAL] == "ascending"
    view.page.keyboard.press("Space")
    assert view.sorting()[RESIDUAL] == "descending"
    assert view.page.evaluate("document.activeElement.textContent") == "Off by"


def test_headers_stay_in_sight(view):
    view.page.locator("#table tbody tr").nth(40).scroll_into_view_if_needed()
    parts = "['.scroll:has(#table)', '#table thead', 'header.top']"
    top, head, line = view.page.evaluate(f"{parts}.map(s => document.querySelector(s).getBoundingClientRect().top)")
    assert abs(head - top) < 3
    assert line == 0
    assert view.page.evaluate("document.querySelector('.scroll:has(#table)').scrollTop") > 100


@pytest.mark.full(first=1)
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", PHONE)])
def test_axe_finds_nothing_to_complain_about(opened, of_kinds, scheme, width):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    view = opened(of_kinds, viewport={"width": width, "height": 800}, color_scheme=scheme)
    view.page.click(".kinds button >> nth=0")
    found = axe.Axe().run(view.page).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"]) for each in found] == []


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


@pytest.mark.full(every=3)
@pytest.mark.parametrize("verdict", list(Verdict))
def test_every_verdict_has_contrast_in_light_and_dark(opened, verdict):
    least = 25 if verdict is Verdict.NONE else 50  # without a rule there are no coefficients to show
    assert_contrast(opened(dataclasses.replace(ledger(300, verdict=verdict), rows=None)).page, least=least)


def test_the_button_changes_the_colours_and_is_remembered(view):
    colours = "['body', '#points-picture path.wrong'].map(s => getComputedStyle(document.querySelector(s)))"
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
    view.page.wait_for_function(f"() => document.querySelector('#points-picture svg').clientWidth < {PHONE}")
    assert view.page.evaluate("document.scrollingElement.scrollWidth") <= PHONE
    table = ".scroll:has(#table)"
    assert view.page.inner_text(f"{table} + .swipe") == "More columns to the right →"
    view.page.evaluate(f"document.querySelector('{table}').scrollLeft = 1e6")
    view.page.wait_for_selector(f"{table} + .swipe", state="hidden")
    left = "cells => cells.map(cell => cell.getBoundingClientRect().left)"
    which, inside = view.page.eval_on_selector_all(f"#table tbody tr:first-child td:nth-child(2), {table}", left)
    assert abs(which - inside) < 1  # which row it is stays in sight
    view.page.evaluate(f"document.querySelector('{table}').scrollLeft = 0")
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
    assert hostile[:40] in hover(page)
    assert page.locator("#points-picture a, #points-picture img").count() == 0
    page.click("#table th:nth-child(2) button")
    assert hostile in page.locator("#table tbody").text_content()
    page.fill("#query", hostile)
    view.wait_for_status("Rows 1–")
    assert page.evaluate("window.pwned") is None
    assert page.locator("main img, main script, main iframe").count() == 0


def hover(page):
    """Point at a wrong row of the picture and return what it says."""
    page.locator("#points-picture").scroll_into_view_if_needed()
    box = page.locator("#points-picture svg").bounding_box()
    mark = page.get_attribute("#points-picture path.wrong", "d").split("m")[0][1:].split()
    width = float(page.get_attribute("#points-picture svg", "viewBox").split()[2])
    x, y = (float(part) * box["width"] / width for part in mark)
    page.mouse.move(box["x"] + x, box["y"] + y)
    return page.inner_text("#points-picture .tooltip")


def test_pointing_at_a_row_shows_its_cells_and_a_click_lists_it(view):
    text = hover(view.page)
    for part in ("invoice: INV-", "given ", "implied ", "off by ", "hours: ", "region: "):
        assert part in text
    view.page.mouse.down()
    view.page.mouse.up()
    view.wait_for_status("of 1 (filtered")
    assert f"invoice: {view.column(IDENTITY)[0]}" in text


def test_the_scale_can_be_changed(view):
    before = view.page.evaluate(TICKS)
    assert view.page.get_attribute("[data-scale=logarithmic]", "aria-pressed") == "true"
    view.page.click("[data-scale=linear]")
    assert view.page.get_attribute("[data-scale=linear]", "aria-pressed") == "true"
    assert view.page.evaluate(TICKS) != before
    view.page.click("[data-scale=logarithmic]")
    assert view.page.evaluate(TICKS) == before


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
    numbers = [text for row in rows for text in (row["given"], row["implied"], row["off by"])]
    assert max(len(text) for text in numbers) <= len("-123456.7895")  # and not 14176.619999999999


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
    assert view.page.is_visible("#points-picture svg")
    assert view.page.is_visible("#table thead")


def test_printed_rows_have_headers_on_every_page(opened, saved):
    pypdf = pytest.importorskip("pypdf", reason="pypdf is not installed: it reads what was printed")
    view = opened(saved)
    printed = pypdf.PdfReader(io.BytesIO(view.page.pdf(format="A4")))
    pages = [page.extract_text() for page in printed.pages]
    with_rows = [text for text in pages if text.count("INV-") > 3]
    assert len(with_rows) > 1
    assert all("Implied" in text for text in with_rows)
    assert view.page.locator("#table th button").count() == len(view.sorting())  # back again


def test_without_a_script_the_page_can_be_read(browser, saved):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(saved.as_uri())
    assert "No other formula fits as many rows" in page.inner_text("main")
    assert page.locator("#points-picture path").count() >= 4
    assert page.locator("#table tbody tr").count() == 50
    assert not page.is_visible("#filters")
    context.close()


@pytest.mark.parametrize("n_wrong", [0, 1])
def test_few_wrong_rows(opened, n_wrong):
    findings = ledger(400)
    rows = findings.rows
    wrong = np.zeros(400, dtype=bool)
    wrong[worst_first(rows)[:n_wrong]] = True
    rows = dataclasses.replace(rows, wrong=wrong, groups=(), group_column=None)
    findings = dataclasses.replace(findings, rows=rows, n_wrong=n_wrong, certificate=certificate(400, 400 - n_wrong))
    view = opened(findings)
    assert view.page.locator("#table tbody tr").count() == n_wrong
    assert view.page.evaluate("document.documentElement.dataset.ready") == "true"


def test_extreme_values_open(opened):
    pairs = [(1e308, -1e308), (1e-300, 0), (-5e-324, 2), (0, 0), (3, 1e200), (np.inf, 1), (1, np.nan)]
    findings = dataclasses.replace(ledger(300), rows=values_of(pairs), n_rows=7, n_agree=0, n_wrong=7)
    view = opened(findings)
    assert view.page.evaluate("document.documentElement.dataset.ready") == "true"
    assert "NaN" not in view.page.inner_html("#points-picture")
    assert view.page.locator("#table tbody tr").count() == 7
    constant = dataclasses.replace(findings, rows=values_of([(5, 5)] * 3), n_rows=3, n_wrong=3)
    assert "NaN" not in opened(constant).page.inner_html("#points-picture")


def test_findings_without_rows_open(opened):
    view = opened(dataclasses.replace(ledger(400), rows=None))
    assert view.page.evaluate("document.documentElement.dataset.ready") == "true"


@pytest.mark.full
def test_many_rows_stay_usable(opened):
    findings = scattered(MANY)
    view = opened(findings)
    packed = view.page.evaluate("JSON.parse(document.getElementById('rows-data').textContent).wrong")
    assert view.status() == f"Rows 1–50 of {packed:,}"
    view.page.click("#table th:nth-child(4) button")
    implied = view.numbers(IMPLIED)
    assert implied == sorted(implied)
    view.page.click("#table th:nth-child(2) button")
    assert view.sorting()[IDENTITY] == "ascending"
    view.narrow(RESIDUAL, "± >= 100")
    large = np.abs(findings.rows.given - findings.rows.implied)[findings.rows.wrong] >= 100
    view.wait_for_status(f"of {large.sum():,} (filtered from {packed:,})")
    view.narrow(RESIDUAL, "")
    view.wait_for_status(f"of {packed:,}")
    view.page.fill("#query", view.column(IDENTITY)[0])
    view.wait_for_status(f"(filtered from {packed:,})")
