// The table of rows: sorted by the header's buttons, filtered, one page at a time.

const PAGE_ROWS = 50;

async function startTable(packed) {
  const n = packed.n;
  const [identity, given, implied, ...others] = await Promise.all(packed.columns.map((c) => unpackColumn(c, n)));
  const residuals = given.values.map((value, i) => value - implied.values[i]);
  const residual = numbers({ name: "off by", places: packed.places, grouped: true }, residuals);
  const rank = numbers({ name: "rank", places: 0, grouped: true }, Float64Array.from({ length: n }, (_, i) => i + 1));
  const columns = [rank, identity, given, implied, residual, ...others];

  const table = document.getElementById("table");
  const body = table.tBodies[0];
  const headers = [...table.tHead.rows[0].cells];
  const query = document.getElementById("query");
  const least = document.getElementById("least");
  const kind = document.getElementById("kind");
  const pager = document.getElementById("pager");
  const state = { column: 0, descending: false, page: 0 };
  let order = Uint32Array.from({ length: n }, (_, i) => i);
  let shown = order;
  let haystack = null;

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

  function searchable() {
    return Array.from({ length: n }, (_, i) => columns.slice(1).map((column) => {
      const text = column.text(i);
      return column.number && text.includes(",") ? `${text}\n${text.replaceAll(",", "")}` : text;
    }).join("\n").toLowerCase());
  }

  function filter() {
    const wanted = query.value.trim().toLowerCase();
    const size = least.value === "" ? NaN : Number(least.value);
    const happened = kind?.value ?? "";
    if (wanted) haystack ??= searchable();
    shown = !wanted && !(size > 0) && !happened ? order : order.filter((i) =>
      !(Math.abs(residuals[i]) < size) && (!happened || others[0].text(i) === happened) && (!wanted || haystack[i].includes(wanted)));
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
    const count = (number) => number.toLocaleString("en-US");
    const range = shown.length ? `Rows ${count(start + 1)}–${count(start + rows.length)} of ${count(shown.length)}` : "No row fits";
    document.getElementById("status").textContent = range + (shown.length < n ? ` (filtered from ${count(n)})` : "");
    for (const button of pager.children)
      button.disabled = /first|previous/.test(button.dataset.page) ? state.page === 0 : state.page === pages - 1;
    document.getElementById("download").disabled = !shown.length;
  }

  function refresh() {
    state.page = 0;
    filter();
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
    // A button that is now disabled would lose the keyboard's place.
    if (target.disabled) [...pager.children].find((button) => !button.disabled)?.focus();
  });
  let waiting = 0;
  for (const input of [query, least])
    input.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(refresh, 120);
    });
  kind?.addEventListener("change", refresh);
  // So that the first letter does not wait for it.
  query.addEventListener("focus", () => setTimeout(() => (haystack ??= searchable())));
  document.getElementById("download").addEventListener("click", () => download(columns, shown));
  sort();
  draw();
  document.getElementById("filters").hidden = false;
  pager.hidden = n <= PAGE_ROWS;
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
