"""Files larger than memory: the answer, the counts and the files are those of the same table in memory."""

from __future__ import annotations

import functools
import json
import operator
import pickle
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import pytest

import massart.tables.sample
import massart.tables.stream
from massart.audit import audit_table, check_table, summary
from massart.audit.finding import find
from massart.audit.judging import RowRule, judge, judge_blocks, numbered
from massart.audit.question import ReadSample, Request
from massart.cli import run
from massart.options import size_of
from massart.rows import ahead
from massart.tables import Table, TableError, gather, gather_some, stream_table, table_of

UNEXPLAINED = "unexplained"
BEFORE, AFTER = "value of the row before", "value of the row after"
SWAPPED, ANOTHER = "swapped with another row", "value of another row"

SMALL = 150_000
"""Bytes: every table here is larger, and comes in blocks of a few hundred rows."""


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    """Let fewer rows propose, so that small tables are large ones."""
    monkeypatch.setattr(massart.tables.sample, "DRAWN_ROWS", 4_000)


def ledger(n=6_000, seed=0, gaps=True):
    """Return a ledger of jobs with categories, flags, texts for numbers and gaps; 30 % of the totals are wrong."""
    rng = np.random.default_rng(seed)
    service = rng.choice(["repair", "service", "audit"], n, p=[0.5, 0.3, 0.2])
    hours, items = rng.integers(1, 40, n) / 4, rng.integers(0, 30, n)
    weekend = rng.random(n) < 0.2
    total = 35 + 58 * hours + 7.9 * items + 25 * weekend + 60 * (service == "audit")
    total = np.round(total, 2)
    what = rng.random(n)
    wrong = np.where(what < 0.1, total * 10, np.where(what < 0.2, 0.0, np.where(what < 0.3, total + 1 + items, total)))
    columns = {
        "job": np.arange(n),
        "clerk": rng.choice(["Ann", "Bob", "Cem"], n),
        "service": service,
        "hours": hours,
        "items": items,
        "weekend": np.where(weekend, "yes", "no"),
        "total": np.array([f"{value:,.2f}" for value in wrong]),
    }
    table = pa.table(columns)
    if gaps:
        missing = pa.array(np.isin(np.arange(n), rng.choice(n, 40, replace=False)))
        table = table.set_column(3, "hours", pc.if_else(missing, pa.scalar(None, pa.float64()), table["hours"]))
    return table


def write(table, folder, kind):
    if kind == "folder":
        path = folder / "parts"
        path.mkdir()
        for k in range(3):
            part = table.slice(k * 2_000, 2_000)
            pa.parquet.write_table(part, path / f"{k}.parquet", row_group_size=700)
        return path
    path = folder / f"table.{kind}"
    pa.csv.write_csv(table, path) if kind == "csv" else pa.parquet.write_table(table, path, row_group_size=900)
    return path


def without(words, facts):
    """Return facts but for those that tell how the table was read."""
    told = [notice for notice in facts["notices"] if "Looked" not in notice]
    return {key: value for key, value in facts.items() if key not in words} | {"notices": told}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet", "folder"])
def test_a_stream_has_the_answer_of_its_table(kind, tmp_path):
    table = ledger()
    path = write(table, tmp_path, kind)
    known = audit_table(table_of(table), "total", terms="columns", group="clerk")
    found = audit_table(path, "total", terms="columns", group="clerk", max_memory=SMALL)
    assert found.whole is not None
    assert known.whole is None
    assert found.is_certain
    assert found.n_wrong > 1_500
    # The resolution and what the support is depend on the rows that judge; what is said of all rows does not.
    differ = {"table", "explanation", "alpha", "eta_max", "weakest_direction", "groups", "second_rule"}
    assert without(differ, summary(found)) == without(differ, summary(known))
    second, other = known.second_rule, found.second_rule  # some wrong totals have another item each, and 36 for 35
    assert second is not None
    assert other is not None
    assert second.n_rows > 500
    assert (str(other.formula), other.n_rows) == (str(second.formula), second.n_rows)
    assert other.test.rows < second.test.rows  # in the rows looked at closely
    assert f"{other.test.rows:,} of these do" in other.explanation
    assert found.groups() == known.groups()
    assert found.usage() == known.usage()
    assert [notice for notice in found.notices if "Looked" in notice] != []


@pytest.mark.slow
def test_a_table_has_the_same_wrong_rows_however_it_is_judged(tmp_path):
    """In memory and by blocks, by the rule that is found and by the model that is made of it."""
    path = write(ledger(), tmp_path, "parquet")
    found = audit_table(path, "total", terms="columns", id="job")
    files = {name: tmp_path / f"{name}.parquet" for name in ("fit", "check")}
    audit_table(path, "total", terms="columns", id="job", max_memory=SMALL, audit=files["fit"])
    checked = check_table(found.model(), path, id="job").audit
    check_table(found.model(), path, id="job", rows_held=100, rows_kept=50, audit=files["check"])
    tables = [pa.table(audit.wrong_rows()) for audit in (found, checked)]
    tables += [pa.parquet.read_table(file) for file in files.values()]
    usual = ("factor 10", "zero")  # others are a second rule, which no model looks for
    kinds = [[kind if kind in usual else UNEXPLAINED for kind in table["kind"].to_pylist()] for table in tables]
    rows = [table.drop_columns("kind").to_pydict() for table in tables]
    assert len(kinds[0]) > 1_500
    assert {*kinds[0]} == {*usual, UNEXPLAINED}
    assert all(one == kinds[0] for one in kinds)
    assert all(one == rows[0] for one in rows)


@pytest.mark.slow
def test_how_a_stream_is_cut_does_not_matter(tmp_path):
    path = write(ledger(), tmp_path, "parquet")
    facts = [
        json.dumps(summary(audit_table(path, "total", terms="columns", max_memory=size, group="clerk")))
        for size in (20_000, 100_000, 400_000)
    ]
    assert facts[0] == facts[1] == facts[2]


def shuffled_ledger(n=1_100, seed=0):
    """Return a ledger in which rows have the value of another one, of every kind that a cut could hide, and gaps."""
    rng = np.random.default_rng(seed)
    hours, items, km = rng.integers(100, 9_999, n) / 100, rng.integers(1, 3_000, n), rng.integers(100, 99_999, n) / 10
    total = np.round(35 + 58 * hours + 7.93 * items + 3 * km, 2)  # no value is halfway between two cents
    given = total.copy()
    rows = rng.permutation(n - 2) + 1
    before, after, carried, ten, far, near = np.split(rows[:400], [80, 140, 200, 240, 340])
    given[before], given[after] = total[before - 1], total[after + 1]
    for row in np.sort(carried):  # also where the row before is wrong itself
        given[row] = given[row - 1]
    given[ten] *= 10
    given[far], given[far[::-1]] = total[far[::-1]], total[far]
    given[near], given[near + 1] = total[near + 1], total[near]
    table = pa.table({"job": np.arange(n), "hours": hours, "items": items, "km": km, "total": np.round(given, 2)})
    missing = pa.array(np.isin(np.arange(n), rng.choice(n, 30, replace=False)))
    return table.set_column(1, "hours", pc.if_else(missing, pa.scalar(None, pa.float64()), table["hours"]))


def facts_of(found):
    """Return what is said of all rows, and of each row at hand."""
    kinds = {row: kind or "" for row, kind in zip(*(found.rows()[name] for name in ("row", "kind")), strict=True)}
    said = summary(found)
    return {name: said[name] for name in ("formula", "rows_wrong", "kinds", "worst_rows")}, kinds


def unexplained_if_of_any_row(audit, known, every_kind):
    """Return what is said of a table, where values of any other row are not told from others."""
    kind = pc.if_else(pc.equal(audit["kind"], ANOTHER), UNEXPLAINED, audit["kind"])
    audit = audit.set_column(audit.column_names.index("kind"), "kind", kind)
    counts = {entry["kind"]: entry["rows"] for entry in known["kinds"]}
    counts[UNEXPLAINED] += counts.pop(ANOTHER)
    first = {name: audit.filter(pc.equal(kind, name))["row"][:5].to_pylist() for name in counts}
    kinds = [{"kind": name, "rows": rows, "examples": first[name]} for name, rows in counts.items()]
    worst = [row | {"kind": UNEXPLAINED if row["kind"] == ANOTHER else row["kind"]} for row in known["worst_rows"]]
    renamed = {row: UNEXPLAINED if word == ANOTHER else word for row, word in every_kind.items()}
    return audit, known | {"kinds": kinds, "worst_rows": worst}, renamed


@pytest.mark.full(first=1)
@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(7, 100, 1_000, 10_000), pytest.param((1,), marks=pytest.mark.slow)])
def test_what_looks_at_other_rows_depends_on_no_cut(sizes, tmp_path, monkeypatch):
    """A value of the row before, or swapped, is one wherever a block begins; and as it is in memory.

    But for values of any other row: these are told from others in memory only.
    """
    monkeypatch.setattr(massart.tables.sample, "DRAWN_ROWS", 800)
    table = shuffled_ledger()
    path = write(table, tmp_path, "parquet")
    blocks = massart.tables.stream.Stream.blocks
    options = {"terms": "columns", "id": "job", "audit": tmp_path / "audit.csv", "rows_kept": 50}

    def cut(size):
        def pieces(self, columns=None, callback=None):
            whole = pa.concat_tables([block.arrow for block in blocks(self, columns)])
            for start in range(0, whole.num_rows, size):
                part = whole.slice(start, size)
                yield Table(part, self.name, numbers=np.arange(start, start + part.num_rows))

        monkeypatch.setattr(massart.tables.stream.Stream, "blocks", pieces)
        found = audit_table(path, "total", max_memory=10_000, **options)
        assert found.whole is not None
        return facts_of(found), (tmp_path / "audit.csv").read_bytes()

    known, every_kind = facts_of(audit_table(table_of(table), "total", **options))
    memory = pa.csv.read_csv(tmp_path / "audit.csv")
    memory = memory.filter(pc.fill_null(memory["wrong"], False)).sort_by("row").drop_columns("rank")
    counts = {entry["kind"]: entry["rows"] for entry in known["kinds"]}
    assert counts[ANOTHER] < 10
    memory, known, every_kind = unexplained_if_of_any_row(memory, known, every_kind)
    assert min(counts[kind] for kind in (BEFORE, AFTER, SWAPPED, "factor 10")) >= 35
    audits = set()
    for size in sizes:
        (found, kinds), audit = cut(size)
        assert found == known
        assert kinds == {row: every_kind[row] for row in kinds}
        assert 200 < sum(kind != "" for kind in kinds.values()) < known["rows_wrong"]
        assert pa.csv.read_csv(tmp_path / "audit.csv").equals(memory)
        audits.add(audit)
    assert len(audits) == 1


@pytest.mark.full
@pytest.mark.slow
def test_the_last_digit_of_what_is_implied_depends_on_no_cut(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4_500, 5))
    y = np.where(rng.random(4_500) < 0.3, rng.standard_normal(4_500), X @ np.sqrt([2.0, 3, 5, 7, 11]))
    path = write(pa.table({**{f"x{j}": X[:, j] for j in range(5)}, "y": y}), tmp_path, "parquet")
    audits = []
    for size in (5_000, 50_000, 500_000):
        assert audit_table(path, "y", terms="columns", max_memory=size, audit=tmp_path / "a.csv").whole is not None
        audits.append((tmp_path / "a.csv").read_bytes())
    assert len(set(audits)) == 1
    assert audits[0].count(b"\n") > 1_000


@pytest.mark.slow
def test_files_are_those_of_the_table(tmp_path):
    table = ledger()
    path = write(table, tmp_path, "parquet")
    for name, size in (("memory", None), ("stream", SMALL)):
        audit_table(
            path,
            "total",
            terms="columns",
            max_memory=size,
            audit=tmp_path / f"{name}.csv",
            fixed=tmp_path / f"{name}.parquet",
        )
    fixed = [pa.parquet.read_table(tmp_path / f"{name}.parquet") for name in ("memory", "stream")]
    assert fixed[0].equals(fixed[1])
    memory, stream = (pa.csv.read_csv(tmp_path / f"{name}.csv") for name in ("memory", "stream"))
    memory = memory.filter(pc.fill_null(memory["wrong"], False)).sort_by("row").drop_columns("rank")
    assert stream.num_rows > 1_500
    assert stream.equals(memory)


@pytest.mark.slow
def test_a_rare_level_and_a_rare_charge_are_met(tmp_path):
    rng = np.random.default_rng(0)
    n = 40_000
    place = np.full(n, "north", dtype=object)
    place[rng.choice(n, 20_000, replace=False)] = "south"
    place[[7_001, 15_555, 22_000, 30_303, 30_304, 31_000, 31_001, 31_002, 39_999]] = "isle"
    charge = np.zeros(n)
    charge[rng.choice(n, 12, replace=False)] = 3.0
    kg = rng.integers(1, 500, n)
    fee = np.round(4 + 0.35 * kg + 2 * (place == "south") + 17 * (place == "isle") + 5 * charge, 2)
    fee[rng.random(n) < 0.2] *= 2
    table = pa.table({"kg": kg, "place": place, "charge": charge, "fee": np.round(fee, 2)})
    found = audit_table(write(table, tmp_path, "parquet"), "fee", terms="columns", max_memory=SMALL)
    assert found.whole is not None
    places = "21 * (place = isle) + 4 * (place = north) + 6 * (place = south)"
    assert found.formula.text() == f"fee = 0.35 * kg + {places} + 5 * charge"
    usage = dict(zip(found.formula.names, found.usage(), strict=False))
    assert usage["place = isle"].n_rows == 9


@pytest.mark.slow
def test_ids_that_repeat_elsewhere_are_called_unique_nowhere(tmp_path):
    """The rows looked at closely have ids of their own and texts of their own, but others have these, too."""
    table = ledger(gaps=False)
    path = write(table.append_column("job_id", table["job"]), tmp_path, "parquet")
    with stream_table(path, max_memory=SMALL) as stream:
        chosen = gather(stream.blocks(), seed=0).numbers
    ids = np.arange(table.num_rows)
    others = np.setdiff1d(ids, chosen)
    ids[others] = ids[chosen][: len(others)]
    clerk, total = np.array(table["clerk"]), np.array(table["total"])
    for name in np.unique(clerk):  # a clerk forgets to change what he wrote for the job before
        own = np.flatnonzero(clerk == name)
        total[own[2::7]] = total[own[1:-1:7]]
    table = table.set_column(6, "total", pa.array(total)).append_column("job_id", pa.array(ids))
    path = write(table.append_column("note", pa.array([f"see {k}" for k in ids])), tmp_path, "parquet")
    request = Request("total", terms="columns", group="clerk")
    with stream_table(path, max_memory=SMALL) as stream:
        some = gather(stream.blocks(), seed=0)
    np.testing.assert_array_equal(some.numbers, chosen)
    assert len(set(some.table.arrow["job_id"].to_pylist())) == len(chosen)
    of_groups = f"{BEFORE} in its group"
    assert of_groups in {kind.label for kind in find(table_of(table), request).audit.kinds.kinds}
    found = audit_table(path, "total", terms="columns", group="clerk", max_memory=SMALL)
    for audit in (find(ReadSample(some.table, ordered=False), request).audit, found):
        assert of_groups not in {kind.label for kind in audit.kinds.kinds}
    said = [notice for notice in found.notices if "identifier" in notice]
    assert {notice.split('"')[1] for notice in said} == {"job_id", "note"}
    assert all(notice.startswith("Among these: left out ") for notice in said)


@pytest.mark.slow
def test_no_rule_no_files(tmp_path):
    rng = np.random.default_rng(0)
    table = pa.table({"a": rng.standard_normal(5_000), "b": rng.standard_normal(5_000), "y": rng.random(5_000)})
    path = write(table, tmp_path, "parquet")
    audit, fixed = tmp_path / "a.csv", tmp_path / "f.csv"
    found = audit_table(path, "y", terms="columns", max_memory=SMALL, audit=audit, fixed=fixed)
    assert not found.is_rule
    assert found.n_wrong == 0
    assert found.n_judged == 5_000
    assert not audit.exists()
    assert not fixed.exists()


@pytest.mark.slow
@pytest.mark.parametrize("says", ["a rule", "none"])
def test_all_rows_have_the_last_word(says, tmp_path):
    """Where rows that nobody looked at tell another story, so does the verdict, and the files follow it."""
    rng = np.random.default_rng(0)
    n = 9_000
    a = rng.integers(1, 1000, n).astype(float)
    follows = np.zeros(n, dtype=bool)
    path = tmp_path / "t.parquet"
    pa.parquet.write_table(pa.table({"a": a, "y": a}), path)
    with stream_table(path, max_memory=SMALL) as stream:
        chosen = gather(stream.blocks(), seed=0).numbers
    follows[chosen] = True
    if says == "a rule":
        follows = ~follows
    table = pa.table({"a": a, "y": np.where(follows, 3 * a + 1, rng.random(n))})
    pa.parquet.write_table(table, path)
    audit = tmp_path / "a.csv"
    found = audit_table(path, "y", terms="columns", max_memory=SMALL, audit=audit)
    assert found.is_rule == audit.exists()
    if found.is_rule:
        assert pa.csv.read_csv(audit).num_rows == found.n_wrong


def spoilt(tmp_path, cell):
    table = ledger(gaps=False)
    items = table["items"].cast(pa.string()).to_pylist()
    items[5_432] = cell
    return write(table.set_column(4, "items", pa.array(items)), tmp_path, "parquet")


@pytest.mark.slow
def test_a_bad_cell_is_named_by_its_row_in_the_file(tmp_path):
    with pytest.raises(TableError, match=r'"items".*row 5,433'):
        audit_table(spoilt(tmp_path, "1e999"), "total", terms="columns", max_memory=SMALL)


@pytest.mark.slow
def test_a_text_among_numbers_costs_its_row_alone(tmp_path):
    found = audit_table(spoilt(tmp_path, "oops"), "total", terms="columns", max_memory=SMALL)
    assert found.n_judged == found.n_total - 1
    assert any('1 has an unreadable "items" such as "oops"' in notice for notice in found.notices)


@pytest.mark.slow
@pytest.mark.parametrize("size", [SMALL, None])
def test_a_bad_cell_in_a_folder_is_named_by_its_file(size, tmp_path):
    table = ledger(gaps=False)
    hours = table["hours"].to_pylist()
    hours[4_321] = float("inf")
    folder = write(table.set_column(3, "hours", pa.array(hours)), tmp_path, "folder")
    with pytest.raises(TableError, match=r'^parts: column "hours" has inf in row 322 of 2.parquet'):
        audit_table(folder, "total", terms="columns", max_memory=size)


@pytest.mark.slow
def test_a_gap_is_refused_where_it_is(tmp_path):
    table = ledger(gaps=False)
    hours = table["hours"].to_pylist()
    hours[4_321] = None
    path = write(table.set_column(3, "hours", pa.array(hours, pa.float64())), tmp_path, "parquet")
    with pytest.raises(TableError, match='row 4,322 has no "hours"'):
        audit_table(path, "total", terms="columns", max_memory=SMALL, strict=True)


def test_terms_that_look_back_need_the_whole_table(tmp_path):
    path = write(ledger(gaps=False), tmp_path, "parquet")
    with pytest.raises(TableError, match="lag.* needs the whole table in memory: raise --max-memory"):
        audit_table(path, "total", terms="hours, lag(items)", max_memory=SMALL)


@pytest.mark.slow
def test_a_file_that_changes_in_the_middle(tmp_path):
    path = write(ledger(), tmp_path, "parquet")

    def change(found):
        pa.parquet.write_table(ledger(seed=1), path)

    audit = tmp_path / "a.csv"
    with pytest.raises(TableError, match="changed while it was read"):
        audit_table(path, "total", max_memory=SMALL, audit=audit, announce=change)
    assert not audit.exists()
    assert [*tmp_path.glob(".*")] == []


@pytest.mark.slow
def test_a_full_disk_leaves_nothing_half_written(tmp_path, monkeypatch):
    path = write(ledger(), tmp_path, "parquet")
    audit = tmp_path / "a.csv"
    audit.write_text("old")
    calls = []

    def full(self, arrow):
        calls.append(arrow)
        if len(calls) > 3:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("massart.tables.writing._Writer.write", full)
    with pytest.raises(TableError, match="No space left on device"):
        audit_table(path, "total", terms="columns", max_memory=SMALL, audit=audit)
    assert audit.read_text() == "old"
    assert [*tmp_path.glob(".*")] == []


@pytest.mark.slow
def test_judgements_add_up_however_rows_are_cut_and_travel_light():
    found = find(table_of(ledger()), Request("total", terms="columns", group="clerk"))
    rule = RowRule.of(found.audit, frozenset({"hours"}), strict=False)
    assert len(pickle.dumps(rule.within(0, 500))) < 100_000
    rows = ledger(900, seed=2)
    whole = judge(next(numbered([table_of(rows)], 0)), rule)
    assert whole.tally.sum() > 800
    assert np.count_nonzero(whole.kept.rows["size"] >= 0) > 200
    cuts = [0, 1, 2, 300, 301, 650, 900]
    blocks = [*numbered([table_of(rows.slice(start, stop - start)) for start, stop in pairwise(cuts)], 0)]
    parts = [judge(block, pickle.loads(pickle.dumps(rule))) for block in blocks]
    before = [judged_in_words(part) for part in parts]
    left = functools.reduce(operator.add, parts)
    right = functools.reduce(lambda total, part: part + total, reversed(parts))
    pairs = (parts[0] + parts[1]) + ((parts[2] + parts[3]) + (parts[4] + parts[5]))
    for total in (left, right, pairs, judge_blocks(blocks, rule), rule.nothing + left, left + rule.nothing):
        assert judged_in_words(total) == judged_in_words(whole)
    assert [judged_in_words(part) for part in parts] == before  # addition changes nothing that is added


def judged_in_words(judged):
    """Return all that rows add up to, as plain values."""
    kept = judged.kept.pruned()
    cells = pa.concat_tables(kept.tables).to_pylist() if kept.tables else []
    arrays = (
        judged.tally,
        judged.usage,
        judged.kinds,
        judged.segment,
        judged.ends,
        kept.rows[["number", "size", "code", "asked"]],
    )
    others = judged.n_rows, judged.groups, judged.gaps, cells
    return [each.tolist() for each in arrays], others


def floats(n, **others):
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((n, 3)), 3)
    y = np.where(rng.random(n) < 0.3, rng.standard_normal(n), X @ [1.5, -2.0, 0.25] + 4)
    return pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], **others, "y": y})


def gathered_of_some(table, folder, monkeypatch):
    monkeypatch.setattr("massart.tables.sample.ROWS_A_PIECE", 1_000)
    path = folder / "t.parquet"
    pa.parquet.write_table(table, path, row_group_size=500)
    with stream_table(path, max_memory=SMALL) as stream:
        return gather_some(stream, seed=0), path


@pytest.mark.slow
def test_some_pieces_of_numbers_tell_of_all(tmp_path, monkeypatch):
    table = floats(30_000)
    found, path = gathered_of_some(table, tmp_path, monkeypatch)
    assert found is not None
    assert found.n_total == 30_000
    assert found.gappy == {"a", "b", "c", "y"}
    assert len(np.unique(found.numbers // 1_000)) == 6
    assert found.table.arrow.equals(table.take(pa.array(found.numbers)))
    known = audit_table(table_of(table), "y", terms="columns")
    audit = audit_table(path, "y", terms="columns", max_memory=SMALL)
    assert audit.whole is not None
    assert audit.is_certain
    assert (audit.formula.text(), audit.n_wrong, audit.n_judged) == (known.formula.text(), known.n_wrong, 30_000)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["rare", "constant", "gaps", "text"])
def test_some_pieces_do_not_tell_what_is_rare(what, tmp_path, monkeypatch):
    n = 30_000
    charge = np.zeros(n)
    charge[[5, 11_111, 29_999]] = 2.0
    columns = {
        "rare": charge,
        "constant": np.ones(n),
        "gaps": pa.array([None if k == 17_000 else 1.0 * k for k in range(n)]),
        "text": pa.array(["x", "y"] * (n // 2)),
    }
    found, path = gathered_of_some(floats(n, other=columns[what]), tmp_path, monkeypatch)
    assert found is None
    if what == "rare":
        with stream_table(path, max_memory=SMALL) as stream:
            assert {5, 11_111, 29_999} <= set(gather(stream.blocks(), seed=0).numbers.tolist())


# --- the command line ---


@pytest.mark.slow
def test_the_command_line_reads_patterns_and_streams(tmp_path, capsys):
    folder = write(ledger(), tmp_path, "folder")
    known = []
    for size in ("1GB", "150kB"):
        status = run(
            ["fit", f"{folder}/*.parquet", "--target", "total", "--terms", "columns", "--json", "--max-memory", size]
        )
        facts = json.loads(capsys.readouterr().out)
        known.append((status, facts["formula"], facts["verdict"], facts["rows_wrong"], facts["kinds"]))
    assert known[0] == known[1]
    assert known[0][0] == 0


@pytest.mark.slow
def test_a_report_of_a_stream_says_what_it_shows(tmp_path, capsys):
    path, report = write(ledger(), tmp_path, "csv"), tmp_path / "r.html"
    status = run(
        ["fit", str(path), "--target", "total", "--terms", "columns", "--max-memory", "150kB", "--report", str(report)]
    )
    assert status == 0
    page = report.read_text()
    assert "drawn at random" in page
    assert "6,000" in page


@pytest.mark.parametrize("size", ["much", "0", "-1GB", "2 furlongs"])
def test_a_size_is_checked(size, tmp_path, capsys):
    path = write(ledger(), tmp_path, "csv")
    assert run(["fit", str(path), "--target", "total", "--max-memory", size]) == 2
    assert "--max-memory" in capsys.readouterr().err


def test_sizes():
    assert [size_of(text) for text in ("1", "2kB", "1.5 GB", "3MiB", "4g")] == [
        1,
        2000,
        1_500_000_000,
        3 << 20,
        4 * 10**9,
    ]


def test_one_broken_file_in_a_folder_is_named(tmp_path):
    folder = write(ledger(), tmp_path, "folder")
    data = bytearray(Path(folder / "1.parquet").read_bytes())
    data[200:260] = bytes(60)
    (folder / "1.parquet").write_bytes(data)
    with pytest.raises(TableError, match="1.parquet"):
        audit_table(folder, "total", terms="columns", max_memory=SMALL)


# --- reading ahead ---


def test_ahead_keeps_the_order_and_passes_failures_on():
    assert list(ahead(range(100))) == list(range(100))

    def failing():
        yield 1
        raise KeyError("gone")

    items = ahead(failing())
    assert next(items) == 1
    with pytest.raises(KeyError, match="gone"):
        next(items)


def test_ahead_stops_when_nobody_listens():
    made = []

    def counting():
        for k in range(10**9):
            made.append(k)
            yield k

    items = ahead(counting())
    next(items)
    items.close()
    assert len(made) < 10


# --- on a cluster ---


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed", reason="Dask is not installed: massart[dask]")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.slow
def test_a_cluster_has_the_answer_and_the_files_of_this_process(client, tmp_path, monkeypatch):
    monkeypatch.setattr("massart.tables.sample.ROWS_A_PIECE", 1_000)
    folder = write(ledger(), tmp_path, "folder")
    found = {}
    for name, one in (("here", None), ("there", client)):
        found[name] = audit_table(
            folder,
            "total",
            terms="columns",
            group="clerk",
            max_memory=SMALL,
            client=one,
            audit=tmp_path / f"{name}.csv",
            fixed=tmp_path / f"{name}.parquet",
        )
    assert summary(found["there"]) == summary(found["here"])
    assert found["there"].whole is not None
    assert (tmp_path / "there.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()
    fixed = [pa.parquet.read_table(tmp_path / f"{name}.parquet") for name in found]
    assert fixed[0].equals(fixed[1])


@pytest.mark.slow
def test_on_a_cluster_rows_look_beyond_their_piece(client, tmp_path, monkeypatch):
    monkeypatch.setattr("massart.tables.sample.ROWS_A_PIECE", 1)
    monkeypatch.setattr(massart.tables.sample, "DRAWN_ROWS", 800)
    path = tmp_path / "t.parquet"
    pa.parquet.write_table(shuffled_ledger(), path, row_group_size=50)
    audits = [tmp_path / f"{name}.csv" for name in ("here", "there")]
    here, there = (
        audit_table(path, "total", terms="columns", max_memory=10_000, client=one, audit=audit)
        for one, audit in zip((None, client), audits, strict=True)
    )
    assert here.whole is not None
    assert {BEFORE, AFTER, SWAPPED} <= {kind.label for kind in here.kinds.kinds}
    assert facts_of(there) == facts_of(here)
    assert audits[0].read_bytes() == audits[1].read_bytes()


@pytest.mark.slow
def test_a_cluster_names_the_row_and_the_file_at_fault(client, tmp_path):
    with pytest.raises(TableError, match=r'"items".*row 5,433'):
        audit_table(spoilt(tmp_path, "1e999"), "total", terms="columns", client=client)
    with pytest.raises(TableError, match="a cluster reads Parquet files"):
        audit_table(write(ledger(), tmp_path, "csv"), "total", client=client)


@pytest.mark.full
@pytest.mark.slow
def test_the_command_line_starts_a_cluster(tmp_path, capsys):
    pytest.importorskip("distributed", reason="Dask is not installed: massart[dask]")
    path = write(ledger(), tmp_path, "parquet")
    assert run(["fit", str(path), "--target", "total", "--terms", "columns", "--dask", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["verdict"] == "CONFIRMED"
    assert facts["rows"] == 6_000


def test_a_cluster_that_does_not_answer_is_one_line(tmp_path, capsys, monkeypatch):
    pytest.importorskip("distributed", reason="Dask is not installed: massart[dask]")
    monkeypatch.setattr("massart.cli.files._SECONDS", 0.5)
    path = write(ledger(), tmp_path, "parquet")
    assert run(["fit", str(path), "--target", "total", "--dask", "tcp://127.0.0.1:9"]) == 2
    assert "no Dask scheduler answers there" in capsys.readouterr().err
