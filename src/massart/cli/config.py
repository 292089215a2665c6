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
    tolerance = 0.005             # as massart fit has it, and so have inliers, errors and rules
    files = "ledger.parquet"

Paths are relative to the file. A key that is not known is an error, for a misspelt ``max_wrong`` would allow anything.
"""

from __future__ import annotations

import difflib
import glob
import reprlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from massart.cli.inputs import BlockReading

if TYPE_CHECKING:
    from massart.audit import Contract

_TABLE = "check"
_OPTIONS: dict[str, tuple[type, ...]] = {
    "max_wrong": (int, float),
    "max_unjudged": (int, float),
    "require": (str,),
    "id": (str,),
    "group": (str,),
    "strict": (bool,),
    "tolerance": (int, float),
    "inliers": (str,),
    "rules": (str, int),
    "errors": (str,),
    "delimiter": (str,),
    "decimal": (str,),
    "encoding": (str,),
    "sheet": (str,),
    "skip": (int,),
    "na": (str, list),
    "max_memory": (str,),
}
_Inliers = Literal["auto", "exact", "noisy"]
_Errors = Literal["arbitrary", "independent"]
_WORDS_OF_A_FIT = {"inliers": _Inliers, "errors": _Errors}
_OF_A_FIT = ("tolerance", "rules", *_WORDS_OF_A_FIT)  # a saved rule has its own
_LISTS = ("model", "target", "files")
_WORDS = {str: "a text", bool: "true or false", int: "a number", float: "a number"}

_shortener = reprlib.Repr()
_shortener.maxstring = _shortener.maxother = 80
_short = _shortener.repr  # what a file holds may be of any length


class Requirement(StrEnum):
    """Verdicts that a formula may have to reach, the least first."""

    majority = "majority"
    confirmed = "confirmed"
    proven = "proven"


@dataclass(frozen=True, slots=True)
class Task(BlockReading):
    """One table, how it is read, and its rule: a saved one, or that of a column, which is looked for."""

    file: str
    model: Path | None = None  # of this and `target` one is there
    target: str | None = None
    max_wrong: float | None = None
    max_unjudged: float | None = None  # massart.audit.MAX_UNJUDGED
    require: str = "majority"
    id: str | None = None
    group: str | None = None
    strict: bool = False
    tolerance: float | None = None
    inliers: _Inliers = "auto"
    rules: int | Literal["auto"] | None = None
    errors: _Errors = "arbitrary"

    @property
    def contract(self) -> Contract:
        """What is asked of the table."""
        from massart.audit import MAX_UNJUDGED, Contract
        from massart.certificate import Verdict

        most = MAX_UNJUDGED if self.max_unjudged is None else self.max_unjudged
        return Contract(self.max_wrong, Verdict[self.require.upper()], most)

    @property
    def rule(self) -> str:
        """What tells it from other rules for the same file."""
        return str(self.target) if self.model is None else self.model.stem


def read_config(path: Path) -> list[Task]:
    """Read a configuration file: a task for each file and each rule; ValueError names the key that is at fault."""
    try:
        content = tomllib.loads(path.read_bytes().decode())
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror or error}") from None
    except ValueError as error:  # not UTF-8, or no TOML
        raise ValueError(f"{path}: this is no TOML ({error})") from None
    defaults = {key: value for key, value in content.items() if key != _TABLE}
    _check_keys(path, "", defaults, _OPTIONS)
    entries = content.get(_TABLE, [])
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError(f"{path}: there is no [[{_TABLE}]], which says what to check")
    return [task for place, entry in enumerate(entries, 1) for task in _tasks(path, place, entry, defaults)]


def tables_of(name: str) -> list[str]:
    """Return the tables that a name means: each file of a folder or of a pattern is one."""
    place = Path(name)
    if place.is_dir():
        found = [file for file in place.iterdir() if file.is_file() and not file.name.startswith((".", "_"))]
    elif name != "-" and glob.has_magic(name) and not place.exists():
        found = [file for file in map(Path, glob.glob(name, recursive=True)) if file.is_file()]  # noqa: PTH207
    else:
        return [name]
    if not found:
        raise ValueError(f"{name}: there are no files")
    return [str(file) for file in sorted(found)]


def _tasks(path: Path, place: int, entry: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[Task]:
    where = f"[[{_TABLE}]] {place:,}: "
    _check_keys(path, where, entry, {**_OPTIONS, **dict.fromkeys(_LISTS, (str, list))})
    lists = {name: _texts(path, where, name, entry[name]) for name in _LISTS if name in entry}
    if "files" not in lists:
        raise ValueError(f"{path}: {where}files is missing")
    if ("model" in lists) == ("target" in lists):
        raise ValueError(f"{path}: {where}one of model and target has to be there")
    options = {**defaults, **{name: value for name, value in entry.items() if name in _OPTIONS}}
    if "na" in options:
        options["na"] = tuple(_texts(path, where, "na", options["na"]))
    files = [table for name in lists["files"] for table in tables_of(str(path.parent / name))]
    if "model" in lists:
        if of_fit := next((name for name in _OF_A_FIT if name in entry), None):
            raise ValueError(f"{path}: {where}{of_fit} is asked of a target; a model has its own")
        options = {name: value for name, value in options.items() if name not in _OF_A_FIT}
        return [Task(file, model=path.parent / rule, **options) for file in files for rule in lists["model"]]
    return [Task(file, target=rule, **options) for file in files for rule in lists["target"]]


def _texts(path: Path, where: str, name: str, value: object) -> list[str]:
    texts = value if isinstance(value, list) else [value]
    if not texts or not all(isinstance(text, str) and text for text in texts):
        raise ValueError(f"{path}: {where}{name} has to be a text or a list of texts, got {_short(value)}")
    return [*map(str, texts)]


def _check_keys(path: Path, where: str, found: Mapping[str, Any], known: Mapping[str, tuple[type, ...]]) -> None:
    for key, value in found.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            raise ValueError(f"{path}: {where}unknown key {_short(key)}: {hint}")
        kinds = known[key]
        fits = isinstance(value, kinds) and (not isinstance(value, bool) or bool in kinds)
        if not fits and key not in _LISTS:
            raise ValueError(f"{path}: {where}{key} has to be {_WORDS[kinds[0]]}, got {_short(value)}")
    if "require" in found and found["require"] not in list(Requirement):
        raise ValueError(
            f"{path}: {where}require has to be one of {', '.join(Requirement)}, got {_short(found['require'])}"
        )
    rules = found.get("rules", "auto")
    if rules != "auto" and (isinstance(rules, str) or rules < 1):
        raise ValueError(f'{path}: {where}rules has to be "auto" or a whole number, got {_short(rules)}')
    for key, choices in _WORDS_OF_A_FIT.items():
        if key in found and found[key] not in get_args(choices):
            known_words = ", ".join(get_args(choices))
            raise ValueError(f"{path}: {where}{key} has to be one of {known_words}, got {_short(found[key])}")
    for key in ("max_wrong", "max_unjudged"):
        if key in found and not 0 <= found[key] <= 1:
            raise ValueError(f"{path}: {where}{key} has to be a share from 0 to 1, got {found[key]!r}")
