// The rows that the page carries, and which of them are wanted: one state that pictures, lists and table follow.

const RANK = 0, IDENTITY = 1, GIVEN = 2, IMPLIED = 3, OFF = 4, KIND = 5;

async function openRows(packed) {
  const { n, wrong } = packed;
  const [identity, given, implied, ...others] = await Promise.all(packed.columns.map(unpackColumn));
  const off = numbers({ name: "off by", places: packed.places, grouped: true }, given.values.map((value, i) => difference(value, implied.values[i])));
  const ranks = Float64Array.from({ length: n }, (_, i) =>
    i < packed.largest ? i + 1 : packed.ranks[i - packed.largest] ?? NaN);
  const rank = numbers({ name: "rank", places: 0, grouped: true }, ranks);
  const listeners = [];
  const store = {
    n, wrong, columns: [rank, identity, given, implied, off, ...others],
    drawn: packed.drawn.length ? packed.drawn : Array.from({ length: wrong }, (_, i) => i),
    filters: new Map(), query: "", show: "wrong", wanted: new Uint8Array(n).fill(1),
    moved: null, // what other coefficients imply
    texts: null, // made when they are first searched
    follow: (listener) => listeners.push(listener),
    change(change = () => {}) {
      change(store);
      select(store);
      listeners.forEach((listener) => listener(store));
    },
    set(place, text) {
      store.change(() => (text.trim() ? store.filters.set(place, text) : store.filters.delete(place)));
    },
    toggle(place, text) {
      store.set(place, store.filters.get(place) === text ? "" : text);
    },
    clear: () => store.change(() => { store.filters.clear(); store.query = ""; store.show = "wrong"; }),
    isShown: (i) => (store.show === "all" || (i < wrong) === (store.show === "wrong")) && store.wanted[i] === 1,
  };
  return store;
}

// Without what floats lose in a difference: 176.62, not 176.6200000000008.
function difference(a, b) {
  const places = 14 - Math.ceil(Math.log10(Math.abs(a) + Math.abs(b)));
  const scale = places >= 0 && places < 128 ? Number(`1e${places}`) : NaN;
  const found = a - b;
  return !Number.isFinite(found * scale) ? found : Math.round(found * scale) / scale + 0;
}

function select(store) {
  store.wanted.fill(1);
  for (const [place, text] of store.filters) {
    const column = store.columns[place];
    const condition = conditionOf(text, column.number);
    if (condition) column.keep(condition, store.wanted);
  }
  const query = store.query.trim().toLowerCase();
  if (query) {
    store.texts ??= Array.from({ length: store.n }, (_, i) => textOf(store, i));
    store.texts.forEach((text, i) => (store.wanted[i] &= text.includes(query)));
  }
}

// All that a reader sees of a row; numbers also without commas.
function textOf(store, i) {
  return store.columns.slice(1).map((column) => {
    const text = column.text(i);
    return column.number && text.includes(",") ? `${text}\n${text.replaceAll(",", "")}` : text;
  }).join("\n").toLowerCase();
}

// What is chosen, in words that can be taken away again, beside every part of the page.
function startChips(store) {
  const bar = document.getElementById("chips");
  const list = bar.querySelector("ul");
  const summary = bar.querySelector("p");
  const chip = (words, remove) => {
    const button = Object.assign(document.createElement("button"), { type: "button", className: "chip" });
    const cross = Object.assign(document.createElement("span"), { textContent: "×", ariaHidden: "true" });
    button.append(words, cross);
    button.setAttribute("aria-label", `Remove the filter ${words}`);
    button.addEventListener("click", remove);
    const item = document.createElement("li");
    item.append(button);
    return item;
  };
  store.follow(() => {
    const chips = [...store.filters].map(([place, text]) =>
      chip(`${store.columns[place].name} ${text}`, () => store.set(place, "")));
    if (store.query.trim()) chips.push(chip(`any column ${store.query}`, () => store.change(() => (store.query = ""))));
    list.replaceChildren(...chips);
    bar.hidden = !chips.length;
    const count = (start, end) => store.wanted.subarray(start, end).reduce((sum, one) => sum + one, 0);
    const words = [`${grouped(count(0, store.wrong))} of ${grouped(store.wrong)} ${bar.dataset.off}`];
    if (store.n > store.wrong) words.push(`${grouped(count(store.wrong, store.n))} of ${grouped(store.n - store.wrong)} that agree`);
    summary.textContent = words.join(", ");
  });
  document.getElementById("clear").addEventListener("click", store.clear);
}

// Lists whose entries choose rows: kinds and groups.
function startLists(store) {
  const buttons = [...document.querySelectorAll("button[data-place]")];
  for (const button of buttons)
    button.addEventListener("click", () => store.toggle(Number(button.dataset.place), `= ${button.dataset.value}`));
  store.follow(() => {
    for (const button of buttons)
      button.setAttribute("aria-pressed", store.filters.get(Number(button.dataset.place)) === `= ${button.dataset.value}`);
  });
}
