"""Exported rules in the tools they are for, and whether these find the rows that massart finds.

    python benchmarks/export.py --seed 1 --rows 4000
    python benchmarks/export.py --small        # as CI runs it

Each case of `export_cases` is exported to every target and run there: SQL in DuckDB, SQLite and PostgreSQL (where its
programs are on the path), the Python module, the schema of pandera, the suite of Great Expectations on SQLite, the test
of dbt on DuckDB, the cell formulas as `cell_formulas` computes them, and in LibreOffice. Tools that are not installed
are said and skipped. Exit status 1 unless all that ran agree with massart to the row.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cell_formulas import cell, read
from export_cases import CASES, OF_SHEETS, OF_SQL, ROW, Case, cases
from massart.export import dbt_properties, export
from massart.export.excel import letters

Found = dict[str, frozenset[int]]
_ANY = {"max_unjudged": 1.0}  # a table of which many rows are not judged is no fault here
_SHOWN_BY_GX = 200


def in_duckdb(chosen: Sequence[Case]) -> Found:
    """Run the SELECTs in DuckDB."""
    import duckdb

    found = {}
    for case in chosen:
        with duckdb.connect() as database:
            database.register("arrow", case.table)
            database.execute('CREATE TABLE "my data" AS SELECT * FROM arrow')
            found[case.name] = _rows(database.execute(export(case.model, "sql", "my data", **_ANY)))
    return found


def in_sqlite(chosen: Sequence[Case]) -> Found:
    """Run the SELECTs in SQLite."""
    found = {}
    for case in chosen:
        with sqlite3.connect(":memory:") as database:
            _fill_sqlite(database, case, "my data")
            found[case.name] = _rows(database.execute(export(case.model, "sql", "my data", **_ANY)))
    return found


def in_postgresql(chosen: Sequence[Case]) -> Found:
    """Run the SELECTs in a server of PostgreSQL that lives as long as this does."""
    import psycopg

    found = {}
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, _postgresql(folder) as address:
        for case in chosen:
            with psycopg.connect(address) as database:
                names = ", ".join(
                    f"{_quoted(name)} {kind}" for name, kind in _types(case, "double precision", "boolean")
                )
                database.execute(f'CREATE TEMPORARY TABLE "my data" ({names})')
                values = ", ".join(["%s"] * case.table.num_columns)
                database.cursor().executemany(f'INSERT INTO "my data" VALUES ({values})', _tuples(case))
                found[case.name] = _rows(database.execute(export(case.model, "sql", "my data", **_ANY).encode()))
    return found


def in_python(chosen: Sequence[Case]) -> Found:
    """Call the function for each row."""
    found = {}
    for case in chosen:
        module = _run(export(case.model, "python"))
        found[case.name] = frozenset(row[ROW] for row in case.table.to_pylist() if module["wrong"](row))
    return found


def in_pandera(chosen: Sequence[Case]) -> Found:
    """Validate data frames of pandas."""
    import pandera.errors

    found = {}
    for case in chosen:
        schema = _run(export(case.model, "pandera", **_ANY))["schema"]
        frame = case.table.to_pandas().set_index(ROW, drop=False)
        try:
            schema.validate(frame, lazy=True)
            found[case.name] = frozenset()
        except pandera.errors.SchemaErrors as error:
            found[case.name] = frozenset(int(row) for row in error.failure_cases["index"])
    return found


def in_great_expectations(chosen: Sequence[Case]) -> Found:
    """Validate tables of SQLite; it counts all unexpected rows and shows the first 200."""
    import great_expectations as gx

    found = {}
    context = gx.get_context(mode="ephemeral")
    with tempfile.TemporaryDirectory() as folder:
        for case in chosen:
            path = Path(folder) / f"{case.key}.db"
            with sqlite3.connect(path) as database:
                _fill_sqlite(database, case, "ledger")
            source = context.data_sources.add_sqlite(case.key, connection_string=f"sqlite:///{path}")
            batch = source.add_table_asset("ledger", table_name="ledger").add_batch_definition_whole_table("whole")
            suite = context.suites.add(_run(export(case.model, "great-expectations", **_ANY))["suite"])
            result = batch.get_batch().validate(suite, result_format="COMPLETE").results[0].result
            shown = frozenset(int(row[ROW]) for row in result["details"]["unexpected_rows"])
            same = shown <= case.wrong and len(shown) == min(result["observed_value"], _SHOWN_BY_GX)
            found[case.name] = case.wrong if same and result["observed_value"] == len(case.wrong) else shown
            context.suites.delete(suite.name)
    return found


def in_dbt(chosen: Sequence[Case]) -> Found:
    """Run a project of dbt, with a test for each case, on DuckDB."""
    import duckdb

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for inner in ("models", "tests"):
            (folder / inner).mkdir()
        profile = {"checks": {"target": "dev", "outputs": {"dev": {"type": "duckdb", "path": str(folder / "dbt.db")}}}}
        project = {"name": "checks", "version": "1.0.0", "config-version": 2, "profile": "checks"}
        project |= {"model-paths": ["models"], "test-paths": ["tests"]}
        (folder / "profiles.yml").write_text(json.dumps(profile))
        (folder / "dbt_project.yml").write_text(json.dumps(project))
        with duckdb.connect(folder / "dbt.db") as database:
            for case in chosen:
                database.register("arrow", case.table)
                database.execute(f"CREATE TABLE raw_{case.key} AS SELECT * FROM arrow")
                database.unregister("arrow")
                (folder / f"models/{case.key}.sql").write_text(f"SELECT * FROM raw_{case.key}")
                (folder / f"tests/assert_{case.key}.sql").write_text(export(case.model, "dbt", case.key, **_ANY))
                (folder / f"tests/assert_{case.key}.yml").write_text(dbt_properties(case.model, f"assert_{case.key}"))
        environment = {**os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
        options = ["--project-dir", name, "--profiles-dir", name, "--store-failures", "--no-partial-parse"]
        dbt = shutil.which("dbt") or str(Path(sys.executable).with_name("dbt"))
        told = subprocess.run([dbt, "build", *options], env=environment, capture_output=True, text=True, check=False)
        if told.returncode not in (0, 1):
            raise RuntimeError(told.stdout[-3000:])
        with duckdb.connect(folder / "dbt.db") as database:
            tables = {case.name: f"main_dbt_test__audit.assert_{case.key}" for case in chosen}
            return {name: _rows(database.execute(f"SELECT * FROM {table}")) for name, table in tables.items()}


def in_cells(chosen: Sequence[Case]) -> Found:
    """Compute the formulas as Excel does, row by row."""
    found = {}
    for case in chosen:
        names = case.table.column_names
        formulas = {place[:-1]: read(text) for place, text in _formulas(case).items()}
        wrong, above = set(), dict.fromkeys((f"{letters(k)}1" for k in range(len(names))), "a title")
        for row, values in enumerate(_tuples(case)):
            cells = above | {f"{letters(k)}2": cell(value) for k, value in enumerate(values)}
            for place, formula in formulas.items():
                cells[f"{place}2"] = formula(cells)
            if cells[f"{[*formulas][-1]}2"] is False:
                wrong.add(row)
            above = {f"{letters(k)}1": cells[f"{letters(k)}2"] for k in range(len(names))}
        found[case.name] = frozenset(wrong)
    return found


def _formulas(case: Case) -> dict[str, str]:
    """Return the formulas of the second row, by their cells."""
    lines = export(case.model, "excel", header=case.table.column_names).splitlines()
    return {lines[k - 1].split()[0]: line for k, line in enumerate(lines) if line.startswith("=")}


def in_libreoffice(chosen: Sequence[Case]) -> Found:
    """Write the formulas into workbooks, beside the cells, and let LibreOffice compute them."""
    import openpyxl
    from openpyxl.formula.translate import Translator

    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for case in chosen:
            book = openpyxl.Workbook()
            sheet = book.active
            header = case.table.column_names
            sheet.append([*header, "expected", "allowed", "right"])
            formulas = _formulas(case)
            for k, row in enumerate(_tuples(case)):
                sheet.append(row)
                for place, formula in formulas.items():
                    there = f"{place[:-1]}{k + 2}"
                    sheet[there] = Translator(formula, origin=place).translate_formula(there)
            book.save(folder / f"{case.key}.xlsx")
        (folder / "out").mkdir()
        command = ["soffice", f"-env:UserInstallation=file://{name}/profile", "--headless", "--convert-to", "xlsx"]
        files = [str(folder / f"{case.key}.xlsx") for case in chosen]
        subprocess.run([*command, "--outdir", f"{name}/out", *files], check=True, capture_output=True)
        for case in chosen:
            sheet = openpyxl.load_workbook(folder / "out" / f"{case.key}.xlsx", data_only=True).active
            rows = sheet.iter_rows(min_row=2, max_row=case.table.num_rows + 1, values_only=True)
            found[case.name] = frozenset(k for k, row in enumerate(rows) if row[-1] is False)
    return found


TOOLS: Mapping[str, tuple[Callable[[Sequence[Case]], Found], Sequence[str], Sequence[str]]] = {
    "DuckDB": (in_duckdb, ("duckdb",), ()),
    "SQLite": (in_sqlite, (), ()),
    "PostgreSQL": (in_postgresql, ("psycopg",), ("initdb", "pg_ctl")),
    "Python": (in_python, (), ()),
    "pandera": (in_pandera, ("pandera", "pandas"), ()),
    "Great Expectations": (in_great_expectations, ("great_expectations",), ()),
    "dbt": (in_dbt, ("dbt", "duckdb"), ()),
    "cell formulas": (in_cells, (), ()),
    "LibreOffice": (in_libreoffice, ("openpyxl",), ("soffice",)),
}
"""What runs exported rules, the packages and the programs that each needs."""

ORDERED = {
    **dict.fromkeys(("DuckDB", "SQLite", "PostgreSQL", "Great Expectations", "dbt"), tuple(OF_SQL)),
    **dict.fromkeys(("cell formulas", "LibreOffice"), tuple(OF_SHEETS)),
}
"""The rules that look at the row before, of those that a tool can say."""


def lacks(tool: str) -> list[str]:
    """Return what a tool needs and is not installed."""
    _, packages, programs = TOOLS[tool]
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    return missing + [program for program in programs if shutil.which(program) is None]


def _run(text: str) -> dict[str, Any]:
    space: dict[str, Any] = {}
    exec(compile(text, "exported", "exec"), space)
    return space


def _rows(result: Any) -> frozenset[int]:
    names = [column[0] for column in result.description]
    place = names.index(ROW)
    assert {"massart_expected", "massart_difference"} <= set(names)
    return frozenset(int(row[place]) for row in result.fetchall())


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _types(case: Case, number: str, boolean: str) -> Iterator[tuple[str, str]]:
    for field in case.table.schema:
        kind = str(field.type)
        words = {"bool": boolean, "string": "text", "date32[day]": "date", "int64": "bigint"}
        yield field.name, words.get(kind, number)


def _tuples(case: Case) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in case.table.columns), strict=True))


def _fill_sqlite(database: sqlite3.Connection, case: Case, table: str) -> None:
    names = ", ".join(f"{_quoted(name)} {kind}" for name, kind in _types(case, "real", "integer"))
    database.execute(f"CREATE TABLE {_quoted(table)} ({names})")
    rows = [[v.isoformat() if isinstance(v, datetime.date) else v for v in row] for row in _tuples(case)]
    database.executemany(f"INSERT INTO {_quoted(table)} VALUES ({', '.join('?' * len(case.table.schema))})", rows)


class _postgresql:  # noqa: N801
    """A server in a folder, reached by a socket in it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __enter__(self) -> str:
        self._call("initdb", "--auth=trust", "--username=me", "--encoding=UTF8", "--locale=C", f"{self.folder}/data")
        options = f"-k {self.folder} -c listen_addresses= -c fsync=off"
        self._call("pg_ctl", "-D", f"{self.folder}/data", "-w", "-l", f"{self.folder}/log", "-o", options, "start")
        return f"host={self.folder} user=me dbname=postgres"

    def __exit__(self, *_: object) -> None:
        self._call("pg_ctl", "-D", f"{self.folder}/data", "-m", "immediate", "stop")

    def _call(self, *words: str) -> None:
        user = None
        if os.getuid() == 0:  # as which no server runs
            user = "nobody"
            shutil.chown(self.folder, user)
        subprocess.run(words, check=True, capture_output=True, user=user, cwd=self.folder)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all tools that are installed on all cases."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--cases", nargs="*", default=list(CASES))
    parser.add_argument("--tools", nargs="*", default=list(TOOLS))
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args(arguments)
    n_rows = 600 if options.small else options.rows
    chosen = cases(options.seed, n_rows, options.cases)
    ordered = {one.name: one for one in cases(options.seed, n_rows, (*OF_SQL, *OF_SHEETS))}
    judged, wrong = sum(one.judged for one in chosen), sum(len(one.wrong) for one in chosen)
    print(f"{len(chosen)} models, {judged:,} rows judged, {wrong:,} of them wrong by massart")
    failed = 0
    for tool in options.tools:
        if missing := lacks(tool):
            print(f"{tool:20} not run: {', '.join(missing)} not installed")
            continue
        start = time.perf_counter()
        these = [*chosen, *(ordered[name] for name in ORDERED.get(tool, ()))]
        found = TOOLS[tool][0](these)
        differing = {one.name: len(found[one.name] ^ one.wrong) for one in these}
        differing = {name: count for name, count in differing.items() if count}
        failed += len(differing)
        same = len(these) - len(differing)
        print(
            f"{tool:20} {same} of {len(these)} models to the row, {time.perf_counter() - start:.1f} s", differing or ""
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
