r"""Rules as SQL: a SELECT that lists the wrong rows and, where they are too many, the rows that are not judged.

An empty list is a pass in every tool that runs it, so a table of which nothing could be judged must not give one. It is
the part of SQL that DuckDB, SQLite and PostgreSQL share. Numbers are double precision, as they are in massart;
sums are not compensated, so that rows are judged alike while their sizes are below :math:`2^{46}` units of the last
place, where there is one. Columns are named after the rows that they are columns of: a name that is not there is an
error and not, as in SQLite, a text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from massart.export.rule import SIZE, SUM, ExportedRule, ExportError, LevelRate, Writer
from massart.rules import Term
from massart.tables import NO, YES, Category, Date, Flag, Number

_ROWS = "massart_rows"
_LARGEST = "1.7976931348623157e308"
_MOST_PIECES = 500  # half of what DuckDB and SQLite nest
_MOST_CALLS = 10  # of functions around one another in a step: the parser of SQLite has room for some twenty
_INDENT = "\n    "
_TAB = "\t"


def select(rule: ExportedRule, table: str) -> str:
    """Return a SELECT that lists the wrong rows of a table, which is named as SQL does."""
    first, judged, *rest = rule.heading
    if rule.bounds_unjudged:
        judged += f" They are listed, too, where they are more than {100 * rule.max_unjudged:.4g} % of all rows."
    return "".join(f"-- {line}\n" for line in (first, judged, *rest)) + query(rule, table) + "\n"


def name(text: str) -> str:
    """Return a name in quotes."""
    if "\0" in text:
        raise ExportError(f"sql cannot say the name {text!r}")
    return '"' + text.replace('"', '""') + '"'


def query(rule: ExportedRule, table: str) -> str:
    """Return the SELECT without a comment."""
    if len(rule.pieces) > _MOST_PIECES:
        raise ExportError(f"sql cannot say a sum of {len(rule.pieces):,} terms, only of {_MOST_PIECES}")
    sql, total = Sql(rule), "massart_sum" if rule.limited else "massart_expected"
    pieces = [sql.piece(piece) for piece in rule.pieces]
    sizes = [f"ABS({part})" for part in (sql.given, *pieces)]
    expected = f"{_INDENT}{sql.of(rule.value, SUM, 'massart_sum')} AS massart_expected," if rule.limited else ""
    allowed = sql.of(rule.allowed(rule.unit), SIZE, "massart_size")
    steps = {
        _ROWS: f"SELECT * FROM {table}",
        **dict(sql.texts()),
        **dict(sql.dates()),
        **dict(sql.before()),
        "massart_known": (
            f"SELECT r.*,{_INDENT}CASE WHEN {f'{_INDENT}AND '.join(sql.known())}{_INDENT}THEN 1 ELSE 0 END"
            f" AS massart_is_known\n  FROM {sql.rows} AS r"
        ),
        "massart_sums": (
            f"SELECT r.*,{_INDENT}{_if_known(sql.given)} AS massart_given,"
            f"{_INDENT}{_if_known(_added(pieces))} AS {total},"
            f"{_INDENT}{_if_known(_added(sizes))} AS massart_size\n  FROM massart_known AS r"
        ),
        "massart_compared": (
            f"SELECT massart_sums.*,{expected}{_INDENT}{allowed} AS massart_allowed,"
            f"{_INDENT}CASE WHEN massart_size <= {_LARGEST} THEN 1 ELSE 0 END AS massart_is_judged\n  FROM massart_sums"
        ),
        "massart_counted": (
            f"SELECT massart_compared.*,{_INDENT}COUNT(*) OVER () AS massart_all,"
            f"{_INDENT}SUM(massart_is_judged) OVER () AS massart_judged\n  FROM massart_compared"
        ),
    }
    written = ",\n".join(f"{step} AS (\n  {text}\n)" for step, text in steps.items())
    difference = "massart_given - massart_expected"
    return (
        f"WITH {written}\nSELECT massart_counted.*, {difference} AS massart_difference,"
        "\n  CASE WHEN massart_is_judged = 1 THEN 'wrong' ELSE 'not judged' END AS massart_finding"
        "\nFROM massart_counted\n"
        f"WHERE massart_is_judged = 1 AND ABS({difference}) > massart_allowed\n"
        "  OR massart_is_judged = 0"
        f" AND (massart_all - massart_judged) * 1e0 / massart_all > {sql.plain(rule.max_unjudged)}"
    )


def _if_known(value: str) -> str:
    """Return a value where a row has all that the rule reads: elsewhere it may be an error to compute it."""
    return f"CASE WHEN massart_is_known = 1 THEN{_INDENT}  {value}{_INDENT}END"


def _added(parts: Sequence[str]) -> str:
    return f"{_INDENT}  + ".join(parts) or "0e0"


class Sql(Writer):
    """Terms as SQL."""

    name = "sql"

    def __init__(self, rule: ExportedRule) -> None:
        super().__init__(rule)
        self._categories = self._numbers_of(Category)
        self._dates = self._numbers_of(Date)
        self._weekdays: set[str] = set()
        self._lags: list[str] = []
        self._read = "massart_texts" if self._categories else _ROWS
        self._numbered = "massart_days" if self._dates else self._read

    def _numbers_of(self, kind: type) -> dict[str, int]:
        return {column: k for k, (column, entry) in enumerate(self.entries.items()) if isinstance(entry, kind)}

    @property
    def rows(self) -> str:
        """What the terms read, once they are written."""
        return "massart_before" if self._lags else self._numbered

    def known(self) -> Iterator[str]:
        """Yield what holds of rows that are judged: each column has a finite number, or a level that is known."""
        for column, entry in self.entries.items():
            match entry:
                case Category():
                    yield f"{self._text(column)} IN ({', '.join(map(_text, self._texts(column).values()))})"
                case Date() | Flag():
                    yield f"{self._column(column)} IS NOT NULL"
                case Number(blank_is_zero=True):
                    yield f"ABS({self._column(column)}) <= {_LARGEST}"
                case _:
                    cell = f"r.{name(column)}"
                    yield f"CAST({cell} AS VARCHAR) <> '' AND ABS({self._column(column)}) <= {_LARGEST}"

    def texts(self) -> Iterator[tuple[str, str]]:
        """Yield the steps that write levels as they are compared, each by a few calls of functions."""
        cells = {column: f"CAST(r.{name(column)} AS VARCHAR)" for column in self._categories}
        calls = {column: self._calls(column) for column in cells}
        rows, most = _ROWS, max(map(len, calls.values()), default=0)
        for start in range(0, most, _MOST_CALLS):
            step = "" if start + _MOST_CALLS >= most else f"_{start}"
            columns = []
            for column, cell in cells.items():
                for call in calls[column][start : start + _MOST_CALLS]:
                    cell = call(cell)
                cells[column] = f"{self._text(column)}{step}"
                columns.append(f"{cell} AS {cells[column].removeprefix('r.')}")
            yield f"{self._read}{step}", f"SELECT r.*,{_INDENT}{f',{_INDENT}'.join(columns)}\n  FROM {rows} AS r"
            rows = f"{self._read}{step}"

    def dates(self) -> Iterator[tuple[str, str]]:
        """Yield the steps that make numbers of dates, or of texts such as 2024-05-01, once the terms are written."""
        if not self._dates:
            return
        parts, days = [], []
        for column, k in self._dates.items():
            text = f"CAST(r.{name(column)} AS VARCHAR)"
            is_day = " OR ".join(f"{text} LIKE '____-__-__{time}'" for time in ("", " 00:00:00"))
            for letter, start, length in (("y", 1, 4), ("m", 6, 2), ("d", 9, 2)):
                part = f"CAST(SUBSTR({text}, {start}, {length}) AS INTEGER)"
                parts.append(f"CASE WHEN {is_day} THEN {part} END AS massart_{letter}{k}")
            since = _days(*(f"massart_{letter}{k}" for letter in "ymd"))
            days.append(f"CAST({since} AS DOUBLE PRECISION) AS massart_days{k}")
            if column in self._weekdays:  # 0001-01-01, 719,162 days before 1970-01-01, was a Monday
                days.append(f"CAST(({since} + 719162) % 7 + 1 AS DOUBLE PRECISION) AS massart_w{k}")
        for step, rows, columns in (("massart_dates", self._read, parts), ("massart_days", "massart_dates", days)):
            yield step, f"SELECT r.*,{_INDENT}{f',{_INDENT}'.join(columns)}\n  FROM {rows} AS r"

    def before(self) -> Iterator[tuple[str, str]]:
        """Yield the step that looks at the rows before, if a term does."""
        if self._lags:
            columns = (f"{lag} AS massart_lag{k}" for k, lag in enumerate(self._lags))
            yield "massart_before", f"SELECT r.*,{_INDENT}{f',{_INDENT}'.join(columns)}\n  FROM {self._numbered} AS r"

    def _number(self, rate: LevelRate) -> str:
        text = repr(float(rate.coef))
        text = text if "e" in text else f"{text.removesuffix('.0')}e0"  # a literal without exponent is not a double
        return f"({text})" if rate.coef < 0 else text

    def _column(self, name_: str) -> str:
        entry, cell = self.entries[name_], f"r.{name(name_)}"
        if isinstance(entry, Date):
            return f"r.massart_days{self._dates[name_]}"
        if isinstance(entry, Flag):
            word = f"LOWER(TRIM(CAST({cell} AS VARCHAR)))"
            yes, no = (", ".join(map(_text, words)) for words in ((*YES, "1", "1.0"), (*NO, "0", "0.0")))
            return f"CASE WHEN {word} IN ({yes}) THEN 1e0 WHEN {word} IN ({no}) THEN 0e0 END"
        number = f"CAST({cell} AS DOUBLE PRECISION)"
        if isinstance(entry, Number) and entry.blank_is_zero:
            return f"CASE WHEN CAST({cell} AS VARCHAR) <> '' THEN {number} ELSE 0e0 END"
        return number

    def _chosen(self, category: str, rates: Sequence[LevelRate]) -> str:
        texts = self._texts(category)
        cases = " ".join(f"WHEN {_text(texts[rate.level])} THEN {self._number(rate)}" for rate in rates)
        return f"CASE {self._text(category)} {cases} ELSE 0e0 END"

    def _power(self, base: str, exponent: float) -> str:
        if exponent == 2:
            return f"({base} * {base})"
        if exponent == -1:
            return self._said("/").format("1e0", base)
        whole = exponent == round(exponent)
        allowed = "<>" if whole else ">" if exponent < 0 else ">="
        found = f"POWER({base}, {self.plain(exponent)})"
        return found if whole and exponent > 0 else f"CASE WHEN {base} {allowed} 0e0 THEN {found} END"

    def _extreme(self, op: str, parts: Sequence[str]) -> str:
        sign, words = "<=" if op == "min" else ">=", []
        for k, part in enumerate(parts):  # without ELSE, since it has no value where one of them has none
            before = " AND ".join(f"{part} {sign} {other}" for other in (*parts[:k], *parts[k + 1 :]))
            words.append(f"WHEN {before} THEN {part}")
        return f"CASE {' '.join(words)} END"

    def _calendar(self, function: str, date: str) -> str:
        k = self._dates[date]
        if function == "month":
            return f"CAST(r.massart_m{k} AS DOUBLE PRECISION)"
        self._weekdays.add(date)
        return f"r.massart_w{k}"

    def _lag(self, term: Term, name_: str, by: str | None, order: str | None) -> str:
        if order is None:
            raise ExportError(f"sql cannot say {term}: rows have no order there but that of a column (order=...)")
        value = f"CASE WHEN CAST(r.{name(name_)} AS VARCHAR) <> '' THEN {self._column(name_)} END"
        groups = "" if by is None else f"PARTITION BY r.{name(by)} "
        self._lags.append(f"LAG({value}) OVER ({groups}ORDER BY {self._column(order)})")
        return f"r.massart_lag{len(self._lags) - 1}"

    def _text(self, column: str) -> str:
        return f"r.massart_text{self._categories[column]}"

    def _calls(self, column: str) -> list[Callable[[str], str]]:
        """Return the calls of functions, one around another, that make of a cell what is compared."""
        entry, trim = self.entries[column], "TRIM({})".format
        if not (isinstance(entry, Category) and entry.alike):
            return [trim]
        # Blanks in a row become one: of each but the last the mark behind it meets the next.
        blanks = ((" ", f" {_TAB}"), (f"{_TAB} ", ""), (_TAB, ""))
        letters, single = ([partial(_replaced, *pair) for pair in pairs] for pairs in (self._folding(column), blanks))
        return [*letters, "LOWER({})".format, *single, trim]


def _replaced(old: str, new: str, text: str) -> str:
    return f"REPLACE({text}, {_text(old)}, {_text(new)})"


def _text(value: str) -> str:
    if "\0" in value:
        raise ExportError(f"sql cannot say the text {value!r}")
    return "'" + value.replace("'", "''") + "'"


def _days(year: str, month: str, day: str) -> str:
    """Return the days since 1970-01-01 of a date, by whole numbers alone.

    Years begin in March, so that a leap day ends one.
    Quotients are of what is divided without remainder, since some engines divide whole numbers to a fraction.
    """
    years = f"({year} - CASE WHEN {month} <= 2 THEN 1 ELSE 0 END)"
    months = f"(({month} + 9) % 12)"
    leaps = f"{_whole(years, 4)} - {_whole(years, 100)} + {_whole(years, 400)}"
    return f"(365 * {years} + {leaps} + {_whole(f'(153 * {months} + 2)', 5)} + {day} - 719469)"


def _whole(value: str, by: int) -> str:
    return f"({value} - {value} % {by}) / {by}"
