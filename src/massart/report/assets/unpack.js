"use strict";
// Unpacking: columns come as base64 of compressed JSON; see rows.py.

async function unpackColumn({ data, ...column }) {
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const cells = JSON.parse(await new Response(stream).text());
  return column.numeric ? numbers(column, Float64Array.from(cells, (cell) => cell ?? NaN)) : texts(column, cells);
}

// A column has: text(i) for the eye, raw(i) for a file, keys() to sort by, keep(condition, rows) to cross out rows.

function numbers({ name, places, grouped }, values) {
  const text = (i) => writeNumber(values[i], places, grouped);
  return {
    name, values, text, number: true,
    raw: (i) => (Number.isNaN(values[i]) ? "" : plainNumber(values[i])),
    keys: () => values,
    keep({ numeric, test }, rows) {
      // A text is looked for in what is seen, with and without commas.
      const fits = numeric ? (i) => test(values[i]) : (i) => test(text(i)) || test(text(i).replaceAll(",", ""));
      for (let i = 0; i < rows.length; i++) if (rows[i] && !fits(i)) rows[i] = 0;
    },
  };
}

function texts({ name }, cells) {
  const words = [...new Set(cells)];
  const places = new Map(words.map((word, place) => [word, place]));
  const codes = Uint32Array.from(cells, (cell) => places.get(cell));
  let keys = null;
  return {
    name, number: false,
    text: (i) => cells[i],
    raw: (i) => safeForSpreadsheets(cells[i]),
    keys: () => (keys ??= alphabetical(codes, words)),
    keep({ test }, rows) {
      const fits = words.map(test);
      for (let i = 0; i < rows.length; i++) if (!fits[codes[i]]) rows[i] = 0;
    },
  };
}

function alphabetical(codes, words) {
  const order = Uint32Array.from(words.keys()).sort((a, b) => collator.compare(words[a], words[b]) || a - b);
  const places = new Float64Array(words.length);
  order.forEach((word, place) => (places[word] = words[word] === "" ? NaN : place));
  return Float64Array.from(codes, (code) => places[code]);
}

function writeNumber(value, places, grouped) {
  if (Number.isNaN(value)) return "";
  if (!Number.isFinite(value)) return value < 0 ? "-∞" : "∞";
  let text = places == null ? String(Number(value.toPrecision(8))) : value.toFixed(places);
  if (/^-[0.]+$/.test(text)) text = text.slice(1);
  if (!grouped || text.includes("e")) return text;
  const [whole, rest] = text.split(".");
  const apart = whole.replace(/\d(?=(\d{3})+$)/g, "$&,");
  return rest === undefined ? apart : `${apart}.${rest}`;
}

// As a person would write it: what floats add in the 16th digit is left away, 14176.62 and not 14176.619999999999.
function plainNumber(value) {
  const short = Number(value.toPrecision(15));
  return String(String(short).length + 4 < String(value).length ? short : value);
}

function grouped(number) {
  return number.toLocaleString("en-US");
}

// A spreadsheet runs a text that begins like a formula.
function safeForSpreadsheets(text) {
  return /^[=+\-@\t\r]/.test(text) && !Number.isFinite(Number(text)) ? `'${text}` : text;
}

function embedded(id) {
  const element = document.getElementById(id);
  return element && JSON.parse(element.textContent);
}
