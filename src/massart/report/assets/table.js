// The table of rows: sorted by the header's buttons, filtered, one page at a time.

const PAGE_ROWS = 50;

function startTable(store) {
  const { n, columns } = store;
  const table = document.getElementById("table");
  const body = table.tBodies[0];
  const headers = [...table.tHead.rows[0].cells];
  const inputs = [...table.tHead.querySelectorAll("input")];
  const query = document.getElementById("query");
  const show = document.getElementById("show");
  const pager = document.getElementById("pager");
  const state = { column: RANK, descending: false, page: 0 };
  let order = Uint32Array.from({ length: n }, (_, i) => i);
  let shown = order;

  function sort() {
    const keys = columns[state.column].keys();
    const sign = state.descending ? -1 : 1;
    // What is missing comes last, whichever way the rest is sorted.
    const signed = Float64Array.from(keys, (key) => (Number.isNaN(key) ? Infinity : sign * key));
    order = Uint32Array.from({ length: n }, (_, i) => i).sort((a, b) =>
      signed[a] < signed[b] ? -1 : signed[a] > signed[b] ? 1 : a - b);
    headers.forEach((header, place) => {
      if (place !== state.column) header.removeAttribute("aria-sort");
      else header.setAttribute("aria-sort", state.descending ? "descending" : "ascending");
    });
  }

  function draw() {
    const pages = Math.max(1, Math.ceil(shown.length / PAGE_ROWS));
    state.page = Math.min(Math.max(0, state.page), pages - 1);
    const start = state.page * PAGE_ROWS;
    const rows = [...shown.subarray(start, start + PAGE_ROWS)].map((i) => {
      const row = document.createElement("tr");
      for (const column of columns) {
        const cell = row.insertCell();
        cell.textContent = column.text(i);
        if (column.number) cell.className = "number";
        else if (cell.textContent.length > 30) cell.title = cell.textContent;
      }
      return row;
    });
    body.replaceChildren(...rows);
    const range = shown.length ? `Rows ${grouped(start + 1)}–${grouped(start + rows.length)} of ${grouped(shown.length)}` : "No row fits";
    const all = { wrong: store.wrong, right: n - store.wrong, all: n }[store.show];
    document.getElementById("status").textContent = range + (shown.length < all ? ` (filtered from ${grouped(all)})` : "");
    pager.hidden = pages === 1;
    for (const button of pager.children)
      button.disabled = /first|previous/.test(button.dataset.page) ? state.page === 0 : state.page === pages - 1;
    document.getElementById("download").disabled = !shown.length;
  }

  function refresh() {
    state.page = 0;
    shown = order.filter(store.isShown);
    // Texts that came from elsewhere; what is being typed stays as it is.
    inputs.forEach((input, place) => {
      if (input !== document.activeElement) input.value = store.filters.get(place) ?? "";
      input.classList.toggle("on", store.filters.has(place));
    });
    if (query !== document.activeElement) query.value = store.query;
    show.value = store.show;
    draw();
  }

  headers.forEach((header, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = button.title = header.textContent;
    header.replaceChildren(button);
    button.addEventListener("click", () => {
      state.descending = state.column === place && !state.descending;
      state.column = place;
      sort();
      refresh();
    });
  });
  pager.addEventListener("click", ({ target }) => {
    const pages = { first: 0, previous: state.page - 1, next: state.page + 1, last: Infinity };
    if (!(target.dataset.page in pages)) return;
    state.page = pages[target.dataset.page];
    draw();
    body.parentElement.parentElement.scrollTop = 0;
    // A button that is now disabled would lose the keyboard's place.
    if (target.disabled) [...pager.children].find((button) => !button.disabled)?.focus();
  });
  const typed = (input, change) => {
    let waiting = 0;
    input.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(change, 120);
    });
  };
  typed(query, () => store.change(() => (store.query = query.value)));
  inputs.forEach((input, place) => typed(input, () => store.set(place, input.value)));
  show.addEventListener("change", () => store.change(() => (store.show = show.value)));
  document.getElementById("download").addEventListener("click", () => download(columns, shown));
  sort();
  store.follow(refresh);
  document.getElementById("filters").hidden = table.tHead.rows[1].hidden = false;
}

// A table that is wider than the screen says so, for as long as there is more to its right.
function hintAtMore(scroll) {
  scroll.after(Object.assign(document.createElement("p"), { className: "swipe", ariaHidden: "true", textContent: "More columns to the right →" }));
  const hint = () => scroll.classList.toggle("more", scroll.scrollWidth - scroll.clientWidth - scroll.scrollLeft > 8);
  scroll.addEventListener("scroll", hint, { passive: true });
  new ResizeObserver(hint).observe(scroll);
}

function download(columns, rows) {
  const quote = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const lines = [columns.map((column) => quote(safeForSpreadsheets(column.name))).join(",")];
  for (const i of rows) lines.push(columns.map((column) => quote(column.raw(i))).join(","));
  // The mark tells spreadsheets that the file is UTF-8.
  const url = URL.createObjectURL(new Blob(["\ufeff", lines.join("\r\n"), "\r\n"], { type: "text/csv" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = "rows.csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
