"""Whether repairs do harm: tables with every kind of rule and error, in all formats, fixed and compared with the truth.

Each table follows a rule: of plain columns, products, tiers, rates by level, groups, rounding, limits, lags or running
sums. Some of its values are made wrong in one to three ways: single ones, runs of rows, first rows of groups, errors
that go on in all rows after them, numbers of other columns. It is written in some format, read by the command line (in
memory or as a stream) or as a frame, fixed with and without `--force`, and read back by other programs. Counted are

- right values of the target that were changed, beside right columns, and (apart) in rows of which a column is wrong;
- cells of other columns, and rows, that were changed or lost;
- wrong values that were put right, left, or replaced by other wrong ones.

    python benchmarks/repairs.py --seed 1 [--tables 500] [--processes 2] [--small] [--only PART_OF_A_NAME]
"""

# ruff: noqa: D103, D401 (what is made is named)

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import json
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
NOTES = ("007", "1.50", 'a, b; "c"', "x", "+1", "2024-05-06 late", "Ä")
ONLY_BY_FORCE = 0.2  # of the tables


@dataclass
class Table:
    """Columns as numbers or texts, and a target that follows a rule of them."""

    columns: dict[str, Any]
    truth: Floats
    places: int
    options: list[str]
    groups: NDArray[np.intp] | None = None  # of rows in order, where the rule looks at other rows
    numbers: tuple[str, ...] = ()  # columns that may be wrong
    given: Floats = field(default_factory=lambda: np.zeros(0))
    wrong_column: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool))


def money(rng: np.random.Generator, n: int, most: float = 900.0) -> Floats:
    """Return amounts in cents."""
    return rng.integers(100, int(100 * most), n) / 100


def plain(rng: np.random.Generator, n: int) -> Table:
    hours, km = rng.integers(1, 200, n) / 4, rng.integers(0, 300, n)
    return Table(
        {"hours": hours, "km": km}, 54 * hours + 0.5 * km + 9, 2, ["--terms", "columns"], None, ("hours", "km")
    )


def integers(rng: np.random.Generator, n: int) -> Table:
    a, b = rng.integers(1, 900, (2, n))
    return Table({"a": a, "b": b}, 3.0 * a + 7 * b + 5, 0, ["--terms", "columns"], None, ("a", "b"))


def product(rng: np.random.Generator, n: int) -> Table:
    qty, price = rng.integers(1, 60, n), money(rng, n, 90)
    return Table({"qty": qty, "price": price}, qty * price, 2, ["--terms", "qty*price"], None, ("qty", "price"))


def discount(rng: np.random.Generator, n: int) -> Table:
    qty, price, off = rng.integers(1, 60, n), money(rng, n, 90), rng.choice([0, 5, 10, 15], n)
    terms = ["--terms", "qty*price, qty*price*off", "--number", "off"]
    return Table({"qty": qty, "price": price, "off": off}, qty * price * (1 - off / 100), 2, terms, None, ("qty",))


def tiers(rng: np.random.Generator, n: int) -> Table:
    kwh = rng.integers(1, 900, n)
    y = 0.25 * kwh + 0.1 * np.maximum(0, kwh - 200) + 12
    return Table({"kwh": kwh}, y, 2, ["--terms", "kwh, max(0, kwh-200)"], None, ("kwh",))


def rates(rng: np.random.Generator, n: int) -> Table:
    net, code = money(rng, n), rng.integers(0, 4, n)
    y = net * np.array([1.19, 1.2, 1.21, 1.23])[code]
    return Table({"net": net, "land": np.array(["DE", "AT", "NL", "PL"])[code]}, y, 2, ["--terms", "net:land"])


def levels(rng: np.random.Generator, n: int) -> Table:
    kg, code = rng.integers(1, 300, n) / 10, rng.integers(0, 5, n)
    y = 2.5 * kg + np.array([4.0, 7.5, 9.0, 12.25, 30.0])[code]
    return Table({"kg": kg, "zone": np.array(list("ABCDE"))[code]}, y, 2, ["--terms", "columns"], None, ("kg",))


def rounding(rng: np.random.Generator, n: int) -> Table:
    net = money(rng, n)
    return Table({"net": net}, 1.19 * net, 2, ["--terms", "columns"], None, ("net",))


def whole(rng: np.random.Generator, n: int) -> Table:
    net, extra = money(rng, n), rng.integers(0, 40, n)
    return Table({"net": net, "extra": extra}, 0.37 * net + 2 * extra, 0, ["--terms", "columns"], None, ("extra",))


def limited(rng: np.random.Generator, n: int) -> Table:
    sold, base = rng.integers(0, 900, n), rng.integers(0, 300, n)
    y = np.maximum(0.0, 3.0 * sold - 5 * base - 40)
    return Table({"sold": sold, "base": base}, y, 0, ["--terms", "columns", "--model", "relu"], None, ("sold",))


def stock(rng: np.random.Generator, n: int) -> Table:
    sku = rng.integers(0, max(2, n // int(rng.integers(12, 60))), n)
    into, out = np.where(rng.random(n) < 0.4, rng.integers(10, 120, n), 0), rng.integers(0, 40, n)
    y = rng.integers(300, 900, sku.max() + 1)[sku].astype(float)
    for k in np.unique(sku):
        y[sku == k] += np.cumsum((into - out)[sku == k])
    columns = {"sku": np.char.add("S", sku.astype(str)), "into": into, "out": out}
    terms = ["--category", "sku", "--terms", "lag(y, by=sku), into, out"]
    return Table(columns, y, 0, terms, sku, ("into", "out"))


def balance(rng: np.random.Generator, n: int) -> Table:
    into, out = money(rng, n, 80), money(rng, n, 80)
    return Table(
        {"into": into, "out": out},
        500 + np.cumsum(into - out),
        2,
        ["--terms", "lag(y), into, out"],
        np.zeros(n, dtype=np.intp),
        ("into", "out"),
    )


def interest(rng: np.random.Generator, n: int) -> Table:
    paid, y = money(rng, n, 60), np.zeros(n)
    last = 4_000.0
    for k in range(n):
        last = round(1.005 * last - paid[k] + 15, 2) if k else last
        y[k] = last
    return Table({"paid": paid}, y, 2, ["--terms", "lag(y), paid"], np.zeros(n, dtype=np.intp), ("paid",))


def smoothed(rng: np.random.Generator, n: int) -> Table:
    x, y = rng.integers(0, 4_000, n), np.zeros(n)
    last = 100.0
    for k in range(n):
        last = round(0.5 * last + 0.25 * x[k] + 3, 2) if k else last
        y[k] = last
    return Table({"x": x}, y, 2, ["--terms", "lag(y), x"], np.zeros(n, dtype=np.intp), ("x",))


def floored(rng: np.random.Generator, n: int) -> Table:
    into, out, y = rng.integers(0, 50, n), rng.integers(0, 60, n), np.zeros(n)
    last = 90
    for k in range(n):
        last = max(0, last + into[k] - out[k]) if k else last
        y[k] = last
    terms = ["--terms", "lag(y), into, out", "--model", "relu"]
    return Table({"into": into, "out": out}, y, 0, terms, np.zeros(n, dtype=np.intp), ("into", "out"))


def lagged_column(rng: np.random.Generator, n: int) -> Table:
    x = rng.integers(1, 500, n)
    y = 2.0 * x + 3.0 * np.r_[0, x[:-1]] + 4
    return Table({"x": x}, y, 0, ["--terms", "x, lag(x)"], np.zeros(n, dtype=np.intp), ("x",))


def sums(rng: np.random.Generator, n: int) -> Table:
    into, out = rng.integers(0, 90, (2, n))
    y = 2_000.0 + np.cumsum(into - out)
    terms = ["--terms", "cumsum(into), cumsum(out)"]
    return Table({"into": into, "out": out}, y, 0, terms, np.zeros(n, dtype=np.intp), ("into", "out"))


def sums_by_group(rng: np.random.Generator, n: int) -> Table:
    shop = rng.integers(0, 5, n)
    paid, y = money(rng, n, 50), np.zeros(n)
    for k in range(5):
        y[shop == k] = 100 * k + np.cumsum(paid[shop == k])
    columns = {"shop": np.array(list("ABCDE"))[shop], "paid": paid}
    return Table(columns, y, 2, ["--terms", "cumsum(paid, by=shop), shop"], shop, ("paid",))


RULES: dict[str, Callable[[np.random.Generator, int], Table]] = {
    "plain": plain,
    "integers": integers,
    "product": product,
    "discount": discount,
    "tiers": tiers,
    "rates": rates,
    "levels": levels,
    "rounding": rounding,
    "whole numbers": whole,
    "limited": limited,
    "lag in groups": stock,
    "lag": balance,
    "lag, rounded": interest,
    "lag, smoothed": smoothed,
    "lag, limited": floored,
    "lag of a column": lagged_column,
    "running sums": sums,
    "running sums in groups": sums_by_group,
}

Change = Callable[[np.random.Generator, Table, NDArray[np.intp]], None]


def single(change: Callable[[np.random.Generator, Table, NDArray[np.intp]], Floats]) -> Change:
    """Return what changes each of some rows by itself."""

    def make(rng: np.random.Generator, table: Table, rows: NDArray[np.intp]) -> None:
        table.given[rows] = np.round(change(rng, table, rows), table.places)

    return make


def digits(rng: np.random.Generator, table: Table, rows: NDArray[np.intp]) -> Floats:
    found = []
    for value in table.truth[rows]:
        text = list(f"{value:.{table.places}f}")
        places = [k for k, mark in enumerate(text) if mark.isdigit()]
        k = places[int(rng.integers(len(places)))]
        text[k] = str((int(text[k]) + int(rng.integers(1, 10))) % 10)
        found.append(float("".join(text)))
    return np.array(found)


def run_of_rows(rng: np.random.Generator, table: Table, rows: NDArray[np.intp]) -> None:
    """Rows that follow each other are off by the same amount."""
    by = float(rng.integers(3, 200))
    left = len(rows)
    while left > 0:
        length = min(left, int(rng.integers(2, 9)))
        start = int(rng.integers(1, len(table.truth) - length))
        table.given[start : start + length] = table.truth[start : start + length] + by
        left -= length


def first_rows(rng: np.random.Generator, table: Table, rows: NDArray[np.intp]) -> None:
    """The first rows of groups are wrong."""
    groups = table.groups if table.groups is not None else np.zeros(len(table.truth), dtype=np.intp)
    _, first = np.unique(groups, return_index=True)
    some = first[rng.random(len(first)) < 0.5]
    table.given[some] = table.truth[some] + float(rng.integers(3, 400))


def carried_on(rng: np.random.Generator, table: Table, rows: NDArray[np.intp]) -> None:
    """A movement is missing: all rows after it are right, and off by the same amount from the sum of movements."""
    if table.groups is None:
        return
    for row in rng.choice(len(table.truth), 3, replace=False):
        after = (table.groups == table.groups[row]) & (np.arange(len(table.truth)) >= row)
        by = float(rng.integers(5, 300))
        table.truth[after] += by
        table.given[after] += by


def wrong_column(rng: np.random.Generator, table: Table, rows: NDArray[np.intp]) -> None:
    """A number of another column is wrong, the target is right."""
    if not table.numbers:
        return
    name = table.numbers[int(rng.integers(len(table.numbers)))]
    some = rows[: max(1, len(rows) // 3)]
    values = np.array(table.columns[name])
    values[some] = values[some] * 10 if rng.random() < 0.5 else np.roll(values, 7)[some]
    table.wrong_column[some] = table.columns[name][some] != values[some]
    table.columns[name] = np.round(values, 2) if values.dtype.kind == "f" else values


ERRORS: dict[str, Change] = {
    "factor 10": single(lambda rng, t, r: 10 * t.truth[r]),
    "a tenth": single(lambda rng, t, r: t.truth[r] / 10),
    "sign": single(lambda rng, t, r: -t.truth[r]),
    "off by a constant": single(lambda rng, t, r: t.truth[r] + float(rng.integers(2, 200))),
    "two constants": single(lambda rng, t, r: t.truth[r] + np.where(rng.random(len(r)) < 0.5, 25.0, -40.0)),
    "any value": single(lambda rng, t, r: rng.uniform(t.truth.min(), t.truth.max() + 1, len(r))),
    "zero": single(lambda rng, t, r: np.zeros(len(r))),
    "one digit": single(digits),
    "the row before": single(lambda rng, t, r: np.roll(t.truth, 1)[r]),
    "another row": single(lambda rng, t, r: rng.permutation(t.truth)[: len(r)]),
    "a little": single(lambda rng, t, r: t.truth[r] + rng.integers(1, 4, len(r)) * 10.0**-t.places),
    "a run of rows": run_of_rows,
    "first rows": first_rows,
    "carried on": carried_on,
    "a column": wrong_column,
}


def planted(rng: np.random.Generator, rule: str) -> tuple[Table, list[str]]:
    """Return a table with wrong values, and what happened in it."""
    table = RULES[rule](rng, int(rng.integers(250, 900)))
    n = len(table.truth)
    table.truth = np.round(table.truth, table.places) + 0.0
    table.given, table.wrong_column = table.truth.copy(), np.zeros(n, dtype=bool)
    names = list(rng.choice(list(ERRORS), int(rng.integers(1, 4)), replace=False))
    share = rng.choice([0.02, 0.05, 0.1, 0.2, 0.3])
    rows = np.flatnonzero(rng.random(n) < share)
    for name, some in zip(names, np.array_split(rng.permutation(rows), len(names)), strict=True):
        if len(some):
            ERRORS[name](rng, table, np.sort(some))
    return table, names


def written(table: Table, rng: np.random.Generator) -> dict[str, list[Any]]:
    """Return columns of numbers and texts, with some that the rule does not read."""
    n = len(table.truth)
    columns: dict[str, list[Any]] = {"no": [9_007_199_254_740_993 + k for k in range(n)]}
    for name, values in table.columns.items():
        columns[name] = np.asarray(values).tolist()
    given = np.round(table.given, table.places) + 0.0
    columns["y"] = [int(v) for v in given] if table.places == 0 else given.tolist()
    columns["note"] = [NOTES[k] for k in rng.integers(0, len(NOTES), n)]
    return columns


def text_of(columns: dict[str, list[Any]], places: int, delimiter: str, mark: str, money_form: str) -> str:
    """Return a table as a program writes it."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\r\n" if delimiter == ";" else "\n")
    writer.writerow(columns)

    def cell(name: str, value: Any) -> str:
        if name == "y":
            return money_form.format(f"{value:.{places}f}".replace(".", mark))
        return str(value).replace(".", mark) if isinstance(value, float) else str(value)

    for row in zip(*columns.values(), strict=True):
        writer.writerow([cell(name, value) for name, value in zip(columns, row, strict=True)])
    return out.getvalue()


TEXTS = {
    "csv": (",", ".", "{}", "utf-8"),
    "csv of Germany": (";", ",", "{} €", "cp1252"),
    "csv of Excel": (";", ",", "{}", "utf-8-sig"),
    "tsv": ("\t", ".", "{}", "utf-8"),
    "csv in dollars": (",", ".", "${}", "utf-8"),
}


def write(kind: str, folder: Path, columns: dict[str, list[Any]], places: int) -> Path:
    """Write a table in a format."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    if kind in TEXTS:
        *form, encoding = TEXTS[kind]
        path = folder / ("table.tsv" if kind == "tsv" else "table.csv")
        path.write_bytes(text_of(columns, places, *form).encode(encoding))
        return path
    if kind == "titles":
        path = folder / "table.csv"
        text = text_of(columns, places, ",", ".", "{}")
        path.write_text(f"Report of May\n\n{text}Page 1\n")
        return path
    if kind in ("parquet", "parquet, decimals"):
        path = folder / "table.parquet"
        arrow = pa.table(columns)
        if kind == "parquet, decimals":
            cents = [Decimal(f"{value:.{places}f}") for value in columns["y"]]
            arrow = arrow.set_column(arrow.column_names.index("y"), "y", pa.array(cents, pa.decimal128(18, places)))
        pq.write_table(arrow, path, row_group_size=200)
        return path
    if kind == "json lines":
        path = folder / "table.jsonl"
        rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path
    columns = {**columns, "no": [str(value) for value in columns["no"]]}  # a workbook holds no integers of this size
    path = folder / f"table.{kind}"
    if kind == "ods":
        with zipfile.ZipFile(path, "w") as book:
            book.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
            book.writestr("META-INF/manifest.xml", _MANIFEST)
            book.writestr("content.xml", ods_text([tuple(columns), *zip(*columns.values(), strict=True)]))
    else:
        pd.DataFrame(columns).to_excel(path, index=False, engine="xlsxwriter")
    return path


_MANIFEST = (
    '<?xml version="1.0" encoding="UTF-8"?><m:manifest xmlns:m="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
    '<m:file-entry m:full-path="/" m:media-type="application/vnd.oasis.opendocument.spreadsheet"/></m:manifest>'
)


def ods_text(rows: list[tuple[Any, ...]]) -> str:
    """Return the content of a workbook of LibreOffice with one sheet."""

    def cell(value: Any) -> str:
        if isinstance(value, str):
            return f'<table:table-cell office:value-type="string"><text:p>{escape(value)}</text:p></table:table-cell>'
        number = f'office:value-type="float" office:value="{value!r}"'
        return f"<table:table-cell {number}><text:p>{value!r}</text:p></table:table-cell>"

    spaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "table", "text")
    )
    lines = "".join(f"<table:table-row>{''.join(map(cell, row))}</table:table-row>" for row in rows)
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><office:document-content {spaces} office:version="1.2"><office:body>'
        f'<office:spreadsheet><table:table table:name="A">{lines}</table:table></office:spreadsheet></office:body>'
        "</office:document-content>"
    )


def read(path: Path) -> dict[str, list[Any]]:
    """Return the columns of a file as another program reads them."""
    import pyarrow.parquet as pq
    from python_calamine import CalamineWorkbook

    if path.suffix == ".parquet":
        return pq.read_table(path).to_pydict()
    if path.suffix == ".xlsx":
        names, *rows = map(tuple, CalamineWorkbook.from_path(path).get_sheet_by_index(0).to_python())
    elif path.suffix == ".jsonl":
        records = [json.loads(line) for line in path.read_text().splitlines()]
        names, rows = tuple(records[0]), [tuple(record.values()) for record in records]
    else:
        raw = path.read_bytes()
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = raw.decode("cp1252")
        lines = list(csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=text.count)))
        start = next(k for k, line in enumerate(lines) if "y" in line)
        names, rows = tuple(lines[start]), [tuple(line) for line in lines[start + 1 :] if len(line) > 1]
    return {name: [row[k] for row in rows] for k, name in enumerate(names)}


def number(value: Any) -> float:
    """Return a number as it was written."""
    if isinstance(value, str):
        text = value.replace("$", "").replace("€", "").strip()
        if "," in text:
            text = text.replace(".", "").replace(",", ".")
        return float(text) if text else float("nan")
    return float("nan") if value is None else float(value)


def same(one: Any, other: Any) -> bool:
    """Tell whether two cells hold the same."""
    if str(one) == str(other):
        return True
    try:
        return number(one) == number(other)
    except ValueError:
        return False


PATHS = [
    ("csv", ".csv"),
    ("csv", ".csv"),
    ("csv of Germany", ".csv"),
    ("csv of Excel", ".csv"),
    ("tsv", ".tsv"),
    ("csv in dollars", ".csv"),
    ("titles", ".csv"),
    ("csv", ".parquet"),
    ("csv", ".xlsx"),
    ("csv", ".jsonl"),
    ("parquet", ".parquet"),
    ("parquet, decimals", ".parquet"),
    ("parquet", ".csv"),
    ("json lines", ".jsonl"),
    ("json lines", ".parquet"),
    ("xlsx", ".xlsx"),
    ("xlsx", ".csv"),
    ("ods", ".csv"),
    ("ods", ".xlsx"),
    ("stream csv", ".csv"),
    ("stream parquet", ".parquet"),
    ("frame", ""),
]


def fixed(kind: str, suffix: str, columns: dict[str, list[Any]], table: Table, force: bool) -> dict[str, list[Any]]:
    """Return the columns of the fixed table; {} where none is written."""
    from massart import audit_table
    from massart.cli import run

    options = [*table.options, "--exclude", "no,note", "--target", "y"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if kind == "frame":
            import pandas as pd

            asked: dict[str, Any] = {"terms": table.options[table.options.index("--terms") + 1]}
            for option in ("model", "category", "number"):
                if f"--{option}" in table.options:
                    value = table.options[table.options.index(f"--{option}") + 1]
                    asked[option] = value if option == "model" else [value]
            found = audit_table(pd.DataFrame(columns), "y", exclude=["no", "note"], **asked)
            try:
                frame = found.fixed(force=force)
            except ValueError:
                return {}
            return {name: frame[name].tolist() for name in frame.columns}
        source = write(kind.removeprefix("stream "), folder, columns, table.places)
        out = folder / f"fixed{suffix}"
        more = ["--max-memory", "1kB"] if kind.startswith("stream ") else []
        heard = io.StringIO()
        with contextlib.redirect_stdout(heard), contextlib.redirect_stderr(heard):
            status = run(["fit", str(source), *options, *more, "--fixed", str(out), *(["--force"] if force else [])])
        if status == 2:
            raise ValueError(heard.getvalue())
        return read(out) if out.exists() else {}


def measure(seed: int, rule: str) -> Counter[str]:
    """Fix one table, and compare it with the truth."""
    rng = np.random.default_rng(seed)
    table, errors = planted(rng, rule)
    kind, suffix = PATHS[int(rng.integers(len(PATHS)))]
    if kind.startswith("stream") and table.groups is not None:
        kind = "csv" if suffix == ".csv" else "parquet"  # a rule that looks at other rows is refused there
    force = bool(rng.random() < ONLY_BY_FORCE)
    columns = written(table, rng)
    name = f"{seed} {rule}; {', '.join(errors)}; {kind} to {suffix or 'frame'}{'; forced' * force}"
    try:
        found = fixed(kind, suffix, columns, table, force)
    except Exception as error:  # told, and counted
        print(f"{name}: {type(error).__name__}: {str(error).strip().splitlines()[-1]}", flush=True)
        return Counter({"errors": 1})
    counts: Counter[str] = Counter({"tables": 1, "fixed tables": int(bool(found))})
    right = table.given == table.truth
    counts["wrong"] = int((~right).sum())
    if not found:
        return counts
    after = np.array([number(value) for value in found["y"]])
    if len(after) != len(right):
        counts["rows lost"] = abs(len(after) - len(right))
        print(f"{name}: {len(after)} rows of {len(right)}", flush=True)
        return counts
    counts["wrong in fixed tables"] = int((~right).sum())
    same_value = np.abs(after - table.truth) <= 1e-9 * (1 + np.abs(table.truth))
    kept = np.abs(after - table.given) <= 1e-9 * (1 + np.abs(table.given))
    harm = right & ~same_value
    touched = np.zeros(len(right), dtype=bool)
    if table.wrong_column.any():
        touched = table.wrong_column.copy()
    counts["right changed"] = int((harm & ~touched).sum())
    counts["right changed, a column wrong"] = int((harm & touched).sum())
    counts["right, a column wrong"] = int((right & touched).sum())
    counts["put right"] = int((~right & same_value).sum())
    counts["left"] = int((~right & kept).sum())
    counts["other wrong values"] = int((~right & ~kept & ~same_value).sum())
    for column, values in columns.items():
        beside = found.get(column if column != "y" else "y_given")
        lost = len(right) if beside is None else sum(not same(a, b) for a, b in zip(beside, values, strict=True))
        if lost:
            counts["other cells changed"] += lost
            print(f"{name}: {lost} cells of {column} changed", flush=True)
    if counts["right changed"] or counts["right changed, a column wrong"] or counts["other wrong values"]:
        rows = np.flatnonzero(harm | (~right & ~kept & ~same_value))[:3]
        shown = ", ".join(f"row {r + 1} {table.given[r]:g} to {after[r]:g} (is {table.truth[r]:g})" for r in rows)
        print(
            f"{name}: {counts['right changed']} right values changed, {counts['right changed, a column wrong']} with a "
            f"wrong column, {counts['other wrong values']} of {counts['wrong']} wrong ones otherwise: {shown}",
            flush=True,
        )
    return counts


def main(arguments: list[str] | None = None) -> int:
    """Print the counts of many tables; exit status 1 if a right value was changed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tables", type=int, default=500)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--small", action="store_true", help="one table of each rule")
    parser.add_argument("--only", default="", help="rules whose names have this in them")
    options = parser.parse_args(arguments)
    names = [name for name in RULES if options.only in name]
    n = len(names) if options.small else options.tables
    jobs = [(1_000_000 * options.seed + k, names[k % len(names)]) for k in range(n)]
    begun, total, by_rule = time.perf_counter(), Counter[str](), {name: Counter[str]() for name in names}
    with contextlib.ExitStack() as stack:
        each: Callable[..., Any] = map
        if options.processes > 1:
            each = partial(stack.enter_context(ProcessPoolExecutor(options.processes)).map, chunksize=1)
        for (_, rule), counts in zip(jobs, each(measure, *zip(*jobs, strict=True)), strict=True):
            total += counts
            by_rule[rule] += counts
    for name, counts in by_rule.items():
        print(f"{name:24} " + ", ".join(f"{what} {count:,}" for what, count in counts.items()))
    print("all: " + ", ".join(f"{what} {count:,}" for what, count in total.items()))
    print(f"{time.perf_counter() - begun:.0f} s")
    return int(bool(total["right changed"] or total["other cells changed"] or total["rows lost"]))


if __name__ == "__main__":
    sys.exit(main())
