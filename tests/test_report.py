"""The report: laws of its page, its data, its words. What a browser makes of it is in test_report_browser."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import hashlib
import html
import html.parser
import json
import math
import re
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from massart.certificate import Bound, Certificate, Reason, Verdict
from massart.report import DATED, Findings, GroupCount, Report, ReportRows, RowKinds, Usage, coefficients, share
from massart.rows import Agreement, Level, Link
from massart.rules import Formula, Summand, column, level

LINEAR = Link(lower=-math.inf)
REGIONS = ("north", "south", "east", "west", "islands")
VERDICTS = list(Verdict)


def certificate(n=5000, n_agree=3250, verdict=Verdict.PROVEN, columns=9, groups=(), **changes):
    rank = columns - sum(len(group) == 1 or len(group) - 1 for group in groups)
    return Certificate(
        verdict=verdict,
        reason=Reason.MODE if verdict is Verdict.NONE else Reason.NOTHING,
        n_rows=n,
        n_agree=n_agree,
        n_columns=columns,
        rank=rank,
        n_decisive=n_agree,
        agreement=Agreement(Level.LABEL, 0.005, relative=1e-14, unit=0.01),
        hyperplane_rows=12.0,
        bound=Bound.PACKING,
        undetermined=np.zeros((columns, columns - rank)),
        undetermined_columns=groups,
        scale=0.31 if verdict is Verdict.NOISY else None,
        **changes,
    )


def term(name, value, of=None, exact=True, error=0.0, determined=True):
    where = column(name) if of is None else level(name, of)
    return Summand(where, float(value), Fraction(str(value)) if exact else None, error, determined)


def ledger(n=5000, wrong_share=0.35, seed=0, verdict=Verdict.PROVEN, rename=lambda text: text):
    """A ledger of jobs: hours, items, km, weekend, region; a third of the totals wrong in three ways."""
    rng = np.random.default_rng(seed)
    hours = rng.integers(1, 60, n) / 4
    items = rng.integers(0, 40, n)
    km = rng.integers(0, 3000, n) / 10
    weekend = rng.random(n) < 0.2
    region = rng.integers(0, len(REGIONS), n)
    customer = rng.integers(0, 45, n)
    effects = np.array([0, 0, 15, -4.5, 48])
    implied = 62.5 * hours + 3.4 * items + 0.42 * km + 80 * weekend + effects[region] + 25
    wrong = rng.random(n) < wrong_share * (0.5 + customer / 45)
    way = rng.integers(0, 3, n)
    typed = np.round(implied * 10.0 ** rng.integers(-1, 3, n) + 1, 2)
    lost = np.round(implied - 62.5 * hours - rng.integers(1, 9, n), 2)
    other = np.round(rng.lognormal(6, 1.2, n), 2)
    totals = np.where(wrong, np.choose(way, [typed, lost, other]), np.round(implied, 2))
    names = [rename(f"customer {k:02d}") for k in range(45)]

    def cells(index):
        return {
            rename("invoice"): [rename(f"INV-{2024_00000 + i}") for i in index],
            rename("customer"): [names[customer[i]] for i in index],
            "hours": hours[index].tolist(),
            "items": items[index].tolist(),
            "km": km[index].tolist(),
            "weekend": weekend[index].tolist(),
            rename("region"): [rename(REGIONS[region[i]]) for i in index],
        }

    groups = sorted(
        (GroupCount(names[k], int((customer == k).sum()), int(wrong[customer == k].sum())) for k in range(45)),
        key=lambda group: -group.n_wrong / max(1, group.n_rows),
    )
    terms = (
        term("hours", 62.5),
        term("items", 3.4),
        term("km", 0.42),
        term("weekend", 80),
        *(term(rename("region"), effects[k], rename(REGIONS[k])) for k in range(1, 5)),
    )
    X = np.column_stack([hours, items, km, weekend, *(region == k for k in range(1, 5))]).astype(float)
    uses = [*(X != 0).T, np.ones(n, dtype=bool)]
    formula = Formula(rename("total"), terms, term("intercept", 25), LINEAR, noisy=verdict is Verdict.NOISY)
    return Findings(
        title=rename("ledger-2024.csv"),
        formula=formula,
        certificate=certificate(n, int((~wrong).sum()), verdict),
        n_rows=n,
        n_agree=int((~wrong).sum()),
        n_wrong=int(wrong.sum()),
        usage=tuple(Usage(int(use.sum()), int((use & ~wrong).sum())) for use in uses),
        rows=ReportRows(totals, implied, ~wrong, wrong, cells, rename("customer"), tuple(groups), terms=X),
        notices=(rename("Left out: column note (text with 4,812 different values)."), "Base level of region: north."),
        facts={
            "command": rename("massart fit ledger-2024.csv --target total --id invoice --report report.html"),
            "file": f"ledger-2024.csv, 5,000 rows, sha256 {hashlib.sha256(b'ledger').hexdigest()}",
            "versions": "massart 0.3.0, numpy 2.1.0, Python 3.11.9",
            DATED: "2024-11-15 15:40",
        },
        n_left_out=312,
        bases={rename("region"): rename("north")},
    )


def scattered(n, d=20, wrong_share=0.3, seed=1):
    """Random floats, which no packing makes small."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    implied = X.sum(axis=1)
    wrong = rng.random(n) < wrong_share
    labels = np.where(wrong, implied + rng.standard_cauchy(n), implied)

    def cells(index):
        return {"id": [f"row {i}" for i in index]} | {f"x{j}": X[index, j] for j in range(d)}

    formula = Formula("y", tuple(term(f"x{j}", 1) for j in range(d)), None, LINEAR, noisy=False)
    return Findings(
        title="scattered",
        formula=formula,
        certificate=certificate(n, int((~wrong).sum()), columns=d),
        n_rows=n,
        n_agree=int((~wrong).sum()),
        n_wrong=int(wrong.sum()),
        usage=(Usage(n, int((~wrong).sum())),) * d,
        rows=ReportRows(labels, implied, ~wrong, wrong, cells, terms=X),
    )


class Elements(html.parser.HTMLParser):
    """The elements of a page, its scripts, and its text."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.elements, self.scripts, self.text = [], [], ""
        self.open = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.open = tag
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag):
        self.open = ""

    def handle_data(self, data):
        if self.open == "script":
            attrs, text = self.scripts[-1]
            self.scripts[-1] = attrs, text + data
        elif self.open != "style":
            self.text += data

    @property
    def vocabulary(self):
        return {tag for tag, _ in self.elements} | {name for _, attrs in self.elements for name in attrs}


def embedded(page, name):
    return next(json.loads(text) for attrs, text in Elements(page).scripts if attrs.get("id") == name)


def unpack(column):
    """What the script does, in Python."""
    cells = json.loads(gzip.decompress(base64.b64decode(column["data"])), parse_constant=pytest.fail)
    return np.array(cells, dtype=float) if column["numeric"] else cells


def worst_first(rows):
    """Return the wrong rows, the largest residuals first."""
    index = np.flatnonzero(rows.wrong)
    return index[np.argsort(-np.abs(rows.given - rows.implied)[index], kind="stable")]


@pytest.fixture(scope="module")
def page():
    pytest.importorskip("jinja2")
    return Report(ledger()).to_html()


needs_extra = pytest.mark.usefixtures("page")


@pytest.mark.slow
def test_every_wrong_row_is_in_the_page(page):
    findings = ledger()
    packed = embedded(page, "rows-data")
    index = np.flatnonzero(findings.rows.wrong)
    assert packed["wrong"] == len(index)
    identity, totals, implied = (unpack(column)[: len(index)] for column in packed["columns"][:3])
    assert sorted(identity) == sorted(findings.rows.cells(index)["invoice"])
    size = np.abs(totals - implied)
    assert (np.diff(size) <= 0).all()
    np.testing.assert_array_equal(np.sort(totals), np.sort(findings.rows.given[index]))


def test_the_first_rows_are_there_without_a_script(page):
    text = Elements(page).text
    findings = ledger()
    for invoice in findings.rows.cells(worst_first(findings.rows)[:50])["invoice"]:
        assert invoice in text


def test_same_findings_give_the_same_bytes(page):
    assert Report(ledger()).to_html() == page


def test_the_page_loads_nothing(page):
    for tag, attrs in Elements(page).elements:
        assert tag not in {"link", "iframe", "object", "embed", "base", "form"}
        assert not any(name.startswith("on") for name in attrs)
        assert "src" not in attrs
        assert attrs.get("href", "#").startswith("#")
        assert "url(" not in attrs.get("style", "")
    assert "url(" not in page.split("<style>")[1].split("</style>")[0]


def test_the_policy_admits_the_scripts_of_the_page_and_no_others(page):
    elements = Elements(page)
    policy = next(attrs["content"] for tag, attrs in elements.elements if "http-equiv" in attrs)
    runs = [text for attrs, text in elements.scripts if "type" not in attrs]
    assert len(runs) == 1
    expected = base64.b64encode(hashlib.sha256(runs[0].encode()).digest()).decode()
    assert re.findall(r"'sha256-([^']+)'", policy) == [expected]
    assert re.search(r"default-src 'none'; script-src('| |sha256|[\w+/=-])+;", policy)


HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>window.pwned=1</script>",
    "<!--<script>",
    "\"' onmouseover='x",
    "\u2028\u2029",
    "{{ 7*7 }}{% raw %}",
    "&lt;b&gt;",
    "javascript:alert(1)",
    "`=`",
)
texts = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=20))


@pytest.mark.slow
@settings(max_examples=12)
@given(texts)
def test_no_text_of_the_data_becomes_part_of_the_page(hostile):
    pytest.importorskip("jinja2")
    plain, report = (Report(ledger(200, rename=rename)) for rename in (str, lambda text: f"{text}{hostile}¶"))
    for written in (Report.to_html, Report._repr_html_):
        before, after = Elements(written(plain)), Elements(written(report))
        assert after.vocabulary <= before.vocabulary
        assert len(after.scripts) == len(before.scripts)
        assert [attrs for attrs, _ in after.scripts] == [attrs for attrs, _ in before.scripts]
        for name in ("ledger-2024.csv", "region", "customer"):
            assert f"{name}{shown(hostile)}¶" in after.text.replace("\r\n", "\n").replace("\r", "\n")


def shown(text):
    marked = re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]", "\ufffd", text)
    return marked.replace("\r\n", "\n").replace("\r", "\n")


@pytest.mark.slow
@needs_extra
@pytest.mark.parametrize("verdict", VERDICTS)
def test_each_verdict_has_the_same_words_everywhere(verdict):
    findings = ledger(300, verdict=verdict)
    if verdict is Verdict.NONE:
        findings = dataclasses.replace(findings, rows=None, n_wrong=0)
    page, fragment = (Elements(text).text for text in (Report(findings).to_html(), Report(findings)._repr_html_()))
    main = page.split("About this report")[0]  # where all verdicts are explained
    assert main.count(verdict.name) == 1
    assert main.count(findings.judgement.meaning if findings.is_rule else findings.explanation) == 1
    assert findings.explanation in main
    assert all(each.name in page for each in VERDICTS)
    assert verdict.name in fragment
    assert (findings.judgement.meaning in fragment) == findings.is_rule
    text = repr(Report(findings))
    assert text.startswith(f"{verdict.name}. {findings.judgement.meaning}")
    assert text.endswith(findings.explanation)
    assert f"verdict {verdict.name.lower()}" in Report(findings).to_html()


@needs_extra
def test_without_a_rule_no_formula_is_the_answer_and_no_row_is_counted():
    findings = dataclasses.replace(ledger(300, verdict=Verdict.NONE), rows=None, n_wrong=0)
    formula = findings.formula.text()
    assert formula not in repr(Report(findings))
    assert formula not in Elements(Report(findings)._repr_html_()).text
    text = Elements(Report(findings).to_html()).text.split("About this report")[0]
    assert "What came closest" in text
    for absent in ("follow the rule", "Coefficients", "wrong", "No effect"):
        assert absent not in text


@needs_extra
def test_rows_off_by_a_last_place_are_counted_apart():
    findings = ledger(300)
    index = np.flatnonzero(findings.rows.wrong)[:12]
    wrong = findings.rows.wrong.copy()
    wrong[index] = False
    rows = dataclasses.replace(findings.rows, wrong=wrong)
    findings = dataclasses.replace(findings, rows=rows, n_wrong=findings.n_wrong - 12)
    assert findings.n_last_place == 12
    assert "12 rows off by one unit of the last place" in repr(Report(findings))
    page = Report(findings).to_html()
    assert re.search(r"off by a last place\s*12", Elements(page).text)
    packed = embedded(page, "rows-data")
    assert packed["n"] == 288
    assert not set(unpack(packed["columns"][0])) & set(rows.cells(index)["invoice"])


@needs_extra
def test_what_is_open_or_left_out_says_why():
    groups, thin = ((7,), (2, 8)), ((4, 2.0),)
    findings = ledger(300)
    errors = (0, 0.25, 0, math.nan, 0, 0, 0, 0)
    terms = tuple(
        dataclasses.replace(t, determined=j not in (2, 7), exact=None, standard_error=error)
        for j, (t, error) in enumerate(zip(findings.formula.terms, errors, strict=True))
    )
    intercept = dataclasses.replace(findings.formula.intercept, determined=False)
    findings = dataclasses.replace(
        findings,
        formula=dataclasses.replace(findings.formula, terms=terms, intercept=intercept),
        certificate=certificate(groups=groups, thin=thin),
    )
    text = Elements(Report(findings).to_html()).text
    assert "not determined: no agreeing row uses it" in text
    assert "not determined: moves together with the intercept" in text
    assert "not determined: moves together with km" in text
    assert "left out: it rests on 2 rows" in text
    assert "± 0.25" in text
    assert "rounded to 10 digits" in text
    assert "not known" in text
    assert "Not determined: km, region = islands, intercept." in " ".join(text.split())
    assert "No effect" not in text  # what was left out is not known to have none
    assert "km and the intercept always move together" in str(Report(findings))


@pytest.mark.parametrize("called", ["intercept", "the intercept", "region = south"])
def test_columns_are_known_by_number_and_not_by_what_they_are_called(called):
    plain = dataclasses.replace(ledger(300), certificate=certificate(groups=((0, 2), (8,))))
    terms = (dataclasses.replace(plain.formula.terms[0], term=column(called)), *plain.formula.terms[1:])
    renamed = dataclasses.replace(plain, formula=dataclasses.replace(plain.formula, terms=terms))
    before, after = (list(coefficients(findings)) for findings in (plain, renamed))
    assert after[0] == dataclasses.replace(before[0], label=called)
    assert after[1:] == before[1:]
    assert f"{called} and km always move together" in renamed.explanation


@needs_extra
def test_findings_without_rows_have_a_page_without_pictures():
    page = Report(dataclasses.replace(ledger(300), rows=None)).to_html()
    assert len(page) < 100_000
    ids = {attrs.get("id") for _, attrs in Elements(page).elements}
    assert {"formula", "coefficients", "about"} <= ids
    assert not {"pictures", "sizes", "rows", "table", "points-picture", "rows-data"} & ids
    assert Report(dataclasses.replace(ledger(300), rows=None))._repr_html_()


@needs_extra
def test_findings_without_wrong_rows_say_so():
    findings = ledger(300, wrong_share=0)
    assert findings.n_wrong == 0
    text = Elements(Report(findings).to_html()).text
    assert "every row that was judged follows the rule" in text
    assert "How far off" not in text
    assert Report(findings)._repr_html_()


def values_of(text):
    wrong = np.ones(len(text), dtype=bool)
    return ReportRows(*(np.array(text, dtype=float).T), agree=~wrong, wrong=wrong, cells=lambda index: {})


@needs_extra
def test_extreme_values_have_a_page():
    rows = values_of([(1e308, -1e308), (1e-300, 0), (-5e-324, 2), (0, 0), (3, 1e200)])
    findings = dataclasses.replace(ledger(300), rows=rows, n_rows=5, n_agree=0, n_wrong=5)
    page = Report(findings).to_html()
    assert "∞" in Elements(page).text
    assert Report(findings)._repr_html_()
    packed = embedded(page, "rows-data")
    assert packed["columns"][0]["name"] == "row"
    np.testing.assert_array_equal(unpack(packed["columns"][0]), [0, 4, 2, 1, 3])
    np.testing.assert_array_equal(unpack(packed["columns"][2]), [-1e308, 1e200, 2, 0, 0])


@needs_extra
def test_the_page_itself_is_light(page):
    packed = sum(len(text) for attrs, text in Elements(page).scripts if "type" in attrs)
    assert len(page.encode()) - packed < 150_000
    assert len(page.encode()) < 1_000_000


@pytest.mark.slow
def test_the_page_stays_small():
    pytest.importorskip("jinja2")
    assert len(Report(scattered(5_000)).to_html().encode()) < 1_200_000
    findings = scattered(1_000_000)
    page = Report(findings).to_html()
    assert len(page.encode()) < 5_000_000
    packed = embedded(page, "rows-data")
    text = Elements(page).text
    n, n_wrong = packed["largest"], findings.n_wrong
    sampled = packed["wrong"] - n
    assert f"carries the {n:,} largest of {n_wrong:,} wrong rows and {sampled:,} of the others, drawn at random" in text
    assert "Left out to keep this page small: x" in text
    residual = np.abs(findings.rows.given - findings.rows.implied)[findings.rows.wrong]
    given, implied = (unpack(packed["columns"][k])[: packed["wrong"]] for k in (1, 2))
    kept = np.abs(given - implied)
    assert n == 20_000
    assert kept[:n].min() == np.sort(residual)[-n]
    assert (np.diff(kept) <= 0).all()
    ranks = np.concatenate([np.arange(1, n + 1), packed["ranks"]])
    np.testing.assert_array_equal(kept, np.sort(residual)[::-1][ranks - 1])


@pytest.mark.slow
def test_pictures_hold_the_largest_residuals_and_a_fixed_sample():
    findings = scattered(400_000, d=2)
    packed = embedded(Report(findings).to_html(), "rows-data")
    assert packed["wrong"] < findings.n_wrong
    drawn = packed["drawn"]
    assert drawn[:500] == list(range(500))
    assert len(set(drawn)) == 3_000
    # Half of the sample are below the median of the wrong rows, which the largest alone are not.
    ranks = np.concatenate([np.arange(1, packed["largest"] + 1), packed["ranks"]])[drawn[500:]]
    assert abs(np.mean(ranks > findings.n_wrong / 2) - 0.5) < 0.05
    few = embedded(Report(ledger(50)).to_html(), "rows-data")
    assert few["n"] == 50


@needs_extra
def test_what_if_has_the_values_of_all_terms_in_full(page):
    findings = ledger()
    packed, asked = embedded(page, "rows-data"), embedded(page, "what-if-data")
    assert asked["coef"] == findings.formula.coef.tolist()
    invoices = unpack(packed["columns"][0])
    X = findings.rows.terms[[int(name.removeprefix("INV-")) - 2024_00000 for name in invoices]]
    columns = [None, None, None, *packed["columns"][3:]]  # the script adds the residual after the implied value
    for j, term in enumerate(asked["terms"][:-1]):
        values = unpack(columns[term["column"] - 1] if "column" in term else term)
        np.testing.assert_array_equal(values, X[:, j])
    assert [j for j, term in enumerate(asked["terms"]) if "column" in term] == [0, 1, 2]  # hours, items, km
    assert asked["terms"][-1] == {"constant": True}
    sparse = dataclasses.replace(findings.rows, terms=csr_array(findings.rows.terms))
    assert embedded(Report(dataclasses.replace(findings, rows=sparse)).to_html(), "what-if-data") == asked
    none = dataclasses.replace(findings, rows=dataclasses.replace(findings.rows, terms=None))
    assert 'id="what-if' not in Report(none).to_html()
    wide = scattered(5_000, d=90)
    wide = dataclasses.replace(wide, rows=dataclasses.replace(wide.rows, cells=lambda index: {}))
    page = Report(wide).to_html()
    asked, rows = embedded(page, "what-if-data"), unpack(embedded(page, "rows-data")["columns"][0]).astype(int)
    assert asked["stride"] > 1
    assert sum(len(term["data"]) for term in asked["terms"]) < 600_000
    np.testing.assert_array_equal(unpack(asked["terms"][7]), wide.rows.terms[rows[:: asked["stride"]], 7])


def test_the_lead_says_what_was_looked_at(page):
    lead = "".join(Elements(page).text.split("Given and implied")[0].split())
    for part in (
        "total in ledger-2024.csv",
        "Target total",
        "5,000 judged, 312 left out",
        "Date of the data 2024-11-15 15:40",
        "Base level region: north",
        "A row agrees within rounding to cents",
    ):
        assert part.replace(" ", "") in lead


@needs_extra
@pytest.mark.parametrize("values", [[0.0, 0.0], [1.0, np.inf], [1e-320, 1e300], [1.0, 2.0, 1000.0]])
def test_every_table_has_a_scale(values):
    rows = values_of([(value, 1.0) for value in values])
    page = Report(dataclasses.replace(ledger(300), rows=rows, n_wrong=len(values))).to_html()
    assert embedded(page, "points-data")["scale"]["unit"] > 0


def test_the_notebook_has_a_picture_of_the_kinds():
    findings = with_kinds(ledger(), ("factor 10", "km forgotten", "unexplained"))
    shown = Elements(Report(findings)._repr_html_())
    marks = [attrs for tag, attrs in shown.elements if tag == "path" and "wrong" in attrs["class"]]
    assert {attrs["class"] for attrs in marks} == {f"wrong tone-{k}" for k in range(3)}
    assert sum(attrs["d"].count("z") for attrs in marks) == 600
    assert "factor 10" in shown.text
    dots = next(attrs for tag, attrs in shown.elements if tag == "path" and attrs["class"] == "right")
    assert dots["d"].count("M") == 300
    numbers = re.findall(r"[\d.]+", dots["d"])
    assert all(0 <= float(number) <= 640 for number in numbers)


@needs_extra
def test_the_histogram_counts_every_wrong_row():
    for findings in (ledger(), scattered(3000, d=2)):
        sizes = embedded(Report(findings).to_html(), "sizes-data")
        counts = np.array(sizes["toned"]["0"])
        assert counts.sum() == findings.n_wrong
        assert len(counts) <= 40
        logs = np.log10(np.abs(findings.rows.given - findings.rows.implied)[findings.rows.wrong])
        np.testing.assert_array_equal(np.bincount(((logs - sizes["start"]) / sizes["step"]).astype(int)), counts)
    assert "The only one is off by 2." in Report(dataclasses.replace(ledger(300), rows=values_of([(3, 1)]))).to_html()


def with_kinds(findings, words):
    """Give the wrong rows kinds: the second word to half of them, the third to a quarter, and so on."""
    wrong = np.flatnonzero(findings.rows.wrong)
    codes = np.zeros(findings.n_rows, dtype=np.intp)
    codes[wrong] = [min(len(words), 1 + (k & -k).bit_length() - 1) for k in range(1, len(wrong) + 1)]
    kinds = RowKinds(("", *words), codes, unexplained=len(words))
    return dataclasses.replace(findings, rows=dataclasses.replace(findings.rows, kinds=kinds))


WORDS = ("factor 10", "km forgotten", "off by +5", *(f"factor {k / 100}" for k in range(101, 107)), "unexplained")


@pytest.mark.slow
@needs_extra
def test_kinds_are_listed_and_counted():
    findings = with_kinds(ledger(), WORDS)
    page = Report(findings).to_html()
    points, sizes = embedded(page, "points-data"), embedded(page, "sizes-data")
    assert points["kinds"] == ["", *WORDS]
    assert points["tones"] == [0, 1, 2, 3, 4, 5, 6, 7, 7, 7, 0]
    assert {*sizes["labels"].values()} == {*WORDS[:6], "other kinds", "unexplained"}
    assert sum(map(sum, sizes["toned"].values())) == findings.n_wrong
    worst = worst_first(findings.rows)[:9]
    kinds = unpack(embedded(page, "rows-data")["columns"][3])
    assert kinds[:9] == [WORDS[code - 1] for code in findings.rows.kinds.codes[worst]]
    assert all(f"<bdi>{word}</bdi>" in page for word in WORDS)
    order = [page.index(f'id="{name}"') for name in ("formula", "kinds", "pictures", "groups", "coefficients", "rows")]
    assert order == sorted(order)


def test_kinds_are_texts():
    words = ("<script>alert(1)</script> forgotten", "unexplained")
    page = Report(with_kinds(ledger(200), words)).to_html()
    assert "&lt;script&gt;alert(1)&lt;/script&gt; forgotten" in page
    assert "<script>alert(1)" not in page


def arrives(entries):
    """Return a column as the script of a page gets it, and as it is shown without a script."""
    n = len(entries)
    rows = ReportRows(
        np.arange(n) * -1.0,
        np.zeros(n),
        np.zeros(n, bool),
        np.ones(n, bool),
        lambda index: {"x": [entries[i] for i in index]},
    )
    findings = dataclasses.replace(ledger(100), rows=rows, n_wrong=n)
    page = Report(findings).to_html()
    cells = unpack(embedded(page, "rows-data")["columns"][0])
    return [cells[n - 1 - k] for k in range(n)], Elements(page).text


@pytest.mark.slow
@needs_extra
@settings(max_examples=30)
@given(st.lists(st.one_of(st.floats(), st.none(), st.integers(-(2**53), 2**53)), min_size=1))
def test_numbers_arrive_as_they_are(entries):
    cells, _ = arrives(entries)
    if set(entries) == {None}:
        assert set(cells) == {""}
        return
    np.testing.assert_array_equal(cells, [math.nan if entry is None else entry for entry in entries])


@pytest.mark.slow
@needs_extra
@settings(max_examples=30)
@given(st.lists(st.one_of(st.integers(), st.text(max_size=8), st.booleans(), st.none()), min_size=1))
def test_other_entries_arrive_as_text(entries):
    for entry, value in zip(entries, arrives(entries)[0], strict=True):
        if not isinstance(value, str):
            assert math.isnan(value) if entry is None else value == entry
        else:
            expected = "" if entry is None else str(entry).lower() if isinstance(entry, bool) else str(entry)
            assert value == re.sub("[^\n\t\r -~\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", expected)


@needs_extra
def test_integers_that_are_names_keep_their_digits_and_amounts_their_decimals():
    assert arrives([2**60 + 1, 5])[0] == [str(2**60 + 1), "5"]
    assert arrives([20240131123, 1])[0] == [20240131123, 1]
    assert arrives([True, False])[0] == ["true", "false"]
    assert len(arrives(["x" * 1000])[0][0]) == 301
    for amounts, seen in (
        ([0.5, 12.25], ("0.50", "12.25")),
        ([2 / 3, 1e-7], ("0.66666667", "1e-7")),
        ([1e-12, 3.0], ("3",)),
    ):
        text = arrives(amounts)[1]
        assert all(word in text for word in seen)


@pytest.mark.slow
def test_long_formulas_and_many_groups_are_cut():
    pytest.importorskip("jinja2")
    terms = tuple(term(f"x{j}", 1) for j in range(3000))
    findings = ledger(400)
    groups = tuple(GroupCount(f"g{k}", 10, 5) for k in range(200))
    findings = dataclasses.replace(
        findings,
        formula=dataclasses.replace(findings.formula, terms=terms),
        usage=(),
        rows=dataclasses.replace(findings.rows, groups=groups),
    )
    text = Elements(Report(findings).to_html()).text
    assert "+ 2701 more terms" in text
    assert "The first 1,000 of 3,001 coefficients." in text
    assert "170 others" in text
    assert "and 2,961 more" in Report(findings)._repr_html_()


def test_without_the_extra_there_is_one_clear_line_and_still_a_fragment(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    report = Report(ledger(300))
    with pytest.raises(ValueError, match=r"^the report needs jinja2: pip install 'massart\[report\]'$"):
        report.to_html()
    assert "INV-" in report._repr_html_()
    assert "<script" not in report._repr_html_()
    assert str(report).startswith("PROVEN.")


def test_a_saved_page_is_the_page(page, tmp_path):
    path = Report(ledger()).save(tmp_path / "report.html")
    assert path.read_text("utf-8") == page
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_the_text_has_the_verdict_the_formula_and_the_counts():
    findings = ledger()
    lines = repr(Report(findings)).splitlines()
    assert lines[0].startswith("PROVEN. No other formula")
    assert lines[1] == findings.formula.text()
    shares = [share(n, 5000) for n in (findings.n_agree, findings.n_wrong)]
    assert lines[2] == (
        f"{findings.n_agree:,} of 5,000 rows follow the formula ({shares[0]}); "
        f"{findings.n_wrong:,} wrong rows ({shares[1]})."
    )
    assert lines[3:] == [findings.explanation]
