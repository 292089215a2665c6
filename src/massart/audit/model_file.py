"""Models as JSON: how to read a table, and the formula. Nothing in such a file is run, so a stranger's is safe to load.

Numbers are written with all their digits, so that a model predicts the same before and after.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from massart.audit.segments import TableSegment
from massart.certificate import Assumption
from massart.options import FitOptions
from massart.rows import SQUARE_IS_FINITE, Agreement, Level, Link, files
from massart.rules import Columns, Formula, Levels, Summand, Term, shown
from massart.tables import Category, Date, Encoding

FORMAT = "massart model"
VERSION = 3  # of the format

_MOST_BYTES = 64 << 20  # that are read of a file that somebody calls a model
_FRACTION = re.compile(r"-?[0-9]{1,60}(/[0-9]{1,60})?")


class ModelError(ValueError):
    """A file that is not a model; the message names the file and what is wrong."""


@dataclass(frozen=True, slots=True)
class SavedModel:
    """What is needed to apply a formula to another table.

    Attributes
    ----------
    encoding : Encoding
        How columns become numbers.
    formula : Formula
    agreement : Agreement
        When a row agrees.
    verdict : str
    explanation : str
        What was proven, in the certificate's words.
    options : FitOptions
        What the fit was asked for.
    segment : TableSegment or None
        Rows that are set apart, since most of them broke the rule where it was found.
    """

    encoding: Encoding
    formula: Formula
    agreement: Agreement
    verdict: str
    explanation: str
    options: FitOptions = field(default_factory=FitOptions)
    segment: TableSegment | None = None

    @property
    def assumption(self) -> Assumption:
        """What the verdict takes for granted."""
        return Assumption.of(self.options)

    @property
    def weighed(self) -> SavedModel:
        """The same rule without terms that have no weight: gaps in columns that it does not use cost no rows."""
        terms, widths = self.formula.terms, self.agreement.inputs
        used = [j for j, summand in enumerate(terms) if summand.coef]
        if not used:  # a constant is not a rule
            return self
        widths = (*(widths[j] for j in used), *widths[len(terms) :]) if widths else ()
        kept = tuple(terms[j] for j in used)
        formula = replace(self.formula, terms=kept)
        read = {name for summand in kept if summand.term for name in summand.term.columns()}
        inputs = tuple(entry for entry in self.encoding.inputs if entry.column in read)
        return replace(
            self,
            encoding=replace(self.encoding, inputs=inputs),
            formula=formula,
            agreement=replace(self.agreement, inputs=widths),
        )

    def for_columns(self, column_names: Collection[str]) -> SavedModel:
        """Return the same for a table with these columns: without those of its segment, no rows are set apart."""
        if self.segment is None or self.segment.is_in(column_names):
            return self
        return replace(self, segment=None)

    def save(self, path: str | Path) -> None:
        """Write it as JSON, whole or not at all."""
        files.write(Path(path), self.to_json().encode())

    def to_json(self) -> str:
        """Return the text of the file."""
        formula, link = self.formula, self.formula.link
        content = {
            "format": FORMAT,
            "version": VERSION,
            "massart": version("massart"),
            "formula": str(formula),
            "verdict": self.verdict,
            "explanation": self.explanation,
            "target": formula.target,
            "noisy": formula.noisy,
            **({"bases": [list(pair) for pair in formula.bases]} if formula.bases else {}),
            **({"cut": str(formula.cut)} if formula.cut is not None else {}),
            "link": {"lower": _plain(link.lower), "upper": _plain(link.upper), "slope": link.slope},
            "terms": [_term_to_json(term) for term in formula.terms],
            "intercept": None if formula.intercept is None else _term_to_json(formula.intercept),
            "agreement": {**asdict(self.agreement), "level": self.agreement.level.name},
            "encoding": self.encoding.to_json(),
            "options": self.options.chosen,
            **({"segment": self.segment.to_json()} if self.segment is not None else {}),
        }
        return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def load_model(path: str | Path) -> SavedModel:
    """Read a model that :meth:`SavedModel.save` wrote; every field is checked.

    Raises
    ------
    ModelError
        Naming the file and what is wrong with it.
    """
    name = Path(path).name
    try:
        with Path(path).open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise ModelError(f"cannot read the model {path}: {error.strerror or error}") from None
    if len(content) > _MOST_BYTES:
        raise ModelError(f"{name} is not a model: it is larger than {_MOST_BYTES >> 20} MB")
    try:
        found = json.loads(content.decode())
    except (ValueError, RecursionError):  # not UTF-8, not JSON, or nested without end
        raise ModelError(f"{name} is not a model: it is not JSON") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ModelError(f'{name} is not a model: it does not say "format": "{FORMAT}"')
    if found.get("version") != VERSION:
        raise ModelError(f"{name} is of version {found.get('version')!r}; this massart reads version {VERSION}")
    try:
        return _from_json(found)
    except (ValueError, TypeError, KeyError, OverflowError, ZeroDivisionError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise ModelError(f"{name} is damaged: {what}") from None


def _from_json(found: Mapping[str, Any]) -> SavedModel:
    encoding = Encoding.from_json(found["encoding"])
    if found["target"] != encoding.target.column:
        raise ValueError(
            f"target is {shown(found['target'])}, and the column that is read {shown(encoding.target.column)}"
        )
    formula = _formula(found, encoding)
    agreement = _agreement(found["agreement"])
    if agreement.inputs and len(agreement.inputs) != len(formula.all_terms):
        raise ValueError("inputs must have a number for each term")
    verdict, explanation = (_of(str, found[name], name) for name in ("verdict", "explanation"))
    options = FitOptions().having(_of(dict, found.get("options", {}), "options"))
    segment = (
        TableSegment.from_json(_of(dict, found["segment"], "segment"), encoding.target) if "segment" in found else None
    )
    return SavedModel(encoding, formula, agreement, verdict, explanation, options, segment)


def _formula(found: Mapping[str, Any], encoding: Encoding) -> Formula:
    """Return the formula, every term of which can be computed from the columns that are read."""
    terms = tuple(_term_from_json(term) for term in _of(list, found["terms"], "terms"))
    _check_read([term.term for term in terms], encoding)
    intercept, link = found["intercept"], found["link"]
    if not terms and intercept is None:
        raise ValueError("the formula has no terms")
    lower = -math.inf if link["lower"] is None else _number(link["lower"], "lower")
    upper = math.inf if link["upper"] is None else _number(link["upper"], "upper")
    return Formula(
        encoding.target.column,
        terms,
        None if intercept is None else replace(_term_from_json(intercept), term=None),
        Link(lower, upper, _number(link["slope"], "slope")),
        _of(bool, found["noisy"], "noisy"),
        tuple((_of(str, name, "bases"), _of(str, level, "bases")) for name, level in found.get("bases", ())),
        _fraction(found["cut"]) if "cut" in found else None,
    )


def _check_read(terms: Sequence[Term | None], encoding: Encoding) -> None:
    """Raise ValueError if a term reads what is not read, or cannot be computed from it."""
    used = [term for term in terms if term is not None]
    here = {name for term in used for name in term.columns_here()}
    back = {name for term in used for name in term.columns()} - here - {encoding.target.column}  # a lag of the target
    unread = next(iter(sorted((here | back) - {entry.column for entry in encoding.inputs})), None)
    if unread is not None or len(used) < len(terms):
        raise ValueError(f"the terms of the formula use {shown(unread)}, a column that is not read")
    for term in used:  # a month of a text has no value in any row, and none without rows
        term.evaluate(_without_rows(encoding))


def _without_rows(encoding: Encoding) -> Columns:
    numbers, levels = {encoding.target.column: np.empty(0)}, {}
    for entry in encoding.inputs:
        if isinstance(entry, Category):
            levels[entry.column] = Levels(np.empty(0, dtype=np.int32), entry.levels)
        else:
            numbers[entry.column] = np.empty(0)
    return Columns(numbers, levels, frozenset(entry.column for entry in encoding.inputs if isinstance(entry, Date)))


def _agreement(found: Mapping[str, Any]) -> Agreement:
    names, unit = [level.name for level in Level], found["unit"]
    if found["level"] not in names:
        raise ValueError(f"level must be one of {', '.join(names)}, got {found['level']!r}")
    return Agreement(
        Level[found["level"]],
        _number(found["label"], "label", 0.0),
        tuple(_number(width, "inputs", 0.0) for width in _of(list, found["inputs"], "inputs")),
        _number(found["relative"], "relative", 0.0, 1.0),
        None if unit is None else _number(unit, "unit", 1 / SQUARE_IS_FINITE, SQUARE_IS_FINITE),
        _number(found["tight"], "tight", 0.0, 1.0),
        _number(found["precision"], "precision", 0.0, 1.0),
    )


def _term_to_json(term: Summand) -> dict[str, Any]:
    return {
        "term": None if term.term is None else term.term.to_json(),
        "coef": term.coef,
        "exact": None if term.exact is None else str(term.exact),
        "standard_error": _plain(term.standard_error),
        "determined": term.determined,
    }


def _term_from_json(term: Mapping[str, Any]) -> Summand:
    exact, error = term["exact"], term["standard_error"]
    return Summand(
        None if term["term"] is None else Term.from_json(term["term"]),
        _number(term["coef"], "coef"),
        None if exact is None else _fraction(exact),
        math.nan if error is None else _number(error, "standard_error"),
        _of(bool, term["determined"], "determined"),
    )


def _plain(value: float) -> float | None:
    """JSON has neither infinity nor NaN."""
    return value if math.isfinite(value) else None


def _fraction(text: object) -> Fraction:
    if not _FRACTION.fullmatch(_of(str, text, "exact")):  # Fraction itself reads 1e999999999, digit by digit
        raise ValueError(f"exact must be a fraction such as -7/2, got {text!r}")
    return Fraction(str(text))


def _number(value: object, name: str, least: float = -math.inf, most: float = math.inf) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or not least <= float(value) <= most:  # type: ignore[arg-type]
        limits = f" of at least {least:g}" if least > -math.inf else ""
        limits += f" and at most {most:g}" if most < math.inf else ""
        raise ValueError(f"{name} must be a number{limits}, got {value!r}")
    return float(value)  # type: ignore[arg-type]


def _of(kind: type, value: Any, name: str) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{name} must be of type {kind.__name__}, got {value!r}")
    return value
