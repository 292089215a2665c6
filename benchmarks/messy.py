"""Sixty files as people have them, and whether the rule and the rows that break it are found at the first try.

Each file is made as a program or a person would write it: exports of accounting programs, banks, sensors and survey
tools, in several locales, as CSV or as workbooks. A rule and its wrong rows are planted, then `massart.audit_table` is
called with the file and the target alone. A file counts as right if the formula gives the planted values in every row
(to the cent) and the wrong rows are exactly those planted; where it is refused instead, the line that says so has to
name a way out.

    python benchmarks/messy.py [--only NAME] [--keep FOLDER]
"""

# ruff: noqa: D103, D401 (what is made is named, and said)

from __future__ import annotations

import argparse
import csv
import datetime
import io
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

N = 300
WAYS_OUT = ("--na", "--number", "--exclude", "--category", "--skip", "--sheet", "--encoding", "--decimal", "save it")


@dataclass(frozen=True)
class Case:
    """One messy file.

    Attributes
    ----------
    name : str
    target : str
        The name of the column in the file.
    wrong : frozenset of int
        Rows that break the rule, from 1, the header not counted.
    truth : array
        What the rule gives in each row.
    numbers : array of int
        The row, from 1, of each of them: other lines may lie between.
    """

    name: str
    target: str
    wrong: frozenset[int]
    truth: np.ndarray
    numbers: np.ndarray


@dataclass
class Planted:
    """Columns and a target that follows a rule of them but for some rows."""

    columns: dict[str, np.ndarray]
    truth: np.ndarray
    given: np.ndarray
    wrong: np.ndarray


def ledger(rng: np.random.Generator, n: int = N) -> Planted:
    """Amounts with a rate each, and a fee."""
    hours, items, km = rng.integers(1, 80, n) / 4, rng.integers(0, 60, n), rng.integers(0, 4000, n) / 10
    truth = np.round(54.5 * hours + 7.9 * items + 0.42 * km + 35, 2)
    return planted(rng, {"hours": hours, "items": items, "km": km}, truth)


def large(rng: np.random.Generator, n: int = N) -> Planted:
    """Sums of three amounts, with thousands and with negative ones."""
    net, freight, discount = (
        np.round(rng.uniform(low, high, n), 2) for low, high in ((900, 90_000), (10, 2500), (-3000, 0))
    )
    return planted(rng, {"net": net, "freight": freight, "discount": discount}, np.round(net + freight + discount, 2))


def planted(rng: np.random.Generator, columns: dict[str, np.ndarray], truth: np.ndarray) -> Planted:
    """Make a fifth of the values wrong."""
    wrong = rng.random(len(truth)) < 0.2
    given = truth.copy()
    given[wrong] = np.round(truth[wrong] + rng.choice([-1, 1], wrong.sum()) * rng.uniform(5, 400, wrong.sum()), 2)
    return Planted(columns, truth, given, wrong)


# Numbers as they are written.
def plain(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def cents(value: float) -> str:
    return f"{value:.2f}"


def english(value: float) -> str:
    return f"{value:,.2f}"


def german(value: float) -> str:
    return f"{value:,.2f}".replace(",", "_").replace(".", ",").replace("_", ".")


def swiss(value: float) -> str:
    return f"{value:,.2f}".replace(",", "'")


def french(value: float) -> str:
    return f"{value:,.2f}".replace(",", "\u202f").replace(".", ",")


def comma(value: float) -> str:
    return cents(value).replace(".", ",")


def parentheses(value: float) -> str:
    return f"({-value:,.2f})" if value < 0 else f"{value:,.2f}"


def trailing_minus(value: float) -> str:
    return f"{german(-value)}-" if value < 0 else german(value)


def signed(sign: str, write: Callable[[float], str], behind: bool = False) -> Callable[[float], str]:
    """Write a number with a sign or a unit before or behind it."""
    return lambda value: f"{write(value)} {sign}" if behind else f"{sign}{write(value)}"


def days(rng: np.random.Generator, n: int, form: str) -> list[str]:
    first = datetime.date(2024, 1, 1)
    return [(first + datetime.timedelta(int(k))).strftime(form) for k in np.sort(rng.integers(0, 360, n))]


def rows_of(data: Planted, names: Sequence[str], write: Callable[[float], str]) -> list[list[str]]:
    columns = [*data.columns.values(), data.given]
    assert len(names) == len(columns)
    return [[write(float(value)) for value in row] for row in zip(*columns, strict=True)]


def text_of(rows: Sequence[Sequence[object]], delimiter: str = ",", end: str = "\n") -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator=end).writerows(rows)
    return out.getvalue()


def case(name: str, target: str, data: Planted, numbers: np.ndarray | None = None) -> Case:
    numbers = np.arange(1, len(data.truth) + 1) if numbers is None else numbers
    return Case(name, target, frozenset(numbers[data.wrong].tolist()), data.truth, numbers)


def some(name: str, target: str, data: Planted, keep: np.ndarray) -> Case:
    """Return a case in which some rows cannot be judged."""
    numbers = np.arange(1, len(keep) + 1)
    return Case(name, target, frozenset(numbers[data.wrong & keep].tolist()), data.truth[keep], numbers[keep])


Maker = Callable[[Path, np.random.Generator], tuple[Path, Case]]
MAKERS: dict[str, Maker] = {}


def messy(make: Maker) -> Maker:
    MAKERS[make.__name__] = make
    return make


def _write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


EN = ["Hours", "Items", "Km", "Total"]
DE = ["Stunden", "Stück", "Kilometer", "Gesamtbetrag"]
SUMS = ["Net", "Freight", "Discount", "Gross"]


@messy
def plain_csv(folder, rng):
    data = ledger(rng)
    return _write(folder / "a.csv", text_of([EN, *rows_of(data, EN, plain)])), case("plain", "Total", data)


@messy
def german_accounting(folder, rng):
    """Title lines, semicolons, cp1252, comma decimals, a totals line, a footer."""
    data = large(rng)
    names = ["Netto", "Fracht", "Rabatt", "Brutto"]
    dates = days(rng, N, "%d.%m.%Y")
    body = [[day, *row] for day, row in zip(dates, rows_of(data, names, german), strict=True)]
    sums = [german(float(np.sum(c))) for c in (*data.columns.values(), data.given)]
    lines = [
        ["Müller & Söhne GmbH"],
        ["Kontenblatt 2024"],
        [],
        ["Datum", *names],
        *body,
        ["Summe", *sums],
        [],
        ["Erstellt am 01.02.2025"],
    ]
    return _write(folder / "a.csv", text_of(lines, ";", "\r\n").encode("cp1252")), case("german", "Brutto", data)


@messy
def bank_statement(folder, rng):
    """Key and value lines above, trailing delimiters, a balance below."""
    data = large(rng)
    body = [[day, *row, ""] for day, row in zip(days(rng, N, "%d.%m.%Y"), rows_of(data, SUMS, german), strict=True)]
    lines = [
        ["Konto:", "DE12 3456"],
        ["Zeitraum:", "01.01.2024 - 31.12.2024"],
        [],
        ["Buchungstag", *SUMS, ""],
        *body,
        ["Kontostand", "", "", "", "12.345,67", ""],
    ]
    return _write(folder / "a.csv", text_of(lines, ";")), case("bank", "Gross", data)


@messy
def us_ledger(folder, rng):
    """Dollar signs, thousands, negatives in parentheses."""
    data = large(rng)
    rows = rows_of(data, SUMS, lambda value: f"${parentheses(value)}" if value >= 0 else f"(${-value:,.2f})")
    return _write(folder / "a.csv", text_of([SUMS, *rows])), case("us", "Gross", data)


@messy
def sap_trailing_minus(folder, rng):
    data = large(rng)
    return _write(folder / "a.txt", text_of([SUMS, *rows_of(data, SUMS, trailing_minus)], "\t")), case(
        "sap", "Gross", data
    )


@messy
def sap_bars(folder, rng):
    """Bars around and between, a line of dashes, a repeated header on each page."""
    data = ledger(rng)
    rows = rows_of(data, EN, comma)
    lines, numbers, row = [], [], 0
    for k, cells in enumerate(rows):
        if k % 60 == 0 and k:
            lines.append(EN)
            row += 1
        lines.append(cells)
        row += 1
        numbers.append(row)
    text = text_of([EN, *lines], "|")
    return _write(folder / "a.txt", text), case("sap bars", "Total", data, np.array(numbers))


@messy
def swiss_francs(folder, rng):
    data = large(rng)
    return _write(folder / "a.csv", text_of([SUMS, *rows_of(data, SUMS, signed("CHF ", swiss))], ";")), case(
        "swiss", "Gross", data
    )


@messy
def french_euros(folder, rng):
    data = large(rng)
    return _write(folder / "a.csv", text_of([SUMS, *rows_of(data, SUMS, signed("€", french, True))], ";")), case(
        "french", "Gross", data
    )


@messy
def utf8_mark(folder, rng):
    data = ledger(rng)
    return _write(
        folder / "a.csv", b"\xef\xbb\xbf" + text_of([DE, *rows_of(data, DE, comma)], ";", "\r\n").encode()
    ), case("bom", "Gesamtbetrag", data)


@messy
def utf16_excel_text(folder, rng):
    data = ledger(rng)
    return _write(folder / "a.txt", text_of([DE, *rows_of(data, DE, comma)], "\t", "\r\n").encode("utf-16")), case(
        "utf16", "Gesamtbetrag", data
    )


@messy
def sep_line(folder, rng):
    data = ledger(rng)
    return _write(folder / "a.csv", "sep=;\n" + text_of([EN, *rows_of(data, EN, comma)], ";")), case(
        "sep", "Total", data
    )


@messy
def sensor_units_row(folder, rng):
    """A row of units below the names."""
    data = ledger(rng)
    lines = [
        ["time", *EN],
        ["", "h", "pcs", "km", "EUR"],
        *([f"{k:02d}:00", *row] for k, row in enumerate(rows_of(data, EN, plain))),
    ]
    return _write(folder / "a.csv", text_of(lines)), case("units row", "Total", data, np.arange(2, N + 2))


@messy
def sensor_units_in_cells(folder, rng):
    data = ledger(rng)
    columns = [*data.columns.values(), data.given]
    rows = [
        [f"{plain(float(v))} {unit}" for v, unit in zip(row, ("h", "pcs", "km", "EUR"), strict=True)]
        for row in zip(*columns, strict=True)
    ]
    return _write(folder / "a.csv", text_of([EN, *rows])), case("units", "Total", data)


@messy
def sensor_log(folder, rng):
    """Comment lines above, gaps as -, times, a status of few words."""
    data = ledger(rng)
    rows = rows_of(data, EN, plain)
    for k in range(0, N, 50):
        rows[k][1] = "-"
    body = [[f"2024-05-01T{k // 60:02d}:{k % 60:02d}:00Z", *row, "OK"] for k, row in enumerate(rows)]
    lines = [["# Logger 7"], ["# firmware 1.2"], ["timestamp", *EN, "status"], *body]
    keep = np.arange(N) % 50 != 0
    return _write(folder / "a.csv", text_of(lines)), some("log", "Total", data, keep)


@messy
def survey_tool(folder, rng):
    """A row of questions below the names, free text, yes and no."""
    data = ledger(rng)
    names = ["Q1", "Q2", "Q3", "Q4"]
    answers = [f"I think so because of {k} and {k * 7 % 13}" for k in range(N)]
    lines = [
        ["ResponseId", *names, "Comment", "Consent"],
        ["", "How many hours?", "How many items?", "How far?", "How much in all?", "Anything else?", "Do you agree?"],
    ]
    lines += [
        [f"R_{k:05d}", *row, text, "Yes" if k % 3 else "No"]
        for k, (row, text) in enumerate(zip(rows_of(data, names, plain), answers, strict=True))
    ]
    return _write(folder / "a.csv", text_of(lines)), case("survey", "Q4", data, np.arange(2, N + 2))


@messy
def odd_cells(folder, rng):
    """Words in cells of numbers: n.v., see note, TBD."""
    data = ledger(rng)
    rows = rows_of(data, EN, plain)
    keep = np.ones(N, dtype=bool)
    for k, word in ((7, "n.v."), (90, "see note"), (200, "TBD")):
        rows[k][k % 3] = word
        keep[k] = False
    return _write(folder / "a.csv", text_of([EN, *rows])), some("odd", "Total", data, keep)


@messy
def odd_target_cells(folder, rng):
    """The same in the target: refused with a way out, or left out."""
    data = ledger(rng)
    rows = rows_of(data, EN, plain)
    keep = np.ones(N, dtype=bool)
    for k, word in ((7, "cancelled"), (90, "see note")):
        rows[k][3] = word
        keep[k] = False
    return _write(folder / "a.csv", text_of([EN, *rows])), some("odd", "Total", data, keep)


@messy
def mixed_currencies(folder, rng):
    data = large(rng)
    rows = rows_of(data, SUMS, signed("€", english))
    for k in range(0, N, 40):
        rows[k] = [cell.replace("€", "$") for cell in rows[k]]
    return _write(folder / "a.csv", text_of([SUMS, *rows])), case("currencies", "Gross", data)


def by_region(rng: np.random.Generator) -> tuple[Planted, np.ndarray]:
    region = rng.choice(["North", "South", "East"], N, p=[0.5, 0.3, 0.2])
    hours, items = rng.integers(1, 80, N) / 4, rng.integers(0, 60, N)
    fee = np.select([region == "South", region == "East"], [12.5, 20.0], 0.0)
    data = planted(rng, {"hours": hours, "items": items}, np.round(54.5 * hours + 7.9 * items + fee + 35, 2))
    return data, region


@messy
def categories_in_any_case(folder, rng):
    data, region = by_region(rng)
    written = [str(r).upper() if k % 9 == 0 else f" {r} " if k % 7 == 0 else str(r) for k, r in enumerate(region)]
    lines = [
        ["Region", "Hours", "Items", "Total"],
        *([r, *row] for r, row in zip(written, rows_of(data, EN[1:], plain), strict=True)),
    ]
    return _write(folder / "a.csv", text_of(lines)), case("case", "Total", data)


@messy
def misspelt_category(folder, rng):
    data, region = by_region(rng)
    written = [str(r) for r in region]
    k = written.index("South")
    written[k] = "Suoth"
    keep = np.arange(N) != k
    lines = [
        ["Region", "Hours", "Items", "Total"],
        *([r, *row] for r, row in zip(written, rows_of(data, EN[1:], plain), strict=True)),
    ]
    return _write(folder / "a.csv", text_of(lines)), some("misspelt", "Total", data, keep)


@messy
def percent_column(folder, rng):
    """A rate with percent signs beside the columns of the rule."""
    data = ledger(rng)
    rate = rng.choice(["7 %", "19 %"], N)
    lines = [["VAT", *EN], *([r, *row] for r, row in zip(rate, rows_of(data, EN, plain), strict=True))]
    return _write(folder / "a.csv", text_of(lines)), case("percent", "Total", data)


@messy
def long_identifiers(folder, rng):
    data = ledger(rng)
    lines = [
        ["Booking", *EN],
        *([str(900719925474099300 + 7 * k), *row] for k, row in enumerate(rows_of(data, EN, plain))),
    ]
    return _write(folder / "a.csv", text_of(lines)), case("ids", "Total", data)


@messy
def leading_zeros(folder, rng):
    data = ledger(rng)
    lines = [["Cost centre", *EN], *([f"{k % 7:04d}", *row] for k, row in enumerate(rows_of(data, EN, plain)))]
    return _write(folder / "a.csv", text_of(lines)), case("zeros", "Total", data)


@messy
def blank_lines(folder, rng):
    """Blank lines, and lines of delimiters alone."""
    data = ledger(rng)
    lines, numbers, row = [], [], 0
    for k, cells in enumerate(rows_of(data, EN, plain)):
        if k % 40 == 39:
            lines.append([""] * 4)
            row += 1
        if k % 60 == 59:
            lines.append([])
        lines.append(cells)
        row += 1
        numbers.append(row)
    return _write(folder / "a.csv", text_of([EN, *lines])), case("blank", "Total", data, np.array(numbers))


@messy
def section_headings(folder, rng):
    """A heading for each month, and its subtotal."""
    data = ledger(rng)
    rows = rows_of(data, EN, comma)
    lines, numbers, row = [], [], 0
    for k, cells in enumerate(rows):
        if k % 100 == 0:
            lines.append([f"Month {k // 100 + 1}"])
        lines.append([f"B{k}", *cells])
        row += 1
        numbers.append(row)
        if k % 100 == 99:
            sums = [comma(float(np.sum(c[k - 99 : k + 1]))) for c in (*data.columns.values(), data.given)]
            lines.append(["Subtotal", *sums])
            row += 1
    return _write(folder / "a.csv", text_of([["Booking", *EN], *lines], ";")), case(
        "sections", "Total", data, np.array(numbers)
    )


@messy
def gaps_elsewhere(folder, rng):
    """Columns that the rule does not need are often empty: no row is lost."""
    data = ledger(rng)
    extra = [f"{rng.integers(1, 99)}" if rng.random() < 0.7 else "" for _ in range(N)]
    lines = [
        [*EN[:3], "Weight", "Total"],
        *([*row[:3], e, row[3]] for e, row in zip(extra, rows_of(data, EN, plain), strict=True)),
    ]
    return _write(folder / "a.csv", text_of(lines)), case("gaps", "Total", data)


@messy
def american_dates(folder, rng):
    data = ledger(rng)
    lines = [
        ["Date", "Due", *EN],
        *(
            [d, e, *row]
            for d, e, row in zip(
                days(rng, N, "%m/%d/%Y"), days(rng, N, "%b %d, %Y"), rows_of(data, EN, english), strict=True
            )
        ),
    ]
    return _write(folder / "a.csv", text_of(lines)), case("dates", "Total", data)


@messy
def quoted_everything(folder, rng):
    data = ledger(rng)
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\r\n").writerows([EN, *rows_of(data, EN, english)])
    return _write(folder / "a.csv", out.getvalue()), case("quoted", "Total", data)


@messy
def pandas_index(folder, rng):
    data = ledger(rng)
    lines = [["", *EN], *([k, *row] for k, row in enumerate(rows_of(data, EN, plain)))]
    return _write(folder / "a.csv", text_of(lines)), case("index", "Total", data)


@messy
def tab_copied_from_web(folder, rng):
    """Blanks that do not break, and minus signs of print."""
    data = large(rng)
    rows = [[cell.replace("-", "\u2212") + "\u00a0" for cell in row] for row in rows_of(data, SUMS, english)]
    return _write(folder / "a.tsv", text_of([SUMS, *rows], "\t")), case("web", "Gross", data)


def book(path: Path, fill: Callable[[object, object], None]) -> Path:
    import xlsxwriter

    with xlsxwriter.Workbook(str(path)) as workbook:
        fill(workbook, workbook.add_worksheet("Data"))
    return path


def put(sheet, rows: Sequence[Sequence[object]], top: int = 0, left: int = 0) -> None:
    for k, row in enumerate(rows):
        sheet.write_row(top + k, left, [cell.item() if isinstance(cell, np.generic) else cell for cell in row])


def cells_of(data: Planted) -> list[list[float]]:
    return [[float(value) for value in row] for row in zip(*data.columns.values(), data.given, strict=True)]


@messy
def excel_plain(folder, rng):
    data = ledger(rng)
    return book(folder / "a.xlsx", lambda _, sheet: put(sheet, [EN, *cells_of(data)])), case("excel", "Total", data)


@messy
def excel_title_and_total(folder, rng):
    """A title that is merged, two empty rows, an empty column, a totals row with formulas."""
    data = ledger(rng)

    def fill(workbook, sheet):
        sheet.merge_range("A1:F1", "Sales of 2024")
        put(sheet, [["No", *EN], *([k + 1, *row] for k, row in enumerate(cells_of(data)))], 3, 1)
        sheet.write(N + 4, 1, "Total")
        for j, values in enumerate((*data.columns.values(), data.given)):
            sheet.write_formula(N + 4, 2 + j, "=SUM(C5:C304)", None, float(np.sum(values)))

    return book(folder / "a.xlsx", fill), case("excel title", "Total", data)


@messy
def excel_second_sheet(folder, rng):
    data = ledger(rng)

    def fill(workbook, sheet):
        put(sheet, [["About this file"], ["made by", "me"]])
        put(workbook.add_worksheet("Bookings"), [EN, *cells_of(data)])

    return book(folder / "a.xlsx", fill), case("excel sheet", "Total", data)


@messy
def excel_numbers_as_text(folder, rng):
    data = ledger(rng)
    rows = cells_of(data)
    rows = [[f"{v:.2f}" if (k + j) % 11 == 0 else v for j, v in enumerate(row)] for k, row in enumerate(rows)]
    return book(folder / "a.xlsx", lambda _, sheet: put(sheet, [EN, *rows])), case("excel text", "Total", data)


@messy
def excel_merged_groups(folder, rng):
    """The region stands once for all its rows."""
    data, region = by_region(rng)
    order = np.argsort(region, kind="stable")
    rows = cells_of(data)

    def fill(workbook, sheet):
        put(sheet, [["Region", "Hours", "Items", "Total"]])
        put(sheet, [rows[k] for k in order], 1, 1)
        start = 0
        for name, count in zip(*np.unique(region, return_counts=True), strict=True):
            sheet.merge_range(1 + start, 0, start + int(count), 0, str(name))
            start += int(count)

    data = Planted(data.columns, data.truth[order], data.given[order], data.wrong[order])
    return book(folder / "a.xlsx", fill), case("merged", "Total", data)


@messy
def excel_dates_and_errors(folder, rng):
    data = ledger(rng)
    rows: list[list[object]] = [
        [datetime.date(2024, 1, 1) + datetime.timedelta(k % 365), *row] for k, row in enumerate(cells_of(data))
    ]
    keep = np.ones(N, dtype=bool)
    keep[[5, 77]] = False

    def fill(workbook, sheet):
        form = workbook.add_format({"num_format": "dd.mm.yyyy"})
        put(sheet, [["Date", *EN]])
        for k, row in enumerate(rows):
            sheet.write_datetime(k + 1, 0, row[0], form)
            put(sheet, [row[1:]], k + 1, 1)
        for k in (5, 77):
            sheet.write_formula(k + 1, 2, "=NOWHERE!A1", None, "#REF!")

    return book(folder / "a.xlsx", fill), some("errors", "Total", data, keep)


@messy
def excel_computed_columns(folder, rng):
    """A column of formulas with the values that the program saved."""
    data = ledger(rng)

    def fill(workbook, sheet):
        put(sheet, [[*EN, "Twice"]])
        put(sheet, cells_of(data), 1)
        for k, row in enumerate(cells_of(data)):
            sheet.write_formula(k + 1, 4, f"=2*A{k + 2}", None, 2 * row[0])

    return book(folder / "a.xlsx", fill), case("computed", "Total", data)


@messy
def excel_without_values(folder, rng):
    """The target is a formula that nobody computed: one line says what to do."""
    data = ledger(rng)

    def fill(book, sheet):
        put(sheet, [EN, *(row[:3] for row in cells_of(data))])
        for k in range(len(data.given)):
            sheet.write_formula(k + 1, 3, f"=54.5*A{k + 2}", None, "")

    return book(folder / "a.xlsx", fill), case("no values", "Total", data)


@messy
def excel_european_text(folder, rng):
    """Everything was pasted as text with decimal commas."""
    data = large(rng)
    return book(folder / "a.xlsx", lambda _, sheet: put(sheet, [SUMS, *rows_of(data, SUMS, german)])), case(
        "pasted", "Gross", data
    )


@messy
def excel_two_headers(folder, rng):
    """A row of groups above the names."""
    data = ledger(rng)

    def fill(workbook, sheet):
        sheet.merge_range(0, 0, 0, 2, "Work")
        sheet.write(0, 3, "Money")
        put(sheet, [EN, *cells_of(data)], 1)

    return book(folder / "a.xlsx", fill), case("two headers", "Total", data)


UNSEEN: list[str] = []
"""Files that were written after the reader was: what happens to them was measured before anything was mended."""


def unseen(make: Maker) -> Maker:
    UNSEEN.append(make.__name__)
    return messy(make)


@unseen
def datev_stack(folder, rng):
    """A line about the export above, quoted names, trailing minus, a column of debit and credit, latin-1."""
    data = large(rng)
    names = ["Umsatz netto", "Fracht", "Skonto", "Bruttobetrag"]
    side = rng.choice(["S", "H"], N)
    above = '"EXTF";700;21;"Buchungsstapel";9;20250105;;"RE";"Müller";"";29098;55003;20240101;4;20240101;20241231'
    body = [
        [s, *row, f"Rechnung {k}"]
        for k, (s, row) in enumerate(zip(side, rows_of(data, names, trailing_minus), strict=True))
    ]
    text = above + "\r\n" + text_of([["S/H", *names, "Buchungstext"], *body], ";", "\r\n")
    return _write(folder / "a.csv", text.encode("latin-1")), case("datev", "Bruttobetrag", data)


@unseen
def running_balance(folder, rng):
    """A bank statement whose balance goes on from row to row."""
    amount = np.round(rng.normal(0, 400, N), 2)
    data = planted(rng, {"amount": amount}, np.round(2500 + np.cumsum(amount), 2))
    lines = [["IBAN", "CH93 0076 2011 6238 5295 7"], ["Currency", "CHF"], [], ["Date", "Text", "Amount", "Balance"]]
    lines += [
        [d, f"Payment {k}", *row]
        for k, (d, row) in enumerate(zip(days(rng, N, "%Y-%m-%d"), rows_of(data, ["a", "b"], cents), strict=True))
    ]
    return _write(folder / "a.csv", text_of(lines, ";")), case("balance", "Balance", data)


@unseen
def sensor_sentinels(folder, rng):
    """Units below the names, decimal commas, and -999 where a sensor gave nothing."""
    data = ledger(rng)
    rows = rows_of(data, EN, comma)
    keep = np.ones(N, dtype=bool)
    for k in range(11, N, 30):
        rows[k][k % 3], keep[k] = "-999", False
    lines = [["Zeit", *EN], ["s", "h", "Stk", "km", "EUR"], *([k, *row] for k, row in enumerate(rows))]
    numbers = np.arange(2, N + 2)
    return _write(folder / "a.csv", text_of(lines, ";")), Case(
        "sentinels", "Total", frozenset(numbers[data.wrong & keep].tolist()), data.truth[keep], numbers[keep]
    )


@unseen
def survey_two_headers(folder, rng):
    """Groups of questions above their names, in CSV."""
    data = ledger(rng)
    lines = [["", "Work", "", "", "Money"], ["Respondent", *EN]]
    lines += [[f"P{k}", *row] for k, row in enumerate(rows_of(data, EN, plain))]
    return _write(folder / "a.csv", text_of(lines)), case("two headers", "Total", data)


def lakhs(value: float) -> str:
    whole, _, digits = f"{abs(value):.2f}".partition(".")
    head, tail = whole[:-3], whole[-3:]
    groups = []
    while head:
        groups.insert(0, head[-2:])
        head = head[:-2]
    return ("-" if value < 0 else "") + ",".join([*groups, tail]) + "." + digits


@unseen
def indian_rupees(folder, rng):
    net, freight, discount = (np.round(rng.uniform(a, b, N), 2) for a, b in ((9e4, 9e6), (10, 2500), (-3000, 0)))
    data = planted(rng, {"n": net, "f": freight, "d": discount}, np.round(net + freight + discount, 2))
    return _write(folder / "a.csv", text_of([SUMS, *rows_of(data, SUMS, signed("₹", lakhs))])), case(
        "lakhs", "Gross", data
    )


@unseen
def percent_in_the_rule(folder, rng):
    """The tax is a text with a percent sign, and the rule needs it."""
    net, rate = np.round(rng.uniform(20, 900, N), 2), rng.choice([7, 19], N)
    data = planted(rng, {"net": net, "rate": rate}, np.round(net * (1 + rate / 100), 2))
    lines = [["Net", "VAT", "Gross"]]
    lines += [[cents(a), f"{b}%", cents(c)] for a, b, c in zip(net, rate, data.given, strict=True)]
    return _write(folder / "a.csv", text_of(lines)), case("percent", "Gross", data)


@unseen
def accounting_format(folder, rng):
    """Excel's accounting format saved as CSV: blanks around, negatives in parentheses, a dash for zero."""
    data = large(rng)
    rows = rows_of(data, SUMS, lambda value: f" {parentheses(value)} ")
    for k in range(5, N, 40):  # no discount
        data.truth[k], data.wrong[k] = np.round(data.columns["net"][k] + data.columns["freight"][k], 2), False
        rows[k] = [rows[k][0], rows[k][1], " -   ", f" {data.truth[k]:,.2f} "]
    return _write(folder / "a.csv", text_of([SUMS, *rows])), case("accounting", "Gross", data)


@unseen
def excel_hidden_rows(folder, rng):
    """A merged title, hidden rows, numbers stored as text, a total line, a note below."""
    data = ledger(rng)

    def fill(workbook, sheet):
        sheet.merge_range("A1:D1", "Timesheet 2024")
        sheet.merge_range("A2:D2", "all amounts in EUR")
        put(sheet, [EN, *[[f"{v:g}" if j < 3 else v for j, v in enumerate(row)] for row in cells_of(data)]], 3)
        for k in range(20, 40):
            sheet.set_row(k, None, None, {"hidden": True})
        put(sheet, [["Sum", "", "", float(data.given.sum())], [], ["Prepared by J. Doe"]], N + 4)

    return book(folder / "a.xlsx", fill), case("hidden", "Total", data)


@unseen
def excel_serial_dates(folder, rng):
    """Days as the numbers that a spreadsheet counts them with."""
    arrive = rng.integers(45_292, 45_600, N)
    nights, guests = rng.integers(1, 15, N), rng.integers(1, 5, N)
    truth = np.round(87.5 * nights + 2.35 * guests + 30, 2)
    data = planted(rng, {"arrival": arrive, "departure": arrive + nights, "guests": guests}, truth)
    return book(
        folder / "a.xlsx", lambda _, sheet: put(sheet, [["Arrival", "Departure", "Guests", "Price"], *cells_of(data)])
    ), case("serials", "Price", data)


@unseen
def currency_behind(folder, rng):
    """A code behind the amount, a minus before the sign, empty cells in a column that nobody needs."""
    data = large(rng)
    rows = rows_of(data, SUMS, lambda value: f"{value:,.2f} USD")
    lines = [["Ref", *SUMS, "Approved by"]]
    lines += [[f"INV-{k:04d}", *row, "JD" if k % 9 == 0 else ""] for k, row in enumerate(rows)]
    return _write(folder / "a.csv", text_of(lines)), case("usd", "Gross", data)


@unseen
def footnote_marks(folder, rng):
    """Stars and small figures behind some numbers, and what they mean below."""
    data = ledger(rng)
    rows = rows_of(data, EN, plain)
    for k in range(3, N, 37):
        rows[k][k % 4] += "*" if k % 2 else "\u00b9"
    lines = [EN, *rows, ["* estimated"], ["\u00b9 corrected"]]
    return _write(folder / "a.csv", text_of(lines)), case("footnotes", "Total", data)


@unseen
def swiss_typographic(folder, rng):
    """Apostrophes of print as text in a workbook, francs in front."""
    data = large(rng)
    rows = rows_of(data, SUMS, lambda value: f"Fr. {swiss(value)}".replace("'", "\u2019"))
    return book(folder / "a.xlsx", lambda _, sheet: put(sheet, [SUMS, *rows])), case("francs", "Gross", data)


@unseen
def protected_codes(folder, rng):
    """Codes as ="00123", so that a spreadsheet keeps their zeros; all else in quotation marks with decimal commas."""
    data = ledger(rng)
    head = ",".join(f'"{name}"' for name in ["Kostenstelle", *EN])
    body = [f'="{k % 9:05d}",' + ",".join(f'"{c}"' for c in row) for k, row in enumerate(rows_of(data, EN, comma))]
    return _write(folder / "a.csv", "\n".join([head, *body, ""])), case("codes", "Total", data)


@unseen
def fixed_width(folder, rng):
    """A listing of a mainframe: columns by blanks, a line of dashes below the names."""
    data = ledger(rng)
    rows = [EN, ["-" * 10] * 4, *rows_of(data, EN, cents)]
    text = "\n".join("  ".join(f"{cell:>10}" for cell in row) for row in rows) + "\n"
    return _write(folder / "a.txt", text), case("fixed width", "Total", data, np.arange(2, N + 2))


@unseen
def database_listing(folder, rng):
    """What a database prints: bars between, a line of dashes and crosses, the number of rows below."""
    data = ledger(rng)
    rows = rows_of(data, EN, cents)
    text = "\n".join(
        [" | ".join(f" {n:>9}" for n in EN), "-+-".join(["-" * 10] * 4)]
        + [" | ".join(f" {c:>9}" for c in row) for row in rows]
        + [f"({N} rows)", ""]
    )
    return _write(folder / "a.txt", text), case("psql", "Total", data)


@unseen
def clock_times(folder, rng):
    """Hours as 7:45."""
    data = ledger(rng)
    rows = rows_of(data, EN, plain)
    for row, hours in zip(rows, data.columns["hours"], strict=True):
        row[0] = f"{int(hours)}:{round(hours % 1 * 60):02d}"
    return _write(folder / "a.csv", text_of([EN, *rows])), case("clock", "Total", data)


@unseen
def german_whole_thousands(folder, rng):
    """1.234 is a thousand and more, and nothing but other columns tells so."""
    km, tons = rng.integers(200, 9_000, N), rng.integers(1, 60, N) / 4
    data = planted(rng, {"km": km, "tons": tons}, np.round(1.25 * km + 14.5 * tons + 80, 2))
    lines = [["Kilometer", "Tonnen", "Preis"]]
    lines += [[f"{a:,}".replace(",", "."), comma(b), german(c)] for a, b, c in zip(km, tons, data.given, strict=True)]
    return _write(folder / "a.csv", text_of(lines, ";")), case("thousands", "Preis", data)


@unseen
def second_table_below(folder, rng):
    """A summary by region under the table, with names of its own."""
    data = ledger(rng)
    lines = [EN, *rows_of(data, EN, plain), [], ["Summary"], ["Region", "Share"], ["North", "0.4"], ["South", "0.6"]]
    return _write(folder / "a.csv", text_of(lines)), case("second table", "Total", data)


@unseen
def german_flags(folder, rng):
    """Yes and no in German, and a surcharge for yes."""
    hours, express = rng.integers(1, 80, N) / 4, rng.random(N) < 0.4
    data = planted(rng, {"hours": hours, "express": express}, np.round(54.5 * hours + 19.9 * express + 35, 2))
    lines = [["Stunden", "Express", "Betrag"]]
    lines += [[comma(a), "ja" if b else "nein", comma(c)] for a, b, c in zip(hours, express, data.given, strict=True)]
    return _write(folder / "a.csv", text_of(lines, ";")), case("flags", "Betrag", data)


@unseen
def instrument_exponents(folder, rng):
    """An instrument writes 1,500000E+03, tabs between, UTF-16 with a mark."""
    data = ledger(rng)
    rows = rows_of(data, EN, lambda value: f"{value:.6E}".replace(".", ","))
    return _write(folder / "a.txt", text_of([EN, *rows], "\t", "\r\n").encode("utf-16")), case(
        "exponents", "Total", data
    )


@dataclass(frozen=True)
class Outcome:
    """What happened to a file: "right", "refused" with a way out, or "wrong"."""

    name: str
    how: str
    words: str
    seconds: float


def outcome(name: str, folder: Path, seed: int, budget: float = 5.0) -> Outcome:
    """Make a file and ask for its rule."""
    from massart import audit_table

    path, expected = MAKERS[name](folder, np.random.default_rng([seed, list(MAKERS).index(name)]))
    start = time.perf_counter()
    try:
        found = audit_table(path, expected.target, budget=budget)
    except ValueError as error:
        clear = any(way in str(error) for way in WAYS_OUT) and "\n" not in str(error)
        return Outcome(name, "refused" if clear else "wrong", str(error), time.perf_counter() - start)
    seconds = time.perf_counter() - start
    rows = found.numbers_of(found.design.kept) + 1
    wrong = frozenset(rows[found.wrong].tolist())
    implied = dict(zip(rows.tolist(), found.implied.tolist(), strict=True))
    values = np.array([implied.get(row, np.nan) for row in expected.numbers.tolist()])
    good = len(values) == len(expected.truth) == len(rows) and bool(
        np.allclose(values, expected.truth, atol=0.0101, rtol=0)
    )
    words = f"{found.certificate.verdict.name} {found.formula.text(6)}"
    if not good or wrong != expected.wrong:
        words += (
            f" | judged {len(rows)} of {len(expected.truth)}, wrong {len(wrong)} of {len(expected.wrong)}; "
            + " ".join(found.notices)
        )
        if any("if that means missing" in notice for notice in found.notices):  # it asks, and says how to answer
            return Outcome(name, "refused", words, seconds)
    return Outcome(name, "right" if good and wrong == expected.wrong else "wrong", words, seconds)


def outcomes(seed: int, names: Sequence[str], keep: Path | None = None) -> Iterator[Outcome]:
    """Yield what happens to each file."""
    with tempfile.TemporaryDirectory() as temporary:
        for name in names:
            folder = (keep or Path(temporary)) / name
            folder.mkdir(parents=True, exist_ok=True)
            yield outcome(name, folder, seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=None)
    parser.add_argument("--unseen", action="store_true", help="only files that were written after the reader")
    parser.add_argument("--keep", type=Path, default=None)
    arguments = parser.parse_args()
    counts = {"right": 0, "refused": 0, "wrong": 0}
    for found in outcomes(
        arguments.seed, arguments.only or (UNSEEN if arguments.unseen else list(MAKERS)), arguments.keep
    ):
        counts[found.how] += 1
        print(f"{found.how:8} {found.seconds:6.1f} s  {found.name}: {found.words[:700]}", flush=True)
    total = sum(counts.values())
    print(f"{counts['right']} of {total} right, {counts['refused']} refused with a way out, {counts['wrong']} wrong")


if __name__ == "__main__":
    main()
