"""Workbooks: what people make of them, what strangers make of them, and what massart writes."""

import datetime
import re
import resource
import zipfile

import numpy as np
import pytest

python_calamine = pytest.importorskip("python_calamine")
xlsxwriter = pytest.importorskip("xlsxwriter")

from massart import audit_table
from massart.tables import TableError, read_table, write_columns

WIDE = [["a", *[None] * 700, "far"], *([k, *[None] * 700, k / 2] for k in range(4))]  # a column ZZ
ROWS = [["qty", "price", "day", "sold", "note"]] + [
    [k, k + 0.5, datetime.date(2024, 1, k), k % 2 == 0, f"=SUM({k})"] for k in range(1, 8)
]


def book(path, rows, top=0, left=0, sheet="Data", more=None):
    with xlsxwriter.Workbook(str(path)) as workbook:
        day = workbook.add_format({"num_format": "dd.mm.yyyy"})
        page = workbook.add_worksheet(sheet)
        for i, row in enumerate(rows):
            for j, cell in enumerate(row):
                if isinstance(cell, datetime.date):
                    page.write_datetime(top + i, left + j, cell, day)
                elif isinstance(cell, str):
                    page.write_string(top + i, left + j, cell)
                elif cell is not None:
                    page.write(top + i, left + j, cell)
        if more is not None:
            more(workbook, page)
    return path


def cells(table):
    return table.cells(table.column_names, np.arange(table.n_rows))


def test_a_sheet_has_the_types_of_its_cells(tmp_path):
    found = read_table(book(tmp_path / "a.xlsx", ROWS))
    assert [str(kind) for kind in found.arrow.schema.types] == ["int64", "double", "date32[day]", "bool", "string"]
    assert cells(found)["price"] == [k + 0.5 for k in range(1, 8)]
    assert cells(found)["day"][0] == "2024-01-01"
    assert cells(found)["note"][0] == "=SUM(1)"


@pytest.mark.parametrize(("top", "left"), [(0, 0), (3, 0), (0, 2), (5, 4)])
def test_where_a_table_lies_in_its_sheet_does_not_matter(tmp_path, top, left):
    def title(workbook, page):
        if top:
            page.write_string(0, 0, "Sales of 2024")

    found = read_table(book(tmp_path / "a.xlsx", ROWS, top, left, more=title))
    assert cells(found) == cells(read_table(book(tmp_path / "b.xlsx", ROWS)))
    assert bool(found.remarks) == (top > 0)


def test_a_sheet_is_named_or_numbered_and_else_the_largest(tmp_path):
    def other(workbook, page):
        workbook.add_worksheet("Notes").write_row(0, 0, ["a", "b"])
        workbook.get_worksheet_by_name("Notes").write_row(1, 0, [1, 2])

    path = book(tmp_path / "a.xlsx", ROWS, more=other)
    found = read_table(path)
    assert found.n_rows == 7
    assert '"Data" of 2' in found.remarks[0]
    for sheet in ("Notes", 2, "2"):
        assert cells(read_table(path, sheet=sheet)) == {"a": [1], "b": [2]}
    with pytest.raises(TableError, match='no sheet "Note": did you mean "Notes"'):
        read_table(path, sheet="Note")


def test_merged_cells_hold_for_all_their_rows(tmp_path):
    rows = [["region", "n"], ["North", 1], [None, 2], [None, 3], ["South", 4]]
    path = book(tmp_path / "a.xlsx", rows, more=lambda _, page: page.merge_range(1, 0, 3, 0, "North"))
    assert cells(read_table(path))["region"] == ["North", "North", "North", "South"]


def test_numbers_typed_as_text_are_numbers_and_codes_stay_text(tmp_path):
    path = book(tmp_path / "a.xlsx", [["a", "b"], [1.5, 7], ["2,5", "007"], ["1.000,25", 8]])
    assert cells(read_table(path)) == {"a": [1.5, 2.5, 1000.25], "b": ["7", "007", "8"]}
    path = book(tmp_path / "b.xlsx", [["a", "b"], [1, 7], ["2", 8], ["n.a.", 9]])
    assert read_table(path).arrow.to_pydict() == {"a": [1, 2, None], "b": [7, 8, 9]}


def test_errors_and_formulas_without_values_are_said(tmp_path):
    def odd(workbook, page):
        page.write_formula(2, 1, "=NOWHERE!A1", None, "#REF!")
        page.write_formula(3, 1, "=A4", None, "")

    found = read_table(book(tmp_path / "a.xlsx", [["a", "b"], *([k, k] for k in range(6))], more=odd))
    assert cells(found)["b"] == [0, None, None, 3, 4, 5]
    assert any("B3 (#REF!)" in remark for remark in found.remarks)
    assert any("formula" in remark and "B4" in remark for remark in found.remarks)


def test_a_column_of_formulas_without_values_is_one_line(tmp_path):
    header = '<row r="1"><c r="A1" t="str"><v>a</v></c><c r="B1" t="str"><v>total</v></c></row>'
    row = '<row r="{0}"><c r="A{0}"><v>{0}</v></c><c r="B{0}"><f>2*A{0}</f><v></v></c></row>'
    raw(tmp_path / "a.xlsx", header + "".join(row.format(k) for k in range(2, 22)))
    with pytest.raises(TableError, match='"total" holds formulas without values .* save it'):
        audit_table(tmp_path / "a.xlsx", "total")


PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def relation(kind, target):
    return (
        f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="rId1" Type="{OFFICE}/{kind}" '
        f'Target="{target}"/></Relationships>'
    )


PARTS = {
    "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"/>',
    "_rels/.rels": relation("officeDocument", "xl/workbook.xml"),
    "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>'
    '<sheet name="S" sheetId="1" r:id="rId1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": relation("worksheet", "worksheets/sheet1.xml"),
}


def raw(path, cells, **more):
    sheet = f'<worksheet xmlns="{MAIN}"><sheetData>{cells}</sheetData></worksheet>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (PARTS | more | {"xl/worksheets/sheet1.xml": sheet}).items():
            archive.writestr(name, f'<?xml version="1.0"?>{content}')
    return path


@pytest.mark.parametrize("far", ["XFD1048576", "BDWGN1048576", "ZZZZZZ1"])
def test_two_cells_far_apart_are_one_line(tmp_path, far):
    near = '<row r="1"><c r="A1"><v>1</v></c></row>'
    row = far.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    path = raw(tmp_path / "a.xlsx", f'{near}<row r="{row}"><c r="{far}"><v>1</v></c></row>')
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(TableError, match="spans .* columns"):
        read_table(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 18  # KiB


@pytest.mark.slow
def test_a_zip_bomb_is_one_line(tmp_path):
    path = raw(tmp_path / "a.xlsx", " " * (200 << 20))
    with pytest.raises(TableError, match="unpacks to 200 MiB"):
        audit_table(path, "total")


def test_empty_columns_cost_nothing(tmp_path):
    header = "".join(f'<c r="{letter}1" t="str"><v>{letter.lower()}</v></c>' for letter in "AB")
    style = '<c r="XFD1" s="0"/>'
    rows = "".join(f'<row r="{k}"><c r="A{k}"><v>{k}</v></c><c r="B{k}"><v>{2 * k}</v></c></row>' for k in range(2, 9))
    found = read_table(raw(tmp_path / "a.xlsx", f'<row r="1">{header}{style}</row>{rows}'))
    assert cells(found) == {"a": [*range(2, 9)], "b": [*range(4, 18, 2)]}


def test_macros_and_links_are_passed_over(tmp_path):
    rows = "".join(f'<row r="{k}"><c r="A{k}"><v>{k}</v></c><c r="B{k}"><v>{k}</v></c></row>' for k in range(2, 9))
    header = '<row r="1"><c r="A1" t="str"><v>a</v></c><c r="B1" t="str"><v>b</v></c></row>'
    more = {
        "xl/vbaProject.bin": "MACRO",
        "xl/externalLinks/externalLink1.xml": '<externalLink r:id="http://nowhere.invalid"/>',
    }
    assert read_table(raw(tmp_path / "a.xlsx", header + rows, **more)).n_rows == 7


@pytest.mark.parametrize("cut", [10, 200, -30])
def test_a_workbook_that_is_cut_short_is_one_line(tmp_path, cut):
    path = book(tmp_path / "a.xlsx", ROWS)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(TableError) as caught:
        read_table(path)
    assert "\n" not in str(caught.value)


def test_open_document_sheets_are_read(tmp_path):
    name = 'xmlns:{0}="urn:oasis:names:tc:opendocument:xmlns:{0}:1.0"'
    spaces = " ".join(name.format(space) for space in ("office", "table", "text"))
    rows = [["a", "b"], *([k, 2 * k] for k in range(9))]
    body = ""
    for row in rows:
        body += "<table:table-row>"
        for cell in row:
            kind = "string" if isinstance(cell, str) else f'float" office:value="{cell}'
            body += f'<table:table-cell office:value-type="{kind}"><text:p>{cell}</text:p></table:table-cell>'
        body += "</table:table-row>"
    with zipfile.ZipFile(tmp_path / "a.ods", "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr(
            "content.xml",
            f'<office:document-content {spaces}><office:body><office:spreadsheet><table:table table:name="S">{body}'
            "</table:table></office:spreadsheet></office:body></office:document-content>",
        )
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
    assert cells(read_table(tmp_path / "a.ods")) == {"a": [*range(9)], "b": [*range(0, 18, 2)]}


def sales(rng, n=300):
    qty, km = rng.integers(1, 50, n), rng.integers(1, 900, n) / 10
    total = np.round(12.5 * qty + 0.4 * km + 3, 2)
    total[::7] = np.round(total[::7] * 10, 2)
    return {"qty": qty, "km": km, "text": ["=1+1" if k % 2 else "plain" for k in range(n)], "total": total}


@pytest.mark.slow
def test_a_workbook_and_a_csv_file_give_the_same_answer(tmp_path):
    columns = sales(np.random.default_rng(0))
    write_columns(tmp_path / "a.xlsx", columns)
    write_columns(tmp_path / "a.csv", columns)
    one, other = (audit_table(tmp_path / name, "total", exclude=["text"]) for name in ("a.xlsx", "a.csv"))
    assert str(one.formula) == str(other.formula)
    assert one.n_wrong == other.n_wrong == 43
    assert (one.wrong == other.wrong).all()


@pytest.mark.slow
def test_workbooks_out_mark_wrong_cells_and_run_nothing(tmp_path):
    audit = audit_table(
        sales(np.random.default_rng(0)), "total", audit=tmp_path / "audit.xlsx", fixed=tmp_path / "fixed.xlsx"
    )
    for name, column in (("audit", "given"), ("fixed", "total")):
        with zipfile.ZipFile(tmp_path / f"{name}.xlsx") as archive:
            text = archive.read("xl/worksheets/sheet1.xml").decode()
        letter = "ABCDEFGHIJ"[read_table(tmp_path / f"{name}.xlsx", sheet="rows").column_names.index(column)]
        written = re.findall(rf'<c r="{letter}(?:[2-9]|[1-9]\d+)"([^>]*)>', text)
        assert len(written) == 300
        assert sum(' s="' in cell for cell in written) == audit.n_wrong == 43  # in colour
        assert not any(' t="' in cell for cell in written)  # numbers
        assert "<f>" not in text
        with python_calamine.CalamineWorkbook.from_path(tmp_path / f"{name}.xlsx") as workbook:
            said = [[cell for cell in row if cell != ""] for row in workbook.get_sheet_by_name("findings").to_python()]
        assert ["rule", str(audit.formula)] in said
        assert ["factor 10", 43] in said
    assert read_table(tmp_path / "fixed.xlsx", sheet="rows").n_rows == 300


def test_the_same_workbook_is_the_same_bytes(tmp_path):
    for name in ("a.xlsx", "b.xlsx"):
        write_columns(tmp_path / name, {"a": [1, 2], "b": ["=A1", "-x"]})
    assert (tmp_path / "a.xlsx").read_bytes() == (tmp_path / "b.xlsx").read_bytes()


@pytest.mark.parametrize("suffix", ["xlsx", "csv"])
@pytest.mark.parametrize(
    ("rows", "names"),
    [
        ([["a", "b"], [1, 2]], ["a", "b"]),
        ([["Title"], [], ["a", "b"], [1, 2], [2, 3]], ["a", "b"]),
        ([["Title", "x"], ["a", "b", "c"], [1, 2, 3], [2, 3, 4]], ["a", "b", "c"]),
        ([["Title"], ["", "a", "b"], [1, 2, 3], [2, 3, 4]], ["column 1", "a", "b"]),
        ([["name", "2023", "2024"], ["x", 1, 2]], ["name", "2023", "2024"]),
        ([["Title"], ["name", 2023, 2024], ["x", 1, 2.5], ["y", 3, 4]], ["name", "2023", "2024"]),
        ([[1, 2], [3, 4]], ["1", "2"]),
    ],
)
def test_the_header_is_the_first_row_of_names(tmp_path, suffix, rows, names):
    path = tmp_path / f"a.{suffix}"
    if suffix == "xlsx":
        book(path, rows)
    else:
        width = max(map(len, rows))
        path.write_text("".join(",".join(map(str, row + [""] * (width - len(row)))) + "\n" for row in rows))
    assert [*read_table(path).column_names] == names


def test_a_column_far_to_the_right_keeps_its_name_and_its_errors(tmp_path):
    path = book(tmp_path / "a.xlsx", WIDE, more=lambda _, page: page.write_formula(2, 701, "=A1", None, "#REF!"))
    found = read_table(path)
    assert cells(found) == {"a": [0, 1, 2, 3], "far": [0, None, 1, 1.5]}
    assert any("ZZ3 (#REF!)" in remark for remark in found.remarks)


def test_amounts_read_from_text_are_numbers_in_a_workbook_that_can_be_filtered(tmp_path):
    columns = sales(np.random.default_rng(0))
    amount = [f"{value:,.2f}".replace(",", "x").replace(".", ",").replace("x", ".") for value in columns["total"]]
    lines = [
        f"00{k};{q};{d};{a}" for k, (q, d, a) in enumerate(zip(columns["qty"], columns["km"], amount, strict=True))
    ]
    path = tmp_path / "a.csv"
    path.write_text("Export of 2024;;;\n\nNr;qty;km;total\n" + "\n".join(lines).replace(".5;", ",5;"))
    audit_table(path, "total", terms="columns", audit=tmp_path / "audit.xlsx", fixed=tmp_path / "fixed.xlsx")
    for name, last in (("audit", "given"), ("fixed", "total_given")):
        with zipfile.ZipFile(tmp_path / f"{name}.xlsx") as archive:
            assert b"<autoFilter" in archive.read("xl/worksheets/sheet1.xml")
        kinds = dict(
            zip(
                (found := read_table(tmp_path / f"{name}.xlsx", sheet="rows")).column_names,
                found.arrow.schema.types,
                strict=True,
            )
        )
        assert (str(kinds[last]), str(kinds["Nr"])) == ("double", "string")
