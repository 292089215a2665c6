// Conditions that a reader types: > 1000, 10..20, North, != 0, ± 5..; see conditionOf.

const collator = new Intl.Collator("en", { numeric: true });
const SIGNS = { "≥": ">=", "≤": "<=", "≠": "!=" };

// A text as a test of the cells of a column, or null where it says nothing (yet).
//   North         a text that contains it, or the number
//   = North       that text or number; alone, an empty cell; != the opposite
//   > 1000        also >=, <, <=; texts by the alphabet
//   10..20        from 10 to 20; either end may be missing; ..<20 is without 20
//   ± 5..         the size of a number, whatever its sign
function conditionOf(text, isNumber) {
  const [, absolute, written, rest] = text.match(/^\s*(±)?\s*(>=|<=|!=|≥|≤|≠|=|>|<)?\s*(.*?)\s*$/s);
  const sign = SIGNS[written] ?? written;
  if (!rest && (!sign || /[<>]/.test(sign))) return null;
  const range = !sign && rest.match(/^(.*?)\s*\.\.(<?)\s*(.*)$/s);
  const ends = range ? [range[1], range[3]] : [rest];
  const numeric = isNumber && ends.every((end) => end === "" || !Number.isNaN(numberOf(end)));
  const read = numeric ? numberOf : (end) => end;
  const operand = read(rest);
  const order = numeric ? (a, b) => a - b : (a, b) => collator.compare(a, b);
  const cell = numeric && absolute ? Math.abs : (value) => value;
  const empty = (value) => value === "" || Number.isNaN(value);
  const tests = {
    "=": (value) => (rest ? cell(value) === operand : empty(value)),
    "!=": (value) => !tests["="](value),
    ">": (value) => order(cell(value), operand) > 0,
    ">=": (value) => order(cell(value), operand) >= 0,
    "<": (value) => order(cell(value), operand) < 0,
    "<=": (value) => order(cell(value), operand) <= 0,
  };
  let test = tests[sign];
  if (range) {
    const [low, high] = ends.map((end) => (end === "" ? null : read(end)));
    if (low === null && high === null) return null;
    const below = range[2] ? (value) => order(value, high) < 0 : (value) => order(value, high) <= 0;
    test = (value) => (low === null || order(cell(value), low) >= 0) && (high === null || below(cell(value)));
  } else if (!sign) {
    const wanted = rest.toLowerCase();
    test = numeric ? tests["="] : (value) => String(value).toLowerCase().includes(wanted);
  }
  const answersEmpty = sign === "=" || sign === "!=";
  return { numeric, test: (value) => (answersEmpty || !empty(value)) && test(typeof value === "string" ? value.trim() : value) };
}

function numberOf(text) {
  return text.trim() === "" ? NaN : Number(text.replaceAll(",", ""));
}

// The two ends of a condition a..b on numbers, for a picture that shows what lies between.
function rangeOf(text) {
  const found = (text ?? "").match(/^([^±]*)\.\.<?(.*)$/);
  const ends = found && [numberOf(found[1]), numberOf(found[2])];
  return ends && ends.every(Number.isFinite) ? ends : null;
}
