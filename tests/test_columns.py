"""The columns that terms are made of hold what the table says, row by row, and X holds them, too."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow", reason="tables are read by pyarrow (massart[io])")

from massart.table import Category, Encoding, Flag, Number, TableError, encode, make_plan, table_of

ENCODING = Encoding(
    Number("y"), (Category("color", ("blue", "green"), "red"), Number("x"), Flag("f"), Number("color = red"))
)
CELLS = st.fixed_dictionaries(
    {
        "color": st.sampled_from(["red", "green", "blue", None, "pink"]),
        "x": st.sampled_from([0.25, -3.0, None]),
        "f": st.sampled_from([True, False, None]),
        "color = red": st.integers(-3, 3),
        "y": st.sampled_from([1.0, 2.5, None]),
    }
)


@given(st.lists(CELLS, min_size=1, max_size=12), st.booleans())
@settings(max_examples=60, deadline=None)
def test_columns_are_the_cells_of_the_rows_kept(rows, as_text):
    types = {"color": pa.string(), "x": pa.float64(), "f": pa.bool_(), "color = red": pa.int64(), "y": pa.float64()}
    arrow = pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in types.items()})
    if as_text:  # a table without nulls, in which gaps are found only by reading
        texts = arrow["x"].cast(pa.string()).fill_null("NA")
        arrow = arrow.set_column(1, "x", texts)
    whole = [k for k, row in enumerate(rows) if None not in row.values() and row["color"] != "pink"]
    if not whole:
        with pytest.raises(TableError):
            encode(table_of(arrow), ENCODING)
        return
    design = encode(table_of(arrow), ENCODING)
    seen = design.columns
    assert design.kept.tolist() == whole
    assert seen.n_rows == len(whole)
    assert list(seen.numbers) == ["x", "f", "color = red"]
    assert list(seen.levels) == ["color"]
    for name, values in seen.numbers.items():
        assert values.tolist() == [rows[k][name] for k in whole]
        assert np.shares_memory(values, design.X)
    levels = seen.levels["color"]
    assert levels.names == ("red", "blue", "green")
    assert levels.codes.dtype == np.int32
    assert [levels.names[code] for code in levels.codes] == [rows[k]["color"] for k in whole]
    assert [tuple(row) for row in design.X[:, :2]] == [
        (float(rows[k]["color"] == "blue"), float(rows[k]["color"] == "green")) for k in whole
    ]


def test_without_an_intercept_every_level_has_a_code_and_a_column():
    table = table_of({"color": ["red", "green", "red", "green"] * 4, "y": [1.0, 2.0] * 8})
    design = encode(table, make_plan(table, "y", intercept=False).encoding)
    levels = design.columns.levels["color"]
    assert design.X.shape[1] == len(levels.names) == 2
    assert [levels.names[code] for code in levels.codes] == ["red", "green"] * 8


def test_the_base_comes_first():
    table = table_of({"color": ["red", "green", "green", "blue"] * 8, "y": np.arange(32.0)})
    levels = encode(table, make_plan(table, "y").encoding).columns.levels["color"]
    assert levels.names == ("green", "blue", "red")
