"""A table becomes the same numbers whoever holds it, in whatever order its rows are."""

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow", reason="tables are read by pyarrow (massart[io])")

from massart.tables import (
    Category,
    Encoding,
    Flag,
    Number,
    TableError,
    encode,
    make_plan,
    precision_of_columns,
    read_table,
    table_of,
    write_columns,
    write_table,
)

N = 60


def ledger(n=N, seed=0):
    rng = np.random.default_rng(seed)
    hours = rng.integers(1, 40, n) / 4
    region = np.array(["north", "south", "east"])[rng.integers(0, 3, n)]
    urgent = rng.random(n) < 0.5
    return {
        "job id": np.arange(1000, 1000 + n),
        "hours": hours,
        "region": region.tolist(),
        "urgent": urgent,
        "total": 3.5 * hours + 12 * (region == "south") + 5 * urgent,
    }


@pytest.mark.slow
def test_frames_and_files_give_the_same_numbers(tmp_path):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    pytest.importorskip("narwhals")
    content = ledger()
    sources = {
        "mapping": content,
        "arrow": pa.table(content),
        "batch": pa.RecordBatch.from_pydict(content),
        "pandas": pd.DataFrame(content),
        "pandas, shuffled index": pd.DataFrame(content).set_index(np.random.default_rng(1).permutation(N)),
        "pandas, categories": pd.DataFrame(content).astype({"region": "category"}),
        "pandas, objects": pd.DataFrame(content).astype(object),
        "pandas, arrow": pd.DataFrame(content).convert_dtypes(dtype_backend="pyarrow"),
        "polars": pl.DataFrame(content),
        "polars, lazy": pl.DataFrame(content).lazy(),
        "polars, categories": pl.DataFrame(content).with_columns(pl.col("region").cast(pl.Categorical)),
    }
    for suffix in ("csv", "tsv", "parquet", "arrow", "jsonl", "csv.gz"):
        write_columns(tmp_path / f"ledger.{suffix}", content)
        sources[suffix] = tmp_path / f"ledger.{suffix}"
    wanted = None
    for kind, source in sources.items():
        table = table_of(source)
        plan = make_plan(table, "total")
        design = encode(table, plan.encoding)
        assert plan.id_column == "job id", kind
        assert design.X.flags.f_contiguous
        wanted = wanted or (plan.encoding, design)
        assert plan.encoding == wanted[0], kind
        assert np.array_equal(design.X, wanted[1].X), kind
        assert np.array_equal(design.y, wanted[1].y), kind
        assert np.array_equal(design.kept, np.arange(N))


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), gaps=st.integers(0, 30))
def test_encoding_commutes_with_the_order_of_rows(seed, gaps):
    rng = np.random.default_rng(seed)
    content = {name: list(values) for name, values in ledger(seed=seed).items()}
    for _ in range(gaps):
        content[rng.choice(["hours", "region", "urgent", "total"])][rng.integers(N)] = None
    order = rng.permutation(N)
    here = table_of(content)
    there = table_of({name: [values[row] for row in order] for name, values in content.items()})
    encoding = make_plan(here, "total").encoding
    assert make_plan(there, "total").encoding == encoding
    one, other = encode(here, encoding), encode(there, encoding)
    assert np.array_equal(np.sort(order[other.kept]), one.kept)
    back = np.argsort(order[other.kept])
    assert np.array_equal(other.X[back], one.X)
    assert np.array_equal(other.y[back], one.y)
    assert one.X.flags.f_contiguous


def test_rows_with_gaps_are_left_out_and_counted():
    table = table_of(
        {"hours": [1, None, 3, None, 5, 6.5], "items": [1, 2, 3, None, 7, 8], "total": [1, 2, None, 4, 5, 6]}
    )
    encoding = make_plan(table, "total").encoding
    design = encode(table, encoding)
    assert design.notices == (
        '3 of 6 rows left out: 2 have no "hours", 1 no "total". To keep them, fill in "hours", or fit without it.',
    )
    assert design.kept.tolist() == [0, 4, 5]
    assert design.n_total == 6
    assert design.X.tolist() == [[1, 1], [5, 7], [6.5, 8]]
    assert design.X.flags.f_contiguous
    with pytest.raises(TableError, match='row 2 has no "hours"'):
        encode(table, encoding, strict=True)
    unlabelled = encode(table, encoding, with_target=False)
    assert unlabelled.y is None
    assert unlabelled.kept.tolist() == [0, 2, 4, 5]


@pytest.mark.parametrize(("n_gaps", "loud"), [(20, False), (21, True)])
@pytest.mark.parametrize("spelling", ["-", "n.a.", "Missing", "", "NIL"])
@pytest.mark.parametrize("kind", ["csv", "frame"])
def test_many_rows_left_out_are_said_with_the_spelling_that_was_taken_as_missing(
    tmp_path, kind, spelling, n_gaps, loud
):
    cells = [spelling if n < n_gaps else f"{n}.5" for n in range(100)]
    if kind == "csv":
        path = tmp_path / "a.csv"
        path.write_text("a,total\n" + "".join(f"{cell},{n}\n" for n, cell in enumerate(cells)))
        table = read_table(path)
    else:
        table = table_of({"a": cells, "total": range(100)})
    (notice,) = encode(table, make_plan(table, "total").encoding).notices
    if not loud:
        assert notice == f'{n_gaps} rows left out: {n_gaps} have no "a".'
        return
    advice = f'"{spelling}" was taken as missing; if it means 0, write 0.' if spelling else "To keep them, fill in"
    assert notice.startswith(f'{n_gaps} of 100 rows left out: {n_gaps} have no "a". {advice}')


def test_the_most_frequent_spelling_is_named(tmp_path):
    path = tmp_path / "a.csv"
    gaps = ["-"] * 20 + ["NA"] * 10 + [""] * 5
    path.write_text("a,total\n" + "".join(f"{cell},1\n" for cell in gaps) + "".join(f"{n},2\n" for n in range(50)))
    for table in (read_table(path), table_of({"a": gaps + list(map(str, range(50))), "total": range(85)})):
        (notice,) = encode(table, make_plan(table, "total").encoding).notices
        assert '"-" was taken as missing' in notice


def test_an_unknown_level_is_named():
    encoding = Encoding(Number("total"), (Category("Tarif", ("Nacht", "Tag"), "Flex"),))
    table = table_of({"Tarif": ["Tag"] * 40 + ["Solar", "Wind", "Solar"]})
    (notice,) = encode(table, encoding, with_target=False).notices
    assert notice == '3 rows left out: 3 have an unknown "Tarif" such as "Solar".'


@pytest.mark.full(first=1)
@pytest.mark.slow
@pytest.mark.parametrize("text", [False, True])
def test_a_wide_table_is_read_encoded_and_written_again(tmp_path, text):
    n, d = 20, 4_000
    X = np.random.default_rng(0).integers(0, 1000, (n, d)) / 4
    names = [f"x{j}" for j in range(d)]
    path = tmp_path / "wide.csv"
    write_columns(path, dict(zip(names, X.astype(str).T if text else X.T, strict=True)) | {"total": X[:, 0]})
    table = read_table(path)
    plan = make_plan(table, "total", features=names)
    design = encode(table, plan.encoding)
    assert precision_of_columns(table, plan.encoding) == np.finfo(float).eps
    write_table(tmp_path / "again.csv", table)
    assert np.array_equal(design.X, X)
    assert np.array_equal(read_table(tmp_path / "again.csv").cells(["x7"], np.arange(n))["x7"], X[:, 7])


def test_new_rows_are_read_as_the_old_ones_were():
    encoding = Encoding(
        Number("total"), (Number("hours", ","), Flag("urgent"), Category("region", ("east", "south"), "north"))
    )
    table = table_of(
        {
            "region": ["south", "north", " east ", "west", "", None, "south"],
            "hours": ["1,5", "2", "3", "4", "5", "6", "NA"],
            "urgent": ["yes", "N", "1", "0", "true", "f", "no"],
        }
    )
    design = encode(table, encoding, with_target=False)
    assert design.kept.tolist() == [0, 1, 2]
    assert design.X.tolist() == [[1.5, 1, 0, 1], [2, 0, 0, 0], [3, 1, 1, 0]]
    assert design.notices == (
        '4 of 7 rows left out: 1 has no "hours", 2 no "region", 1 an unknown "region" such as "west". '
        'To keep them, fill in "region", or fit without it.',
    )
    with pytest.raises(TableError, match='row 4 has an unknown "region": "west"'):
        encode(table, encoding, strict=True, with_target=False)
    with pytest.raises(TableError, match='no column "total"'):
        encode(table, encoding)
    odd = {"hours": ["1", "many"], "urgent": ["maybe", "yes"], "region": ["north", "south"]}
    with pytest.raises(TableError, match='row 1 has an unreadable "urgent": "maybe"'):
        encode(table_of(odd), encoding, strict=True, with_target=False)
    with pytest.raises(TableError, match="no row is left"):
        encode(table_of(odd), encoding, with_target=False)
    with pytest.raises(TableError, match="row 2 has 3"):
        encode(table_of({"hours": [1, 2], "urgent": [1, 3], "region": ["x", "y"]}), encoding, with_target=False)


def test_cells_are_plain_values():
    arrow = pa.table(
        {
            "text": ["a", None],
            "coded": pa.array(["x", "y"]).dictionary_encode(),
            "int": [1, None],
            "float": [1.5, float("nan")],
            "bool": [True, None],
            "day": pa.array([0, 1], pa.date32()),
            "time": pa.array([0, None], pa.timestamp("ms")),
            "zone": pa.array([0, None], pa.timestamp("ms", "Europe/Zurich")),
            "decimal": pa.array([1, None], pa.decimal128(5, 2)),
        }
    )
    table = table_of(arrow)
    assert table.cells(table.column_names, np.array([1, 0])) == {
        "text": [None, "a"],
        "coded": ["y", "x"],
        "int": [None, 1],
        "float": [None, 1.5],
        "bool": [None, True],
        "day": ["1970-01-02", "1970-01-01"],
        "time": [None, "1970-01-01 00:00:00.000"],
        "zone": [None, "1970-01-01 00:00:00.000Z"],
        "decimal": [None, 1],
    }
    assert table.cells(["int"], np.empty(0, dtype=np.intp)) == {"int": []}
    with pytest.raises(TableError, match='no column "itn": did you mean "int"'):
        table.cells(["itn"], np.array([0]))


NAMES = st.text(min_size=1, max_size=8)
ENTRIES = st.one_of(
    st.builds(Number, NAMES, st.sampled_from(".,"), st.none() | NAMES),
    st.builds(Flag, NAMES),
    st.builds(
        lambda column, levels, base: Category(column, tuple(levels[base:]), levels[0] if base else None),
        NAMES,
        st.lists(NAMES, min_size=2, max_size=5, unique=True),
        st.integers(0, 1),
    ),
)


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(st.lists(ENTRIES, max_size=5, unique_by=lambda entry: entry.column))
def test_an_encoding_survives_json(entries):
    encoding = Encoding(Number("the total of all"), tuple(entries))
    assert Encoding.from_json(json.loads(json.dumps(encoding.to_json()))) == encoding


GOOD_JSON = Encoding(Number("total"), (Number("a"), Flag("b"), Category("c", ("x", "y"), "z"))).to_json()


def changed(path, value):
    content = json.loads(json.dumps(GOOD_JSON))
    *way, last = path
    place = content
    for step in way:
        place = place[step]
    if value is KeyError:
        del place[last]
    else:
        place[last] = value
    return content


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "object"),
        ([], "object"),
        ({}, "lacks"),
        (changed(["more"], 1), "more"),
        (changed(["target"], 7), "target"),
        (changed(["target", "kind"], "category"), "target"),
        (changed(["target"], GOOD_JSON["inputs"][2]), "category"),
        (changed(["target", "column"], "a"), "among the inputs"),
        (changed(["inputs"], {}), "list"),
        (changed(["inputs", 0, "kind"], "code"), "code"),
        (changed(["inputs", 0, "column"], 3), "text"),
        (changed(["inputs", 0, "column"], "b"), "same column"),
        (changed(["inputs", 0, "decimal"], ";"), "decimal"),
        (changed(["inputs", 0, "decimal"], KeyError), "decimal"),
        (changed(["inputs", 0, "decimal"], []), "decimal"),
        (changed(["inputs", 0, "unit"], KeyError), "unit"),
        (changed(["inputs", 0, "unit"], ""), "unit"),
        (changed(["inputs", 0, "unit"], 3), "unit must be a text"),
        (changed(["inputs", 1, "extra"], 1), "extra"),
        (changed(["inputs", 2, "levels"], "xy"), "list"),
        (changed(["inputs", 2, "levels"], ["x", 1]), "levels must be a list of texts"),
        (changed(["inputs", 2, "levels"], ["x", "x"]), "twice"),
        (changed(["inputs", 2, "base"], "x"), "twice"),
        (changed(["inputs", 2, "base"], 0), "text"),
    ],
)
def test_a_strangers_encoding_is_not_trusted(content, words):
    with pytest.raises(TableError) as caught:
        Encoding.from_json(content)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_frame_with_mixed_objects_is_read_as_text():
    pd = pytest.importorskip("pandas")
    pytest.importorskip("narwhals")
    frame = pd.DataFrame({"a": [1, "x", None, 2.5], 7: [1, 2, 3, 4]})
    table = table_of(frame)
    assert table.cells(["a", "7"], np.arange(4)) == {"a": ["1", "x", None, "2.5"], "7": [1, 2, 3, 4]}
    assert table.name == "the table"
    twice = pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"])
    with pytest.raises(TableError, match='columns 1 and 2 are both named "a"'):
        table_of(twice)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("missing", "code", "words"),
    [
        ("pyarrow", "import massart.tables", "reading tables needs pyarrow: pip install 'massart[io]'"),
        ("pyarrow", "from massart import audit_table", "needs pyarrow: pip install 'massart[io]'"),
        ("pyarrow", "from massart import check_table", "needs pyarrow: pip install 'massart[io]'"),
        ("pyarrow", "import massart; massart.scan_table", "needs pyarrow: pip install 'massart[io]'"),
        ("pyarrow", "from massart.export import export", "needs pyarrow: pip install 'massart[io]'"),
        ("narwhals", "from massart.tables import table_of; table_of(object())", "narwhals: pip install 'massart[io]'"),
    ],
)
def test_a_missing_library_is_named(missing, code, words):
    program = f"""
import sys
sys.modules[{missing!r}] = None
try:
    {code.replace("; ", chr(10) + "    ")}
except ModuleNotFoundError as error:
    assert isinstance(error, ValueError)
    assert {words!r} in str(error)
    raise SystemExit(0)
raise SystemExit(1)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.slow
def test_reading_numbers_imports_no_pandas(tmp_path):
    write_columns(tmp_path / "a.csv", {name: ledger()[name] for name in ("hours", "urgent", "total")})
    program = f"""
import sys
from massart.tables import encode, make_plan, read_table
table = read_table({str(tmp_path / "a.csv")!r})
encode(table, make_plan(table, "total").encoding)
assert not {{"pandas", "polars", "narwhals"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view"])
def test_what_means_missing_is_missing_in_texts_of_every_type(kind: str) -> None:
    if not hasattr(pa, kind):
        pytest.skip(f"this pyarrow has no {kind}")
    texts = pa.chunked_array([pa.array(["x", " -999", None], getattr(pa, kind)())])
    found = table_of(pa.table({"b": texts}), na=["-999"]).column("b")
    assert (found.type, found.to_pylist()) == (texts.type, ["x", None, None])
