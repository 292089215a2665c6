"""``massart.toml``: which tables are checked by which rules, so that one run checks them all.

::

    max_wrong = 0.0               # holds for every [[check]] that says nothing else
    max_unjudged = 0.01

    [[check]]
    model = "rules/total.json"    # or a list: one rule for each column that has one
    files = ["exports/*.csv"]     # each file is a table of its own
    id = "invoice"

    [[check]]
    target = "balance"            # no saved rule: it is looked for in each table
    tolerance = 0.005             # and whatever else massart fit has
    files = "ledger.parquet"

Paths are relative to the file. A key that is not known is an error, for a misspelt ``max_wrong`` would allow anything.
"""

from __future__ import annotations

import difflib
import reprlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from massart.options import BlockReading, CheckLimits, FitOptions, OptionGroup, RowOptions, described
from massart.tables import files_of

_TABLE = "check"
_CLASSES: tuple[type[OptionGroup], ...] = (CheckLimits, RowOptions, BlockReading, FitOptions)
_LISTS = ("model", "target", "files")
_EVERY = {name: kind for kind in reversed(_CLASSES) for name, (_, said) in described(kind).items() if said.shown}
_OPTIONS = tuple(name for name in _EVERY if name not in _LISTS)
_OF_A_FIT = [
    name for name in _OPTIONS if name in described(FitOptions) and name not in described(RowOptions)
]  # a saved rule has its own

_shortener = reprlib.Repr()
_shortener.maxstring = _shortener.maxother = 80
_short = _shortener.repr  # what a file holds may be of any length


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckTask:
    """One table, how it is read, and its rule: a saved one, or that of a column, which has to be found."""

    file: str
    model: Path | None = None  # of this and a target one is there
    options: FitOptions = field(default_factory=FitOptions)
    reading: BlockReading = field(default_factory=BlockReading)
    limits: CheckLimits = field(default_factory=CheckLimits)

    def having(self, values: Mapping[str, Any]) -> CheckTask:
        """Return the same with other values of some options; ValueError names the one at fault."""
        options, reading = self.options.having(values), self.reading.having(values)
        return replace(self, options=options, reading=reading, limits=self.limits.having(values))

    @property
    def rule(self) -> str:
        """The name of its rule among those for the same file."""
        return str(self.options.target) if self.model is None else self.model.stem


def read_config(path: Path) -> list[CheckTask]:
    """Read a configuration file: a task for each file and each rule; ValueError names the key that is at fault."""
    try:
        content = tomllib.loads(path.read_bytes().decode())
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror or error}") from None
    except ValueError as error:  # not UTF-8, or no TOML
        raise ValueError(f"{path}: this is not TOML ({error})") from None
    defaults = {key: value for key, value in content.items() if key != _TABLE}
    _check(path, "", defaults, _OPTIONS)
    entries = content.get(_TABLE, [])
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError(f"{path}: a [[{_TABLE}]] has to say what to check")
    return [task for place, entry in enumerate(entries, 1) for task in _tasks(path, place, entry, defaults)]


def tables_of(name: str) -> list[str]:
    """Return the tables that a name means: each file of a folder or of a pattern is one."""
    found = files_of(name)
    return [name] if found is None else [str(file) for file in found]


def _tasks(path: Path, place: int, entry: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[CheckTask]:
    where = f"[[{_TABLE}]] {place:,}: "
    _check(path, where, entry, (*_LISTS, *_OPTIONS))
    lists = {name: _texts(path, where, name, entry[name]) for name in _LISTS if name in entry}
    if "files" not in lists:
        raise ValueError(f"{path}: {where}files is missing")
    if ("model" in lists) == ("target" in lists):
        raise ValueError(f"{path}: {where}one of model and target has to be there")
    options = {**defaults, **{name: value for name, value in entry.items() if name in _OPTIONS}}
    if isinstance(options.get("na"), str):
        options["na"] = [options["na"]]
    files = [table for name in lists["files"] for table in tables_of(str(path.parent / name))]
    if "model" in lists:
        if of_fit := next((name for name in _OF_A_FIT if name in entry), None):
            raise ValueError(f"{path}: {where}{of_fit} is asked of a target; a model has its own")
        options = {name: value for name, value in options.items() if name not in _OF_A_FIT}
        return [
            CheckTask(file=file, model=path.parent / rule).having(options) for file in files for rule in lists["model"]
        ]
    return [CheckTask(file=file).having({**options, "target": rule}) for file in files for rule in lists["target"]]


def _texts(path: Path, where: str, name: str, value: object) -> list[str]:
    texts = value if isinstance(value, list) else [value]
    if not texts or not all(isinstance(text, str) and text for text in texts):
        raise ValueError(f"{path}: {where}{name} must be a text or a list of texts, got {_short(value)}")
    return [*map(str, texts)]


def _check(path: Path, where: str, found: Mapping[str, Any], known: tuple[str, ...]) -> None:
    """Raise ValueError for keys that are not known, and for values that an option does not have."""
    for key, value in found.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            raise ValueError(f"{path}: {where}unknown key {_short(key)}: {hint}")
        if key in _LISTS:
            continue
        try:
            _EVERY[key]().having({key: [value] if key == "na" and isinstance(value, str) else value})
        except ValueError as error:
            raise ValueError(f"{path}: {where}{error}") from None
