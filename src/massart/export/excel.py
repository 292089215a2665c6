"""Rules as cell formulas, for the row below a header: what is expected, how far it may be off, whether it is right.

Functions have their English names, and are those that all versions have.
Literals of 15 digits are all that Excel reads, so a number that needs more is a quotient, or a sum of two.
"""

from __future__ import annotations

from collections.abc import Sequence

from massart.export.rule import SIZE, SUM, ExportedRule, ExportError, LevelRate, Writer
from massart.rules import EXCEL_EPOCH, Term
from massart.tables import NO, YES, Category, Date, Flag, Number, on_one_line

_DIGITS = 15
_LONGEST, _LONGEST_TEXT = 8192, 255
_ROW = 2


def cells(rule: ExportedRule, header: Sequence[str] | None) -> str:
    """Return lines that say what to write into which cell; columns have the places that a header gives them."""
    excel = Excel(rule, header)
    expected, allowed, right = (letters(excel.free + k) for k in range(3))
    pieces = [excel.piece(piece) for piece in rule.pieces]
    given, days = excel.given, EXCEL_EPOCH if isinstance(rule.target, Date) else 0
    total = excel.of(rule.value, SUM, f"({'+'.join(pieces) or '0'})") + (f"+{days}" if days else "")
    size = "+".join(f"ABS({part})" for part in (given, *pieces))
    found = f"${expected}{_ROW}"
    judged = f"AND(ISNUMBER({found}),{excel.known(rule.target.column)})"
    formulas = {
        **excel.texts(),
        expected: f'=IF(AND({excel.judged()}),IFERROR({total},""),"")',
        allowed: f'=IF({judged},{excel.of(rule.allowed(rule.unit), SIZE, f"({size})")},"")',
        right: f'=IF({judged},ABS({given}-{f"({found}-{days})" if days else found})<=${allowed}{_ROW},"")',
    }
    longest = max(map(len, formulas.values()))
    if longest > _LONGEST:
        raise ExportError(
            f"excel cannot say the rule: a formula would have {longest:,} letters, more than {_LONGEST:,}"
        )
    words = {place: f"{on_one_line(name)} as it is compared" for name, place in excel.categories.items()}
    words |= {expected: "expected", allowed: "how far it may be off", right: "whether it is right; empty: not judged"}
    lines = [*rule.heading, f"For a sheet with a header, write these into row {_ROW} and fill them down."]
    lines += [f"Column {letter}: {on_one_line(name)}" for name, letter in excel.places.items()]
    return "\n".join([*lines, *(f"{place}{_ROW} ({words[place]}):\n{text}" for place, text in formulas.items())]) + "\n"


def letters(place: int) -> str:
    """Return the letters of a column, counted from 0: A, B, ..., Z, AA."""
    word = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        word = chr(ord("A") + rest) + word
    return word


class Excel(Writer):
    """Terms as Excel has them."""

    name = "excel"

    def __init__(self, rule: ExportedRule, header: Sequence[str] | None) -> None:
        super().__init__(rule)
        names = list(self.entries) if header is None else list(header)
        missing = next((name for name in self.entries if name not in names), None)
        if missing is not None:
            raise ExportError(f"the header has no column {missing!r}, which the rule reads")
        self._above: list[str] = []
        self.places = {name: letters(names.index(name)) for name in self.entries}
        categories = [name for name, entry in rule.inputs.items() if isinstance(entry, Category)]
        self.categories = {name: letters(len(names) + k) for k, name in enumerate(categories)}
        self.free = len(names) + len(categories)

    def texts(self) -> dict[str, str]:
        """Return the cells that hold levels as they are compared."""
        return {place: f"={self._compared(name)}" for name, place in self.categories.items()}

    def judged(self) -> str:
        """Return that all cells that the terms read have a value, once these are written."""
        return ",".join((*map(self.known, self.rule.inputs), *self._above)) or "TRUE"

    def known(self, column: str) -> str:
        """Return that a cell has a number, or a level that is known."""
        entry, cell = self.entries[column], self._cell(column)
        match entry:
            case Category():
                cell, texts = self._text(column), self._texts(column).values()
                return f"OR({','.join(f'EXACT({cell},{_text(text)})' for text in texts)})"
            case Flag():
                return f"ISNUMBER({_match(cell, (*YES, '1', *NO, '0'))})"
        if isinstance(entry, Number) and entry.blank_is_zero:
            return f"OR(ISNUMBER({cell}),ISBLANK({cell}))"
        return f"ISNUMBER({cell})"

    def _number(self, rate: LevelRate) -> str:
        value = float(rate.coef)
        text = f"{value:.{_DIGITS}G}"
        if float(text) != value:
            exact = rate.exact
            if (
                exact is not None
                and max(abs(exact.numerator), exact.denominator) < 10**_DIGITS
                and float(exact) == value
            ):
                return f"({exact.numerator}/{exact.denominator})"
            text = f"({text}{value - float(text):+.{_DIGITS}G})"
        return f"({text})" if text.startswith("-") else text

    def _column(self, name: str) -> str:
        entry, cell = self.entries[name], self._cell(name)
        if isinstance(entry, Date):
            return f"({cell}-{EXCEL_EPOCH})"
        if isinstance(entry, Flag):
            return f"IF(ISNUMBER({_match(cell, (*YES, '1'))}),1,0)"
        return cell

    def _chosen(self, category: str, rates: Sequence[LevelRate]) -> str:
        cell, texts = self._text(category), self._texts(category)
        each = (f"{self._number(rate)}*EXACT({cell},{_text(texts[rate.level])})" for rate in rates)
        return f"({'+'.join(each)})"

    def _power(self, base: str, exponent: float) -> str:
        return f"POWER({base},{self.plain(exponent)})"

    def _lag(self, term: Term, name: str, by: str | None, order: str | None) -> str:
        if by is not None or order is not None:
            raise ExportError(f"excel cannot say {term}: the row before has to be the one above")
        cell = self._cell(name, _ROW - 1)
        self._above.append(f"ISNUMBER({cell})")
        return f"({cell}-{EXCEL_EPOCH})" if isinstance(self.entries[name], Date) else cell

    def _cell(self, column: str, row: int = _ROW) -> str:
        return f"${self.places[column]}{row}"

    def _text(self, column: str) -> str:
        return f"${self.categories[column]}{_ROW}"

    def _compared(self, column: str) -> str:
        entry, cell = self.entries[column], f'{self._cell(column)}&""'
        if isinstance(entry, Category) and entry.alike:
            for letter, text in self._folding(column):
                sign = _text(letter) if letter > " " else f"CHAR({ord(letter)})"
                cell = f"SUBSTITUTE({cell},{sign},{_text(text)})"
            return f"LOWER(TRIM({cell}))"  # TRIM makes one of blanks inside, too
        return f"IF(ISNUMBER(FIND(TRIM({cell}),{cell})),TRIM({cell}),{cell})"  # which it must not do here


def _text(value: str) -> str:
    if len(value) > _LONGEST_TEXT:
        raise ExportError(f"excel cannot say a text of {len(value):,} letters, only of {_LONGEST_TEXT}")
    return '"' + value.replace('"', '""') + '"'


def _match(cell: str, words: Sequence[str]) -> str:
    return f'MATCH({cell}&"",{{{",".join(map(_text, words))}}},0)'
