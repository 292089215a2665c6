"""Which columns are inputs, which one names the rows, which one groups them, and what a reader should know about it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

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
_EXCLUSIVE = (
    *(("the target", other) for other in ("a feature", "the id", "the group", "a category")),
    *(("the id", other) for other in ("a feature", "a category")),
    *((one, "excluded") for one in ("a category", "a feature")),
    ("a number", "a category"),
)


@dataclass(frozen=True, slots=True)
class Plan:
    """The roles of the columns of one table."""

    encoding: Encoding
    id_column: str | None  # names the rows; never an input
    group_column: str | None
    notices: tuple[str, ...]  # sentences: what was left out, and what was interpreted


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
    features = None if features is None else tuple(features)
    asked: dict[str, Sequence[str | None]] = {
        "the target": [target],
        "a feature": features or (),
        "excluded": exclude,
        "a category": category,
        "the id": [id_column],
        "the group": [group_column],
        "a number": number,
    }
    _check_request(table, {role: dict.fromkeys(names) for role, names in asked.items()}, features)
    entry, notices = _target_entry(table, target, target in number)
    taken = {target, id_column, *exclude, *category, *number, *(features or ())}
    called_ids = [name for name in table.column_names if name not in taken and names_rows(table, name)]
    if id_column is None and called_ids:
        id_column = called_ids[0]
    if features is None:
        notices += [
            f"Left out {quote(name)}: its name and its values are those of an identifier." for name in called_ids
        ]
        barred = {target, id_column, *exclude, *called_ids}
        candidates: Sequence[str] = [name for name in table.column_names if name not in barred]
    else:
        candidates = features
    inputs: list[Input] = []
    for name in candidates:
        if name in category:
            role = role_as_category(table, name, with_base=intercept)
        elif name in number:
            role = role_as_number(table, name)
        else:
            role = role_of(table, name, asked=features is not None, with_base=intercept)
        found, notice = _judged(table, name, role, intercept, features is not None, name == group_column)
        inputs += [] if found is None else [found]
        notices += [notice] if notice else []
    if len(inputs) == 1 and isinstance(inputs[0], Date) and not isinstance(entry, Date):
        alone = quote(inputs[0].column)
        raise TableError(f"{table.name}: no column is left to explain {quote(target)} with but the dates in {alone}")
    if not inputs:
        because = " ".join(notices[:3]) or "The table has no other column."
        raise TableError(f"{table.name}: no column is left to explain {quote(target)} with. {because}")
    return Plan(Encoding(entry, tuple(inputs)), id_column, group_column, (*table.remarks, *notices))


def _check_request(table: Table, asked: Mapping[str, Collection[str | None]], features: tuple[str, ...] | None) -> None:
    """Raise TableError for columns that are not there, or cannot be all that is asked of them."""
    for names in asked.values():
        for name in names:
            if name is not None:
                table.column(name)
    if features is not None and not features:
        raise TableError(f"{table.name}: the list of features is empty")
    for one, other in _EXCLUSIVE:
        both = next((name for name in asked[one] if name is not None and name in asked[other]), None)
        if both is not None:
            raise TableError(f"{table.name}: column {quote(both)} cannot be both {one} and {other}")
    alone = next((name for name in asked["a category"] if name not in asked["a feature"]), None)
    if alone is not None and features is not None:
        raise TableError(f"{table.name}: column {quote(alone)} is to be a category, but not a feature: list it there")
    twice = next((name for name, count in Counter(features).items() if count > 1), None)
    if twice is not None:
        raise TableError(f"{table.name}: feature {quote(twice)} is listed twice")


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
