"""What is fuzzed, and what has to hold: a right answer or one clear line, the same again, and no file half written.

A case is some files and some arguments. A target makes one from random numbers, and looks at it in a folder; what it
returns tells what came of it, so that the same case can be seen to give the same again. Any exception is a finding.
"""

from __future__ import annotations

import base64
import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
from fuzz import mutations
from pyarrow import parquet

import massart.cli.app
from massart.audit import ModelError, apply_model, audit_table, check_table, load_model
from massart.cli import run
from massart.cli.config import read_config
from massart.export import TARGETS as EXPORTS
from massart.export import ExportError, export
from massart.rules import Columns, Levels, TermError, parse_formula, parse_terms
from massart.tables import TableError, read_table, stream_table

SMALL = 1 << 12
"""Bytes that a stream may take: many blocks even of a small file."""


@dataclass(frozen=True)
class Case:
    """Files, and arguments whose meaning is the target's."""

    target: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()

    def to_json(self, why: str = "") -> str:
        files = {}
        for name, content in self.files.items():
            try:
                files[name] = content.decode()
            except UnicodeDecodeError:
                files[name] = {"base64": base64.b64encode(content).decode()}
        return json.dumps({"target": self.target, "why": why, "arguments": self.arguments, "files": files}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Case:
        found = json.loads(text)
        files = {
            name: content.encode() if isinstance(content, str) else base64.b64decode(content["base64"])
            for name, content in found["files"].items()
        }
        return cls(found["target"], files, tuple(found["arguments"]))

    def lay(self, folder: Path) -> None:
        for name, content in self.files.items():
            (folder / name).write_bytes(content)


def one_line(error: Exception) -> str:
    text = str(error)
    assert text, "an error without words"
    assert text.isprintable(), f"not one printable line: {text!r}"
    assert len(text) < 2_000, f"{len(text)} characters: {text[:200]!r}"
    return text


# --- readers ----------------------------------------------------------------------------------------------------------


def make_read(rng: Random) -> Case:
    name, content = mutations.any_file(rng)
    return Case("read", {name: content})


def look_read(case: Case, folder: Path) -> str:
    """A file is one table, or refused, whether it is read as a whole or in blocks."""
    (name,) = case.files
    path = folder / name
    found: list[pa.Table | str] = []
    for _ in range(2):
        try:
            found.append(read_table(path).arrow)
        except TableError as error:
            found.append(one_line(error))
    assert _same(found[0], found[1]), "read twice, it is not the same"
    try:
        with stream_table(path, max_memory=SMALL) as stream:
            streamed: pa.Table | str = stream.whole().arrow
    except TableError as error:
        streamed = one_line(error)
    whole = found[0]
    assert isinstance(whole, str) == isinstance(streamed, str), f"whole: {_short(whole)}; in blocks: {_short(streamed)}"
    if not isinstance(whole, str):
        assert _same(whole, streamed), f"whole: {_short(whole)}; in blocks: {_short(streamed)}"
    return _short(whole)


def _same(one: pa.Table | str, other: pa.Table | str) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return isinstance(one, str) and isinstance(other, str) and one == other
    if one.schema.types != other.schema.types or one.column_names != other.column_names:
        return False
    try:
        return repr(one.to_pylist()) == repr(other.to_pylist()) or one.equals(other)  # repr: NaN is itself
    except OverflowError:  # dates that Python has none of
        return one.equals(other)


def _short(found: pa.Table | str) -> str:
    if isinstance(found, str):
        return found
    return f"{found.num_rows} rows of {', '.join(f'{name!r} {kind}' for name, kind in _fields(found))}"[:1_000]


def _fields(table: pa.Table) -> Iterator[tuple[str, pa.DataType]]:
    return zip(table.column_names, table.schema.types, strict=True)


# --- models -----------------------------------------------------------------------------------------------------------

TERMS = (
    ("columns", {}),
    ("hours, items, region", {}),
    ("hours:region, max(0, items - 5), log(hours)", {"tolerance": 50.0}),
    ("(day >= 2024-01-20)*hours, month(day), items^2, hours/items", {"tolerance": 100.0}),
    ("lag(hours), cumsum(items), lag(total)", {"tolerance": 100.0}),
)


@cache
def models() -> tuple[Any, ...]:
    """Trees of saved models of several kinds."""
    table = mutations.arrow_table()
    found = []
    for terms, options in TERMS:
        audit = audit_table(table, "total", terms=terms, exclude=["job", "note"], **options)
        found.append(json.loads(audit.model().to_json()))
    return tuple(found)


def make_model(rng: Random) -> Case:
    tree = rng.choice(models())
    if rng.randrange(4) == 0:
        content = mutations.bytes_spoiled(json.dumps(tree).encode(), rng)
    else:
        content = json.dumps(mutations.tree_spoiled(tree, rng)).encode()
    return Case("model", {"model.json": content, "t.csv": mutations.plain_csv().encode()})


def look_model(case: Case, folder: Path) -> str:
    """A model is refused, or it is saved as it was read, and applies or says to which tables it does not."""
    try:
        model = load_model(folder / "model.json")
    except ModelError as error:
        return one_line(error)
    again = folder / "again.json"
    model.save(again)
    text = load_model(again).to_json()
    again.unlink()
    assert text == model.to_json(), "a saved model is not what was read"
    said = []
    for look in (
        lambda: check_table(model, folder / "t.csv").outcome.reason,
        lambda: repr(apply_model(model, read_table(folder / "t.csv")).columns["implied"])[:300],
    ):
        try:
            said.append(look())
        except TableError as error:
            said.append(one_line(error))
    for to in EXPORTS:
        try:
            said.append(str(len(export(model, to, "t", mutations.NAMES))))
        except ExportError as error:
            said.append(one_line(error))
    return "; ".join(said)


# --- terms, formulas and the configuration file -----------------------------------------------------------------------

WORDS = (
    *(
        "qty",
        "price",
        "`unit price`",
        "in",
        "region",
        "day",
        "total",
        "north",
        "`a``b`",
        "größe",
        "lambda",
        "x.y",
        "1",
        "0",
    ),
    *(
        "2",
        "-3",
        "1e9",
        "1e999",
        "0.5",
        ".5",
        "9" * 50,
        "2024-05-01",
        "'north'",
        '"a b"',
        "True",
        "None",
        "...",
        ".",
        ",",
    ),
    *(
        "+",
        "-",
        "*",
        "/",
        "^",
        "**",
        ":",
        "<",
        "<=",
        ">",
        ">=",
        "=",
        "==",
        "!=",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "~",
        "|",
        "%",
    ),
    *(
        "max(",
        "min(",
        "log(",
        "exp(",
        "sqrt(",
        "abs(",
        "lag(",
        "cumsum(",
        "C(",
        "I(",
        "month(",
        "year(",
        "weekday(",
        "by=",
    ),
    *(
        "order=",
        "floor(",
        "round(",
        "columns",
        "auto",
        "not",
        "and",
        "or",
        "if",
        "else",
        "for",
        ":=",
        "@",
        "#",
        "\\",
        "\n",
    ),
    *(
        "\t",
        " ",
        "\0",
        "²",
        "５",
        "é",
        "\u2028",
        "`",
        "``",
        "'",
        '"',
        "f'{x}'",
        "0x10",
        "1_0",
        "1j",
        "b''",
        "__class__",
    ),
)
SENTENCES = (
    "qty*price, region, max(0, qty - 200), qty:region",
    "(day >= 2024-05-01)*qty, (region = north), lag(qty, by=region, order=day), qty^2/price",
    "total ~ qty:price + qty:C(region) + I(day >= 2024-05-01):qty - 1",
    "`total` ~ 0 + (qty + price)^2 + I(qty^2)",
)


@cache
def columns() -> Columns:
    numbers = dict.fromkeys(
        ("qty", "price", "unit price", "in", "a`b", "größe", "lambda", "x.y"), np.array([1.0, 2.0, 3.0])
    )
    numbers["day"] = np.array([0.0, 9_000.0, 20_000.0])
    return Columns(
        numbers, {"region": Levels(np.array([0, 1, 2], dtype=np.int32), ("north", "c d", "3"))}, frozenset({"day"})
    )


def make_terms(rng: Random) -> Case:
    if rng.randrange(2):
        text = "".join(rng.choice(WORDS) + rng.choice(("", "", " ")) for _ in range(rng.choice((1, 3, 8, 20, 200))))
    else:
        text = rng.choice(SENTENCES)
        for _ in range(rng.choice((1, 2, 4))):
            at, n_lost = rng.randrange(len(text) + 1), rng.choice((0, 0, 1, 3, 10))
            text = text[:at] + rng.choice((*WORDS, text[at : at + 20], text[:at])) + text[at + n_lost :]
        if rng.randrange(20) == 0:
            text = text * rng.choice((10, 300))
    return Case("terms", {}, (text,))


def look_terms(case: Case, folder: Path) -> str:
    """A text is terms whose own text is read as the same terms, or it is refused; so is a formula."""
    (text,) = case.arguments
    try:
        terms = parse_terms(text, columns())
        again = parse_terms(", ".join(map(str, terms)), columns())
        assert set(again) == set(terms), f"written {', '.join(map(str, terms))}"
        said = ", ".join(map(str, terms))
    except TermError as error:
        said = one_line(error)
    try:
        target, terms, constant = parse_formula(text if "~" in text else f"total ~ {text}", columns())
        return f"{said}; {target}, {', '.join(map(str, terms))}, {constant}"
    except TermError as error:
        return f"{said}; {one_line(error)}"


CONFIG = """\
max_wrong = 0.25
require = "confirmed"

[[check]]
model = ["model.json", "other.json"]
files = ["*.csv", "t.csv"]
id = "job"
na = ["-99", "?"]
skip = 0
strict = true

[[check]]
target = "total"
files = "t.csv"
delimiter = ","
max_memory = "1GB"
"""


def make_config(rng: Random) -> Case:
    text = CONFIG
    if rng.randrange(3) == 0:
        content = mutations.bytes_spoiled(text.encode(), rng)
    else:
        values = (
            "true",
            "-1",
            "1.5",
            "nan",
            "inf",
            '""',
            "[]",
            "[1]",
            "{}",
            "1979-05-27",
            '"\\u0000"',
            '"["',
            '"**/*"',
        )
        lines = text.splitlines()
        for _ in range(rng.choice((1, 2, 4))):
            i = rng.randrange(len(lines))
            key = lines[i].split("=")[0]
            lines[i] = rng.choice(
                (f"{key}= {rng.choice(values)}", f"{key}x = 1", "", lines[i] * 2, "[check]", "[[check]]")
            )
            lines.insert(rng.randrange(len(lines)), rng.choice(lines))
        content = "\n".join(lines).encode()
    return Case("config", {"massart.toml": content, "t.csv": mutations.plain_csv().encode()})


def look_config(case: Case, folder: Path) -> str:
    """A configuration file is a list of tasks, or refused."""
    try:
        return "\n".join(map(str, read_config(folder / "massart.toml"))).replace(str(folder), "")
    except UnicodeError:
        raise
    except ValueError as error:
        return one_line(error).replace(str(folder), "")


# --- the command line -------------------------------------------------------------------------------------------------

VALUES = (
    *("total", "hours", "items", "region", "day", "job", "note", "Total", "", "a,b", "hours,items", "hours, items"),
    *("0", "1", "-1", "0.5", "1e9", "nan", "inf", "-inf", "1e-300", "x", "auto", "columns", "tab", ",", ";", "."),
    *("\t", "hours, items, hours:region", "max(0, hours - 5)", "lag(total)", "total ~ hours + items"),
    *("total ~ C(region)"),
    *(
        "utf-8",
        "latin-1",
        "utf-16",
        "rot13",
        "base64",
        "idna",
        "undefined",
        "zlib",
        "1GB",
        "10 kB",
        "1",
        "north",
        "-99",
    ),
    *(
        "majority",
        "confirmed",
        "proven",
        "linear",
        "relu",
        "sql",
        "python",
        "excel",
        "pandera",
        "dbt",
        "great-expectations",
    ),
)
OUTPUTS = (
    "out.csv",
    "out.parquet",
    "out.html",
    "out.json",
    "out.xlsx",
    "out.csv.gz",
    "out",
    "no/out.csv",
    "t.csv",
    ".",
    "",
)
_TABLE = ("--delimiter", "--decimal", "--encoding", "--sheet", "--skip", "--na")
_COMMON = ("--id", "--group", "--max-wrong", "--require", "--max-memory")
COMMANDS = {
    "fit": (
        ("--target", "--terms", "--formula", "--model", "--features", "--exclude", "--category", "--number")
        + ("--error-unit", "--wrong-at-most", "--tolerance", "--seed", *_COMMON, *_TABLE),
        ("--strict", "--fill", "--force", "--json", "--all-rows", "--no-intercept", "--quiet"),
        ("--report", "--audit", "--fixed", "--save"),
    ),
    "scan": (("--exclude", "--most-terms", "--wrong-at-most", "--seed", *_TABLE), ("--json", "--quiet"), ("--report",)),
    "check": ((*_COMMON, *_TABLE), ("--strict", "--json", "--all-rows", "--quiet"), ("--report", "--audit")),
    "predict": (("--id", *_TABLE), ("--quiet",), ("--out",)),
    "export": (("--to", "--table"), ("--quiet",), ("--output",)),
}


def make_command(rng: Random) -> Case:
    command = rng.choice(("fit", "fit", "fit", *COMMANDS))
    valued, flags, outputs = COMMANDS[command]
    files = {"t.csv": mutations.plain_csv().encode(), "model.json": json.dumps(rng.choice(models())).encode()}
    name = "t.csv"
    if rng.randrange(2):
        name, content = mutations.any_file(rng)
        files[name] = content
    arguments = [command] + (["model.json"] if command in ("check", "predict", "export") else [])
    if command != "export":
        arguments.append(rng.choice((name, name, name, name, name, name, name, "-", ".", "*", "no.csv")))
    if command == "fit" and rng.randrange(8):
        arguments += ["--target", "total"]
    if command == "fit" and rng.randrange(3):
        arguments += ["--terms", "columns"]
    if command == "export" and rng.randrange(8):
        arguments += ["--to", rng.choice(EXPORTS)]
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        arguments += [rng.choice(valued), rng.choice(VALUES)]
    arguments += rng.sample(flags, rng.choice((0, 0, 1, min(2, len(flags)))))
    for option in rng.sample(outputs, rng.randrange(len(outputs) + 1)):
        arguments += [option, rng.choice(OUTPUTS[:5] if rng.randrange(4) else OUTPUTS)]
    if rng.randrange(10) == 0:
        rng.shuffle(arguments)
    if rng.randrange(20) == 0:
        del arguments[rng.randrange(len(arguments))]
    return Case("command", files, tuple(arguments))


def _asks_for_json(arguments: tuple[str, ...]) -> bool:
    """Tell whether --json is an option and not the value of the one before it."""
    takes = {option for valued, _, outputs in COMMANDS.values() for option in (*valued, *outputs)}
    return any(word == "--json" and before not in takes for before, word in pairwise(arguments))


def look_command(case: Case, folder: Path) -> str:
    """Any arguments give a result or one line, with the exit status that belongs to it, and files that are whole."""
    before = {path.name for path in folder.iterdir()}
    given = next((content for name, content in case.files.items() if name != "model.json"), b"")
    with _inside(folder), _standard_input(given), _no_strangers():
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            status = run(list(case.arguments))
    assert status in (0, 1, 2, 3), f"exit status {status}"
    assert "Traceback" not in err.getvalue(), err.getvalue()
    if status == 2:
        complaint = err.getvalue().splitlines()[-1:] or [""]
        of_several = "check" in case.arguments and "not checked" in out.getvalue()
        assert complaint[0].startswith("massart: ") or of_several or "--json" in case.arguments, f"silent: {complaint}"
    if _asks_for_json(case.arguments) and out.getvalue() and status != 2:
        json.loads(out.getvalue(), parse_constant=_no_constant)
    for name, content in case.files.items():
        if name not in case.arguments[2:]:
            assert (folder / name).read_bytes() == content, f"{name}, which was read, has changed"
    for path in [path for path in folder.iterdir() if path.name not in before]:
        check_whole(path)
        path.unlink()
    return f"{status}: {err.getvalue()}{out.getvalue()}"


def _no_constant(text: str) -> float:
    raise AssertionError(f"{text} is no JSON")


def check_whole(path: Path) -> None:
    """Raise AssertionError if an output is not whole."""
    assert not path.name.startswith("."), f"{path.name} was left behind"
    content = path.read_bytes()
    if content.startswith(b"PAR1"):
        parquet.read_table(path)
    elif path.suffix == ".json" and content.startswith(b"{"):
        for line in content.splitlines() if b'"format": "massart model"' not in content else [content]:
            json.loads(line, parse_constant=_no_constant)
    elif content.startswith(b"<!doctype html>"):
        assert content.rstrip().endswith(b"</html>"), f"{path.name} has no end"
    else:
        assert content.startswith((b"PK", b"\x1f\x8b")) or content.endswith(b"\n"), f"{path.name} has no end"


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def _standard_input(content: bytes) -> Iterator[None]:
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(content))
    try:
        yield
    finally:
        sys.stdin = before


OURS = (os.sep + "massart" + os.sep, os.sep + "typer" + os.sep, os.sep + "click" + os.sep)


@contextmanager
def _no_strangers() -> Iterator[None]:
    """Let no error pass for a message that comes from a library, and not from a line of ours that raises it."""
    plain = massart.cli.app.commands

    def strict(app: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return app(*args, **kwargs)
        except ValueError as error:
            trace = error.__traceback__
            while trace is not None and trace.tb_next is not None:
                trace = trace.tb_next
            where = "" if trace is None else trace.tb_frame.f_code.co_filename
            if not any(part in where for part in OURS):
                raise AssertionError(f"a message of {where}: {error}") from error
            raise

    massart.cli.app.commands = lambda asked: partial(strict, plain(asked))  # type: ignore[assignment,return-value]
    try:
        yield
    finally:
        massart.cli.app.commands = plain


TARGETS: dict[str, tuple[Callable[[Random], Case], Callable[[Case, Path], str]]] = {
    "read": (make_read, look_read),
    "model": (make_model, look_model),
    "terms": (make_terms, look_terms),
    "config": (make_config, look_config),
    "command": (make_command, look_command),
}


def look(case: Case, folder: Path) -> str:
    """Lay the files of a case into an empty folder, and look at it twice."""
    target = TARGETS[case.target][1]
    case.lay(folder)
    said = target(case, folder)
    case.lay(folder)
    assert target(case, folder) == said, "the same case gives something else"
    for name in case.files:
        with suppress(FileNotFoundError):
            (folder / name).unlink()
    left = sorted(path.name for path in folder.rglob("*"))
    assert not left, f"left behind: {left}"
    return said
