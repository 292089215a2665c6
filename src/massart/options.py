"""What a user asks for: each option once, with its type, its default and a sentence.

:class:`FitOptions` is the command line of ``massart fit``, the arguments of
:func:`massart.audit_table` and a ``[[check]]`` of ``massart.toml``: all of them are generated from the fields below.
"""

from __future__ import annotations

import math
import re
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import cache
from numbers import Integral, Real
from pathlib import Path
from typing import Annotated, Any, Literal, Self, Union, get_args, get_origin, get_type_hints

Model = Literal["auto", "linear", "relu"]
Inliers = Literal["auto", "exact", "noisy"]
Errors = Literal["arbitrary", "independent"]
Requirement = Literal["majority", "confirmed", "proven"]

_SIZES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_WORDS: dict[Any, str] = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    Path: "a path",
    Any: "an object",
}


@dataclass(frozen=True, slots=True)
class Option:
    """What is said of an option, and which values it may have."""

    help: str
    group: str = "Input"  # the heading under which the command line lists it
    least: float = -math.inf
    most: float = math.inf
    share: bool = False  # the command line takes 5% for 0.05
    metavar: str | None = None
    shown: bool = True  # whether the command line has it


_ANY = Option("")
_LISTS = (Sequence[str], tuple[str, ...])


class OptionError(ValueError):
    """A value that an option does not have; programs may show the option by another name."""

    def __init__(self, name: str, said: str) -> None:
        super().__init__(f"{name} {said}")
        self.name, self.said = name, said


@dataclass(frozen=True)
class OptionGroup:
    """Options whose values are checked; errors name the option."""

    def __post_init__(self) -> None:
        for name, (hint, option) in described(type(self)).items():
            value = getattr(self, name)
            if isinstance(value, Iterable) and not isinstance(value, str) and Sequence[str] in alternatives(hint):
                value = tuple(value)
                object.__setattr__(self, name, value)
            if not fits(value, hint) or (isinstance(value, Real) and not option.least <= float(value) <= option.most):
                raise OptionError(name, f"must be {in_words(hint, option)}, got {value!r}")

    @property
    def chosen(self) -> dict[str, Any]:
        """The options that differ from their defaults."""
        defaults = type(self)()
        return {
            name: mine for name in described(type(self)) if (mine := getattr(self, name)) != getattr(defaults, name)
        }

    def having(self, values: Mapping[str, Any]) -> Self:
        """Return the same with other values, of which those that are none of these options are left out."""
        return replace(self, **{name: values[name] for name in described(type(self)) if name in values})


@dataclass(frozen=True)
class Reading(OptionGroup):
    """How a file is read: what it does not say itself."""

    _: KW_ONLY
    delimiter: Annotated[str | None, Option("Delimiter of a CSV file: one character or tab; detected by default.")] = (
        None
    )
    decimal: Annotated[str | None, Option("Decimal mark, . or ,; detected by default.")] = None
    encoding: Annotated[str | None, Option("Encoding of a text file, such as latin-1; UTF-8 by default.")] = None
    sheet: Annotated[
        str | int | None, Option("Name or number of a sheet of a workbook; the largest sheet by default.")
    ] = None
    skip: Annotated[int | None, Option("Lines above the column names; detected by default.", least=0)] = None
    na: Annotated[Sequence[str], Option("Texts or numbers that stand for a missing value.")] = ()

    def __post_init__(self) -> None:
        if self.delimiter in ("tab", r"\t"):
            object.__setattr__(self, "delimiter", "\t")
        super().__post_init__()

    @property
    def of_file(self) -> dict[str, Any]:
        """What readers are given."""
        return {one.name: getattr(self, one.name) for one in fields(Reading)}


@dataclass(frozen=True)
class BlockReading(Reading):
    """The same for files that may be larger than memory."""

    _: KW_ONLY
    max_memory: Annotated[
        str | int | None,
        Option(
            "Memory that a table may take, such as 2GB or 500MB; an eighth of the machine by default. A larger file is "
            "read in blocks, more than once."
        ),
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.most_bytes

    @property
    def most_bytes(self) -> int | None:
        """The same as a number of bytes; None for the default."""
        return size_of(self.max_memory) if isinstance(self.max_memory, str) else self.max_memory


@dataclass(frozen=True)
class Names(OptionGroup):
    """How rows are named."""

    _: KW_ONLY
    id: Annotated[str | None, Option("Column that names the rows.", metavar="COLUMN")] = None


@dataclass(frozen=True)
class RowOptions(Names):
    """How rows are named, counted and left out."""

    _: KW_ONLY
    group: Annotated[
        str | None, Option("Count the wrong rows for each value of this column.", "Output", metavar="COLUMN")
    ] = None
    strict: Annotated[bool, Option("Refuse missing values instead of leaving out their rows.")] = False


@dataclass(frozen=True)
class FitOptions(RowOptions):
    """What is asked of a fit; the parameters of :func:`massart.audit_table` and the options of ``massart fit``."""

    target: Annotated[
        str | None, Option("Column that should follow a rule of the others; a formula names it itself.", "Rule")
    ] = None
    _: KW_ONLY
    terms: Annotated[
        str | Sequence[str],
        Option(
            'What the rule is made of: "auto" looks beyond the columns for products, rates, tiers and the like, '
            '"columns" does not; or terms such as "qty*price, hours:service, max(0, kwh - 200)"; '
            '? is a number to find, as in "max(0, kwh - ?)".',
            "Rule",
        ),
    ] = "auto"
    formula: Annotated[
        str | None, Option('The rule as an R formula: "total ~ qty:price + hours:C(service)".', "Rule")
    ] = None
    budget: Annotated[
        float, Option("Seconds of processor time for the search beyond the columns.", "Rule", least=0)
    ] = 20.0
    model: Annotated[
        Model,
        Option(
            "A sum of terms (linear), or that sum where it is positive and 0 elsewhere (relu); auto takes the surer.",
            "Rule",
        ),
    ] = "auto"
    rules: Annotated[
        int | Literal["auto"] | None,
        Option(
            "Look for several rules, each followed by some of the rows: at most N, or until one fails its test.",
            "Rule",
            least=1,
            metavar="auto|N",
        ),
    ] = None
    features: Annotated[
        Sequence[str] | None,
        Option("Columns that the rule may use, a,b,c or one by one; all by default.", "Rule", metavar="COLUMN"),
    ] = None
    exclude: Annotated[Sequence[str], Option("Columns that the rule may not use.", "Rule", metavar="COLUMN")] = ()
    intercept: Annotated[bool, Option("Whether the rule has a constant.", "Rule")] = True
    category: Annotated[Sequence[str], Option("Columns whose numbers are codes.", metavar="COLUMN")] = ()
    number: Annotated[
        Sequence[str], Option("Columns of numbers: rows with anything else there are left out.", metavar="COLUMN")
    ] = ()
    tolerance: Annotated[
        float | Literal["auto"],
        Option(
            "Largest residual of a right row, such as 0.005; auto allows rounding error.",
            "Errors",
            least=0,
            metavar="auto|X",
        ),
    ] = "auto"
    inliers: Annotated[
        Inliers, Option("Right rows follow the rule exactly, or up to noise; auto lets the rows decide.", "Errors")
    ] = "auto"
    error_unit: Annotated[
        str | None, Option("Rows with the same value in this column may be wrong together.", "Errors", metavar="COLUMN")
    ] = None
    wrong_at_most: Annotated[
        float,
        Option(
            "Largest probability that a label is wrong, as far as you know: CONFIRMED assumes it. With an error unit, "
            "that a unit has a wrong row.",
            "Errors",
        ),
    ] = 0.5
    errors: Annotated[
        Errors,
        Option(
            "Declare that errors depend neither on the columns nor on each other, and that no wrong amount is as "
            "frequent as right labels: then a rule may be CONFIRMED though most rows break it.",
            "Errors",
        ),
    ] = "arbitrary"
    hypotheses: Annotated[
        float,
        Option("Number of fits whose answers are claimed together and share the probability of an error.", shown=False),
    ] = 1.0
    seed: Annotated[int, Option("Random seed.", "Rule", least=0)] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.wrong_at_most < 1:
            raise OptionError("wrong_at_most", f"must be between 0 and 1, got {self.wrong_at_most}")
        if self.errors == "independent" and self.error_unit is not None:
            raise ValueError(
                f'errors = "independent" says that rows are wrong independently, and error_unit = {self.error_unit!r} '
                "that some are wrong together: leave one of the two out"
            )


@dataclass(frozen=True)
class Outputs(OptionGroup):
    """The tables that a fit writes."""

    _: KW_ONLY
    audit: Annotated[
        str | Path | None,
        Option(
            "Write all rows, worst first: given, implied, residual (CSV, Parquet, Excel). Of a file larger than memory "
            "these are the wrong rows, in its order.",
            "Output",
        ),
    ] = None
    fixed: Annotated[
        str | Path | None,
        Option(
            "Write the table with its wrong targets replaced if the rule is certain; the given ones stay.", "Output"
        ),
    ] = None
    fill: Annotated[
        bool, Option("Fill in missing targets in the fixed table, too; not of a file larger than memory.", "Output")
    ] = False
    force: Annotated[bool, Option("Write the fixed table though the rule is not certain.", "Output")] = False


@dataclass(frozen=True)
class Shares(OptionGroup):
    """How many rows may be wrong and how many may be left out, else the exit status is not 0."""

    _: KW_ONLY
    max_wrong: Annotated[
        float | None,
        Option("Exit with 3 if the share of wrong rows is larger.", "Verdict", 0, 1, share=True, metavar="SHARE"),
    ] = None
    max_unjudged: Annotated[
        float | None,
        Option(
            "Exit with 1 if the share of rows that are not judged is larger; 5% in massart check.",
            "Verdict",
            0,
            1,
            share=True,
            metavar="SHARE",
        ),
    ] = None


@dataclass(frozen=True)
class CheckLimits(Shares):
    """The same, and what has to be known of the rule."""

    _: KW_ONLY
    require: Annotated[Requirement, Option("Exit with 1 if the verdict is less.", "Verdict")] = "majority"


def described(kind: type[OptionGroup]) -> dict[str, tuple[Any, Option]]:
    """Return the type of each option of a class, and what is said of it; what has no description is none."""
    found: Any = kind  # a class is hashable, whatever its objects are
    return _described(found)


@cache
def _described(kind: Any) -> dict[str, tuple[Any, Option]]:
    hints = get_type_hints(kind, include_extras=True)
    annotated = {one.name: hints[one.name] for one in fields(kind) if get_origin(hints[one.name]) is Annotated}
    return {name: get_args(hint)[:2] for name, hint in annotated.items()}


def size_of(text: str) -> int:
    """Return a number of bytes that is written as 2GB, 500 MB or 1.5GiB."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", text.lower())
    if found is None or found[2] not in _SIZES or not float(found[1]):
        raise OptionError("max_memory", f"must be a size such as 2GB or 500MB, got {text!r}")
    return int(float(found[1]) * _SIZES[found[2]])


def alternatives(hint: Any) -> tuple[Any, ...]:
    """Return the types that a union allows, or the only one."""
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def fits(value: object, hint: Any) -> bool:
    """Return whether a value has a type: one of a union, a word of a literal, a tuple of texts."""
    return any(_is(value, kind) for kind in alternatives(hint))


def _is(value: object, kind: Any) -> bool:
    if kind is Any or get_origin(kind) is Callable:
        return kind is Any or callable(value)
    if get_origin(kind) is Literal:
        return isinstance(value, str) and value in get_args(kind)
    if kind in (int, float):
        is_number = isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
        return is_number and math.isfinite(value)  # type: ignore[arg-type]
    if kind in _LISTS:
        return isinstance(value, tuple) and all(isinstance(one, str) for one in value)
    return isinstance(value, kind)


def in_words(hint: Any, option: Option = _ANY) -> str:
    """Return what an option may be: "auto" or a number of at least 0."""
    limits = f" from {option.least:g} to {option.most:g}" if option.most < math.inf else ""
    if not limits and option.least > -math.inf:
        limits = f" of at least {option.least:g}"
    words: list[str] = []
    for kind in alternatives(hint):
        if get_origin(kind) is Literal:
            words = [*(f'"{word}"' for word in get_args(kind)), *words]
        elif kind in _LISTS:
            words.append("a list of texts")
        elif get_origin(kind) is Callable:
            words.append("a function")
        elif kind is not types.NoneType:
            words.append(_WORDS[kind] + (limits if kind in (int, float) else ""))
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
