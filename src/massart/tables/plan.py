"""Which columns are inputs, which one names the rows, which one groups them, and what a reader should know about it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from massart.tables.encoding import Category, Date, Encoding, Input, Number, Target
from massart.tables.errors import TableError, quote
from massart.tables.frames import INDEX
from massart.tables.meaning import Role, role_as_category, role_as_number, role_of
from massart.tables.table import Table, decoded, is_text

_ID_WORDS = frozenset(
    {"id", "ids", "uuid", "guid", "key", "no", "nr", "number", "num", "row", "index", "idx", "rownum"}
)
# What pandas makes of the nameless column of its index, and what `named` does.
_INDEX_NAMES = frozenset({"unnamed: 0", "column 1", INDEX, "#"})
_EXCLUSIVE = {  # what a column cannot be at the same time
    "the target": ("a feature", "the id", "the group", "a category"),
    "the id": ("a feature", "a category"),
    "a category": ("excluded", "a number"),
    "a feature": ("excluded",),
}


@dataclass(frozen=True, slots=True)
class Plan:
    """The roles of the columns of one table."""

    encoding: Encoding
    id_column: str | None  # names the rows; never an input
    group_column: str | None
    notices: tuple[str, ...]  # sentences: what was left out, and what was interpreted
    of_rows: tuple[str, ...] = ()  # those of them that say what the values of a column in these rows are like


def make_plan(
    table: Table,
    target: str,
    *,
    features: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    category: Sequence[str] = (),
    number: Sequence[str] = (),
    id_column: str | None = None,
    group_column: str | None = None,
    intercept: bool = True,
) -> Plan:
    """Decide what each column of a table is for, as :func:`massart.audit_table` is asked for it.

    Raises
    ------
    TableError
        For unknown columns, columns that cannot be what was asked for, text among numbers, and if no input is left.
    """
    listed = None if features is None else tuple(features)
    asked: dict[str, Sequence[str]] = {
        "the target": [target],
        "a feature": listed or (),
        "excluded": exclude,
        "a category": category,
        "the id": [] if id_column is None else [id_column],
        "the group": [] if group_column is None else [group_column],
        "a number": number,
    }
    _check_request(table, asked, listed)
    entry, notices = _target_entry(table, target, target in number)
    taken = {target, id_column, *exclude, *category, *number, *(listed or ())}
    identifiers = [name for name in table.column_names if name not in taken and names_rows(table, name)]
    if id_column is None and identifiers:
        id_column = identifiers[0]
    candidates: tuple[str, ...] | None = listed
    of_rows: list[str] = []
    if candidates is None:
        why = "its name and its values are those of an identifier"
        of_rows = [f"Left out {quote(name)}: {why}." for name in identifiers]
        notices += of_rows
        barred = {target, id_column, *exclude, *identifiers}
        candidates = tuple(name for name in table.column_names if name not in barred)
    inputs: list[Input] = []
    for name in candidates:
        role = _role(table, name, asked, listed is not None, intercept)
        found, notice = _judged(table, name, role, intercept, listed is not None, name == group_column)
        inputs += [] if found is None else [found]
        notices += [notice] if notice else []
        of_rows += [] if found else [notice]
    _check_inputs(table, entry, inputs, notices)
    return Plan(Encoding(entry, tuple(inputs)), id_column, group_column, (*table.remarks, *notices), tuple(of_rows))


def _check_request(table: Table, asked: Mapping[str, Sequence[str]], features: tuple[str, ...] | None) -> None:
    """Raise TableError for columns that are not there, or cannot be all that is asked of them."""
    for name in chain.from_iterable(asked.values()):
        table.column(name)
    for one, others in _EXCLUSIVE.items():
        for other in others:
            both = next((name for name in asked[one] if name in asked[other]), None)
            if both is not None:
                raise TableError(f"{table.name}: column {quote(both)} cannot be both {one} and {other}")
    if features is None:
        return
    if not features:
        raise TableError(f"{table.name}: the list of features is empty")
    alone = next((name for name in asked["a category"] if name not in features), None)
    if alone is not None:
        raise TableError(f"{table.name}: column {quote(alone)} is to be a category, but not a feature: list it there")
    twice = next((name for name, count in Counter(features).items() if count > 1), None)
    if twice is not None:
        raise TableError(f"{table.name}: feature {quote(twice)} is listed twice")


def _role(table: Table, name: str, asked: Mapping[str, Sequence[str]], is_listed: bool, with_base: bool) -> Role:
    if name in asked["a category"]:
        return role_as_category(table, name, with_base=with_base)
    if name in asked["a number"]:
        return role_as_number(table, name)
    return role_of(table, name, asked=is_listed, with_base=with_base)


def _check_inputs(table: Table, entry: Target, inputs: Sequence[Input], notices: Sequence[str]) -> None:
    """Raise TableError if no input is left, or only dates are."""
    nothing = f"{table.name}: no column is left to explain {quote(entry.column)} with"
    if not inputs:
        raise TableError(f"{nothing}. {' '.join(notices[:3]) or 'The table has no other column.'}")
    if len(inputs) == 1 and isinstance(inputs[0], Date) and not isinstance(entry, Date):
        raise TableError(f"{nothing} but the dates in {quote(inputs[0].column)}")


def _target_entry(table: Table, target: str, is_number: bool) -> tuple[Target, list[str]]:
    role = role_as_number(table, target) if is_number else role_of(table, target, asked=True)
    if role.bad and not is_number:
        raise TableError(
            f"{table.name}: text among the numbers of the target {quote(target)}: {role.bad} "
            "(--number leaves such rows out, --na says what means missing)"
        )
    if role.constant and not isinstance(role.entry, Category):
        return role.entry or Number(target), []
    if role.entry is None or isinstance(role.entry, Category):
        why = role.why or role.doubt or "it holds text"
        raise TableError(f"{table.name}: the target {quote(target)} has to hold numbers, but {why}")
    notices = [role.notice] if role.notice else []
    if isinstance(role.entry, Date):
        notices.append(f"The dates in {quote(target)} are counted in days since 1970-01-01.")
    return role.entry, notices


def _judged(
    table: Table, name: str, role: Role, intercept: bool, asked: bool, groups: bool
) -> tuple[Input | None, str]:
    """Return the input that a column becomes, if it does, and a notice."""
    if role.constant and (intercept or role.entry is None):
        return None, f"Left out {quote(name)}: {role.why}."
    if role.constant or not role.why:
        return role.entry, role.notice
    if groups:
        return None, f"Used {quote(name)} only to group rows: {role.why}."
    if asked:
        raise TableError(f"{table.name}: column {quote(name)} cannot be a feature: {role.why}")
    return None, f"Left out {quote(name)}: {role.why}."


def names_rows(table: Table, name: str) -> bool:
    """Return whether a column is called an id and its values are all different."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    last = re.split(r"[\W_]+", words.lower().rstrip(" .#:"))[-1]
    if last not in _ID_WORDS and name.lower() not in _INDEX_NAMES and not name.rstrip().endswith("#"):
        return False
    column = table.column(name)
    if column.null_count or not (pa.types.is_integer(column.type) or is_text(column.type)):
        return False
    return int(pc.count_distinct(decoded(column)).as_py()) == len(column) > 1
