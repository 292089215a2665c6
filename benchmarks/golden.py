"""What a user sees of sixty small tables, kept word for word: ``python benchmarks/golden.py`` writes it anew.

Each case of :mod:`golden_tables` is fitted by ``massart fit``, and all that comes out is kept in
``tests/golden/NAME.json``: the exit status, both streams of the terminal, the text of the page, the audit, the fixed
table and the model; of cases with options of their own the JSON, too, and of some what a stream of blocks and a Dask
cluster give. ``tests/test_golden.py`` compares. A commit that changes a golden file says why.

``python benchmarks/golden.py plain noisy`` writes only these; ``--compare`` writes nothing and prints what differs.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import golden_tables
from golden_tables import Case
from massart.cli import run

GOLDEN = Path(__file__).parents[1] / "tests" / "golden"
OUTPUTS = {"audit": "audit.csv", "fixed": "fixed.csv", "save": "model.json", "report": "page.html"}
BLOCKS = "--max-memory=10kB"
Lines = list[str]


def outputs(case: Case, *, client_address: str | None = None) -> dict[str, Lines]:
    """Return all that massart says of a case, line by line.

    Parameters
    ----------
    case : Case
    client_address : str, optional
        Of a Dask cluster; where it is missing, nothing is asked of a cluster.
    """
    found = _fit(case, "memory", all_files=True)
    if case.streams:
        found |= _fit(case, "stream", BLOCKS)
        if client_address is not None:
            found |= _fit(case, "dask", BLOCKS, "--dask", client_address, parquet=True)
    return found


def _fit(case: Case, how: str, *options: str, all_files: bool = False, parquet: bool = False) -> dict[str, Lines]:
    """Return what one way of fitting a case gives: its streams, its status and its files."""
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        path = case.write(Path())
        if parquet:
            path = _as_parquet(path)
        names = OUTPUTS if all_files else {"audit": OUTPUTS["audit"]}
        files = [part for option, file in names.items() for part in (f"--{option}", file)]
        arguments = ["fit", str(path), *case.options, *options, "--all-rows"]
        found = _spoken(how, [*arguments, *files])
        for option, file in names.items():
            found[f"{how} {option}"] = _read(Path(file))
        if all_files and not case.name.startswith("rule-"):
            found |= {f"{how} json": _spoken("", [*arguments, "--json"])[" stdout"]}
    return found


def _spoken(how: str, arguments: list[str]) -> dict[str, Lines]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run(arguments)
    return {
        f"{how} status": [str(status)],
        f"{how} stdout": out.getvalue().splitlines(),
        f"{how} stderr": err.getvalue().splitlines(),
    }


def _read(path: Path) -> Lines:
    if not path.exists():
        return ["(not written)"]
    text = path.read_text(encoding="utf-8")
    return _page_lines(text) if path.suffix == ".html" else text.splitlines()


def _as_parquet(path: Path) -> Path:
    """Write a CSV file as a Parquet file of small row groups, which a cluster reads apart."""
    from pyarrow import csv, parquet

    target = path.with_suffix(".parquet")
    parquet.write_table(csv.read_csv(path), target, row_group_size=50)
    return target


class _Text(HTMLParser):
    """The words of a page, without its style, its pictures and its programs."""

    SILENT = frozenset({"style", "script", "svg"})

    def __init__(self) -> None:
        super().__init__()
        self.words: Lines = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._silent += tag in self.SILENT

    def handle_endtag(self, tag: str) -> None:
        self._silent -= tag in self.SILENT

    def handle_data(self, data: str) -> None:
        if not self._silent and (words := " ".join(data.split())):
            self.words.append(words)


_DAY = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d")
_VERSIONS = re.compile(r"Python 3[0-9.]+, massart .*")


def _page_lines(text: str) -> Lines:
    page = _Text()
    page.feed(text)
    return [_VERSIONS.sub("(versions)", _DAY.sub("(day and time)", words)) for words in page.words]


@contextlib.contextmanager
def cluster() -> Iterator[str | None]:
    """Start a Dask cluster in this process and give its address; None where Dask is missing."""
    try:
        from distributed import LocalCluster
    except ImportError:
        yield None
        return
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=":0", silence_logs=50
    ) as here:
        yield here.scheduler_address


# --- what is kept, and what differs from it ---

RELATIVE, ABSOLUTE = 1e-6, 1e-9
"""How far a number may be from the one that was kept: other machines round other sums."""

_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def kept(name: str) -> dict[str, Lines]:
    """Return what was kept of a case."""
    found = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def differences(before: dict[str, Lines], now: dict[str, Lines]) -> Lines:
    """Return the lines that differ in more than the last digits of their numbers, as a diff."""
    found: Lines = []
    for part in {**before, **now}:
        old, new = before.get(part, []), now.get(part, [])
        if len(old) != len(new) or not all(map(_same, old, new)):
            found += [f"=== {part}", *difflib.unified_diff(old, new, "kept", "now", lineterm="", n=0)]
    return found


def _same(old: str, new: str) -> bool:
    """Whether two lines have the same words, and numbers within `RELATIVE` or `ABSOLUTE`."""
    if old == new:
        return True
    if _NUMBER.split(old) != _NUMBER.split(new):
        return False
    pairs = zip(_NUMBER.findall(old), _NUMBER.findall(new), strict=True)
    return all(_near(*(float(text) for text in pair)) for pair in pairs)


def _near(old: float, new: float) -> bool:
    return abs(old - new) <= ABSOLUTE + RELATIVE * max(abs(old), abs(new))


def main() -> int:
    """Write the golden files, or compare with them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="cases; all by default")
    parser.add_argument("--compare", action="store_true", help="write nothing, and print what differs")
    asked = parser.parse_args()
    chosen = [case for case in golden_tables.cases() if not asked.names or case.name in asked.names]
    if missing := set(asked.names) - {case.name for case in chosen}:
        parser.error(f"there is no case {', '.join(sorted(missing))}")
    GOLDEN.mkdir(exist_ok=True)
    differ = 0
    with cluster() as address:
        for case in chosen:
            found = outputs(case, client_address=address)
            path = GOLDEN / f"{case.name}.json"
            changed = differences(kept(case.name), found) if path.exists() else ["(new)"]
            differ += bool(changed)
            print(case.name, "differs" if changed else "same", flush=True)
            if asked.compare:
                print("\n".join(changed))
            elif changed:
                path.write_text(json.dumps(found, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{differ} of {len(chosen)} cases differ from what was kept")
    return int(asked.compare and differ > 0)


if __name__ == "__main__":
    sys.exit(main())
